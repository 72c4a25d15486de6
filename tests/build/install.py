#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`meson install` gives a working emulator. Usage: install.py BUILD-DIRECTORY PREFIX

The tree is installed under a directory of the test's own and bound over PREFIX in a mount namespace,
so that the program looks for its files where it would after a real installation.
"""
import os
import re
import subprocess
import sys
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import main, skip  # noqa: E402

BUILD, PREFIX = sys.argv[1], sys.argv[2]
DEST = tempfile.TemporaryDirectory(prefix='qrt-install-')
ROOT = DEST.name + PREFIX


def run(*argv, status=0):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == status, f'{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}'
    return done.stdout + done.stderr


def installed(*options, status=0, seconds=30):
    """Runs the installed program at its place; 124: it was still running after so many seconds."""
    if not os.path.isdir(PREFIX):
        skip(f'{PREFIX} does not exist here')
    if subprocess.run(['unshare', '--map-root-user', '--mount', 'true'], check=False,
                      capture_output=True).returncode:
        skip('no mount namespaces here')
    return run('unshare', '--map-root-user', '--mount', 'sh', '-ec',
               'mount --bind "$1" "$2"; shift 2; exec timeout "$@"', 'sh', ROOT, PREFIX,
               str(seconds), f'{PREFIX}/bin/qemu-system-x86_64', *options, status=status)


def installs():
    run('meson', 'install', '-C', BUILD, '--no-rebuild', '--destdir', DEST.name)
    assert os.access(f'{ROOT}/bin/qemu-system-x86_64', os.X_OK)


def manual_page():
    path = f'{ROOT}/share/man/man1/qemu-system-x86_64.1'
    with open(path, encoding='utf-8') as f:
        page = f.read()
    assert '.TH' in page
    plain = page.replace('\\-', '-')
    for section in ('EXAMPLES', 'FILES', 'EXIT STATUS', 'SEE ALSO'):
        assert f'\n.SH {section}\n' in page, section
    for option in ('-realtime', '-accel', '-kernel', '-qmp', '-overcommit', '-nographic'):
        assert option in plain, option


def documentation():
    doc = f'{ROOT}/share/doc/qemu-rt'
    with open(f'{doc}/README.md', encoding='utf-8') as f:
        links = re.findall(r'\]\(([^):]+)\)', f.read())
    assert 'docs/realtime.md' in links
    for link in links:
        assert os.path.exists(f'{doc}/{link}'), link


def version():
    assert '0.1.0' in installed('-version')


def firmware_of_the_system():
    """Debian's SeaBIOS is found by itself; it says so on its debug port."""
    log = f'{DEST.name}/debugcon'
    installed('-accel', 'tcg', '-display', 'none', '-nodefaults', '-chardev', f'file,id=d,path={log}',
              '-device', 'isa-debugcon,iobase=0x402,chardev=d', '-m', '64', status=124, seconds=6)
    with open(log, encoding='utf-8', errors='replace') as f:
        assert 'SeaBIOS (version' in f.read()


def own_firmware_first():
    """A ROM in the program's own directory comes before the system's: it ends the machine."""
    rom = bytearray(64 * 1024)
    rom[0xfff0:0xfff6] = bytes((0xb0, 0x10, 0xe6, 0xf4, 0xf4, 0xf4))  # mov al,10h; out 0f4h,al; hlt
    os.makedirs(f'{ROOT}/share/qemu-rt', exist_ok=True)
    with open(f'{ROOT}/share/qemu-rt/bios-256k.bin', 'wb') as f:
        f.write(rom)
    installed('-accel', 'tcg', '-display', 'none', '-nodefaults', '-m', '64', '-device',
              'isa-debug-exit,iobase=0xf4,iosize=0x4', status=0x21)


main(installs, manual_page, documentation, version, firmware_of_the_system, own_firmware_first)
