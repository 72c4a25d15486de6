#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""device_add and device_del: what is refused and with which words, and where an added CPU is shown."""
import json
import os
import sys
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, main, run_refused  # noqa: E402

TYPE = 'qemu64-x86_64-cpu'
PLACE = {'socket-id': 1, 'core-id': 0, 'thread-id': 0}


def machine(*args):
    return Guest('-accel', 'tcg', '-m', '16', '-display', 'none', '-nodefaults', '-S', *args, qmp=True)


def refused(g, **args):
    g.qmp.send({'execute': 'device_add', 'arguments': args})
    r = g.qmp.reply()
    assert 'error' in r and r['error']['class'] == 'GenericError', r
    return r['error']['desc']


def hmp(g, line):
    return g.qmp.cmd('human-monitor-command', **{'command-line': line}).replace('\r', '')


def requests_that_are_refused():
    """Nothing is changed by any of them."""
    cases = (
        ({}, "Parameter 'driver' is missing"),
        ({'driver': 5}, "Invalid parameter type for 'driver', expected: string"),
        ({'driver': 'nonesuch'}, "'nonesuch' is not a valid device model name"),
        ({'driver': 'nonesuch-x86_64-cpu'}, "'nonesuch-x86_64-cpu' is not a valid device model name"),
        ({'driver': 'x86_64-cpu'}, "Parameter 'driver' expects a non-abstract device type"),
        ({'driver': 'hpet'}, "Parameter 'driver' expects a pluggable device type"),
        ({'driver': 'isa-serial', 'id': 's'}, "Bus 'isa.0' does not support hotplugging"),
        ({'driver': 'pci-testdev'}, "Bus 'pci.0' does not support hotplugging"),
        ({'driver': 'pci-testdev', 'bus': 'isa.0'}, "Device 'pci-testdev' can't go on ISA bus"),
        ({'driver': 'pci-testdev', 'bus': 'no.1'}, "Bus 'no.1' not found"),
        ({'driver': TYPE}, 'CPU socket-id, core-id, thread-id are not set'),
        ({'driver': TYPE, 'socket-id': 1}, 'CPU core-id, thread-id are not set'),
        ({'driver': TYPE, 'socket-id': 1, 'core-id': 0}, 'CPU thread-id is not set'),
        ({'driver': TYPE, **PLACE, 'socket-id': -1}, 'CPU socket-id is not set'),
        ({'driver': TYPE, **PLACE, 'socket-id': 9}, 'Invalid CPU socket-id: 9 must be in range 0:2'),
        ({'driver': TYPE, **PLACE, 'core-id': 1}, 'Invalid CPU core-id: 1 must be in range 0:0'),
        ({'driver': TYPE, **PLACE, 'thread-id': 2}, 'Invalid CPU thread-id: 2 must be in range 0:0'),
        ({'driver': TYPE, **PLACE, 'die-id': 7}, 'Invalid CPU die-id: 7 must be in range 0:0'),
        ({'driver': TYPE, **PLACE, 'core-id': 'x'}, "Parameter 'core-id' expects integer"),
        ({'driver': TYPE, **PLACE, 'core-id': ''}, "Parameter 'core-id' expects integer"),
        ({'driver': TYPE, **PLACE, 'core-id': 1 << 40}, "Parameter 'core-id' expects integer"),
        ({'driver': TYPE, **PLACE, 'socket-id': 0}, 'CPU[0] with APIC ID 0 exists'),
        ({'driver': TYPE, **PLACE, 'id': '1bad'}, "Parameter 'id' expects an identifier"),
        ({'driver': TYPE, **PLACE, 'id': 'exit'}, "Duplicate device ID 'exit'"),
        ({'driver': TYPE, **PLACE, 'id': 'x' * 97}, "Parameter 'id': 'xxxx"),
        ({'driver': TYPE, **PLACE, 'foo': 1}, f"Property '{TYPE}.foo' not found"),
        ({'driver': TYPE, **PLACE, 'avx2': True}, f"Property '{TYPE}.avx2': a CPU that is added is what -cpu says"),
        ({'driver': TYPE, **PLACE, 'bus': 'pci.0'}, f"Device '{TYPE}' can't go on PCI bus"),
        ({'driver': 'max-x86_64-cpu', **PLACE}, f"Invalid CPU type, expected cpu type: '{TYPE}'"),
    )
    with machine('-smp', '1,sockets=3,maxcpus=3', '-device', 'isa-debug-exit,id=exit') as g:
        before = [g.qmp.cmd('query-hotpluggable-cpus'), g.qmp.cmd('query-cpus-fast')]
        for args, want in cases:
            got = refused(g, **args)
            assert got.startswith(want), (args, got)
        assert before == [g.qmp.cmd('query-hotpluggable-cpus'), g.qmp.cmd('query-cpus-fast')]
        assert 'Error: CPU core-id, thread-id are not set' in hmp(g, f'device_add {TYPE},socket-id=1')
        assert f'name "{TYPE}"' in hmp(g, 'device_add help')
        for text in (hmp(g, f'device_add {TYPE},help'), hmp(g, f'device_add {TYPE},socket-id=1,help')):
            assert 'options:' in text and 'core-id=<int32>' in text and 'socket-id=' in text and 'Error' not in text, text
        assert 'chardev=<str>' in hmp(g, 'device_add isa-serial,help')
        assert "Device 'nonsense' not found" in hmp(g, 'device_add nonsense,help')
        assert "Error: Parameter 'driver' is missing" in hmp(g, 'device_add')


