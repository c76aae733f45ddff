# SPDX-License-Identifier: MIT
"""The bars of bars.json: reading them, and judging a row of figures by one.

A bar is a limit in the figure's unit, or a ratio to a peer of the same run.
README.md explains the fields.
"""

import dataclasses
import json
import math
import random
import statistics

from .results import OWN, WEFT

BEST = "best"  # as a peer: whichever peer of the row is best
ROUNDS_PAIRED = 15
RESAMPLES = 4000

MET, MISSED, NOT_MEASURED = "met", "missed", "not measured"


class BarError(Exception):
    """A bar that cannot be judged; the message names the bar and the fault."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    state: str
    details: str = ""

    def text(self):
        return f"{self.state}{self.details}"


@dataclasses.dataclass(frozen=True)
class Bar:
    bench: str
    workers: tuple
    direction: str
    why: str
    limit: float = None
    ratio: float = None
    peer: str = None
    of: str = WEFT
    paired: bool = False
    strict: bool = False
    worst: bool = False

    def value(self):
        return self.limit if self.ratio is None else self.ratio

    def text(self):
        sign = {"max": "<", "min": ">"}[self.direction] + ("" if self.strict else "=")
        return ((f"{self.of} " if self.of != WEFT else "") + f"{sign} {self.value():g}"
                + (f" x {self.peer}" if self.peer else ""))

    def holds(self, figure):
        if figure == self.value():
            return not self.strict
        return (figure < self.value()) == (self.direction == "max")

    def verdict(self, figure, details):
        if self.holds(figure):
            return Verdict(MET, details)
        low, high = sorted((figure, self.value()))
        return Verdict(MISSED, (f" by {high / low:.2f}x" if low else "") + details)

    def judge(self, row):
        if not row.values.get(self.of):
            return Verdict(NOT_MEASURED)
        return self.judge_limit(row) if self.ratio is None else self.judge_ratio(row)

    def judge_limit(self, row):
        """By the median, or by the worst round if one is too many."""
        if not self.worst:
            return self.verdict(row.median(self.of), f": {row.median(self.of):g}")
        pick = max if self.direction == "max" else min
        figure = pick(row.values[self.of].values())
        return self.verdict(figure, f": {figure:g} in the worst run")

    def judge_ratio(self, row):
        peer = row.best_peer() if self.peer == BEST else self.peer
        ratio = row.ratio(peer, self.of)
        if ratio is None:
            missing = "any peer" if self.peer == BEST else self.peer
            return Verdict(MISSED, f": no figure of {missing}")
        if self.paired:
            verdict = self.judge_paired(row, peer)
        else:
            verdict = self.verdict(ratio, f": {ratio:.3f} x {peer}")
        if verdict.state == MISSED and row.is_ahead(self.of):
            return Verdict(MISSED, f"{verdict.details}, ahead of every peer")
        return verdict

    def judge_paired(self, row, peer):
        ratios = row.paired_ratios(peer, self.of)
        if not ratios:
            return Verdict(MISSED, f": no round with {peer}")
        bound = bootstrap_bound(ratios, self.direction)
        few = f", rounds: only {len(ratios)}" if len(ratios) < ROUNDS_PAIRED else ""
        return self.verdict(bound, f": bound {bound:.3f} x {peer}{few}")


def bootstrap_bound(ratios, direction):
    """The 95% bound of the median, on the side where the bar is missed."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios)))
                     for _ in range(RESAMPLES))
    share = 0.95 if direction == "max" else 0.05
    return medians[int(share * (RESAMPLES - 1))]


# --- Reading ----------------------------------------------------------------

FIELDS = {field.name for field in dataclasses.fields(Bar)}
FLAGS = ("paired", "strict", "worst")


def is_number(value):
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and math.isfinite(value))


def is_text(value):
    return isinstance(value, str) and value.strip() != ""


def is_worker_list(value):
    return isinstance(value, list) and value != [] and all(
        isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in value)


def faults_of_fields(entry):
    for name in sorted(set(entry) - FIELDS):
        yield f"unknown field {name!r}"
    if not is_worker_list(entry.get("workers")):
        yield "'workers' must be a list of numbers of workers"
    if entry.get("direction") not in ("max", "min"):
        yield "'direction' must be \"max\" or \"min\""
    for name in FLAGS:
        if not isinstance(entry.get(name, False), bool):
            yield f"{name!r} must be true or false"
    if not is_text(entry.get("why")):
        yield "no reason: 'why' must say why the bar is where it is"


def faults_of_of(entry):
    if entry.get("of", WEFT) not in OWN:
        yield f"'of' must be one of {', '.join(OWN)}"


def faults_of_kind(entry):
    kinds = [kind for kind in ("limit", "ratio") if kind in entry]
    if len(kinds) != 1:
        yield ("both a 'limit' and a 'ratio'" if kinds else
               "neither a 'limit' nor a 'ratio'") + "; a bar has exactly one"
        return
    if not is_number(entry[kinds[0]]):
        yield f"{kinds[0]!r} must be a number"
    if kinds == ["ratio"]:
        if not is_text(entry.get("peer")):
            yield "a 'ratio' needs a 'peer'"
        if "worst" in entry:
            yield "'worst' goes with a 'limit' only"
    else:
        for name in ("peer", "paired"):
            if name in entry:
                yield f"{name!r} goes with a 'ratio' only"


def make_bar(number, entry):
    if not isinstance(entry, dict) or not is_text(entry.get("bench")):
        raise BarError(f"bar {number}: must be an object with the name of a 'bench'")
    faults = [*faults_of_fields(entry), *faults_of_of(entry), *faults_of_kind(entry)]
    if faults:
        raise BarError(f"bar {number} ({entry['bench']}): {'; '.join(faults)}")
    return Bar(**dict(entry, workers=tuple(entry["workers"])))


def make_bars(entries):
    if not isinstance(entries, list):
        raise BarError("the bars must be a list")
    return [make_bar(number, entry) for number, entry in enumerate(entries, 1)]


def read_bars(path):
    try:
        return make_bars(json.loads(path.read_text()))
    except (BarError, ValueError) as e:
        raise BarError(f"{path.name}: {e}") from e
