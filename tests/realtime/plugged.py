#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs that are added under -realtime: what is told of the host then. No guest runs. Output: TAP."""
import os
import re
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, main, skip  # noqa: E402

PLACES = ['-smp', '1,maxcpus=4,sockets=4']
HANG = r"warning: -realtime profile '{}': {} under policy=fifo: a guest whose CPUs wait for one another"
TURNS = r"warning: -realtime profile 'default': {} under policy=rr: they take turns"


def need_realtime():
    if os.geteuid() != 0 or subprocess.run(['chrt', '-f', '50', 'true'], check=False, capture_output=True).returncode:
        skip('no SCHED_FIFO on this host')


def machine(*args, cpus=None, memory='16'):
    """Never let go: under fifo it may have more vCPUs than the host has CPUs. cpus: of the host, it may use these."""
    prefix = ['taskset', '-c', cpus] if cpus else []
    return Guest('-accel', 'tcg', '-m', memory, '-display', 'none', '-nodefaults', '-S', *args, prefix=prefix, qmp=True)


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


if __name__ == '__main__':
    main(warned_when_there_are_too_many, warned_on_the_command_line, pinned_ones_that_share,
         nothing_is_said_where_there_is_room)
