# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests, their threads' priorities, the load on the host, and one measurement of each kind.

Everything ends by itself: guests die with this process (PR_SET_PDEATHSIG), stress-ng has a
time-out of its own, and each wait has a bound.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
from guest import Guest  # noqa: E402
from .figures import HISTOGRAM_LIMIT, Histogram  # noqa: E402

REALTIME = ['-realtime', 'maxprio=50,policy=fifo']
INTERVAL_US = 1000
WITH_PARENT = ('setpriv', '--pdeathsig', 'KILL', '--')
# Left out of the console's output: bins of the histogram that are empty in each column.
ONLY_FILLED = "awk '/^#/ || / 0*[1-9]/'"
CYCLICTEST = '-p 99 -m -q -i {interval} -l {loops} -h {limit}'

ROWS = {'normal': 'no realtime priorities',
        'realtime': '-realtime maxprio=50,policy=fifo: event threads at 50, vCPU at 49, memory locked',
        'vcpu99': 'vCPU thread alone raised by chrt -f -p 99',
        'raised': 'all threads raised from outside by chrt: vCPU 49, all others 50'}
LOADS = {'idle': 'Idle host', 'cpu+disk': 'CPU and disk load on the host', 'net': 'Heavy network traffic'}


class Failure(Exception):
    pass


class Emulator:
    def __init__(self, side, path, extra):
        self.side, self.path, self.extra = side, path, extra
        self.version = self.output('-version').splitlines()[0]
        # Programs with our option, such as another build of ours, get its row.
        self.has_realtime = 'maxprio' in self.output('-help')
        self.nic = next((n for n in ('virtio-net-pci', 'e1000', 'rtl8139')
                         if f'"{n}"' in self.output('-device', 'help')), None)

    def output(self, *args):
        r = subprocess.run([self.path, *args], capture_output=True, text=True, timeout=30, check=False)
        return r.stdout + r.stderr or '?'

    def rows(self):
        rows = ['normal', 'realtime', 'vcpu99'] if self.has_realtime else ['normal', 'vcpu99']
        return rows if self.side == 'ours' else rows + ['raised']


class Load:
    """The named load on the host while the block runs, for at most `seconds`."""

    def __init__(self, name, seconds, nic=None):
        self.name, self.seconds, self.nic = name, int(seconds), nic
        self.proc = self.dir = self.sender = None

    def __enter__(self):
        if self.name == 'cpu+disk':
            self.dir = tempfile.TemporaryDirectory(prefix='showcase-load-')
            cpus = len(os.sched_getaffinity(0))
            # In a session of its own, so that its workers can be ended with it.
            self.proc = subprocess.Popen(
                [*WITH_PARENT, 'stress-ng', '--quiet', '--cpu', str(cpus), '--hdd', '1', '--hdd-bytes', '128M',
                 '--iomix', '1', '--iomix-bytes', '64M', '--temp-path', self.dir.name, '--timeout', f'{self.seconds}s'],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True)
            time.sleep(1)  # workers start
            if self.proc.poll() is not None:
                raise Failure(f'stress-ng ended with status {self.proc.returncode}')
        elif self.name == 'net':
            self.sender = Sender(self.nic, self.seconds)
        return self

    def check(self):
        """The measurement counts only if the load lasted."""
        if self.proc and self.proc.poll() is not None:
            raise Failure('the load ended before the measurement did')

    def __exit__(self, *exc):
        if self.sender:
            self.sender.close()
        if self.proc:
            for sig in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(self.proc.pid, sig)
                except ProcessLookupError:
                    break
                try:
                    self.proc.wait(5)
                except subprocess.TimeoutExpired:
                    continue
            self.proc.wait()
        if self.dir:
            self.dir.cleanup()


class Sender:
    """Ethernet frames for the guest's network card, at full speed, as datagrams to the emulator's back end."""

    def __init__(self, ports, seconds):
        self.end = time.monotonic() + seconds
        self.frames, self.stop = 0, False
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(('127.0.0.1', ports[1]))
        self.sock.setblocking(False)
        self.to = ('127.0.0.1', ports[0])
        self.thread = threading.Thread(target=self.send, daemon=True)
        self.thread.start()

    def send(self):
        # Broadcast, of the type reserved for experiments (IEEE 802, 0x88b5).
        frame = b'\xff' * 6 + b'\x52\x54\x00\x00\x00\x01' + b'\x88\xb5' + bytes(1000)
        while not self.stop and time.monotonic() < self.end:
            try:
                for _ in range(16):
                    self.sock.sendto(frame, self.to)
                    self.frames += 1
            except (BlockingIOError, ConnectionRefusedError):
                pass
            time.sleep(0.0002)

    def close(self):
        self.stop = True
        self.thread.join()
        self.sock.close()


def free_ports():
    out = []
    for _ in range(2):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(('127.0.0.1', 0))
        out.append(s)
    ports = [s.getsockname()[1] for s in out]
    for s in out:
        s.close()
    return ports


def chrt(policy, priority, tid):
    r = subprocess.run(['chrt', policy, '-p', str(priority), str(tid)], capture_output=True, text=True, check=False)
    if r.returncode:
        raise Failure(f'chrt {policy} -p {priority} {tid}: {r.stderr.strip()}')


def vcpu_threads(guest):
    return [c['thread-id'] for c in guest.qmp.cmd('query-cpus-fast')]


