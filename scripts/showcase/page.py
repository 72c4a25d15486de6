# SPDX-License-Identifier: GPL-2.0-or-later
"""The result as JSON and as one HTML page that needs nothing else."""
import html
import json
import math

from .figures import FIGURES, HISTOGRAM_LIMIT, number, ratio_spread, ratio_text, spread
from .runs import ROWS

# Tells rows apart without red against green; each emulator has its own dash.
COLOUR = {'normal': '#b35806', 'realtime': '#0b5fa5', 'vcpu99': '#8e44ad', 'raised': '#2a7f62'}
DASH = ['', '7 4', '2 3', '10 3 2 3']
SHORT = {'normal': 'normal', 'realtime': '-realtime maxprio=50,policy=fifo', 'vcpu99': 'vCPU alone at FIFO 99',
         'raised': 'all threads raised to 50/49', 'floor': 'the host itself'}
STYLE = '''body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;padding:0 1.5em;max-width:70em;color:#1c1c1c;background:#fff}
h1{font-size:1.7em;margin-bottom:.2em}h2{margin-top:2em;border-bottom:2px solid #ddd}table{border-collapse:collapse;margin:1em 0}
td,th{padding:.3em .8em;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap;vertical-align:top}
th{background:#f3f3f3}td:first-child,th:first-child{text-align:left}td.why,th.why{text-align:left;white-space:normal}table.facts td{text-align:left;white-space:normal}table.threads td,table.threads th{text-align:left}
tr.best td{background:#eaf3fb}.spread{display:block;font-size:.75em;color:#666}.note,.lead{color:#444}.lead{font-size:1.1em}
svg{width:100%;height:auto;margin:.5em 0}svg text{font:13px system-ui,sans-serif;fill:#333}svg .title{font-weight:600;font-size:15px}
.bad{color:#a11}.good{color:#06713a}.key{display:inline-block;width:2.2em;vertical-align:middle;margin-right:.5em}'''
WIDTH, HEIGHT, LEFT, TOP_, RIGHT, BOTTOM = 1000, 400, 80, 36, 20, 56
LINE_BINS = 16  # a decade


def edges():
    return sorted({round(10 ** (k / LINE_BINS)) for k in range(6 * LINE_BINS + 1)})


class Axes:
    """A log-log plane with its grid, in SVG."""

    def __init__(self, title, x_label, y_label, x_range, y_range):
        self.x0, self.x1 = (math.log10(v) for v in x_range)
        self.y0, self.y1 = (math.log10(v) for v in y_range)
        self.out = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(title)}">'
                    f'<text class="title" x="{LEFT}" y="20">{html.escape(title)}</text>']
        for k in range(math.ceil(self.x0), math.floor(self.x1) + 1):
            self.grid_x(10.0 ** k)
        for k in range(math.ceil(self.y0), math.floor(self.y1) + 1):
            self.grid_y(10.0 ** k)
        bottom = HEIGHT - BOTTOM
        self.out.append(f'<path d="M{LEFT} {TOP_}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="#333"/>'
                        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(x_label)}</text>'
                        f'<text transform="translate(16 {(TOP_ + bottom) / 2}) rotate(-90)" text-anchor="middle">{html.escape(y_label)}</text>')

    def x(self, v):
        k = (math.log10(v) - self.x0) / (self.x1 - self.x0)
        return LEFT + (WIDTH - LEFT - RIGHT) * min(1, max(0, k))

    def y(self, v):
        k = (math.log10(v) - self.y0) / (self.y1 - self.y0)
        return HEIGHT - BOTTOM - (HEIGHT - TOP_ - BOTTOM) * min(1, max(0, k))

    def grid_x(self, v):
        label = {3: '1 ms', 4: '10 ms', 5: '100 ms', 6: '1 s'}.get(round(math.log10(v)), f'{v:.0f} µs')
        self.out.append(f'<path d="M{self.x(v):.1f} {TOP_}V{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>'
                        f'<text x="{self.x(v):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{label}</text>')

    def grid_y(self, v):
        label = f'{100 * v:g} %' if self.y1 <= 0 else f'{v:,.0f}'.replace(',', ' ')
        self.out.append(f'<path d="M{LEFT} {self.y(v):.1f}H{WIDTH - RIGHT}" stroke="#e4e4e4"/>'
                        f'<text x="{LEFT - 8}" y="{self.y(v) + 4:.1f}" text-anchor="end">{label}</text>')

    def line(self, points, look, name):
        d = 'M' + 'L'.join(f'{self.x(a):.1f} {self.y(b):.1f}' for a, b in points)
        if look['fill']:
            d += f'V{HEIGHT - BOTTOM}H{self.x(points[0][0]):.1f}Z'
            style = f'fill="{look["colour"]}" stroke="none"'
        else:
            style = f'fill="none" stroke="{look["colour"]}" stroke-width="2.2" stroke-dasharray="{look["dash"]}"'
        self.out.append(f'<path d="{d}" {style}><title>{html.escape(name)}</title></path>')

    def svg(self):
        return ''.join(self.out) + '</svg>'


