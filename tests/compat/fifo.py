#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""FIFOs as outputs: one that nobody reads is refused, one that is full or loses its reader harms nobody."""
import array
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import BINARY, Guest, main  # noqa: E402

MACHINE = ['-accel', 'tcg', '-m', '16', '-nodefaults', '-display', 'none']
PROMPT_S = 3.0  # on a loaded host; what is at stake is for ever


@contextlib.contextmanager
def fifo():
    """A FIFO, and beside it a ROM whose guest writes to the serial port for ever."""
    d = tempfile.mkdtemp(prefix='qrt-')
    os.mkfifo(f'{d}/fifo')
    rom = bytearray(b'\xf4' * 65536)
    rom[0xfff0:0xfff8] = b'\xba\xf8\x03\xb0\x78\xee\xeb\xfd'  # mov $0x3f8,%dx; mov $'x',%al; 1: out %al,%dx; jmp 1b
    with open(f'{d}/rom', 'wb') as f:
        f.write(rom)
    try:
        yield d
    finally:
        shutil.rmtree(d)


def machine(d, *args, **kw):
    return Guest(*MACHINE, '-bios', f'{d}/rom', *args, qmp=True, **kw)


def reader(d):
    return os.open(f'{d}/fifo', os.O_RDONLY | os.O_NONBLOCK)


def fill(fd):
    """Waits until nothing more goes into the FIFO; none of it is read."""
    size, last = array.array('i', [0]), -1
    end = time.monotonic() + 10
    while size[0] == 0 or size[0] != last:
        assert time.monotonic() < end, f'{size[0]} bytes'
        last = size[0]
        time.sleep(0.2)
        fcntl.ioctl(fd, termios.FIONREAD, size)


def read_some(fd, timeout=5.0):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            data = os.read(fd, 65536)
        except BlockingIOError:
            data = b''
        if data:
            return data
        time.sleep(0.01)
    raise AssertionError('nothing came')


def prompt(what, fn):
    begin = time.monotonic()
    fn()
    took = time.monotonic() - begin
    assert took < PROMPT_S, f'{what}: {took:.2f} s'


def ends_promptly(g, status=0):
    g.proc.send_signal(signal.SIGTERM)
    prompt('the end', lambda: g.proc.wait(timeout=20))
    assert g.proc.returncode == status, g.proc.returncode


def without_a_reader_is_refused():
    with fifo() as d:
        for args in (['-serial', f'file:{d}/fifo'], ['-chardev', f'file,id=c,path={d}/fifo'],
                     ['-chardev', f'null,id=c,logfile={d}/fifo'], ['-d', 'int', '-D', f'{d}/fifo']):
            done = subprocess.run([BINARY, *MACHINE, *args], stdin=subprocess.DEVNULL, check=False,
                                  capture_output=True, text=True, timeout=10)
            lines = done.stderr.splitlines()
            assert done.returncode == 1 and len(lines) == 1, (args, done)
            assert f'{d}/fifo' in lines[0] and 'nobody reads this FIFO' in lines[0], lines


def pidfile_is_none():
    with fifo() as d:
        done = subprocess.run([BINARY, *MACHINE, '-pidfile', f'{d}/fifo'], stdin=subprocess.DEVNULL, check=False,
                              capture_output=True, text=True, timeout=10)
        assert done.returncode == 1 and 'not a regular file' in done.stderr, done
        assert os.path.exists(f'{d}/fifo')


def full_fifo_of_a_serial_port():
    for args in (['-serial', 'file:{d}/fifo'], ['-chardev', 'null,id=c,logfile={d}/fifo', '-serial', 'chardev:c']):
        with fifo() as d:
            fd = reader(d)
            with machine(d, *[a.format(d=d) for a in args]) as g:
                q = g.qmp
                fill(fd)
                # A vCPU that sat in write(2) could not be stopped.
                prompt('stop', lambda: q.cmd('stop'))
                prompt('cont', lambda: q.cmd('cont'))
                assert set(read_some(fd)) == {ord('x')}
                os.close(fd)
                time.sleep(0.2)  # EPIPE by now, and no SIGPIPE
                assert q.cmd('query-status')['status'] == 'running'
                prompt('stop', lambda: q.cmd('stop'))
                q.cmd('cont')
                ends_promptly(g)


def next_reader_goes_on():
    with fifo() as d:
        fd = reader(d)
        with machine(d, '-serial', f'file:{d}/fifo') as g:
            assert set(read_some(fd)) == {ord('x')}
            os.close(fd)
            time.sleep(0.2)
            assert g.qmp.cmd('query-status')['status'] == 'running'
            fd = reader(d)
            assert set(read_some(fd)) == {ord('x')}
            ends_promptly(g)
        os.close(fd)


def end_with_a_full_fifo():
    for args in (['-serial', 'file:{d}/fifo'], ['-chardev', 'null,id=c,logfile={d}/fifo', '-serial', 'chardev:c']):
        with fifo() as d:
            fd = reader(d)
            with machine(d, *[a.format(d=d) for a in args]) as g:
                assert g.qmp.cmd('query-status')['running']
                fill(fd)
                ends_promptly(g)
            os.close(fd)


def full_fifo_of_the_log():
    with fifo() as d:
        fd = reader(d)
        with machine(d, '-accel', 'tcg,one-insn=on', '-d', 'exec', '-D', f'{d}/fifo') as g:
            q = g.qmp
            fill(fd)
            time.sleep(0.5)  # the wait for room is given up
            prompt('stop', lambda: q.cmd('stop'))
            prompt('cont', lambda: q.cmd('cont'))
            ends_promptly(g)
        os.close(fd)


def full_pipe_at_stderr():
    """The log goes to stderr, and whoever should read that does not."""
    with fifo() as d:
        with machine(d, '-accel', 'tcg,one-insn=on', '-d', 'exec') as g:
            q = g.qmp
            fill(g.proc.stdout.fileno())
            time.sleep(0.5)
            prompt('stop', lambda: q.cmd('stop'))
            g.proc.send_signal(signal.SIGTERM)
            begin = time.monotonic()
            assert g.proc.wait(timeout=20) == 0
            assert time.monotonic() - begin < PROMPT_S  # the last message waits for room, in vain


if __name__ == '__main__':
    main(without_a_reader_is_refused, pidfile_is_none, full_fifo_of_a_serial_port, next_reader_goes_on,
         end_with_a_full_fifo, full_fifo_of_the_log, full_pipe_at_stderr)
