#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of -realtime: switched by monitors and by the guest while it runs at full load, and what
query-realtime says, against what the host's kernel says. Usage: profiles.py [CASE...]
"""
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, initramfs, kernel, main, run_refused, skip  # noqa: E402
from qtest import QTest  # noqa: E402

BOOT = 240
PLAIN = ('-nodefaults', '-display', 'none')
TCG = ('-accel', 'tcg', *PLAIN)
PROFILES = ('-realtime', 'id=boot,policy=other', '-realtime', 'id=run,maxprio=50,policy=fifo',
            '-realtime', 'id=calm,maxprio=20,policy=rr,vcpus=1')
# (main loop, CPU 0, CPU 1) in each.
EXPECTED = {'boot': (('other', 0), ('other', 0), ('other', 0)),
            'run': (('fifo', 50), ('fifo', 49), ('fifo', 49)),
            'calm': (('rr', 20), ('other', 0), ('rr', 19))}


def need_realtime():
    if os.geteuid() or subprocess.run(['chrt', '-f', '50', 'true'], check=False,
                                      capture_output=True).returncode:
        skip('no SCHED_FIFO on this host')


def spin_firmware(directory):
    """A firmware whose reset vector jumps to itself: CPU 0 is busy for good."""
    image = bytearray(65536)
    image[0xfff0:0xfff2] = b'\xeb\xfe'
    path = os.path.join(directory, 'spin.bin')
    with open(path, 'wb') as f:
        f.write(image)
    return path


class Spinner(Guest):
    """Two CPUs, the first of them busy, in the background of the test."""

    def __init__(self, *args, accel='tcg', **kw):
        self.accel = accel.upper()
        with tempfile.TemporaryDirectory() as d:
            super().__init__('-accel', accel, *PLAIN, '-m', '64', '-smp', '2', '-bios',
                             spin_firmware(d), *args,
                             stdin=False, qmp=True, **kw)
            self.qmp.cmd('query-status')  # the firmware was read

    def kernel_says(self):
        """(policy, priority) of main loop, CPU 0, CPU 1, and that all others are SCHED_OTHER."""
        found = {}
        for t in self.threads():
            name = 'main' if t['tid'] == self.proc.pid else t['name']
            if name == 'main' or name.startswith('CPU '):
                found[name] = (t['policy'], t['prio'])
            elif (t['policy'], t['prio']) != ('other', 0):
                self.fail(f'helper {name} is {t["policy"]} {t["prio"]}')
        return found['main'], found[f'CPU 0/{self.accel}'], found[f'CPU 1/{self.accel}']

    def check(self, profile):
        said = self.kernel_says()
        if said != EXPECTED[profile]:
            self.fail(f'profile {profile}: {said}, not {EXPECTED[profile]}')

    def tid(self, name):
        return next(t['tid'] for t in self.threads() if t['name'] == name)

    def query(self):
        return self.qmp.cmd('query-realtime')

    def info(self, name):
        return next(t for t in self.query()['threads'] if t['name'] == name)

    def set(self, profile):
        self.qmp.cmd('realtime-set-profile', name=profile)

    def refused(self, profile):
        try:
            self.set(profile)
        except RuntimeError as e:
            return str(e)
        self.fail(f'profile {profile} was not refused')

    def quit(self):
        self.qmp.cmd('quit')
        status = self.wait(30)
        assert status == 0, f'exit status {status}: {self.text()}'


def affinity(pid, tid):
    with open(f'/proc/{pid}/task/{tid}/status', encoding='utf-8') as f:
        return next(l.split()[1] for l in f if l.startswith('Cpus_allowed_list:'))


def run_time(pid, tid):
    with open(f'/proc/{pid}/task/{tid}/schedstat', encoding='utf-8') as f:
        return int(f.read().split()[0])


def chrt(tid, policy, priority=0):
    subprocess.run(['chrt', policy, '-p', str(priority), str(tid)], check=True)


# ---- Options ----

def options_are_refused_with_the_range():
    for options, words in (
            (['maxprio=5,vcpus=2'], ['vcpus=2', 'valid vCPU numbers are 0-1']),
            (['maxprio=5,vcpus=1-0'], ['runs backwards', 'write 0-1']),
            (['maxprio=5,vcpu-affinity=1023'], ['vcpu-affinity=1023', 'valid host CPU numbers']),
            (['maxprio=5,vcpu-affinity=0'], ['too short', '2 vCPUs']),
            (['maxprio=5,event-affinity=0x1'], ['event-affinity=0x1', 'neither']),
            (['policy=other'], ['policy=other', 'named profile']),
            (['id=a'], ['id=a', 'maxprio=N']),
            (['maxprio=5,colour=1'], ["'colour'", 'valid ones are']),
            (['id=a,policy=other', 'id=b,maxprio=100'], ['maxprio=100', '2 to 99'])):
        argv = [w for o in options for w in ('-realtime', o)]
        text = run_refused(*TCG, '-m', '16', '-smp', '2', *argv)
        assert '\n' not in text and all(w in text for w in words), text


def cpu_pm_needs_kvm():
    text = run_refused(*TCG, '-overcommit', 'cpu-pm=on')
    assert 'cpu-pm=on' in text and 'kvm' in text and '\n' not in text, text


def help_lists_all():
    with Guest('-realtime', 'help', stdin=False) as g:
        assert g.wait(20) == 0
        for word in ('maxprio', 'policy', 'mlock', 'vcpus', 'vcpu-affinity', 'event-affinity',
                     'latency-warn', 'cpu-dma-latency', 'check', 'id'):
            assert f' {word}=' in g.text(), g.text()


def same_in_every_notation():
    need_realtime()
    with tempfile.NamedTemporaryFile('w', suffix='.cfg') as f:
        f.write('[realtime "boot"]\npolicy = "other"\n[realtime "run"]\nmaxprio = "50"\n'
                'policy = "fifo"\nvcpus = "^0"\nlatency-warn = "300"\n')
        f.flush()
        answers = []
        for argv in (['-readconfig', f.name],
                     ['-realtime', 'id=boot,policy=other', '-realtime',
                      'id=run,maxprio=50,policy=fifo,vcpus=1,latency-warn=300'],
                     ['-realtime', '{"id":"boot","policy":"other"}', '-realtime',
                      '{"id":"run","maxprio":50,"policy":"fifo","vcpus":"1","latency-warn":300}']):
            with Spinner('-S', *argv) as g:
                answers.append(g.query()['profiles'])
                g.set('run')
                assert g.kernel_says() == (('fifo', 50), ('other', 0), ('fifo', 49))
                g.quit()
    assert answers[0] == answers[1] == answers[2], answers
    assert [p['name'] for p in answers[0]] == ['boot', 'run'] and answers[0][0]['active']


# ---- Switching ----

def switch_200_times(accel):
    need_realtime()
    with Spinner(*PROFILES, accel=accel) as g:
        g.check('boot')
        cpu0, locked = g.tid(f'CPU 0/{accel.upper()}'), g.status('VmLck')
        names, ran, events = ('run', 'calm', 'boot'), run_time(g.proc.pid, cpu0), 0
        assert locked > 64 * 1024
        for i in range(200):
            profile = names[i % 3]
            g.set(profile)
            g.check(profile)
            e = g.qmp.event('REALTIME_PROFILE_CHANGED')['data']
            assert (e['profile'], e['source']) == (profile, 'monitor'), e
            events += 1
        assert events == 200 and g.query()['profile'] == names[199 % 3]
        assert g.status('VmLck') >= locked, 'memory is not locked any more'
        assert run_time(g.proc.pid, cpu0) > ran, 'the guest did not run'
        g.quit()


def switched_200_times_under_load():
    switch_200_times('tcg')


def switched_200_times_under_load_kvm():
    if not os.access('/dev/kvm', os.W_OK):
        skip('no /dev/kvm')
    switch_200_times('kvm')


def affinity_comes_and_goes():
    need_realtime()
    if os.cpu_count() < 2:
        skip('one host CPU')
    with Spinner('-realtime', 'id=boot,policy=other', '-realtime',
                 'id=run,maxprio=50,policy=fifo,vcpu-affinity=1,0,event-affinity=0') as g:
        pid, cpu0, cpu1 = g.proc.pid, g.tid('CPU 0/TCG'), g.tid('CPU 1/TCG')
        before = affinity(pid, cpu0)
        for _ in range(10):
            g.set('run')
            now = affinity(pid, cpu0), affinity(pid, cpu1), affinity(pid, pid)
            assert now == ('1', '0', '0'), now
            assert g.info('CPU 0/TCG')['affinity'] == '1'
            g.set('boot')
            now = affinity(pid, cpu0), affinity(pid, cpu1), affinity(pid, pid)
            assert now == (before, before, before), now
        g.quit()


def refusal_half_way_restores():
    """The main loop and one CPU are switched, then the host refuses the other CPU."""
    need_realtime()
    if subprocess.run(['prlimit', '--rtprio=60:60', 'true'], check=False,
                      capture_output=True).returncode:
        skip('RLIMIT_RTPRIO cannot be raised here')
    with Spinner('-realtime', 'id=a,maxprio=50,policy=fifo,mlock=off', '-realtime',
                 'id=b,maxprio=40,policy=rr',
                 prefix=('prlimit', '--rtprio=60:60', 'setpriv', '--bounding-set=-sys_nice',
                         '--inh-caps=-sys_nice')) as g:
        former = (('fifo', 50), ('other', 0), ('fifo', 49))
        chrt(g.tid('CPU 0/TCG'), '-o')
        subprocess.run(['prlimit', '--rtprio=30:60', '--pid', str(g.proc.pid)], check=True)
        for _ in range(20):
            assert g.kernel_says() == former, g.kernel_says()
            text = g.refused('b')
            assert "'CPU 0/TCG'" in text and 'SCHED_RR with priority 39' in text and \
                'every thread has what it had before' in text, text
            assert g.kernel_says() == former, g.kernel_says()
        assert g.query()['profile'] == 'a'
        assert not [e for e in g.qmp.events if e['event'] == 'REALTIME_PROFILE_CHANGED']
        subprocess.run(['prlimit', '--rtprio=60:60', '--pid', str(g.proc.pid)], check=True)
        g.set('b')
        assert g.kernel_says() == (('rr', 40), ('rr', 39), ('rr', 39)), g.kernel_says()
        g.quit()


class Cgroup:
    """A cgroup (version 1) of a controller, with the given settings, until the block ends."""

    def __init__(self, controller, needs, **settings):
        root = f'/sys/fs/cgroup/{controller}'
        if not os.path.exists(f'{root}/{needs}'):
            skip(f'no {controller} cgroup (version 1) with {needs}')
        self.group = f'{root}/qemu-rt-test-{os.getpid()}'
        try:
            os.mkdir(self.group)
        except OSError as e:
            skip(f'cannot make a {controller} cgroup: {e}')
        for name, value in settings.items():
            self.write(f'{controller}.{name}', value)

    def write(self, name, value):
        with open(f'{self.group}/{name}', 'w', encoding='ascii') as f:
            f.write(str(value))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for _ in range(50):
            try:
                os.rmdir(self.group)
                break
            except OSError:
                time.sleep(0.1)


def cpuset_of_cpu_0():
    if os.cpu_count() < 2:
        skip('one host CPU')
    return Cgroup('cpuset', 'cpuset.cpus', mems=0, cpus=0)


def refused_policy_of_one_thread_restores_all():
    """A cpu cgroup without realtime for one CPU's thread: the others are realtime by then."""
    need_realtime()
    with Cgroup('cpu', 'cpu.rt_runtime_us', rt_runtime_us=0) as c:
        with Spinner(*PROFILES) as g:
            c.write('tasks', g.tid('CPU 0/TCG'))
            for _ in range(20):
                text = g.refused('run')
                assert "'CPU 0/TCG'" in text and 'SCHED_FIFO with priority 49' in text and \
                    'every thread has what it had before' in text, text
                g.check('boot')
            g.set('calm')  # where CPU 0 is not realtime
            g.check('calm')
            g.refused('run')
            g.check('calm')
            g.quit()


