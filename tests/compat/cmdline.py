#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts put on QEMU's command line for a headless guest: taken where it asks for what is done
anyway, done where there is something to do, refused with a reason where it asks for what is not there."""
import os
import re
import subprocess
import sys
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import BINARY, TOP, Guest, main, run_refused, skip  # noqa: E402
from qtest import QTest  # noqa: E402

BASE = ('-accel', 'tcg', '-m', '16', '-nodefaults')


def hmp(g, line):
    return g.qmp.cmd('human-monitor-command', **{'command-line': line})


def what_asks_for_nothing_is_taken():
    for args in (['-net', 'none'], ['-nic', 'none'], ['-audio', 'none'],
                 ['-smp', '2,sockets=1,dies=1,clusters=1,cores=2,threads=1'], ['-machine', 'graphics=off'], ['-vga', 'none'], ['-parallel', 'none'],
                 ['-display', 'none'], ['-vnc', 'none'], ['-no-user-config'], ['-sandbox', 'off'],
                 ['-snapshot'], ['-k', 'en-us'], ['-k', 'de'], ['-no-fd-bootchk'], ['-boot', 'c'],
                 ['-boot', 'order=cdn,menu=off,strict=on'], ['-boot', 'once=d,splash-time=100,menu=on'],
                 ['-machine', 'usb=off,vmport=off,smm=off'], ['-machine', 'hpet=off,acpi=off'],
                 ['-machine', 'pc,kernel_irqchip=on,dump_guest_core=off,mem_merge=off'],
                 ['-machine', 'vmport=auto,pit=off'],
                 ['-global', 'PIIX4_PM.disable_s3=1', '-global', 'mc146818rtc.lost_tick_policy=slew'],
                 ['-no-hpet', '-no-acpi']):
        with Guest(*BASE, *args, '-S', qmp=True, stdin=False) as g:
            assert g.qmp.cmd('query-status')['status'] == 'prelaunch'
            assert g.text() == '', (args, g.text())
            g.qmp.cmd('quit')
            assert g.wait() == 0


def what_is_not_there_is_refused_with_a_reason():
    for args, words in ((['-net', 'user'], 'use none'), (['-nic', 'user'], 'use none'),
                        (['-vga', 'std'], 'use none'), (['-vnc', ':0'], 'use none'),
                        (['-parallel', 'stdio'], 'use none'), (['-k', 'xx'], 'en-us'),
                        (['-drive', 'file=x'], '-kernel'), (['-hda', 'x'], '-kernel'),
                        (['--hda', 'x'], '-kernel'), (['-cdrom', 'x'], '-kernel'),
                        (['-netdev', 'user,id=x'], '-nic none'), (['-usb'], 'no USB'),
                        (['-usbdevice', 'tablet'], 'no USB'), (['-sdl'], '-display none'),
                        (['-curses'], '-display none'), (['-incoming', 'tcp:0:1'], 'migrated'),
                        (['-no-kvm'], '-accel'), (['-localtime'], '-rtc base='), (['-gdb', 'tcp::1'], 'debugger'),
                        (['-machine', 'usb=on'], 'say off'), (['-machine', 'vmport=on'], 'say off'),
                        (['-machine', 'kernel_irqchip=maybe'], "'split'"), (['-sandbox', 'on'], 'use off'),
                        (['-boot', 'order=z'], 'a and b (floppy)'), (['-boot', 'menu=maybe'], "'on' or 'off'"),
                        (['-audio', 'alsa'], 'use none'), (['-smp', '2,clusters=2'], 'no clusters'),
                        (['-option-rom', 'x'], 'leave it out'), (['-preconfig'], 'leave it out'),
                        (['-machine', 'q35'], 'use pc'), (['-machine', 'pc-q35-7.2'], 'use pc'),
                        (['-machine', 'microvm'], 'use pc'), (['-machine', 'pc-i440fx-1.0'], 'use pc'),
                        (['-device', 'virtio-net-pci,netdev=x'], 'QEMU has the device'),
                        (['-device', 'usb-tablet'], 'QEMU has the device'), (['-device', 'VGA'], 'not yet'),
                        (['-device', 'loader,file=x'], 'not yet'), (['-device', 'i6300esb,help'], 'not yet'),
                        (['-device', 'nonsense,help'], 'not a valid device'),
                        (['-machine', 'q35,help'], 'use pc'), (['-accel', 'nonsense,help'], '-accel help'),
                        (['-nonsense'], '-help lists'), (['disk.img'], 'disk images'),
                        (['-global', 'isa-serial.nonsense=1'], 'isa-serial,help'),
                        (['-global', 'PIIX4_PM.disable_s3=x'], 'integer'), (['-global', 'foo'], 'DRIVER.PROPERTY'),
                        (['-fw_cfg', ''], 'the name is missing'), (['-fw_cfg', 'opt/x'], 'file= or string='),
                        (['-fw_cfg', 'opt/x,string=a,file=b'], 'file= or string='),
                        (['-fw_cfg', f'opt/{"x" * 52},string=a'], '55 bytes'),
                        (['-fw_cfg', 'opt/x,file=/none'], '/none'), (['-fw_cfg', 'opt/x,string=a', '-machine',
                                                                     'none'], "machine 'none'"),
                        (['-fw_cfg', 'opt/x,string=a', '-fw_cfg', 'opt/x,string=b'], 'exists already')):
        text = run_refused(*BASE, '-display', 'none', *args)
        assert text.count('\n') == 0 and args[0] in text and words in text, (args, text)


def a_cache_of_another_size_is_told():
    for args, size, used, cpus in ((['-accel', 'tcg,tb-size=1'], 1, 2, 1), (['-accel', 'tcg,tb-size=3', '-smp', '4'], 3, 8, 4),
                                   (['-accel', 'tcg,tb-size=0'], 0, 0, 0), (['-accel', 'tcg,tb-size=2'], 0, 0, 0),
                                   (['-accel', 'tcg,tb-size=8', '-smp', '4'], 0, 0, 0)):
        with Guest('-m', '16', '-display', 'none', '-nodefaults', '-S', *args, qmp=True, stdin=False) as g:
            g.qmp.cmd('quit')
            assert g.wait() == 0
            lines = [l for l in g.text().splitlines() if l.strip()]
            assert len(lines) == (1 if size else 0), (args, lines)
            if size:
                assert f'tb-size={size}:' in lines[0] and f'using {used} MiB for {cpus}' in lines[0], lines


def globals_are_defaults():
    with Guest(*BASE, '-display', 'none', '-global', 'isa-debugcon.readback=3', '-chardev', 'null,id=n',
               '-chardev', 'null,id=m', '-device', 'isa-debugcon,chardev=n,iobase=0x402', '-device',
               'isa-debugcon,chardev=m,readback=5', '-global', 'driver=PIIX4_PM,property=disable_s3,value=1',
               '-global', 'no-such-device.x=1', '-S', qmp=True, stdin=False) as g:
        text = hmp(g, 'info qtree')
        g.pump(0.2)
        assert "there is no device 'no-such-device'" in g.text() and 'warning' in g.text(), g.text()
    assert 'readback = 3' in text and 'readback = 5' in text, text
    assert 'disable_s3 = 1' in text, text


def firmware_is_looked_for_where_it_is_said_to_be():
    with tempfile.TemporaryDirectory() as d:
        with open(d + '/mine.bin', 'wb') as f:
            f.write(b'\x5a' * 65536)
        with QTest('-L', '/no/such/dir', '-L', d, '-bios', 'mine.bin') as q:
            assert q.read(0xfffffff0, 4) == b'\x5a' * 4
        text = run_refused(*BASE, '-display', 'none', '-bios', 'mine.bin')
        assert '-bios' in text and 'mine.bin' in text, text


def kvm_without_extensions_is_told():
    if not os.access('/dev/kvm', os.R_OK | os.W_OK):
        skip('no /dev/kvm')
    with open('/proc/cpuinfo', encoding='utf-8') as f:
        flags = next((line for line in f if line.startswith('flags')), 'vmx').split()
    with Guest('-accel', 'kvm', '-m', '16', '-nodefaults', '-display', 'none', '-S', qmp=True, stdin=False) as g:
        g.qmp.cmd('query-status')
        g.pump(0.2)
        lines = [line for line in g.text().splitlines() if 'hardware virtualisation' in line]
    if 'vmx' in flags or 'svm' in flags:
        assert not lines, lines
    else:
        assert len(lines) == 1 and 'warning' in lines[0] and '-accel tcg' in lines[0], lines


def messages_quote_what_was_typed():
    with Guest(*BASE, '-display', 'none', '-global', 'nothing.lost_tick_policy=discard', '-S', qmp=True,
               stdin=False) as g:
        g.qmp.cmd('query-status')
        g.pump(0.2)
        assert '-global nothing.lost_tick_policy=discard: ' in g.text(), g.text()
    text = run_refused('-accel', 'tcg', '-m', '16', '-nographic', '-daemonize')
    assert '-nographic: cannot use stdio with -daemonize' in text and 'mon:' not in text, text


def properties(*args):
    r = subprocess.run([BINARY, *args], capture_output=True, text=True, timeout=30, check=True)
    return set(re.findall(r'^ +([a-z-]+)=<', r.stdout, re.M)), r.stdout


def help_lists_the_properties_of_one():
    tcg, text = properties('-accel', 'tcg,help')
    assert {'one-insn', 'exact-flags', 'tb-size', 'thread', 'state-log', 'state-flip'} <= tcg, text
    kvm, text = properties('-accel', 'kvm,help')
    assert 'kernel-irqchip' in kvm and not kvm & tcg, text
    machine, text = properties('-machine', 'pc,help')
    assert {'usb', 'smm', 'vmport', 'graphics', 'hpet', 'acpi'} <= machine, text
    display = subprocess.run([BINARY, '-display', 'help'], capture_output=True, text=True, timeout=30, check=True)
    assert 'none' in display.stdout.split('\n'), display


def manual_and_help_name_every_property():
    """Of the groups whose keys are fixed: what help lists, the table describes."""
    with open(os.path.join(TOP, 'qemu-options.hx'), encoding='utf-8') as f:
        parts = re.split(r'^(?=-[a-zA-Z])', f.read(), flags=re.M)
    table = {re.split(r'[ |\n]', p)[0]: p for p in parts}
    for option, arg in (('-machine', 'pc,help'), ('-accel', 'tcg,help'), ('-accel', 'kvm,help'), ('-smp', 'help'),
                        ('-m', 'help'), ('-boot', 'help'), ('-action', 'help'), ('-rtc', 'help'), ('-msg', 'help'),
                        ('-overcommit', 'help'), ('-realtime', 'help'), ('-icount', 'help')):
        for key in properties(option, arg)[0] - {'type'}:
            assert re.search(rf'(?<![a-z-]){key}(?![a-z-])', table[option]), (option, key)


def cmos(q, index):
    q.outb(0x70, index)
    return q.inb(0x71)


def fw_item(q, key, length):
    q.outw(0x510, key)
    return bytes(q.inb(0x511) for _ in range(length))


def the_boot_order_reaches_the_firmware():
    with QTest() as q:
        assert (cmos(q, 0x3d), cmos(q, 0x38)) == (0x12, 0x31)
        assert fw_item(q, 0x0e, 2) == b'\0\0'
    with QTest('-boot', 'order=dn,once=c,menu=on,splash-time=1000', qmp=True) as q:
        assert (cmos(q, 0x3d), cmos(q, 0x38)) == (0x02, 0x01)
        assert fw_item(q, 0x0e, 2) == b'\1\0'
        for _ in range(2):
            q.qmp.cmd('system_reset')
            q.qmp.event('RESET')
            assert (cmos(q, 0x3d), cmos(q, 0x38)) == (0x43, 0x01)


main(what_asks_for_nothing_is_taken, what_is_not_there_is_refused_with_a_reason, a_cache_of_another_size_is_told, globals_are_defaults,
     firmware_is_looked_for_where_it_is_said_to_be, kvm_without_extensions_is_told,
     messages_quote_what_was_typed, help_lists_the_properties_of_one, manual_and_help_name_every_property,
     the_boot_order_reaches_the_firmware)