def machines_that_take_none():
    with machine('-M', 'none') as g:
        assert refused(g, driver=TYPE, **PLACE) == f"Device '{TYPE}' can not be hotplugged on this machine"
        g.qmp.send({'execute': 'query-hotpluggable-cpus'})
        assert 'not enabled' in g.qmp.reply()['error']['desc']
    with machine('-smp', '1,maxcpus=2,sockets=2', '-machine', 'acpi=off') as g:
        g.qmp.cmd('cont')
        text = refused(g, driver=TYPE, **PLACE)
        assert 'can not be hotplugged' in text and 'acpi=off' in text, text
    with machine('-accel', 'tcg') as g:
        assert refused(g, driver=TYPE, **{**PLACE, 'socket-id': 0}) == 'CPU[0] with APIC ID 0 exists'


def places_and_names():
    with machine('-smp', '1,sockets=4,maxcpus=4') as g:
        devices = {d['name']: d['type'] for d in g.qmp.cmd('qom-list', path='/machine/unattached')}
        g.qmp.cmd('device_add', driver=TYPE, id='one', **PLACE)
        g.qmp.cmd('device_add', driver=TYPE, **{'socket-id': '3', 'die-id': 0, 'core-id': '0', 'thread-id': 0})
        assert hmp(g, f'device_add {TYPE},socket-id=2,core-id=0,thread-id=0') == ''
        paths = ['/machine/unattached/device[0]', '/machine/peripheral/one', '/machine/peripheral-anon/device[1]',
                 '/machine/peripheral-anon/device[0]']
        cpus = g.qmp.cmd('query-cpus-fast')
        assert [c['qom-path'] for c in cpus] == paths, cpus
        assert [c['props']['socket-id'] for c in cpus] == [0, 1, 2, 3], cpus
        places = g.qmp.cmd('query-hotpluggable-cpus')
        assert [p['qom-path'] for p in reversed(places)] == paths, places
        for i, path in enumerate(paths):
            assert g.qmp.cmd('qom-get', path=path, property='type') == TYPE
            assert g.qmp.cmd('qom-get', path=path, property='socket-id') == i
        assert refused(g, driver=TYPE, id='one', **PLACE).startswith("Duplicate device ID 'one'")
        assert refused(g, driver=TYPE, **PLACE) == 'CPU[1] with APIC ID 1 exists'
        # The names of others stay.
        assert devices == {d['name']: d['type'] for d in g.qmp.cmd('qom-list', path='/machine/unattached')}
        assert 'qom_path: "/machine/peripheral/one"' in hmp(g, 'info hotpluggable-cpus')
        assert len(hmp(g, 'info cpus').splitlines()) == 4
        assert 'local APIC of CPU 3' in hmp(g, 'info lapic 3')
        g.qmp.cmd('cont')
        g.qmp.cmd('system_reset')
        g.qmp.cmd('stop')


