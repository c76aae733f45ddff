# SPDX-License-Identifier: MIT
"""The readable table: figures, ratios, bars and verdicts, a family at a time."""

from . import machine
from .results import WEFT, Row


def number(x):
    if x == round(x):
        return f"{x:,.0f}"
    if abs(x) < 10:
        return f"{x:.2f}"
    return f"{x:.1f}" if abs(x) < 100 else f"{x:,.0f}"


def cell(row, peer):
    """The median; ~ marks one that other people's work may have spoilt."""
    if not row.values.get(peer):
        return "-"
    noisy = row.noisy[peer] > len(row.values[peer]) / 2
    return number(row.median(peer)) + ("~" if noisy else "")


def ratio_cell(row):
    best = row.best_peer()
    ratio = row.ratio(best)
    return "-" if ratio is None else f"{ratio:.2f} {best}"


def family_peers(rows):
    seen = {}
    for row in rows:
        seen.update(dict.fromkeys(row.peers()))
    return list(seen)


def row_lines(row, peers, bars):
    """A line a bar, or one without; and the verdicts."""
    head = [row.bench, str(row.workers), row.unit, cell(row, WEFT),
            *(cell(row, p) for p in peers), ratio_cell(row)]
    ours = [b for b in bars if b.bench == row.bench and row.workers in b.workers]
    verdicts = [b.judge(row) for b in ours]
    if not ours:
        return [[*head, "", ""]], []
    lines = [[*head, ours[0].text(), verdicts[0]]]
    blank = [""] * len(head)
    lines += [[*blank, b.text(), v] for b, v in zip(ours[1:], verdicts[1:])]
    return lines, verdicts


def print_aligned(lines):
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip())


def unmeasured(cases, results, bars):
    """Rows for bars of the chosen benches that nobody gave a figure for."""
    for case in cases:
        for bar in bars:
            key = bar.bench, case.workers
            if case.workers in bar.workers and bar.bench in case.benches() \
                    and key not in results.rows:
                yield Row(*key, "", case.family)


def print_family(family, rows, bars):
    peers = family_peers(rows)
    lines = [["bench", "workers", "unit", WEFT, *peers, "weft/best", "bar", "verdict"]]
    verdicts = []
    for row in rows:
        more, judged = row_lines(row, peers, bars)
        lines += more
        verdicts += judged
    print(f"\n{family}")
    print_aligned(lines)
    return verdicts


def print_skipped(skipped):
    if skipped:
        print("\nskipped")
    for (peer, why), cases in skipped.items():
        print(f"  {peer}: {why} ({', '.join(dict.fromkeys(cases))})")


def print_tables(cases, session, bars, quick):
    """Returns the verdicts, one for each bar of each row."""
    rows = list(session.results.rows.values())
    rows += unmeasured(cases, session.results, bars)
    print(f"\n{machine.describe()}")
    if quick:
        print("quick: one short round; these figures mean nothing")
    verdicts = []
    for family in dict.fromkeys(row.family for row in rows):
        verdicts += print_family(family, [r for r in rows if r.family == family], bars)
    print_skipped(session.skipped)
    met = sum(v.startswith("met") for v in verdicts)
    print(f"\nbars: {met} met of {len(verdicts)}")
    return verdicts
