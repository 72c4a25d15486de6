#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""libvirt's part: how it starts the program to learn its capabilities, each command it sends then
in its order, and the type of every field it reads; then the start of a domain. What libvirt 9.0
takes for an unusable binary fails here."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import BINARY, Guest, Qmp, main  # noqa: E402

PROPS_ALWAYS = ('virtio-blk-pci', 'scsi-hd', 'ide-hd', 'PIIX4_PM', 'kvm-pit', 'ICH9-LPC',
                'virtio-balloon-pci', 'virtio-balloon-ccw', 'virtio-balloon-device', 'usb-host')
PROPS_IF_LISTED = ('virtio-net-pci', 'virtio-net-ccw', 'virtio-scsi-pci', 'virtio-scsi-ccw', 'vfio-pci',
                   'usb-redir', 'usb-storage', 'VGA', 'vmware-svga', 'qxl', 'virtio-gpu-pci',
                   'virtio-gpu-device', 'intel-iommu', 'mch', 'nvdimm', 'pcie-root-port',
                   'vhost-user-fs-device', 'virtio-mem-pci', 'virtio-iommu-pci')
ENV = {'LC_ALL': 'C', 'HOME': '/', 'PATH': os.environ.get('PATH', '/usr/bin:/bin')}


class Probe:
    """A background process as libvirt starts it; a strict client of its monitor."""

    def __init__(self, accel, machine='none'):
        self.dir = tempfile.mkdtemp(prefix='qrt-probe-')
        self.sock, self.pidfile = self.dir + '/qmp.monitor', self.dir + '/qmp.pid'
        self.argv = [BINARY, '-S', '-no-user-config', '-nodefaults', '-nographic', '-machine',
                     f'{machine},accel={accel}', '-qmp', f'unix:{self.sock},server=on,wait=off',
                     '-pidfile', self.pidfile, '-daemonize']
        self.pid = None

    def __enter__(self):
        with open('/dev/null', 'rb') as null:
            r = subprocess.run(self.argv, stdin=null, capture_output=True, env=ENV, cwd='/', timeout=60)
        assert r.returncode == 0, r.stderr.decode()
        # Both must be there the moment the command returns: libvirt looks once.
        with open(self.pidfile, encoding='ascii') as f:
            self.pid = int(f.read())
        assert os.path.exists(self.sock)
        self.qmp = Qmp(self.sock, timeout=30)
        self.n = 0
        return self

    def __exit__(self, *exc):
        self.qmp.close()
        os.kill(self.pid, signal.SIGTERM)
        end = time.monotonic() + 20
        while os.path.exists(self.pidfile) and time.monotonic() < end:
            time.sleep(0.02)
        left = os.path.exists(self.pidfile)
        shutil.rmtree(self.dir, ignore_errors=True)
        assert not left, 'SIGTERM did not end the process in good order'

    def ask(self, name, **args):
        self.n += 1
        msg = {'execute': name, 'id': f'libvirt-{self.n}'}
        if args:
            msg['arguments'] = args
        self.qmp.send(msg)
        r = self.qmp.reply()
        assert r['id'] == msg['id'], r
        return r

    def must(self, name, **args):
        r = self.ask(name, **args)
        assert 'return' in r, (name, r)
        return r['return']

    def error_class(self, name, **args):
        return self.ask(name, **args)['error']['class']


def names(entries, key='name'):
    assert isinstance(entries, list), entries
    for e in entries:
        assert isinstance(e[key], str), e
    return [e[key] for e in entries]


def optional(entry, key, kind):
    assert key not in entry or isinstance(entry[key], kind), (key, entry)


def version_and_target(p):
    assert p.must('qmp_capabilities') == {}
    v = p.must('query-version')
    assert isinstance(v['package'], str)
    triple = [v['qemu'][k] for k in ('major', 'minor', 'micro')]
    assert all(isinstance(n, int) for n in triple) and triple >= [4, 2, 0], v
    assert p.must('query-target')['arch'] == 'x86_64'


def devices(p, types):
    for t in PROPS_ALWAYS + tuple(t for t in PROPS_IF_LISTED if t in types):
        r = p.ask('device-list-properties', typename=t)
        if 'error' in r:
            assert r['error']['class'] == 'DeviceNotFound' and t not in types, r
        else:
            names(r['return'])
            assert t in types, t
    # A missing type here makes libvirtd crash.
    for t in ('memory-backend-file', 'memory-backend-memfd', 'max-x86_64-cpu'):
        assert t in types and names(p.must('qom-list-properties', typename=t))
    names(p.must('qom-list-properties', typename='none-machine'))


