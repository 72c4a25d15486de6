# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests/bench/run measures. A job is one thing that is run; it yields figures ("items")."""
import os
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'lib'))
from guest import CACHE, TOP, Guest  # noqa: E402

WORK = os.path.join(CACHE, 'bench')
PACKAGES = ['7zip:7zz', 'openssl:openssl', 'stress-ng:stress-ng', 'perl-base:perl', 'lua5.4:lua5.4']
SCRIPTS = ['hash.pl', 'calls.pl', 'loops.lua']
BAD_LOG = ('BUG:', 'WARNING:', 'ACPI Error', 'ACPI BIOS Error', 'Call Trace', 'soft lockup', 'unchecked MSR',
           'MP-BIOS bug', 'hard LOCKUP', 'APIC error', 'self-detected stall', 'segfault at', 'trap invalid opcode',
           'general protection', 'Illegal instruction', 'clocksource: timekeeping watchdog', 'hung_task')


class Failure(Exception):
    """A measurement that gave no figure, and why."""


class NotHere(Failure):
    """It cannot be measured on this side or machine; not an error."""


@dataclass
class Item:
    name: str
    unit: str
    less: bool = False          # a smaller figure is the better one
    least: float = None         # times as good as the other that we want at least, and aim at
    aim: float = None


@dataclass
class Side:
    """An emulator and how it is run."""
    label: str
    binary: str
    accel: str
    cpu: str
    extra: list
    ours: bool

    def options(self, memory, cpus=1, accel=None):
        cpu = ['-cpu', self.cpu] if self.cpu else []
        # Without default devices both have the same: what the board cannot be without, and a UART.
        return ['-accel', accel or self.accel, *cpu, '-m', str(memory), '-smp', str(cpus), '-nodefaults',
                '-display', 'none', '-no-user-config', *self.extra]


@dataclass
class Job:
    name: str
    items: list
    run: object                 # run(Context, Side) -> {item name: figure}
    native: object = None       # native(Context) -> {item name: figure}
    about: str = ''
    guest: int = 0              # vCPUs of the standing guest it runs in; 0: it starts its own
    ours_only: bool = False


