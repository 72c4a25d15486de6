#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Chip set, power management, fw_cfg and firmware tables of the "pc" board, through the program."""
import os
import struct
import sys
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import main  # noqa: E402
from qtest import QTest  # noqa: E402

SEC = 1000000000
PM = 0x600


def cfg(q, slot, fn, reg):
    q.outl(0xcf8, 0x80000000 | slot << 11 | fn << 8 | reg & ~3)


def cfg_read(q, slot, fn, reg):
    cfg(q, slot, fn, reg)
    return q.inl(0xcfc)


def cfg_write8(q, slot, fn, reg, v):
    cfg(q, slot, fn, reg)
    q.outb(0xcfc + (reg & 3), v)


def cfg_write32(q, slot, fn, reg, v):
    cfg(q, slot, fn, reg)
    q.outl(0xcfc, v)


def fw_item(q, key, length):
    q.outw(0x510, key)
    return bytes(q.inb(0x511) for _ in range(length))


def fw_dma(q, key, length, target=0x100000):
    q.write(0x8000, struct.pack('>IIQ', key << 16 | 0x0a, length, target))
    q.outl(0x514, 0)
    q.outl(0x518, struct.unpack('<I', struct.pack('>I', 0x8000))[0])
    assert q.read(0x8000, 4) == b'\0\0\0\0'
    return q.read(target, length)


def fw_files(q):
    count = struct.unpack('>I', fw_item(q, 0x19, 4))[0]
    raw = fw_dma(q, 0x19, 4 + 64 * count)[4:]
    files = {}
    for i in range(count):
        size, key, _, name = struct.unpack('>IHH56s', raw[64 * i:64 * i + 64])
        files[name.rstrip(b'\0').decode()] = (key, size)
    return files


def pm_on(q):
    cfg_write32(q, 1, 3, 0x40, PM)
    cfg_write8(q, 1, 3, 0x80, 1)


def board():
    with QTest() as q:
        found = {cfg_read(q, s, f, 0) for s in range(32) for f in range(8)}
        assert found == {0x12378086, 0x70008086, 0x71138086, 0xffffffff}, [hex(x) for x in found]
        # The ROM below 4 GiB and its upper part below 1 MiB are the same; writes do nothing.
        assert q.read(0xffff0000, 0x10000) == q.read(0xf0000, 0x10000)
        assert q.read(0xffff0, 1) == b'\xea'
        q.writel(0xfffffff0, 0)
        assert q.read(0xfffffff0, 1) == b'\xea'
        # RAM ends where -m says.
        q.writel(0x3fffffc, 0x1234)
        assert q.readl(0x3fffffc) == 0x1234
        assert q.readl(0x4000000) == 0xffffffff


def shadow_ram():
    with QTest() as q:
        rom = q.readl(0xf0000)
        cfg_write8(q, 0, 0, 0x59, 0x30)
        q.writel(0xf0000, ~rom & 0xffffffff)
        assert q.readl(0xf0000) == ~rom & 0xffffffff
        cfg_write8(q, 0, 0, 0x59, 0x10)
        q.writel(0xf0000, 1)
        assert q.readl(0xf0000) == ~rom & 0xffffffff
        cfg_write8(q, 0, 0, 0x59, 0)
        assert q.readl(0xf0000) == rom


def pirq_routing():
    with QTest() as q:
        cfg_write32(q, 1, 0, 0x60, 0x0b0b0a0a)
        assert cfg_read(q, 1, 0, 0x60) == 0x0b0b0a0a
        cfg_write32(q, 1, 0, 0x60, 0xffffffff)
        assert cfg_read(q, 1, 0, 0x60) == 0x8f8f8f8f


def pm_timer():
    with QTest() as q:
        pm_on(q)
        t0 = q.inl(PM + 8)
        q.step(SEC)
        assert (q.inl(PM + 8) - t0) & 0xffffff == 3579545
        q.intercept_in('ioapic')
        q.outw(PM + 2, 1)
        q.outb(0xb2, 0xf1)
        assert q.inw(PM + 4) & 1
        q.step(2 * SEC)
        assert q.levels.get(9)
        q.outw(PM, 1)
        assert not q.levels[9]


