#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The human monitor's help and info commands: what they show is what the hardware was told."""
import os
import re
import sys
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, kernel, main, skip  # noqa: E402
from qtest import QTest  # noqa: E402


def hmp(g, line):
    return g.qmp.cmd('human-monitor-command', **{'command-line': line}).replace('\r\n', '\n')


def idle(*args):
    return Guest('-accel', 'tcg', '-m', '16', '-nodefaults', '-display', 'none', *args, '-S', qmp=True,
                 stdin=False)


def info_and_help_list():
    with idle() as g:
        every = hmp(g, 'help')
        topics = [line.split(' -- ')[0].split(' [')[0] for line in hmp(g, 'info').splitlines()]
        for topic in ('pci', 'pic', 'lapic', 'qom-tree', 'qtree', 'version', 'name', 'uuid', 'kvm', 'chardev',
                      'status', 'cpus', 'registers', 'mtree'):
            assert f'info {topic}' in topics, topics
        for topic in topics:
            assert topic in every
            assert 'unknown' not in hmp(g, topic), topic
            assert hmp(g, 'help ' + topic).startswith(topic), topic
        assert hmp(g, 'help info').count('\n') == len(topics) + 1
        assert hmp(g, 'help x') == 'x /fmt addr -- dump memory at a linear address\n'
        assert hmp(g, '? cont').startswith('cont --') and 'xp /fmt' in hmp(g, '?')
        for line in ('help nonsense', 'info nonsense', 'nonsense', 'help inf'):
            assert 'unknown command' in hmp(g, line), line


def info_pci():
    with QTest(qmp=True) as q:
        text = hmp(q, 'info pci')
        assert 'Bus  0, device   0, function 0:\n    Host bridge: PCI device 8086:1237' in text, text
        assert 'ISA bridge: PCI device 8086:7000' in text and '8086:7113' in text, text
        assert 'IRQ 0, pin A' in text
        q.outl(0xcf8, 0x80000000 | 1 << 11 | 3 << 8 | 0x3c)
        q.outb(0xcfc, 9)
        assert 'IRQ 9, pin A' in hmp(q, 'info pci')


def info_pic():
    with QTest(qmp=True) as q:
        for port, base in ((0x20, 0x30), (0xa0, 0x38)):
            q.outb(port, 0x11)
            for v in (base, 4 if port == 0x20 else 2, 1, 0xfe):
                q.outb(port + 1, v)
        q.outb(0x4d1, 0x0c)
        text = hmp(q, 'info pic')
        assert 'pic0: irr=00 imr=fe isr=00 hprio=0 irq_base=30' in text, text
        assert 'pic1: irr=00 imr=fe isr=00 hprio=0 irq_base=38' in text and 'elcr=0c' in text, text
        assert text.count('masked') == 24
        for index, v in ((0x10 + 2 * 9, 0xa9e1), (0x11 + 2 * 9, 3 << 24)):
            q.writel(0xfec00000, index)
            q.writel(0xfec00010, v)
        text = hmp(q, 'info pic')
        assert 'pin 9  0x030000000000a9e1 dest=3 vec=225 active-lo level lowest logical\n' in text, text
        assert text.count('masked') == 23


def info_irq():
    with QTest(qmp=True) as q:
        first = hmp(q, 'info irq')
        assert first.split() == 'IRQ statistics for ioapic: IRQ statistics for isa-i8259:'.split(), first
        for _ in range(3):
            q.outb(0x43, 0x30)  # channel 0, mode 0: each count raises line 0 once
            q.outb(0x40, 100)
            q.outb(0x40, 0)
            q.step(1000000)
        text = hmp(q, 'info irq')
        assert '\n 0: 3\n' in text.split('isa-i8259')[1], text
        assert '\n 2: 3\n' in text.split('isa-i8259')[0], text


