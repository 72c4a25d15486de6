#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Style as a test. Usage: style.py TOP CHECK [CC...], CHECK one of:

  layers    #include goes to lower layers only (layers.txt)
  headers   each header compiles alone (CC... is the compiler with its flags)
  licence   each source file begins with an SPDX line
  length    no file over 700 lines, no function over 100, but those in length-exceptions.txt
  locks     pthread mutexes only in util/qemu-thread-posix.c, scheduling policies in util/qemu-thread-sched.c
  ranks     docs/devel/locking.md lists the ranks of include/qemu/lockrank.h
  documents every document is reached from README.md by links, and no link leads nowhere
"""
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

TOP, CHECK = sys.argv[1], sys.argv[2]
HERE = os.path.join(TOP, 'tests/style')


def sources(*endings):
    out = subprocess.run(['git', '-C', TOP, 'ls-files'], capture_output=True, text=True)
    if out.returncode == 0:
        names = out.stdout.split('\n')
    else:
        names = [os.path.relpath(os.path.join(d, f), TOP) for d, _, fs in os.walk(TOP)
                 for f in fs if '/build' not in d and '/.' not in d]
    return sorted(n for n in names if n.endswith(endings) and os.path.exists(os.path.join(TOP, n)))


def lines_of(name):
    with open(os.path.join(TOP, name), encoding='utf-8') as f:
        return f.read().split('\n')


def read_layers():
    rules = {}
    with open(os.path.join(HERE, 'layers.txt'), encoding='utf-8') as f:
        for line in f:
            w = line.split('#')[0].split()
            if w:
                rules[w[0]] = (int(w[1]), w[3:] if len(w) > 2 else [])
    return rules


def room_of(path, rules):
    best = ''
    for prefix in rules:
        if (path == prefix or path.startswith(prefix + '/')) and len(prefix) > len(best):
            best = prefix
    return best


def check_layers():
    rules, bad = read_layers(), []
    for name in sources('.c', '.h'):
        room = room_of(name, rules)
        if not room:
            bad.append(f'{name}: its room has no line in layers.txt')
            continue
        for n, line in enumerate(lines_of(name), 1):
            m = re.match(r'\s*#\s*include "([^"]+)"', line)
            target = m and find_header(m.group(1), name)
            if target and not allowed(room, target, rules):
                bad.append(f'{name}:{n}: {room} may not include {target}')
    return bad


def find_header(inc, name):
    for base in ('', 'include', os.path.dirname(name)):
        path = os.path.normpath(os.path.join(base, inc))
        if os.path.exists(os.path.join(TOP, path)):
            return path
    return None


def allowed(room, target, rules):
    other = room_of(target, rules)
    layer, also = rules[room]
    if other == room or os.path.splitext(target)[0] == room.split('.')[0] or any(target.startswith(a) for a in also):
        return True
    olayer = rules[other][0]
    # A room implements the public header of its own name, which may stand at its own layer.
    if other.startswith('include/'):
        return olayer <= layer
    return olayer < layer


def check_headers():
    cc = sys.argv[3:]
    bad = []

    def one(name):
        r = subprocess.run(cc + ['-fsyntax-only', '-x', 'c', '-include', name, '/dev/null'],
                           cwd=TOP, capture_output=True, text=True)
        return None if r.returncode == 0 else f'{name}: does not compile alone\n{r.stderr[:500]}'

    with ThreadPoolExecutor(2) as pool:
        bad = [b for b in pool.map(one, [s for s in sources('.h') if not s.startswith('tests/')])
               if b]
    return bad


def check_licence():
    bad = []
    for name in sources('.c', '.h', '.py', '.S', '.s', '.asl', '.hx', 'meson.build', '.sh'):
        head = '\n'.join(lines_of(name)[:3])
        if 'SPDX-License-Identifier: GPL-2.0-or-later' not in head:
            bad.append(f'{name}: no SPDX line in its first three lines')
    return bad


def exceptions():
    out = set()
    with open(os.path.join(HERE, 'length-exceptions.txt'), encoding='utf-8') as f:
        for line in f:
            w = line.split('#')[0].split()
            if w:
                out.add(' '.join(w))
    return out


def functions(lines):
    """(name, first line, number of lines) of each function: a body between { and } in column 0."""
    start, name = None, ''
    for n, line in enumerate(lines, 1):
        if line == '{':
            start = n
            for back in range(n - 2, max(n - 12, -1), -1):
                m = re.search(r'(\w+)\s*\(', lines[back])
                if m and not lines[back].startswith((' ', '\t')):
                    name = m.group(1)
                    break
        elif line.startswith('}') and start:
            yield name, start, n - start
            start = None


def check_length():
    ok, bad = exceptions(), []
    for name in sources('.c', '.h', '.py'):
        lines = lines_of(name)
        if len(lines) > 701 and name not in ok:
            bad.append(f'{name}: {len(lines)} lines, over 700')
        for fn, n, length in functions(lines):
            if length > 100 and f'{name} {fn}' not in ok:
                bad.append(f'{name}:{n}: {fn}() has {length} lines, over 100')
    return bad


def check_locks():
    bad = []
    places = {
        'util/qemu-thread-posix.c': re.compile(
            r'\b(pthread_mutex_\w+|pthread_cond_\w+|pthread_rwlock_\w+)\s*\('),
        'util/qemu-thread-sched.c': re.compile(
            r'\b(sched_setscheduler|pthread_setschedparam|sched_setattr)\s*\('),
    }
    for name in sources('.c', '.h'):
        for place, pattern in places.items():
            if name == place or name.startswith('tests/'):
                continue
            for n, line in enumerate(lines_of(name), 1):
                m = pattern.search(line)
                if m and not line.lstrip().startswith(('*', '/*')):
                    bad.append(f'{name}:{n}: {m.group(1)} belongs into {place}')
    return bad


def check_ranks():
    table = re.findall(r'R\((\w+),\s*(\d+),', '\n'.join(lines_of('include/qemu/lockrank.h')))
    doc = '\n'.join(lines_of('docs/devel/locking.md'))
    return [f'docs/devel/locking.md: no row for {name} {num}' for name, num in table
            if not re.search(rf'\|\s*`?{name}`?\s*\|\s*{num}\s*\|', doc) and
            not re.search(rf'\|\s*{num}\s*\|\s*`?{name}`?\s*\|', doc)]


def links_of(name):
    """Files of this tree that a document links to."""
    for target in re.findall(r'\]\(([^)#\s]+)', '\n'.join(lines_of(name))):
        if not re.match(r'\w+:', target):
            yield os.path.normpath(os.path.join(os.path.dirname(name), target))


def check_documents():
    documents, seen, todo, bad = sources('.md'), set(), ['README.md'], []
    while todo:
        name = todo.pop()
        seen.add(name)
        for target in links_of(name):
            if not os.path.exists(os.path.join(TOP, target)):
                bad.append(f'{name}: links to {target}, which does not exist')
            elif target.endswith('.md') and target not in seen:
                todo.append(target)
    return bad + [f'{n}: no document that README.md leads to links to it' for n in documents if n not in seen]



def main():
    bad = globals()[f'check_{CHECK}']()
    for b in bad:
        print(b)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