def power_button():
    with QTest(qmp=True) as q:
        pm_on(q)
        q.intercept_in('ioapic')
        q.outw(PM + 2, 0x100)
        q.outb(0xb2, 0xf1)
        q.qmp.cmd('system_powerdown')
        q.qmp.event('POWERDOWN')
        assert q.inw(PM) & 0x100
        assert q.levels.get(9)
        q.outw(PM, 0x100)
        assert not q.levels[9]


def soft_off():
    with QTest() as q:
        pm_on(q)
        q.raw('outw %#x 0x2001' % (PM + 4))
        assert q.wait() == 0


def reset_register():
    with QTest(qmp=True) as q:
        q.qmp.cmd('query-status')           # connects, so that no event is missed
        cfg_write8(q, 0, 0, 0x59, 0x30)
        q.writel(0x1000, 0x1234)
        q.outb(0xcf9, 6)
        q.qmp.event('RESET')
        assert cfg_read(q, 0, 0, 0x58) >> 8 & 0xff == 0
        assert q.readl(0x1000) == 0x1234    # memory keeps its contents


def firmware_config():
    uuid = '01234567-89ab-cdef-0123-456789abcdef'
    with QTest('-smp', '2,maxcpus=4', '-uuid', uuid) as q:
        assert fw_item(q, 0, 4) == b'QEMU'
        assert fw_item(q, 1, 4) == b'\3\0\0\0'
        assert fw_item(q, 2, 16).hex() == uuid.replace('-', '')
        assert struct.unpack('<Q', fw_item(q, 3, 8))[0] == 64 << 20
        assert struct.unpack('<H', fw_item(q, 5, 2))[0] == 2
        assert struct.unpack('<H', fw_item(q, 15, 2))[0] == 4
        files = fw_files(q)
        key, size = files['etc/e820']
        assert fw_dma(q, key, size) == struct.pack('<QQI', 0, 64 << 20, 1)
        key, size = files['etc/system-states']
        assert fw_dma(q, key, size) == b'\x80\0\0\1\x82\x80'
        for name in ('etc/acpi/tables', 'etc/acpi/rsdp', 'etc/table-loader', 'bootorder',
                     'etc/smbios/smbios-tables', 'etc/smbios/smbios-anchor', 'etc/boot-fail-wait'):
            assert name in files, name


CPU_TYPE = 'qemu64-x86_64-cpu'


def madt_flags(q):
    """Of each CPU's entry, as firmware finds them."""
    key, size = fw_files(q)['etc/acpi/tables']
    tables = fw_dma(q, key, size)
    at = tables.index(b'APIC') + 44
    return [tables[at + 8 * i + 4] for i in range(4)]


