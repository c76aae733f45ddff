#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The bars of the benchmarks: how they are read, and how they are judged; and
how a tool is measured.  TAP.

The functions below whose names begin with test_ are the test cases; their first
line is the claim.
"""

import contextlib
import io
import os
import pathlib
import select
import sys

sys.dont_write_bytecode = True
BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from harness import bars, cases, machine, report, versus
from harness.results import OWN, WEFT, WEFT_EPOLL, Row, Sample
from harness.session import Session

import tap

LIMIT = {"bench": "b", "workers": [1], "direction": "max", "limit": 10,
         "why": "a promise"}
RATIO = {"bench": "b", "workers": [1], "direction": "max", "ratio": 0.5,
         "peer": "tokio", "why": "half the work"}


def without(entry, *names):
    return {name: value for name, value in entry.items() if name not in names}


def bar(entry, **more):
    return bars.make_bars([dict(entry, **more)])[0]


def row(unit="ns/op", **values):
    """A row of one round, or of the rounds of each list."""
    r = Row("b", 1, unit, "family")
    for peer, rounds in values.items():
        for i, value in enumerate(rounds if isinstance(rounds, list) else [rounds]):
            r.add(peer, i, value, False)
    return r


def expect(got, wanted, what):
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, wanted {wanted!r}")


def expect_state(b, r, state):
    verdict = b.judge(r)
    expect(verdict.state, state, f"{b.text()} with {r.values}: {verdict.text()}")


def expect_refused(entries, *words):
    try:
        bars.make_bars(entries)
    except bars.BarError as e:
        for word in words:
            if word not in str(e):
                raise AssertionError(f"{e}: does not say {word!r}") from e
        return
    raise AssertionError(f"accepted: {entries}")


# --- Judging ----------------------------------------------------------------

def test_limit():
    """a limit is met up to its value, and a strict one only below it"""
    for figure, state in (9, bars.MET), (10, bars.MET), (10.1, bars.MISSED):
        expect_state(bar(LIMIT), row(weft=figure), state)
    expect_state(bar(LIMIT, strict=True), row(weft=10), bars.MISSED)
    expect_state(bar(LIMIT, strict=True), row(weft=9.9), bars.MET)


def test_minimum():
    """a bar whose direction is min is met from its value on"""
    least = bar(LIMIT, direction="min")
    for figure, state in (11, bars.MET), (10, bars.MET), (9.9, bars.MISSED):
        expect_state(least, row(weft=figure), state)
    expect_state(bar(LIMIT, direction="min", strict=True), row(weft=10),
                 bars.MISSED)


def test_worst():
    """a limit is judged by the median, and with worst by the worst round"""
    r = row(weft=[1, 2, 30])
    expect_state(bar(LIMIT), r, bars.MET)
    expect_state(bar(LIMIT, worst=True), r, bars.MISSED)
    expect_state(bar(LIMIT, worst=True, direction="min"), r, bars.MISSED)
    expect_state(bar(LIMIT, worst=True), row(weft=[1, 2, 10]), bars.MET)


def test_limit_ignores_peers():
    """a limit does not depend on the peers"""
    expect_state(bar(LIMIT), row(weft=9, tokio=1), bars.MET)
    expect_state(bar(LIMIT), row(weft=11, tokio=100), bars.MISSED)


def test_ratio():
    """a ratio compares the medians with the peer of the same run"""
    for figure, state in (50, bars.MET), (51, bars.MISSED):
        expect_state(bar(RATIO), row(weft=figure, tokio=[90, 100, 500], go=1), state)
    expect_state(bar(RATIO), row(weft=500, tokio=1000), bars.MET)


def test_best():
    """the peer best is the one with the best median, by the unit's direction"""
    best = bar(RATIO, peer="best", ratio=1)
    expect_state(best, row(weft=50, tokio=60, go=49), bars.MISSED)
    expect_state(best, row(weft=50, tokio=60, go=51), bars.MET)
    best = bar(RATIO, peer="best", ratio=1, direction="min")
    expect_state(best, row("req/s", weft=50, tokio=60, go=49), bars.MISSED)
    expect_state(best, row("req/s", weft=50, tokio=49, go=50), bars.MET)


def test_paired():
    """a paired ratio is met if the bound of the rounds' ratios is"""
    paired, theirs = bar(RATIO, paired=True), [100] * 15
    expect_state(paired, row(weft=[49] * 15, tokio=theirs), bars.MET)
    # Medians that meet the bar, but not for 95% of the samples.
    expect_state(paired, row(weft=[40] * 8 + [60] * 7, tokio=theirs), bars.MISSED)
    # Slow phases that hit both cancel out.
    slow = [100, 200, 400] * 5
    expect_state(paired, row(weft=[x * 0.49 for x in slow], tokio=slow), bars.MET)
    few = paired.judge(row(weft=[49], tokio=[100]))
    expect("rounds: only 1" in few.text(), True, few.text())


