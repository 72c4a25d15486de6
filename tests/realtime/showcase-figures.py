#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of the show case out of made-up output of cyclictest. Output: TAP."""
import os
import sys
import tempfile
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'lib'), os.path.join(HERE, '..', '..', 'scripts')]
from guest import main  # noqa: E402
from showcase import figures, page  # noqa: E402


def output(bins, total, high, overflows):
    lines = ['# /dev/cpu_dma_latency set to 0us', '# Histogram']
    lines += [f'{us:06d} ' + '\t'.join(f'{n:06d}' for n in columns) for us, columns in bins]
    lines += [f'# {k}: ' + ' '.join(f'{n:09d}' for n in v) for k, v in
              (('Total', total), ('Min Latencies', total), ('Avg Latencies', total), ('Max Latencies', high),
               ('Histogram Overflows', overflows))]
    return '\r\n'.join(lines + ['# Thread 0:', ''])


def one_thread():
    h = figures.Histogram.parse(output([(10, [9000]), (20, [989]), (100, [9]), (5000, [1])], [9999], [2000000], [1]))
    assert h.samples == 10000 and h.beyond == 1, h.count
    f = h.figures()
    assert f['min'] == 10 and f['max'] == 2000000, f
    assert (f['p99'], f['p99.9'], f['p99.99']) == (20, 100, 5000), f
    assert abs(f['avg'] - (90000 + 19780 + 900 + 5000 + 2000000) / 10000) < 1e-6, f
    assert h.later_than()[-1] == (5000, 1)


def two_threads():
    h = figures.Histogram.parse(output([(3, [4, 0]), (1234567, [0, 6])], [4, 6], [3, 1234567], [0, 0]))
    assert h.count == {3: 4, 1234567: 6} and h.max == 1234567, h.count


def damaged_output_is_refused():
    good = output([(10, [9])], [9], [10], [0])
    for bad in ('', good.replace('# Max', '# Mux'), good.replace('000010 000009', '000010 000008'),
                output([], [0], [0], [0])):
        try:
            figures.Histogram.parse(bad)
        except figures.BadOutput:
            continue
        raise AssertionError(f'accepted: {bad!r}')


def cell(side, row, load, *runs):
    c = figures.Cell(side, row, load)
    for n, bins in enumerate(runs):
        h = figures.Histogram.parse(output([(us, [k]) for us, k in bins], [sum(k for _, k in bins)], [bins[-1][0]], [0]))
        c.runs.append({'histogram': h, 'figures': h.figures(), 'repetition': n, 'threads': []})
    return c


def medians_and_ratios():
    a = cell('ours', 'realtime', 'idle', [(10, 5)], [(30, 5)], [(20, 5)])
    b = cell('other', 'raised', 'idle', [(40, 5)], [(40, 5)], [(80, 5)])
    assert a.median('avg') == 20 and figures.spread(a.values('max')) == '10…30'
    found = figures.ratios([a, b], ['other'])
    assert len(found) == 1, found
    assert found[0]['avg'] == {'ratio': 0.5, 'lowest': 0.25, 'highest': 0.75}, found
    text = figures.table([a, b], {'idle': 'Idle host'})
    assert 'ours, realtime' in text and '10…30' in text, text


def page_with_every_kind_of_cell():
    cells = [cell('host', 'floor', 'idle', [(1, 3), (9, 1)]), cell('ours', 'realtime', 'idle', [(0, 2), (999999, 1)]),
             cell('ours', 'normal', 'idle')]
    cells[2].failures.append('<b>no & such</b>')
    skipped = figures.Cell('ours', 'normal', 'net')
    skipped.skipped = 'this emulator has no network device'
    with tempfile.TemporaryDirectory() as d:
        page.write_html(f'{d}/p.html', {'host': 'x'}, cells + [skipped], {'idle': 'Idle', 'net': 'Net'}, None,
                        figures.ratios(cells, []))
        with open(f'{d}/p.html', encoding='utf-8') as f:
            text = f.read()
    assert '&lt;b&gt;no &amp; such' in text and 'skipped: this emulator' in text and text.count('<svg viewBox="0 0 1000') == 2


main(one_thread, two_threads, damaged_output_is_refused, medians_and_ratios, page_with_every_kind_of_cell)
