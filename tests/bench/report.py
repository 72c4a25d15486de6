# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of tests/bench/run as a table, JSON and one HTML page."""
import html
import json
import math
import statistics


def number(v):
    if v is None:
        return '-'
    digits = 0 if abs(v) >= 1000 else 1 if abs(v) >= 100 else 2 if abs(v) >= 1 else 3
    return f'{v:.{digits}f}'


def spread(samples):
    """How far the farthest sample is from the median, in percent."""
    m = statistics.median(samples)
    return 100 * max(abs(s - m) for s in samples) / m if m else 0


def cell(samples):
    if not samples:
        return '-'
    s = number(statistics.median(samples))
    return f'{s} ±{spread(samples):.0f}%' if len(samples) > 1 else s


def times_as_good(item, ours, other):
    """Above 1: ours is the better one, whether more or less is better."""
    if not ours or not other:
        return None
    a, b = statistics.median(ours), statistics.median(other)
    if not a or not b:
        return None
    return b / a if item.less else a / b


class Result:
    def __init__(self, item, about):
        self.item, self.about = item, about
        self.samples = {'ours': [], 'other': [], 'native': []}
        self.failures = {}

    def ratio(self):
        return times_as_good(self.item, self.samples['ours'], self.samples['other'])

    def of_native(self):
        return times_as_good(self.item, self.samples['ours'], self.samples['native'])

    def verdict(self):
        r, i = self.ratio(), self.item
        if r is None or not i.least:
            return ''
        return 'aim met' if i.aim and r >= i.aim else 'met' if r >= i.least else 'below'

    def json(self):
        i = self.item
        out = {'name': i.name, 'unit': i.unit, 'better': 'less' if i.less else 'more', 'about': self.about,
               'ratio': self.ratio(), 'of_native': self.of_native(), 'least': i.least, 'aim': i.aim,
               'failures': self.failures}
        for side, s in self.samples.items():
            out[side] = {'samples': s, 'median': statistics.median(s) if s else None,
                         'spread_percent': spread(s) if s else None}
        return out


def table(results, other):
    head = ['item', 'unit', 'ours', other or '-', 'ratio', 'least', 'aim', '', 'native', 'of native']
    rows = [head]
    for r in results:
        rows.append([r.item.name, r.item.unit, cell(r.samples['ours']), cell(r.samples['other']),
                     number(r.ratio()), number(r.item.least), number(r.item.aim), r.verdict(),
                     cell(r.samples['native']), number(r.of_native())])
    width = [max(len(row[c]) for row in rows) for c in range(len(head))]
    lines = []
    for row in rows:
        lines.append('  '.join(v.ljust(w) if c in (0, 1, 7) else v.rjust(w)
                               for c, (v, w) in enumerate(zip(row, width))).rstrip())
    lines.insert(1, '-' * max(len(x) for x in lines))
    lines.append('ratio: how many times as good as the other emulator (1: the same), whether more or less is better')
    return '\n'.join(lines)


def write_json(path, about, results, warnings):
    with open(path, 'w', encoding='utf-8') as f:
        json.dump({**about, 'items': [r.json() for r in results], 'warnings': warnings}, f, indent=1)
        f.write('\n')


STYLE = '''body{font:14px/1.4 system-ui,sans-serif;margin:2em;max-width:75em;color:#222;background:#fff}
table{border-collapse:collapse}td,th{padding:.15em .6em;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}
td:first-child,th:first-child,td.l{text-align:left}.met{color:#06713a}.below{color:#a11}.dim{color:#777}
.bar{height:.8em;background:#4a7ab5;display:inline-block}.bar.below{background:#c55}'''


def bar(ratio, verdict):
    """A bar from 0.1 (nothing) to 100 (full), logarithmic."""
    if ratio is None:
        return ''
    w = max(0, min(1, (math.log10(ratio) + 1) / 3)) * 180
    return f'<span class="bar {"below" if verdict == "below" else ""}" style="width:{w:.0f}px"></span>'


def write_html(path, about, results, warnings):
    e = html.escape
    out = ['<!doctype html><html lang="en"><meta charset="utf-8"><title>Emulator benchmark</title>',
           f'<style>{STYLE}</style><h1>Emulator benchmark</h1><p>']
    out += [f'{e(k)}: {e(str(v))}<br>' for k, v in about.items()]
    out.append('</p><p>Ratio: how many times as good as the other emulator, whether more or less is better; bars are '
               'logarithmic, from 0.1 to 100. ±: farthest sample from the median.</p><table><tr>')
    heads = ['item', 'ours', 'other', 'unit', 'ratio', '', 'least', 'aim', 'native', 'of native']
    out += [f'<th>{h}</th>' for h in heads] + ['</tr>']
    for r in results:
        v = r.verdict()
        cells = [cell(r.samples['ours']), cell(r.samples['other']), r.item.unit, number(r.ratio())]
        out.append(f'<tr><td title="{e(r.about)}">{e(r.item.name)}</td>' + ''.join(f'<td>{e(c)}</td>' for c in cells) +
                   f'<td class="l">{bar(r.ratio(), v)}</td>' +
                   f'<td class="{"below" if v == "below" else "met" if v else "dim"}">{number(r.item.least)}</td>' +
                   f'<td class="{"met" if v == "aim met" else "dim"}">{number(r.item.aim)}</td>' +
                   f'<td>{e(cell(r.samples["native"]))}</td><td>{number(r.of_native())}</td></tr>')
    out.append('</table>')
    fails = [f'{r.item.name}, {side}: {why}' for r in results for side, why in r.failures.items()]
    for title, lines in (('Failures', fails), ('Warnings', warnings)):
        if lines:
            out.append(f'<h2>{title}</h2><ul>' + ''.join(f'<li>{e(x)}</li>' for x in lines) + '</ul>')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join(out) + '</html>\n')
