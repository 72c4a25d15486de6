#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs that are added, and removed, while a Debian kernel runs."""
import os
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, initramfs, kernel, main, skip  # noqa: E402

BOOT = 180
BAD = ('BUG:', 'WARNING:', 'ACPI Error', 'ACPI BIOS Error', 'Call Trace', 'soft lockup', 'unchecked MSR',
       'APIC error', 'Marking TSC unstable', 'TSC warped')


def guest(*args, flavour='cloud', append=''):
    return Guest('-accel', 'tcg', '-m', '512', '-kernel', kernel(flavour), '-initrd', initramfs(), '-append',
                 f'console=ttyS0 panic=-1 {append}', '-nographic', '-monitor', 'none', *args, qmp=True)


def need_realtime():
    done = subprocess.run(['chrt', '-f', '50', 'true'], check=False, capture_output=True)
    if os.geteuid() != 0 or done.returncode != 0:
        skip('no SCHED_FIFO on this host')


def add(g, cpu, **more):
    """To the place of that number, as a client finds it."""
    place = g.qmp.cmd('query-hotpluggable-cpus')[-1 - cpu]
    assert 'qom-path' not in place, place
    g.qmp.cmd('device_add', driver=place['type'], **place['props'], **more)
    assert 'qom-path' in g.qmp.cmd('query-hotpluggable-cpus')[-1 - cpu]


def bring_online(g, cpu):
    """The guest was told, and runs something there."""
    sys_cpu = f'/sys/devices/system/cpu/cpu{cpu}'
    status, out = g.run(f'dmesg -n 1; n=0; until [ -e {sys_cpu}/online ] || [ $n = 300 ]; do sleep .1; n=$((n+1)); done; '
                        f'echo 1 > {sys_cpu}/online; cat {sys_cpu}/online; '
                        f'taskset -c {cpu} sh -c "cut -d\\" \\" -f39 /proc/self/stat; '
                        'i=0; while [ \\$i -lt 20000 ]; do i=\\$((i+1)); done; echo on \\$i"', 120)
    if status or f'\n1\r\n{cpu}\r\non 20000' not in out:
        g.fail(f'CPU {cpu} is not in use: {status} {out!r}')


def vcpus(g):
    return {t['name']: (t['policy'], t['prio']) for t in g.threads() if t['name'].startswith('CPU ')}


def check_vcpus(g, want, count):
    expected = {f'CPU {i}/TCG': want for i in range(count)}
    assert vcpus(g) == expected, vcpus(g)


def end(g):
    g.send('poweroff -f\n')
    status = g.wait(60)
    assert status == 0, g.fail(f'exit status {status}')
    for bad in BAD:
        if bad in g.text():
            g.fail(f'the guest printed "{bad}"')


def shows_everywhere(g, cpu, path):
    """What tells of vCPUs tells of this one."""
    info = [i for i in g.qmp.cmd('query-cpus-fast') if i['cpu-index'] == cpu]
    assert len(info) == 1 and info[0]['qom-path'] == path, info
    threads = [t for t in g.qmp.cmd('query-realtime')['threads'] if t.get('cpu-index') == cpu]
    assert len(threads) == 1 and threads[0]['thread-id'] == info[0]['thread-id'], threads
    assert threads[0]['class'] == 'vcpu' and not threads[0]['changed'], threads
    latency = [t for t in g.qmp.cmd('query-realtime-latency')['threads'] if t.get('cpu-index') == cpu]
    assert len(latency) == 1 and latency[0]['name'] == f'CPU {cpu}/TCG', latency
    assert cpu in [j['cpu-index'] for j in g.qmp.cmd('query-jit')]
    assert g.qmp.cmd('qom-get', path=path, property='core-id') == cpu
    text = g.qmp.cmd('human-monitor-command', **{'command-line': 'info cpus'})
    assert f"CPU #{cpu}: thread_id={info[0]['thread-id']}" in text, text


def added_in_the_profile_in_force():
    """One in each profile; a reset finds them all in the tables."""
    need_realtime()
    with guest('-smp', '1,maxcpus=3', '-realtime', 'id=run,maxprio=50,policy=fifo', '-realtime',
               'id=calm,policy=other') as g:
        m = g.expect(r'qrt: init reached, (\d+) CPUs', BOOT)
        assert int(m.group(1)) == 1
        g.expect('qrt: ready', BOOT)
        g.send('(while :; do :; done) & echo busy\n')  # the first vCPU has work all the time
        g.expect('qrt: done 0', 60)
        add(g, 1, id='second')
        check_vcpus(g, ('fifo', 49), 2)
        shows_everywhere(g, 1, '/machine/peripheral/second')
        bring_online(g, 1)
        g.qmp.cmd('realtime-set-profile', name='calm')
        add(g, 2)
        check_vcpus(g, ('other', 0), 3)
        shows_everywhere(g, 2, '/machine/peripheral-anon/device[0]')
        bring_online(g, 2)
        g.qmp.cmd('realtime-set-profile', name='run')
        check_vcpus(g, ('fifo', 49), 3)
        g.qmp.cmd('realtime-set-profile', name='calm')  # the host may have fewer CPUs
        locked, size = g.status('VmLck'), g.status('VmSize')
        assert locked > 0.97 * size, f'locked {locked} of {size} KiB'
        for _ in range(2):
            g.qmp.cmd('system_reset')
            m = g.expect(r'qrt: init reached, (\d+) CPUs', BOOT)
            assert int(m.group(1)) == 3, g.fail(f'{m.group(1)} CPUs')
            g.expect('qrt: ready', BOOT)
        end(g)