def info_block_and_roms():
    with idle() as g:
        assert hmp(g, 'info block') == ''
        m = re.fullmatch(r'addr=00000000(\w{8}) size=0x(\w{6}) mem=rom name="firmware"\n', hmp(g, 'info roms'))
        assert m and int(m[1], 16) + int(m[2], 16) == 1 << 32, hmp(g, 'info roms')
    with Guest('-machine', 'none', '-accel', 'tcg', '-display', 'none', '-nodefaults', qmp=True) as g:
        assert hmp(g, 'info roms') == '' and hmp(g, 'info irq') == ''
    with Guest('-accel', 'tcg', '-display', 'none', '-nodefaults', '-S', '-kernel', kernel('cloud'), qmp=True) as g:
        text = hmp(g, 'info roms')
        for line in text.splitlines():
            assert re.fullmatch(r'addr=[0-9a-f]{16} size=0x[0-9a-f]{6,} mem=ram name=".+"', line), line
        assert 'name="the kernel"' in text and 'ACPI RSDP' in text and 'firmware' not in text, text


def info_lapic():
    with idle('-smp', '2') as g:
        assert 'local APIC of CPU 0' in hmp(g, 'info lapic') and 'ID 0x00000000' in hmp(g, 'info lapic')
        text = hmp(g, 'info lapic 1')
        assert 'local APIC of CPU 1' in text and 'ID 0x00000001' in text and 'SVR 0x000000ff' in text, text
        text = g.qmp.cmd('human-monitor-command', **{'command-line': 'info lapic', 'cpu-index': 1})
        assert 'local APIC of CPU 1' in text, text
        for bad in ('2', '-1', 'x', '0x'):
            assert 'Error' in hmp(g, 'info lapic ' + bad), bad


def chips_in_the_kernel_are_told():
    if not os.access('/dev/kvm', os.R_OK | os.W_OK):
        skip('no /dev/kvm')
    with Guest('-accel', 'kvm', '-m', '16', '-nodefaults', '-display', 'none', '-S', qmp=True,
               stdin=False) as g:
        assert 'kernel-irqchip=off' in hmp(g, 'info lapic') and 'kernel-irqchip=off' in hmp(g, 'info pic')
    with Guest('-accel', 'kvm,kernel-irqchip=off', '-m', '16', '-nodefaults', '-display', 'none', '-S',
               qmp=True, stdin=False) as g:
        assert 'local APIC of CPU 0' in hmp(g, 'info lapic') and 'pic0:' in hmp(g, 'info pic')


def info_qom_tree():
    with idle('-device', 'isa-debug-exit,id=the-exit') as g:
        text = hmp(g, 'info qom-tree')
        assert text.startswith('/machine\n  /peripheral (container)\n    /the-exit (isa-debug-exit)\n'), text
        assert '/device[0] (qemu64-x86_64-cpu)' in text and '(i440FX)' in text, text
        assert hmp(g, 'info qom-tree /machine/peripheral') == '/peripheral\n  /the-exit (isa-debug-exit)\n'
        assert 'Error' in hmp(g, 'info qom-tree /nonsense')


def firmware(*code):
    """64 KiB: code at F000:0000, at 100h what an NMI runs, which ends the machine by port f4."""
    image = bytearray(b'\xf4' * 65536)
    for at, data in code + ((0x100, 'b0 21 e6 f4 f4'), (0xfff0, 'ea 00 00 00 f0')):
        data = bytes.fromhex(data)
        image[at:at + len(data)] = data
    return image


# Vector 2, then the local APIC in x2APIC mode: enabled, LINT1 an NMI.
TAKES_NMI = ('fa 31c0 8ed8 8ed0 bc0070 c70608000001 c7060a0000f0 66b91b000000 0f32 80cc0c 0f30 66b90f080000'
             '66b8ff010000 6631d2 0f30 66b936080000 66b800040000 0f30 f4 ebfd')


def nmi_reaches_the_guest():
    for command in ('nmi', None):
        with tempfile.NamedTemporaryFile(suffix='.bin') as f:
            f.write(firmware((0, TAKES_NMI)))
            f.flush()
            with Guest('-accel', 'tcg', '-cpu', 'max', '-m', '16', '-nodefaults', '-display', 'none', '-bios', f.name,
                       '-device', 'isa-debug-exit,iobase=0xf4', qmp=True, stdin=False) as g:
                end = time.monotonic() + 20
                while '(halted)' not in hmp(g, 'info cpus'):
                    assert time.monotonic() < end
                    time.sleep(0.02)
                if command:
                    g.qmp.send({'execute': 'human-monitor-command', 'arguments': {'command-line': command}})
                else:
                    g.qmp.send({'execute': 'inject-nmi'})
                assert g.wait(20) == 0x43