def machines(p):
    found = p.must('query-machines')
    names(found)
    for m in found:
        for key, kind in (('alias', str), ('is-default', bool), ('cpu-max', int), ('deprecated', bool),
                          ('hotpluggable-cpus', bool), ('default-cpu-type', str),
                          ('default-ram-id', str), ('numa-mem-supported', bool)):
            optional(m, key, kind)
    real = [m for m in found if m['name'] != 'none']
    assert real and sum(m.get('is-default', False) for m in real) == 1, found
    return real


def cpu_definitions(p):
    cpus = p.must('query-cpu-definitions')
    names(cpus)
    for c in cpus:
        optional(c, 'typename', str)
        optional(c, 'deprecated', bool)
        assert all(isinstance(f, str) for f in c.get('unavailable-features', []))
    return {c['typename']: c for c in cpus}


def expansion(p, kind, model):
    r = p.ask('query-cpu-model-expansion', type=kind, model=model)
    if 'error' in r:
        assert r['error']['class'] == 'GenericError', r
        return None
    out = r['return']['model']
    assert isinstance(out['name'], str) and isinstance(out['props'], dict)
    assert all(isinstance(v, (bool, int, float, str)) for v in out['props'].values())
    return out


def no_tpm_and_options(p):
    # Any class but CommandNotFound fails the probe.
    assert p.error_class('query-tpm-models') == 'CommandNotFound'
    for o in p.must('query-command-line-options'):
        assert isinstance(o['option'], str)
        names(o['parameters'])
    names(p.must('query-migrate-capabilities'), 'capability')


def probe(accel):
    with Probe(accel) as p:
        version_and_target(p)
        schema = p.must('query-qmp-schema')
        assert len(names(schema)) == len(set(names(schema)))
        commands = names(p.must('query-commands'))
        kvm = p.must('query-kvm')
        assert isinstance(kvm['enabled'], bool) and isinstance(kvm['present'], bool)
        types = names(p.must('qom-list-types'))
        assert 'tcg-accel' in types and 'isa-serial' in types
        devices(p, types)
        found = machines(p)
        assert 'query-cpu-definitions' in commands and 'query-cpu-model-expansion' in commands
        cpus = cpu_definitions(p)
        for m in found:
            assert m['default-cpu-type'] in cpus and m['default-cpu-type'] in types
        no_tpm_and_options(p)
        assert 'sev-guest' not in types and 'sgx-epc' not in types
        name = 'host' if kvm['enabled'] else 'max'
        assert expansion(p, 'static', {'name': name})
        assert expansion(p, 'static', {'name': name, 'props': {'migratable': False}})
        if kvm['enabled']:
            expansion(p, 'full', {'name': 'host', 'props': {'migratable': False, 'hv-passthrough': True}})
        return kvm, schema


def the_first_that_works():
    kvm, _ = probe('kvm:tcg')
    usable = os.access('/dev/kvm', os.R_OK | os.W_OK)
    # A binary that says no where KVM is usable is probed again and again.
    assert not usable or (kvm['enabled'] and kvm['present']), kvm


def without_kvm():
    kvm, _ = probe('tcg')
    assert kvm['enabled'] is False


def expansion_is_stable():
    """What a static expansion gives, given back, comes out the same; features are what they were."""
    with Probe('tcg') as p:
        p.must('qmp_capabilities')
        for name, props in (('max', {}), ('qemu64', {'avx': True}), ('Nehalem', {'sse4.2': False})):
            one = expansion(p, 'static', {'name': name, 'props': props})
            two = expansion(p, 'full', one)
            assert one['name'] == 'base' and two == one, [
                k for k in one['props'] if one['props'][k] != two['props'].get(k)]
        assert one['props']['sse4.2'] is False and one['props']['ssse3'] is True
        assert expansion(p, 'full', {'name': 'Nehalem'})['name'] == 'Nehalem'
        assert p.error_class('query-cpu-model-expansion', type='full',
                             model={'name': 'no-such'}) == 'GenericError'
        for bad in ({'no-such': True}, {'avx': 'maybe'}, {'avx': [1]}, {'a,b': True}, []):
            assert p.error_class('query-cpu-model-expansion', type='full',
                                 model={'name': 'max', 'props': bad}) == 'GenericError', bad


