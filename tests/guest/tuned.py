#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line with which tuned measures the local APIC's timer, under `chrt -f 1`: it runs, and vCPU threads keep
the policy from outside, as there is no -realtime. Usage: tuned.py IMAGE ACCEL MODEL
"""
import os
import subprocess
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, main, skip  # noqa: E402

IMAGE, ACCEL, MODEL = sys.argv[1:]


def the_line_runs_and_keeps_its_policy():
    if ACCEL == 'kvm' and not os.access('/dev/kvm', os.R_OK | os.W_OK):
        skip('/dev/kvm is missing or not accessible')
    if subprocess.run(['chrt', '-f', '1', 'true'], check=False, capture_output=True).returncode:
        skip('no SCHED_FIFO on this host')
    name = f'CPU 0/{ACCEL.upper()}'
    seen = set()
    with Guest('-accel', ACCEL, '-cpu', MODEL, '-device', 'pc-testdev', '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4',
               '-device', 'pci-testdev', '-display', 'none', '-serial', 'stdio', '-kernel', IMAGE,
               prefix=['chrt', '-f', '1'], stdin=False) as g:
        end = time.monotonic() + 120
        while g.pump(0.02) and time.monotonic() < end:
            seen |= {(t['policy'], t['prio']) for t in g.threads() if t['name'] == name}
        assert g.wait(120) == 1 and 'RESULT: passed' in g.text(), g.fail('the guest failed')
        assert seen == {('fifo', 1)}, f'{name}: {seen}'


main(the_line_runs_and_keeps_its_policy)