def reported(g, source):
    """What the guest says next of a CPU that came (1) or is to go (3)."""
    while True:
        info = g.qmp.event('ACPI_DEVICE_OST')['data']['info']
        if info['source'] == source:
            return info


def remove(g, name, path):
    named = {} if name == path else {'device': name}
    assert reported(g, 1) == {**named, 'slot': '1', 'slot-type': 'CPU', 'source': 1, 'status': 0}
    g.qmp.cmd('device_del', id=name)
    info = reported(g, 3)
    assert {**info, 'status': 0} == {**named, 'slot': '1', 'slot-type': 'CPU', 'source': 3, 'status': 0}, info
    data = g.qmp.event('DEVICE_DELETED')['data']
    assert data.get('device', path) == name and data['path'] == path, data


def removed_and_added_again():
    """Thread and memory go; the place takes another; a reset does not find what has gone."""
    need_realtime()
    with guest('-smp', '1,maxcpus=3', '-realtime', 'maxprio=50,policy=rr', '-m', '256') as g:
        g.expect('qrt: ready', BOOT)
        threads, locked = len(g.threads()), g.status('VmLck')
        sizes = []
        for name in ('a', None, 'a'):
            add(g, 1, **({'id': name} if name else {}))
            path = g.qmp.cmd('query-cpus-fast')[-1]['qom-path']
            bring_online(g, 1)
            g.send('taskset -c 1 sh -c "while :; do :; done" & echo busy\n')  # it goes for all that
            g.expect('qrt: done 0', 60)
            remove(g, name or path, path)
            assert len(g.threads()) == threads, g.threads()
            assert [c['cpu-index'] for c in g.qmp.cmd('query-cpus-fast')] == [0]
            sizes.append(g.status('VmLck'))
            status, out = g.run('kill %1 $!; cat /sys/devices/system/cpu/present')
            assert '\n0\r' in out, out
        assert sizes[-1] - sizes[0] < 512 and sizes[0] - locked < 4096, (locked, sizes)
        check_vcpus(g, ('rr', 49), 1)
        add(g, 1)
        bring_online(g, 1)
        g.qmp.cmd('device_del', id='/machine/peripheral-anon/device[1]')
        g.qmp.event('DEVICE_DELETED')
        add(g, 1)
        g.qmp.cmd('system_reset')
        m = g.expect(r'qrt: init reached, (\d+) CPUs', BOOT)
        assert int(m.group(1)) == 2, g.fail(f'{m.group(1)} CPUs')
        g.expect('qrt: ready', BOOT)
        end(g)


def removed_by_the_guest():
    """It may give one back without having been asked; not one of -smp's."""
    with guest('-smp', '1,maxcpus=3', '-device', 'qemu64-x86_64-cpu,socket-id=0,core-id=1,thread-id=0,id=c') as g:
        m = g.expect(r'qrt: init reached, (\d+) CPUs', BOOT)
        assert int(m.group(1)) == 2, g.fail(f'{m.group(1)} CPUs')
        g.expect('qrt: ready', BOOT)
        g.qmp.cmd('query-status')
        status, out = g.run('for d in /sys/bus/acpi/devices/ACPI0007:*; do [ -e $d/eject ] && [ $(cat $d/uid) = 1 ] '
                            '&& echo 1 > $d/eject; done; for d in /sys/bus/acpi/devices/ACPI0007:*; do '
                            '[ -e $d/eject ] && [ $(cat $d/uid) = 0 ] && echo first; done')
        assert g.qmp.event('DEVICE_DELETED')['data'] == {'device': 'c', 'path': '/machine/peripheral/c'}
        assert 'first' not in out, out
        end(g)


def added_while_paused():
    with guest('-smp', '1,maxcpus=2') as g:
        g.expect('qrt: ready', BOOT)
        g.qmp.cmd('stop')
        add(g, 1, id='c')
        assert g.qmp.cmd('query-status')['status'] == 'paused'
        g.qmp.cmd('cont')
        bring_online(g, 1)
        end(g)


def added_before_the_start():
    """The kernel finds it like one of -smp's; so it does one of -device's."""
    with guest('-smp', '1,maxcpus=3', '-device', 'qemu64-x86_64-cpu,socket-id=0,core-id=2,thread-id=0', '-S') as g:
        add(g, 1)
        g.qmp.cmd('cont')
        m = g.expect(r'qrt: init reached, (\d+) CPUs', BOOT)
        assert int(m.group(1)) == 3, g.fail(f'{m.group(1)} CPUs')
        g.expect('qrt: ready', BOOT)
        end(g)


def added_while_suspended():
    with guest('-smp', '1,maxcpus=3', flavour='generic', append='no_console_suspend') as g:
        g.expect('qrt: ready', BOOT)
        add(g, 1)
        bring_online(g, 1)
        g.send('echo mem > /sys/power/state\n')
        g.qmp.event('SUSPEND')
        add(g, 2)
        g.qmp.cmd('system_wakeup')
        g.qmp.event('WAKEUP')
        g.expect(r'qrt: done 0\s', 120)
        bring_online(g, 2)
        bring_online(g, 1)
        end(g)


main(added_in_the_profile_in_force, removed_and_added_again, removed_by_the_guest, added_while_paused,
     added_before_the_start, added_while_suspended)