@dataclass
class Context:
    quick: bool = False
    tools: dict = field(default_factory=dict)
    guests: dict = field(default_factory=dict)
    warnings: list = field(default_factory=list)
    say: object = print

    # ---- Things made once ----
    def once(self, name, make):
        if name not in self.tools:
            os.makedirs(WORK, exist_ok=True)
            self.say(f'preparing {name}')
            self.tools[name] = make()
        return self.tools[name]

    def kernel(self, flavour):
        return self.once(f'the {flavour} kernel', lambda: command_output(script('guest-kernel'), flavour).strip())

    def initramfs(self):
        """The small one: busybox and cyclictest."""
        def make():
            path = os.path.join(WORK, 'small.gz')
            command_output(script('guest-initramfs'), path)
            return path
        return self.once('the small initramfs', make)

    def programs(self):
        """The initramfs with the programs; the same files are unpacked in WORK/root to run natively."""
        def make():
            path = os.path.join(WORK, 'programs.cpio')
            args = [a for p in PACKAGES for a in ('--package', p)]
            for f in [self.micro()] + [os.path.join(HERE, s) for s in SCRIPTS]:
                args += ['--file', f'{f}:/bench/{os.path.basename(f)}']
            command_output(script('guest-initramfs'), *args, '--store', path)
            root = os.path.join(WORK, 'root')
            os.makedirs(root, exist_ok=True)
            with open(path, 'rb') as f:
                subprocess.run(['cpio', '-idmu', '--quiet', '--no-absolute-filenames'], stdin=f, cwd=root, check=True)
            return path
        return self.once('programs out of Debian packages', make)

    def micro(self):
        def make():
            out = os.path.join(WORK, 'micro')
            compile_c('-O2', '-static', '-o', out, os.path.join(HERE, 'micro.c'))
            return out
        return self.once('micro', make)

    def loops(self):
        def make():
            out = os.path.join(WORK, 'loops.flat')
            guest = os.path.join(TOP, 'tests', 'guest')
            compile_c('-O1', '-g0', '-ffreestanding', '-fno-pic', '-fno-pie', '-no-pie', '-static', '-nostdlib',
                      '-mno-red-zone', '-mgeneral-regs-only', '-fno-stack-protector', '-Wno-unused-parameter',
                      '-fno-asynchronous-unwind-tables', '-fcf-protection=none', '-Wl,--build-id=none',
                      '-Wl,-z,max-page-size=4096', '-o', out + '.elf', os.path.join(guest, 'start.S'),
                      os.path.join(guest, 'lib.c'), os.path.join(HERE, 'loops.c'), '-T',
                      os.path.join(guest, 'guest.ld'))
            command_output('objcopy', '-O', 'elf32-i386', out + '.elf', out)
            return out
        return self.once('flat loops', make)

    # ---- Guests that stay up for several jobs ----
    def guest(self, side, cpus):
        g = self.guests.get((side.label, cpus))
        if g:
            return g
        self.keep_only(cpus)
        g = Guest(*side.options(2048, cpus), '-kernel', self.kernel('cloud'), '-initrd', self.programs(),
                  '-append', 'console=ttyS0 panic=-1', '-serial', 'stdio', binary=side.binary)
        self.guests[side.label, cpus] = g
        try:
            g.expect('qrt: ready', 180)
            g.run('mount -t tmpfs tmp /tmp; export OPENSSL_CONF=/dev/null HOME=/tmp', 30)
            g.clock = self.clock(g)
        except AssertionError:
            self.drop(side, cpus)
            raise
        return g

    @staticmethod
    def clock(g):
        """The guest's uptime and the host's clock at the same time, about."""
        before = time.monotonic()
        _, out = g.run('cat /proc/uptime', 30)
        m = re.search(r'([\d.]+) [\d.]+', out)
        if not m:
            raise Failure('the guest did not say its uptime')
        return float(m.group(1)), (before + time.monotonic()) / 2

    def drop(self, side, cpus, look=False):
        """Ends a standing guest. With look, first asks whether its clock went as the host's did."""
        g = self.guests.pop((side.label, cpus), None)
        if not g:
            return
        try:
            if look and g.proc.poll() is None:
                self.look_at_clock(side, g)
        except (AssertionError, Failure, OSError) as e:
            self.warn(side, f'at its end: {short(e)}')
        self.look_at_log(side, g)
        g.__exit__()

    def look_at_clock(self, side, g):
        up, host = self.clock(g)
        guest_s, host_s = up - g.clock[0], host - g.clock[1]
        if abs(guest_s - host_s) > 0.1 + 0.005 * host_s:
            self.warn(side, f'the clock of the guest went {guest_s:.2f} s in {host_s:.2f} s')

    def keep_only(self, cpus, sides=None):
        for label, n in list(self.guests):
            if n != cpus:
                g = self.guests[label, n]
                self.drop(g_side(label, g), n, look=True)

    def close(self):
        self.keep_only(-1)

    def look_at_log(self, side, g):
        for line in g.text().splitlines():
            if any(b in line for b in BAD_LOG):
                self.warn(side, f'guest: {line.strip()[:150]}')

    def warn(self, side, text):
        text = f'{side.label}: {text}'
        if text not in self.warnings and len(self.warnings) < 100:
            self.warnings.append(text)


def g_side(label, g):
    """What drop() needs to know of a side whose guest it ends."""
    return Side(label, g.argv[0], '', '', [], False)


def short(e):
    lines = str(e).strip().splitlines() or [repr(e)]
    return lines[0][:200]


def script(name):
    return os.path.join(TOP, 'scripts', name)


def command_output(*argv, timeout=1800):
    r = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False)
    if r.returncode:
        raise Failure(f'{shlex.join(argv[:3])}… failed: {(r.stderr.strip().splitlines() or ["no message"])[-1]}')
    return r.stdout


def compile_c(*args):
    command_output(os.environ.get('CC', 'cc'), '-std=gnu11', '-Wall', '-Wextra', *args)


def matching(pattern, text, what):
    m = re.search(pattern, text, re.M)
    if not m:
        raise Failure(f'{what}: no figure in its output: {text.strip()[-160:]!r}')
    return m


# ---- Flat guests ----
BARE = ['integer', 'copy', 'branchy', 'call', 'sse', 'x87']    # of bench-interp
LOOPS = ['integer', 'copy', 'branchy', 'call', 'indirect', 'sse', 'double', 'x87']