def schema_says_what_is_there():
    with Probe('tcg') as p:
        p.must('qmp_capabilities')
        schema = {e['name']: e for e in p.must('query-qmp-schema')}
        commands = sorted(n for n, e in schema.items() if e['meta-type'] == 'command')
        assert commands == sorted(names(p.must('query-commands')))
        events = sorted(n for n, e in schema.items() if e['meta-type'] == 'event')
        assert events == sorted(names(p.must('query-events')))
        for e in schema.values():
            for key in ('arg-type', 'ret-type', 'element-type'):
                assert key not in e or e[key] in schema, e
            for m in e.get('members', []) if e['meta-type'] == 'object' else []:
                assert m['type'] in schema, (e, m)
            for v in e.get('variants', []):
                assert v['type'] in schema and e['tag'] in [m['name'] for m in e['members']], e
        arg = schema[schema['object-add']['arg-type']]
        kind = schema[[m['type'] for m in arg['members'] if m['name'] == arg['tag']][0]]
        assert 'secret' in [m['name'] for m in kind['members']] and 'secret' in kind['values']
        args = schema[schema['query-named-block-nodes']['arg-type']]['members']
        assert args == [{'name': 'flat', 'type': 'bool', 'default': None}], args
        # Every type -object makes is in the schema, and takes there what it takes.
        for v in arg['variants']:
            members = {m['name'] for m in schema[v['type']]['members']}
            props = set(names(p.must('qom-list-properties', typename=v['case']))) - {'type'}
            assert members == props, (v, members ^ props)


def failure_has_a_message_and_leaves_nothing():
    d = tempfile.mkdtemp(prefix='qrt-probe-')
    try:
        pidfile = d + '/pid'
        r = subprocess.run([BINARY, '-S', '-nodefaults', '-nographic', '-machine', 'none,accel=tcg', '-qmp',
                            f'unix:{d}/no/such/dir,server=on,wait=off', '-pidfile', pidfile, '-daemonize'],
                           stdin=subprocess.DEVNULL, capture_output=True, env=ENV, timeout=60)
        assert r.returncode == 1 and b'no/such/dir' in r.stderr, r
        assert not os.path.exists(pidfile)
    finally:
        shutil.rmtree(d)


def a_domain_starts():
    """A domain without devices of its own: the command line, then the commands of its start."""
    d = tempfile.mkdtemp(prefix='qrt-domain-')
    listen = socket.socket(socket.AF_UNIX)
    path = d + '/monitor.sock'
    listen.bind(path)
    listen.listen(1)
    with open(d + '/key', 'wb') as f:
        f.write(os.urandom(32))
    log = os.open(d + '/log', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    argv = domain_argv(d, listen.fileno(), log)
    proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, pass_fds=(listen.fileno(), log), env=ENV, cwd='/')
    listen.close()
    os.close(log)
    try:
        q = Qmp(path).negotiate()
        start_domain(q, proc.pid)
        q.close()
        q = Qmp(path).negotiate()  # libvirtd was started again
        assert q.cmd('query-status')['status'] == 'running'
        proc.send_signal(signal.SIGTERM)
        e = q.event('SHUTDOWN')
        assert e['data'] == {'guest': False, 'reason': 'host-signal'}
        assert proc.wait(20) == 0
    finally:
        proc.kill()
        text = proc.stdout.read().decode()
        shutil.rmtree(d)
    # This goes to the domain's log, and to the user if the start fails: nothing but what must be.
    expected = ('char device redirected to', 'terminating on signal 15')
    assert not [line for line in text.splitlines() if not any(e in line for e in expected)], text


def domain_argv(d, monitor_fd, log_fd):
    return [
        BINARY, '-name', 'guest=d-pc,debug-threads=on', '-S', '-object',
        json.dumps({'qom-type': 'secret', 'id': 'masterKey0', 'format': 'raw', 'file': d + '/key'}),
        '-machine', 'pc-i440fx-7.2,usb=off,dump-guest-core=off,memory-backend=pc.ram', '-accel', 'tcg',
        '-cpu', 'qemu64', '-m', '64', '-object', '{"qom-type":"memory-backend-ram","id":"pc.ram","size":67108864}',
        '-overcommit', 'mem-lock=off', '-smp', '1,maxcpus=2,sockets=2,cores=1,threads=1', '-uuid',
        '638e1b4e-6158-44f8-b5cd-a898f8748d9f', '-display', 'none', '-no-user-config', '-nodefaults', '-chardev',
        f'socket,id=charmonitor,fd={monitor_fd},server=on,wait=off', '-mon',
        'chardev=charmonitor,id=monitor,mode=control', '-rtc', 'base=utc', '-no-shutdown', '-boot', 'strict=on',
        '-add-fd', f'set=0,fd={log_fd},opaque=serial0-log', '-chardev',
        'pty,id=charserial0,logfile=/dev/fdset/0,logappend=on', '-device',
        '{"driver":"isa-serial","chardev":"charserial0","id":"serial0","index":0}', '-audiodev',
        '{"id":"audio1","driver":"none"}', '-name', 'extra-passthrough', '-sandbox', 'off', '-msg', 'timestamp=on']


