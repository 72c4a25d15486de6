#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""QMP and HMP byte by byte: numbers and names that JSON parsers treat differently, clients that stop sending, clients that wait."""
import json
import os
import re
import socket
import sys
import tempfile
import threading
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, Qmp, main  # noqa: E402

sys.setrecursionlimit(10000)  # for JSON of many brackets


def machine(*args):
    return Guest('-machine', 'none', '-accel', 'tcg', '-display', 'none', '-nodefaults', '-S', *args, qmp=True)


def answer(q, text, pieces=False):
    """The line that answers text, as it is."""
    text = text if isinstance(text, bytes) else text.encode()
    for part in ([bytes([b]) for b in text] if pieces else [text]):
        q.sock.sendall(part)
    q.sock.sendall(b'\r\n')
    while b'\r\n' not in q.buf:
        q.buf += q.sock.recv(65536)
    line, q.buf = q.buf.split(b'\r\n', 1)
    return line.decode()


WIDE = ('18446744073709551616', '-9223372036854775809', '99999999999999999999', '123456789012345678901234567890',
        '-' + '1' * 500, '1' + '0' * 5000)
FIT = ('0', '-1', '18446744073709551615', '-9223372036854775808', '9223372036854775808', '10000000000000000000', '1.5',
       '1e400', '123456789012345678901234567890.5', '-2.25e-300', 'null', 'true', '""', '[]', '{}', '[null]', '{"a": null}')


def exact(text):
    """Numbers as they are written."""
    return json.loads(text, parse_int=str, parse_float=str)


def ids_come_back_as_they_came():
    with machine() as g:
        for value in WIDE + FIT:
            for text in (value, f'[{value},{value}]', f'{{"a": [{value}], "b": "{value.count("1")}"}}'):
                for pieces in (False, True)[:1 if len(text) > 1000 else 2]:
                    r = answer(g.qmp, f'{{"execute": "query-name", "id": {text}}}', pieces)
                    assert exact(r)['id'] == exact(text), (text, r)
        # Digits in strings are digits in strings, and the next command is none the worse.
        for text in ('"99999999999999999999"', r'"\"99999999999999999999"', '"99999999999999999999:{"'):
            assert f'"id": {text}' in answer(g.qmp, f'{{"execute": "query-name", "id": {text}}}')
        assert g.qmp.cmd('query-status')['running'] is False


def errors_have_the_id_too():
    with machine() as g:
        for text in ('null', WIDE[0]):
            for command in ('"no-such"', 'null', '5', '"stop", "arguments": null', '"stop", "arguments": {"x": 1}'):
                r = answer(g.qmp, f'{{"execute": {command}, "id": {text}}}')
                assert '"error"' in r and f'"id": {text}' in r, r
        assert 'must be a string' in answer(g.qmp, '{"execute": null}')
        assert '"id"' not in answer(g.qmp, '{"execute": "query-name"}')


def wide_integers_are_no_parameters():
    with machine('-chardev', 'ringbuf,id=r') as g:
        for value in WIDE:
            r = json.loads(answer(g.qmp, '{"execute": "ringbuf-read", "arguments": {"device": "r", "size": %s}, "id": 5}' % value))
            assert r['id'] == 5 and "'size', expected: integer" in r['error']['desc'], r


NO_JSON = ('NaN', 'nan', 'Infinity', '-Infinity', '-NaN', 'Infinit', '01', '-01', '00', '+1', '.5', '-.5',
           '1.', '1.e5', '1e', '1e+',
           '1e5.5', '1.5.2', '1-2', '0x10', '-', '--1', '- 1', '+', 'e5', '1_000', '1a', 'TRUE', 'True',
           'Null', 'nul', 'tru', '-true',
           'nulls', 'truefalse', '[1,]', '[,1]', '[1 2]', '[1]]', '{"a": 1,}', '{a: 1}', '{"a" 1}',
           '{1: 2}', '/*x*/1', '1 //x', '#', '%d',
           r'"\x41"', r'"\a"', r'"\u00"', r'"\u00g0"', r'"\ud800"', r'"\udc00"', r'"\ud800\u0041"',
           r'"\udc00\ud800"', r'"\ud83d\n"',
           r'"\ud83dx"', r'"\ud83d\ude0"', r'"\uffff"', '"a\tb"', '"\x01"', b'"\xff"', b'"\x80"', b'"\xc3"',
           b'"\xc3a"', b'"\xed\xa0\x80"',
           b'"\xc0\x80"', b'"\xe0\x80\x80"', b'"\xf4\x90\x80\x80"', b'"\xef\xbf\xbf"', b'"\xef\xb7\x90"',
           b'"\xf8\x88\x80\x80\x80"', '"', "'", '"\'',
           r'"\u0000"', r'"a\u0000b"', r'{"a\u0000b": 1}', '[' * 1024 + ']' * 1024, '[' + '1,' * 32768 + '1]')
