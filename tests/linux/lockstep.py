#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Interpreter and translator run the same deterministic guest in lock-step.

Usage: lockstep.py FLAVOUR-OF-KERNEL|FLAT-IMAGE [CPU-MODEL [INIT]]

INIT is a static program to run instead of the usual initramfs.

Both emulators write a hash of the CPU's state (now and then of RAM) every so many instructions into
a pipe; the lines are compared as they come. At the first difference both runs are made again from
the last equal line on, block by block, and the first block after which the states differ is shown
with both states.
"""
import atexit
import os
import select
import subprocess
import sys
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, initramfs, kernel, main, run_refused  # noqa: E402

WHAT = sys.argv[1]
FLAT = WHAT.endswith('.flat')
CPU = sys.argv[2] if len(sys.argv) > 2 else 'max'
INIT = sys.argv[3] if len(sys.argv) > 3 else None
EVERY = 1000 if FLAT else 10000
SILENCE = 60  # s without a line: it hangs
ICOUNT = 'shift=0,sleep=off'
# Flags that nobody reads are exact at a fault only on demand.
INITRD = None  # set below
TRANSLATED, INTERPRETED = 'tcg,exact-flags=on', 'tcg,one-insn=on'


def cpio_entry(number, name, mode, data=b'', device=(0, 0)):
    fields_ = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    head = b'070701' + b''.join(b'%08X' % f for f in fields_) + name.encode() + b'\0'
    return head + b'\0' * (-len(head) % 4) + data + b'\0' * (-len(data) % 4)


def initrd_with(program):
    """A file with an initramfs that holds the program as /init."""
    with open(program, 'rb') as f:
        data = f.read()
    entries = [('dev', 0o40755, b'', (0, 0)), ('dev/console', 0o20600, b'', (5, 1)),
               ('proc', 0o40755, b'', (0, 0)), ('init', 0o100755, data, (0, 0)),
               ('TRAILER!!!', 0, b'', (0, 0))]
    with tempfile.NamedTemporaryFile(prefix='lockstep-', delete=False) as f:
        for n, e in enumerate(entries):
            f.write(cpio_entry(n, *e))
    atexit.register(os.unlink, f.name)
    return f.name


def guest_options(console):
    if FLAT:
        return ['-m', '64', '-kernel', WHAT, '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4', '-device',
                'pc-testdev', '-serial', f'file:{console}']
    return ['-m', '192', '-kernel', kernel(WHAT), '-initrd', INITRD or initramfs(), '-append',
            'console=ttyS0 panic=-1 qrt=poweroff', '-serial', f'file:{console}']


class Run:
    """A run whose state log is read line by line."""

    def __init__(self, name, accel, log_options, icount=ICOUNT):
        self.name = name
        self.fd, end = os.pipe()
        handle, self.console = tempfile.mkstemp(prefix='lockstep-')
        os.close(handle)
        self.guest = Guest(
            '-accel', f'{accel},state-log=/dev/fd/{end},{log_options}', '-icount', icount, '-cpu', CPU,
            '-rtc', 'base=2020-01-01,clock=vm', '-display', 'none', '-monitor', 'none',
            *guest_options(self.console), stdin=False, pass_fds=(end,))
        os.close(end)
        self.buf = []
        self.part = b''

    def line(self):
        """The next line; None at the end."""
        while not self.buf:
            if not select.select([self.fd], [], [], SILENCE)[0]:
                self.guest.fail(f'{self.name}: no line for {SILENCE} s')
            data = os.read(self.fd, 1 << 20)
            if not data:
                return None
            lines = (self.part + data).split(b'\n')
            self.part = lines.pop()
            self.buf = lines[::-1]
        return self.buf.pop().decode()

    def text(self):
        with open(self.console, encoding='utf-8', errors='replace') as f:
            return f.read()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.guest.__exit__(*exc)
        os.close(self.fd)
        os.unlink(self.console)


class Diverged(Exception):
    def __init__(self, count, text):
        super().__init__(text)
        self.count = count


def count_of(line):
    return int(line.split(' ', 1)[0])


def common_lines(a, b):
    """Pairs of lines of the same count, in two logs whose blocks may end in different places."""
    la, lb = a.line(), b.line()
    while la and lb and la[0] != 'e' and lb[0] != 'e':
        ca, cb = count_of(la), count_of(lb)
        if ca == cb:
            yield ca, la, lb
        if ca <= cb:
            la = a.line()
        if cb <= ca:
            lb = b.line()


def fields(line):
    state, _, code = line.partition(' ; ')
    words = state.split()
    regs = dict(w.split('=', 1) for w in words[3:])
    return words[1], regs, code.split(' ; ')


def difference(a, b, la, lb):
    rip_a, regs_a, _ = fields(la)
    rip_b, regs_b, _ = fields(lb)
    out = [f'  {"rip":8} {a.name} {rip_a}, {b.name} {rip_b}'] if rip_a != rip_b else []
    for r, v in regs_a.items():
        if regs_b[r] != v:
            out.append(f'  {r:8} {a.name} {v}, {b.name} {regs_b[r]}')
    return out or ['  in nothing that a line shows']


def look_closer(first, second, equal, differ):
    """From the last equal count on, block by block: what makes the states differ."""
    options = f'state-blocks=on,state-from={equal}'
    with Run(*first[:2], first[2] + options) as a, Run(*second[:2], second[2] + options) as b:
        good = None
        for count, la, lb in common_lines(a, b):
            if la.split()[:3] != lb.split()[:3]:
                if not good:
                    break
                code = '\n'.join(f'    {i}' for i in fields(good)[2])
                return count, '\n'.join(
                    [f'After {count_of(good)} instructions the states are equal, after {count} they '
                     'differ. In between ran'] + [code, 'The states after it:'] +
                    difference(a, b, la, lb) +
                    [f'{a.name}: {la.partition(" ; ")[0]}', f'{b.name}: {lb.partition(" ; ")[0]}'])
            good = la
            if count > differ + 100:
                break
    return differ, 'Block by block they do not differ: it takes blocks that are chained, or is in RAM.'


def lockstep(first, second):
    """Two boots in lock-step: (name, accelerator, log options[, -icount]). Returns lines compared."""
    def options(extra):
        return f'state-every={EVERY},state-ram-every=3000,{extra}'.rstrip(',')

    equal = lines = 0
    with Run(*first[:2], options(first[2]), *first[3:]) as a, \
            Run(*second[:2], options(second[2]), *second[3:]) as b:
        while True:
            la, lb = a.line(), b.line()
            if la != lb:
                break
            if la is None:
                check_end(a, b)
                return lines
            if la[0] != 'e':
                equal = count_of(la)
                lines += 1
    coarse = f'{a.name}: {la}\n{b.name}: {lb}'
    if (la or 'e')[0] == 'e' or (lb or 'e')[0] == 'e':
        raise Diverged(equal, f'{coarse}\nOne went on when the other ended.')
    differ = min(count_of(la), count_of(lb))
    count, text = look_closer(first, second, equal, differ)
    raise Diverged(count, f'{coarse}\n{text}')


def check_end(a, b):
    """Both came to their end, and the same."""
    status, last = (1, 'RESULT: passed') if FLAT else (0, 'reboot: Power down')
    for r in a, b:
        if r.guest.wait(30) != status or last not in r.text():
            r.guest.fail(f'{r.name}: exit status {r.guest.proc.returncode}, console ends:\n'
                         f'{r.text()[-2000:]}')
    assert a.text() == b.text(), 'the consoles differ'
    if INIT:
        check_native(a.text())


def check_native(text):
    """What the program prints on the host's processor it printed in the guest too.

    The host may run less: its kernel may have no 32-bit segment.
    """
    native = subprocess.run([INIT], stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode()
    lines = text.replace('\r', '').split('\n')
    assert 'lockstep: end' in native and '\n32 bits ' in text
    for line in native.split('\n'):
        assert line in lines, f'the host prints "{line}", the guest does not:\n{text[-2000:]}'


def interpreter_and_translator_agree():
    lines = lockstep(('translated', TRANSLATED, ''), ('interpreted', INTERPRETED, ''))
    assert lines >= (10 if FLAT else 10000), f'only {lines} lines compared'


def sleeping_changes_nothing():
    lockstep(('jumping', TRANSLATED, ''), ('sleeping', TRANSLATED, '', 'shift=0,sleep=on'))


def a_flipped_bit_is_found():
    flip = 50000000
    try:
        lockstep(('translated', TRANSLATED, ''), ('flipped', INTERPRETED, f'state-flip={flip},'))
    except Diverged as e:
        text = str(e)
        assert flip <= e.count < flip + 64, text
        assert 'r12 ' in text and 'In between ran\n    ' in text, text
        return
    raise AssertionError(f'a bit of R12 was flipped after {flip} instructions and nobody noticed')


def what_cannot_be_is_refused():
    for args, part in [
            (('-icount', 'shift=0', '-smp', '2'), '-icount: only one CPU can be counted, not 2'),
            (('-icount', 'shift=0', '-accel', 'qtest'), 'only with -accel tcg, not qtest'),
            (('-icount', 'shift=auto'), 'shift=auto'),
            (('-icount', 'shift=3,align=on'), 'align=on'),
            (('-icount', 'shift=3,rr=record,rrfile=x'), 'rr=record'),
            (('-seed', 'x'), '-seed x: must be a number'),
            (('-accel', 'tcg,state-log=/dev/null'), 'add -icount'),
            (('-accel', 'tcg,state-every=7'), 'add state-log'),
            (('-accel', 'tcg,state-log=/nowhere/x', '-icount', '0'), '/nowhere/x'),
            (('-accel', 'tcg,state-log=/dev/null,state-every=0', '-icount', '0'), 'at least 1')]:
        text = run_refused(*args, '-display', 'none')
        assert part in text and '\n' not in text, text


CASES = [interpreter_and_translator_agree]
if INIT:
    INITRD = initrd_with(INIT)
elif WHAT == 'cloud':
    CASES += [sleeping_changes_nothing, a_flipped_bit_is_found, what_cannot_be_is_refused]
main(*CASES)
