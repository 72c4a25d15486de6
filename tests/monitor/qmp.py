#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""QMP and HMP as clients meet them, on a machine that runs a small guest (HLT for ever)."""
import json
import os
import signal
import socket
import struct
import sys
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, Qmp, main  # noqa: E402


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
        assert g.status('VmRSS') < 700 * 1024, g.status('VmRSS')


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


try:
    main(greeting_and_negotiation, errors_have_class_and_desc, garbage_harms_nobody,
         input_may_be_split_anywhere, huge_command_is_refused, new_connection_after_the_old_one,
         stop_cont_and_reset_events, stop_and_cont_many_times, quit_ends_with_0,
         sigterm_is_an_orderly_end, cpus_have_real_threads, a_client_that_does_not_read,
         several_monitors, translator_statistics, hmp_commands)
finally:
    os.unlink(BIOS)