def look(cell, sides):
    if cell.side == 'host':
        return {'colour': '#d4d4d4', 'dash': '', 'fill': True}
    return {'colour': COLOUR[cell.row], 'dash': DASH[sides.index(cell.side) % len(DASH)], 'fill': False}


def label(cell):
    return SHORT[cell.row] if cell.side == 'host' else f'{cell.side}: {SHORT[cell.row]}'


def histogram(cells, sides, title):
    marks = edges()
    series = [(c, c.pooled().binned(marks)) for c in cells]
    top = max(max(n) for _, n in series)
    low = min(next(m for m, k in zip(marks, n) if k) for _, n in series)
    high = max(next(m for m, k in zip(reversed(marks), reversed(n)) if k) for _, n in series)
    a = Axes(title, 'latency (µs, logarithmic)', 'samples in each bin (logarithmic)',
             (10 ** math.floor(math.log10(low)), 10 ** min(6, math.floor(math.log10(high)) + 1)),
             (0.5, 10 ** math.ceil(math.log10(top + 1))))
    for c, n in series:
        points = [(marks[0], 0.5)]
        for i, k in enumerate(n):
            right = marks[i + 1] if i + 1 < len(marks) else HISTOGRAM_LIMIT
            points += [(marks[i], k or 0.5), (right, k or 0.5)]
        first = next(i for i, k in enumerate(n) if k)
        last = max(i for i, k in enumerate(n) if k)
        # From the bin before the first filled one to the one after the last.
        a.line([(marks[first], 0.5)] + points[1 + 2 * first:3 + 2 * last] + [(points[2 + 2 * last][0], 0.5)],
               look(c, sides), label(c))
    return a.svg()


def tail(cells, sides, title):
    series = []
    for c in cells:
        h = c.pooled()
        points, before = [], 1.0
        for us, left in h.later_than():
            share = left / h.samples
            points += [(max(us, 1), before), (max(us, 1), share or 0.3 / h.samples)]
            before = share or 0.3 / h.samples
        if h.beyond:
            points.append((HISTOGRAM_LIMIT, before))
        series.append((c, points))
    low = min(p[0][0] for _, p in series)
    high = max(p[-1][0] for _, p in series)
    most = max(c.pooled().samples for c in cells)
    a = Axes(title, 'latency (µs, logarithmic)', 'share of samples that were later',
             (10 ** math.floor(math.log10(low)), 10 ** min(6, math.floor(math.log10(high)) + 1)),
             (10.0 ** -math.ceil(math.log10(most)) / 2, 1))
    for c, points in series:
        a.line(points, look(c, sides), label(c))
    return a.svg()


def key(cell, sides):
    k = look(cell, sides)
    mark = (f'<rect width="34" height="12" y="0" fill="{k["colour"]}"/>' if k['fill'] else
            f'<path d="M0 6H34" stroke="{k["colour"]}" stroke-width="3" stroke-dasharray="{k["dash"]}"/>')
    return f'<svg class="key" viewBox="0 0 34 12">{mark}</svg>'


