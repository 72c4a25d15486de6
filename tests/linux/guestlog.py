# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest's log must not say: that the machine is not as it should be, or stood still."""
BAD = ('BUG:', 'WARNING:', 'Oops', 'ACPI Error', 'ACPI BIOS Error', 'Call Trace', 'soft lockup', 'hard LOCKUP',
       'unchecked MSR', 'MP-BIOS bug', 'APIC error', 'self-detected', 'detected stalls', 'blocked for more than',
       "timer doesn't work", 'Marking TSC unstable', 'Marking clocksource', 'TSC warp', 'deviates from',
       'TSC ADJUST', 'could not calculate TSC', 'segfault at', 'general protection', 'trap invalid opcode')


def look_at_log(g):
    for bad in BAD:
        if bad in g.text():
            line = next(x for x in g.text().splitlines() if bad in x)
            g.fail(f'the guest printed: {line.strip()}')