def run_loops(ctx, side):
    out = {}
    with Guest(*side.options(64), '-kernel', ctx.loops(), '-serial', 'stdio', '-device',
               'isa-debug-exit,iobase=0xf4,iosize=0x4', stdin=False, binary=side.binary) as g:
        for name in LOOPS:
            g.expect(f'bench: start {name}', 60)
            t = time.monotonic()
            m = g.expect(rf'bench: end {name} (?:0x)?([0-9a-f]+)\s', 120)
            out['flat-' + name] = int(m.group(1), 16) / (time.monotonic() - t) / 1e6
        g.wait(20)
    return out


def run_interp(_ctx, side):
    prog = os.path.join(os.path.dirname(os.path.abspath(side.binary)), 'tests', 'bench', 'bench-interp')
    if not os.path.exists(prog):
        raise NotHere(f'{prog} is not there: build it')
    text = command_output(prog, timeout=120)
    out = {}
    for n in BARE:
        m = matching(rf'^{n}\s+([\d.]+)\s+([\d.]+)$', text, prog)
        out[f'interp-{n}'], out[f'jit-{n}'] = float(m.group(1)), float(m.group(2))
    return out


# mov $'G',%al; out %al,$0xe9; out %al,$0xf4; 1: hlt; jmp 1b. The same bytes in 16 and 32 bits.
FIRST = bytes.fromhex('b047e6e9e6f4f4ebfd')


def first_rom():
    """64 KiB that ends at 4 GiB (or 1 MiB): the CPU begins 16 bytes before its end."""
    return bytes(0xfff0) + FIRST + bytes(16 - len(FIRST))


def first_multiboot():
    """Flat multiboot image at 1 MiB whose header says where it goes (flag 16)."""
    base, magic, flags = 0x100000, 0x1badb002, 0x10000
    end = base + 32 + len(FIRST)
    words = [magic, flags, -(magic + flags) & 0xffffffff, base, base, end, end, base + 32]
    image = b''.join(w.to_bytes(4, 'little') for w in words) + FIRST
    return image + bytes(8192 - len(image))


def time_to_first(ctx, side, name, image, option):
    def make():
        path = os.path.join(WORK, name)
        with open(path, 'wb') as f:
            f.write(image())
        return path
    path = ctx.once(name, make)
    with Guest(*side.options(512), option, path, '-chardev', 'stdio,id=d', '-device',
               'isa-debugcon,iobase=0xe9,chardev=d', '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4',
               stdin=False, binary=side.binary) as g:
        g.expect(r'\AG', 20)
        return (time.monotonic() - g.start) * 1000


def run_start(ctx, side):
    return {'start-reset': time_to_first(ctx, side, 'first.rom', first_rom, '-bios'),
            'start-kernel': time_to_first(ctx, side, 'first.multiboot', first_multiboot, '-kernel')}


# ---- Boots ----
def boot(ctx, side, accel=None):
    with Guest(*side.options(512, accel=accel), '-kernel', ctx.kernel('cloud'), '-initrd', ctx.initramfs(),
               '-append', 'console=ttyS0 panic=-1 qrt=poweroff', '-serial', 'stdio', '-no-reboot',
               stdin=False, binary=side.binary) as g:
        g.expect('qrt: init reached', 180)
        init = time.monotonic() - g.start
        status = g.wait(60)
        off = time.monotonic() - g.start
        if status:
            raise Failure(f'exit status {status}')
        ctx.look_at_log(side, g)
    return init, off


def run_boot(ctx, side):
    init, off = boot(ctx, side)
    return {'boot-init': init, 'boot-poweroff': off}


def cache_job(mib):
    def run(ctx, side):
        init, _ = boot(ctx, side, f'{side.accel},tb-size={mib}')
        return {f'boot-tb-{mib}': init}
    return Job(f'boot-tb-{mib}', [Item(f'boot-tb-{mib}', 's', less=True)], run,
               about=f'start to /init with {mib} MiB of code cache')


# ---- Programs in a Debian guest, and on the host ----
def in_guest(ctx, side, cpus, command, timeout):
    g = ctx.guest(side, cpus)
    try:
        t = time.monotonic()
        status, out = g.run(command, timeout)
        t = time.monotonic() - t
    except (AssertionError, OSError) as e:
        ctx.drop(side, cpus)
        raise Failure(f'{command}: {short(e)}') from e
    if status:
        raise Failure(f'{command}: status {status}: {out.strip()[-200:]!r}')
    return out, t