def result_table(cells, sides):
    e = html.escape
    out = ['<table><tr><th>row</th>' + ''.join(f'<th>{f}</th>' for f in FIGURES) + '<th>samples</th><th>runs</th></tr>']
    for c in cells:
        name = f'<td>{key(c, sides)}{e(label(c))}</td>'
        if not c.runs:
            why = f'skipped: {c.skipped}' if c.skipped else f'failed: {c.failures[-1]}' if c.failures else 'not measured'
            out.append(f'<tr>{name}<td colspan="8" style="text-align:left" class="{"note" if c.skipped else "bad"}">{e(why)}</td></tr>')
            continue
        best = ' class="best"' if (c.side, c.row) == ('ours', 'realtime') else ''
        failed = f' <span class="bad">({len(c.failures)} failed)</span>' if c.failures else ''
        out.append(f'<tr{best}>{name}' + ''.join(
            f'<td>{number(c.median(f))}<span class="spread">{spread(c.values(f))}</span></td>' for f in FIGURES) +
            f'<td>{number(c.pooled().samples)}</td><td>{len(c.runs)}{failed}</td></tr>')
    return ''.join(out) + '</table>'


def load_section(name, title, cells, sides):
    measured = [c for c in cells if c.runs]
    out = [f'<h2>{html.escape(title)}</h2>']
    if name == 'cpu+disk':
        out.append('<p class="note">stress-ng: one CPU worker for each host CPU, one that writes and syncs files, one of mixed I/O.</p>')
    elif name == 'net':
        out.append('<p class="note">Broadcast frames of 1 014 bytes sent to the guest’s network card without pause.</p>')
    out.append(result_table(cells, sides))
    if measured:
        out.append(histogram(measured, sides, f'{title}: how often each latency occurred'))
        out.append(tail(measured, sides, f'{title}: how many samples came later than that'))
    return ''.join(out)


def starvation_text(s):
    lines = [f'everything on host CPU {s["host_cpu"]}; a boot is given up after {s["bound_seconds"]} s']
    for how, name in (('normal', 'no realtime priorities'), ('maxprio=2', '-realtime maxprio=2,policy=fifo'),
                      ('vcpu99', 'vCPU alone raised to FIFO 99')):
        r = s[how]
        lines.append(f'{name}: booted {r["booted"]} of {r["tries"]}, console answered {r["answered"]} of {r["tries"]}')
        lines += sorted({f'    {t["why"]}' for t in s['tries'] if t['how'] == how and t['why']})
    return '\n'.join(lines)


def starvation_section(s):
    e = html.escape
    out = [f'<h2>Starvation on one host CPU</h2><p>Every thread of the emulator on host CPU {s["host_cpu"]} (<code>taskset</code>). '
           'A vCPU that is raised above the thread that serves its devices polls for an answer which that thread is not '
           f'given the CPU to make in time; with events above the vCPU the guest boots. A boot is given up after {s["bound_seconds"]} s.</p>'
           '<p class="note">RT throttling and, since Linux 6.12, the fair server leave a starved thread a few percent of the CPU: '
           'that is why this does not hang the host, and why some of the starving guests boot all the same: it is a matter of luck.</p>'
           '<table><tr><th>how</th><th>booted</th><th>console answered</th><th>boot time (s)</th><th class="why">what happened</th></tr>']
    for how, name in (('normal', 'no realtime priorities'), ('maxprio=2', '-realtime maxprio=2,policy=fifo (event 2, vCPU 1)'),
                      ('vcpu99', 'vCPU alone raised to FIFO 99')):
        r, times = s[how], [t['seconds'] for t in s['tries'] if t['how'] == how and t['booted']]
        text = f'{min(times):.1f}…{max(times):.1f}' if times else 'never'
        why = sorted({t['why'] for t in s['tries'] if t['how'] == how and t['why']})
        out.append(f'<tr><td>{e(name)}</td><td>{r["booted"]} of {r["tries"]}</td><td>{r["answered"]} of {r["tries"]}</td>'
                   f'<td>{text}</td><td class="why">{"<br>".join(map(e, why))}</td></tr>')
    return ''.join(out) + '</table>'


