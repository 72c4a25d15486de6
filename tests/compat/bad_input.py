#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad input: one clear line (option, value, reason, remedy), status 1, nothing lost, nothing left."""
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import BINARY, Guest, main  # noqa: E402

BASE = ('-accel', 'tcg', '-m', '16', '-nodefaults', '-display', 'none')


class Dir:
    """A directory of our own: a path for a name, and what stands in it."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix='qrt-bad-')
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.path, ignore_errors=True)

    def __call__(self, name, text=None):
        path = os.path.join(self.path, name)
        if text is not None:
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
        return path

    def state(self):
        out = {}
        for name in sorted(os.listdir(self.path)):
            path = os.path.join(self.path, name)
            if os.path.isfile(path):
                with open(path, encoding='utf-8') as f:
                    out[name] = f.read()
            else:
                out[name] = None
        return out


def refused(args, *words, timeout=30, **kw):
    """Status 1 and one line with all of the words, none of them NULL's text."""
    r = subprocess.run([BINARY, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=timeout, **kw)
    text = f'{" ".join(args)[:300]}: status {r.returncode}: {r.stderr[:2000]}'
    assert r.returncode == 1, text
    assert r.stderr.count('\n') == 1 and '(null)' not in r.stderr, text
    for w in words:
        assert w in r.stderr, f'{w!r} is missing: {text}'
    return r.stderr


def runs(*args):
    """The machine gets as far as a monitor that answers; returns that monitor's guest."""
    g = Guest(*BASE, *args, '-S', qmp=True, stdin=False)
    try:
        g.qmp.cmd('query-status')
    except Exception:
        g.pump(1)
        print(g.text(), file=sys.stderr)
        g.__exit__()
        raise
    return g


# ---- -pidfile ----

def a_pid_file_is_no_other_file():
    with Dir() as d:
        for text in ('127.0.0.1 localhost\n', '12 34\n', '1' * 40 + '\n', '0x12\n', '\0\0'):
            path = d('important', text)
            refused([*BASE, '-pidfile', path], '-pidfile ' + path, 'something else than a process id',
                    'choose another file')
            assert d.state() == {'important': text}
        refused([*BASE, '-pidfile', d.path], '-pidfile ' + d.path)
        os.mkfifo(d('fifo'))
        refused([*BASE, '-pidfile', d('fifo')], 'not a regular file')
        refused([*BASE, '-pidfile', '/dev/null'], 'not a regular file')
        assert os.path.exists('/dev/null')
        refused([*BASE, '-pidfile', d('no/such')], '-pidfile ' + d('no/such'))


def a_stale_pid_file_is_taken_a_live_one_not():
    with Dir() as d:
        for text in ('', '4194304\n', ' 17', '17 \n'):
            path = d('pid', text)
            with runs('-pidfile', path) as g:
                assert d.state()['pid'] == f'{g.proc.pid}\n'
                refused([*BASE, '-pidfile', path], '-pidfile ' + path, f'process {g.proc.pid} uses it')
                assert d.state()['pid'] == f'{g.proc.pid}\n'
                g.qmp.cmd('quit')
                assert g.wait() == 0
            assert d.state() == {}


# ---- Files that are read whole ----

def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def what_is_read_has_an_end():
    with Dir() as d:
        os.mkfifo(d('fifo'))
        with open(d('huge'), 'wb') as f:
            f.truncate(1 << 40)
        cases = [(['-readconfig'], ''), (['-object'], 'secret,id=s,file='),
                 (['-fw_cfg'], 'opt/x,file=')]
        for option, prefix in cases:
            for path, reason in (('/dev/zero', 'more than'), (d('huge'), 'more than'),
                                 (d.path, 'directory'), (d('fifo'), 'nobody writes'),
                                 (d('none'), 'No such file')):
                refused([*BASE, *option, prefix + path], option[0], path, reason, preexec_fn=limit_memory)
        for option in ('-kernel', '-bios'):
            for path in ('/dev/zero', d('huge'), d.path, d('fifo'), d('none')):
                refused([*BASE, option, path], option, path, preexec_fn=limit_memory)
        with open(d('bios'), 'wb') as f:
            f.truncate(3 << 30)
        for size in (3 << 30, (8 << 20) + 65536, 1000, 0):
            os.truncate(d('bios'), size)
            refused([*BASE, '-bios', d('bios')], '-bios', d('bios'), f' {size} bytes', '64 KiB up to 8 MiB',
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)))
        kernel = os.path.join(os.path.dirname(BINARY), 'tests/guest/lines.elf')
        if os.path.exists(kernel):
            for path in ('/dev/zero', d('huge'), d.path, d('fifo'), d('none')):
                refused([*BASE, '-kernel', kernel, '-initrd', path], '-initrd', path)


