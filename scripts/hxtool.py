#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes of qemu-options.hx what the build needs.

    hxtool.py index HX OUT    enum QemuOptionIndex
    hxtool.py table HX OUT    rows of the parser's table
    hxtool.py help  HX OUT    the text of -help, as C strings
    hxtool.py man   HX OUT    the manual page
"""
import re
import sys


class Option:
    def __init__(self, names, argument):
        self.names, self.argument = names, argument
        self.group, self.optional, self.help, self.text = None, False, [], []

    @property
    def symbol(self):
        return 'QEMU_OPTION_' + self.names[0].replace('-', '_')

    @property
    def arg_kind(self):
        if not self.argument:
            return 'CMDLINE_ARG_NONE'
        if self.optional:
            return 'CMDLINE_ARG_OPTIONAL'
        return 'CMDLINE_ARG_REQUIRED'


class Page:
    """A section of the manual page that is about no option: has a text like one."""

    def __init__(self, title):
        self.title, self.text = title, []


def parse(path):
    """The sections, as (title, options), and the pages."""
    sections, pages = [], []
    option = None
    with open(path, encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip()
            if line.startswith('#'):
                continue
            if line.startswith('= '):
                sections.append((line[2:], []))
                option = None
            elif line.startswith('% '):
                pages.append(Page(line[2:]))
                option = pages[-1]
            elif re.match(r'-[a-zA-Z]', line):
                names, _, argument = line.partition(' ')
                names = [n[1:] for n in names.split('|')]
                if not sections or pages:
                    sys.exit(f'{path}:{number}: option outside of a section')
                option = Option(names, argument)
                sections[-1][1].append(option)
            elif option is None:
                if line:
                    sys.exit(f'{path}:{number}: text outside of an option')
            elif line.startswith('@group '):
                option.group = line.split()[1]
            elif line == '@optional':
                option.optional = True
            elif line.startswith('> '):
                option.help.append(line[2:])
            else:
                option.text.append(line)
    seen = set()
    for _, options in sections:
        for o in options:
            if not o.help or not any(o.text):
                sys.exit(f'{path}: -{o.names[0]} has no help or no manual text')
            for n in o.names:
                if n in seen:
                    sys.exit(f'{path}: -{n} is there twice')
                seen.add(n)
    return sections, pages


HEADER = '/* SPDX-License-Identifier: GPL-2.0-or-later */\n/* Generated from qemu-options.hx. */\n'


def make_index(sections, pages, out):
    out.write(HEADER + '#ifndef QEMU_OPTIONS_INDEX_H\n#define QEMU_OPTIONS_INDEX_H\n')
    out.write('typedef enum QemuOptionIndex {\n')
    for _, options in sections:
        for o in options:
            out.write(f'    {o.symbol},\n')
    out.write('    QEMU_OPTION_COUNT\n} QemuOptionIndex;\n#endif\n')


def make_table(sections, pages, out):
    out.write(HEADER)
    for _, options in sections:
        for o in options:
            group = f'"{o.group}"' if o.group else 'NULL'
            for n in o.names:
                out.write(f'{{ "{n}", {o.symbol}, {o.arg_kind}, {group} }},\n')


def c_string(text):
    return '"' + text.replace('\\', '\\\\').replace('"', '\\"') + '\\n"\n'


def make_help(sections, pages, out):
    out.write(HEADER)
    for title, options in sections:
        out.write(c_string('') + c_string(title + ':'))
        for o in options:
            left = ' or '.join('-' + n for n in o.names)
            if o.argument:
                left += ' ' + o.argument
            first, rest = o.help[0], o.help[1:]
            if len(left) < 24:
                out.write(c_string(f'{left:<24} {first}'))
            else:
                out.write(c_string(left))
                rest = o.help
            for line in rest:
                out.write(c_string(' ' * 25 + line))


def roff(text):
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return '\\&' + text if text[:1] in ".'" else text


def man_text(text, paragraph, item, out):
    """Lines of the table; paragraph and item: what starts a new one, the latter with its two parts. Indented
    lines stay as they are."""
    while text and not text[-1]:
        text = text[:-1]
    verbatim = False
    for line in text:
        parts = re.match(r'\* (.*?): (.*)', line)
        if line.startswith('    ') != verbatim:
            verbatim = not verbatim
            out.write('.nf\n' if verbatim else '.fi\n')
        if verbatim:
            out.write(roff(line) + '\n')
        elif parts:
            out.write(item.format(roff(parts[1]), roff(parts[2])))
        else:
            out.write(roff(line) + '\n' if line else paragraph)
    if verbatim:
        out.write('.fi\n')


def make_man(sections, pages, out):
    out.write('.\\" SPDX-License-Identifier: GPL-2.0-or-later\n'
              '.\\" Generated from qemu-options.hx.\n'
              '.TH QEMU\\-SYSTEM\\-X86_64 1\n.SH NAME\n'
              'qemu\\-system\\-x86_64 \\- machine emulator with bounded latency\n'
              '.SH SYNOPSIS\n.B qemu\\-system\\-x86_64\n[\\fIoptions\\fR]\n'
              '.SH DESCRIPTION\n'
              'Runs an x86\\-64 machine, on KVM or in software. With \\fB\\-realtime\\fR it runs the\n'
              'guest with bounded latency. Options begin with one dash or two. In an option\'s value\n'
              'a comma that is part of a word is written twice; a value that begins with a brace is\n'
              'a JSON object with the same keys.\n')
    for title, options in sections:
        out.write(f'.SH {roff(title).upper()}\n')
        for o in options:
            names = ', '.join('\\fB' + roff('-' + n) + '\\fR' for n in o.names)
            argument = ' \\fI' + roff(o.argument) + '\\fR' if o.argument else ''
            out.write(f'.TP\n{names}{argument}\n')
            man_text(o.text, '.IP\n', '.IP\n\\fB{}\\fR \\- {}\n', out)
    for p in pages:
        out.write(f'.SH {roff(p.title).upper()}\n')
        man_text(p.text, '.PP\n', '.TP\n\\fB{}\\fR\n{}\n', out)


def main():
    makers = {'index': make_index, 'table': make_table, 'help': make_help, 'man': make_man}
    if len(sys.argv) != 4 or sys.argv[1] not in makers:
        sys.exit(__doc__)
    with open(sys.argv[3], 'w', encoding='utf-8') as out:
        makers[sys.argv[1]](*parse(sys.argv[2]), out)


if __name__ == '__main__':
    main()