def threads_section(cells):
    """What the host's kernel said of each thread just before the measurement."""
    e = html.escape
    out, seen = ['<h2>Threads, as the host’s kernel reported them</h2><table class="threads"><tr><th>row</th><th>thread</th><th>policy</th><th>priority</th></tr>'], set()
    for c in cells:
        if c.runs and c.side != 'host' and (c.side, c.row) not in seen:
            seen.add((c.side, c.row))
            for n, t in enumerate(c.runs[0]['threads']):
                out.append(f'<tr><td>{e(label(c)) if n == 0 else ""}</td><td>{e(t["name"])}</td><td>{t["policy"]}</td><td>{t["prio"]}</td></tr>')
    return ''.join(out) + '</table>' if seen else ''


NOTES = '''<p class="note">Latency: how much later than it was due the guest’s cyclictest, at priority 99 of a PREEMPT_RT kernel, was
woken. Figures are medians over the runs, with the lowest and highest run below; histograms are of all runs together. Runs of all
rows take turns, in reversed order each second time. With fewer than 10 000 samples a run, p99.99 is the maximum; with fewer than
1 000, p99.9 is too. The host’s own cyclictest (grey) is the floor: no guest can be better than what its host gives.</p>'''


def short_section(found):
    e, figures = html.escape, ('avg', 'p99.9', 'max')
    out = ['<h2>In short</h2><table><tr><th>comparison</th>' + ''.join(f'<th>{f}</th>' for f in figures) + '</tr>']
    for r in found:
        out.append(f'<tr><td>{e(r["name"])}</td>')
        for f in figures:
            low, high = ratio_spread(r[f]) if f in r else ('', '')
            out.append(f'<td>{ratio_text(r[f]["ratio"]) + "x" if f in r else "–"}'
                       f'<span class="spread">{low + "…" + high if low else ""}</span></td>')
        out.append('</tr>')
    return ''.join(out) + ('</table><p class="note">Ratios of medians; below them the lowest and highest of the '
                           'repetitions taken in pairs. Below 1: lower latency.</p>')


def write_html(path, about, cells, loads, starved, found):
    e = html.escape
    sides = [s for i, s in enumerate(c.side for c in cells if c.side != 'host')
             if s not in [c.side for c in cells if c.side != 'host'][:i]]
    out = ['<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
           f'<title>-realtime show case</title><style>{STYLE}</style></head><body><h1>Realtime guests: the -realtime show case</h1>'
           '<p class="lead">' + ('Can a guest starve the emulator that serves it?' if starved else
                                 'How late is a realtime task inside a guest, with and without <code>-realtime</code>, idle and under load?') + '</p>']
    out.append(short_section(found) if found else '')
    if cells:
        out.append(NOTES)
    out += [load_section(k, t, [c for c in cells if c.load == k], sides) for k, t in loads.items() if cells]
    out += [starvation_section(starved) if starved else '', threads_section(cells), '<h2>How it was measured</h2><table class="facts">']
    out += [f'<tr><td>{e(k)}</td><td>{e(str(v))}</td></tr>' for k, v in about.items()]
    out += [f'<tr><td>row {e(SHORT[k])}</td><td>{e(v)}</td></tr>' for k, v in ROWS.items() if any(c.row == k for c in cells)]
    with open(path, 'w', encoding='utf-8') as f:
        f.write(''.join(out) + '</table></body></html>\n')


def write_json(path, about, cells, starved, found):
    with open(path, 'w', encoding='utf-8') as f:
        json.dump({'about': about, 'cells': [c.json() for c in cells], 'ratios': found, 'starvation': starved}, f, indent=1)
        f.write('\n')
