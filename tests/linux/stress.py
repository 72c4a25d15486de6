#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Four vCPUs under load: stress-ng in Debian's cloud kernel, and not one complaint in its log.
Usage: stress.py SECONDS. Wants the initramfs of tests/bench/run."""
import os
import re
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import CACHE, Guest, kernel, main, skip  # noqa: E402
from guestlog import look_at_log  # noqa: E402

SECONDS = int(sys.argv[1])
PROGRAMS = os.path.join(CACHE, 'bench', 'programs.cpio')
# What each exercises: all ways to compute; memory and its management; switches of context; processes; waking
# each other, as hackbench does; timers; and calls of functions on other CPUs.
LOADS = ['--cpu 4 --cpu-method all', '--vm 4 --vm-bytes 25%', '--switch 4', '--fork 4', '--msg 4 --pipe 4',
         '--sockpair 4', '--timer 2 --itimer 2', '--membarrier 4 --tlb-shootdown 4']


def clock(g):
    before = time.monotonic()
    _, out = g.run('cat /proc/uptime', 60)
    up = re.search(r'(\d+\.\d+) \d+\.\d+', out)
    return float(up.group(1)), (before + time.monotonic()) / 2


def four_vcpus_under_load():
    if not os.path.exists(PROGRAMS):
        skip('no initramfs with programs: tests/bench/run makes it')
    with Guest('-accel', 'tcg', '-smp', '4', '-m', '2048', '-nodefaults', '-display', 'none', '-kernel',
               kernel('cloud'), '-initrd', PROGRAMS, '-append', 'console=ttyS0 panic=-1', '-serial', 'stdio') as g:
        g.expect('qrt: ready', 180)
        g.run('mount -t tmpfs tmp /tmp; cd /tmp')
        each = max(5, SECONDS // len(LOADS))
        start = clock(g)
        for load in LOADS:
            status, out = g.run(f'stress-ng {load} --timeout {each}s', each * 3 + 120)
            if status:
                g.fail(f'stress-ng {load}: status {status}: {out[-500:]}')
        end = clock(g)
        look_at_log(g)
        guest, host = end[0] - start[0], end[1] - start[1]
        if abs(guest - host) > 0.5 + 0.002 * host:
            g.fail(f'the clock of the guest went {guest:.2f} s in {host:.2f} s')
        g.send('poweroff -f\n')
        status = g.wait(60)
        assert status == 0, g.fail(f'exit status {status}')


main(four_vcpus_under_load)
