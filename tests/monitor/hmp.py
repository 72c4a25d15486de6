#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The human monitor's help and info commands: what they show is what the hardware was told."""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, main, skip  # noqa: E402
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


main(info_and_help_list, info_pci, info_pic, info_lapic, chips_in_the_kernel_are_told, info_qom_tree)