def a_pipe_that_is_written_is_read():
    with Dir() as d:
        os.mkfifo(d('fifo'))

        def write():
            with open(d('fifo'), 'w', encoding='ascii') as f:
                f.write('[name]\nguest = "from-a-')
                f.flush()
                threading.Event().wait(0.5)
                f.write('pipe"\n')
        keep = os.open(d('fifo'), os.O_RDWR)  # so that the reader finds a writer at once
        writer = threading.Thread(target=write)
        writer.start()
        closer = threading.Thread(target=lambda: (writer.join(), os.close(keep)))
        closer.start()
        with runs('-readconfig', d('fifo')) as g:
            assert g.qmp.cmd('query-name')['name'] == 'from-a-pipe'
        closer.join()


# ---- A refused start leaves nothing ----

LATE = (['-no-such-option'], ['-m', '1Q'], ['-accel', 'nonsense'], ['-cpu', 'nonsense'],
        ['-device', 'nonsense'], ['-device', 'isa-serial,chardev=none-such'], ['-mon', 'none-such'],
        ['-kernel', '/no/such/kernel'], ['-object', 'nonsense,id=x'], ['-d', 'nonsense'], ['-dfilter', 'nonsense'],
        ['-qmp', 'nonsense'], ['-device', 'pc-testdev', '-device', 'pc-testdev'],
        ['-pidfile', '/no/such/dir/pid'], ['-daemonize', '-kernel', '/no/such/kernel'])


def openers(d):
    """Options that make files, whatever comes of the rest of the line."""
    return ['-D', d('log'), '-d', 'guest_errors', '-chardev', f'file,id=f,path={d("file")}',
            '-chardev', f'null,id=n,logfile={d("chardev-log")}', '-chardev',
            f'socket,id=s,path={d("socket")},server=on,wait=off', '-serial', f'file:{d("serial")}',
            '-monitor', f'unix:{d("monitor")},server=on,wait=off', '-object',
            f'memory-backend-file,id=ram,size=4M,mem-path={d("ram")}', '-qtest', 'null', '-qtest-log',
            d('qtest-log')]


def a_refused_start_makes_no_files():
    with Dir() as d:
        for late in LATE:
            base = [a for a in BASE if '-accel' not in late or a not in ('-accel', 'tcg')]
            refused([*base, *openers(d), *([] if '-pidfile' in late else ['-pidfile', d('pid')]), *late],
                    late[-2] if '-daemonize' in late else late[0])
            assert d.state() == {}, (late, d.state())


def a_refused_start_empties_no_files():
    with Dir() as d:
        old = {n: f'precious {n}\n' for n in ('log', 'file', 'chardev-log', 'serial', 'qtest-log')}
        old['ram'] = ''
        for name, text in old.items():
            d(name, text)
        for late in LATE:
            base = [a for a in BASE if '-accel' not in late or a not in ('-accel', 'tcg')]
            refused([*base, *openers(d), *late])
            assert d.state() == old, (late, d.state())


def a_start_empties_them_and_they_stay():
    with Dir() as d:
        for name in ('log', 'file', 'chardev-log', 'serial', 'qtest-log'):
            d(name, 'old' * 1000)
        with runs(*openers(d)) as g:
            assert all(not d.state()[n] for n in ('log', 'file', 'chardev-log', 'serial')), d.state()
            g.qmp.cmd('quit')
            assert g.wait() == 0
        state = d.state()
        assert 'log' in state and 'ram' in state and 'serial' in state and 'socket' not in state, state


def a_socket_in_use_stays():
    with Dir() as d, socket.socket(socket.AF_UNIX) as s:
        s.bind(d('socket'))
        s.listen(1)
        refused([*BASE, '-qmp', f'unix:{d("socket")},server=on,wait=off'], '-qmp', 'in use')
        assert os.path.exists(d('socket'))


# ---- Ports that are taken ----

PROFILES = ('-realtime', 'id=a,policy=other,mlock=off', '-realtime', 'id=b,policy=other,mlock=off')


