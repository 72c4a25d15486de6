#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""QMP and HMP as clients meet them, on a machine that runs a small guest (HLT for ever)."""
import json
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, Qmp, main, run_refused  # noqa: E402


def bios():
    """64 KiB of ROM whose reset vector is sti; hlt; jmp: a guest that only waits."""
    rom = bytearray(b'\xf4' * 65536)
    rom[0xfff0:0xfff4] = b'\xfb\xf4\xeb\xfd'
    f = tempfile.NamedTemporaryFile(prefix='qrt-bios-', delete=False)
    f.write(rom)
    f.close()
    return f.name


BIOS = bios()


def machine(*args, **kw):
    return Guest('-accel', 'tcg', '-m', '16', '-bios', BIOS, '-display', 'none', '-nodefaults', *args,
                 qmp=True, **kw)


def greeting_and_negotiation():
    with machine() as g:
        q = Qmp(g.qmp_path)
        v = q.greeting['QMP']['version']['qemu']
        assert (v['major'], v['minor']) >= (4, 2), v
        assert q.greeting['QMP']['capabilities'] == []
        q.send({'execute': 'query-status', 'id': 7})
        r = q.reply()
        assert r['error']['class'] == 'CommandNotFound' and r['id'] == 7, r
        q.negotiate()
        q.send({'execute': 'qmp_capabilities'})
        assert q.reply()['error']['class'] == 'CommandNotFound'
        assert q.cmd('query-status')['status'] == 'running'


def errors_have_class_and_desc():
    with machine() as g:
        q = g.qmp
        for msg, cls, word in (
                ({'execute': 'no-such'}, 'CommandNotFound', 'no-such'),
                ({'execute': 5}, 'GenericError', 'execute'),
                ({'execut': 'stop'}, 'GenericError', 'execut'),
                ({'execute': 'stop', 'arguments': []}, 'GenericError', 'arguments'),
                ({'execute': 'stop', 'arguments': {'x': 1}}, 'GenericError', "'x'"),
                ([], 'GenericError', 'object'), (5, 'GenericError', 'object')):
            q.send(msg)
            e = q.reply()['error']
            assert e['class'] == cls and word in e['desc'], (msg, e)
        assert q.cmd('query-status')['running'] is True


def strings_are_not_cut_at_a_nul():
    with machine() as g:
        for line in ('\0quit', 'info status\0x', '\0'):
            g.qmp.send({'execute': 'human-monitor-command', 'arguments': {'command-line': line}})
            e = g.qmp.reply()['error']
            assert 'JSON parse error' in e['desc'] and 'NUL' in e['desc'], (line, e)
        assert g.qmp.cmd('query-status')['running'] is True


def garbage_harms_nobody():
    with machine() as g:
        q = g.qmp
        for junk in (b'}{\r\n', b'"abc\r\n', b'nul\r\n', b'\xff\xfe\xfd\r\n', b'{"a":\x00}\r\n', b'[[[[\r\n]]]]x\r\n',
                     b'{"execute": "query-status"\r\n}}\r\n', b'[' * 5000 + b'\r\n'):
            q.sock.sendall(junk)
        # Whatever was answered, the session must come to itself again after a line's end.
        q.sock.sendall(b'\r\n')
        q.send({'execute': 'query-status', 'id': 'after'})
        for _ in range(100):
            r = q.reply()
            if r.get('id') == 'after':
                assert r['return']['status'] == 'running'
                return
        raise AssertionError('no reply after garbage')


def input_may_be_split_anywhere():
    with machine() as g:
        q = g.qmp
        text = json.dumps({'execute': 'query-version', 'id': {'deep': [1, 'ü']}}).encode()
        for b in text:
            q.sock.sendall(bytes([b]))
        r = q.reply()
        assert r['id'] == {'deep': [1, 'ü']} and 'qemu' in r['return']
        q.sock.sendall((json.dumps({'execute': 'query-name', 'id': 1}) +
                        json.dumps({'execute': 'query-uuid', 'id': 2})).encode())
        assert q.reply()['id'] == 1
        assert q.reply()['id'] == 2


