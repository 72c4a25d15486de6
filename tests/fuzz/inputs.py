#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the fuzz targets begin with. Usage: inputs.py DIRECTORY

Writes DIRECTORY/TARGET/NAME: seeds, made here, and what was found (found.txt).
"""
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


# ---- Devices: see device.c for the operations ----

def wr(rng, off, value, size=1):
    n = {1: 0, 2: 1, 4: 2, 8: 3}[size]
    return bytes([n << 4, rng]) + struct.pack('<H', off) + value.to_bytes(size, 'little')


def rd(rng, off, size=1):
    return bytes([6 | {1: 0, 2: 1, 4: 2, 8: 3}[size] << 4, rng]) + struct.pack('<H', off)


def step(mantissa, exponent):
    return bytes([8, mantissa - 1, exponent])


def outside(what, value=0):
    return bytes([10, what, value])


def ram(off, data):
    return bytes([9]) + struct.pack('<HB', off, len(data)) + data


def dma(control, length, address):
    return bytes([13]) + struct.pack('<IIQ', control, length, address)


RUN = b'\x0b'
RESET = b'\x0e\x5a'


def cpu(n):
    return bytes([12, n])


def pic_init(vector, chip):
    return wr(chip, 0, 0x11) + wr(chip, 1, vector) + wr(chip, 1, 4 if chip == 0 else 2) + wr(chip, 1, 1)


def cmos(reg, value):
    return wr(0, 0, reg) + wr(0, 1, value)


def pins(*numbers):
    return b''.join(outside(6 | 8, n) + outside(6, n) for n in numbers)


DEVICES = {
    'pic': {
        'init': pic_init(0x20, 0) + pic_init(0x28, 1) + wr(0, 1, 0) + wr(1, 1, 0) + pins(1, 8, 12) +
                wr(0, 0, 0x0a) + rd(0, 0) + wr(0, 0, 0x20) + wr(2, 0, 0x18, 2) + pins(3, 4),
        'modes': wr(0, 0, 0x19) + wr(0, 1, 8) + wr(0, 1, 0x1f) + wr(0, 0, 0x68) + wr(0, 0, 0xc2) + pins(0, 5, 7) +
                 wr(0, 0, 0x0c) + rd(0, 0) + RESET + rd(0, 1, 2),
    },
    'pit': {
        f'mode{m}': wr(0, 3, c << 6 | 0x30 | m << 1) + wr(0, c, 0x10) + wr(0, c, 0x02) + wr(1, 0, 3) + step(200, 12) +
                    wr(0, 3, 0xc0 | 2 << c) + rd(0, c) + rd(0, c) + rd(1, 0) + step(255, 20)
        for m in range(6) for c in (0, 2)
    },
    'rtc': {
        'periodic': cmos(0xa, 0x26) + cmos(0xb, 0x72) + step(255, 20) + wr(0, 0, 0xc) + rd(0, 1),
        'alarm': cmos(0xb, 0x82) + cmos(1, 0xff) + cmos(3, 0xc0) + cmos(5, 0xc0) + cmos(0xb, 0x22) + step(255, 23) +
                 wr(0, 0, 0xc) + rd(0, 1) + RESET,
        'date': b''.join(cmos(r, 0x99) for r in (0, 2, 4, 6, 7, 8, 9, 0x32)) + step(255, 23) + rd(0, 1, 2),
    },
    'ioapic': {
        'route': b''.join(wr(0, 0, 0x10 + n) + wr(0, 0x10, (0x8000 if n & 2 else 0) | 0x30 + n, 4)
                          for n in range(48)) + pins(0, 2, 9, 23) + wr(1, 0x40, 0x39, 4) + rd(0, 0x10, 4),
    },
    'apic': {
        'timer': wr(0, 0xf0, 0x1ff, 4) + wr(0, 0x3e0, 0xb, 4) + wr(0, 0x320, 0x20040, 4) + wr(0, 0x380, 1000, 4) +
                 step(100, 12) + rd(0, 0x390, 4) + wr(0, 0xb0, 0, 4),
        'ipi': wr(0, 0xf0, 0x1ff, 4) + wr(0, 0x310, 0xff000000, 4) +
               b''.join(wr(0, 0x300, v, 4) for v in (0xc0041, 0x4500, 0x4608, 0x0c4500, 0x84041, 0x40400)) +
               cpu(2) + rd(0, 0x280, 4) + wr(0, 0xe0, 0x0fffffff, 4) + wr(0, 0xd0, 0x01000000, 4),
        'x2': wr(2, 0, 0xfee00d00, 8) + wr(1, 0xf, 0x1ff, 8) + wr(1, 0x30, 0xffffffff00000041, 8) + rd(1, 2, 8) +
              wr(1, 0x3f, 0x41, 8) + wr(1, 0x32, 0x40040, 8) + wr(3, 0, 1000000, 8) + step(255, 16) + rd(3, 0, 8),
        'msi': wr(0, 0xf0, 0x1ff, 4) + wr(4, 0x1000, 0x41, 4) + wr(4, 0x2008, 0xc141, 4),
    },
    'hpet': {
        'periodic': wr(0, 0x10, 1, 8) + wr(0, 0x100, 0x4c, 8) + wr(0, 0x108, 1000, 8) + wr(0, 0x108, 500, 8) +
                    step(255, 12) + rd(0, 0xf0, 8) + wr(0, 0x20, 7, 8) + wr(0, 0x100, 0x104, 4),
        'legacy': wr(0, 0x10, 3, 8) + wr(0, 0x120, 0x0406, 8) + wr(0, 0x128, 100, 8) + step(10, 10) + wr(0, 0x10, 0, 8) +
                  wr(0, 0xf0, 0xffffffffffffff00, 8) + wr(0, 0x10, 1, 8) + step(255, 14),
    },
    'uart': {
        'talk': wr(0, 3, 0x83) + wr(0, 0, 1) + wr(0, 1, 0) + wr(0, 3, 3) + wr(0, 2, 0xc7) + wr(0, 1, 15) + wr(0, 4, 0xb) +
                wr(0, 0, 0x41) + outside(0xf8, 0x42) + rd(0, 2) + rd(0, 0) + rd(0, 5) + step(100, 14) + rd(0, 6),
        'loop': wr(0, 4, 0x1f) + wr(0, 2, 1) + b''.join(wr(0, 0, i) for i in range(20)) + step(255, 16) + rd(0, 0, 4) +
                wr(0, 3, 0x43) + RESET,
    },
    'i8042': {
        'keys': wr(1, 0, 0x60) + wr(0, 0, 0x47) + outside(9, 0x1e) + outside(1, 0x1e) + RUN + rd(0, 0) + rd(1, 0) +
                b''.join(wr(0, 0, v) for v in (0xff, 0xed, 7, 0xf0, 2, 0xf3, 0x20, 0xf2, 0xf4)) + rd(0, 0),
        'mouse': wr(1, 0, 0xa8) + b''.join(wr(1, 0, 0xd4) + wr(0, 0, v) for v in
                                           (0xff, 0xf3, 200, 0xf3, 100, 0xf3, 80, 0xf2, 0xe8, 3, 0xe9, 0xf4)) +
                 outside(0x83, 0x15) + step(255, 16) + rd(0, 0) + rd(0, 0),
        'lines': wr(1, 0, 0xd1) + wr(0, 0, 0xdd) + wr(1, 0, 0xaa) + rd(0, 0) + wr(2, 0, 2) + wr(1, 0, 0xfe) + RUN,
    },
    'chipset': {
        'pam': b''.join(wr(0, 0x59 + n, 0x31 * (n & 3)) for n in range(7)) + wr(10, 0x2000, 1, 4) + wr(0, 0x72, 0x4a),
        'pirq': b''.join(wr(1, 0x60 + n, 10 + n) for n in range(4)) + wr(1, 0x82, 2, 2) + wr(5, 0, 6) + RUN,
        'pm': wr(7, 4, 1, 2) + wr(7, 2, 0x521, 2) + step(255, 23) + rd(7, 8, 4) + rd(7, 0, 2) + wr(6, 0, 0xf1) +
              outside(4) + RUN + wr(7, 4, 0x2401, 2) + RUN + outside(5) + RUN,
        's3': wr(7, 4, 0x2001 | 1 << 10, 2) + RUN + outside(5) + RUN,
        'bars': b''.join(b'\x2f' + bytes([2]) + struct.pack('<H', off) for off in range(0, 64, 4)) + wr(2, 0x40, 0xb001, 4),
    },
    'fw_cfg': {
        'ports': wr(0, 0, 0, 2) + rd(0, 1) * 4 + wr(0, 0, 0x19, 2) + rd(0, 1, 2) + wr(0, 0, 0xffff, 2) + rd(0, 1),
        'dma': dma(0x00000a, 4, 0x10100) + dma(0x19000a, 64, 0x10200) + dma(2, 0xffffffff, 0x10300) + dma(4, 7, 0) +
               dma(0x20000a, 0xffff, 0xfff000) + dma(0x10, 1, 0x10100) + dma(2, 16, 0xfffffffffffffff8),
    },
    'debug': {'out': wr(0, 0, 0x41) + rd(0, 0) + wr(1, 0, 3, 4) + RUN},
    'testdev': {'all': wr(0, 0, 0x12345678, 4) + rd(0, 3, 4) + wr(1, 4, 1) + wr(1, 4, 0) + wr(2, 0xffff, 7, 8) +
                       rd(2, 0xfffd, 8)},
    'realtime-switch': {'all': rd(0, 0) + wr(0, 0, 1) + RUN + rd(0, 0) + wr(0, 0, 200) + rd(0, 0) + RESET},
}


# ---- Text ----

GROUPS = ('machine accel smp-opts memory name boot-opts global realtime overcommit action rtc icount msg mon chardev add-fd '
          'device object fw_cfg uuid seed log dfilter absent vnc cpu display audiodev keyboard sandbox').split()

OPTIONS = ['size=4G,slots=2,maxmem=8G', '4,sockets=2,cores=2,maxcpus=4', 'pc,accel=kvm:tcg,hpet=off',
           'maxprio=50,policy=fifo,vcpus=1-2,,3', 'id=a,maxprio=80,affinity=0-3', "{'driver':'e','a':[1,{'b':true}]}",
           '{"qom-type":"x","id":"y","size":4096.5}', 'a=b,,c=d,,', 'shift=auto,sleep=off',
           'base=2020-02-29T12:00:00,clock=vm', 'order=dc,once=n,menu=on,splash-time=5', 'help', '?', 'x', '',
           'socket,id=s,path=p,server=on,wait=off,reconnect=1', '0x1p10', '1.5G', '18446744073709551616', 'noreboot',
           'reboot=shutdown,panic=exit-failure', 'guest=a,process=b,debug-threads=on',
           'max,+avx2,-x2apic,enforce,vendor=GenuineIntel,level=0x20', 'host,check', '123e4567-e89b-12d3-a456-426614174000',
           'in_asm,exec,cpu', '0x8000..0x8fff,1+2,4096-0x10', 'none', 'on,obsolete=deny', 'e1000', 'de']

CPU_LISTS = ['0', '0-3', 'all', '^0', '0,2-3,^2', 'all,^1-2', '1-', '3-1', '4294967296', '0-1023', ',', '^all']

CONFIG = ['# comment\n[machine]\n  type = "pc"\n\n[chardev "c0"]\n  backend = "null"\n', '[memory]\nsize = "1G\n',
          '[device "x"]\ndriver = "isa-serial"\nchardev = "a\\"b"\n', '[smp-opts]\ncpus="4"\n[nothing]\n', '[', 'a="b"']

CMDLINES = ['qemu\n-m\n4G\n-smp\n2\n-nographic', 'qemu\n--realtime\nmaxprio=50\n-overcommit\ncpu-pm=on\n-S',
            'qemu\n-machine\npc\n-accel\ntcg,tb-size=64\n-icount\nshift=3', 'qemu\n-boot\nonce=d\n-rtc\nbase=utc\n-bogus']

QMP = ['query-status', 'query-version', 'query-commands', 'stop', 'cont', 'system_reset', 'query-cpus-fast',
       'query-chardev', 'query-qmp-schema', 'qom-list-types', 'query-machines', 'query-command-line-options',
       'query-realtime', 'query-jit', 'system_powerdown', 'query-memory-size-summary', 'query-events', 'quit']
QMP_ARGS = ['{"execute":"qom-list","arguments":{"path":"machine"},"id":[1,null,"x"]}',
            '{"execute":"human-monitor-command","arguments":{"command-line":"info registers"}}',
            '{"execute":"device-list-properties","arguments":{"typename":"isa-serial"}}',
            '{"execute":"ringbuf-read","arguments":{"device":"a","size":10,"format":"base64"}}',
            '{"execute":"qom-get","arguments":{"path":"machine","property":"type"}}',
            '{"execute":"getfd","arguments":{"fdname":"a"}}', '{"execute":"x","arguments":[]}', '[1,2', '"\\ud800"',
            '{"execute":"query-cpu-model-expansion","arguments":{"type":"full","model":{"name":"max","props":{"avx":false}}}}']

HMP = ['help\n', 'info\n', 'info registers -a\n', 'x /4xw 0\n', 'xp/10i 0xfff0\n', 'x /20i 0x7c00\nx/s 0\n', 'info mtree -f\n',
       'info qtree\n', 'info pic\ninfo lapic 1\n', 'info cpus\ncpu 1\n', 'inf\t\x1b[A\x1b[D\x1b[3~\x17\x15\x0b', 'info qom-tree a\n',
       'stop\ncont\nsystem_reset\n', 'info latency\ninfo realtime\ninfo pci\ninfo jit\n', 'xp /999999999999c 0\n', 'x /gd -1\n']

QTEST = ['outb 0x70 0xa\ninb 0x71\n', 'writel 0xfed00010 1\nreadq 0xfed000f0\n', 'clock_step\nclock_step 1000\nclock_set 5000\n',
         'irq_intercept_in ioapic\nirq_intercept_out isa-i8259\noutb 0x43 0x34\nclock_step 9999\n',
         'write 0x1000 4 0x01020304\nread 0x1000 4\nb64read 0x1000 4\nb64write 0x1000 3 AQID\nmemset 0x1000 16 0xff\n',
         'endianness\nbogus\nread 1\nwrite 0xffffffffffffffff 2 0x\n']


# ---- Kernels ----

def bzimage(version=0x20f, payload=2048):
    d = bytearray(1024)
    d[0x1f1] = 1
    struct.pack_into('<I', d, 0x1f4, payload // 16)
    struct.pack_into('<H', d, 0x1fe, 0xaa55)
    d[0x200:0x206] = b'\xeb\x66HdrS'
    struct.pack_into('<H', d, 0x206, version)
    d[0x211] = 1
    struct.pack_into('<II', d, 0x22c, 0x7fffffff, 0x200000)
    struct.pack_into('<BBHI', d, 0x234, 1, 0, 1, 2047)
    struct.pack_into('<QI', d, 0x258, 0x100000, 0x4000)
    return bytes(d) + bytes(i & 0xff for i in range(payload))


def elf(bits, note=True):
    desc = struct.pack('<III4sI', 4, 4, 18, b'Xen\0', 0x100000)
    if bits == 64:
        head = b'\x7fELF\x02\x01\x01' + bytes(9) + struct.pack('<HHIQQQIHHHHHH', 2, 62, 1, 0x100000, 64, 0, 0, 64, 56,
                                                              2 if note else 1, 0, 0, 0)
        load = struct.pack('<IIQQQQQQ', 1, 7, 0x100, 0x100000, 0x100000, 32, 64, 4096)
        notes = struct.pack('<IIQQQQQQ', 4, 4, 0x200, 0, 0, len(desc), len(desc), 4)
    else:
        head = b'\x7fELF\x01\x01\x01' + bytes(9) + struct.pack('<HHIIIIIHHHHHH', 2, 3, 1, 0x100000, 52, 0, 0, 52, 32,
                                                              2 if note else 1, 0, 0, 0)
        load = struct.pack('<IIIIIIII', 1, 0x100, 0x100000, 0x100000, 32, 64, 7, 4096)
        notes = struct.pack('<IIIIIIII', 4, 0x200, 0, 0, len(desc), len(desc), 4, 4)
    d = bytearray(0x200)
    d[:len(head + load + notes)] = head + load + notes
    return bytes(d) + desc


def multiboot(kludge):
    flags = 0x10003 if kludge else 3
    head = struct.pack('<III', 0x1badb002, flags, -(0x1badb002 + flags) & 0xffffffff)
    if kludge:
        return head + struct.pack('<IIIII', 0x100000, 0x100000, 0x100040, 0x100080, 0x100000) + bytes(0x40)
    d = bytearray(elf(32, False))
    d[0x180:0x180 + len(head)] = head
    return bytes(d)


KERNELS = {'bzimage': b'\x1e' + bzimage(), 'bzimage-old': b'\x02' + bzimage(0x200), 'pvh64': b'\x36' + elf(64),
           'pvh32': b'\x16' + elf(32), 'multiboot': b'\x3e' + multiboot(True), 'multiboot-elf': b'\x02' + multiboot(False)}


# ---- Code ----

INSNS = ['4801d8', '668b4310', 'f3a4', 'f348ab', '0fa2', '0f31', 'c5fc58c1', 'c4e2f5b8c2', 'd9e8dec1', '0f01d0', '48cf', 'cf', '9d',
         'f00fb10b', '480fc7f0', 'e800000000c3', 'eb00', '7500', '0f8400000000', '0f22c0', '0f20e0', '0f09', '0f013b', '8ed8', 'ccf4',
         'f7f1', '48f7f9', '0fae00', '660f3a0fc108', 'ff1b', '6a0058', 'c8100001', 'd9300f77', 'dd3b', '66f3a5', '0f0b', 'f4', 'ef', 'e4f0',
         '0f32', '0f30', '480fb6c0', '4883c001', '48ffc8', '75fb', '48d3e0', '0fa3c8', '0fbcc1', '0fc8', '490fc8', '9b', 'fa', 'fb']


def code():
    out = {}
    for mode in range(6):
        for n in range(0, len(INSNS), 6):
            out[f'{mode}-{n}'] = bytes([mode, n]) + bytes.fromhex(''.join(INSNS[n:n + 6]))
    return out


def texts(items, prefix=b''):
    return {str(n): prefix + (i if isinstance(i, bytes) else i.encode()) for n, i in enumerate(items)}


def all_inputs():
    out = {name: dict(seeds) for name, seeds in DEVICES.items()}
    out['devices'] = {}
    out['option'] = {f'{n}-{g}': f'{g} {o}'.encode() for n, o in enumerate(OPTIONS) for g in GROUPS}
    out['cmdline'] = texts(CMDLINES)
    out['readconfig'] = texts(CONFIG)
    out['cpulist'] = texts(CPU_LISTS, struct.pack('<H', 1000))
    out['qmp'] = texts([f'{{"execute":"{c}"}}\n' for c in QMP] + [q + '\n' for q in QMP_ARGS], b'\x3e')
    out['hmp'] = texts(HMP, b'\x10')
    out['qtest'] = texts(QTEST, b'\x3f')
    out['kernel'] = dict(KERNELS)
    out['decode'] = code()
    out['execute'] = code()
    with open(os.path.join(HERE, 'found.txt'), encoding='utf-8') as f:
        for line in f:
            words = line.split('#')[0].split()
            if words:
                out[words[0]]['found-' + words[1]] = bytes.fromhex(words[2] if len(words) > 2 else '')
    return out


def write(directory, only=None):
    for target, inputs in all_inputs().items():
        if only and target != only:
            continue
        os.makedirs(os.path.join(directory, target), exist_ok=True)
        for name, data in inputs.items():
            with open(os.path.join(directory, target, name), 'wb') as f:
                f.write(data)


if __name__ == '__main__':
    write(sys.argv[1])