def refused_by_a_cpuset():
    need_realtime()
    with cpuset_of_cpu_0() as c:
        with Spinner('-realtime', 'id=a,policy=other', '-realtime',
                     'id=b,maxprio=50,vcpu-affinity=0,1',
                     prefix=('sh', '-c', f'echo $$ > {c.group}/cgroup.procs && exec "$@"',
                             'sh')) as g:
            for _ in range(5):
                text = g.refused('b')
                assert "'CPU 1/TCG'" in text and 'host CPUs 1' in text, text
                assert g.kernel_says() == EXPECTED['boot'], g.kernel_says()
            g.quit()


def refused_one_thread_restores_all():
    """A cpuset of one CPU's thread: the main loop and the other CPU have moved by then."""
    need_realtime()
    with cpuset_of_cpu_0() as c:
        with Spinner('-realtime', 'id=a,maxprio=9', '-realtime',
                     'id=b,maxprio=50,policy=fifo,vcpu-affinity=1,0,event-affinity=1') as g:
            tids = g.proc.pid, g.tid('CPU 0/TCG'), g.tid('CPU 1/TCG')
            c.write('tasks', tids[1])
            former = [affinity(g.proc.pid, t) for t in tids], g.kernel_says()
            assert former[0][1] == '0' and former[0][0] != '1' and former[0][2] != '0', former
            for _ in range(20):
                text = g.refused('b')
                assert "'CPU 0/TCG'" in text and 'host CPUs 1' in text and \
                    'every thread has what it had before' in text, text
                now = [affinity(g.proc.pid, t) for t in tids], g.kernel_says()
                assert now == former, f'{now}, not {former}'
            assert g.query()['profile'] == 'a'
            g.quit()


