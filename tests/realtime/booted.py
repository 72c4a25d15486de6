#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts/demo shows, as a test: Debian's PREEMPT_RT kernel runs cyclictest under -realtime, and
the host's kernel is asked for the policy and priority of every thread, and what memory is locked.
"""
import os
import re
import subprocess
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, initramfs, kernel, main, skip  # noqa: E402

BOOT = 180


def need_realtime():
    if os.geteuid() or subprocess.run(['chrt', '-f', '50', 'true'], check=False,
                                      capture_output=True).returncode:
        skip('no SCHED_FIFO on this host')


def check_threads(g, policy, maxprio, cpus):
    threads = g.threads()
    vcpus = [t['name'] for t in threads if t['name'].startswith('CPU ')]
    assert sorted(vcpus) == [f'CPU {i}/TCG' for i in range(cpus)], threads
    assert any(t['name'] == 'control' for t in threads), threads
    for t in threads:
        want = ((policy, maxprio) if t['tid'] == g.proc.pid else
                (policy, maxprio - 1) if t['name'].startswith('CPU ') else ('other', 0))
        assert (t['policy'], t['prio']) == want, f'{t}, not {want}; all: {threads}'


def mappings(pid):
    """(name, KiB, flags) of each mapping of a process."""
    out, name, size = [], '', 0
    with open(f'/proc/{pid}/smaps', encoding='utf-8') as f:
        for line in f:
            if re.match(r'[0-9a-f]+-[0-9a-f]+ ', line):
                name = line.split(None, 5)[5].strip() if len(line.split()) > 5 else ''
            elif line.startswith('Size:'):
                size = int(line.split()[1])
            elif line.startswith('VmFlags:'):
                out.append((name, size, line.split()[1:]))
    return out


def check_memory(g, ram_kib):
    """Everything is locked but what mlockall(2) passes over: the kernel's own pages."""
    maps = mappings(g.proc.pid)
    loose = [m for m in maps if 'lo' not in m[2]]
    for name, size, flags in loose:
        assert re.match(r'\[(vvar|vdso|vsyscall|vvar_vclock)\]', name) or {'io', 'pf'} & set(flags), \
            f'{name or "anonymous memory"} of {size} KiB is not locked: {flags}'
    # [vsyscall] lies outside of what VmSize counts.
    other = sum(size for name, size, _ in loose if name != '[vsyscall]')
    assert g.status('VmLck') == g.status('VmSize') - other, \
        f"VmLck {g.status('VmLck')}, VmSize {g.status('VmSize')}, cannot be locked: {other}"
    assert g.status('VmRSS') > ram_kib, 'guest RAM is not there'


def guest(realtime, policy, maxprio, cpus):
    need_realtime()
    with Guest('-realtime', realtime, '-accel', 'tcg', '-m', '512', '-smp', str(cpus), '-kernel',
               kernel('rt'), '-initrd', initramfs(), '-append', 'console=ttyS0 quiet panic=-1',
               '-nographic', '-no-reboot') as g:
        g.expect('qrt: ready', BOOT)
        g.send('cyclictest -p 99 -m -q -S -i 1000 -l 100000000 & echo started\n')
        g.expect('qrt: done 0', 60)
        time.sleep(1)
        check_threads(g, policy, maxprio, cpus)
        check_memory(g, 512 * 1024)
        g.send('kill -INT $!; wait\n')
        m = g.expect(r'T: 0 .*C: *(\d+) ', 60)
        assert int(m.group(1)) > 100, g.fail('cyclictest hardly ran')
        check_threads(g, policy, maxprio, cpus)
        g.send('poweroff -f\n')
        status = g.wait(60)
        assert status == 0, g.fail(f'exit status {status}')


def fifo():
    guest('maxprio=50,policy=fifo', 'fifo', 50, 1)


def rr_when_absent():
    guest('maxprio=50', 'rr', 50, 2)


main(fifo, rr_when_absent)
