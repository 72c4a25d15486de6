#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""-dfilter limits -d in_asm, out_asm, exec and cpu to code at the addresses it names."""
import os
import re
import subprocess
import sys
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import BINARY, main  # noqa: E402

# The ROM's last 64 KiB are at F0000H too, and CS's base is FFFF0000H until a far jump.
ROM = bytearray(b'\xf4' * 65536)
ROM[0xfff0:0xfff5] = b'\xea\x00\x01\x00\xf0'  # ljmp 0f000h:100h
# mov cx, 100; l: loop l; jmp 200h; 200h: mov al, 0; out 0f4h, al; hlt
ROM[0x100:0x108] = b'\xb9\x64\x00\xe2\xfe\xe9\xf8\x00'
ROM[0x200:0x205] = b'\xb0\x00\xe6\xf4\xf4'
RESET, LOOP, END = 0xfffffff0, 0xf0103, 0xf0200


def logged(items, *options):
    """Offsets in CS of the blocks that each kind of line tells of."""
    with tempfile.TemporaryDirectory(prefix='qrt-') as d:
        with open(f'{d}/rom', 'wb') as f:
            f.write(ROM)
        done = subprocess.run([BINARY, '-accel', 'tcg', '-nodefaults', '-display', 'none', '-m', '16', '-bios', f'{d}/rom',
                               '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4', '-d', items, '-D', f'{d}/log',
                               *options], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1 and not done.stderr, done.stderr
        with open(f'{d}/log', encoding='utf-8') as f:
            text = f.read()
    patterns = {'exec': r'^exec: .* rip (\w+) ', 'cpu': r'RIP=(\w+)', 'in_asm': r'^---- .*-bit code.*\n(\w+):'}
    return {k: [int(x, 16) for x in re.findall(p, text, re.M)] for k, p in patterns.items()}


def without_a_filter():
    got = logged('exec,cpu,in_asm')
    for kind in got:
        for rip in (0xfff0, LOOP & 0xffff, END & 0xffff):
            assert rip in got[kind], (kind, rip, got)


def ranges():
    for spec, want in ((f'{RESET}+1', {0xfff0}), (f'{RESET:#x}-1', {0xfff0}), (f'{END:#x}..{END:#x}', {0x200}),
                       (f'1+1,{END + 15}-0x10,{LOOP:#x}..{LOOP + 1}', {0x103, 0x200}), (f'{RESET + 1:#x}+0xf', set()),
                       (f'{RESET:#x}-1,{LOOP:#x}+2', {0xfff0, 0x103})):
        got = logged('exec,cpu,in_asm', '-dfilter', spec)
        for kind in got:
            assert set(got[kind]) == want, (spec, kind, got[kind])


def the_last_one_counts():
    got = logged('exec', '-dfilter', f'{RESET:#x}+1', '-dfilter', f'{END:#x}+1')
    assert set(got['exec']) == {0x200}, got


def refusals():
    for spec, part in (('', "range ''"), ('0x10', 'START..END'), ('0x10..0x5', 'ends before it begins'),
                       ('fff0+1', 'two numbers'), ('0-2', 'below address 0'), ('0xffffffffffffffff+2', 'beyond')):
        done = subprocess.run([BINARY, '-machine', 'none', '-dfilter', spec], capture_output=True, text=True, timeout=30,
                              check=False)
        assert done.returncode == 1 and done.stderr.count('\n') == 1, done
        assert '-dfilter' in done.stderr and part in done.stderr, done.stderr


main(without_a_filter, ranges, the_last_one_counts, refusals)