def test_missing_peer():
    """a ratio to a peer without a figure is missed, and names the peer"""
    for r in row(weft=1), row(weft=1, go=100), row(weft=1, tokio=0):
        expect_state(bar(RATIO), r, bars.MISSED)
        expect("no figure of tokio" in bar(RATIO).judge(r).text(), True, r.values)
    for r in row(weft=1), row(weft=1, tokio=0):
        verdict = bar(RATIO, peer="best").judge(r)
        expect(verdict, bars.Verdict(bars.MISSED, ": no figure of any peer"), r.values)
    r = Row("b", 1, "ns/op", "family", {WEFT: {0: 1}, "tokio": {1: 100}})
    expect_state(bar(RATIO, paired=True), r, bars.MISSED)


def test_missing_weft():
    """a bar without a figure of weft is not measured, so not met"""
    for b in bar(LIMIT), bar(RATIO), bar(RATIO, paired=True):
        for r in row(), row(tokio=100):
            expect_state(b, r, bars.NOT_MEASURED)


def test_ahead():
    """a missed ratio says whether weft is ahead of every peer all the same"""
    ahead = bar(RATIO).judge(row(weft=60, tokio=100, go=70)).text()
    behind = bar(RATIO).judge(row(weft=60, tokio=100, go=50)).text()
    expect("ahead of every peer" in ahead, True, ahead)
    expect("ahead of every peer" in behind, False, behind)
    rate = bar(RATIO, ratio=2, direction="min")
    ahead = rate.judge(row("req/s", weft=150, tokio=100, go=140)).text()
    behind = rate.judge(row("req/s", weft=150, tokio=100, go=160)).text()
    expect("ahead of every peer" in ahead, True, ahead)
    expect("ahead of every peer" in behind, False, behind)


# --- Reading ----------------------------------------------------------------

def test_both_kinds():
    """a bar with both kinds, or with neither, is refused"""
    expect_refused([dict(RATIO, limit=3)], "bar 1 (b)", "both a 'limit' and a 'ratio'")
    expect_refused([LIMIT, without(LIMIT, "limit")], "bar 2 (b)", "neither")


def test_reason():
    """a bar without a reason is refused"""
    for entry in LIMIT, RATIO:
        expect_refused([without(entry, "why")], "bar 1 (b)", "no reason")
        expect_refused([dict(entry, why="  ")], "no reason")


def test_peer_needed():
    """a ratio without a peer is refused, and so is a limit with one"""
    expect_refused([without(RATIO, "peer")], "needs a 'peer'")
    expect_refused([dict(LIMIT, peer="tokio")], "'peer' goes with a 'ratio' only")
    expect_refused([dict(LIMIT, paired=True)], "'paired' goes with a 'ratio' only")
    expect_refused([dict(RATIO, worst=True)], "'worst' goes with a 'limit' only")


def test_then():
    """a bar that divides by a figure of another machine is refused"""
    expect_refused([dict(LIMIT, then=135)], "unknown field 'then'")


def test_fields():
    """fields of the wrong kind are refused"""
    for name, value in (("direction", "up"), ("workers", []), ("workers", 1),
                        ("workers", [0]), ("limit", "10"), ("limit", True),
                        ("limit", float("nan")), ("strict", 1)):
        expect_refused([dict(LIMIT, **{name: value})], "bar 1 (b)", f"'{name}'")
    expect_refused([without(LIMIT, "direction")], "'direction'")
    expect_refused([without(LIMIT, "bench")], "bar 1", "'bench'")
    expect_refused(["b"], "bar 1")
    expect_refused(LIMIT, "list")


def test_of():
    """a bar may judge weft's other engine, which is no peer of either"""
    names = {"weft": 4, WEFT_EPOLL: 6, "tokio": 10, "go": 8}
    for entry, good, bad in (LIMIT, 9, 11), (RATIO, 5, 5.1):
        for figure, state in (good, bars.MET), (bad, bars.MISSED):
            expect_state(bar(entry, of=WEFT_EPOLL),
                         row(**{**names, WEFT_EPOLL: figure}), state)
        expect_state(bar(entry, of=WEFT_EPOLL), row(weft=4, tokio=10),
                     bars.NOT_MEASURED)
    expect(row(**{**names, WEFT_EPOLL: 1}).best_peer(), "go", "the best peer")
    expect(bar(RATIO, of=WEFT_EPOLL).text(), "weft-epoll <= 0.5 x tokio", "text")
    expect_refused([dict(LIMIT, of="tokio")], "'of'", "weft-epoll")


# --- The file ---------------------------------------------------------------

def test_file():
    """bars.json is valid, and has no bar twice"""
    seen = set()
    for b in bars.read_bars(BENCH / "bars.json"):
        for workers in b.workers:
            key = b.bench, workers, b.peer, b.of
            expect(key in seen, False, f"{key} twice")
            seen.add(key)