def unknown_profile_is_refused():
    with Spinner('-realtime', 'mlock=off') as g:
        text = g.refused('run')
        assert "no realtime profile 'run'" in text and 'none' in text, text
        info = g.query()
        assert not info['enabled'] and 'profile' not in info and info['profiles'] == [], info
        g.quit()


def waiting_profile_needs_permission_too():
    text = run_refused(*TCG, '-m', '16', '-realtime', 'id=boot,policy=other,mlock=off', '-realtime',
                       'id=run,maxprio=50',
                       prefix=('prlimit', '--rtprio=0:0', 'setpriv', '--bounding-set=-sys_nice',
                               '--inh-caps=-sys_nice'))
    assert 'maxprio=50' in text and 'RLIMIT_RTPRIO' in text, text


# ---- Read back ----

def changes_from_outside_are_shown_and_stay():
    need_realtime()
    with Spinner(*PROFILES) as g:
        g.set('run')
        g.qmp.event('REALTIME_PROFILE_CHANGED')
        assert not g.info('CPU 1/TCG')['changed']
        chrt(g.tid('CPU 1/TCG'), '-r', 7)
        e = g.qmp.event('REALTIME_THREAD_CHANGED')['data']
        assert (e['name'], e['policy'], e['priority']) == ('CPU 1/TCG', 'rr', 7), e
        assert e['thread-id'] == g.tid('CPU 1/TCG'), e
        time.sleep(3)
        t = g.info('CPU 1/TCG')
        assert (t['policy'], t['priority'], t['changed']) == ('rr', 7, True), t
        assert g.kernel_says() == (('fifo', 50), ('fifo', 49), ('rr', 7)), g.kernel_says()
        assert not [x for x in g.qmp.events if x['event'] == 'REALTIME_THREAD_CHANGED'], 'told twice'
        subprocess.run(['taskset', '-cp', '0', str(g.tid('CPU 0/TCG'))], check=True,
                       capture_output=True)
        e = g.qmp.event('REALTIME_THREAD_CHANGED')['data']
        assert (e['name'], e['affinity']) == ('CPU 0/TCG', '0'), e
        g.set('run')  # asked for again, so set again
        g.check('run')
        assert not g.info('CPU 1/TCG')['changed']
        g.quit()


