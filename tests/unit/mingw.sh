#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The files that stand for Windows compile with Debian's mingw-w64, and os-win32.c refuses -realtime.
# usage: mingw.sh SOURCE_DIRECTORY
cc=x86_64-w64-mingw32-gcc
command -v $cc >/dev/null || { echo "$cc is not installed: skipped"; exit 77; }
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
cd "$1" || exit 1
status=0
for f in os-win32.c util/qemu-thread-win32.c; do
    o=$out/$(basename $f .c).o
    $cc -std=gnu11 -O2 -Wall -Wextra -Werror -Wshadow -Wmissing-prototypes -Wstrict-prototypes \
        -Wno-unused-parameter -D_WIN32_WINNT=0x0602 -I. -Iinclude -c $f -o $o || status=1
    echo "$f: $([ -s $o ] && echo compiled || echo FAILED)"
done
grep -aq 'not supported on Windows' $out/os-win32.o || { echo "no refusal in it"; status=1; }
exit $status
