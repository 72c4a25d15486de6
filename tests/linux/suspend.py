#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A Debian kernel suspends to RAM, and is woken. Usage: suspend.py FLAVOUR CPUS [ACCEL-OPTIONS]"""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, initramfs, kernel, main  # noqa: E402

FLAVOUR, CPUS = sys.argv[1], sys.argv[2]
ACCEL = sys.argv[3] if len(sys.argv) > 3 else 'tcg'


def suspends_and_wakes():
    with Guest('-accel', ACCEL, '-smp', CPUS, '-m', '512', '-kernel', kernel(FLAVOUR), '-initrd',
               initramfs(), '-append', 'console=ttyS0 panic=-1 no_console_suspend', '-nographic',
               '-monitor', 'none', qmp=True) as g:
        g.expect('qrt: ready', 180)
        status, out = g.run('echo before > /mark; cat /sys/power/mem_sleep')
        if 'deep' not in out:
            g.fail('the kernel does not offer suspend to RAM')
        for _ in range(2):
            g.send('echo mem > /sys/power/state\n')
            g.qmp.event('SUSPEND')
            assert g.qmp.cmd('query-status')['status'] == 'suspended'
            g.qmp.cmd('system_wakeup')
            g.qmp.event('WAKEUP')
            g.expect(r'qrt: done 0\s', 120)
            status, out = g.run('cat /mark; nproc')
            assert 'before' in out and CPUS in out, out
        g.send('poweroff -f\n')
        status = g.wait(60)
        assert status == 0, g.fail(f'exit status {status}')
        for bad in ('BUG:', 'WARNING:', 'ACPI Error', 'Call Trace', 'soft lockup', 'APIC error'):
            if bad in g.text():
                g.fail(f'the guest printed "{bad}"')


main(suspends_and_wakes)
