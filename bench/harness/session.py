# SPDX-License-Identifier: MIT
"""Runs cases in rounds; keeps the results, and what could not be measured."""

import random
import sys

from . import cases, machine
from .results import Results

ROUNDS = 5


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def in_order(entrants, round_):
    """Each round has its own order, so that no entrant always comes first or
    always follows the same neighbour.  The first gives the table's columns."""
    if len(entrants) == 2:
        return entrants[::-1] if round_ % 2 else entrants
    if round_ > 0:
        random.Random(round_).shuffle(entrants)
    return entrants


class Session:
    """entrants(case) gives (name, measure) pairs; rounds(case) their number."""

    def __init__(self, plan, entrants, rounds):
        self.plan, self.entrants, self.rounds = plan, entrants, rounds
        self.results = Results()
        self.skipped = {}
        self.interrupted = False

    def skip(self, case, name, why):
        where = self.skipped.setdefault((name, str(why)), [])
        if case.name not in where:
            say(f"  {name} skipped in {case.name}: {why}")
        where.append(case.name)

    def attempt(self, measure):
        """Measures, and repeats that while other programs use the machine.

        Returns the samples, and whether even the last of them are noisy."""
        for _ in range(self.plan.tries):
            with machine.lock():
                samples, other = measure()
            if other is None or other <= self.plan.quiet:
                return samples, False
        return samples, True

    def measure(self, case, round_, name, measure):
        try:
            samples, noisy = self.attempt(measure)
        except (cases.Missing, machine.Failed) as e:
            self.skip(case, name, e)
            return
        for sample in samples:
            self.results.add(case.family, name, round_, sample, noisy)

    def run(self, case):
        rounds = self.rounds(case)
        for round_ in range(rounds):
            say(f"{case.name}, {case.workers} worker(s), round {round_ + 1} of {rounds}")
            for name, measure in in_order(list(self.entrants(case)), round_):
                self.measure(case, round_, name, measure)

    def run_all(self, chosen):
        try:
            for case in chosen:
                self.run(case)
        except KeyboardInterrupt:
            self.interrupted = True
            say("interrupted; the figures measured until now:")
