#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two guests boot at once: each disturbs the other while it looks for its timers and calibrates its
clock. Usage: two.py ROUNDS"""
import os
import re
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, initramfs, kernel, main  # noqa: E402
from guestlog import look_at_log  # noqa: E402

ROUNDS = int(sys.argv[1])
BOOT = 240


def guest():
    return Guest('-accel', 'tcg', '-smp', '2', '-m', '512', '-kernel', kernel('cloud'), '-initrd', initramfs(),
                 '-append', 'console=ttyS0 panic=-1', '-nographic', '-monitor', 'none')


def clock(g):
    before = time.monotonic()
    _, out = g.run('cat /proc/uptime', 60)
    after = time.monotonic()
    return float(re.search(r'(\d+\.\d+) \d+\.\d+', out).group(1)), before, after


def check_clocks(g):
    """The TSC is at 1 GHz, the guest found that, and its clock keeps the host's pace."""
    rates = [float(x) for x in re.findall(r'tsc: \D*([\d.]+) MHz', g.text())]
    if not rates or any(abs(r - 1000) > 10 for r in rates):
        g.fail(f'the guest takes its TSC for one of {rates} MHz')
    a = clock(g)
    time.sleep(2)
    b = clock(g)
    least, most = b[1] - a[2], b[2] - a[1]
    # Uptime has hundredths; the true interval lies between least and most.
    if not least * 0.99 - 0.03 <= b[0] - a[0] <= most * 1.01 + 0.03:
        g.fail(f'uptime went {b[0] - a[0]:.2f} s in {least:.2f} to {most:.2f} s')


def two_at_once():
    for _ in range(ROUNDS):
        with guest() as one, guest() as two:
            for g in (one, two):
                g.expect('qrt: ready', BOOT)
            for g in (one, two):
                check_clocks(g)
                look_at_log(g)


main(two_at_once)
