# SPDX-License-Identifier: GPL-2.0-or-later
"""Running the emulator from a test: console, QMP, threads, and an end that always comes.

A test program calls main(FUNCTION, ...): each function is a case and gets nothing; it raises to
fail and calls skip() to be skipped. Results are TAP. QEMU_BINARY names the program under test,
QEMU_RT_CACHE where guest kernels lie.
"""
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get('QEMU_BINARY', os.path.join(TOP, 'build', 'qemu-system-x86_64'))
CACHE = os.environ.get('QEMU_RT_CACHE', os.path.join(TOP, '.cache'))


class Skip(Exception):
    pass


def skip(why):
    raise Skip(why)


def kernel(flavour):
    path = os.path.join(CACHE, 'kernels', flavour, 'vmlinuz')
    if not os.path.exists(path):
        skip(f'no {flavour} kernel: scripts/check fetches it')
    return path


def initramfs():
    path = os.path.join(CACHE, 'initramfs.gz')
    if not os.path.exists(path):
        skip('no initramfs: scripts/check makes it')
    return path


class Qmp:
    """A QMP client as strict as libvirt: lines end in CR LF, the greeting comes first."""

    def __init__(self, path, timeout=20):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(timeout)
        end = time.monotonic() + timeout
        while True:
            try:
                self.sock.connect(path)
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
        self.buf = b''
        self.events = []
        self.greeting = self.read()
        assert 'QMP' in self.greeting, self.greeting

    def read(self):
        while b'\r\n' not in self.buf:
            data = self.sock.recv(65536)
            if not data:
                raise EOFError('QMP connection closed')
            self.buf += data
        line, self.buf = self.buf.split(b'\r\n', 1)
        assert b'\n' not in line, line
        return json.loads(line)

    def send(self, obj):
        self.sock.sendall(json.dumps(obj).encode() + b'\r\n')

    def reply(self):
        while True:
            msg = self.read()
            if 'event' in msg:
                self.events.append(msg)
            else:
                return msg

    def cmd(self, name, /, **args):
        msg = {'execute': name, 'id': name}
        if args:
            msg['arguments'] = args
        self.send(msg)
        r = self.reply()
        if 'error' in r:
            raise RuntimeError(f"{name}: {r['error']}")
        assert r['id'] == name, r
        return r['return']

    def negotiate(self):
        self.cmd('qmp_capabilities')
        return self

    def event(self, name):
        """The next event of that name; those before it are dropped."""
        while True:
            while self.events:
                e = self.events.pop(0)
                if e['event'] == name:
                    return e
            msg = self.read()
            assert 'event' in msg, msg
            self.events.append(msg)

    def close(self):
        self.sock.close()


class Guest:
    def __init__(self, *args, binary=None, stdin=True, prefix=(), env=None, qmp=False,
                 pass_fds=()):
        self.dir = tempfile.mkdtemp(prefix='qrt-')
        self.out = b''
        self.cursor = 0
        argv = list(prefix) + [binary or BINARY] + list(args)
        self.qmp_path = os.path.join(self.dir, 'qmp')
        if qmp:
            argv += ['-qmp', f'unix:{self.qmp_path},server=on,wait=off']
        self.argv = argv
        self.start = time.monotonic()
        self.proc = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                                     env=env, pass_fds=pass_fds)
        self._qmp = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()
        self.proc.stdout.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    @property
    def qmp(self):
        if not self._qmp:
            self._qmp = Qmp(self.qmp_path).negotiate()
        return self._qmp

    def text(self):
        return self.out.decode(errors='replace')

    def fail(self, why):
        tail = self.text()[-3000:]
        raise AssertionError(f'{why}\ncommand: {" ".join(self.argv)}\noutput ends:\n{tail}')

    def pump(self, timeout):
        """Reads what the guest prints; False at the end of its output."""
        r, _, _ = select.select([self.proc.stdout], [], [], timeout)
        if r:
            data = os.read(self.proc.stdout.fileno(), 65536)
            self.out += data
            return bool(data)
        return True

    def expect(self, pattern, timeout=60):
        """Waits for a regular expression in what was printed since the last match."""
        end = time.monotonic() + timeout
        regex = re.compile(pattern.encode())
        alive = True
        while True:
            m = regex.search(self.out, self.cursor)
            if m:
                self.cursor = m.end()
                return m
            if not alive:
                self.fail(f'ended (status {self.proc.wait()}) before it printed {pattern!r}')
            left = end - time.monotonic()
            if left <= 0:
                self.fail(f'did not print {pattern!r} within {timeout} s')
            alive = self.pump(min(left, 0.5))

    def send(self, text):
        self.proc.stdin.write(text.encode())
        self.proc.stdin.flush()

    def run(self, command, timeout=60):
        """Has the guest's /init run a line; returns its status and output."""
        start = self.cursor
        self.send(command + '\n')
        m = self.expect(r'qrt: done (\d+)\s', timeout)
        return int(m.group(1)), self.out[start:m.start()].decode(errors='replace')

    def wait(self, timeout=60):
        """Waits for the process to end; returns its exit status."""
        end = time.monotonic() + timeout
        while self.pump(0.2):
            if time.monotonic() > end:
                self.fail(f'did not end within {timeout} s')
        return self.proc.wait(max(0.1, end - time.monotonic()))

    def threads(self):
        """What the host's kernel says of each thread: name -> dict (first of a name wins)."""
        out = []
        base = f'/proc/{self.proc.pid}/task'
        for tid in sorted(os.listdir(base), key=int):
            try:
                with open(f'{base}/{tid}/stat', encoding='utf-8') as f:
                    stat = f.read()
            except FileNotFoundError:
                continue
            name = stat[stat.index('(') + 1:stat.rindex(')')]
            field = stat[stat.rindex(')') + 2:].split()
            out.append({'tid': int(tid), 'name': name, 'prio': int(field[37]),
                        'policy': {0: 'other', 1: 'fifo', 2: 'rr'}.get(int(field[38]), '?'),
                        'minflt': int(field[7]), 'majflt': int(field[9])})
        return out

    def status(self, key):
        with open(f'/proc/{self.proc.pid}/status', encoding='utf-8') as f:
            for line in f:
                if line.startswith(key + ':'):
                    return int(line.split()[1])
        raise KeyError(key)


def run_refused(*args, timeout=20, **kw):
    """Runs the emulator expecting a refusal; returns its one line of output."""
    with Guest(*args, stdin=False, **kw) as g:
        status = g.wait(timeout)
        text = g.text().strip()
    assert status == 1, f'exit status {status}, output: {text}'
    return text


def main(*cases):
    print(f'1..{len(cases)}', flush=True)
    failed = 0
    for n, case in enumerate(cases, 1):
        name = case.__name__.replace('_', '-')
        try:
            case()
            print(f'ok {n} {name}', flush=True)
        except Skip as e:
            print(f'ok {n} {name} # SKIP {e}', flush=True)
        except Exception:  # a case may fail in any way
            failed += 1
            print(f'{name}: {traceback.format_exc()}', file=sys.stderr, flush=True)
            print(f'not ok {n} {name}', flush=True)
    sys.exit(1 if failed else 0)