def huge_command_is_refused():
    with machine() as g:
        q = g.qmp
        q.sock.settimeout(120)
        chunk = b'a' * (1 << 20)
        q.sock.sendall(b'{"execute": "')
        for _ in range(66):
            q.sock.sendall(chunk)
        assert 'limit' in q.reply()['error']['desc']
        q.sock.sendall(b'"}\r\n')
        assert q.cmd('query-status')['running'] is True


def shrinks(g, limit):
    """To below limit, KiB, soon: the loop that reads the socket may still be at the rest."""
    end = time.monotonic() + 10
    while g.status('VmRSS') >= limit:
        assert time.monotonic() < end, (limit, g.status('VmRSS'))
        time.sleep(0.1)


def what_a_client_made_big_does_not_stay():
    many = b'{"execute": "x", "arguments": {"a": [' + b'1,' * (1 << 20) + b'1]}}\r\n'
    with machine('-S') as g:  # else the firmware makes it bigger
        q = g.qmp
        q.sock.settimeout(120)
        before = g.status('VmRSS')
        for text in (b'{"execute": "' + b'a' * (12 << 20) + b'"}\r\n', many,
                     b'{"execute": "query-status", "id": "' + b'i' * (12 << 20) + b'"}\r\n'):
            q.sock.sendall(text)
            r = q.reply()
            assert 'error' in r or len(r['id']) == 12 << 20
            assert len(json.dumps(r)) < 300 or 'id' in r
            q.cmd('query-status')
            shrinks(g, before + (6 << 10))
        q.sock.sendall(b'{"execute": "' + b'a' * (12 << 20))
        while g.status('VmRSS') < before + (11 << 10):
            time.sleep(0.05)
        q.close()
        Qmp(g.qmp_path).negotiate().cmd('query-status')
        shrinks(g, before + (6 << 10))


def pipelined_commands_of_one_client_do_not_delay_others():
    flood = b'{"execute":"qmp_capabilities"}\r\n' + b'{"execute":"query-qmp-schema"}' * 1300
    with tempfile.TemporaryDirectory(prefix='qrt-') as d, machine(
            '-qmp', f'unix:{d}/second,server=on,wait=off') as g:
        path = d + '/second'
        one = time.monotonic()
        for _ in range(10):
            g.qmp.cmd('query-qmp-schema')
        one = (time.monotonic() - one) / 10
        worst = []
        for closes in (True, False) * 3:
            s = socket.socket(socket.AF_UNIX)
            s.connect(path)
            s.setblocking(False)
            s.send(flood)
            if closes:
                s.close()
            worst.append(0)
            for _ in range(20):
                start = time.monotonic()
                g.qmp.cmd('query-status')
                worst[-1] = max(worst[-1], time.monotonic() - start)
            s.close()
        assert sorted(worst)[1] < 5 * one + 0.02, (one, worst)
        assert Qmp(path).negotiate().cmd('query-status')['running'] is True


def commands_of_a_client_that_left_are_done():
    with machine() as g:
        q = Qmp(g.qmp_path)  # has been greeted
        q.sock.sendall(b'{"execute":"qmp_capabilities"}{"execute":"stop"}{"execute":"query-status"}{"execute":"quit"}')
        q.close()
        assert g.wait() == 0


def new_connection_after_the_old_one():
    with machine() as g:
        g.qmp.cmd('query-status')
        g.qmp.close()
        for _ in range(20):
            q = Qmp(g.qmp_path)
            q.negotiate().cmd('query-status')
            q.close()
        # Half-closed: we stop sending, and still get what we asked for.
        q = Qmp(g.qmp_path).negotiate()
        q.send({'execute': 'query-status', 'id': 1})
        assert q.reply()['id'] == 1
        q.sock.shutdown(socket.SHUT_WR)
        q.close()
        Qmp(g.qmp_path).negotiate().close()


def stop_cont_and_reset_events():
    with machine('-S') as g:
        q = g.qmp
        assert q.cmd('query-status')['status'] == 'prelaunch'
        q.cmd('cont')
        q.event('RESUME')
        q.cmd('stop')
        e = q.event('STOP')
        assert abs(e['timestamp']['seconds'] - time.time()) < 60
        assert q.cmd('query-status') == {'running': False, 'singlestep': False, 'status': 'paused'}
        q.cmd('stop')
        q.cmd('cont')
        q.event('RESUME')
        q.cmd('system_reset')
        e = q.event('RESET')
        assert e['data'] == {'guest': False, 'reason': 'host-qmp-system-reset'}, e
        assert q.cmd('query-status')['running'] is True
        q.cmd('system_powerdown')
        q.event('POWERDOWN')


