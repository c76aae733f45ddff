#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure weft beside its peers, or beside another build of weft.

Every round runs each entrant once.  Prints one JSON line for each figure, then
a table with the ratios and the bars of bars.json.  README.md explains both.
"""

import sys

sys.dont_write_bytecode = True  # leaves no files in the source tree

import argparse
import json
import pathlib
import signal
import tempfile

from harness import cases, machine, peers, report, versus
from harness.bars import MET, ROUNDS_PAIRED, BarError, read_bars
from harness.session import ROUNDS, Session, say

HERE = pathlib.Path(__file__).resolve().parent


def families(default):
    return " ".join(dict.fromkeys(case.family for case in cases.all_cases()
                                  if case.default == default))


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("names", nargs="*", metavar="NAME",
                   help=f"a bench or a family: {families(True)};"
                        f" by name only: {families(False)}")
    p.add_argument("--build", type=pathlib.Path, required=True, metavar="BUILD_DIR",
                   help="where weft is built; the peers go into BUILD_DIR/peers")
    p.add_argument("--versus", type=pathlib.Path, metavar="BUILD_DIR",
                   help="compare two builds instead: --build is before, this is after;"
                        " what measures goes into this directory's peers")
    p.add_argument("--json", metavar="FILE", help="where the JSON lines go")
    p.add_argument("--runs", type=int, metavar="N",
                   help=f"rounds (default {ROUNDS}; echo {ROUNDS_PAIRED}, but with"
                        f" --versus {ROUNDS})")
    p.add_argument("--quick", action="store_true",
                   help="one short round, to see that everything runs; the figures"
                        " mean nothing")
    p.add_argument("--require", action="append", default=[], metavar="PEER",
                   help="fail if this peer, or weft, is missing anywhere")
    p.add_argument("--strict", action="store_true",
                   help="fail if a bar is missed, or with --versus if a row is worse")
    p.add_argument("--list", action="store_true", help="list the benches and end")
    return p.parse_args()


def select(names):
    available = list(cases.all_cases())
    for name in names:
        if not any(c.selected_by(name) for c in available):
            sys.exit(f"run.py: no bench {name}; --list shows them")
    if not names:
        return [c for c in available if c.default]
    return [c for c in available if any(c.selected_by(n) for n in names)]


def list_cases():
    for case in cases.all_cases():
        print(f"{case.family:9} {case.name:28} workers {case.workers}")


def write_lines(results, path):
    lines = [json.dumps(line) for row in results.rows.values() for line in row.json_lines()]
    text = "".join(f"{line}\n" for line in lines)
    if path:
        pathlib.Path(path).write_text(text)
    else:
        print(text, end="")


def peers_dir(options):
    """Below the newer build: the older one may be another checkout's."""
    return (options.versus or options.build) / "peers"


def make_session(options, scratch):
    plan = cases.Plan.QUICK if options.quick else cases.Plan.FULL
    fixed = options.runs or (1 if options.quick else None)

    def bench(build, programs):
        return cases.Bench(build, pathlib.Path(scratch), programs, plan)

    if options.versus:
        programs = peers.build_all(peers_dir(options), say, versus.PROGRAMS)
        entrants = versus.entrants(bench(options.build, programs),
                                   bench(options.versus, programs))
        return Session(plan, entrants, lambda case: fixed or ROUNDS)
    beside = bench(options.build, peers.build_all(peers_dir(options), say))
    return Session(plan, lambda case: case.entrants(beside),
                   lambda case: fixed or (ROUNDS_PAIRED if case.paired else ROUNDS))


def measure_all(options, chosen):
    peers_dir(options).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=peers_dir(options)) as scratch:
        session = make_session(options, scratch)
        session.run_all(chosen)
    return session


def status(options, session, failed):
    missing = {name for name, _ in session.skipped} & set(options.require)
    for name in sorted(missing):
        say(f"run.py: {name} is required and was skipped")
    return 1 if missing or session.interrupted or (options.strict and failed) else 0


def check_builds(options):
    for name in "build", "versus":
        path = getattr(options, name)
        if path and not path.is_dir():
            sys.exit(f"run.py: --{name} {path}: no such directory")
        setattr(options, name, path and path.resolve())


def main():
    options = parse_arguments()
    if options.list:
        return list_cases()
    chosen = select(options.names)
    check_builds(options)
    try:
        bars = read_bars(HERE / "bars.json")
    except BarError as e:
        sys.exit(f"run.py: {e}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    machine.raise_descriptor_limit()
    session = measure_all(options, chosen)
    write_lines(session.results, options.json)
    if options.versus:
        failed = versus.print_table(session, options.quick)
    else:
        verdicts = report.print_tables(chosen, session, bars, options.quick)
        failed = [v for v in verdicts if v.state != MET]
    return status(options, session, failed)


if __name__ == "__main__":
    sys.exit(main())