def devices_do_not_share_ports():
    exit_dev, con = 'isa-debug-exit,iobase=', 'isa-debugcon,chardev=n,iobase='
    for device, owner, where in (
            (exit_dev + '0x3f8', 'isa-serial', '0x3f8-0x3ff'), (exit_dev + '0xcf8', 'pci-config', '0xcf8'),
            (exit_dev + '0xcff', 'pci-config', '0xcfc'), (exit_dev + '0x80', 'ioport80', '0x80'),
            (exit_dev + '0xf1', 'ioportF0', '0xf0'), (exit_dev + '0x510', 'fwcfg', '0x510'),
            (exit_dev + '0x514', 'fwcfg', '0x514'), (exit_dev + '0x64', 'i8042', '0x64'),
            (exit_dev + '0x70', 'mc146818rtc', '0x70'), (exit_dev + '0x20', 'isa-i8259', '0x20'),
            (exit_dev + '0x40,iosize=4', 'isa-pit', '0x40'), (exit_dev + '0x92', 'port92', '0x92'),
            (exit_dev + '0xb2', 'apm-io', '0xb2'), (exit_dev + '0x604', 'PIIX4_PM', '0x600-0x63f'),
            (con + '0x3f8', 'isa-serial', '0x3f8'), (con + '0xcf8', 'pci-config', '0xcf8'),
            (con + '0xf4', 'isa-debug-exit', '0xf4'), ('realtime-switch,iobase=0xf4', 'isa-debug-exit', '0xf4')):
        refused([*BASE, '-serial', 'null', '-chardev', 'null,id=n', '-device', exit_dev + '0xf4,iosize=4', *PROFILES,
                 '-device', device], '-device ' + device.split(',')[0], device.split(',')[0] + ': ports',
                f'taken by {owner}', where, 'choose others')


def the_usual_ports_are_free():
    with runs('-serial', 'null', '-serial', 'null', '-chardev', 'null,id=n', '-chardev', 'null,id=m', '-device',
              'isa-debug-exit', '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x04', '-device',
              'isa-debugcon,iobase=0x402,chardev=n', '-device', 'isa-debugcon,iobase=0xe9,chardev=m', '-device',
              'pc-testdev', *PROFILES, '-device', 'realtime-switch') as g:
        text = g.qmp.cmd('human-monitor-command', **{'command-line': 'info qtree'})
        for port in ('0x501-', '0xf4-0xf7', '0x402-', '0xe9-', '0xe0-'):
            assert 'port ' + port in text or ', port ' + port in text, (port, text)


# ---- Messages ----

def messages_name_option_value_and_remedy():
    long = 'x' * 100000
    for args, words in (
            (['-chardev', ''], ('-chardev', 'no backend', '-chardev help')),
            (['-chardev', 'foo,id=x'], ('-chardev foo,id=x', '-chardev help')),
            (['-chardev', 'file,id=x'], ('-chardev file,id=x', 'path=FILE')),
            (['-device', 'foo,addr=3'], ('-device foo,addr=3', '-device help')),
            (['-device', 'isa-serial,foo=1'], ('-device isa-serial,foo=1', 'isa-serial,help')),
            (['-device', 'isa-serial,index=x'], ('-device isa-serial,index=x', 'integer')),
            (['-device', 'isa-serial,chardev=x'], ('-device isa-serial,chardev=x', '-chardev')),
            (['-object', 'foo,id=x'], ('-object foo,id=x', '-object help')),
            (['-object', 'secret,id=x'], ('-object secret,id=x', "'file' or 'data'")),
            (['-mon', 'x,mode=foo'], ('-mon', 'chardev=x', '-chardev')),
            (['-cpu', 'qemu64,foo=1'], ('-cpu qemu64,foo=1', '-cpu help')),
            (['-cpu', 'foo'], ('-cpu foo', '-cpu help')),
            (['-machine', 'foo'], ('-machine foo', '-machine help')),
            (['-machine', 'pc,hpet=maybe'], ('-machine pc,hpet=maybe', "'on' or 'off'")),
            (['-action', 'reboot=foo'], ('-action reboot=foo', 'reset, shutdown')),
            (['-display', 'foo'], ('-display foo', 'use none')),
            (['-m', '1k'], ('-m 1k', 'at least 1 MiB')), (['-m', '4k'], ('-m 4k', 'at least 1 MiB')),
            (['-device', 'x\ny\033[2J'], ('-device x?y?[2J', "'x?y?[2J' is not")),
            (['-smp', '2,dies=3'], ('-smp 2,dies=3', 'give more CPUs')),
            (['-smp', '3,cores=2'], ('-smp 3,cores=2', 'must be maxcpus (3)')),
            (['-cpu', long], ('-cpu xxx', 'x...: unknown CPU model')),
            (['-device', long], ('-device xxx', "x...' is not a valid device")),
            (['-' + long], ('-xxx', 'x...: invalid option')),
            (['-name', f'a,{long[:50000]}={long[:50000]}'], ('-name a,xxx', 'x...')),
            *[([o, 'id=a,id=b'], (f'{o} id=a,id=b', "'id'", 'leave '))
              for o in ('-machine', '-accel', '-smp', '-m', '-name', '-boot', '-global', '-realtime', '-overcommit',
                        '-fw_cfg', '-chardev', '-add-fd', '-mon', '-action', '-rtc', '-icount', '-msg', '-device',
                        '-object')],
            (['-device', 'isa-serial,id=a,id=b'], ('isa-serial,id=a,id=b', 'given twice', "'a' and 'b'")),
            (['-device', '{"driver":"isa-serial","id":"a","id":"b"}'], ("'id' is there twice", 'leave one out')),
            (['-object', '{"qom-type":"secret","id":"a","data":"x","data":"y"}'], ("'data' is there twice",)),
            (['-m', 'id=a'], ('-m id=a', "'id'")), (['-name', 'id=a'], ('-name id=a', "'id'")),
            *[([o, ','], (f'{o} ,', 'missing before')) for o in ('-name', '-realtime', '-boot', '-overcommit',
                                                                 '-action', '-msg', '-m')],
            (['-m', ',slots=0'], ('-m ,slots=0', 'missing before')),
            (['-boot', 'inf'], ('-boot', "'i' is no boot device", 'n (network)')),
            (['-boot', 'on'], ("'o' is no boot device",)), (['-boot', 'once=e'], ("'e' is no boot device",)),
            (['-L', '/dev/null'], ('-L /dev/null', 'not a directory')), (['-L', BINARY], ('not a directory',)),
            (['-qtest-log', '/dev/null'], ('-qtest-log /dev/null', 'only means something with -qtest')),
            (['-fw_cfg', 'x'], ('-fw_cfg x', 'either file= or string=')),
            (['-fw_cfg', 'x,file=/no/such'], ('-fw_cfg', '/no/such')),
            (['-append', 'a b ' * 20000], ('-append a b a b', '...: only means something with -kernel'))):
        # The option's place is told once.
        text = refused([*BASE, *args], *words)
        assert text.count(f' {args[0]} ') + text.count(f' {args[0]}: ') <= 1 or 'x' * 99 in text, text
        assert len(text) < 2500, len(text)
    for args in (['-accel', 'foo'], ['-machine', 'accel=foo'], ['-accel', 'tcg,thread=foo']):
        refused(['-display', 'none', *args], ' '.join(args))