JSON = (('-0', None), ('0.5', None), ('1e5', None), ('-1.25E-2', None), ('0e0', None), ("'a'", 'a'),
        ("'a\"b'", 'a"b'), ("{'a': 'b'}", {'a': 'b'}),
        ('"a\'b"', "a'b"), (r'"\'"', "'"), (r"'\''", "'"), (r"'\'\''", "''"), (r'"\"\\\/\b\f\n\r\t"',
        '"\\/\b\f\n\r\t'),
        (r'"\ud83d\ude00"', '\U0001f600'), (r'"\u00E9\u00e9"', '\u00e9\u00e9'), ('"\u00e9\u20ac\U0001f600"',
        '\u00e9\u20ac\U0001f600'),
        ('"\x7f"', '\x7f'), (' [ 1 , 2 ] ', [1, 2]), ('[' * 1023 + ']' * 1023, None), ('[' + '{},' * 32000 + '0]', None))


def what_is_no_json_is_refused():
    """As by QEMU; and the next line is none the worse."""
    with machine() as g:
        for value in NO_JSON:
            raw = value if isinstance(value, bytes) else value.encode()
            for pieces in (False, True)[:1 if len(raw) > 100 else 2]:
                text = b'{"execute": "query-name", "id": ' + raw + b'}'
                r = json.loads(answer(g.qmp, text, pieces))
                assert r.get('error', {}).get('class') == 'GenericError' and r['error']['desc'].startswith('JSON parse error, '), (value, r)
                r = json.loads(answer(g.qmp, '{"execute": "query-name", "id": "next"}'))
                assert r == {'return': {}, 'id': 'next'}, (value, r)
        for value, result in JSON:
            for pieces in (False, True)[:1 if len(value) > 100 else 2]:
                r = json.loads(answer(g.qmp, '{"execute": "query-name", "id": %s}' % value, pieces))
                assert r == {'return': {}, 'id': json.loads(value) if result is None else result}, (value, r)


def peak_mib(g):
    with open(f'/proc/{g.proc.pid}/status', encoding='ascii') as f:
        return int(re.search(r'VmHWM:\s+(\d+)', f.read())[1]) >> 10


