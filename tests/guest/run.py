#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a flat guest on an accelerator. Usage: run.py IMAGE ACCEL [OPTION...]"""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, main, skip  # noqa: E402

IMAGE, ACCEL, OPTIONS = sys.argv[1], sys.argv[2], sys.argv[3:]


def guest_passes():
    if ACCEL.startswith('kvm') and not os.access('/dev/kvm', os.R_OK | os.W_OK):
        skip('/dev/kvm is missing or not accessible')
    with Guest('-accel', ACCEL, '-m', '64', '-kernel', IMAGE, '-display', 'none', '-serial', 'stdio',
               '-monitor', 'none', '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4', '-device',
               'pc-testdev', *OPTIONS, stdin=False) as g:
        status = g.wait(int(os.environ.get('GUEST_TIMEOUT', '240')))
        if status != 1 or 'RESULT: passed' not in g.text():
            g.fail(f'exit status {status}, wanted 1 ((0 << 1) | 1 of isa-debug-exit)')


main(guest_passes)
