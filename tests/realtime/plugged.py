#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What is told of the host for the CPUs that there are, also added ones: warnings, memory. No guest runs. Output: TAP."""
import ctypes
import os
import re
import resource
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import BINARY, Guest, main, skip  # noqa: E402

PLACES = ['-smp', '1,maxcpus=4,sockets=4']
HANG = r"warning: -realtime profile '{}': {} under policy=fifo: a guest whose CPUs wait for one another"
TURNS = r"warning: -realtime profile 'default': {} under policy=rr: they take turns"


def need_realtime():
    if os.geteuid() != 0 or subprocess.run(['chrt', '-f', '50', 'true'], check=False, capture_output=True).returncode:
        skip('no SCHED_FIFO on this host')


def machine(*args, cpus=None):
    """Never let go: under fifo it may have more vCPUs than the host has CPUs. cpus: of the host, it may use these."""
    prefix = ['taskset', '-c', cpus] if cpus else []
    accel = [] if '-accel' in args else ['-accel', 'tcg']
    return Guest(*accel, '-m', '16', '-display', 'none', '-nodefaults', '-S', *args, prefix=prefix, qmp=True)


def host_cpus():
    return sorted(os.sched_getaffinity(0))


def place(n, model='qemu64'):
    return {'driver': f'{model}-x86_64-cpu', 'id': f'c{n}', 'socket-id': n, 'core-id': 0, 'thread-id': 0}


def said(g):
    """What came on stderr since the last call."""
    g.qmp.cmd('query-status')
    while True:
        before = len(g.out)
        g.pump(0.2)
        if len(g.out) == before:
            break
    text = g.out[g.cursor:].decode()
    g.cursor = len(g.out)
    return text


def add(g, n, **more):
    g.qmp.cmd('device_add', **place(n, **more))
    return said(g)


def add_hmp(g, n):
    """(the command's output, what came on stderr)"""
    line = 'device_add ' + ','.join(v if k == 'driver' else f'{k}={v}' for k, v in place(n).items())
    return g.qmp.cmd('human-monitor-command', **{'command-line': line}), said(g)


def line(g, name):
    return next(l for l in g.qmp.cmd('query-realtime-host')['lines'] if l['name'] == name)


def expect(words, text):
    assert re.search(words, text), f'{words!r} is not in {text!r}'


def warned_when_there_are_too_many():
    """The start counts those that are there; each that is added counts then, in QMP and HMP."""
    need_realtime()
    for policy, words in (('fifo', HANG.replace('{}', 'default', 1)), ('rr', TURNS)):
        with machine('-realtime', f'maxprio=50,policy={policy}', *PLACES, cpus=str(host_cpus()[0])) as g:
            start = said(g)
            assert 'host CPUs under policy' not in start, start
            assert 'share' not in line(g, 'affinity')['found']
            expect(words.format('2 vCPUs share 1 host CPUs'), add(g, 1))
            expect(f'2 realtime vCPUs share 1 host CPUs under policy={policy}', line(g, 'affinity')['found'])
            assert line(g, 'affinity')['status'] == ('fail' if policy == 'fifo' else 'warn')
            out, err = add_hmp(g, 2)
            for text in (out, err):
                expect(words.format('3 vCPUs share 1 host CPUs'), text)


def warned_on_the_command_line():
    need_realtime()
    device = ','.join(v if k == 'driver' else f'{k}={v}' for k, v in place(1).items())
    with machine('-realtime', 'maxprio=50,policy=fifo', *PLACES, '-device', device, cpus=str(host_cpus()[0])) as g:
        expect(HANG.format('default', '2 vCPUs share 1 host CPUs'), said(g))


def pinned_ones_that_share():
    """It is the new one that is told of, in each profile that chooses it."""
    need_realtime()
    one, last = host_cpus()[0], host_cpus()[-1]
    if one == last:
        skip('one host CPU')
    with machine('-realtime', f'id=boot,maxprio=50,policy=fifo,vcpus=0-2,vcpu-affinity={one},{last},{one}',
                 '-realtime', f'id=run,maxprio=40,policy=fifo,vcpus=0-1,vcpu-affinity={one},{one}',
                 '-realtime', 'id=calm,policy=other', *PLACES) as g:
        assert 'share' not in said(g)
        text = add(g, 2)
        expect(HANG.format('boot', f'vCPUs 0 and 2 share host CPU {one}'), text)
        assert "'run': vCPUs" not in text and "'calm'" not in text, text
        text = add(g, 1)
        expect(HANG.format('run', f'vCPUs 0 and 1 share host CPU {one}'), text)
        assert "'boot': vCPUs" not in text, text
        assert 'share' not in add(g, 3)  # no profile chooses it


