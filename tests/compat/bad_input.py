#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad input: one clear line (option, value, reason, remedy), status 1, nothing lost, nothing left."""
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import BINARY, Guest, main, skip  # noqa: E402

BASE = ('-accel', 'tcg', '-m', '16', '-nodefaults', '-display', 'none')


class Dir:
    """A directory of our own: a path for a name, and what stands in it."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix='qrt-bad-')
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.path, ignore_errors=True)

    def __call__(self, name, text=None):
        path = os.path.join(self.path, name)
        if text is not None:
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
        return path

    def state(self):
        out = {}
        for name in sorted(os.listdir(self.path)):
            path = os.path.join(self.path, name)
            if os.path.isfile(path):
                with open(path, encoding='utf-8') as f:
                    out[name] = f.read()
            else:
                out[name] = None
        return out


def refused(args, *words, timeout=30, **kw):
    """Status 1 and one line with all of the words, none of them NULL's text."""
    r = subprocess.run([BINARY, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=timeout, **kw)
    text = f'{" ".join(args)[:300]}: status {r.returncode}: {r.stderr[:2000]}'
    assert r.returncode == 1, text
    assert r.stderr.count('\n') == 1 and '(null)' not in r.stderr, text
    for w in words:
        assert w in r.stderr, f'{w!r} is missing: {text}'
    return r.stderr


def runs(*args):
    """The machine gets as far as a monitor that answers; returns that monitor's guest."""
    g = Guest(*BASE, *args, '-S', qmp=True, stdin=False)
    try:
        g.qmp.cmd('query-status')
    except Exception:
        g.pump(1)
        print(g.text(), file=sys.stderr)
        g.__exit__()
        raise
    return g


# ---- -pidfile ----

def a_pid_file_is_no_other_file():
    with Dir() as d:
        for text in ('127.0.0.1 localhost\n', '12 34\n', '1' * 40 + '\n', '0x12\n', '\0\0'):
            path = d('important', text)
            refused([*BASE, '-pidfile', path], '-pidfile ' + path, 'something else than a process id',
                    'choose another file')
            assert d.state() == {'important': text}
        refused([*BASE, '-pidfile', d.path], '-pidfile ' + d.path)
        os.mkfifo(d('fifo'))
        refused([*BASE, '-pidfile', d('fifo')], 'not a regular file')
        refused([*BASE, '-pidfile', '/dev/null'], 'not a regular file')
        assert os.path.exists('/dev/null')
        refused([*BASE, '-pidfile', d('no/such')], '-pidfile ' + d('no/such'))


def a_stale_pid_file_is_taken_a_live_one_not():
    with Dir() as d:
        for text in ('', '4194304\n', ' 17', '17 \n'):
            path = d('pid', text)
            with runs('-pidfile', path) as g:
                assert d.state()['pid'] == f'{g.proc.pid}\n'
                refused([*BASE, '-pidfile', path], '-pidfile ' + path, f'process {g.proc.pid} uses it')
                assert d.state()['pid'] == f'{g.proc.pid}\n'
                g.qmp.cmd('quit')
                assert g.wait() == 0
            assert d.state() == {}


# ---- Files that are read whole ----

def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def what_is_read_has_an_end():
    with Dir() as d:
        os.mkfifo(d('fifo'))
        with open(d('huge'), 'wb') as f:
            f.truncate(1 << 40)
        cases = [(['-readconfig'], ''), (['-object'], 'secret,id=s,file=')]
        for option, prefix in cases:
            for path, reason in (('/dev/zero', 'more than'), (d('huge'), 'more than'),
                                 (d.path, 'directory'), (d('fifo'), 'nobody writes'),
                                 (d('none'), 'No such file')):
                refused([*BASE, *option, prefix + path], option[0], path, reason, preexec_fn=limit_memory)
        for option in ('-kernel', '-bios'):
            for path in ('/dev/zero', d('huge'), d.path, d('fifo'), d('none')):
                refused([*BASE, option, path], option, path, preexec_fn=limit_memory)
        kernel = os.path.join(os.path.dirname(BINARY), 'tests/guest/lines.elf')
        if os.path.exists(kernel):
            for path in ('/dev/zero', d('huge'), d.path, d('fifo'), d('none')):
                refused([*BASE, '-kernel', kernel, '-initrd', path], '-initrd', path)


def a_pipe_that_is_written_is_read():
    with Dir() as d:
        os.mkfifo(d('fifo'))

        def write():
            with open(d('fifo'), 'w', encoding='ascii') as f:
                f.write('[name]\nguest = "from-a-')
                f.flush()
                threading.Event().wait(0.5)
                f.write('pipe"\n')
        keep = os.open(d('fifo'), os.O_RDWR)  # so that the reader finds a writer at once
        writer = threading.Thread(target=write)
        writer.start()
        closer = threading.Thread(target=lambda: (writer.join(), os.close(keep)))
        closer.start()
        with runs('-readconfig', d('fifo')) as g:
            assert g.qmp.cmd('query-name')['name'] == 'from-a-pipe'
        closer.join()


# ---- A refused start leaves nothing ----

LATE = (['-no-such-option'], ['-m', '1Q'], ['-accel', 'nonsense'], ['-cpu', 'nonsense'],
        ['-device', 'nonsense'], ['-device', 'isa-serial,chardev=none-such'], ['-mon', 'none-such'],
        ['-kernel', '/no/such/kernel'], ['-object', 'nonsense,id=x'], ['-d', 'nonsense'],
        ['-qmp', 'nonsense'], ['-device', 'pc-testdev', '-device', 'pc-testdev'],
        ['-pidfile', '/no/such/dir/pid'], ['-daemonize', '-kernel', '/no/such/kernel'])


def openers(d):
    """Options that make files, whatever comes of the rest of the line."""
    return ['-D', d('log'), '-d', 'guest_errors', '-chardev', f'file,id=f,path={d("file")}',
            '-chardev', f'null,id=n,logfile={d("chardev-log")}', '-chardev',
            f'socket,id=s,path={d("socket")},server=on,wait=off', '-serial', f'file:{d("serial")}',
            '-monitor', f'unix:{d("monitor")},server=on,wait=off', '-object',
            f'memory-backend-file,id=ram,size=4M,mem-path={d("ram")}', '-qtest', 'null', '-qtest-log',
            d('qtest-log')]


def a_refused_start_makes_no_files():
    with Dir() as d:
        for late in LATE:
            base = [a for a in BASE if '-accel' not in late or a not in ('-accel', 'tcg')]
            refused([*base, *openers(d), *([] if '-pidfile' in late else ['-pidfile', d('pid')]), *late],
                    late[-2] if '-daemonize' in late else late[0])
            assert d.state() == {}, (late, d.state())


def a_refused_start_empties_no_files():
    with Dir() as d:
        old = {n: f'precious {n}\n' for n in ('log', 'file', 'chardev-log', 'serial', 'qtest-log')}
        old['ram'] = ''
        for name, text in old.items():
            d(name, text)
        for late in LATE:
            base = [a for a in BASE if '-accel' not in late or a not in ('-accel', 'tcg')]
            refused([*base, *openers(d), *late])
            assert d.state() == old, (late, d.state())


def a_start_empties_them_and_they_stay():
    with Dir() as d:
        for name in ('log', 'file', 'chardev-log', 'serial', 'qtest-log'):
            d(name, 'old' * 1000)
        with runs(*openers(d)) as g:
            assert all(not d.state()[n] for n in ('log', 'file', 'chardev-log', 'serial')), d.state()
            g.qmp.cmd('quit')
            assert g.wait() == 0
        state = d.state()
        assert 'log' in state and 'ram' in state and 'serial' in state and 'socket' not in state, state


def a_socket_in_use_stays():
    with Dir() as d, socket.socket(socket.AF_UNIX) as s:
        s.bind(d('socket'))
        s.listen(1)
        refused([*BASE, '-qmp', f'unix:{d("socket")},server=on,wait=off'], '-qmp', 'in use')
        assert os.path.exists(d('socket'))


# ---- Output that gets lost ----

def lost_help_is_an_error():
    with open('/dev/full', 'w', encoding='ascii') as full:
        for args in (['-help'], ['-version'], ['-device', 'help'], ['-device', 'isa-serial,help'],
                     ['-realtime', 'help'], ['-realtime', 'check'], ['-machine', 'help'], ['-cpu', 'help'],
                     ['-accel', 'help'], ['-chardev', 'help'], ['-object', 'help'], ['-d', 'help']):
            r = subprocess.run([BINARY, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
            assert r.returncode == 1 and args[0] in r.stderr and 'cannot write' in r.stderr, (args, r)
            ok = subprocess.run([BINARY, *args], capture_output=True, text=True, timeout=30)
            assert ok.stdout and (ok.returncode == 0 or 'check' in args), (args, ok)


main(a_pid_file_is_no_other_file, a_stale_pid_file_is_taken_a_live_one_not, what_is_read_has_an_end,
     a_pipe_that_is_written_is_read, a_refused_start_makes_no_files, a_refused_start_empties_no_files,
     a_start_empties_them_and_they_stay, a_socket_in_use_stays, lost_help_is_an_error)