def stop_and_cont_many_times():
    with machine('-smp', '4') as g:
        q = g.qmp
        for _ in range(200):
            q.cmd('stop')
            q.cmd('cont')
        assert q.cmd('query-status')['running'] is True


def quit_ends_with_0():
    with machine() as g:
        q = g.qmp
        q.send({'execute': 'quit', 'id': 1})
        assert q.reply()['return'] == {}
        e = q.event('SHUTDOWN')
        assert e['data'] == {'guest': False, 'reason': 'host-qmp-quit'}, e
        assert g.wait(10) == 0
        assert not os.path.exists(g.qmp_path)


def sigterm_is_an_orderly_end():
    with machine('-no-shutdown') as g:
        q = g.qmp
        q.cmd('query-status')
        g.proc.send_signal(signal.SIGTERM)
        e = q.event('SHUTDOWN')
        assert e['data'] == {'guest': False, 'reason': 'host-signal'}, e
        assert g.wait(10) == 0


def cpus_have_real_threads():
    with machine('-smp', '3') as g:
        cpus = g.qmp.cmd('query-cpus-fast')
        assert [c['cpu-index'] for c in cpus] == [0, 1, 2]
        names = {t['tid']: t['name'] for t in g.threads()}
        for c in cpus:
            assert names[c['thread-id']] == f"CPU {c['cpu-index']}/TCG", names
        assert len({c['thread-id'] for c in cpus} | {g.proc.pid}) == 4


def a_client_that_does_not_read():
    with machine() as g:
        s = socket.socket(socket.AF_UNIX)
        time.sleep(0.2)
        s.connect(g.qmp_path)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, struct.unpack('i', struct.pack('i', 4096))[0])
        s.settimeout(2)
        try:
            s.sendall(b'{"execute":"qmp_capabilities"}\r\n' + b'{"execute":"query-commands"}\r\n' * 20000)
        except socket.timeout:
            pass
        assert g.status('VmRSS') < 300 * 1024
        s.close()
        Qmp(g.qmp_path).negotiate().cmd('query-status')


def several_monitors():
    path = tempfile.mktemp(prefix='qrt-mon-')
    with machine('-qmp', f'unix:{path},server=on,wait=off') as g:
        a, b = g.qmp, Qmp(path).negotiate()
        a.cmd('stop')
        assert b.event('STOP')
        b.cmd('cont')
        assert a.event('RESUME')


def translator_statistics():
    with machine('-smp', '2') as g:
        info = g.qmp.cmd('query-jit')
        assert [c['cpu-index'] for c in info] == [0, 1], info
        for c in info:
            assert c['size'] > 0 and c['blocks'] <= c['translations'], c
            counts = [f['count'] for f in c['top-fallbacks']]
            assert counts == sorted(counts, reverse=True) and sum(counts) <= c['fallbacks'], c
        # The guest is 16-bit code, which is interpreted.
        assert info[0]['interpreted-blocks'] > 0 and info[0]['translations'] == 0, info
    with Guest('-accel', 'tcg,one-insn=on', '-m', '16', '-bios', BIOS, '-display', 'none', '-nodefaults',
               qmp=True) as g:
        assert g.qmp.cmd('query-jit') == []