def removals_that_are_refused():
    with machine('-smp', '2,sockets=3,maxcpus=3', '-device', 'isa-debug-exit,id=exit') as g:
        g.qmp.cmd('device_add', driver=TYPE, id='c', **{**PLACE, 'socket-id': 2})
        for name, cls, want in (
                ('nope', 'DeviceNotFound', "Device 'nope' not found"),
                ('/machine', 'DeviceNotFound', "Device '/machine' not found"),
                ('/machine/unattached/device[0]', 'GenericError', 'Boot CPU is unpluggable'),
                ('/machine/unattached/device[1]', 'GenericError', 'CPU 1 is there since the start'),
                ('exit', 'GenericError', "Bus 'isa.0' does not support hotplugging")):
            g.qmp.send({'execute': 'device_del', 'arguments': {'id': name}})
            e = g.qmp.reply()['error']
            assert e['class'] == cls and e['desc'].startswith(want), e
        assert 'Error: which device?' in hmp(g, 'device_del')
        assert "Error: Device 'x' not found" in hmp(g, 'device_del x')
        # A guest that does not listen keeps it; it may be asked again.
        for name in ('c', 'c', '/machine/peripheral/c'):
            g.qmp.cmd('device_del', id=name)
        g.qmp.cmd('cont')
        assert len(g.qmp.cmd('query-cpus-fast')) == 3
    with machine('-smp', '1,sockets=2,maxcpus=2', '-machine', 'acpi=off', '-device',
                 f'{TYPE},socket-id=1,core-id=0,thread-id=0,id=c') as g:
        g.qmp.send({'execute': 'device_del', 'arguments': {'id': 'c'}})
        assert 'acpi=off' in g.qmp.reply()['error']['desc']


def while_the_guest_resets_itself():
    """Again and again, on the main loop, whatever the command is doing."""
    with tempfile.NamedTemporaryFile(prefix='qrt-bios-') as f:
        rom = bytearray(b'\xf4' * 65536)
        rom[0xfff0:0xfff9] = bytes.fromhex('b006baf90ceef4ebfd')  # mov al,6; mov dx,0cf9h; out dx,al; hlt
        f.write(rom)
        f.flush()
        with machine('-bios', f.name, '-smp', '1,sockets=24,maxcpus=24') as g:
            g.qmp.cmd('cont')
            for n in range(1, 24):
                g.qmp.event('RESET')
                g.qmp.cmd('device_add', driver=TYPE, id=f'c{n}', **{**PLACE, 'socket-id': n})
                if n % 4 == 0:
                    g.qmp.cmd('stop')
                    g.qmp.cmd('cont')
            assert len(g.qmp.cmd('query-cpus-fast')) == 24
            g.qmp.events.clear()
            for _ in range(20):
                g.qmp.event('RESET')
            g.qmp.cmd('quit')
            assert g.wait(30) == 0


def on_the_command_line():
    with machine('-smp', '1,sockets=2,maxcpus=2', '-device', f'{TYPE},id=c,socket-id=1,core-id=0,thread-id=0') as g:
        assert [c['qom-path'] for c in g.qmp.cmd('query-cpus-fast')][1] == '/machine/peripheral/c'
    spec = json.dumps({'driver': TYPE, **PLACE})
    with machine('-smp', '1,sockets=2,maxcpus=2', '-device', spec) as g:
        assert len(g.qmp.cmd('query-cpus-fast')) == 2
    for args, want in ((['-device', f'{TYPE},socket-id=0,core-id=0,thread-id=0'], 'CPU[0] with APIC ID 0 exists'),
                       (['-device', f'{TYPE},socket-id=4,core-id=0,thread-id=0'], 'must be in range 0:0'),
                       (['-M', 'none', '-device', TYPE], 'can not be hotplugged on this machine')):
        text = run_refused('-accel', 'tcg', '-display', 'none', *args)
        assert want in text and '-device' in text, text
    with Guest('-device', f'{TYPE},help', stdin=False) as g:
        assert g.wait(20) == 0 and 'core-id' in g.text(), g.text()


main(requests_that_are_refused, machines_that_take_none, places_and_names, removals_that_are_refused,
     while_the_guest_resets_itself, on_the_command_line)
