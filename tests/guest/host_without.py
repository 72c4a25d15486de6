#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""-accel tcg,host-without=: the guest runs, and none of the host code that was made for it is of a set that
the host is said to lack. Usage: host_without.py IMAGE|cloud

-d out_asm shows all host code there is: translated blocks, the stubs of the interpreter, the code in between.
"""
import os
import re
import subprocess
import sys
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import BINARY, Guest, initramfs, kernel, main  # noqa: E402

IMAGE = sys.argv[1]
PREFIXES = '((66|f2|f3|f0)*)(4[0-9a-f])?'
# By bytes or, where several instructions share an opcode, by name; lines of the log are "ADDRESS: BYTES TEXT".
BMI = 'andn|bextr|blsi|blsmsk|blsr|bzhi|pdep|pext|shlx|sarx|shrx|rorx|mulx'
SETS = {
    'avx': r' v[a-z]',
    'vex': r'^[0-9a-f]{16}: c[45]',
    'bmi2': r' +(bzhi|pdep|pext|shlx|sarx|shrx|rorx|mulx)',
    'sse3, ssse3, sse4': rf'^[0-9a-f]{{16}}: {PREFIXES}0f3[8a]| (movddup|movs[lh]dup|hadd|hsub|addsub|lddqu|fistt)',
    'counts': rf'^[0-9a-f]{{16}}: ((66)*f3(66)*)(4[0-9a-f])?0f(b8|bc|bd)',
    'by name': r' (rdrand|rdseed|(lock )?cmpxchg16b|aes|sha1|sha256|pclmul)',
}


def run(log, accel, *more):
    """The guest runs to its good end; its host code is in the file log."""
    options = ['-accel', accel, '-cpu', 'max', '-nodefaults', '-display', 'none', '-serial', 'stdio', '-d', 'out_asm', '-D', log,
               *more]
    if IMAGE == 'cloud':
        options += ['-m', '512', '-kernel', kernel('cloud'), '-initrd', initramfs(), '-append',
                    'console=ttyS0 panic=-1 qrt=poweroff']
    else:
        options += ['-m', '64', '-kernel', IMAGE, '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4', '-device', 'pc-testdev']
    with Guest(*options, stdin=False) as g:
        status = g.wait(280)
        text = g.text()
        if IMAGE == 'cloud':
            good = status == 0 and 'qrt: init reached' in text
        else:
            good = status == 1 and 'RESULT: passed' in text
        if not good:
            g.fail(f'exit status {status}')
    return text


def lines_of(log, name):
    """Host instructions of a set. grep, as a kernel's code is 100 MB."""
    done = subprocess.run(['grep', '-Ea', SETS[name], log], capture_output=True, text=True, check=False,
                          env={**os.environ, 'LC_ALL': 'C'})
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


def host_code(accel, absent, present=(), also=None):
    with tempfile.TemporaryDirectory(prefix='qrt-') as d:
        log = f'{d}/log'
        text = run(log, accel)
        assert subprocess.run(['grep', '-q', 'messages lost', log], check=False).returncode == 1
        for what in ('common code', 'translated rip'):
            assert one_insn(accel) or subprocess.run(['grep', '-q', what, log], check=False).returncode == 0, what
        for name in absent:
            found = lines_of(log, name)
            assert not found, (accel, name, found[:5])
        for name in present:
            assert lines_of(log, name), (accel, name)
        if also:
            also(log)
    return text


def one_insn(accel):
    return 'one-insn' in accel


def says(text, *words):
    if IMAGE != 'cloud':
        for w in words:
            assert w in text or 'units' not in IMAGE, (w, text)


def nothing_beyond_the_first():
    for accel in ('tcg', 'tcg,one-insn=on'):
        if IMAGE == 'cloud' and one_insn(accel):
            continue
        text = host_code(f'{accel},host-without=all', SETS)
        says(text, '#UD vaddps', '#UD popcnt', '#UD cmpxchg16b', '#UD addsubps', '#UD rdrand')


def bmi_without_avx():
    """BMI is encoded like AVX; that is the only VEX there is."""
    def only_bmi(log):
        other = [x for x in lines_of(log, 'vex') if not re.search(rf' ({BMI})', x)]
        assert not other, other[:5]
    text = host_code('tcg,host-without=avx', ['avx'], also=only_bmi)
    says(text, '#UD vaddps', '#UD vpaddd', '#UD vfmadd', '#UD vcvtph2ps', 'runs aesenc')


def avx_without_avx2_and_bmi():
    text = host_code('tcg,host-without=avx2:bmi1:bmi2', ['bmi2'])
    says(text, '#UD vpaddd', '#UD andn', '#UD mulx')


def the_check_finds_them():
    """With all that this host has, its instructions are in the log where the guest uses them."""
    with open('/proc/cpuinfo', encoding='utf-8') as f:
        flags = re.search(r'^flags.*', f.read(), re.M).group().split()
    if {'avx2', 'bmi2', 'popcnt', 'aes', 'cx16', 'pni'} <= set(flags):
        host_code('tcg', [], SETS if 'units' in IMAGE else ['vex'])


def filtered():
    """-dfilter, for -d out_asm."""
    def rips(*more):
        with tempfile.TemporaryDirectory(prefix='qrt-') as d:
            run(f'{d}/log', 'tcg', *more)
            with open(f'{d}/log', encoding='utf-8') as f:
                return set(re.findall(r'translated rip (\w+)', f.read()))
    every = sorted(rips())
    one = every[len(every) // 2]
    assert len(every) > 20, every
    assert rips('-dfilter', f'0x{one}+1') == {one}
    assert not rips('-dfilter', '0x0..0xfff')


def refusals():
    for value, part in (('host-without=', "'' is nothing"), ('host-without=avx:sse2', "'sse2' is nothing"),
                        ('host-without=nonsense', "'nonsense'"), ('host-without=lahf_lm', 'needs a processor with lahf_lm')):
        done = subprocess.run([BINARY, '-machine', 'none', '-accel', f'tcg,{value}'], capture_output=True, text=True,
                              timeout=30, check=False)
        assert done.returncode == 1 and done.stderr.count('\n') == 1, done
        assert f'-accel tcg,{value}: ' in done.stderr and part in done.stderr, done.stderr


CASES = [nothing_beyond_the_first, bmi_without_avx]
if IMAGE != 'cloud':
    CASES += [avx_without_avx2_and_bmi]
if 'units' in IMAGE:
    CASES += [the_check_finds_them, filtered, refusals]
main(*CASES)
