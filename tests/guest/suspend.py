#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Suspend to RAM as a client of QMP sees it. Usage: suspend.py IMAGE ACCEL [OPTION...]"""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, main, skip  # noqa: E402

IMAGE, ACCEL, OPTIONS = sys.argv[1], sys.argv[2], sys.argv[3:]


def machine():
    if ACCEL.startswith('kvm') and not os.access('/dev/kvm', os.R_OK | os.W_OK):
        skip('/dev/kvm is missing or not accessible')
    return Guest('-accel', ACCEL, '-m', '32', '-kernel', IMAGE, '-S', '-display', 'none', '-serial',
                 'stdio', '-monitor', 'none', '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4',
                 *OPTIONS, stdin=False, qmp=True)


def status(q):
    return q.cmd('query-status')['status']


def client_wakes_it():
    with machine() as g:
        q = g.qmp
        try:
            q.cmd('system_wakeup')
            g.fail('system_wakeup of a machine that does not sleep')
        except RuntimeError as e:
            assert 'not in suspended state' in str(e), e
        q.cmd('cont')
        q.event('SUSPEND')
        assert status(q) == 'suspended'
        q.cmd('stop')
        q.cmd('cont')
        assert status(q) == 'suspended', 'stop and cont changed it'
        q.cmd('system_wakeup')
        q.event('WAKEUP')
        if g.wait(30) != 1 or 'RESULT: passed' not in g.text():
            g.fail('the guest did not wake as it should')


def reset_ends_it():
    with machine() as g:
        q = g.qmp
        q.cmd('cont')
        for _ in range(2):
            q.event('SUSPEND')
            q.cmd('system_reset')
            q.event('RESET')
        q.event('SUSPEND')  # the guest started anew, in its memory nothing of the time before
        q.cmd('quit')
        assert g.wait(20) == 0


main(client_wakes_it, reset_ends_it)
