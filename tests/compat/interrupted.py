#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Start-up can be ended at any time: by a signal, or by the end of the command of -daemonize."""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import BINARY, main  # noqa: E402

MACHINE = ['-accel', 'tcg', '-m', '16', '-nodefaults', '-display', 'none']
# A second is promised; the rest is what a loaded host may add. Without the promise it is for ever.
PROMPT_S = 3.0
SIGNALS = {'SIGTERM': signal.SIGTERM, 'SIGINT': signal.SIGINT, 'SIGHUP': signal.SIGHUP}


@contextlib.contextmanager
def place():
    path = tempfile.mkdtemp(prefix='qrt-')
    try:
        yield path
    finally:
        shutil.rmtree(path)


def wait_for(condition, what, timeout=10.0):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f'not within {timeout} s: {what}'
        time.sleep(0.005)


def pid_in(path):
    try:
        with open(path, encoding='ascii') as f:
            return int(f.read() or 0)
    except OSError:
        return 0


def threads(pid):
    """Names of a process's threads; none: it has ended."""
    names = []
    with contextlib.suppress(OSError):
        for tid in os.listdir(f'/proc/{pid}/task'):
            with contextlib.suppress(OSError), open(f'/proc/{pid}/task/{tid}/stat', encoding='utf-8') as f:
                text = f.read()
                if text[text.rindex(')') + 2] != 'Z':
                    names.append(text[text.index('(') + 1:text.rindex(')')])
    return names


