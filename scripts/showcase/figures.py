# SPDX-License-Identifier: GPL-2.0-or-later
"""What cyclictest measured: histograms, figures of one run, medians over repetitions, the table."""
import bisect
import math
import re
import statistics

FIGURES = ('min', 'avg', 'p99', 'p99.9', 'p99.99', 'max')
HISTOGRAM_LIMIT = 1000000  # µs; the most that cyclictest's -h takes


class BadOutput(Exception):
    pass


class Histogram:
    """Latencies in whole µs -> how many; those over the histogram's end are known by number only."""

    def __init__(self):
        self.count = {}
        self.beyond = 0
        self.total_us = 0.0
        self.max = 0

    @property
    def samples(self):
        return sum(self.count.values()) + self.beyond

    @classmethod
    def parse(cls, text):
        """Of the output of cyclictest -q -h, one column a thread; bins without samples may be missing."""
        h = cls()
        per_thread = {}
        for line in text.splitlines():
            line = line.strip()
            bin_line = re.fullmatch(r'(\d{6,}) ([\d\s]+)', line)
            if bin_line:
                n = sum(int(x) for x in bin_line.group(2).split())
                if n:
                    h.count[int(bin_line.group(1))] = h.count.get(int(bin_line.group(1)), 0) + n
            m = re.match(r'# (Total|Avg Latencies|Max Latencies|Histogram Overflows):\s*([\d\s]+)', line)
            if m:
                per_thread[m.group(1)] = [int(x) for x in m.group(2).split()]
        missing = {'Total', 'Avg Latencies', 'Max Latencies', 'Histogram Overflows'} - set(per_thread)
        if missing:
            raise BadOutput(f'cyclictest did not print {", ".join(sorted(missing))}: {text[-300:]!r}')
        h.beyond = sum(per_thread['Histogram Overflows'])
        h.max = max(per_thread['Max Latencies'])
        if h.samples == 0:
            raise BadOutput('cyclictest took no samples')
        # Totals leave out what went over the end, which is at most one wake-up a thread off.
        if sum(h.count.values()) != sum(per_thread['Total']):
            raise BadOutput(f'the histogram has {sum(h.count.values())} samples, '
                            f'cyclictest counted {sum(per_thread["Total"])}')
        h.total_us = float(sum(us * n for us, n in h.count.items()) + h.beyond * h.max)
        return h

    def add(self, other):
        for us, n in other.count.items():
            self.count[us] = self.count.get(us, 0) + n
        self.beyond += other.beyond
        self.total_us += other.total_us
        self.max = max(self.max, other.max)

    def percentile(self, p):
        """The smallest latency that p percent of the samples do not exceed."""
        need = math.ceil(self.samples * p / 100 - 1e-9)
        seen = 0
        for us in sorted(self.count):
            seen += self.count[us]
            if seen >= need:
                return us
        return self.max

    def figures(self):
        return {'min': min(self.count) if self.count else self.max, 'avg': self.total_us / self.samples,
                'p99': self.percentile(99), 'p99.9': self.percentile(99.9),
                'p99.99': self.percentile(99.99), 'max': self.max}

    def binned(self, edges):
        """Samples between each edge and the next; the last bin takes what is beyond."""
        out = [0] * len(edges)
        for us, n in self.count.items():
            out[max(0, bisect.bisect_right(edges, us) - 1)] += n
        out[-1] += self.beyond
        return out

    def later_than(self):
        """[(µs, samples later than that)], for each latency that occurred."""
        left, out = self.samples, []
        for us in sorted(self.count):
            left -= self.count[us]
            out.append((us, left))
        return out


class Cell:
    """One row under one load: its runs, or why there are none."""

    def __init__(self, side, row, load):
        self.side, self.row, self.load = side, row, load
        self.runs, self.failures, self.skipped = [], [], None

    @property
    def name(self):
        return f'{self.side}, {self.row}'

    def pooled(self):
        h = Histogram()
        for r in self.runs:
            h.add(r['histogram'])
        return h

    def values(self, figure):
        return [r['figures'][figure] for r in self.runs]

    def median(self, figure):
        v = self.values(figure)
        return statistics.median(v) if v else None

    def json(self):
        runs = []
        for r in self.runs:
            h = r['histogram']
            runs.append({**{k: v for k, v in r.items() if k != 'histogram'}, 'samples': h.samples,
                         'beyond_histogram': h.beyond,
                         'histogram': {str(us): h.count[us] for us in sorted(h.count)}})
        out = {'emulator': self.side, 'row': self.row, 'load': self.load, 'skipped': self.skipped,
               'failures': self.failures, 'runs': runs}
        if self.runs:
            out['samples'] = self.pooled().samples
            for f in FIGURES:
                out[f] = {'median': self.median(f), 'lowest': min(self.values(f)), 'highest': max(self.values(f))}
        return out


