#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""-Dtests=false: ninja makes what is installed, and no test program. Usage: packager.py SOURCES"""
import os
import subprocess
import sys
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import main  # noqa: E402


def without_tests_only_the_product_is_built():
    with tempfile.TemporaryDirectory(prefix='qrt-packager-') as d:
        subprocess.run(['meson', 'setup', d, sys.argv[1], '-Dtests=false'], check=True, capture_output=True, timeout=90)
        out = subprocess.run(['ninja', '-C', d, '-t', 'targets', 'all'], check=True, capture_output=True, text=True,
                             timeout=30).stdout
        targets = [line.split(':')[0] for line in out.splitlines()]
        assert 'qemu-system-x86_64' in targets and 'docs/qemu-system-x86_64.1' in targets, targets[:50]
        assert not [t for t in targets if t.startswith('tests/')], targets


main(without_tests_only_the_product_is_built)