def on_host(ctx, command, timeout=300):
    """A command of the guest here, with the guest's programs and libraries."""
    ctx.programs()
    root = os.path.join(WORK, 'root')
    argv = shlex.split(command.replace('/bench/', root + '/bench/'))
    prog = argv[0]
    if '/' not in prog:
        argv = [f'{root}/lib64/ld-linux-x86-64.so.2', '--library-path', f'{root}/lib/x86_64-linux-gnu',
                '--argv0', prog, f'{root}/bin/{prog}', *argv[1:]]
    t = time.monotonic()
    r = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False, cwd='/tmp',
                       env={'PATH': '/usr/bin:/bin', 'OPENSSL_CONF': '/dev/null', 'HOME': '/tmp'})
    t = time.monotonic() - t
    if r.returncode:
        raise Failure(f'on the host: {command}: status {r.returncode}: {(r.stdout + r.stderr).strip()[-200:]!r}')
    return r.stdout + r.stderr, t


def program_job(name, items, command, parse, about='', cpus=1, timeout=300):
    """command may be a function of ctx; parse(output, seconds) -> list of figures, one an item."""
    def line(ctx):
        return command(ctx) if callable(command) else command

    def figures(out, t):
        return dict(zip([i.name for i in items], parse(out, t)))

    def run(ctx, side):
        return figures(*in_guest(ctx, side, cpus, line(ctx), timeout))

    def native(ctx):
        return figures(*on_host(ctx, line(ctx)))
    return Job(name, items, run, native, about or (command if isinstance(command, str) else ''), guest=cpus)


def sevenzip_job(threads):
    name = f'7zz-mmt{threads}'

    def command(ctx):
        return f'7zz b {"1 -md18 " if ctx.quick else ""}-mmt{threads}'

    def parse(out, _t):
        if re.search(r'error', out, re.I):
            raise Failure(f'7zz: {out.strip()[-200:]!r}')
        return [float(matching(r'^Tot:\s+\d+\s+\d+\s+(\d+)', out, '7zz').group(1))]
    goals = {'least': 2.5, 'aim': 4.5} if threads == 1 else {}
    return program_job(name, [Item(name, 'MIPS', **goals)], command, parse,
                       f'7zz b -mmt{threads}, {threads} vCPUs', cpus=threads, timeout=1800)


def openssl_job(name, evp, least, aim):
    def parse(out, _t):
        return [float(matching(r'^\S+\s+([\d.]+)k\s*$', out, 'openssl').group(1)) / 1000]
    return program_job(name, [Item(name, 'MB/s', least=least, aim=aim)],
                       f'openssl speed -elapsed -seconds 2 -bytes 8192 -evp {evp}', parse)


def rsa_job():
    def parse(out, _t):
        m = matching(r'^rsa 2048 bits\s+\S+s\s+\S+s\s+([\d.]+)\s+([\d.]+)', out, 'openssl')
        return [float(m.group(1)), float(m.group(2))]
    return program_job('rsa2048', [Item('rsa2048-sign', '1/s', least=4, aim=10), Item('rsa2048-verify', '1/s')],
                       'openssl speed -elapsed -seconds 2 rsa2048', parse)


def stress_job(name, options, least, aim):
    """A few seconds of a stressor; its bogo operations for each second of real time."""
    def parse(out, _t):
        if re.search(r'\bfail:', out):
            raise Failure(f'stress-ng: {out.strip()[-200:]!r}')
        m = matching(r'metrc:.*\]\s+[\w-]+\s+(\d+)\s+([\d.]+)\s+[\d.]+\s+[\d.]+\s+([\d.]+)', out, 'stress-ng')
        return [float(m.group(3))]
    return program_job(name, [Item(name, 'ops/s', least=least, aim=aim)],
                       f'stress-ng {options} -t 2 --metrics --verify --temp-path /tmp', parse)


def micro_job(what, unit, least=None, aim=None):
    known = {}

    def parse(out, _t):
        s = re.search(r'^micro: sum (\w+)', out, re.M)
        if s and known.setdefault('sum', s.group(1)) != s.group(1):
            raise Failure(f'wrong result: sum {s.group(1)}, not {known["sum"]}')
        return [float(matching(rf'^micro: {what} ([\d.]+)', out, 'micro').group(1))]
    return program_job(f'micro-{what}', [Item(f'micro-{what}', unit, least=least, aim=aim)],
                       f'/bench/micro {what} 1.5', parse)


def script_job(name, command):
    """Seconds of wall time; what it prints must be the same everywhere."""
    known = {}

    def parse(out, t):
        s = matching(r'sum (\S+)', out, command).group(1)
        if known.setdefault('sum', s) != s:
            raise Failure(f'wrong result: {s}, not {known["sum"]}')
        return [t]
    return program_job(name, [Item(name, 's', less=True, least=3, aim=7)], command, parse)