def start(d, *args):
    return subprocess.Popen([BINARY, *MACHINE, '-pidfile', f'{d}/pid', *args], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def end_of(proc, name, doing, d):
    """Sends the signal; checks the end of a process that is starting."""
    begin = time.monotonic()
    proc.send_signal(SIGNALS[name])
    _, err = proc.communicate(timeout=20)
    took = time.monotonic() - begin
    lines = [l for l in err.splitlines() if not re.search(': (warning|info): ', l)]
    want = rf'qemu-system-x86_64: terminated by signal {name} while {doing}'
    assert len(lines) == 1 and re.fullmatch(want, lines[0]), (want, err)
    assert proc.returncode == 1, proc.returncode
    assert took < PROMPT_S, f'{took:.2f} s'
    assert not os.path.exists(f'{d}/pid') and not os.path.exists(f'{d}/sock'), os.listdir(d)


def blocked(pid):
    """Does the first thread sleep? It waits for somebody else then."""
    with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
        text = f.read()
    return text[text.rindex(')') + 2] == 'S'


def interrupt(name, doing, args, ready=None):
    with place() as d:
        proc = start(d, *[a.format(d=d) for a in args])
        try:
            wait_for(lambda: pid_in(f'{d}/pid') == proc.pid, 'the pid file')
            if ready:
                wait_for(lambda: ready(d), 'what start-up waits for')
            time.sleep(0.1)
            wait_for(lambda: blocked(proc.pid), 'the wait')
            end_of(proc, name, doing, d)
        finally:
            proc.kill()
            proc.wait()


def sock_there(d):
    return os.path.exists(f'{d}/sock')


def waiting_for_a_client():
    for args in (['-chardev', 'socket,id=c,path={d}/sock,server=on,wait=on'],
                 ['-serial', 'unix:{d}/sock,server'], ['-qmp', 'unix:{d}/sock,server']):
        for name in SIGNALS:
            interrupt(name, r'waiting for a connection on .*unix:.*/sock,server=on', args, sock_there)
    interrupt('SIGTERM', r'waiting for a connection on .*tcp:127\.0\.0\.1:\d+,server=on',
              ['-serial', 'tcp:127.0.0.1:0,server'])


def others_sockets_go_too():
    """A server that nobody waits for has made its file when another one waits."""
    interrupt('SIGTERM', 'waiting for a connection on .*',
              ['-qmp', 'unix:{d}/sock,server=on,wait=off', '-qmp', 'tcp:127.0.0.1:0,server'], sock_there)


def full_listener(family, address):
    """A listener whose queue is full, and the connections that fill it."""
    s = socket.socket(family)
    s.bind(address)
    s.listen(0)
    keep = [s]
    for _ in range(8):
        c = socket.socket(family)
        c.setblocking(False)
        keep.append(c)
        try:
            c.connect(s.getsockname())
        except BlockingIOError:
            pass
    return s, keep


def peer_does_not_answer():
    with place() as d:
        _, keep = full_listener(socket.AF_UNIX, f'{d}/busy')
        interrupt('SIGTERM', 'connecting to .*/busy', ['-serial', f'unix:{d}/busy'])
        for s in keep:
            s.close()
    s, keep = full_listener(socket.AF_INET, ('127.0.0.1', 0))
    interrupt('SIGINT', 'connecting to .*', ['-serial', f'tcp:127.0.0.1:{s.getsockname()[1]}'])
    for s in keep:
        s.close()


def at_any_moment():
    """Between the making of the pid file and the main loop, whatever it is that is being done."""
    interrupted = 0
    for extra in ([], ['-realtime', 'maxprio=50,policy=fifo']):
        for delay in (0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8):
            with place() as d:
                proc = start(d, '-smp', '255', *extra)
                try:
                    wait_for(lambda: proc.poll() is not None or pid_in(f'{d}/pid'), 'the pid file')
                    if proc.poll() is not None:  # a host without realtime
                        assert extra, proc.communicate()
                        break
                    time.sleep(delay)
                    begin = time.monotonic()
                    proc.terminate()
                    _, err = proc.communicate(timeout=20)
                    took = time.monotonic() - begin
                    last = err.splitlines()[-1]
                    assert re.search(('terminating on signal 15', ': terminated by signal SIGTERM while [a-z]')
                                     [proc.returncode], last), (proc.returncode, err)
                    assert took < PROMPT_S and os.listdir(d) == [], (took, os.listdir(d))
                    interrupted += proc.returncode
                finally:
                    proc.kill()
                    proc.wait()
    assert interrupted, 'no start was met under way'


def after_start():
    """Once the machine runs, a signal is an orderly end: status 0."""
    with place() as d:
        proc = start(d, '-qmp', f'unix:{d}/sock,server=on,wait=off')
        try:
            with socket.socket(socket.AF_UNIX) as s:
                wait_for(lambda: sock_there(d), 'the monitor')
                s.settimeout(20)
                s.connect(f'{d}/sock')
                assert b'QMP' in s.recv(4096)
                s.sendall(b'{"execute":"qmp_capabilities"}{"execute":"query-status"}')
                wait_for(lambda: b'running' in s.recv(4096), 'the machine to run')
            assert 'startup' not in threads(proc.pid), threads(proc.pid)
            proc.send_signal(signal.SIGTERM)
            _, err = proc.communicate(timeout=20)
            assert proc.returncode == 0 and 'terminating on signal 15' in err, (proc.returncode, err)
            assert os.listdir(d) == [], os.listdir(d)
        finally:
            proc.kill()
            proc.wait()


def daemonize_command_ends():
    """The command that the shell waits for is killed: the process in the background ends too."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        with place() as d:
            proc = start(d, '-daemonize', '-serial', f'unix:{d}/sock,server')
            wait_for(lambda: pid_in(f'{d}/pid') and sock_there(d), 'the process in the background')
            pid = pid_in(f'{d}/pid')
            assert pid != proc.pid
            try:
                proc.send_signal(sig)
                begin = time.monotonic()
                wait_for(lambda: not threads(pid), 'the end of the process in the background')
                assert time.monotonic() - begin < PROMPT_S
                _, err = proc.communicate(timeout=20)
                assert '-daemonize: the command that started it ended while waiting for a connection' in err, err
                assert os.listdir(d) == [], os.listdir(d)
            finally:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                proc.wait()


def daemonize_child_is_signalled():
    with place() as d:
        proc = start(d, '-daemonize', '-serial', f'unix:{d}/sock,server')
        try:
            wait_for(lambda: pid_in(f'{d}/pid') and sock_there(d), 'the process in the background')
            begin = time.monotonic()
            os.kill(pid_in(f'{d}/pid'), signal.SIGTERM)
            _, err = proc.communicate(timeout=20)
            assert time.monotonic() - begin < PROMPT_S
            assert 'terminated by signal SIGTERM while waiting for a connection on' in err, err
            assert proc.returncode == 1 and os.listdir(d) == [], (proc.returncode, os.listdir(d))
        finally:
            proc.kill()
            proc.wait()


def failed_start_leaves_nothing():
    """A start that fails later removes what was made before."""
    with place() as d:
        proc = start(d, '-qmp', f'unix:{d}/sock,server=on,wait=off', '-mon', 'chardev=none')
        _, err = proc.communicate(timeout=20)
        assert proc.returncode == 1 and 'no such character device' in err, err
        assert os.listdir(d) == [], os.listdir(d)


if __name__ == '__main__':
    main(waiting_for_a_client, others_sockets_go_too, peer_does_not_answer, at_any_moment, after_start,
         daemonize_command_ends, daemonize_child_is_signalled, failed_start_leaves_nothing)
