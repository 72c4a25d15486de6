#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The program without KVM and the software CPU, as on hosts that are not x86-64. Usage: hosts.py SOURCE

The same tree is configured with both left out, and the program is built and run: each accelerator
that is not there says so, and what needs none works.
"""
import os
import subprocess
import sys
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, main  # noqa: E402

SOURCE = sys.argv[1]
TREE = tempfile.TemporaryDirectory(prefix='qrt-hosts-')
PROGRAM = f'{TREE.name}/b/qemu-system-x86_64'


def tool(*argv, status=0):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    assert done.returncode == status, f'{argv}: {done.returncode}\n{done.stdout[-8000:]}'
    return done.stdout


def run(*options, status=0):
    done = subprocess.run([PROGRAM, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == status, f'{options}: {done.returncode}\n{done.stdout}\n{done.stderr}'
    return done.stdout if status == 0 else done.stderr


def refused(*options):
    text = run('-nodefaults', '-display', 'none', *options, status=1)
    assert text.count('\n') == 1, text
    return text


def builds():
    tool('meson', 'setup', '-Dtcg=disabled', '-Dkvm=disabled', '-Doptimization=0', '-Ddebug=false', f'{TREE.name}/b', SOURCE)
    tool('ninja', '-C', f'{TREE.name}/b', 'qemu-system-x86_64')


def what_is_asked_for_must_be_there():
    """A refusal at configuration names the option."""
    cross = f'{TREE.name}/cross'
    with open(cross, 'w', encoding='utf-8') as f:
        f.write("[binaries]\nc = 'cc'\npkg-config = 'pkg-config'\n[properties]\nneeds_exe_wrapper = true\n"
                "[host_machine]\nsystem = 'linux'\ncpu_family = 'aarch64'\ncpu = 'aarch64'\nendian = 'little'\n")
    for option in ('tcg', 'kvm'):
        text = tool('meson', 'setup', '--cross-file', cross, f'-D{option}=enabled', f'{TREE.name}/{option}', SOURCE, status=1)
        assert f'-D{option}=enabled' in text and 'x86-64' in text, text


def refusals():
    text = refused('-accel', 'tcg')
    assert '-accel tcg: ' in text and 'without the software CPU' in text and 'kvm' not in text, text
    assert refused() == text  # the default
    assert '-accel tcg,tb-size=64: ' in refused('-accel', 'tcg,tb-size=64')
    text = refused('-machine', 'accel=tcg')
    assert '-machine accel=tcg: ' in text and 'without the software CPU' in text, text
    for options in (('-accel', 'kvm'), ('-enable-kvm',), ('-machine', 'pc,accel=kvm')):
        text = refused(*options)
        assert 'cannot use KVM' in text and 'tcg' not in text, text


def falls_back():
    with Guest('-machine', 'pc,accel=kvm:tcg:qtest', '-nodefaults', '-display', 'none', binary=PROGRAM, qmp=True) as g:
        assert g.qmp.cmd('query-status')['status'] == 'running'
        g.qmp.cmd('quit')
        assert g.wait(20) == 0
    text = g.text()
    assert text.count('warning') == 3 and 'falling back to qtest' in text, text


def help_tells():
    lines = run('-accel', 'help').splitlines()[1:]
    assert lines == ['kvm (not available here)', 'tcg (not available here)', 'qtest'], lines


def without_a_cpu():
    """-machine none asks for no accelerator; QMP tells of none that is not there."""
    for options in (('-machine', 'none'), ('-machine', 'none', '-accel', 'qtest'), ('-machine', 'pc', '-accel', 'qtest')):
        with Guest(*options, '-nodefaults', '-display', 'none', binary=PROGRAM, qmp=True) as g:
            q = g.qmp
            assert q.cmd('query-kvm') == {'enabled': False, 'present': False}
            accels = {t['name'] for t in q.cmd('qom-list-types', implements='accel')} - {'accel'}
            assert accels == {'qtest-accel'}, accels
            assert q.cmd('query-jit') == []
            q.cmd('quit')
            assert g.wait(20) == 0, g.text()


def models():
    """CPU models are there all the same, without what a host would have to give."""
    assert 'Skylake-Client' in run('-cpu', 'help')
    with Guest('-accel', 'qtest', '-cpu', 'max', '-nodefaults', '-display', 'none', binary=PROGRAM, qmp=True) as g:
        assert len(g.qmp.cmd('query-cpus-fast')) == 1
        g.qmp.cmd('quit')
        assert g.wait(20) == 0, g.text()


main(builds, what_is_asked_for_must_be_there, refusals, falls_back, help_tells, without_a_cpu, models)
