#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest calibrates its TSC while the host stops it now and then. Usage: calibrate.py IMAGE ACCEL"""
import os
import random
import signal
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, main  # noqa: E402

IMAGE, ACCEL = sys.argv[1], sys.argv[2]


def calibration_is_never_wrong():
    rng = random.Random(1)
    with Guest('-accel', ACCEL, '-m', '64', '-kernel', IMAGE, '-display', 'none', '-serial', 'stdio', '-monitor',
               'none', '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4', '-device', 'pc-testdev',
               stdin=False) as g:
        g.expect('calibrating', 60)
        end = time.monotonic() + 120
        while g.proc.poll() is None and time.monotonic() < end:
            time.sleep(rng.uniform(0.001, 0.02))
            # Longer than what is counted, so that the count ends meanwhile.
            g.proc.send_signal(signal.SIGSTOP)
            time.sleep(rng.uniform(0.008, 0.015))
            g.proc.send_signal(signal.SIGCONT)
        status = g.wait(60)
        if status != 1 or 'RESULT: passed' not in g.text():
            g.fail(f'exit status {status}, wanted 1')


main(calibration_is_never_wrong)
