#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Scripts tell how they are used, and refuse what they do not know before they install or build."""
import os
import subprocess
import sys
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import TOP, main  # noqa: E402


def script(name, *args, **env):
    with tempfile.TemporaryDirectory(prefix='qrt-scripts-') as cache:
        return subprocess.run([os.path.join(TOP, 'scripts', name), *args], capture_output=True, text=True, timeout=30,
                              check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, 'QEMU_RT_CACHE': cache, **env})


def help_is_given():
    for name, word in (('demo', 'LOOPS=N'), ('check', 'rtcheck')):
        for option in ('-h', '--help'):
            r = script(name, option)
            assert r.returncode == 0 and word in r.stdout and r.stdout.startswith(name) and not r.stderr, r


def what_is_unknown_is_refused():
    for r, word in ((script('demo', 'nonsense'), "'nonsense'"), (script('demo', '--loops', '5'), "'--loops'"),
                    (script('demo', LOOPS='x'), 'LOOPS=x'), (script('demo', LOOPS='0'), 'LOOPS=0'),
                    (script('check', 'nonsense'), "'nonsense'")):
        assert r.returncode == 1 and word in r.stderr and r.stderr.count('\n') == 1 and not r.stdout, r


main(help_is_given, what_is_unknown_is_refused)