def a_line_of_many_values_takes_little_memory():
    """Each would be some 270 bytes to the library: 12 MiB of them, gigabytes."""
    with machine() as g:
        before = peak_mib(g)
        for unit in ('{}', '[]', '1', '"a"', '"":{}'):
            body = ','.join([unit] * ((12 << 20) // (len(unit) + 1)))
            r = json.loads(answer(g.qmp, '{"execute": "query-name", "id": %s}' % ('{%s}' if ':' in unit else '[%s]') % body))
            assert 'JSON parse error' in r['error']['desc'], (unit, r)
            assert json.loads(answer(g.qmp, '{"execute": "query-name", "id": 1}')) == {'return': {}, 'id': 1}
        assert peak_mib(g) - before < 128, (before, peak_mib(g))


def a_member_named_twice_is_refused():
    twice = ('{"execute": "quit", "execute": "query-name"}', '{"execute": "query-name", "id": 1, "id": 2}',
             '{"execute": "query-name", "id": {"a": 1, "a": 1}}', '{"execute": "query-name", "id": [{"a": {"b": 1, "b": 2}}]}',
             '{"execute": "query-name", "arguments": {}, "arguments": {}}', r'{"execute": "query-name", "id": {"a": 1, "\u0061": 2}}',
             '{"execute": "human-monitor-command", "arguments": {"command-line": "quit", "command-line": "info name"}}')
    once = ('{"execute": "query-name", "id": {"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 1}]}}',
            '{"execute": "query-name", "id": {"a:": "b:c", "\\":": ":"}}')
    with machine() as g:
        for pieces in (False, True):
            for text in twice:
                r = json.loads(answer(g.qmp, text, pieces))
                assert r['error'] == {'class': 'GenericError', 'desc': 'JSON parse error, duplicate key'}, r
            for text in once:
                r = json.loads(answer(g.qmp, text, pieces))
                assert r['id'] == json.loads(text)['id'], r


def client(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    end = time.monotonic() + 20
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.02)
    s.connect(path)
    return s


def read_to_end(s, pause=0.0):
    out = b''
    while True:
        data = s.recv(1 << 14)
        if not data:
            return out
        out += data
        time.sleep(pause)


def send_and_read(path, text, pause=0.0):
    """All that comes back to a client that sends text, then nothing any more, and reads meanwhile."""
    s, result = client(path), []
    reader = threading.Thread(target=lambda: result.append(read_to_end(s, pause)))
    reader.start()
    s.sendall(text)
    s.shutdown(socket.SHUT_WR)
    reader.join(60)
    assert result, 'the connection was not ended'
    s.close()
    return result[0]


def half_closed_clients_get_every_answer():
    with tempfile.TemporaryDirectory(prefix='qrt-') as d, machine('-qmp', f'unix:{d}/q,server=on,wait=off') as g:
        first = b'{"execute":"qmp_capabilities"}\r\n'
        for count, command, pause in ((1, b'query-status', 0), (3000, b'query-status', 0), (3000, b'query-status', 0.001),
                                      (40, b'query-qmp-schema', 0), (40, b'query-qmp-schema', 0.001)):
            text = first + b''.join(b'{"execute":"%s","id":%d}\r\n' % (command, i) for i in range(count))
            lines = [json.loads(l) for l in send_and_read(d + '/q', text, pause).split(b'\r\n') if l]
            ids = [l['id'] for l in lines if 'id' in l]
            assert ids == list(range(count)), (count, command, len(ids), ids[-1:])
        # The next one is served as ever, also after one that read nothing and left.
        s = client(d + '/q')
        s.sendall(first + b'{"execute":"query-qmp-schema"}' * 500)
        s.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        s.close()
        Qmp(d + '/q').negotiate().cmd('query-status')
        assert g.qmp.cmd('query-status')['running'] is False


def half_closed_human_monitors_too():
    with tempfile.TemporaryDirectory(prefix='qrt-') as d, machine('-monitor', f'unix:{d}/m,server=on,wait=off'):
        for pause in (0, 0.01):
            out = send_and_read(d + '/m', b'help\n' * 400 + b'info version\n', pause)
            assert out.count(b'sendkey ') == 400 and out.rstrip().endswith(b'(qemu)'), out[-200:]


def the_next_client_waits():
    """One at a time; who comes meanwhile is neither refused nor heard, and has its turn."""
    with machine() as g:
        g.qmp.cmd('query-name')
        q = Qmp.__new__(Qmp)
        q.buf, q.events = b'', []
        q.sock = client(g.qmp_path)
        third = []
        waiting = threading.Thread(target=lambda: third.append(Qmp(g.qmp_path).negotiate()))
        waiting.start()
        q.sock.settimeout(0.3)
        try:
            assert not q.sock.recv(1), 'served two at once'
            raise AssertionError('the second client was refused')
        except socket.timeout:
            pass
        assert g.qmp.cmd('query-status')['running'] is False
        g.qmp.close()
        q.sock.settimeout(20)
        assert 'QMP' in q.read()
        q.negotiate().cmd('query-status')
        assert not third
        q.close()
        waiting.join(20)
        assert third and third[0].cmd('query-status')['running'] is False
        third[0].close()


main(ids_come_back_as_they_came, what_is_no_json_is_refused, errors_have_the_id_too,
     wide_integers_are_no_parameters, a_line_of_many_values_takes_little_memory, a_member_named_twice_is_refused,
     half_closed_clients_get_every_answer, half_closed_human_monitors_too, the_next_client_waits)