def add_vcpu(q, places):
    """As "virsh setvcpus --live" does it, and takes it back as far as a guest without ACPI goes."""
    free = [p for p in places if 'qom-path' not in p]
    q.cmd('device_add', driver=free[0]['type'], id='vcpu1', **free[0]['props'])
    cpus = q.cmd('query-cpus-fast')
    assert [c['qom-path'] for c in cpus] == ['/machine/unattached/device[0]', '/machine/peripheral/vcpu1'], cpus
    assert cpus[0]['thread-id'] != cpus[1]['thread-id']
    assert all('qom-path' in p for p in q.cmd('query-hotpluggable-cpus'))
    q.cmd('device_del', id='vcpu1')


def start_domain(q, pid):
    q.cmd('query-migrate-capabilities')
    assert q.cmd('migrate-set-capabilities', capabilities=[{'capability': 'events', 'state': True}]) == {}
    chardevs = {c['label']: c for c in q.cmd('query-chardev')}
    assert chardevs['charserial0']['filename'].startswith('pty:/dev/'), chardevs
    places = q.cmd('query-hotpluggable-cpus')
    assert sum(p['vcpus-count'] for p in places) == 2 and all(p['props'] for p in places)
    assert [p['qom-path'] for p in places if 'qom-path' in p] == ['/machine/unattached/device[0]']
    cpus = q.cmd('query-cpus-fast')
    assert len(cpus) == 1 and cpus[0]['thread-id'] not in (0, pid)
    cpu = cpus[0]['qom-path']
    props = q.cmd('qom-list', path=cpu)
    # libvirt reads every bool property, and what the host could not give.
    for p in props:
        if p['type'] == 'bool':
            assert isinstance(q.cmd('qom-get', path=cpu, property=p['name']), bool), p
    assert q.cmd('qom-get', path=cpu, property='sse2') is True
    assert q.cmd('qom-get', path=cpu, property='avx2') is False
    assert q.cmd('qom-get', path=cpu, property='unavailable-features') == []
    assert q.cmd('query-iothreads') == []
    assert q.cmd('query-named-block-nodes', flat=True) == []
    assert q.cmd('set-action', reboot='shutdown') == {}
    found = {p['name']: p['type'] for p in q.cmd('qom-list', path='/machine/peripheral')}
    assert found == {'type': 'string', 'serial0': 'child<isa-serial>'}, found
    assert q.cmd('qom-get', path='/machine/peripheral/serial0', property='chardev') == 'charserial0'
    assert q.cmd('query-block') == []
    assert q.cmd('query-fdsets')[0]['fds'][0]['opaque'] == 'serial0-log'
    assert q.cmd('query-name')['name'] == 'extra-passthrough'
    assert q.cmd('query-memory-size-summary')['base-memory'] == 64 << 20
    q.cmd('cont')
    q.event('RESUME')
    add_vcpu(q, places)


def wrote(path):
    with open(path, 'rb') as f:
        return any(f.read(1 << 20))


def files_and_memfds_are_memory():
    d = tempfile.mkdtemp(prefix='qrt-mem-')
    try:
        for backend in (f'memory-backend-file,mem-path={d}/ram,share=on', f'memory-backend-file,mem-path={d}',
                        'memory-backend-memfd,share=on,prealloc=on',
                        'memory-backend-ram,prealloc=on,merge=on,dump=off'):
            with Guest('-accel', 'tcg', '-object', backend + ',id=pc.ram,size=32M', '-machine',
                       'pc,memory-backend=pc.ram', '-display', 'none', '-nodefaults', qmp=True) as g:
                assert g.qmp.cmd('query-memory-size-summary')['base-memory'] == 32 << 20
                g.qmp.cmd('qom-get', path='/objects/pc.ram', property='size')
                g.qmp.send({'execute': 'object-del', 'arguments': {'id': 'pc.ram'}})
                assert 'in use' in g.qmp.reply()['error']['desc']
                # What the guest writes is seen in a shared file: soon, while it runs.
                end = time.monotonic() + 30
                while f'{d}/ram,' in backend and not wrote(d + '/ram'):
                    assert time.monotonic() < end, 'nothing of the guest in the file'
                    time.sleep(0.02)
        assert wrote(d + '/ram'), 'a shared file shows what the guest wrote'
    finally:
        shutil.rmtree(d)


main(the_first_that_works, without_kvm, expansion_is_stable, schema_says_what_is_there,
     failure_has_a_message_and_leaves_nothing, a_domain_starts, files_and_memfds_are_memory)
