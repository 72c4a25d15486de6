#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The PC's own devices through the program, in virtual time: wiring, ports, lines, messages.

What each chip does by itself is in tests/unit; here they are where a PC has them.
"""
import os
import socket
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import main, run_refused  # noqa: E402
from qtest import QTest  # noqa: E402

MS = 1000000
SEC = 1000 * MS
APIC, IOAPIC, HPET = 0xfee00000, 0xfec00000, 0xfed00000


def pic_init(q, elcr=0):
    for port, v in ((0x20, 0x11), (0x21, 0x20), (0x21, 4), (0x21, 1), (0xa0, 0x11), (0xa1, 0x28),
                    (0xa1, 2), (0xa1, 1), (0x21, 0), (0xa1, 0), (0x4d0, elcr & 255),
                    (0x4d1, elcr >> 8)):
        q.outb(port, v)


def ioapic_write(q, reg, v):
    q.writel(IOAPIC, reg)
    q.writel(IOAPIC + 0x10, v)


def ioapic_read(q, reg):
    q.writel(IOAPIC, reg)
    return q.readl(IOAPIC + 0x10)


def set_rte(q, pin, low, dest=0):
    ioapic_write(q, 0x11 + 2 * pin, dest << 24)
    ioapic_write(q, 0x10 + 2 * pin, low)


def irr(q, vector):
    return bool(q.readl(APIC + 0x200 + (vector >> 5 << 4)) & 1 << (vector & 31))


def pit(q, mode, count):
    q.outb(0x43, 0x30 | mode << 1)
    q.outb(0x40, count & 255)
    q.outb(0x40, count >> 8)


# ---- The protocol ----

def protocol():
    with QTest() as q:
        assert q.cmd('endianness') == 'little'
        for bad in ('nonsense', 'outb', 'outb 0x64', 'outb 1 2 3', 'inb 0x10000', 'inb x', 'readl',
                    'clock_step -1', 'clock_step 1x', 'write 0 4 zz', 'irq_intercept_in nobody',
                    'read 0 0x7fffffffffff'):
            assert q.raw(bad).startswith('FAIL'), bad
        q.cmd('write 0x1000 4 0x11223344')
        assert q.read(0x1000, 4) == b'\x11\x22\x33\x44'
        assert q.readl(0x1000) == 0x44332211
        q.cmd('write 0x1000 6 0xff')
        assert q.read(0x1000, 6) == b'\xff\0\0\0\0\0'
        q.cmd('memset 0x2000 0x10000 0xa5')
        assert q.read(0x2000, 0x10000) == b'\xa5' * 0x10000
        q.cmd('b64write 0x3000 3 YWJj')
        assert q.cmd('b64read 0x3000 3') == 'YWJj'
        q.writeq(0x4000, 0x1122334455667788)
        assert q.readq(0x4000) == 0x1122334455667788
        assert q.cmd('readw 0x4000') == '0x0000000000007788'
        assert q.cmd('readb 0x4007') == '0x0000000000000011'
        assert q.step(0) == 0
        assert q.step(1234) == 1234
        assert q.cmd('clock_set 5000') == '5000'
        assert q.cmd('clock_set 10') == '5000'     # time does not go back
        # An access to nothing is an access to nothing.
        assert q.readl(0xf0000000) == 0xffffffff
        q.writel(0xf0000000, 1)
        assert q.inl(0x1230) == 0xffffffff
    with QTest(machine='none') as q:
        assert q.step(7) == 7
        assert q.inb(0x64) == 0xff


def bunch(q, lines):
    """Many commands with one wait; returns the answers."""
    answers = []
    for i in range(0, len(lines), 1000):
        part = lines[i:i + 1000]
        q.conn.sendall(''.join(part).encode())
        for _ in part:
            line = q.readline()
            while line.startswith('IRQ'):
                line = q.readline()
            answers.append(line)
    return answers


def every_port_and_page():
    """A guest that reads and writes all of the machine never ends the process."""
    with QTest('-device', 'pc-testdev', '-no-reboot', '-no-shutdown', '-smp', '1,maxcpus=2') as q:
        ports = [p for p in range(0x10000) if p not in (0x60, 0x64, 0x92, 0xb2, 0xcf9)]
        for size in 'bwl':
            answers = bunch(q, [f'in{size} {p}\n' for p in ports])
            assert all(a.startswith('OK') for a in answers)
        # Not those that end or reset the machine on purpose, nor those that move windows.
        quiet = [p for p in ports if not 0xcf8 <= p <= 0xcff and not 0x600 <= p < 0x640]
        for value in (0, 0xff, 0x5a):
            answers = bunch(q, [f'outb {p} {value}\n' for p in quiet])
            assert all(a == 'OK' for a in answers)
        for page in (0xfec00000, 0xfed00000, 0xfee00000, 0xff000000, 0xfffc0000, 0xa0000, 0xc0000):
            bunch(q, [f'readl {page + offset}\n' for offset in range(0, 0x1000, 4)])
            bunch(q, [f'writel {page + offset} 0xffffffff\n' for offset in range(0, 0x1000, 4)])
        q.step(SEC)
        assert q.cmd('endianness') == 'little'
        assert q.proc.poll() is None


# ---- Interrupt controllers ----

def pic_lines():
    with QTest('-device', 'pc-testdev') as q:
        pic_init(q)
        q.intercept_in('isa-i8259')
        q.intercept_out('isa-i8259')
        q.outb(0x2000 + 7, 1)
        assert q.levels[7]
        q.outb(0x20, 0x0a)
        assert q.inb(0x20) & 0x80
        q.outb(0x20, 0x0c)                      # poll
        assert q.inb(0x20) == 0x87
        q.outb(0x2000 + 7, 0)
        q.outb(0x20, 0x20)
        q.outb(0x2000 + 12, 1)
        q.outb(0xa0, 0x0a)
        assert q.inb(0xa0) & 0x10
        q.outb(0x2000 + 12, 0)


def ioapic_and_apic():
    with QTest('-device', 'pc-testdev', '-smp', '2') as q:
        assert q.readl(APIC + 0x30) & 0xff == 0x14
        q.writel(APIC + 0xf0, 0x1ff)
        q.intercept_in('ioapic')
        # An edge, then the same again without one.
        set_rte(q, 11, 0x61)
        q.outb(0x2000 + 11, 1)
        assert q.rises(11) == 1
        assert irr(q, 0x61)
        # ISA line 0 is pin 2.
        set_rte(q, 2, 0x62)
        q.outb(0x2000 + 0, 1)
        assert irr(q, 0x62)
        q.outb(0x2000 + 0, 0)
        # A message of one's own: the pages behind the APIC's are for everybody.
        q.writel(APIC + 0x1000, 0x400)
        # Level-triggered: remote IRR is set, masking keeps it.
        set_rte(q, 20, 0x8063)
        q.outb(0x2000 + 20, 1)
        assert irr(q, 0x63)
        assert ioapic_read(q, 0x10 + 40) == 0xc063
        ioapic_write(q, 0x10 + 40, 0x18063)
        assert ioapic_read(q, 0x10 + 40) == 0x1c063
        ioapic_write(q, 0x10 + 40, 0x8063)
        # Nobody takes it here, so nothing ends it but the I/O APIC's own EOI register.
        q.writel(IOAPIC + 0x40, 0x63)
        assert ioapic_read(q, 0x10 + 40) == 0xc063      # still high: asked again
        q.outb(0x2000 + 20, 0)
        q.writel(IOAPIC + 0x40, 0x63)
        assert ioapic_read(q, 0x10 + 40) == 0x8063
        # IPI to self, and an illegal one.
        q.writel(APIC + 0x300, 0x40064)
        assert irr(q, 0x64)
        q.writel(APIC + 0x300, 0x40005)
        q.writel(APIC + 0x280, 0)
        assert q.readl(APIC + 0x280) == 0x20


def apic_timer():
    with QTest() as q:
        q.writel(APIC + 0xf0, 0x1ff)
        q.writel(APIC + 0x3e0, 0xb)
        q.writel(APIC + 0x320, 0x70)
        q.writel(APIC + 0x380, 5000000)
        q.step(4999999)
        assert not irr(q, 0x70)
        assert q.readl(APIC + 0x390) == 1
        q.step(1)
        assert irr(q, 0x70)
        assert q.readl(APIC + 0x390) == 0


# ---- Timers ----

def pit_on_line_0():
    with QTest() as q:
        q.intercept_in('ioapic')
        pit(q, 2, 11932)
        q.step(10)
        q.rises(0)
        q.step(SEC + MS)
        assert q.rises(0) == 100
        # Counter 2 and its gate at port 61h.
        q.outb(0x61, 1)
        q.outb(0x43, 0xb0)
        q.outb(0x42, 0x00)
        q.outb(0x42, 0x10)
        q.step(4090 * SEC // 1193182)
        assert not q.inb(0x61) & 0x20
        q.step(20 * SEC // 1193182)
        assert q.inb(0x61) & 0x20


def no_pit():
    for machine in ('pc,pit=off', 'pc,pit=off,hpet=off'):
        with QTest(machine=machine) as q:
            q.intercept_in('ioapic')
            pit(q, 2, 11932)
            assert [q.inb(p) for p in (0x40, 0x41, 0x42, 0x43, 0x61)] == [0xff] * 5
            q.step(SEC)
            assert q.rises(0) == 0
            rtc = q.inb(0x71)
            assert rtc != 0xff, rtc                     # the others are there
    with QTest(machine='pc,pit=auto') as q:
        assert q.inb(0x61) != 0xff


def rtc_on_line_8():
    with QTest('-rtc', 'base=2024-02-28T23:59:50,clock=vm') as q:
        q.intercept_in('ioapic')

        def get(reg):
            q.outb(0x70, reg)
            return q.inb(0x71)

        def put(reg, v):
            q.outb(0x70, reg)
            q.outb(0x71, v)

        assert (get(0x32), get(9), get(8), get(7), get(4), get(2)) == \
            (0x20, 0x24, 2, 0x28, 0x23, 0x59), 'date'
        q.step(15 * SEC)
        assert (get(8), get(7), get(4), get(2)) == (2, 0x29, 0, 0), 'leap day'
        put(0x0b, 0x12)
        get(0x0c)
        q.rises(8)
        q.step(SEC)
        assert q.rises(8) == 1
        assert get(0x0c) & 0x90 == 0x90
        assert not q.levels[8]
        put(0x0b, 0x42)
        get(0x0c)
        n = 0
        for _ in range(64):
            q.step(SEC // 64)
            n += bool(get(0x0c) & 0x40)
        assert n == 64
    text = run_refused('-rtc', 'base=yesterday', '-accel', 'qtest', '-display', 'none')
    assert 'yesterday' in text, text


def hpet_replaces_pit_and_rtc():
    with QTest() as q:
        q.intercept_in('ioapic')
        assert q.readl(HPET + 4) == 10000000
        pit(q, 2, 11932)
        q.step(50 * MS)
        assert q.rises(0) in (5, 6)
        q.writel(HPET + 0x10, 3)                        # enabled, legacy replacement
        q.step(100 * MS)
        q.rises(0)
        q.step(100 * MS)
        assert q.rises(0) == 0                          # the PIT is off the line
        q.writel(HPET + 0x100, 0x4c | 0x100)
        now = q.readl(HPET + 0xf0)
        q.writel(HPET + 0x108, now + 100000)
        q.writel(HPET + 0x108, 100000)
        q.step(SEC)
        assert q.rises(0) == 1000
        q.writel(HPET + 0x10, 0)
        q.step(100 * MS)
        assert q.rises(0) in range(9, 13)               # and comes back
    with QTest('-no-hpet') as q:
        assert q.readl(HPET) == 0xffffffff


# ---- Serial ports ----

def serial_port():
    with QTest('-chardev', 'ringbuf,id=r,size=4096', '-device', 'isa-serial,chardev=r,index=1',
               qmp=True) as q:
        assert q.inb(0x2f8 + 5) == 0x60
        assert q.inb(0x3f8 + 5) == 0xff                 # none at COM1
        q.intercept_in('ioapic')
        q.outb(0x2f8 + 4, 0x0b)
        q.outb(0x2f8 + 1, 0x02)
        assert q.levels[3]
        assert q.inb(0x2f8 + 2) == 0x02
        assert not q.levels[3]


def serial_back_pressure():
    """A reader that stops reading: THRE falls, nothing is lost, and it goes on afterwards."""
    path = f'/tmp/qrt-serial-{os.getpid()}'
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)
    try:
        with QTest('-chardev', f'socket,id=s,path={path}', '-device', 'isa-serial,chardev=s') as q:
            peer = listener.accept()[0]
            peer.settimeout(20)
            q.outb(0x3fa, 0x01)
            sent = bytearray()
            while q.inb(0x3fd) & 0x20:
                chunk = bytes(range(32, 127)) * 20
                take = chunk[:16]
                for b in take:
                    q.outb(0x3f8, b)
                sent += take
                assert len(sent) < 4 << 20, 'the line is never full'
                if len(sent) > 1 << 20:
                    break
                # Most goes by long runs, to be quick.
                if q.inb(0x3fd) & 0x20:
                    q.conn.sendall(b''.join(b'outb 0x3f8 %d\n' % b for b in take) * 64)
                    for _ in range(16 * 64):
                        assert q.readline() == 'OK'
                    room = q.inb(0x3fd) & 0x20
                    if room:
                        sent += take * 64
                    else:
                        break                           # how much was taken is not known here
            got = bytearray()
            while len(got) < len(sent):
                data = peer.recv(65536)
                assert data
                got += data
            assert got[:len(sent)] == sent
            for _ in range(200):
                if q.inb(0x3fd) & 0x20:
                    break
                peer.setblocking(False)
                try:
                    while peer.recv(65536):
                        pass
                except BlockingIOError:
                    pass
            assert q.inb(0x3fd) & 0x60 == 0x60
    finally:
        listener.close()
        os.unlink(path)


# ---- Keyboard controller, ports ----

def keyboard_controller():
    with QTest(qmp=True) as q:
        q.intercept_in('ioapic')
        q.outb(0x64, 0xaa)
        assert q.inb(0x64) & 1
        assert q.inb(0x60) == 0x55
        q.rises(1)
        q.outb(0x60, 0xf2)
        assert [q.inb(0x60) for _ in range(3)] == [0xfa, 0xab, 0x41]
        assert q.rises(1) == 3
        q.outb(0x64, 0xd4)
        q.outb(0x60, 0xff)
        assert [q.inb(0x60) for _ in range(3)] == [0xfa, 0xaa, 0x00]
        assert q.rises(12) == 3
        assert q.qmp
        q.outb(0x64, 0xfe)                              # pulses the processor's reset line
        q.qmp.event('RESET')
        assert q.inb(0x64) & 1 == 0
        q.outb(0x92, 0x01)
        q.qmp.event('RESET')


def debug_exit():
    with QTest('-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4') as q:
        q.conn.sendall(b'outl 0xf4 0x10\n')
        assert q.wait(20) == 0x21
    for option, word in (('isa-debug-exit,iobase=0x3f8', 'are taken'),
                         ('isa-debug-exit,iosize=0', 'iosize=0'),
                         ('isa-debug-exit,iobase=x', 'integer'),
                         ('isa-serial,index=4', 'is 4'), ('nothing', 'nothing'),
                         ('hpet', 'hpet'), ('isa-serial,chardev=none', 'none')):
        text = run_refused('-accel', 'qtest', '-display', 'none', '-serial', 'null', '-device', option)
        assert word in text, (option, text)


def test_device():
    with QTest('-device', 'pc-testdev') as q:
        q.outl(0xe0, 0x12345678)
        q.outb(0xe1, 0xff)
        assert q.inl(0xe0) == 0x1234ff78
        q.outl(0xe4, 0x1000)
        q.write(0xff000000, bytes(range(256)))
        assert q.read(0xff000001, 255) == bytes(range(1, 256))
        assert q.readq(0xff000008) == 0x0f0e0d0c0b0a0908


def pci_test_device():
    with QTest('-device', 'pci-testdev,addr=04.0,membar=64K') as q:
        def config(reg, value=None):
            q.outl(0xcf8, 0x80000000 | 4 << 11 | reg)
            if value is not None:
                q.outl(0xcfc, value)
            return q.inl(0xcfc)
        assert config(0) == 0x00051b36 and config(8) >> 16 == 0xff
        for reg, want in ((0x10, 0xfffff000), (0x14, 0xffffff01), (0x18, 0xffff000c), (0x1c, 0xffffffff)):
            assert config(reg, 0xffffffff) == want, (reg, config(reg))
        for reg, value in ((0x10, 0xf0000000), (0x14, 0xc000), (0x18, 0), (0x1c, 2), (4, 3)):
            config(reg, value)
        mem = (lambda a: int(q.cmd(f'readb {a}'), 16), q.readl, lambda a, v: q.cmd(f'writeb {a} {v}'), 0xf0000000)
        io = (q.inb, q.inl, q.outb, 0xc000)
        for read, read4, write, base in (mem, io):
            for test, (name, counts) in enumerate((('no-eventfd', 3), ('wildcard-eventfd', 0), ('datamatch-eventfd', 0))):
                write(base, test)
                assert read(base + 1) == 1 and read4(base + 12) == 0
                text = bytes(read(base + 16 + i) for i in range(32)).rstrip(b'\0').decode()
                assert text == ('mmio-' if base == mem[3] else 'portio-') + name, text
                for _ in range(3):
                    write(base + read4(base + 4), read4(base + 8))
                write(base + read4(base + 4), read4(base + 8) ^ 1)
                write(base + read4(base + 4) + 8, read4(base + 8))
                assert read4(base + 12) == counts, (name, read4(base + 12))
            write(base, 3)
            assert read4(base) == 0 and read(base + 16) == 0
        assert q.readl(0x200000000) == 0xffffffff
    for bad in ('membar=5000', 'membar=1K', 'membar=x'):
        assert 'membar' in run_refused('-accel', 'qtest', '-display', 'none', '-device', f'pci-testdev,{bad}')


def debug_console():
    path = f'/tmp/qrt-debugcon-{os.getpid()}'
    try:
        with QTest('-chardev', f'file,id=f,path={path}', '-device',
                   'isa-debugcon,chardev=f,iobase=0x402') as q:
            assert q.inb(0x402) == 0xe9
            for c in b'hello\n':
                q.outb(0x402, c)
            q.proc.terminate()
            q.wait(20)
        with open(path, encoding='utf-8') as f:
            assert f.read() == 'hello\n'
    finally:
        if os.path.exists(path):
            os.unlink(path)


def reset_restores():
    """After a reset all is as at the start."""
    with QTest('-device', 'pc-testdev', qmp=True) as q:
        pic_init(q)
        q.outb(0x21, 0x55)
        set_rte(q, 5, 0x61)
        q.writel(APIC + 0xf0, 0x1ff)
        q.writel(APIC + 0x80, 0x30)
        pit(q, 2, 1000)
        q.writel(HPET + 0x10, 1)
        q.outl(0xe0, 1)
        q.qmp.cmd('system_reset')
        q.qmp.event('RESET')
        assert q.inb(0x21) != 0x55
        assert ioapic_read(q, 0x1a) == 0x10000
        assert q.readl(APIC + 0x80) == 0
        assert q.readl(HPET + 0x10) == 0
        assert q.inl(0xe0) == 0


main(protocol, every_port_and_page, pic_lines, ioapic_and_apic, apic_timer, pit_on_line_0, no_pit,
     rtc_on_line_8, hpet_replaces_pit_and_rtc, serial_port, serial_back_pressure,
     keyboard_controller, debug_exit, test_device, pci_test_device, debug_console, reset_restores)
