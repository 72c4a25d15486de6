#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The main loop is held off for two seconds while the vCPU runs. Usage: heldloop.py IMAGE ACCEL"""
import ctypes
import os
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from guest import Guest, main, skip  # noqa: E402

IMAGE, ACCEL = sys.argv[1], sys.argv[2]
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ticks_come_without_the_main_loop():
    with Guest('-accel', ACCEL, '-m', '64', '-kernel', IMAGE, '-display', 'none', '-serial', 'stdio', '-monitor',
               'none', '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4', '-device', 'pc-testdev',
               stdin=False) as g:
        g.expect('hold the loop', 60)
        tid = g.proc.pid  # the first thread runs the main loop
        if LIBC.ptrace(PTRACE_SEIZE, tid, None, None) < 0:
            skip(f'ptrace: {os.strerror(ctypes.get_errno())}')
        LIBC.ptrace(PTRACE_INTERRUPT, tid, None, None)
        os.waitpid(tid, WALL)
        time.sleep(2.5)
        LIBC.ptrace(PTRACE_DETACH, tid, None, None)
        status = g.wait(60)
        if status != 1 or 'RESULT: passed' not in g.text():
            g.fail(f'exit status {status}, wanted 1')


main(ticks_come_without_the_main_loop)
