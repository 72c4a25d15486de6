#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs fuzz targets. Usage:
  run.py list PROGRAM TARGET...   the targets of the program are these
  run.py replay PROGRAM TARGET    on the known inputs (inputs.py)
  run.py fuzz PROGRAM TARGET      by libFuzzer, for FUZZ_SECONDS (10); what it learns is kept beside
                                  PROGRAM in corpus/TARGET, what fails in failed/TARGET-*
"""
import os
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import inputs  # noqa: E402

# What an input is judged by besides crashes (main.c has more). MiB; seconds, for one that does not end.
MEMORY, MALLOC, TIMEOUT = 2048, 512, 60
# So much stack is enough; and at each longjmp the address sanitizer clears the shadow of all of it.
STACK = 1 << 20
MAX_LEN = {'option': 512, 'cpulist': 256, 'execute': 256, 'decode': 256, 'kernel': 8192}
OPTIONS = {'UBSAN_OPTIONS': 'print_stacktrace=1:halt_on_error=1',
           'ASAN_OPTIONS': 'detect_stack_use_after_return=0:allocator_may_return_null=1:handle_segv=1'}


def environment():
    env = dict(os.environ)
    for key, value in OPTIONS.items():
        env.setdefault(key, value)
    return env


def limit_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))


def run(words, cwd, timeout):
    try:
        r = subprocess.run(words, cwd=cwd, env=environment(), timeout=timeout, stdin=subprocess.DEVNULL, preexec_fn=limit_stack,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return r.returncode, r.stdout.decode(errors='replace')
    except subprocess.TimeoutExpired as e:
        return 'a hang', (e.stdout or b'').decode(errors='replace')


def replay(program, target):
    with tempfile.TemporaryDirectory(prefix='qrt-fuzz-') as d:
        inputs.write(d, target)
        files = sorted(os.path.join(d, target, n) for n in os.listdir(os.path.join(d, target)))
        assert files or target == 'devices', 'no input'
        status, text = run([program, '--target=' + target, *files], d, 600)
    if status:
        print(text[-8000:], file=sys.stderr)
        print(f'{target}: status {status} at the input named last', file=sys.stderr)
    return status == 0


def fuzz(program, target):
    seconds = int(os.environ.get('FUZZ_SECONDS', '10'))
    here = os.path.dirname(os.path.abspath(program))
    corpus, failed = os.path.join(here, 'corpus', target), os.path.join(here, 'failed')
    os.makedirs(corpus, exist_ok=True)
    os.makedirs(failed, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix='qrt-fuzz-') as d:
        inputs.write(d, target)
        work = os.path.join(d, 'work')
        os.mkdir(work)
        status, text = run(
            [program, '--target=' + target, f'-max_total_time={seconds}', f'-timeout={TIMEOUT}',
             f'-rss_limit_mb={MEMORY}', f'-malloc_limit_mb={MALLOC}', f'-max_len={MAX_LEN.get(target, 1024)}',
             f'-artifact_prefix={failed}/{target}-', '-close_fd_mask=3', '-handle_xfsz=0', '-detect_leaks=1',
             '-print_final_stats=1', '-reload=0', '-entropic=0', corpus, os.path.join(d, target)],
            work, seconds + 300)
    print(text[-8000:], file=sys.stderr)
    return status == 0


def listed(program, targets):
    status, text = run([program, '--list'], '.', 60)
    if sorted(text.split()) != sorted(targets):
        print(f'status {status}, targets {text.split()}, expected {targets}', file=sys.stderr)
    return status == 0 and sorted(text.split()) == sorted(targets)


def main():
    what, program, rest = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3:]
    ok = listed(program, rest) if what == 'list' else {'replay': replay, 'fuzz': fuzz}[what](program, rest[0])
    sys.exit(0 if ok else 1)


if __name__ == '__main__':
    main()
