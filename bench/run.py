#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure weft beside its peers: every round runs each of them once.

Prints one JSON line a figure, then a table with the ratios and the bars of
bars.json. README.md says how to read it.
"""

import sys

sys.dont_write_bytecode = True  # the tree stays as it is

import argparse
import json
import pathlib
import random
import signal
import tempfile

from harness import cases, machine, peers, report
from harness.results import ROUNDS_PAIRED, WEFT, Results, make_bars

ROUNDS = 5
HERE = pathlib.Path(__file__).resolve().parent


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("names", nargs="*", metavar="NAME",
                   help="a bench or a family: tasks timers echo httpd file liveness;"
                        " by name only: sync copy")
    p.add_argument("--build", type=pathlib.Path, required=True, metavar="BUILD_DIR",
                   help="where weft is built; the peers go into BUILD_DIR/peers")
    p.add_argument("--json", metavar="FILE", help="the JSON lines go there")
    p.add_argument("--runs", type=int, metavar="N",
                   help=f"rounds (default {ROUNDS}; echo {ROUNDS_PAIRED})")
    p.add_argument("--quick", action="store_true",
                   help="one short round, to see that all runs; the figures mean nothing")
    p.add_argument("--require", action="append", default=[], metavar="PEER",
                   help="fail if this peer, or weft, is missing anywhere")
    p.add_argument("--strict", action="store_true", help="fail if a bar is missed")
    p.add_argument("--list", action="store_true", help="list the benches and end")
    return p.parse_args()


def say(*words):
    print(*words, file=sys.stderr, flush=True)


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


class Session:
    """Runs cases, keeps the results and what could not be measured."""

    def __init__(self, bench, options):
        self.bench, self.options = bench, options
        self.results = Results()
        self.skipped = {}
        self.interrupted = False

    def rounds(self, case):
        if self.options.runs or self.options.quick:
            return self.options.runs or 1
        return ROUNDS_PAIRED if case.paired else ROUNDS

    def skip(self, case, peer, why):
        where = self.skipped.setdefault((peer, str(why)), [])
        if case.name not in where:
            say(f"  {peer} skipped in {case.name}: {why}")
        where.append(case.name)

    def attempt(self, measure):
        """Measure, again when the rest of the machine was busy; is it noisy?"""
        plan = self.bench.plan
        for _ in range(plan.tries):
            with machine.lock():
                samples, other = measure()
            if other is None or other <= plan.quiet:
                return samples, False
        return samples, True

    def measure(self, case, round_, peer, measure):
        try:
            samples, noisy = self.attempt(measure)
        except (cases.Missing, machine.Failed) as e:
            self.skip(case, peer, e)
            return
        for sample in samples:
            self.results.add(case.family, peer, round_, sample, noisy)

    def run(self, case):
        """Rounds in an order each: nobody has a lasting place, nor neighbour."""
        rounds = self.rounds(case)
        for round_ in range(rounds):
            say(f"{case.name}, {case.workers} worker(s), round {round_ + 1} of {rounds}")
            entrants = list(case.entrants(self.bench))
            if round_ > 0:  # the first names the table's columns
                random.Random(round_).shuffle(entrants)
            for peer, measure in entrants:
                self.measure(case, round_, peer, measure)

    def run_all(self, chosen):
        try:
            for case in chosen:
                self.run(case)
        except KeyboardInterrupt:
            self.interrupted = True
            say("interrupted; what was measured until now:")

    def status(self, verdicts):
        missing = {peer for peer, _ in self.skipped} & set(self.options.require)
        for peer in sorted(missing):
            say(f"run.py: {peer} is required and was skipped")
        missed = self.options.strict and not all(v.startswith("met") for v in verdicts)
        return 1 if missing or missed or self.interrupted else 0


def write_lines(results, path):
    lines = [json.dumps(line) for row in results.rows.values() for line in row.json_lines()]
    text = "".join(f"{line}\n" for line in lines)
    if path:
        pathlib.Path(path).write_text(text)
    else:
        print(text, end="")


def measure_all(options, chosen):
    programs = peers.build_all(options.build / "peers", say)
    plan = cases.Plan.QUICK if options.quick else cases.Plan.FULL
    with tempfile.TemporaryDirectory(dir=options.build / "peers") as scratch:
        bench = cases.Bench(options.build, pathlib.Path(scratch), programs, plan)
        session = Session(bench, options)
        session.run_all(chosen)
    return session


def main():
    options = parse_arguments()
    if options.list:
        return list_cases()
    chosen = select(options.names)
    options.build = options.build.resolve()
    bars = list(make_bars(json.loads((HERE / "bars.json").read_text())))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    machine.raise_descriptor_limit()
    session = measure_all(options, chosen)
    write_lines(session.results, options.json)
    verdicts = report.print_tables(chosen, session, bars, options.quick)
    return session.status(verdicts)


if __name__ == "__main__":
    sys.exit(main())
