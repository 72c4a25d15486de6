#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The emulator's threads under -realtime, as the kernel reports them. Output: TAP.

    threads.py EMULATOR
"""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

EMULATOR = sys.argv[1]
MACHINE = ['-m', '64', '-accel', 'tcg', '-nodefaults', '-display', 'none']
POLICIES = {0: 'other', 1: 'fifo', 2: 'rr'}


class Skip(Exception):
    pass


def need_realtime():
    done = subprocess.run(['chrt', '-f', '50', 'true'], check=False, capture_output=True)
    if os.geteuid() != 0 or done.returncode != 0:
        raise Skip('no SCHED_FIFO on this host')


def threads_of(pid):
    """[(name, policy, priority)]; the process's first thread is called 'main'."""
    result = []
    for tid in os.listdir(f'/proc/{pid}/task'):
        try:
            with open(f'/proc/{pid}/task/{tid}/stat', encoding='utf-8') as f:
                text = f.read()
        except OSError:
            continue
        name = text[text.index('(') + 1:text.rindex(')')]
        fields = text[text.rindex(')') + 2:].split()  # from field 3 on
        result.append(('main' if int(tid) == pid else name, POLICIES[int(fields[38])],
                       int(fields[37]), int(tid)))
    return result


def status_kib(pid, key):
    with open(f'/proc/{pid}/status', encoding='utf-8') as f:
        return next(int(l.split()[1]) for l in f if l.startswith(key + ':'))