def raise_threads(guest, row):
    vcpus = vcpu_threads(guest)
    if row == 'vcpu99':
        for tid in vcpus:
            chrt('-f', 99, tid)
    elif row == 'raised':
        for t in guest.threads():
            chrt('-f', 49 if t['tid'] in vcpus else 50, t['tid'])


def start_guest(setup, emulator, row, prefix=(), options=()):
    args = [*(REALTIME if row == 'realtime' else []), *emulator.extra, *setup.machine, '-kernel', setup.kernel,
            '-initrd', setup.initrd, '-append', 'console=ttyS0 quiet panic=-1',
            '-nographic', '-monitor', 'none', '-no-reboot', *options]
    return Guest(*args, binary=emulator.path, qmp=True, prefix=(*WITH_PARENT, *prefix))


def cyclictest_options(loops):
    return CYCLICTEST.format(interval=INTERVAL_US, loops=loops, limit=HISTOGRAM_LIMIT)


def bound(loops):
    """Seconds after which a measurement is given up: a guest that is held off takes longer."""
    return loops * INTERVAL_US / 1e6 * 5 + 60


def measure(setup, emulator, row, load):
    """Boots a guest, sets its threads, loads the host, runs cyclictest in the guest."""
    options, ports = (), None
    if load == 'net':
        ports = free_ports()
        options = ('-netdev', f'socket,id=n,udp=127.0.0.1:{ports[1]},localaddr=127.0.0.1:{ports[0]}',
                   '-device', f'{emulator.nic},netdev=n')
    with start_guest(setup, emulator, row, options=options) as g:
        g.expect('qrt: ready', setup.boot_bound)
        boot = time.monotonic() - g.start
        raise_threads(g, row)
        interrupts = None
        if load == 'net':
            interrupts = network_up(g)
        with Load(load, bound(setup.loops) + 30, ports) as running:
            threads = g.threads()
            status, text = g.run(f'cyclictest -S {cyclictest_options(setup.loops)} | {ONLY_FILLED}', bound(setup.loops))
            running.check()
        if load == 'net' and interrupts() < setup.loops // 100:
            raise Failure('the traffic did not reach the guest')
        if status:
            raise Failure(f'cyclictest in the guest ended with {status}: {text[-200:]}')
        h = Histogram.parse(text)
        g.send('poweroff -f\n')
        g.wait(30)
    return {'histogram': h, 'figures': h.figures(), 'boot_seconds': round(boot, 2), 'threads': threads}


def network_up(g):
    """Brings the guest's card up; returns a function that counts the frames received since."""
    # Kernels differ in which of the modules needs which: three rounds settle any order.
    status, text = g.run('for n in 1 2 3; do for m in $(cat /net-modules); do insmod $m; done; done 2>/dev/null; '
                         'ip link set eth0 up promisc on')
    if status:
        raise Failure(f'no network in the guest: {text[-200:]}')

    def received():
        status, text = g.run('cat /sys/class/net/eth0/statistics/rx_packets')
        m = re.search(r'(\d+)\s*$', text)
        return int(m.group(1)) if m and not status else 0
    start = received()
    return lambda: received() - start


def measure_host(setup, load):
    """The host's own cyclictest, one thread: nothing in a guest can be better than that."""
    with Load(load, bound(setup.loops) + 30) as running:
        try:
            r = subprocess.run([*WITH_PARENT, 'cyclictest', '-t', '1', *cyclictest_options(setup.loops).split()],
                               capture_output=True, text=True, check=False, timeout=bound(setup.loops))
        except subprocess.TimeoutExpired:
            raise Failure(f'cyclictest on the host did not end within {bound(setup.loops):.0f} s') from None
        running.check()
    if r.returncode:
        raise Failure(f'cyclictest on the host ended with {r.returncode}: {r.stderr.strip()[-200:]}')
    h = Histogram.parse(r.stdout)
    return {'histogram': h, 'figures': h.figures()}


def starvation_try(setup, emulator, how, cpu, seconds):
    """One boot with every thread on one host CPU. how: 'vcpu99', 'maxprio=2' or 'normal'."""
    options = ['-S'] if how == 'vcpu99' else []
    if how == 'maxprio=2':
        options += ['-realtime', 'maxprio=2,policy=fifo']
    result = {'how': how, 'booted': False, 'answered': False, 'why': None}
    with start_guest(setup, emulator, 'normal', prefix=('taskset', '-c', str(cpu)), options=options) as g:
        try:
            if how == 'vcpu99':
                raise_threads(g, how)
                g.qmp.send({'execute': 'cont'})  # whose answer may never come
            start = time.monotonic()
            g.expect('qrt: ready', seconds)
            result['booted'], result['seconds'] = True, round(time.monotonic() - start, 2)
            start = time.monotonic()
            status, text = g.run('echo answer-$((6 * 7))', seconds)
            result['answered'] = status == 0 and 'answer-42' in text
            result['answer_seconds'] = round(time.monotonic() - start, 3)
        except AssertionError as e:
            panic = re.search(r'Kernel panic - not syncing: ([^\r\n]*)', g.text())
            result['why'] = (f'guest: Kernel panic: {panic.group(1)}' if panic else
                             str(e).split('\n', maxsplit=1)[0])
            result['console'] = g.text()[-2000:]
        except (OSError, EOFError, Failure, RuntimeError) as e:
            result['why'] = f'{type(e).__name__}: {e}'
    return result