def number(v):
    """µs: whole, in groups of three; a few digits below ten."""
    if v is None:
        return '–'
    return f'{v:.1f}' if v < 10 and v != int(v) else f'{v:,.0f}'.replace(',', '\u202f')


def spread(values):
    return f'{number(min(values))}…{number(max(values))}' if len(values) > 1 else ''


def table(cells, loads):
    """The result as text: medians over repetitions; below each row, in another line, the spread."""
    head = ['row', *FIGURES, 'samples', 'runs']
    lines = []
    for load in loads:
        rows = [head]
        for c in (c for c in cells if c.load == load):
            if c.skipped:
                rows.append([c.name, f'skipped: {c.skipped}'])
                continue
            if not c.runs:
                rows.append([c.name, f'FAILED: {c.failures[-1]}' if c.failures else 'not measured'])
                continue
            failed = f' ({len(c.failures)} failed)' if c.failures else ''
            rows.append([c.name, *(number(c.median(f)) for f in FIGURES), number(c.pooled().samples),
                         f'{len(c.runs)}{failed}'])
            if len(c.runs) > 1:
                rows.append(['', *(spread(c.values(f)) for f in FIGURES), '', ''])
        whole = [r for r in rows if len(r) == len(head)]
        width = [max(len(r[i]) for r in whole) for i in range(len(head))]
        width[0] = max(width[0], *(len(r[0]) for r in rows))
        lines += ['', f'{loads[load]} (µs; median of the runs, below it the lowest and highest)']
        for r in rows:
            if len(r) < len(head):
                lines.append(f'{r[0].ljust(width[0])}  {r[1]}')
            else:
                lines.append('  '.join(v.ljust(w) if i == 0 else v.rjust(w)
                                       for i, (v, w) in enumerate(zip(r, width))).rstrip())
    return '\n'.join(lines[1:])


def ratio(name, a, b, wanted):
    """How a stands to b: ratio of the medians; lowest and highest of the repetitions taken in pairs."""
    if not a or not b or not a.runs or not b.runs:
        return None
    out = {'name': name, 'of': f'{a.name}, {a.load}', 'to': f'{b.name}, {b.load}'}
    other = {r['repetition']: r['figures'] for r in b.runs}
    for f in wanted:
        if b.median(f):
            pairs = [r['figures'][f] / other[r['repetition']][f] for r in a.runs
                     if r['repetition'] in other and other[r['repetition']][f]]
            out[f] = {'ratio': a.median(f) / b.median(f),
                      'lowest': min(pairs) if pairs else None, 'highest': max(pairs) if pairs else None}
    return out


def ratios(cells, others):
    """The comparisons that the show case is about."""
    at = {(c.side, c.row, c.load): c for c in cells}
    ours = {load: at.get(('ours', 'realtime', load)) for load in ('idle', 'cpu+disk', 'net')}
    out = [ratio('-realtime, loaded against idle', ours['cpu+disk'], ours['idle'], ('avg', 'p99.9', 'max')),
           ratio('-realtime, idle, against the host itself', ours['idle'], at.get(('host', 'floor', 'idle')), ('avg', 'p99.9', 'max'))]
    for load in ('idle', 'cpu+disk', 'net'):
        out.append(ratio(f'-realtime against normal, {load}', ours[load], at.get(('ours', 'normal', load)), ('avg', 'p99.9', 'max')))
        out.append(ratio(f'-realtime against vCPU alone at FIFO 99, {load}', ours[load], at.get(('ours', 'vcpu99', load)), ('avg', 'p99.9', 'max')))
        for o in others:
            out.append(ratio(f'-realtime against {o} raised to the same 50/49, {load}', ours[load],
                             at.get((o, 'raised', load)), ('avg', 'p99.9', 'max')))
    return [r for r in out if r]


def ratio_text(v):
    return f'{v:.2f}' if v < 10 else f'{v:.0f}'


def ratio_spread(entry):
    """Lowest and highest as text, or two empty ones when there was one repetition."""
    if entry['lowest'] is None or entry['lowest'] == entry['highest']:
        return '', ''
    return ratio_text(entry['lowest']), ratio_text(entry['highest'])


def ratio_lines(found):
    def text(v):
        low, high = ratio_spread(v)
        return f'{ratio_text(v["ratio"])}x' + (f' ({low}…{high})' if low else '')
    return [f'{r["name"]}: ' + ', '.join(f'{k} {text(v)}' for k, v in r.items() if isinstance(v, dict)) for r in found]
