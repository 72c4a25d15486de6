#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Steady state: Debian's PREEMPT_RT kernel runs cyclictest under -realtime in the rtcheck build.
Over a window of several seconds EVENT and VCPU threads allocate nothing and take no page fault.
Allocations are trapped from the first instruction of the guest on, so the whole boot is a test too.
"""
import os
import re
import socket
import subprocess
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, initramfs, kernel, main, skip  # noqa: E402

BOOT = 240
SETTLE, WINDOW = 3, 6  # seconds


def need_realtime():
    if os.geteuid() or subprocess.run(['chrt', '-f', '50', 'true'], check=False,
                                      capture_output=True).returncode:
        skip('no SCHED_FIFO on this host')


class Hmp:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(path)
        self.until_prompt()

    def until_prompt(self):
        text = b''
        while not text.endswith(b'(qemu) '):
            data = self.sock.recv(4096)
            if not data:
                raise EOFError('the monitor ended')
            text += data
        return text.decode()

    def cmd(self, line):
        self.sock.sendall(line.encode() + b'\n')
        return self.until_prompt()


def allocations(hmp):
    text = hmp.cmd('info rtcheck')
    m = re.search(r'mode: (\w+)\s+allocations on EVENT and VCPU threads: (\d+)', text)
    assert m, f'info rtcheck: {text}'
    assert m.group(1) == 'trap', f'not armed: {text}'
    return int(m.group(2))


def faults(g):
    """(name, minor, major) of each EVENT and VCPU thread."""
    return {t['tid']: (t['name'], t['minflt'], t['majflt']) for t in g.threads()
            if t['tid'] == g.proc.pid or t['name'].startswith('CPU ')}


# Forks, files, copies and output in the guest.
GUEST_LOAD = ('(while :; do ls -lR /bin /dev; dd if=/dev/zero of=/tmp.img bs=64k count=64; done >/dev/null 2>&1) & '
              '(while :; do echo load; sleep 0.1; done) & ')
HOST_LOAD = 'end=$(($(date +%s) + 150)); while [ $(date +%s) -lt $end ]; do i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; done'


def steady(cpus, window=WINDOW, load=False):
    need_realtime()
    burners = [subprocess.Popen(['sh', '-c', HOST_LOAD]) for _ in range(2)] if load else []
    try:
        steady_guest(cpus, window, GUEST_LOAD if load else '')
    finally:
        for b in burners:
            b.kill()
            b.wait()


def steady_guest(cpus, window, load):
    path = f'/tmp/qrt-{os.getpid()}.sock'
    with Guest('-realtime', 'maxprio=50,policy=fifo', '-accel', 'tcg', '-smp', str(cpus), '-m', '512',
               '-kernel', kernel('rt'), '-initrd', initramfs(), '-append', 'console=ttyS0 quiet panic=-1',
               '-nographic', '-monitor', 'none', '-chardev',
               f'socket,id=m,path={path},server=on,wait=off',
               '-mon', 'chardev=m') as g:
        try:
            g.expect('qrt: ready', BOOT)
            hmp = Hmp(path)
            g.send(load + 'cyclictest -p 99 -m -q -S -i 1000 -l 100000000 & echo "started"\n')
            g.expect('qrt: done 0', 60)
            end = time.monotonic() + SETTLE
            while time.monotonic() < end:
                g.pump(0.1)
            before, allocs = faults(g), allocations(hmp)
            assert len(before) == 1 + cpus, before
            end = time.monotonic() + window
            while time.monotonic() < end:
                g.pump(0.1)
            after, allocs_after = faults(g), allocations(hmp)
            g.send('kill -INT $!; wait $!\n')
            m = g.expect(r'T: 0 .*C: *(\d+) ', 60)
            assert int(m.group(1)) > 1000, g.fail('cyclictest hardly ran')
            assert after == before, g.fail(f'page faults: before {before}, after {after}')
            assert allocs_after == allocs, g.fail(f'{allocs_after - allocs} allocations')
            g.send('poweroff -f\n')
            status = g.wait(60)
            assert status == 0, g.fail(f'exit status {status}')
        finally:
            if os.path.exists(path):
                os.unlink(path)


def one_cpu():
    steady(1)


def two_cpus():
    steady(2)


def a_minute_under_load():
    steady(1, window=60, load=True)


main(one_cpu, two_cpus, a_minute_under_load)
