#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines that start many vCPUs and end again. Worth most under the thread sanitizer."""
import os
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import BINARY, main  # noqa: E402


def run(*args, text='quit\n'):
    done = subprocess.run([BINARY, '-m', '16', '-nodefaults', '-display', 'none', '-S', *args], check=False,
                          input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 0, (args, done.returncode, done.stdout[-3000:])
    return done.stdout


def tcg_starts_all_at_once():
    for vcpus in (2, 16, 64):
        out = run('-accel', 'tcg', '-smp', str(vcpus), '-monitor', 'stdio', text='info cpus\nquit\n')
        assert out.count('thread_id=') == vcpus, out


def model_with_every_pcid():
    run('-accel', 'tcg', '-cpu', 'max', '-smp', '16', '-monitor', 'stdio')


if __name__ == '__main__':
    main(tcg_starts_all_at_once, model_with_every_pcid)
