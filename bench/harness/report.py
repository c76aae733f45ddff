# SPDX-License-Identifier: MIT
"""The readable table: figures, ratios, bars and verdicts, a family at a time."""

from . import machine
from .bars import MET, MISSED
from .results import OWN, WEFT, Row

# Notes that a reader of the table needs for a row, which has a * there.
NOTES = {
    "yield_1": "one task alone: weft's yield returns to it without a switch of tasks;"
               " Tokio and Go pass through their schedulers",
}


def number(x):
    if x == round(x):
        return f"{x:,.0f}"
    if abs(x) < 10:
        return f"{x:.2f}"
    return f"{x:.1f}" if abs(x) < 100 else f"{x:,.0f}"


def cell(row, peer):
    """The median; ~ marks one that other programs' work may have spoilt."""
    if not row.values.get(peer):
        return "-"
    noisy = row.noisy[peer] > len(row.values[peer]) / 2
    return number(row.median(peer)) + ("~" if noisy else "")


def ratio_cell(row):
    best = row.best_peer()
    ratio = row.ratio(best)
    return "-" if ratio is None else f"{ratio:.2f} {best}"


def row_name(row):
    return f"{row.bench}, {row.workers} worker{'' if row.workers == 1 else 's'}"


def family_peers(rows):
    """All that were measured, weft first."""
    seen = {WEFT: None}
    for row in rows:
        seen.update(dict.fromkeys(row.values))
    return sorted(seen, key=lambda peer: peer not in OWN)


def row_lines(row, peers, judged):
    """One line for each bar of the row, or one without a bar."""
    head = [row.bench + ("*" if row.bench in NOTES else ""), str(row.workers), row.unit,
            row.runs(), *(cell(row, p) for p in peers), ratio_cell(row)]
    bars = [[bar.text(), verdict.text()] for bar, verdict in judged] or [["", ""]]
    blank = [""] * len(head)
    return [[*(blank if i else head), *cells] for i, cells in enumerate(bars)]


def print_aligned(lines):
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip())


def unmeasured(cases, results, bars):
    """Rows for the bars of the chosen benches that no program gave a figure for."""
    for case in cases:
        for bar in bars:
            key = bar.bench, case.workers
            if case.workers in bar.workers and bar.bench in case.benches() \
                    and key not in results.rows:
                yield Row(*key, "", case.family)


def judge(row, bars):
    """(row, bar, verdict) of each bar of the row."""
    return [(row, bar, bar.judge(row)) for bar in bars
            if bar.bench == row.bench and row.workers in bar.workers]


def print_family(family, rows, bars):
    peers = family_peers(rows)
    lines = [["bench", "workers", "unit", "runs", *peers, "weft/best", "bar", "verdict"]]
    judged = []
    for row in rows:
        of_row = judge(row, bars)
        lines += row_lines(row, peers, [pair[1:] for pair in of_row])
        judged += of_row
    print(f"\n{family}")
    print_aligned(lines)
    for name in dict.fromkeys(row.bench for row in rows):
        if name in NOTES:
            print(f"* {name}: {NOTES[name]}")
    return judged


def print_skipped(skipped):
    if skipped:
        print("\nskipped")
    for (peer, why), cases in skipped.items():
        print(f"  {peer}: {why} ({', '.join(dict.fromkeys(cases))})")


def print_summary(quick):
    print(f"\nmachine: {machine.describe()}")
    if quick:
        print("quick: one short round; these figures mean nothing")


def print_bars(judged):
    """How many bars are met, and the names of the others."""
    states = [verdict.state for _, _, verdict in judged]
    print(f"bars: {states.count(MET)} met of {len(states)}")
    for row, bar, verdict in judged:
        if verdict.state == MISSED:
            print(f"  {row_name(row)}, bar {bar.text()}: {verdict.text()}")
    for row, bar, verdict in judged:
        if verdict.state not in (MET, MISSED):
            print(f"  {row_name(row)}, bar {bar.text()}: {verdict.text()}")


def print_tables(cases, session, bars, quick):
    """Returns the verdicts, one for each bar of each row."""
    rows = list(session.results.rows.values())
    rows += unmeasured(cases, session.results, bars)
    judged = []
    for family in dict.fromkeys(row.family for row in rows):
        judged += print_family(family, [r for r in rows if r.family == family], bars)
    print_skipped(session.skipped)
    print_summary(quick)
    print_bars(judged)
    return [verdict for _, _, verdict in judged]
