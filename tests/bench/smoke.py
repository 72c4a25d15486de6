#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""tests/bench/run measures, compares and writes what it found. The emulator is compared with itself."""
import json
import os
import subprocess
import sys
import tempfile
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'lib'))
from guest import BINARY, main  # noqa: E402


def bench(directory, *options):
    return subprocess.run([os.path.join(HERE, 'run'), '--binary', BINARY, '--against', BINARY, '--quick',
                           '--json', f'{directory}/b.json', '--html', f'{directory}/b.html', *options],
                          capture_output=True, text=True, timeout=600, check=False)


def figures_and_files():
    with tempfile.TemporaryDirectory() as d:
        r = bench(d, '--only', 'flat,start', '-n', '2')
        assert r.returncode == 0, r.stdout + r.stderr
        with open(f'{d}/b.json', encoding='utf-8') as f:
            report = json.load(f)
        assert len(report['items']) == 10, report
        for i in report['items']:
            assert not i['failures'], i
            for side in ('ours', 'other'):
                assert len(i[side]['samples']) == 2 and min(i[side]['samples']) > 0, i
            # The same program on both sides: far from 1 says that a figure is computed wrongly.
            assert 0.1 < i['ratio'] < 10, i
        with open(f'{d}/b.html', encoding='utf-8') as f:
            page = f.read()
        assert 'flat-integer' in page and 'http' not in page, 'the page lacks figures or is not self-contained'


def failure_is_reported():
    with tempfile.TemporaryDirectory() as d:
        r = bench(d, '--only', 'start', '--extra=-no-such-option')
        assert r.returncode == 1, r.stdout + r.stderr
        with open(f'{d}/b.json', encoding='utf-8') as f:
            item = json.load(f)['items'][0]
        assert item['failures']['ours'].startswith('FAILED') and item['ours']['median'] is None, item
        assert item['other']['samples'], item


def unknown_item_is_refused():
    with tempfile.TemporaryDirectory() as d:
        r = bench(d, '--only', 'no-such-item')
        assert r.returncode == 2 and 'no-such-item' in r.stderr, r.stdout + r.stderr
        assert not os.listdir(d)


main(figures_and_files, failure_is_reported, unknown_item_is_refused)