def hmp_commands():
    path = tempfile.mktemp(prefix='qrt-hmp-')
    with machine('-monitor', f'unix:{path},server=on,wait=off') as g:
        g.qmp.cmd('query-status')
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(20)
        s.connect(path)
        buf = b''

        def until_prompt():
            nonlocal buf
            while b'(qemu) ' not in buf:
                data = s.recv(65536)
                assert data
                buf += data
            text, buf = buf.split(b'(qemu) ', 1)
            return text.decode()

        def hmp(line):
            s.sendall(line.encode() + b'\n')
            return until_prompt()

        assert 'monitor' in until_prompt()
        assert 'running' in hmp('info status')
        assert '* CPU #0: thread_id=' in hmp('info cpus')
        assert 'RIP=' in hmp('info registers')
        assert 'ram' in hmp('info mtree').lower()
        assert 'FlatView' in hmp('info mtree -f') or 'pc' in hmp('info mtree -f')
        assert 'dev:' in hmp('info qtree')
        assert 'CPU #0: code cache' in hmp('info jit')
        assert '0xfb' in hmp('xp /4xb 0xfffffff0')
        assert 'sti' in hmp('xp /2i 0xfffffff0')
        assert 'Error' in hmp('x /4z 0')
        assert 'unknown command' in hmp('frobnicate')
        assert 'paused' in hmp('stop') + hmp('info status')
        assert 'running' in hmp('cont') + hmp('info status')
        s.sendall(b'quit\n')
        assert g.wait(10) == 0


def send_fd(q, msg, *fds):
    q.sock.sendmsg([json.dumps(msg).encode() + b'\r\n'],
                   [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f'{len(fds)}i', *fds))])


def open_fds(g):
    return len(os.listdir(f'/proc/{g.proc.pid}/fd'))


def descriptors_in_names_and_sets():
    other = tempfile.mktemp(prefix='qrt-mon-')
    with machine('-qmp', f'unix:{other},server=on,wait=off') as g, open('/dev/null', 'rb') as f:
        q, b = g.qmp, Qmp(other).negotiate()
        before = open_fds(g)

        def error(msg):
            q.send(msg)
            return q.reply()['error']['desc']

        assert 'SCM_RIGHTS' in error({'execute': 'getfd', 'arguments': {'fdname': 'a'}})
        assert 'SCM_RIGHTS' in error({'execute': 'add-fd'})
        for _ in range(3):  # the same name: the old one is closed
            send_fd(q, {'execute': 'getfd', 'arguments': {'fdname': 'a'}}, f.fileno())
            assert q.reply()['return'] == {}
        assert open_fds(g) == before + 1
        b.send({'execute': 'closefd', 'arguments': {'fdname': 'a'}})
        assert 'not found' in b.reply()['error']['desc']  # names are a session's own
        send_fd(q, {'execute': 'getfd', 'arguments': {'fdname': '1a'}}, f.fileno())
        assert 'digit' in q.reply()['error']['desc']
        q.cmd('closefd', fdname='a')
        assert 'not found' in error({'execute': 'closefd', 'arguments': {'fdname': 'a'}})
        assert open_fds(g) == before
        send_fd(q, {'execute': 'add-fd', 'arguments': {'opaque': 'first'}}, f.fileno())
        one = q.reply()['return']
        send_fd(q, {'execute': 'add-fd', 'arguments': {'fdset-id': one['fdset-id']}}, f.fileno())
        two = q.reply()['return']
        send_fd(q, {'execute': 'add-fd'}, f.fileno())
        three = q.reply()['return']
        assert two['fdset-id'] == one['fdset-id'] != three['fdset-id']
        sets = {s['fdset-id']: s['fds'] for s in b.cmd('query-fdsets')}
        assert sets[one['fdset-id']] == [{'fd': one['fd'], 'opaque': 'first'}, {'fd': two['fd']}], sets
        b.cmd('remove-fd', **{'fdset-id': one['fdset-id'], 'fd': one['fd']})
        b.cmd('remove-fd', **{'fdset-id': one['fdset-id']})
        assert 'not found' in error({'execute': 'remove-fd', 'arguments': {'fdset-id': one['fdset-id']}})
        b.cmd('remove-fd', **{'fdset-id': three['fdset-id']})
        assert open_fds(g) == before
        # Unclaimed ones do not outlive the session, however many came.
        for _ in range(30):
            send_fd(q, {'execute': 'query-status'}, f.fileno(), f.fileno())
            q.reply()
        q.close()
        for _ in range(100):
            if open_fds(g) <= before:
                break
            time.sleep(0.05)
        assert open_fds(g) <= before, (open_fds(g), before)
        b.cmd('query-status')


