# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of the qtest protocol (docs/devel/qtest.md): drives a machine whose CPUs never run."""
import os
import socket
import time

from guest import Guest


class QTest(Guest):
    """The machine `pc` with nothing but what every PC has, and the given options."""

    def __init__(self, *args, machine='pc', **kw):
        # The test program listens, as QEMU's own does, so that nothing has to be waited for.
        super_dir = os.path.join('/tmp', f'qrt-qtest-{os.getpid()}-{time.monotonic_ns()}')
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(super_dir)
        self.listener.listen(1)
        self.listener.settimeout(20)
        self.levels = {}
        self.changes = []
        try:
            super().__init__('-accel', 'qtest', '-machine', machine, '-m', '64', '-display', 'none',
                             '-nodefaults', '-qtest', f'unix:{super_dir}', '-qtest-log', 'none',
                             *args, stdin=False, **kw)
            try:
                self.conn = self.listener.accept()[0]
            except TimeoutError:
                self.pump(0)
                self.fail('does not connect to the qtest socket')
        finally:
            os.unlink(super_dir)
        self.conn.settimeout(20)
        self.inbuf = b''

    def __exit__(self, *exc):
        self.conn.close()
        self.listener.close()
        super().__exit__(*exc)

    def readline(self):
        while b'\n' not in self.inbuf:
            data = self.conn.recv(65536)
            if not data:
                self.pump(0.5)
                self.fail('the qtest connection was closed')
            self.inbuf += data
        line, self.inbuf = self.inbuf.split(b'\n', 1)
        return line.decode()

    def raw(self, text):
        """Sends a line; returns the answer, whatever it is. Line changes are noted."""
        self.conn.sendall(text.encode() + b'\n')
        while True:
            line = self.readline()
            if not line.startswith('IRQ '):
                return line
            _, what, n = line.split()
            self.levels[int(n)] = what == 'raise'
            self.changes.append((int(n), what == 'raise'))

    def cmd(self, text):
        answer = self.raw(text)
        assert answer == 'OK' or answer.startswith('OK '), f'{text}: {answer}'
        return answer[3:]

    def outb(self, port, v):
        self.cmd(f'outb {port:#x} {v:#x}')

    def outw(self, port, v):
        self.cmd(f'outw {port:#x} {v:#x}')

    def outl(self, port, v):
        self.cmd(f'outl {port:#x} {v:#x}')

    def inb(self, port):
        return int(self.cmd(f'inb {port:#x}'), 0)

    def inw(self, port):
        return int(self.cmd(f'inw {port:#x}'), 0)

    def inl(self, port):
        return int(self.cmd(f'inl {port:#x}'), 0)

    def writel(self, addr, v):
        self.cmd(f'writel {addr:#x} {v:#x}')

    def writeq(self, addr, v):
        self.cmd(f'writeq {addr:#x} {v:#x}')

    def readl(self, addr):
        return int(self.cmd(f'readl {addr:#x}'), 0)

    def readq(self, addr):
        return int(self.cmd(f'readq {addr:#x}'), 0)

    def read(self, addr, size):
        return bytes.fromhex(self.cmd(f'read {addr:#x} {size:#x}')[2:])

    def write(self, addr, data):
        self.cmd(f'write {addr:#x} {len(data):#x} 0x{data.hex()}')

    def step(self, ns=None):
        """Moves virtual time by ns, or to the next timer; returns the time."""
        return int(self.cmd('clock_step' if ns is None else f'clock_step {ns}'))

    def intercept_in(self, path):
        self.cmd(f'irq_intercept_in {path}')

    def intercept_out(self, path):
        self.cmd(f'irq_intercept_out {path}')

    def rises(self, n):
        """How often line n rose since the last call."""
        count = sum(1 for line, up in self.changes if line == n and up)
        self.changes = [c for c in self.changes if c[0] != n]
        return count