class Emulator:
    """Runs in the background, stopped (-S), until the block ends."""

    def __init__(self, *options, wrapper=()):
        self.dir = tempfile.TemporaryDirectory()
        pidfile = f'{self.dir.name}/pid'
        self.qmp = f'{self.dir.name}/qmp'
        done = subprocess.run(
            [*wrapper, EMULATOR, *MACHINE, '-S', '-daemonize', '-pidfile', pidfile, '-qmp',
             f'unix:{self.qmp},server=on,wait=off', *options],
            check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.err, self.status = done.stderr, done.returncode
        self.pid = None
        if self.status == 0:
            with open(pidfile, encoding='ascii') as f:
                self.pid = int(f.read())

    def __enter__(self):
        if self.pid is None:
            raise AssertionError(f'status {self.status}: {self.err}')
        return self

    def __exit__(self, *unused):
        os.kill(self.pid, signal.SIGTERM)
        for _ in range(500):
            if not os.path.exists(f'{self.dir.name}/pid'):
                break
            time.sleep(0.02)
        else:
            os.kill(self.pid, signal.SIGKILL)
        self.dir.cleanup()

    def command(self, name, /, **arguments):
        """What the command returned; QMP's capabilities are negotiated first."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(self.qmp)
            f = s.makefile('rw', encoding='utf-8', newline='\r\n')
            f.readline()
            for c in ({'execute': 'qmp_capabilities'}, {'execute': name, 'arguments': arguments}):
                f.write(json.dumps(c) + '\r\n')
                f.flush()
                while 'return' not in (reply := json.loads(f.readline())):
                    if 'error' in reply:
                        raise AssertionError(reply)
            return reply['return']


def check_classes(pid, main, vcpu, cpus):
    end = time.monotonic() + 10
    threads = threads_of(pid)
    while not any(t[0] == 'control' for t in threads) and time.monotonic() < end:
        time.sleep(0.02)  # it is the last to come, after the command has returned
        threads = threads_of(pid)
    vcpus = [t for t in threads if t[0].startswith('CPU ')]
    if sorted(t[0] for t in vcpus) != [f'CPU {i}/TCG' for i in range(cpus)]:
        raise AssertionError(f'vCPU threads: {threads}')
    for name, policy, priority, _ in threads:
        want = main if name == 'main' else vcpu if name.startswith('CPU ') else ('other', 0)
        if (policy, priority) != want:
            raise AssertionError(f'{name}: {policy} {priority}, not {want}; all: {threads}')
    if not any(t[0] == 'control' for t in threads):
        raise AssertionError(f'no control thread: {threads}')


def test_fifo():
    need_realtime()
    with Emulator('-realtime', 'maxprio=50,policy=fifo', '-smp', '2') as e:
        check_classes(e.pid, ('fifo', 50), ('fifo', 49), 2)
        locked, size = status_kib(e.pid, 'VmLck'), status_kib(e.pid, 'VmSize')
        if locked < 0.97 * size:
            raise AssertionError(f'locked {locked} of {size} KiB')


def test_running():
    need_realtime()
    with Emulator('-realtime', 'maxprio=30', '-smp', '2', '-d', 'int', '-D', '/dev/null') as e:
        e.command('cont')
        time.sleep(0.5)
        check_classes(e.pid, ('rr', 30), ('rr', 29), 2)


def check_iothreads(e, want, ids):
    """Each is a thread of the profile in force, and the one that query-iothreads names."""
    known = {i['thread-id']: i['id'] for i in e.command('query-iothreads')}
    found = {known.get(tid): (name, (policy, priority)) for name, policy, priority, tid in threads_of(e.pid)
             if name.startswith('IO ')}
    if found != {i: (f'IO {i}', want) for i in ids}:
        raise AssertionError(f'{found}, not {ids} with {want}')


def test_iothreads():
    """Made at the start, while it runs, and in a profile switched to; libvirt gives JSON."""
    need_realtime()
    made = ['-object', 'iothread,id=a', '-object', '{"qom-type":"iothread","id":"b","poll-max-ns":0}']
    with Emulator('-realtime', 'maxprio=50,policy=fifo', '-realtime', 'id=calm,policy=other', *made) as e:
        check_iothreads(e, ('fifo', 50), ['a', 'b'])
        e.command('object-add', **{'qom-type': 'iothread', 'id': 'c'})
        check_iothreads(e, ('fifo', 50), ['a', 'b', 'c'])
        e.command('realtime-set-profile', name='calm')
        e.command('object-del', id='a')
        e.command('object-add', **{'qom-type': 'iothread', 'id': 'd'})
        check_iothreads(e, ('other', 0), ['b', 'c', 'd'])
        if [i['poll-max-ns'] for i in e.command('query-iothreads')] != [0, 32768, 32768]:
            raise AssertionError('poll-max-ns')
        for bad in ({'id': 'b'}, {'id': 'e', 'poll-grow': -1}, {'id': 'e', 'thread-pool-min': 65}):
            try:
                e.command('object-add', **{'qom-type': 'iothread', **bad})
            except AssertionError as refused:
                if not any(part in str(refused) for part in ("'b' already", "'-1'", '65 is more')):
                    raise
            else:
                raise AssertionError(f'{bad} was taken')
        check_iothreads(e, ('other', 0), ['b', 'c', 'd'])


PLUG = ['-smp', '1,maxcpus=3,sockets=3']


def plug(e, n, **more):
    e.command('device_add', driver='qemu64-x86_64-cpu', **{'socket-id': n, 'core-id': 0, 'thread-id': 0}, **more)


def affinity_of(e, cpu):
    tid = next(t[3] for t in threads_of(e.pid) if t[0] == f'CPU {cpu}/TCG')
    return os.sched_getaffinity(tid)


def test_plugged_vcpus():
    """In the profile in force, on the host CPU of their number, and with all they need in locked memory."""
    need_realtime()
    host = sorted(os.sched_getaffinity(0))
    lists = [host[0], host[-1]]  # of those that the profile chooses
    with Emulator('-realtime', f"maxprio=50,policy=fifo,vcpus=^1,vcpu-affinity={','.join(map(str, lists))}", *PLUG) as e:
        plug(e, 2)
        threads = {t[0]: t[1:3] for t in threads_of(e.pid)}
        if threads['CPU 2/TCG'] != ('fifo', 49) or affinity_of(e, 2) != {lists[1]}:
            raise AssertionError(f'{threads} {affinity_of(e, 2)}')
        plug(e, 1)   # one that this profile does not choose
        threads = {t[0]: t[1:3] for t in threads_of(e.pid)}
        if threads['CPU 1/TCG'] != ('other', 0):
            raise AssertionError(f'{threads}')
        locked, size = status_kib(e.pid, 'VmLck'), status_kib(e.pid, 'VmSize')
        if locked < 0.97 * size:
            raise AssertionError(f'locked {locked} of {size} KiB')
        with open(f'/proc/{e.pid}/smaps_rollup', encoding='utf-8') as f:
            rss = next(int(l.split()[1]) for l in f if l.startswith('Rss:'))
        if rss < 0.97 * (size - 40 * 1024):  # what the C library keeps aside for threads is no memory
            raise AssertionError(f'{rss} of {size} KiB are there')


def refuse_plug(e, n, limit, lifted, words):
    """The host does: one error each time, nothing is left of it; later the same request succeeds."""
    count, size = len(e.command('query-cpus-fast')), status_kib(e.pid, 'VmSize')
    before = len(threads_of(e.pid))
    subprocess.run(['prlimit', limit, '--pid', str(e.pid)], check=True)
    for _ in range(3):
        try:
            plug(e, n)
        except AssertionError as refused:
            if 'GenericError' not in str(refused) or words not in str(refused):
                raise
        else:
            raise AssertionError(f'{limit}: it was taken')
    subprocess.run(['prlimit', lifted, '--pid', str(e.pid)], check=True)
    if len(threads_of(e.pid)) != before or len(e.command('query-cpus-fast')) != count:
        raise AssertionError(f'{threads_of(e.pid)}')
    if status_kib(e.pid, 'VmSize') > size + 2048:  # what the C library keeps of a thread
        raise AssertionError(f"{status_kib(e.pid, 'VmSize')} KiB, {size} before")
    plug(e, n)


def test_plugged_vcpu_without_memory():
    need_realtime()
    with Emulator('-realtime', 'maxprio=50,policy=fifo', *PLUG) as e:
        plug(e, 1)
        refuse_plug(e, 2, f"--as={(status_kib(e.pid, 'VmSize') + 8192) * 1024}:", '--as=unlimited:', 'cannot ')
        check_classes(e.pid, ('fifo', 50), ('fifo', 49), 3)


def test_plugged_vcpu_without_priority():
    need_realtime()
    wrapper = ['prlimit', '--rtprio=60:60', 'setpriv', '--bounding-set=-sys_nice', '--inh-caps=-sys_nice']
    if subprocess.run([*wrapper, 'true'], check=False, capture_output=True).returncode != 0:
        raise Skip('RLIMIT_RTPRIO cannot be raised here')
    with Emulator('-realtime', 'maxprio=50,policy=fifo', *PLUG, wrapper=wrapper) as e:
        plug(e, 1)
        refuse_plug(e, 2, '--rtprio=30:60', '--rtprio=60:60', 'the host refused policy SCHED_FIFO, priority 49')
        check_classes(e.pid, ('fifo', 50), ('fifo', 49), 3)


def test_without():
    with Emulator('-smp', '2') as e:
        check_classes(e.pid, ('other', 0), ('other', 0), 2)
        if status_kib(e.pid, 'VmLck') != 0:
            raise AssertionError('memory is locked')


def test_lock_alone():
    need_realtime()
    for option in (['-realtime', 'mlock=on'], ['-overcommit', 'mem-lock=on'], ['-realtime']):
        with Emulator(*option) as e:
            check_classes(e.pid, ('other', 0), ('other', 0), 1)
            if status_kib(e.pid, 'VmLck') < 64 * 1024:
                raise AssertionError('memory is not locked')


def test_policy_from_outside():
    """A manager raises threads itself, while stopped; `cont` does not undo it."""
    need_realtime()
    with Emulator('-smp', '1') as e:
        tid = next(t[3] for t in threads_of(e.pid) if t[0] == 'CPU 0/TCG')
        subprocess.run(['chrt', '-r', '-p', '7', str(tid)], check=True)
        e.command('cont')
        time.sleep(0.3)
        check_classes(e.pid, ('other', 0), ('rr', 7), 1)


def mergeable_kib(pid):
    """What the host may merge (KSM): mappings with the flag mg."""
    with open(f'/proc/{pid}/smaps', encoding='utf-8') as f:
        maps = re.split(r'^(?=[0-9a-f]+-[0-9a-f]+ )', f.read(), flags=re.M)[1:]
    return sum(int(re.search(r'^Size:\s+(\d+) kB', m, re.M)[1]) for m in maps if re.search(r'^VmFlags:.* mg\b', m, re.M))


def test_locked_memory_is_not_merged():
    """Whoever asked for it: the machine, a memory back end, or the parent for all its children."""
    need_realtime()
    if not os.path.exists('/sys/kernel/mm/ksm/run'):
        raise Skip('no KSM on this host')
    backend = ['-object', 'memory-backend-ram,id=m,size=64M,merge=on', '-machine', 'memory-backend=m']
    for ask in (['-machine', 'mem-merge=on'], backend, ['-machine', 'none,mem-merge=on']):
        with Emulator(*ask) as e:
            if not 65536 <= mergeable_kib(e.pid) < 70000:
                raise AssertionError(f'{ask}: {mergeable_kib(e.pid)} KiB may be merged')
        for lock in (['-realtime', 'maxprio=5'], ['-overcommit', 'mem-lock=on-fault']):
            with Emulator(*ask, *lock) as e:
                if mergeable_kib(e.pid) or 'merge=on has no effect' not in e.err:
                    raise AssertionError(f'{ask} {lock}: {mergeable_kib(e.pid)} KiB may be merged; {e.err}')
    with Emulator() as e:
        if mergeable_kib(e.pid):
            raise AssertionError('merged without having been asked')


PR_SET_MEMORY_MERGE = 67
MERGE_ALL = ['python3', '-c', 'import ctypes, os, sys\n'
             f'ctypes.CDLL(None).prctl({PR_SET_MEMORY_MERGE}, 1, 0, 0, 0)\nos.execvp(sys.argv[1], sys.argv[1:])']


def test_merging_of_the_whole_process_ends():
    need_realtime()
    with Emulator(wrapper=MERGE_ALL) as e:
        if not mergeable_kib(e.pid):
            raise Skip('this kernel does not hand that down to other programs')
    with Emulator('-realtime', 'maxprio=5', wrapper=MERGE_ALL) as e:
        if mergeable_kib(e.pid):
            raise AssertionError(f'{mergeable_kib(e.pid)} KiB may be merged')


def test_started_under_chrt():
    need_realtime()
    with Emulator(wrapper=['chrt', '-f', '3']) as e:
        check_classes(e.pid, ('fifo', 3), ('fifo', 3), 1)


def test_refused_leaves_nothing():
    with tempfile.TemporaryDirectory() as d:
        for options in (['-realtime', 'maxprio=100'], ['-realtime', 'maxprio=50', '-m', '900G']):
            done = subprocess.run(
                [EMULATOR, *MACHINE, '-daemonize', '-pidfile', f'{d}/pid', '-qmp',
                 f'unix:{d}/qmp,server=on,wait=off', *options],
                check=False, capture_output=True, text=True, timeout=60)
            errors = [l for l in done.stderr.splitlines() if 'warning:' not in l]
            if done.returncode != 1 or len(errors) != 1 or os.listdir(d):
                raise AssertionError(f'{done.returncode} {done.stderr} {os.listdir(d)}')


def main():
    tests = [(name[5:].replace('_', '-'), fn) for name, fn in globals().items()
             if name.startswith('test_')]
    print(f'1..{len(tests)}')
    failed = 0
    for i, (name, fn) in enumerate(tests, 1):
        try:
            fn()
            print(f'ok {i} {name}')
        except Skip as e:
            print(f'ok {i} {name} # SKIP {e}')
        except (AssertionError, subprocess.SubprocessError, OSError) as e:
            failed += 1
            print(f'not ok {i} {name}\n# ' + str(e).replace('\n', '\n# '))
        sys.stdout.flush()
    return failed != 0


if __name__ == '__main__':
    sys.exit(main())
