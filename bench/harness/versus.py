# SPDX-License-Identifier: MIT
"""Two builds of weft in one interleaving, such as before and after a change."""

from . import report
from .results import MORE_IS_BETTER
from .results import WEFT

BEFORE, AFTER = "before", "after"
WORSE = 1.03
PROGRAMS = ("quiet", "echo_load", "wrk")  # what measures, beside weft's programs


def entrants(before, after):
    """Of each case, weft's own entrant in both builds; before, after: Bench."""
    def of(case):
        for name, bench in (BEFORE, before), (AFTER, after):
            own = dict(case.entrants(bench))
            yield name, own[WEFT]
    return of


def is_worse(row):
    """Whether the median after is worse than before by more than WORSE."""
    old, new = row.median(BEFORE), row.median(AFTER)
    if row.unit in MORE_IS_BETTER:
        old, new = new, old
    return new > old * WORSE


def ratio_cells(row):
    """after / before of the medians, and the range of the rounds' ratios."""
    old, new = row.values[BEFORE], row.values[AFTER]
    ratios = [new[r] / old[r] for r in new if old.get(r)]
    if not row.median(BEFORE) or not ratios:
        return ["-", "-"]
    return [f"{row.median(AFTER) / row.median(BEFORE):.3f}",
            f"{min(ratios):.2f}-{max(ratios):.2f}"]


def row_cells(row):
    head = [row.bench, str(row.workers), row.unit, row.runs(),
            report.cell(row, BEFORE), report.cell(row, AFTER)]
    if not row.values.get(BEFORE) or not row.values.get(AFTER):
        return [*head, "-", "-", "not compared"]
    return [*head, *ratio_cells(row), "WORSE" if is_worse(row) else ""]


def print_table(session, quick):
    """Returns the names of the rows that are worse."""
    rows = list(session.results.rows.values())
    lines = [["bench", "workers", "unit", "runs", BEFORE, AFTER, "after/before",
              "by round", ""]]
    lines += [row_cells(row) for row in rows]
    print()
    report.print_aligned(lines)
    report.print_skipped(session.skipped)
    worse = [report.row_name(row) for row, cells in zip(rows, lines[1:])
             if cells[-1] == "WORSE"]
    report.print_summary(quick)
    print(f"worse than {WORSE}: {len(worse)} of {len(rows)} rows")
    for name in worse:
        print(f"  {name}")
    return worse