def plugged_cpu():
    """What a guest that runs is told of CPUs that come, and what firmware finds at the next start."""
    with QTest('-smp', '1,maxcpus=4,sockets=2,cores=2', '-S', qmp=True) as q:
        def place(n):
            return {'driver': CPU_TYPE, 'socket-id': n // 2, 'core-id': n % 2, 'thread-id': 0}

        q.qmp.cmd('device_add', **place(2))     # nothing has run yet: it is just there
        pm_on(q)
        q.intercept_in('ioapic')
        q.outb(0xb2, 0xf1)
        q.outw(PM + 0xe, 4)
        assert q.inw(PM + 0xc) == 0
        assert madt_flags(q) == [1, 0, 1, 0]
        q.qmp.cmd('cont')
        q.qmp.cmd('device_add', **place(3))
        q.qmp.cmd('device_add', **place(1))
        assert q.inw(PM + 0xc) == 4 and q.levels.get(9), q.levels
        found = []
        for _ in range(3):                      # as ssdt-cpus.asl does
            q.outb(0xaf05, 0)
            if not q.inb(0xaf04) & 2:
                break
            found.append(q.inl(0xaf08))
            q.outb(0xaf04, 2)
        assert sorted(found) == [1, 3], found
        q.outw(PM + 0xc, 4)
        assert not q.levels.get(9)
        for n in range(4):
            q.outl(0xaf00, n)
            assert q.inb(0xaf04) == 1
            q.outb(0xaf05, 3)
            assert (q.inl(0xaf08), q.inl(0xaf00)) == (n, 0)
        q.outl(0xaf00, 4)                       # no such place
        assert q.inl(0xaf08) == 0 and q.inb(0xaf04) == 0
        q.outb(0xaf04, 0xff)
        q.outl(0xaf00, 0xffffffff)
        q.outb(0xaf05, 0)
        assert q.inl(0xaf08) == 0
        assert madt_flags(q) == [1, 1, 1, 1]
        q.outl(0xaf00, 0)                       # one of -smp's stays
        q.outb(0xaf04, 8)
        assert q.inb(0xaf04) == 1
        q.qmp.cmd('device_del', id='/machine/peripheral-anon/device[1]')
        assert q.inw(PM + 0xc) == 4
        q.outb(0xaf05, 0)
        assert (q.inl(0xaf08), q.inb(0xaf04)) == (3, 5)
        q.outb(0xaf04, 4)
        assert q.inb(0xaf04) == 1
        for command, value in ((1, 3), (2, 0x84)):  # _OST: ejection in progress
            q.outb(0xaf05, command)
            q.outl(0xaf08, value)
        info = q.qmp.event('ACPI_DEVICE_OST')['data']['info']
        assert info == {'slot': '3', 'slot-type': 'CPU', 'source': 3, 'status': 0x84}, info
        reports = q.qmp.cmd('query-acpi-ospm-status')
        assert [r['slot'] for r in reports] == ['0', '1', '2', '3'] and reports[3] == info, reports
        assert {(r['source'], r['status']) for r in reports[:3]} == {(0, 0)}, reports
        q.outb(0xaf04, 8)
        assert q.inb(0xaf04) == 0
        q.outb(0xaf04, 8)                       # once is enough
        assert q.qmp.event('DEVICE_DELETED')['data'] == {'path': '/machine/peripheral-anon/device[1]'}
        assert madt_flags(q) == [1, 1, 1, 0]
        q.qmp.cmd('device_add', **place(3))
        assert struct.unpack('<H', fw_item(q, 5, 2))[0] == 4
        q.outb(0x70, 0x5f)
        assert q.inb(0x71) == 3
    with QTest('-smp', '2', qmp=True) as q:     # no places, no registers
        assert q.inl(0xaf08) == 0xffffffff
        assert q.qmp.cmd('query-acpi-ospm-status') == []


def table_loader():
    """Does what a firmware does with the linker commands; all check sums must come out."""
    with QTest('-smp', '3') as q:
        files = fw_files(q)
        data, base = {}, {}
        where = 0x200000
        key, size = files['etc/table-loader']
        commands = fw_dma(q, key, size)
        assert size and size % 128 == 0
        for o in range(0, size, 128):
            e = commands[o:o + 128]
            cmd = struct.unpack('<I', e[:4])[0]
            name = e[4:60].rstrip(b'\0').decode()
            if cmd == 1:
                key, length = files[name]
                data[name] = bytearray(fw_dma(q, key, length))
                align = struct.unpack('<I', e[60:64])[0]
                where = where + align - 1 & ~(align - 1)
                base[name] = where
                where += length
            elif cmd == 2:
                src = e[60:116].rstrip(b'\0').decode()
                off, n = struct.unpack('<IB', e[116:121])
                fmt = {4: '<I', 8: '<Q'}[n]
                old = struct.unpack(fmt, data[name][off:off + n])[0]
                data[name][off:off + n] = struct.pack(fmt, old + base[src])
            else:
                assert cmd == 3
                off, start, length = struct.unpack('<III', e[60:72])
                data[name][off] = (data[name][off] - sum(data[name][start:start + length])) & 255
        rsdp, tables = data['etc/acpi/rsdp'], data['etc/acpi/tables']
        assert sum(rsdp) & 255 == 0 and rsdp[:8] == b'RSD PTR '
        at = struct.unpack('<Q', rsdp[24:32])[0] - base['etc/acpi/tables']
        length = struct.unpack('<I', tables[at + 4:at + 8])[0]
        names = set()
        for p in range(at + 36, at + length, 8):
            t = struct.unpack('<Q', tables[p:p + 8])[0] - base['etc/acpi/tables']
            n = struct.unpack('<I', tables[t + 4:t + 8])[0]
            assert sum(tables[t:t + n]) & 255 == 0
            names.add(bytes(tables[t:t + 4]))
        assert names == {b'FACP', b'SSDT', b'APIC', b'HPET'}, names


def multiboot_header(flags):
    return struct.pack('<III', 0x1badb002, flags, -(0x1badb002 + flags) & 0xffffffff)


def direct_boot():
    """What the board leaves in memory for a kernel, and again after a reset."""
    with tempfile.TemporaryDirectory() as tmp:
        kernel, module = os.path.join(tmp, 'k'), os.path.join(tmp, 'm')
        head = multiboot_header(0x10003) + struct.pack('<IIIII', 0x200000, 0x200000, 0, 0x210000,
                                                       0x200020)
        with open(kernel, 'wb') as f:
            f.write(head + b'\xf4' * 0x1000)
        with open(module, 'wb') as f:
            f.write(b'the module')
        with QTest('-kernel', kernel, '-append', 'a b', '-initrd', module + ' x',
                   qmp=True) as q:
            q.qmp.cmd('query-status')
            for _ in range(2):
                assert q.read(0x200000, 12) == head[:12]
                assert q.read(0xe0000, 8) == b'RSD PTR '
                assert q.read(0xf0000, 4) == b'_SM_'
                assert sum(q.read(0xe0000, 36)) & 255 == 0
                assert cfg_read(q, 1, 3, 0x40) == 0x601
                assert cfg_read(q, 1, 0, 0x60) == 0x0b0b0a0a
                assert q.inb(0x4d1) == 0x0e
                assert q.inb(0x21) == 0xfa and q.inb(0xa1) == 0xff
                assert q.read(0x210000, 10) == b'the module'
                assert q.readl(0x20f000) == 0
                q.writel(0x200000, 0)
                q.writel(0x20f000, 5)
                q.writel(0x210000, 0)
                q.writel(0xf0000, 0)    # write-protected
                assert q.read(0xf0000, 4) == b'_SM_'
                q.writel(0xe0000, 0)    # not: the FACS, which a guest writes, is in this segment
                q.outb(0xcf9, 6)
                q.qmp.event('RESET')


def firmware_files_of_the_user():
    data = bytes(range(256)) * 300
    long = 'opt/' + 'n' * 51
    with tempfile.NamedTemporaryFile() as f, tempfile.NamedTemporaryFile('w') as config:
        f.write(data)
        f.flush()
        config.write('[fw_cfg]\nname = "opt/from.config"\nstring = "c,d"\n')
        config.flush()
        with QTest('-fw_cfg', f'name=opt/org.test/file,file={f.name}', '-fw_cfg', 'opt/text,string=a,,b=c',
                   '-fw_cfg', f'{long},string=', '-fw_cfg', 'etc/mine,string=x', '-readconfig',
                   config.name) as q:
            files = fw_files(q)
            key, size = files['opt/org.test/file']
            assert size == len(data) and fw_dma(q, key, size) == data
            assert fw_item(q, key, 300) == data[:300]
            for name, text in (('opt/text', b'a,b=c'), ('etc/mine', b'x'), ('opt/from.config', b'c,d')):
                key, size = files[name]
                assert size == len(text) and fw_item(q, key, size + 1) == text + b'\0', name
            assert files[long][1] == 0
            q.pump(0.2)
            assert q.text().count("does not begin with 'opt/'") == 1 and "'etc/mine'" in q.text(), q.text()


main(board, firmware_files_of_the_user, plugged_cpu, shadow_ram, pirq_routing, pm_timer, power_button, soft_off, reset_register,
     firmware_config, table_loader, direct_boot)