def limits_of_the_host_come_with_a_remedy():
    for kind, value, words in ((resource.RLIMIT_AS, 400 << 20, ('MiB of host memory', '-m', 'ulimit -v')),
                               (resource.RLIMIT_NOFILE, 12, ('Too many open files', 'ulimit -n'))):
        refused(['-accel', 'tcg', '-display', 'none', '-S', '-m', '512'], *words,
                preexec_fn=lambda k=kind, v=value: resource.setrlimit(k, (v, v)))


def hmp_counts_are_not_cut():
    with runs() as g:
        def hmp(line):
            return g.qmp.cmd('human-monitor-command', **{'command-line': line})
        for count in ('65537', '100000000', '99999999999999999999999'):
            text = hmp(f'xp /{count}xb 0')
            assert 'Error' in text and count in text and '65536' in text, text
        assert 'Error' in hmp('xp /1xb 0x10000000000000000')
        assert 'Error' in hmp('xp /1xb 0xffffffffffffffff + 99999999999999999999')
        assert hmp('xp /65536xb 0').count('0x00') > 30000


# ---- Output that gets lost ----

def lost_help_is_an_error():
    with open('/dev/full', 'w', encoding='ascii') as full:
        for args in (['-help'], ['-version'], ['-device', 'help'], ['-device', 'isa-serial,help'],
                     ['-realtime', 'help'], ['-realtime', 'check'], ['-machine', 'help'], ['-cpu', 'help'],
                     ['-accel', 'help'], ['-chardev', 'help'], ['-object', 'help'], ['-d', 'help']):
            r = subprocess.run([BINARY, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
            assert r.returncode == 1 and args[0] in r.stderr and 'cannot write' in r.stderr, (args, r)
            ok = subprocess.run([BINARY, *args], capture_output=True, text=True, timeout=30)
            assert ok.stdout and (ok.returncode == 0 or 'check' in args), (args, ok)


main(a_pid_file_is_no_other_file, a_stale_pid_file_is_taken_a_live_one_not, what_is_read_has_an_end,
     a_pipe_that_is_written_is_read, a_refused_start_makes_no_files, a_refused_start_empties_no_files,
     a_start_empties_them_and_they_stay, a_socket_in_use_stays, lost_help_is_an_error,
     devices_do_not_share_ports, the_usual_ports_are_free, messages_name_option_value_and_remedy,
     limits_of_the_host_come_with_a_remedy, hmp_counts_are_not_cut)