def test_file_names_cases():
    """each bar of bars.json names a figure of a case, and a peer in it"""
    peers = {}
    for case in cases.all_cases():
        for name in case.benches():
            entrants = {peer for peer, _ in case.entrants(None)}
            peers.setdefault((name, case.workers), set()).update(entrants)
    for b in bars.read_bars(BENCH / "bars.json"):
        for workers in b.workers:
            key = b.bench, workers
            expect(key in peers, True, f"{key} is a figure of a case")
            expect(b.of in peers[key], True, f"{b.of} takes part in {key}")
            known = peers[key].difference(OWN)
            known |= {bars.BEST} if known else set()
            expect(b.peer is None or b.peer in known, True,
                   f"{b.peer} takes part in {key}")


def test_notes_name_cases():
    """each note of the table names a figure of a case"""
    names = {name for case in cases.all_cases() for name in case.benches()}
    expect(set(report.NOTES) - names, set(), "notes of no figure")


# --- Printing ---------------------------------------------------------------

# Nothing is measured here, so there is no reason to wait for a benchmark.
machine.lock = contextlib.nullcontext


def session_of(names, figure, rounds=2):
    """A session of one case, in which each entrant gives figure(name)."""
    case = cases.Micro("b", 1, "tasks")
    session = Session(cases.Plan.QUICK, lambda case: [
        (name, lambda name=name: ([Sample("b", 1, figure(name), "ns/op")], 0))
        for name in names], lambda case: rounds)
    with contextlib.redirect_stderr(io.StringIO()):
        session.run_all([case])
    return case, session


def printed(function, *arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        function(*arguments)
    return out.getvalue().splitlines()


def test_table():
    """the table shows the number of runs, the summary the machine and each miss"""
    case, session = session_of([WEFT, "tokio"], {WEFT: 60, "tokio": 100}.get, 3)
    lines = printed(report.print_tables, [case], session,
                    [bar(LIMIT, limit=100), bar(RATIO), bar(LIMIT, workers=[2])], False)
    row_ = next(line.split() for line in lines if line.startswith("b "))
    expect(row_[:6], ["b", "1", "ns/op", "3", "60", "100"], "the row")
    at = lines.index(f"machine: {machine.describe()}")
    expect(lines[at + 1:], [
        "bars: 1 met of 2",
        "  b, 1 worker, bar <= 0.5 x tokio: missed by 1.20x: 0.600 x tokio,"
        " ahead of every peer"], "the summary")


def test_table_of_nothing():
    """a bar of a chosen bench that gave no figure is listed as not measured"""
    case, session = session_of([], None)
    lines = printed(report.print_tables, [case], session, [bar(LIMIT)], False)
    expect(lines[-2:], ["bars: 0 met of 1", "  b, 1 worker, bar <= 10: not measured"],
           "the summary")


# --- Two builds -------------------------------------------------------------

def test_versus():
    """beside another build a row is worse past 1.03, by the unit's direction"""
    for unit, before, after, worse in (
            ("ns/op", 100, 103, False), ("ns/op", 100, 104, True),
            ("ns/op", 100, 50, False), ("req/s", 100, 98, False),
            ("req/s", 100, 96, True), ("req/s", 100, 200, False),
            ("count", 0, 0, False), ("count", 0, 1, True)):
        r = row(unit, before=before, after=after)
        expect(versus.is_worse(r), worse, f"{unit} {before} -> {after}")
        expect(versus.row_cells(r)[-1], "WORSE" if worse else "", unit)
    for r in row(before=1), row(after=1):
        expect(versus.row_cells(r)[-1], "not compared", r.values)


def test_versus_table():
    """beside another build the worse rows are listed by name, with the ratio"""
    order = []

    def figure(name):
        order.append(name)
        return {"before": 100, "after": 110}[name]

    _, session = session_of(["before", "after"], figure, 4)
    expect(order, ["before", "after", "after", "before"] * 2, "the order")
    lines = printed(versus.print_table, session, False)
    row_ = next(line.split() for line in lines if line.startswith("b "))
    expect(row_, ["b", "1", "ns/op", "4", "100", "110", "1.100", "1.10-1.10", "WORSE"],
           "the row")
    expect(lines[-2:], ["worse than 1.03: 1 of 1 rows", "  b, 1 worker"], "the end")


def test_tool_that_does_not_end():
    """a tool that does not end gives no figure, and leaves no process"""
    reader, writer = os.pipe()
    try:
        machine.timed(["sh", "-c", "sleep 60 & wait"], stdout=writer, timeout=1)
        raise AssertionError("it ended")
    except machine.Failed as e:
        expect(str(e).startswith("no end after 1 s: sh"), True, str(e))
    finally:
        os.close(writer)
    # Its end comes when no process has the pipe any more.
    expect(bool(select.select([reader], [], [], 20)[0]), True, "no process is left")
    os.close(reader)


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
