#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each refusal and warning of docs/realtime.md, provoked for real, and what a permitted run gets.

    refusals.py PRIORITIZE WITH_SECCOMP

PRIORITIZE does what the emulator does about -realtime and prints what the kernel says. What this
host does not allow to be provoked is skipped by name. Output: TAP.
"""
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

PRIORITIZE, WITH_SECCOMP = sys.argv[1:3]
DROP_NICE = ['setpriv', '--bounding-set=-sys_nice', '--inh-caps=-sys_nice']
DROP_LOCK = ['setpriv', '--bounding-set=-ipc_lock', '--inh-caps=-ipc_lock']


class Skip(Exception):
    pass


class Result:
    def __init__(self, done):
        self.status, self.err, self.out = done.returncode, done.stderr, done.stdout
        self.facts = dict(line.split(': ', 1) for line in done.stdout.splitlines() if ': ' in line)


def run(options, wrapper=(), **kwargs):
    done = subprocess.run([*wrapper, PRIORITIZE, *options.split()], capture_output=True, text=True,
                          timeout=60, check=False, **kwargs)
    if done.returncode == 77:
        raise Skip(done.stderr.strip())
    return Result(done)


def need(condition, reason):
    if not condition:
        raise Skip(reason)


def check(condition, r):
    if not condition:
        raise AssertionError(f'status {r.status}\nstdout: {r.out}\nstderr: {r.err}')


def refused(r, *words):
    """Status 1, one line of error with all of the words, and nothing changed."""
    errors = [l for l in r.err.splitlines() if ': warning: ' not in l]
    check(r.status == 1 and len(errors) == 1, r)
    check(errors[0].startswith('prioritize: '), r)
    for w in words:
        check(w in errors[0], r)
    check(r.facts.get('main') == 'other 0' and r.facts.get('locked') == '0', r)


def accepted(r, **facts):
    check(r.status == 0, r)
    for key, value in facts.items():
        check(r.facts.get(key) == value, r)
    return r


def need_realtime():
    need(os.geteuid() == 0, 'not root')
    need(subprocess.run(['chrt', '-f', '50', 'true'], check=False,
                        capture_output=True).returncode == 0, 'no SCHED_FIFO on this host')


def limit(kind, soft, hard=None):
    """For preexec_fn: sets a limit of the child."""
    def set_it():
        resource.setrlimit(kind, (soft, soft if hard is None else hard))
    return set_it


def can_limit(kind, value):
    hard = resource.getrlimit(kind)[1]
    if hard == resource.RLIM_INFINITY or value <= hard:
        return True
    try:
        subprocess.run(['true'], preexec_fn=limit(kind, value), check=True)
    except subprocess.SubprocessError:
        return False
    return True


# ---- permitted ----

def test_fifo():
    need_realtime()
    r = accepted(run('-realtime maxprio=50,policy=fifo'), main='fifo 50', event='fifo 50',
                 vcpu='fifo 49', helper='other 0', child='other 0', faults='0')
    # All but what cannot be locked: the vvar page and the like.
    check(int(r.facts['locked']) > 0.9 * int(r.facts['size']), r)


def test_rr_is_default():
    need_realtime()
    accepted(run('-realtime maxprio=2'), main='rr 2', event='rr 2', vcpu='rr 1', helper='other 0')


def test_policy_without_lock():
    need_realtime()
    accepted(run('-realtime maxprio=99,mlock=off,policy=fifo'), main='fifo 99', vcpu='fifo 98',
             locked='0')


def test_lock_without_policy():
    need(os.geteuid() == 0, 'not root')
    for options in ('-realtime', '-realtime mlock=on', '-overcommit mem-lock=on',
                    '-realtime mlock=off -overcommit mem-lock=on', '-realtime mlock=on-fault'):
        r = accepted(run(options), main='other 0', vcpu='other 0', helper='other 0')
        check(int(r.facts['locked']) > 0, r)


def test_nothing_asked():
    for options in ('', '-realtime mlock=off', '-overcommit mem-lock=off'):
        accepted(run(options), main='other 0', vcpu='other 0', locked='0')


def test_readconfig():
    need_realtime()
    with tempfile.NamedTemporaryFile('w', suffix='.cfg') as f:
        f.write('[realtime]\nmaxprio = "30"\npolicy = "fifo"\n')
        f.flush()
        accepted(run(f'-readconfig {f.name}'), main='fifo 30', vcpu='fifo 29')


def test_policy_from_outside_stays():
    """Without -realtime, what chrt gave stays on EVENT and VCPU threads; helpers never have it."""
    need_realtime()
    accepted(run('', ['chrt', '-f', '5']), main='fifo 5', event='fifo 5', vcpu='fifo 5',
             helper='other 0')


# ---- refused: options ----

def test_bad_values():
    for value in ('abc', '2x', '1e1', '0x10', '-1', '0', '100', '4294967298', ''):
        refused(run(f'-realtime maxprio={value}'), f'maxprio={value}', '2 to 99')
    refused(run('-realtime maxprio=1'), 'CPUs get maxprio - 1')
    refused(run('-realtime policy=fifo'), 'policy=fifo', 'maxprio')
    r = run('-realtime maxprio=5,colour=red')
    check(r.status == 1 and r.err.count('\n') == 1 and "'colour'" in r.err, r)


# ---- refused: policy ----

def test_no_permission():
    need(os.geteuid() == 0, 'not root')
    r = run('-realtime maxprio=50', DROP_NICE, preexec_fn=limit(resource.RLIMIT_RTPRIO, 0))
    refused(r, 'maxprio=50', 'CAP_SYS_NICE', 'RLIMIT_RTPRIO is 0', 'ulimit -r 50')


def test_rtprio_one_short():
    need(can_limit(resource.RLIMIT_RTPRIO, 50), 'RLIMIT_RTPRIO cannot be raised here')
    r = run('-realtime maxprio=50', DROP_NICE, preexec_fn=limit(resource.RLIMIT_RTPRIO, 49))
    refused(r, "RLIMIT_RTPRIO is 49 (enough for the CPUs' 49, not for the event threads' 50)")


def test_rtprio_enough():
    need(can_limit(resource.RLIMIT_RTPRIO, 50), 'RLIMIT_RTPRIO cannot be raised here')
    r = run('-realtime maxprio=50,mlock=off', DROP_NICE,
            preexec_fn=limit(resource.RLIMIT_RTPRIO, 50))
    accepted(r, main='rr 50', vcpu='rr 49')


def test_user_namespace():
    """Capabilities of a user namespace do not count."""
    wrapper = ['unshare', '-U', '-r']
    need(shutil.which('unshare') and
         subprocess.run([*wrapper, 'true'], capture_output=True, check=False).returncode == 0,
         'no user namespaces here')
    r = run('-realtime maxprio=50', wrapper, preexec_fn=limit(resource.RLIMIT_RTPRIO, 0))
    refused(r, 'CAP_SYS_NICE', 'RLIMIT_RTPRIO is 0')


def test_cpu_cgroup():
    need_realtime()
    root = '/sys/fs/cgroup/cpu'
    need(os.path.exists(f'{root}/cpu.rt_runtime_us'), 'no cpu cgroup with rt_runtime_us here')
    group = f'{root}/qemu-rt-test-{os.getpid()}'
    try:
        os.mkdir(group)
    except OSError as e:
        raise Skip(f'cannot make a cpu cgroup: {e}') from e

    def enter():
        with open(f'{group}/cgroup.procs', 'w', encoding='ascii') as f:
            f.write(str(os.getpid()))
    try:
        with open(f'{group}/cpu.rt_runtime_us', 'w', encoding='ascii') as f:
            f.write('0')
        r = run('-realtime maxprio=50,policy=fifo', preexec_fn=enter)
        refused(r, 'maxprio=50', f'{group}/cpu.rt_runtime_us is 0', 'echo 950000 >')
        # Memory alone needs no realtime threads.
        accepted(run('-realtime', preexec_fn=enter), main='other 0')
        try:
            with open(f'{group}/cpu.rt_runtime_us', 'w', encoding='ascii') as f:
                f.write('10000')
        except OSError:
            return
        accepted(run('-realtime maxprio=50,policy=fifo', preexec_fn=enter), vcpu='fifo 49')
    finally:
        os.rmdir(group)


def test_seccomp_scheduler():
    need_realtime()
    for how in (['errno', 'sched_setscheduler'], ['errno', 'sched_setscheduler', 'rt'],
                ['kill', 'sched_setscheduler'], ['kill', 'sched_setscheduler', 'rt']):
        r = run('-realtime maxprio=50,policy=fifo', [WITH_SECCOMP, *how])
        refused(r, 'seccomp', 'sched_setscheduler', 'Seccomp: 2')


def test_success_is_read_back():
    """A host that reports success and does nothing: the kernel is asked what the threads have."""
    need_realtime()
    for call in ('sched_setscheduler', 'mlockall'):
        r = run('-realtime maxprio=50,policy=fifo', [WITH_SECCOMP, 'pretend', call])
        errors = [l for l in r.err.splitlines() if ': warning: ' not in l]
        check(r.status == 1 and len(errors) == 1, r)
        check('locked nothing' in errors[0] if call == 'mlockall' else 'SCHED_FIFO' in errors[0], r)


def test_seccomp_elsewhere():
    """A filter that leaves the calls alone is no obstacle."""
    need_realtime()
    accepted(run('-realtime maxprio=50', [WITH_SECCOMP, 'errno', 'swapon']), vcpu='rr 49')


def test_seccomp_without_realtime():
    """Helpers can be made although the call that would set their policy is forbidden."""
    accepted(run('', [WITH_SECCOMP, 'errno', 'sched_setscheduler']), helper='other 0')


# ---- refused: memory ----

def test_memlock_too_small():
    need(os.geteuid() == 0, 'not root')
    r = run('-m 512 -realtime maxprio=50', DROP_LOCK,
            preexec_fn=limit(resource.RLIMIT_MEMLOCK, 4 << 20))
    refused(r, 'RLIMIT_MEMLOCK is too small', '4194304 bytes are allowed', 'ulimit -l',
            'LimitMEMLOCK=', 'CAP_IPC_LOCK')
    needed = int(re.search(r'(\d+) bytes are needed', r.err)[1])
    check(512 << 20 < needed < 1 << 30, r)


def test_memlock_soft_and_hard():
    need(os.geteuid() == 0, 'not root')
    r = run('-m 512 -overcommit mem-lock=on', DROP_LOCK,
            preexec_fn=limit(resource.RLIMIT_MEMLOCK, 1 << 20, 8 << 20))
    refused(r, '1048576 bytes are allowed', 'hard limit 8388608')


def test_memlock_none():
    need(os.geteuid() == 0, 'not root')
    r = run('-m 1 -realtime', DROP_LOCK, preexec_fn=limit(resource.RLIMIT_MEMLOCK, 0))
    refused(r, 'no permission to lock any', 'RLIMIT_MEMLOCK is 0')
    check('too small' not in r.err, r)


def test_policy_not_set_when_memory_is_refused():
    """All or nothing: the priority would be permitted, the lock is not."""
    need_realtime()
    r = run('-m 512 -realtime maxprio=50,policy=fifo', DROP_LOCK,
            preexec_fn=limit(resource.RLIMIT_MEMLOCK, 1 << 20))
    refused(r, 'RLIMIT_MEMLOCK')


def test_memlock_enough():
    need(can_limit(resource.RLIMIT_MEMLOCK, 1 << 30), 'RLIMIT_MEMLOCK cannot be raised here')
    accepted(run('-m 16 -realtime', DROP_LOCK, preexec_fn=limit(resource.RLIMIT_MEMLOCK, 1 << 30)))


def test_not_enough_memory():
    need(os.geteuid() == 0, 'not root')
    refused(run('-m 100T -realtime maxprio=50'), 'not enough free memory', '109951162777600 bytes',
            'MemAvailable')


def test_memory_cgroup():
    need(os.geteuid() == 0, 'not root')
    own = [l.split(':', 2)[2].strip() for l in open('/proc/self/cgroup', encoding='ascii')
           if 'memory' in l.split(':', 2)[1].split(',')]
    need(own and os.path.isdir('/sys/fs/cgroup/memory'), 'no memory cgroup (version 1) here')
    parent = '/sys/fs/cgroup/memory' + own[0].rstrip('/')
    if not os.path.isdir(parent):
        parent = '/sys/fs/cgroup/memory'
    group = f'{parent}/qemu-rt-test-{os.getpid()}'
    try:
        os.mkdir(group)
    except OSError as e:
        raise Skip(f'cannot make a memory cgroup: {e}') from e

    def enter():
        with open(f'{group}/cgroup.procs', 'w', encoding='ascii') as f:
            f.write(str(os.getpid()))
    try:
        with open(f'{group}/memory.limit_in_bytes', 'w', encoding='ascii') as f:
            f.write(str(256 << 20))
        r = run('-m 512 -realtime', preexec_fn=enter)
        refused(r, f'{group}/memory.limit_in_bytes allows 268435456 bytes', '536870912')
    finally:
        os.rmdir(group)


def test_seccomp_mlockall():
    need(os.geteuid() == 0, 'not root')
    for action in ('errno', 'kill'):
        refused(run('-realtime', [WITH_SECCOMP, action, 'mlockall']), 'seccomp', 'mlockall')


# ---- warnings ----

def test_warn_throttling():
    need_realtime()
    with open('/proc/sys/kernel/sched_rt_runtime_us', encoding='ascii') as f:
        runtime = int(f.read())
    r = accepted(run('-realtime maxprio=2'))
    check(('throttles realtime threads' in r.err) == (runtime != -1), r)
    check('throttles' not in run('-realtime').err, r)


def test_warn_rttime():
    need_realtime()
    r = accepted(run('-realtime maxprio=2', preexec_fn=limit(resource.RLIMIT_RTTIME, 5000000)))
    check('RLIMIT_RTTIME is 5000000 us' in r.err, r)


def test_warn_all_cpus():
    need_realtime()
    n = os.sysconf('SC_NPROCESSORS_ONLN')
    r = accepted(run(f'-smp {n} -realtime maxprio=2,policy=fifo'))
    check(f'cover all {n} host CPUs' in r.err, r)
    r = accepted(run(f'-smp {n} -realtime maxprio=2,policy=rr'))
    check('cover all' not in r.err, r)


def names_of_processes():
    names = set()
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/comm', encoding='utf-8') as f:
                names.add(f.read().strip())
        except OSError:
            continue  # it ended meanwhile
    return names


def test_warn_kernel_threads():
    need_realtime()
    need('migration/0' in names_of_processes(), 'the kernel threads are not visible here')
    r = accepted(run('-realtime maxprio=99'))
    check('migration (99)' in r.err, r)
    check('migration' not in run('-realtime maxprio=50').err, r)


def main():
    tests = [(name[5:].replace('_', '-'), fn) for name, fn in globals().items()
             if name.startswith('test_')]
    print(f'1..{len(tests)}')
    failed = 0
    for i, (name, fn) in enumerate(tests, 1):
        try:
            fn()
            print(f'ok {i} {name}')
        except Skip as e:
            print(f'ok {i} {name} # SKIP {e}')
        except (AssertionError, subprocess.SubprocessError, OSError) as e:
            failed += 1
            print(f'not ok {i} {name}')
            for line in str(e).splitlines():
                print(f'# {line}')
        sys.stdout.flush()
    return failed != 0


if __name__ == '__main__':
    sys.exit(main())
