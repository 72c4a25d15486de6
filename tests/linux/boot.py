#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's kernels boot to our initramfs. Usage: boot.py FLAVOUR CPUS [ACCEL-OPTIONS]"""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, initramfs, kernel, main  # noqa: E402

FLAVOUR, CPUS = sys.argv[1], int(sys.argv[2])
ACCEL = sys.argv[3] if len(sys.argv) > 3 else 'tcg'
BOOT = 180


def guest(append='', machine='pc', model='qemu64'):
    return Guest('-accel', ACCEL, '-machine', machine, '-cpu', model, '-smp', str(CPUS), '-m', '512', '-kernel', kernel(FLAVOUR),
                 '-initrd', initramfs(), '-append', f'console=ttyS0 panic=-1 {append}', '-nographic',
                 '-monitor', 'none')


def check_log(g):
    """Nothing in the guest's log that says that the machine is not as it should be."""
    for bad in ('BUG:', 'WARNING:', 'ACPI Error', 'ACPI BIOS Error', 'Call Trace', 'soft lockup',
                'unchecked MSR', 'MP-BIOS bug', 'hard LOCKUP', 'APIC error', 'rcu_sched self-detected'):
        if bad in g.text():
            g.fail(f'the guest printed "{bad}"')


def boots_and_powers_off():
    with guest('qrt=poweroff') as g:
        m = g.expect(r'qrt: init reached, (\d+) CPUs', BOOT)
        assert int(m.group(1)) == CPUS, g.fail(f'{m.group(1)} CPUs')
        status = g.wait(60)
        assert status == 0, g.fail(f'exit status {status}')
        check_log(g)


def reboots_three_times():
    with guest() as g:
        for _ in range(3):
            g.expect('qrt: ready', BOOT)
            g.send('reboot -f\n')
        g.expect('qrt: ready', BOOT)
        g.send('poweroff -f\n')
        status = g.wait(60)
        assert status == 0, g.fail(f'exit status {status}')
        check_log(g)


def boots_without_a_pit():
    """Without an HPET too, where the kernel reads the TSC's rate (Intel's leaf 15H)."""
    for machine, model in (('pc,pit=off', 'qemu64'), ('pc,pit=off,hpet=off', 'kvm64')):
        with guest('qrt=poweroff', machine, model) as g:
            g.expect('qrt: init reached', BOOT)
            assert g.wait(60) == 0, g.fail('did not power off')
            check_log(g)


main(*[boots_and_powers_off] + ([reboots_three_times, boots_without_a_pit] if FLAVOUR == 'cloud' else []))