def descriptors_of_the_command_line():
    d = tempfile.mkdtemp(prefix='qrt-fd-')
    try:
        fd = os.open(d + '/log', os.O_WRONLY | os.O_CREAT, 0o600)
        argv = ['-accel', 'qtest', '-nodefaults', '-display', 'none', '-add-fd', f'fd={fd},set=7,opaque=x',
                '-chardev', 'ringbuf,id=r,size=256,logfile=/dev/fdset/7,logappend=on', '-S']
        with Guest(*argv, qmp=True, pass_fds=(fd,)) as g:
            q = g.qmp
            q.cmd('ringbuf-write', device='r', data='hello')
            assert q.cmd('ringbuf-read', device='r', size=3) == 'hel'
            assert q.cmd('ringbuf-read', device='r', size=99, format='base64') == 'bG8='
            q.cmd('ringbuf-write', device='r', data='/wA=', format='base64')
            assert q.cmd('ringbuf-read', device='r', size=9) == '\ufffd\ufffd'
            for a, word in (({'device': 'q', 'size': 1}, 'not found'), ({'device': 'r', 'size': 0}, 'zero')):
                q.send({'execute': 'ringbuf-read', 'arguments': a})
                assert word in q.reply()['error']['desc']
            assert [s['fdset-id'] for s in q.cmd('query-fdsets')] == [7]
        for _ in range(100):
            with open(d + '/log', 'rb') as f:
                if f.read().startswith(b'hello'):
                    break
            time.sleep(0.05)
        else:
            raise AssertionError('nothing in the log')
        os.close(fd)
        for arg, word in (('fd=1,set=0', 'fd='), ('fd=999,set=0', 'fd=999'), ('set=0', 'fd='), ('fd=9', 'set=')):
            assert word in run_refused('-add-fd', arg, '-machine', 'none'), arg
        assert '/dev/fdset/3' in run_refused('-machine', 'none', '-chardev', 'file,id=f,path=/dev/fdset/3')
    finally:
        shutil.rmtree(d)


def objects():
    with machine('-object', 'secret,id=s0,data=YWJj,format=base64') as g:
        q = g.qmp

        def error(**args):
            q.send({'execute': 'object-add', 'arguments': args})
            return q.reply()['error']['desc']

        q.cmd('object-add', **{'qom-type': 'secret', 'id': 's1', 'data': 'top'})
        listed = {p['name']: p['type'] for p in q.cmd('qom-list', path='/objects')}
        assert listed == {'type': 'string', 's0': 'child<secret>', 's1': 'child<secret>'}, listed
        assert q.cmd('qom-get', path='/objects/s1', property='data') == ''  # not to be read back
        assert 's1' in error(**{'qom-type': 'secret', 'id': 's1', 'data': 'x'})
        for args, word in (({'id': 'a'}, 'qom-type'), ({'qom-type': 'secret'}, "'id'"),
                           ({'qom-type': 'none-such', 'id': 'a'}, 'none-such'),
                           ({'qom-type': 'secret', 'id': 'a'}, 'must be provided'),
                           ({'qom-type': 'secret', 'id': 'a', 'data': 'b', 'file': 'c'}, 'exclusive'),
                           ({'qom-type': 'secret', 'id': 'a', 'file': '/no/such'}, '/no/such'),
                           ({'qom-type': 'secret', 'id': 'a', 'data': 'b', 'size': 4}, "'size'"),
                           ({'qom-type': 'secret', 'id': 'a', 'data': '$', 'format': 'base64'}, 'ase64'),
                           ({'qom-type': 'secret', 'id': '0a', 'data': 'b'}, '0a'),
                           ({'qom-type': 'memory-backend-ram', 'id': 'a'}, "'size'"),
                           ({'qom-type': 'memory-backend-ram', 'id': 'a', 'size': '1'}, "'size'"),
                           ({'qom-type': 'memory-backend-ram', 'id': 'a', 'size': 0}, 'size')):
            assert word in error(**args), (args, error(**args))
        for i in range(20):
            q.cmd('object-add', **{'qom-type': 'memory-backend-ram', 'id': 'm', 'size': 1 << 30})
            q.cmd('object-del', id='m')
        q.cmd('object-del', id='s0')
        q.send({'execute': 'object-del', 'arguments': {'id': 's0'}})
        assert 'not found' in q.reply()['error']['desc']
    for args, word in ((('-object', 'secret,id=a'), 'must be provided'), (('-object', 'none-such,id=a'), 'none-such'),
                       (('-object', 'memory-backend-ram,id=m,size=32M', '-m', '64', '-machine', 'memory-backend=m'),
                        'equal'), (('-machine', 'memory-backend=m'), "'m' not found")):
        assert word in run_refused('-accel', 'tcg', '-nodefaults', '-display', 'none', *args), args