def counters_are_the_kernels():
    need_realtime()
    with Spinner(*PROFILES) as g:
        g.set('run')
        for t in g.query()['threads']:
            task = f'/proc/{g.proc.pid}/task/{t["thread-id"]}'
            with open(f'{task}/stat', encoding='utf-8') as f:
                stat = f.read().rsplit(')', 1)[1].split()
            with open(f'{task}/status', encoding='utf-8') as f:
                status = dict(l.split(':', 1) for l in f)
            assert 0 <= t['minor-faults'] <= int(stat[7]) <= t['minor-faults'] + 50, t
            assert 0 <= t['major-faults'] <= int(stat[9]), t
            assert t['affinity'] == status['Cpus_allowed_list'].strip(), t
            assert t['voluntary-switches'] <= int(status['voluntary_ctxt_switches']), t
            assert 0 < t['run-time-ns'] and 0 <= t['run-delay-ns'], t
        info = g.query()
        assert info['enabled'] and info['profile'] == 'run' and info['memory-lock'] == 'on'
        assert abs(info['locked-bytes'] // 1024 - g.status('VmLck')) < 4096, info['locked-bytes']
        classes = {t['name']: t['class'] for t in info['threads']}
        assert classes['main'] == 'event' and classes['CPU 0/TCG'] == 'vcpu' and \
            classes['control'] == 'helper', classes
        g.quit()


class Hmp:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(path)
        self.read()

    def read(self):
        text = b''
        while not text.endswith(b'(qemu) '):
            text += self.sock.recv(4096) or b'(qemu) '
        return text.decode()

    def cmd(self, line):
        self.sock.sendall(line.encode() + b'\n')
        return self.read()


def human_monitor_has_the_same():
    need_realtime()
    with tempfile.TemporaryDirectory() as d:
        with Spinner(*PROFILES, '-monitor', f'unix:{d}/hmp,server=on,wait=off') as g:
            hmp = Hmp(f'{d}/hmp')
            text = hmp.cmd('info realtime')
            assert "profile 'boot'" in text and '* boot: policy=other' in text, text
            hmp.cmd('realtime_profile run')
            g.check('run')
            text = hmp.cmd('info realtime')
            assert re.search(r'CPU 0/TCG +vcpu +fifo +49', text), text
            assert re.search(r'main +event +fifo +50', text), text
            assert "no realtime profile 'x'" in hmp.cmd('realtime_profile x')
            g.quit()


def dma_latency_is_held_while_realtime():
    need_realtime()
    if not os.access('/dev/cpu_dma_latency', os.W_OK):
        skip('no /dev/cpu_dma_latency here')

    def held(g):
        base = f'/proc/{g.proc.pid}/fd'
        return [os.readlink(f'{base}/{fd}') for fd in os.listdir(base)].count('/dev/cpu_dma_latency')

    with Spinner(*PROFILES, '-realtime', 'id=off,maxprio=9,cpu-dma-latency=off') as g:
        for profile, count in (('boot', 0), ('run', 1), ('calm', 1), ('off', 0), ('run', 1)):
            g.set(profile)
            assert held(g) == count and g.query()['cpu-dma-latency'] == bool(count), profile
        g.quit()


def throttling_is_noticed():
    need_realtime()
    with open('/proc/sys/kernel/sched_rt_runtime_us', encoding='ascii') as f:
        if int(f.read()) == -1:
            skip('the host does not throttle')
    cpu = os.cpu_count() - 1
    with Spinner('-realtime', 'id=boot,policy=other', '-realtime',
                 f'id=run,maxprio=5,policy=fifo,vcpu-affinity={cpu},{cpu}') as g:
        rival = subprocess.Popen(['taskset', '-c', str(cpu), 'sh', '-c', 'while :; do :; done'])
        try:
            assert g.query()['throttling']['seen'] == 0
            g.set('run')
            e = g.qmp.event('REALTIME_THROTTLED')['data']
            assert e['name'] == 'CPU 0/TCG' and 20000 < e['held-us'], e
            seen = g.query()['throttling']
            assert seen['seen'] >= 1 and seen['last-thread-id'] == g.tid('CPU 0/TCG'), seen
            g.set('boot')
        finally:
            rival.kill()
            rival.wait()
        g.quit()


def kernel_pit_thread_is_raised():
    need_realtime()
    if not os.access('/dev/kvm', os.W_OK):
        skip('no /dev/kvm')
    with Guest('-accel', 'kvm', '-m', '64', '-smp', '2', *PLAIN, *PROFILES,
               stdin=False, qmp=True) as g:
        g.qmp.cmd('realtime-set-profile', name='run')
        name = f'kvm-pit/{g.proc.pid}'[:15]
        tid = next((int(p) for p in os.listdir('/proc') if p.isdigit() and comm(p) == name), None)
        if tid is None:
            skip(f'no thread {name} to be seen')
        for profile, want in (('run', ('fifo', 50)), ('calm', ('rr', 20)), ('boot', ('other', 0))):
            g.qmp.cmd('realtime-set-profile', name=profile)
            t = next(t for t in g.qmp.cmd('query-realtime')['threads'] if t['class'] == 'kernel')
            assert (t['thread-id'], t['policy'], t['priority']) == (tid, *want), t


def comm(pid):
    try:
        with open(f'/proc/{pid}/comm', encoding='utf-8') as f:
            return f.read().strip()
    except OSError:
        return ''


# ---- The guest's switch ----

def wait_idle(q):
    end = time.monotonic() + 10
    while (v := q.inb(0x5f0)) & 0x80:
        assert time.monotonic() < end, 'busy for good'
    return v


def register_of_the_device():
    need_realtime()
    with QTest('-smp', '2', *PROFILES, '-device', 'realtime-switch', qmp=True) as q:
        assert q.qmp and q.inb(0x5f0) == 0
        for n in (1, 2, 0, 2, 1):
            q.outb(0x5f0, n)
            assert wait_idle(q) == n
            e = q.qmp.event('REALTIME_PROFILE_CHANGED')['data']
            assert (e['profile'], e['source']) == (('boot', 'run', 'calm')[n], 'guest'), e
        for bad in (3, 64, 255):
            q.outb(0x5f0, bad)
            assert wait_idle(q) == 0x41
        q.outb(0x5f0, 1)  # the one in force
        assert wait_idle(q) == 1
        q.qmp.cmd('realtime-set-profile', name='calm')
        assert q.inb(0x5f0) == 2
        q.qmp.cmd('system_reset')
        q.qmp.event('RESET')
        while (e := q.qmp.event('REALTIME_PROFILE_CHANGED')['data'])['profile'] != 'boot':
            assert e['source'] == 'monitor', e
        assert e['source'] == 'reset', e
        end = time.monotonic() + 10
        while q.inb(0x5f0) and time.monotonic() < end:
            time.sleep(0.01)
        assert q.inb(0x5f0) == 0, 'a reset does not choose the first profile'


def guest_cannot_flood():
    """Switches without end: all are carried out or overtaken, few are told, the monitor answers."""
    need_realtime()
    with QTest('-smp', '2', *PROFILES, '-device', 'realtime-switch', qmp=True) as q:
        assert q.qmp.cmd('query-realtime')['profile'] == 'boot'
        start = time.monotonic()
        for i in range(3000):
            q.outb(0x5f0, i % 4)
        assert wait_idle(q) in (0x42, 2)  # the last number has no profile
        q.outb(0x5f0, 1)
        assert wait_idle(q) == 1

        # Switches may be overtaken by later ones untold; where they ended is told.
        def told():
            q.qmp.cmd('query-realtime')
            return [e['data']['profile'] for e in q.qmp.events
                    if e['event'] == 'REALTIME_PROFILE_CHANGED']

        while told()[-1:] != ['run']:
            assert time.monotonic() < start + 20, f'the last change is not told: {told()}'
            time.sleep(0.02)
        seconds = time.monotonic() - start
        assert len(told()) < 10 * seconds + 5, f'{len(told())} events in {seconds} s'
        q.outb(0x5f0, 0)
        assert wait_idle(q) == 0


def device_is_refused_or_moved():
    text = run_refused(*TCG, '-device', 'realtime-switch')
    assert 'realtime-switch' in text and '-realtime id=NAME' in text, text
    need_realtime()
    text = run_refused(*TCG, '-realtime', 'maxprio=5,mlock=off', '-device',
                       'realtime-switch,iobase=0x10000')
    assert '0..0xffff' in text, text
    with QTest('-smp', '2', *PROFILES, '-device',
               'realtime-switch,iobase=0x300,reset-profile=off', qmp=True) as q:
        q.outb(0x300, 2)
        while q.inb(0x300) & 0x80:
            pass
        assert q.inb(0x300) == 2 and q.inb(0x5f0) == 0xff
        q.qmp.cmd('system_reset')
        q.qmp.event('RESET')
        time.sleep(0.3)
        assert q.inb(0x300) == 2


def linux(*args, append='', cpus=2, flavour='cloud', **kw):
    return Guest('-accel', 'tcg', '-smp', str(cpus), '-m', '256', '-kernel', kernel(flavour),
                 '-initrd', initramfs(), '-append', f'console=ttyS0 panic=-1 {append}',
                 '-nographic', '-monitor', 'none', *args, **kw)


WRITE = "printf '\\00{}' | busybox dd of=/dev/port bs=1 seek=1520 conv=notrunc 2>/dev/null"
READ = 'busybox dd if=/dev/port bs=1 skip=1520 count=1 2>/dev/null | busybox od -An -tu1'


def guest_switches_itself():
    """Linux at full load on both CPUs: by the device 20 times, and by both sides at once."""
    need_realtime()
    with linux(*PROFILES, '-device', 'realtime-switch', qmp=True, flavour='generic') as g:
        g.expect('qrt: ready', BOOT)
        assert g.run('test -c /dev/port')[0] == 0, 'no /dev/port in the guest'
        g.run('for i in 1 2; do (while :; do :; done) & done')
        for i in range(20):
            n = (1, 2, 0)[i % 3]
            status, _ = g.run(WRITE.format(n))
            assert status == 0
            _, out = g.run(READ)
            assert int(out.split()[-1]) & ~0x80 == n, out
            check_linux(g, ('boot', 'run', 'calm')[n])
        g.run('(while :; do for n in 0 1 2; do printf "\\\\00$n" | busybox dd of=/dev/port bs=1 '
              'seek=1520 conv=notrunc 2>/dev/null; done; done) &')
        for i in range(100):
            g.qmp.cmd('realtime-set-profile', name=('run', 'calm', 'boot')[i % 3])
        g.run('kill -9 -1 2>/dev/null; true')
        time.sleep(1)
        check_linux(g, g.qmp.cmd('query-realtime')['profile'])
        g.qmp.cmd('realtime-set-profile', name='boot')
        check_linux(g, 'boot')


def check_linux(g, profile):
    found = {('main' if t['tid'] == g.proc.pid else t['name']): (t['policy'], t['prio'])
             for t in g.threads()}
    said = found['main'], found['CPU 0/TCG'], found['CPU 1/TCG']
    assert said == EXPECTED[profile], f'{profile}: {said}'


# ---- Starvation and order ----

def one_host_cpu(policy):
    need_realtime()
    with linux('-realtime', f'maxprio=2,policy={policy}', cpus=1,
               prefix=('taskset', '-c', str(os.cpu_count() - 1))) as g:
        g.expect('qrt: ready', BOOT)
        status, out = g.run('echo answer $((6 * 7))')
        assert status == 0 and 'answer 42' in out, out
        g.send('poweroff -f\n')
        assert g.wait(60) == 0


def everything_on_one_host_cpu_fifo():
    one_host_cpu('fifo')


def everything_on_one_host_cpu_rr():
    one_host_cpu('rr')


def two_cpus_on_one_host_cpu():
    """fifo warns; rr lets both make progress, and the guest boots."""
    need_realtime()
    cpu = os.cpu_count() - 1
    with Spinner('-S', '-realtime',
                 f'maxprio=3,policy=fifo,vcpu-affinity={cpu},{cpu}') as g:
        g.quit()
        assert f'vCPUs 0 and 1 share host CPU {cpu} under policy=fifo' in g.text(), g.text()
    with linux('-realtime', f'maxprio=3,policy=rr,vcpu-affinity={cpu},{cpu}') as g:
        g.expect(r'qrt: init reached, 2 CPUs', BOOT)
        g.expect('qrt: ready', BOOT)
        assert 'share host CPU' not in g.text()


def what_will_hang_is_told_last():
    need_realtime()
    n = len(os.sched_getaffinity(0)) + 1
    with Guest(*TCG, '-m', '16', '-smp', str(n), '-S', '-realtime', 'maxprio=50,policy=fifo,mlock=off', qmp=True,
               stdin=False) as g:
        g.qmp.cmd('query-status')
        g.pump(0.2)
        lines = g.text().splitlines()
    assert f'{n} vCPUs share {n - 1} host CPUs' in lines[-1] and 'will hang' in lines[-1], lines
    assert len(lines) > 1 and 'policy=rr' in lines[-1], lines


CASES = [options_are_refused_with_the_range, cpu_pm_needs_kvm, help_lists_all,
         what_will_hang_is_told_last,
         same_in_every_notation, switched_200_times_under_load, switched_200_times_under_load_kvm,
         affinity_comes_and_goes, refusal_half_way_restores,
         refused_policy_of_one_thread_restores_all,
         refused_by_a_cpuset, refused_one_thread_restores_all, unknown_profile_is_refused,
         waiting_profile_needs_permission_too, changes_from_outside_are_shown_and_stay,
         counters_are_the_kernels, human_monitor_has_the_same, dma_latency_is_held_while_realtime,
         throttling_is_noticed, kernel_pit_thread_is_raised, register_of_the_device, guest_cannot_flood,
         device_is_refused_or_moved, guest_switches_itself, everything_on_one_host_cpu_fifo,
         everything_on_one_host_cpu_rr, two_cpus_on_one_host_cpu]

main(*[c for c in CASES if not sys.argv[1:] or c.__name__ in sys.argv[1:]])