# ---- Latency ----
REALTIME = ['-realtime', 'maxprio=50,policy=fifo']


def raise_from_outside(g):
    """What an administrator does for an emulator that cannot: main thread FIFO 50, vCPUs FIFO 49."""
    for t in g.threads():
        prio = 49 if t['name'].startswith('CPU ') else 50 if t['tid'] == g.proc.pid else 0
        if prio:
            os.sched_setscheduler(t['tid'], os.SCHED_FIFO, os.sched_param(prio))


def cyclictest(ctx, side, options, raised=False):
    loops = 2000 if ctx.quick else 10000
    with Guest(*side.options(512), *options, '-kernel', ctx.kernel('rt'), '-initrd', ctx.initramfs(), '-append',
               f'console=ttyS0 quiet panic=-1 qrt=cyclictest loops={loops}', '-serial', 'stdio', '-no-reboot',
               '-name', 'bench,debug-threads=on', stdin=False, binary=side.binary) as g:
        g.expect('qrt: cyclictest starts', 180)
        if raised:
            raise_from_outside(g)
        m = g.expect(r'T: 0 .*Avg:\s*(\d+) Max:\s*(\d+)\s', 60 + loops // 200)
        ctx.look_at_log(side, g)
    return float(m.group(1)), float(m.group(2))


def cyclictest_job(raised):
    suffix = '-raised' if raised else ''
    names = f'cyclictest-avg{suffix}', f'cyclictest-max{suffix}'

    def run(ctx, side):
        try:
            options = REALTIME if side.ours else ['-overcommit', 'mem-lock=on'] if raised else []
            return dict(zip(names, cyclictest(ctx, side, options, raised and not side.ours)))
        except PermissionError as e:
            raise NotHere(f'raising priorities needs root: {e}') from e
    return Job('cyclictest' + suffix,
               [Item(names[0], 'us', less=True, least=None if raised else 2, aim=None if raised else 5),
                Item(names[1], 'us', less=True)], run,
               about='ours with -realtime maxprio=50,policy=fifo; the other ' +
                     ('raised from outside, memory locked' if raised else 'plain'))


def all_jobs():
    jobs = [Job('flat', [Item('flat-' + n, 'MIPS') for n in LOOPS], run_loops,
                about='loops of a flat guest, million instructions a second'),
            Job('interp', [Item(k + n, 'MIPS') for k in ('interp-', 'jit-') for n in BARE], run_interp,
                about='the interpreter and the translator alone, without a machine', ours_only=True),
            Job('start', [Item('start-reset', 'ms', less=True), Item('start-kernel', 'ms', less=True)], run_start,
                about='start to the first guest instruction, 512 MiB: reset vector of a ROM, multiboot kernel'),
            Job('boot', [Item('boot-init', 's', less=True, least=2, aim=4), Item('boot-poweroff', 's', less=True)],
                run_boot, about='Debian cloud kernel, 1 vCPU: start to /init, start to end of the process')]
    jobs += [sevenzip_job(1),
             openssl_job('sha256', 'sha256', 20, 50), openssl_job('aes-256-gcm', 'aes-256-gcm', 30, 80), rsa_job(),
             stress_job('matrixprod', '--cpu 1 --cpu-method matrixprod', 8, 25),
             stress_job('fft', '--cpu 1 --cpu-method fft', 8, 25),
             stress_job('double', '--cpu 1 --cpu-method double', 8, 25),
             stress_job('stress-fork', '--fork 1', 1.5, 4), stress_job('stress-pipe', '--pipe 1', 1.5, 4),
             stress_job('stress-fault', '--fault 1', 1.5, 4),
             micro_job('forkexec', '1/s', 1.5, 4), micro_job('pipe', '1/s', 1.5, 4),
             micro_job('fault', '1/s', 1.5, 4), micro_job('null', '1/s', 1.5, 4), micro_job('int', 'passes/s'),
             script_job('perl-hash', 'perl /bench/hash.pl'), script_job('perl-calls', 'perl /bench/calls.pl'),
             script_job('lua', 'lua5.4 /bench/loops.lua')]
    jobs += [sevenzip_job(2), sevenzip_job(4), cyclictest_job(False), cyclictest_job(True)]
    return jobs + [cache_job(m) for m in (8, 16, 32, 64, 128, 256)]
