#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/realtime-showcase measures and writes what it found, and leaves nothing behind. Output: TAP."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'lib'))
from guest import BINARY, TOP, kernel, main, skip  # noqa: E402

SCRIPT = os.path.join(TOP, 'scripts', 'realtime-showcase')


def command(directory, *options):
    return [SCRIPT, '--binary', BINARY, '--json', f'{directory}/s.json', '--html', f'{directory}/s.html', *options]


def need_realtime():
    kernel('rt')
    done = subprocess.run(['chrt', '-f', '99', 'true'], check=False, capture_output=True)
    if os.geteuid() != 0 or done.returncode != 0:
        skip('no SCHED_FIFO on this host')


def result(directory, *options):
    r = subprocess.run(command(directory, *options), capture_output=True, text=True, timeout=1500, check=False)
    assert r.returncode == 0, r.stdout[-2000:] + r.stderr[-3000:]
    with open(f'{directory}/s.json', encoding='utf-8') as f:
        report = json.load(f)
    with open(f'{directory}/s.html', encoding='utf-8') as f:
        text = f.read()
    assert text.startswith('<!doctype html>') and text.rstrip().endswith('</html>')
    outside = re.findall(r'(?:src|href)\s*=|url\(|https?://', text)
    assert not outside, f'the page is not self-contained: {outside}'
    return report, text, r.stdout


def threads_are_right(row, threads):
    vcpus = [t for t in threads if t['name'].startswith('CPU')]
    assert vcpus, threads
    if row == 'realtime':
        assert all((t['policy'], t['prio']) == ('fifo', 49) for t in vcpus), threads
        assert any((t['policy'], t['prio']) == ('fifo', 50) for t in threads), threads
    else:
        want = [('fifo', 99)] if row == 'vcpu99' else []
        assert [(t['policy'], t['prio']) for t in threads if t['policy'] != 'other'] == want, threads


def table_json_and_page():
    need_realtime()
    with tempfile.TemporaryDirectory() as d:
        report, text, table = result(d, '--quick', '--loops', '300', '--loads', 'idle,cpu+disk')
        cells = {(c['emulator'], c['row'], c['load']): c for c in report['cells']}
        assert len(cells) == 8, list(cells)
        for (side, row, load), c in cells.items():
            assert len(c['runs']) == 1 and not c['failures'], c
            run = c['runs'][0]
            assert run['samples'] == sum(run['histogram'].values()) + run['beyond_histogram'], run
            assert 300 <= run['samples'] <= 301, run['samples']
            f = run['figures']
            assert 0 < f['min'] <= f['avg'] <= f['max'] and f['min'] <= f['p99'] <= f['p99.9'] <= f['max'], f
            if side == 'ours':
                threads_are_right(row, run['threads'])
        assert text.count('<svg viewBox="0 0 1000') == 4, 'two charts for each load'
        assert 'nan' not in re.sub(r'<[^p][^>]*>', '', text).split() and 'd="MNone' not in text
        assert 'RT throttling' in text and report['about']['host kernel'] in text
        assert 'ours, realtime' in table and 'p99.99' in table


def starvation():
    need_realtime()
    with tempfile.TemporaryDirectory() as d:
        report, text, _ = result(d, '--starvation', '--tries', '1')
        s = report['starvation']
        assert s['maxprio=2'] == {'tries': 1, 'booted': 1, 'answered': 1}, s
        assert s['vcpu99']['tries'] == 1 and s['normal']['booted'] == 1, s
        assert 'Starvation' in text


def marked(mark):
    """Processes with that in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/environ', 'rb') as f:
                if mark.encode() in f.read():
                    with open(f'/proc/{pid}/comm', encoding='utf-8') as c:
                        found.append(c.read().strip())
        except OSError:
            pass
    return found


def killed_it_leaves_nothing():
    need_realtime()
    mark = f'SHOWCASE_TEST={os.getpid()}-{time.monotonic_ns()}'
    with tempfile.TemporaryDirectory() as d:
        env = dict([mark.split('=')], **os.environ)
        p = subprocess.Popen(command(d, '--quick', '--loops', '60000', '--loads', 'cpu+disk', '--rows', 'realtime'),
                             env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 240
            # The host comes first, with the load; its cyclictest shows that both run.
            while not {'cyclictest', 'stress-ng'} <= set(marked(mark)):
                assert time.monotonic() < end and p.poll() is None, f'the load did not start: {marked(mark)}'
                time.sleep(0.3)
        finally:
            p.send_signal(signal.SIGKILL)
            p.wait()
        end = time.monotonic() + 20
        while marked(mark):
            assert time.monotonic() < end, f'left behind: {marked(mark)}'
            time.sleep(0.3)


def bad_arguments_are_refused():
    for options, word in ((['--loads', 'idle,tape'], 'tape'), (['--against', '/no/such'], '/no/such'), (['--loops', '0'], '0')):
        r = subprocess.run([SCRIPT, *options], capture_output=True, text=True, timeout=60, check=False)
        assert r.returncode == 2 and word in r.stderr, (options, r.returncode, r.stderr)


main(table_json_and_page, starvation, killed_it_leaves_nothing, bad_arguments_are_refused)
