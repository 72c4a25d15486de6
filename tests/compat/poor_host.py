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
from guest import BINARY, Guest, Qmp, main, skip  # noqa: E402

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
        refused(['-m', '16', '-chardev', 'ringbuf,id=r,size=1G'], '-chardev', 'size=1073741824', 'ulimit -v',
                preexec_fn=limited(resource.RLIMIT_AS, 1000 << 20))
        refused(['-m', '16', '-accel', 'tcg,tb-size=64'], 'tb-size', 'ulimit -f', 'translated code',
                preexec_fn=limited(resource.RLIMIT_FSIZE, 1 << 20))


def whichever_part_of_a_cpu_finds_no_room_is_named():
    """One message foretells it; near the limit CPUs that are made side by side meet it, one or another."""
    refusals = 0
    for mib in range(60, 560, 10):
        r = subprocess.run([BINARY, *BASE[2:], '-m', '16', '-smp', '8', '-accel', 'tcg,tb-size=64', '-qmp', 'stdio'],
                           input='{"execute":"qmp_capabilities"}{"execute":"quit"}', capture_output=True, text=True,
                           timeout=60, preexec_fn=limited(resource.RLIMIT_AS, mib << 20))
        text = f'{mib} MiB: status {r.returncode}: {r.stderr[-2000:]}'
        if r.returncode == 0:
            assert '"QMP"' in r.stdout and not r.stderr, text
        else:
            assert r.returncode == 1 and r.stderr.count('\n') == 1, text
            assert 'ulimit -v' in r.stderr and '-smp' in r.stderr, text
            refusals += 1
    assert 5 < refusals < 50, refusals


# ---- Guest RAM in files ----

def backend(path, size, **more):
    extra = ''.join(f',{k}={v}' for k, v in more.items())
    return ['-object', f'memory-backend-file,id=ram0,mem-path={path},size={size}{extra}']


def room(path):
    fs = os.statvfs(path)
    return fs.f_bavail * fs.f_frsize


def guest_ram_that_finds_no_room_is_refused():
    with Dir() as d:
        much = room(d.path) + (1 << 30)
        for path in (d('ram'), d.path):
            refused(['-m', '16', *backend(path, much, share='on')], '-object', path, f'{much} bytes', 'left', 'mem-path',
                    leaves=d.path)
        with open(d('old'), 'wb') as f:
            f.truncate(0)
        refused(['-m', '16', *backend(d('old'), much, share='on', prealloc='on')], 'left')
        assert os.path.getsize(d('old')) == 0
        with Guest(*BASE, '-m', '16', *backend(d('ram'), '8M', share='on', prealloc='on'), qmp=True, stdin=False) as g:
            g.qmp.cmd('query-status')
            assert os.stat(d('ram')).st_blocks * 512 >= 8 << 20
            for path in (d('late'), d('old')):
                g.qmp.send({'execute': 'object-add', 'arguments': {
                    'qom-type': 'memory-backend-file', 'id': 'late', 'mem-path': path, 'size': much, 'share': True}})
                assert 'left' in g.qmp.reply()['error']['desc']
            assert not os.path.exists(d('late')) and os.path.getsize(d('old')) == 0


def guest_ram_that_is_lost_ends_with_a_reason():
    if not os.path.exists(KERNEL):
        skip('the guests are not built')
    for touch in ('guest', 'monitor'):
        with Dir() as d:
            args = [a for a in BASE if touch == 'monitor' or a != '-S']
            with Guest(*args, '-m', '16', *backend(d('ram'), '16M', share='on'), '-machine', 'memory-backend=ram0',
                       '-kernel', KERNEL, '-pidfile', d('pid'), '-qmp', f'unix:{d("second")},server=on,wait=off',
                       qmp=True, stdin=False) as g:
                g.qmp.cmd('query-status')
                os.truncate(d('ram'), 0)
                try:
                    g.qmp.cmd('human-monitor-command', **{'command-line': 'xp /1xb 0x200000'})
                except (EOFError, ConnectionError):
                    pass
                assert g.wait() == 1, g.text()
                lines = [x for x in g.text().splitlines() if 'memory backend' in x]
                assert len(lines) == 1 and "'ram0'" in lines[0] and 'prealloc=on' in lines[0], g.text()
                assert sorted(os.listdir(d.path)) == ['ram'], os.listdir(d.path)


# ---- The log ----

def a_log_without_items_leaves_its_file_alone():
    with Dir() as d:
        with open(d('precious'), 'w', encoding='utf-8') as f:
            f.write('precious')
        for name in ('precious', 'new'):
            with Guest(*BASE, '-D', d(name), qmp=True, stdin=False) as g:
                g.qmp.cmd('quit')
                assert g.wait() == 0
        with open(d('precious'), encoding='utf-8') as f:
            assert f.read() == 'precious'
        assert os.listdir(d.path) == ['precious']


def a_log_that_is_lost_is_told_once():
    for path, why, limit in (('/dev/full', 'No space left', None), (None, 'File too large', 4096)):
        with Dir() as d:
            path = path or d('log')
            with Guest(*BASE, '-m', '64', '-kernel', KERNEL, '-d', 'in_asm,int', '-D', path, qmp=True, stdin=False) as g:
                g.qmp.cmd('query-status')
                if limit:
                    resource.prlimit(g.proc.pid, resource.RLIMIT_FSIZE, (limit, limit))
                g.qmp.cmd('cont')
                g.expect('-D ' + path + ': cannot write the log: ' + why)
                time.sleep(0.5)
                g.qmp.cmd('quit')
                assert g.wait() == 0 and g.text().count('cannot write') == 1, g.text()


main(no_file_becomes_a_standard_stream, what_the_host_cannot_hold_is_named,
     whichever_part_of_a_cpu_finds_no_room_is_named,
     guest_ram_that_finds_no_room_is_refused, guest_ram_that_is_lost_ends_with_a_reason,
     a_log_without_items_leaves_its_file_alone, a_log_that_is_lost_is_told_once)