def the_tree_of_objects():
    with machine('-smp', '2', '-device', 'isa-debug-exit,id=out', '-device', 'pc-testdev') as g:
        q = g.qmp

        def error_class(name, **args):
            q.send({'execute': name, 'arguments': args})
            return q.reply()['error']['class']

        assert {p['name'] for p in q.cmd('qom-list', path='/machine')} >= {'peripheral', 'unattached', 'hpet'}
        assert 'out' in [p['name'] for p in q.cmd('qom-list', path='/machine/peripheral')]
        iobase = q.cmd('qom-get', path='/machine/peripheral/out', property='iobase')
        assert iobase == q.cmd('qom-get', path='out', property='iobase') == 0x501, hex(iobase)
        tree = q.cmd('qom-list', path='/machine/unattached')
        for p in tree[1:]:
            path = '/machine/unattached/' + p['name']
            assert p['type'] == f"child<{q.cmd('qom-get', path=path, property='type')}>", p
        assert [p['type'] for p in tree[1:3]] == ['child<qemu64-x86_64-cpu>'] * 2
        assert 'child<pc-testdev>' in [p['type'] for p in tree]
        for path in ('/nowhere', '', 'x', '/machine/unattached/device[999]', '/machine/unattached/device[0]x',
                     '/machine/unattached/device[', '/machine/peripheral/', '/machinery', '/objects/x'):
            if not path.endswith('peripheral/'):
                assert error_class('qom-list', path=path) == 'DeviceNotFound', path
                assert error_class('qom-get', path=path, property='type') == 'DeviceNotFound', path
        assert error_class('qom-get', path='/machine', property='nothing') == 'GenericError'
        for t in q.cmd('qom-list-types', implements='device'):
            q.cmd('device-list-properties', typename=t['name'])
        assert error_class('device-list-properties', typename='secret') == 'GenericError'
        assert error_class('device-list-properties', typename='no-such') == 'DeviceNotFound'
        abstract = {t['name']: t for t in q.cmd('qom-list-types', abstract=True)}
        assert abstract['device']['abstract'] is True
        for t in abstract.values():
            assert t['name'] == 'object' or t['parent'] in abstract, t
            q.cmd('qom-list-properties', typename=t['name'])
        assert q.cmd('qom-list-types', implements='no-such') == []


def the_human_monitor_through_qmp():
    with machine('-smp', '2') as g:
        q = g.qmp
        assert q.cmd('human-monitor-command', **{'command-line': 'info status'}) == 'VM status: running\r\n'
        text = q.cmd('human-monitor-command', **{'command-line': 'info cpus', 'cpu-index': 1})
        assert '* CPU #1' in text, text
        assert 'unknown command' in q.cmd('human-monitor-command', **{'command-line': 'frob'})
        assert q.cmd('human-monitor-command', **{'command-line': ''}) == ''
        q.send({'execute': 'human-monitor-command', 'arguments': {'command-line': 'info cpus', 'cpu-index': 2}})
        assert q.reply()['error']['class'] == 'GenericError'


try:
    main(greeting_and_negotiation, errors_have_class_and_desc, strings_are_not_cut_at_a_nul, garbage_harms_nobody,
         input_may_be_split_anywhere, huge_command_is_refused, what_a_client_made_big_does_not_stay,
         pipelined_commands_of_one_client_do_not_delay_others, commands_of_a_client_that_left_are_done, new_connection_after_the_old_one,
         stop_cont_and_reset_events, stop_and_cont_many_times, quit_ends_with_0,
         sigterm_is_an_orderly_end, cpus_have_real_threads, a_client_that_does_not_read,
         several_monitors, translator_statistics, hmp_commands,
         descriptors_in_names_and_sets, descriptors_of_the_command_line, objects, the_tree_of_objects,
         the_human_monitor_through_qmp)
finally:
    os.unlink(BIOS)
