#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A host that gives little: closed standard descriptors, full file systems, limits of the process."""
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import BINARY, Qmp, main  # noqa: E402

BASE = ('-accel', 'tcg', '-nodefaults', '-display', 'none', '-S')
KERNEL = os.path.join(os.path.dirname(BINARY), 'tests/guest/lines.flat')


class Dir:
    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix='qrt-host-')
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.path, ignore_errors=True)

    def __call__(self, name):
        return os.path.join(self.path, name)


def limited(which, value):
    return lambda: resource.setrlimit(which, (value, value))


def refused(args, *words, leaves=None, **kw):
    """Status 1, one line with the words, and nothing in the directory it is told of."""
    r = subprocess.run([BINARY, *BASE, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                       **kw)
    text = f'{args}: status {r.returncode}: {r.stderr[-2000:]}'
    assert r.returncode == 1 and r.stderr.count('\n') == 1, text
    assert all(w in r.stderr for w in words), (words, text)
    assert leaves is None or not os.listdir(leaves), os.listdir(leaves)


# ---- Closed standard descriptors ----

def start_without(closed, args):
    pid = os.fork()
    if pid == 0:
        null = os.open('/dev/null', os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.closerange(3, 100)
        for fd in closed:
            os.close(fd)
        os.execv(BINARY, [BINARY, *args])
    return pid


def no_file_becomes_a_standard_stream():
    for closed in ((0,), (1,), (2,), (1, 2), (0, 1, 2)):
        with Dir() as d:
            pid = start_without(closed, [
                *BASE[:-1], '-m', '64', '-kernel', KERNEL, '-serial', 'stdio', '-pidfile', d('pid'), '-chardev',
                f'file,id=f,path={d("file")}', '-D', d('log'), '-d', 'guest_errors', '-qmp',
                f'unix:{d("qmp")},server=on,wait=off', '-name', 'x', '-fw_cfg', 'name=x,string=warns'])
            try:
                q = Qmp(d('qmp')).negotiate()
                time.sleep(0.3)
                for fd in (0, 1, 2):
                    assert os.readlink(f'/proc/{pid}/fd/{fd}') == '/dev/null', (closed, fd)
                with open(d('pid'), encoding='utf-8') as f:
                    assert f.read() == f'{pid}\n', closed
                assert os.path.getsize(d('file')) == 0 and os.path.getsize(d('log')) == 0, closed
                q.cmd('query-status')  # no guest output in between
                q.cmd('quit')
            finally:
                for _ in range(100):
                    if os.waitpid(pid, os.WNOHANG)[0]:
                        break
                    time.sleep(0.1)
                else:
                    os.kill(pid, 9)
                    raise AssertionError(f'{closed}: did not end')


# ---- Limits of the process ----

def what_the_host_cannot_hold_is_named():
    with Dir() as d:
        with open(d('big'), 'wb') as f:
            f.truncate(700 << 20)
        limit = limited(resource.RLIMIT_AS, 1200 << 20)
        refused(['-m', '800', '-kernel', d('big')], f"-kernel '{d('big')}'", '734003200 bytes', 'ulimit -v',
                preexec_fn=limit)
        refused(['-m', '800', '-kernel', KERNEL, '-initrd', d('big')], f"-initrd '{d('big')}'", '734003200 bytes',
                'ulimit -v', preexec_fn=limit)
        # Below what one CPU's code takes, above what the rest of the start does.
        refused(['-m', '16', '-smp', '8', '-accel', 'tcg,tb-size=64'], 'ulimit -v', '-smp', 'code',
                preexec_fn=limited(resource.RLIMIT_AS, 700 << 20))
        refused(['-m', '16', '-accel', 'tcg,tb-size=64'], 'tb-size', 'ulimit -f', 'translated code',
                preexec_fn=limited(resource.RLIMIT_FSIZE, 1 << 20))


main(no_file_becomes_a_standard_stream, what_the_host_cannot_hold_is_named)