def nothing_is_said_where_there_is_room():
    need_realtime()
    for args in (['-realtime', 'maxprio=50,policy=fifo,vcpus=0'], ['-realtime', 'mlock=off'], []):
        with machine(*args, *PLACES, cpus=str(host_cpus()[0])) as g:
            said(g)
            assert add(g, 1) == '', args
            out, err = add_hmp(g, 2)
            assert (out, err) == ('', ''), (args, out, err)


MIB = 2**20
PR_CAPBSET_DROP, CAP_IPC_LOCK = 24, 14


def may_lock_little():
    """In a child: what it locks is limited."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (MIB, MIB))


def refusal_of(*args):
    """The bytes that the refusal says are needed."""
    done = subprocess.run([BINARY, '-m', '16', '-nodefaults', '-display', 'none', *args], check=False, timeout=60,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=may_lock_little)
    told = re.search(r'RLIMIT_MEMLOCK is too small: (\d+) bytes are needed', done.stderr)
    assert done.returncode == 1 and told, done.stderr
    return int(told.group(1))


def told_and_locked(g):
    told = re.search(r'at least (\d+) bytes', line(g, 'rlimit-memlock')['wanted'])
    with open(f'/proc/{g.proc.pid}/status', encoding='utf-8') as f:
        return int(told.group(1)), int(re.search(r'^VmLck:\s+(\d+) kB', f.read(), re.M).group(1)) * 1024


def spare_of(g):
    """What is told beyond what is locked: kept for monitors, devices and threads that come; as good as constant."""
    told, locked = told_and_locked(g)
    assert locked <= told <= locked + 80 * MIB, (told, locked)
    return told - locked


def need_is_what_is_locked():
    """By query-realtime-host and by the refusal; each vCPU to less than 1 MiB, whichever way it comes."""
    if os.geteuid() != 0:
        skip('wants CAP_IPC_LOCK')
    spares, pcid = {}, {}
    for model in ('qemu64', 'max', 'max,pcid=off', 'EPYC-Milan,check=off', 'Haswell,check=off'):
        for accel in ('tcg', 'tcg,tb-size=16', 'tcg,one-insn=on'):
            for smp in (1, 3):
                lock = ['-accel', accel, '-cpu', model, '-smp', str(smp), '-realtime', 'mlock=on']
                with machine(*lock) as g:
                    spares[model, accel, smp] = spare_of(g)
                    told = told_and_locked(g)[0]
                pcid[model, accel, smp] = told
                assert abs(refusal_of(*lock) - told) < MIB, (lock, refusal_of(*lock), told)
    least = min(spares.values())
    assert all(s - least < 4 * MIB for s in spares.values()), {k: f'{v / MIB:.2f}' for k, v in spares.items()}
    for smp in (1, 3):
        more = pcid['max', 'tcg', smp] - pcid['max,pcid=off', 'tcg', smp]
        assert 10 * MIB * smp < more < 12 * MIB * smp, more


def need_after_a_cpu_was_added():
    """Each counts with what it took, which is less when there are many; also one that -device adds."""
    if os.geteuid() != 0:
        skip('wants CAP_IPC_LOCK')
    for model, accel, smp in (('qemu64', 'tcg', 1), ('max', 'tcg', 1), ('qemu64', 'tcg,tb-size=64', 2),
                              ('qemu64', 'tcg', 7)):
        count = smp + 2
        lock = ['-accel', accel, '-cpu', model, '-smp', f'{smp},maxcpus={count},sockets={count}', '-realtime', 'mlock=on']
        with machine(*lock) as g:
            before, first = told_and_locked(g)[0], spare_of(g)
            for n in range(smp, count):
                add(g, n, model=model)
                assert abs(spare_of(g) - first) < 2 * MIB, (model, accel, n, spare_of(g), first)
            after = told_and_locked(g)[0]
            assert after > before + 4 * MIB, (before, after)
        device = ','.join(v if k == 'driver' else f'{k}={v}' for k, v in place(smp, model).items())
        with machine(*lock, '-device', device) as g:
            assert abs(spare_of(g) - first) < 2 * MIB, (spare_of(g), first)
            told, refused = told_and_locked(g)[0], refusal_of(*lock, '-device', device)
            assert abs(refused - told) < MIB, (lock, refused, told)


if __name__ == '__main__':
    main(need_is_what_is_locked, need_after_a_cpu_was_added, warned_when_there_are_too_many, warned_on_the_command_line, pinned_ones_that_share,
         nothing_is_said_where_there_is_room)
