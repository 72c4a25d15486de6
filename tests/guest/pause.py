#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Timers armed before `stop` fire after `cont`, and not meanwhile; vector registers are shown as they are.

Usage: pause.py IMAGE ACCEL..."""
import os
import re
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, main, skip  # noqa: E402

IMAGE, ACCEL, OPTIONS = sys.argv[1], sys.argv[2], sys.argv[3:]


def vectors_are_right(text):
    """False: the guest is not in its loop of additions."""
    def quads(n):
        return [int(q, 16) for q in re.search(rf'YMM{n:02}=(.*)', text).group(1).split()[:1:-1]]
    turns = int(re.search(r'RBX=(\w+)', text).group(1), 16)
    if not turns:
        return False
    for n in range(16):
        step = (n + 1) * 0x9e3779b97f4a7c15
        assert quads(8 + n // 2)[n % 2] == step % 2**64, f'a constant changed: {text}'
        # Between two instructions of a turn some have been added and some have not.
        assert quads(n // 2)[n % 2] in (turns * step % 2**64, (turns + 1) * step % 2**64), f'{turns:x}: {text}'
    return True


def look_at_vectors(g):
    good = 0
    for _ in range(12):
        g.qmp.cmd('stop')
        good += vectors_are_right(g.qmp.cmd('human-monitor-command', **{'command-line': 'info registers'}))
        g.qmp.cmd('cont')
        time.sleep(0.03)
    assert good >= 6, good


def armed_timers_survive_a_pause():
    if ACCEL.startswith('kvm') and not os.access('/dev/kvm', os.R_OK | os.W_OK):
        skip('/dev/kvm is missing or not accessible')
    with Guest('-accel', ACCEL, '-m', '64', '-kernel', IMAGE, '-display', 'none', '-serial', 'stdio',
               '-monitor', 'none', '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4', *OPTIONS,
               stdin=False, qmp=True) as g:
        assert g.qmp
        for name in ('deadline', 'oneshot', 'hpet'):
            if g.expect(rf'(armed|none) {name}\r?\n').group(1) == b'none':
                continue
            g.qmp.cmd('stop')
            end = time.monotonic() + 1
            while time.monotonic() < end:
                g.pump(0.1)
            seen = f'fired {name}'.encode() in g.out
            g.qmp.cmd('cont')
            m = g.expect(rf'fired {name} after ms 0x([0-9a-f]+)', 20)
            if seen:
                # It may have been faster than our `stop` on a busy host, but not within the pause.
                assert int(m.group(1), 16) < 1000, f'{name} fired while the machine stood'
            if ACCEL == 'tcg':
                # Time stood with the machine: 300 ms, less what a busy host does to the guest's
                # measuring of its clocks, and what it adds to the wait.
                assert 200 <= int(m.group(1), 16) < 1000, m.group(0)
        if not ACCEL.startswith('kvm'):  # pause.c has no such part there
            g.expect('armed vectors')
            time.sleep(0.1)
            look_at_vectors(g)
            g.expect('fired vectors', 20)
        assert g.wait(20) == 1


main(armed_timers_survive_a_pause)