def keys_reach_the_keyboard():
    def codes(q, n):
        got, end = [], time.monotonic() + 20
        while len(got) < n:
            assert time.monotonic() < end, got
            if q.inb(0x64) & 1:
                got.append(q.inb(0x60))
        return got
    with QTest(qmp=True) as q:
        for _ in range(16):
            q.inb(0x60)
        assert hmp(q, 'sendkey ctrl-alt-delete') == ''
        assert codes(q, 8) == [0x1d, 0x38, 0xe0, 0x53, 0xe0, 0xd3, 0xb8, 0x9d]
        assert hmp(q, 'sendkey 0x1e-b 60000') == '' and codes(q, 2) == [0x1e, 0x30]
        assert hmp(q, 'sendkey c 1') == ''  # what was held is let go
        assert codes(q, 4) == [0xb0, 0x9e, 0x2e, 0xae]
        for line in ('sendkey', 'sendkey nonsense', 'sendkey a-', 'sendkey a b', 'sendkey a 0', 'sendkey 0x80',
                     'sendkey 0xzz', 'sendkey ' + '-'.join('a' * 17)):
            assert hmp(q, line).startswith('Error: '), line
        assert not q.inb(0x64) & 1
    with idle('-machine', 'none') as g:
        assert 'no keyboard' in hmp(g, 'sendkey a')


def print_computes():
    with idle() as g:
        for line, value in (('print 16', '0x10'), ('print /x $cs', '0xf000'), ('p/d 0x10 - 32', ' -16'),
                            ('p /d $rip + 1', ' 65521'), ('print /c 65', " 'A'"), ('print /o 8', ' 010')):
            assert hmp(g, line) == value + '\n', (line, hmp(g, line))
        for line in ('print', 'print /i 1', 'p /2x 1', 'p $nonsense', 'p 1 2'):
            assert hmp(g, line).startswith('Error: '), line


def the_log_is_switched():
    with tempfile.TemporaryDirectory() as d:
        with idle('-D', d + '/log') as g:
            assert 'Error' in hmp(g, 'log') and 'nonsense' in hmp(g, 'log nonsense')
            assert hmp(g, 'log exec') == '' and hmp(g, 'cont') == ''
            end = time.monotonic() + 20
            while not os.path.exists(d + '/log') or not os.path.getsize(d + '/log'):
                assert time.monotonic() < end
                time.sleep(0.02)
            assert hmp(g, 'log none') == ''
            time.sleep(0.5)  # what is in the log's ring comes out
            size = os.path.getsize(d + '/log')
            g.qmp.cmd('system_reset')
            g.qmp.event('RESET')
            time.sleep(0.5)
            assert os.path.getsize(d + '/log') == size
        with open(d + '/log', encoding='utf-8') as f:
            assert f.readline().startswith('exec: CPU 0 cs f000 rip 000000000000fff0')


def nothing_is_refused_in_silence():
    with idle() as g:
        assert 'not in suspended state' in hmp(g, 'system_wakeup')
        for line in ('info migrate', 'info network', 'info usb', 'savevm x', 'i /b 0x80',
                     'migrate_cancel', 'info usbhost'):
            text = hmp(g, line)
            assert text.startswith('Error: QEMU has') and 'not yet' in text, (line, text)
        assert hmp(g, 'info mem') == hmp(g, 'info tlb') == 'PG disabled\n'


main(nmi_reaches_the_guest, keys_reach_the_keyboard, print_computes, the_log_is_switched, nothing_is_refused_in_silence, info_and_help_list, info_pci, info_pic, info_irq, info_block_and_roms, info_lapic, chips_in_the_kernel_are_told, info_qom_tree)
