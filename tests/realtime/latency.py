#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Latency as the emulator sees it: query-realtime-latency, reset, the bound's event, the host check
over QMP, and what the histograms cost. Output: TAP.

    latency.py EMULATOR LATENCY-COST
"""
import os
import re
import subprocess
import sys
import tempfile
import time
os.environ['QEMU_BINARY'] = sys.argv[1]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import BINARY, Guest, main, skip  # noqa: E402

COST = sys.argv[2]

# cli; L: out 80h, al; jmp L
OUT_LOOP = bytes.fromhex('fa e680 ebfc')
# The PIT interrupts 1000 times a second and the CPU halts in between.
TIMER = bytes.fromhex('fa 31c0 8ed8 8ed0 bc007c c70620004000 c706220000f0'
                      'b011e620 b008e621 b004e621 b001e621 b0fee621'  # 8259: vectors 8.., IRQ 0
                      'b034e643 b0a9e640 b004e640'                    # 8254: mode 2, 1193
                      'fb f4 ebfd').ljust(0x40, b'\x90') + bytes.fromhex('50 b020 e620 58 cf')


def rom(code):
    """64 KiB of firmware: the reset vector jumps to code at F000:0000."""
    f = tempfile.NamedTemporaryFile(prefix='qrt-rom-', suffix='.bin')
    data = bytearray(b'\xf4' * 65536)
    data[:len(code)] = code
    data[0xfff0:0xfff5] = b'\xea\x00\x00\x00\xf0'
    f.write(data)
    f.flush()
    return f


def machine(code, accel, *args):
    f = rom(code)
    g = Guest('-accel', accel, '-m', '16', '-bios', f.name, '-display', 'none', '-nodefaults', *args,
              qmp=True)
    g.rom = f
    return g


def accelerators():
    """tcg, and kvm where it works."""
    yield 'tcg'
    if os.access('/dev/kvm', os.R_OK | os.W_OK):
        yield 'kvm'


def histograms(qmp, **args):
    info = qmp.cmd('query-realtime-latency', **args)
    return {t['name']: {(h['group'], h['name']): h for h in t['histograms']}
            for t in info['threads']}


def vcpu_of(threads):
    return next(v for k, v in threads.items() if k.startswith('CPU 0/'))


def check_shape(h, buckets=False):
    steps = [h[k] for k in ('p50', 'p90', 'p99', 'p99.9', 'p99.99', 'max')]
    assert steps == sorted(steps), h
    assert h['count'] > 0 and 0 <= h['mean'] <= h['max'], h
    if buckets:
        b = h['buckets']
        assert sum(x['count'] for x in b) == h['count'], h
        assert all(x['low'] <= x['high'] for x in b), h
        assert all(a['high'] < z['low'] for a, z in zip(b, b[1:])), h
        assert b[-1]['low'] <= h['max'] <= b[-1]['high'], h
    else:
        assert 'buckets' not in h, h


def exits_by_reason():
    for accel in accelerators():
        with machine(OUT_LOOP, accel) as g:
            time.sleep(1)
            io = vcpu_of(histograms(g.qmp))[('exit', 'io')]
            check_shape(io)
            assert io['count'] * io['weight'] > 5000, (accel, io)
            # Every access of KVM's comes out and is timed; the translator times a sample.
            assert io['weight'] == (1 if accel == 'kvm' else 512), (accel, io)
            info = g.qmp.cmd('query-realtime-latency', buckets=True)
            for t in info['threads']:
                for h in t['histograms']:
                    check_shape(h, buckets=True)


def timers_and_halt():
    for accel in accelerators():
        with machine(TIMER, accel) as g:
            time.sleep(2)
            t = histograms(g.qmp)
            names = set(t)
            assert any(n.startswith('CPU 0/') for n in names) and len(names) >= 2, names
            if accel == 'kvm':
                continue  # its PIT is in the kernel, and so is HLT
            loop = t['main']
            assert loop[('timer', 'loop')]['count'] > 300, (accel, loop)
            assert loop[('loop', 'iteration')]['count'] >= loop[('timer', 'loop')]['count'] / 2, loop
            halt = vcpu_of(t)[('exit', 'halt')]
            check_shape(halt)
            assert halt['count'] > 300, halt
            # Sleep is not in it: it would be 1 ms each.
            assert halt['p50'] < 500000, halt


def one_thread_and_reset():
    with machine(TIMER, 'tcg') as g:
        time.sleep(1)
        assert list(histograms(g.qmp, thread='main')) == ['main']
        before = histograms(g.qmp)['main'][('timer', 'loop')]['count']
        g.qmp.cmd('realtime-latency-reset')
        after = histograms(g.qmp).get('main', {}).get(('timer', 'loop'), {'count': 0})['count']
        assert after < before / 2, (before, after)
        time.sleep(0.5)
        assert histograms(g.qmp)['main'][('timer', 'loop')]['count'] > after
        g.qmp.send({'execute': 'query-realtime-latency', 'arguments': {'thread': 'nobody'}})
        assert 'nobody' in g.qmp.reply()['error']['desc']


def paused_time_is_not_counted():
    with machine(OUT_LOOP, 'tcg') as g:
        time.sleep(0.3)
        g.qmp.cmd('stop')
        time.sleep(3)
        g.qmp.cmd('cont')
        time.sleep(0.3)
        for key, h in vcpu_of(histograms(g.qmp)).items():
            assert h['max'] < 2500000000, (key, h)


def bound_and_event():
    with machine(OUT_LOOP, 'tcg', '-realtime', 'id=a,policy=other,latency-warn=1,mlock=off') as g:
        e = g.qmp.event('REALTIME_LATENCY')['data']
        assert e['duration-ns'] >= 1000 and e['bound-us'] == 1, e
        assert e['group'] in ('exit', 'timer', 'loop', 'lock'), e
        assert e['thread'] and e['thread-id'] > 0, e
        start, n = time.monotonic(), 0
        g.qmp.sock.settimeout(0.5)
        try:
            while time.monotonic() - start < 2:
                g.qmp.event('REALTIME_LATENCY')
                n += 1
        except (TimeoutError, OSError):
            pass
        assert 1 <= n <= 22, n
    with machine(OUT_LOOP, 'tcg', '-realtime',
                 'id=a,policy=other,latency-warn=10000000,mlock=off') as g:
        time.sleep(1)
        g.qmp.cmd('query-status')
        assert not [e for e in g.qmp.events if e['event'] == 'REALTIME_LATENCY'], g.qmp.events
        assert g.qmp.cmd('query-realtime-latency')['warn-us'] == 10000000


def hmp():
    with machine(TIMER, 'tcg', '-monitor', 'stdio') as g:
        time.sleep(0.5)
        for line in ('info latency', 'info realtime-latency main'):
            g.send(line + '\r')
            g.expect(r'microseconds, clock: (tsc|monotonic)')
            g.expect(r'main \(thread \d+\)')
            g.expect(r'timer loop +\d+( +\d+\.\d{3}){7}')
        g.send('info latency nobody\r')
        g.expect('Error: no measured thread')
        g.send('realtime_latency_reset\r')
        g.expect(r'\(qemu\)')


def host_check():
    with machine(OUT_LOOP, 'tcg') as g:
        info = g.qmp.cmd('query-realtime-host')
    lines = {l['name']: l for l in info['lines']}
    assert len(lines) > 30 and info['passed'] == all(l['status'] != 'fail' for l in lines.values())
    for l in lines.values():
        assert l['status'] in ('ok', 'warn', 'fail') and l['found'] and l['wanted'], l
        assert ('remedy' in l) == (l['status'] != 'ok'), l
    done = subprocess.run([BINARY, '-realtime', 'check'], check=False, capture_output=True, text=True,
                          timeout=60)
    fails = len(re.findall('^FAIL', done.stdout, re.M))
    assert done.returncode == (1 if fails else 0), done
    for name in lines:
        assert re.search(rf'^(OK  |WARN|FAIL)  {name} ', done.stdout, re.M), (name, done.stdout)


def cost_is_below_one_percent():
    """Time for what is recorded, measured alone, beside the time an exit takes."""
    text = subprocess.run([COST], check=True, capture_output=True, text=True, timeout=120).stdout
    ns = {k: float(v) for k, v in re.findall(r'([\w-]+): (-?[\d.]+)', text)}
    print(f'# alone: {ns} ns')
    for accel in accelerators():
        with machine(OUT_LOOP, accel) as g:
            best = 1e9
            time.sleep(0.5)
            for _ in range(5):
                a, t0 = vcpu_of(histograms(g.qmp))[('exit', 'io')], time.monotonic()
                time.sleep(0.5)
                b, t1 = vcpu_of(histograms(g.qmp))[('exit', 'io')], time.monotonic()
                n = (b['count'] - a['count']) * b['weight']
                best = min(best, (t1 - t0) / n * 1e9)
            per = ns['exit' if accel == 'kvm' else 'sampled']
            print(f'# {accel}: {best:.0f} ns an exit (OUT), {per:.2f} ns of them recording: '
                  f'{per / best * 100:.2f} %')
            assert per < best * 0.01, (accel, per, best)


if __name__ == '__main__':
    sys.argv[1:] = sys.argv[3:]
    main(exits_by_reason, timers_and_halt, one_thread_and_reset, paused_time_is_not_counted,
         bound_and_event, hmp, host_check, cost_is_below_one_percent)
