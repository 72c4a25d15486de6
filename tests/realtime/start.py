#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What starting vCPUs costs: nothing that is not needed yet; under -realtime, all of it at once. Output: TAP."""
import contextlib
import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import BINARY, main, skip  # noqa: E402

REALTIME = ['-realtime', 'maxprio=50,policy=fifo']
MIB = 1024  # /proc counts in KiB


@contextlib.contextmanager
def machine(vcpus, *args):
    """The pid of a machine that is made and has not run."""
    d = tempfile.mkdtemp(prefix='qrt-')
    pid = 0
    try:
        done = subprocess.run([BINARY, '-m', '16', '-nodefaults', '-display', 'none', '-S', '-daemonize', '-smp',
                               str(vcpus), '-pidfile', f'{d}/pid', *(args or ['-accel', 'tcg'])], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              timeout=60)
        if done.returncode and '-realtime' in args:
            skip(done.stderr.strip().splitlines()[-1])
        assert done.returncode == 0, done.stderr
        with open(f'{d}/pid', encoding='ascii') as f:
            pid = int(f.read())
        yield pid
    finally:
        if pid:
            os.kill(pid, signal.SIGTERM)
            end = time.monotonic() + 20
            while os.path.exists(f'{d}/pid') and time.monotonic() < end:
                time.sleep(0.01)
        shutil.rmtree(d)


def status(pid, key):
    with open(f'/proc/{pid}/status', encoding='utf-8') as f:
        return int(re.search(rf'^{key}:\s+(\d+) kB', f.read(), re.M).group(1))


def cpu_seconds(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
        text = f.read()
    fields = text[text.rindex(')') + 2:].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def mappings(pid):
    """(name, permissions, {field: KiB}) of each."""
    with open(f'/proc/{pid}/smaps', encoding='utf-8') as f:
        text = f.read()
    result = []
    for part in re.split(r'^(?=[0-9a-f]+-[0-9a-f]+ )', text, flags=re.M)[1:]:
        head = part.splitlines()[0].split(None, 5)
        fields = {k: int(v) for k, v in re.findall(r'^(\w+):\s+(\d+) kB', part, re.M)}
        result.append((head[5] if len(head) > 5 else '', head[1], fields))
    return result


def idle_vcpus_cost_little():
    """A vCPU that has not run: its thread, no caches."""
    for model in ([], ['-cpu', 'max']):
        with machine(1, '-accel', 'tcg', *model) as pid:
            one = status(pid, 'VmRSS')
        with machine(65, '-accel', 'tcg', *model) as pid:
            many = status(pid, 'VmRSS')
        each = (many - one) / 64
        assert each < MIB, f'{model}: {each:.0f} KiB each'


def starting_many_is_quick():
    with machine(255, '-accel', 'tcg') as pid:
        assert status(pid, 'VmRSS') < 160 * MIB, status(pid, 'VmRSS')
        used = cpu_seconds(pid)
        assert used < 0.7, f'{used} s of CPU time for 255 vCPUs'


def realtime_touches_all():
    """Locked, and nothing of what a vCPU writes is left to a page fault."""
    for vcpus, model in ((1, []), (3, ['-cpu', 'max'])):
        with machine(vcpus, '-accel', 'tcg', *model, *REALTIME) as pid:
            maps = mappings(pid)
            code = [f for name, _, f in maps if 'translated-code' in name]
            assert len(code) == 2 * vcpus, len(code)
            for name, perms, f in maps:
                if f['Size'] < MIB or 'w' not in perms:
                    continue
                assert f['Rss'] == f['Size'] and f['Locked'] == f['Pss'], (name, perms, f)


PR_CAPBSET_DROP, CAP_IPC_LOCK = 24, 14


def may_lock_little():
    """In a child: what it locks is limited."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (MIB * 1024, MIB * 1024))


def need_is_foretold():
    """Where locking is limited, the need that is told before is about what is locked in the end."""
    if os.geteuid() != 0:
        skip('wants CAP_IPC_LOCK')
    for vcpus in (1, 4, 100):
        lock = ['-accel', 'tcg', '-overcommit', 'mem-lock=on']
        done = subprocess.run([BINARY, '-m', '16', '-nodefaults', '-display', 'none', '-smp', str(vcpus), *lock],
                              check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20,
                              preexec_fn=may_lock_little)
        told = re.search(r'RLIMIT_MEMLOCK is too small: (\d+) bytes are needed', done.stderr)
        assert done.returncode == 1 and told, done.stderr
        with machine(vcpus, *lock) as pid:
            locked = status(pid, 'VmLck') * 1024
        assert locked <= int(told.group(1)) < 1.2 * locked + 100 * 2**20, (vcpus, told.group(1), locked)


def cache_is_shared_among_vcpus():
    """tb-size is for all vCPUs together; without it, each of many gets less."""
    for vcpus, opts, mib in ((1, 'tcg', 40), (6, 'tcg', 40), (12, 'tcg', 20), (255, 'tcg', 2),
                             (1, 'tcg,tb-size=64', 64), (4, 'tcg,tb-size=64', 16), (64, 'tcg,tb-size=64', 2)):
        with machine(vcpus, '-accel', opts) as pid:
            sizes = [f['Size'] for name, perms, f in mappings(pid)
                     if 'translated-code' in name and 'w' in perms]
            # The kernel may show neighbours as one.
            assert sum(sizes) == vcpus * mib * MIB, (vcpus, opts, sizes)


if __name__ == '__main__':
    main(idle_vcpus_cost_little, starting_many_is_quick, realtime_touches_all, need_is_foretold,
         cache_is_shared_among_vcpus)
