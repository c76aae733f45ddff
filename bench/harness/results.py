# SPDX-License-Identifier: MIT
"""Samples, rows of them, and the statistics that judge a row by its bar."""

import dataclasses
import random
import statistics

WEFT = "weft"
MORE_IS_BETTER = {"req/s", "iops", "MB/s"}
ROUNDS_PAIRED = 15
RESAMPLES = 4000


@dataclasses.dataclass(frozen=True)
class Sample:
    bench: str
    workers: int
    value: float
    unit: str


@dataclasses.dataclass
class Row:
    """All values of one figure: peer -> round -> value."""
    bench: str
    workers: int
    unit: str
    family: str
    values: dict = dataclasses.field(default_factory=dict)
    noisy: dict = dataclasses.field(default_factory=dict)

    def add(self, peer, round_, value, noisy):
        self.values.setdefault(peer, {})[round_] = value
        self.noisy[peer] = self.noisy.get(peer, 0) + noisy

    def median(self, peer):
        return statistics.median(self.values[peer].values())

    def peers(self):
        return [p for p in self.values if p != WEFT]

    def best_peer(self):
        pick = max if self.unit in MORE_IS_BETTER else min
        return pick(self.peers(), key=self.median, default=None)

    def ratio(self, peer):
        """weft / peer, of the medians; None if there is none."""
        if WEFT not in self.values or peer not in self.values or not self.median(peer):
            return None
        return self.median(WEFT) / self.median(peer)

    def paired_ratios(self, peer):
        """weft / peer of every round that has both: slow phases cancel out."""
        ours, theirs = self.values[WEFT], self.values[peer]
        return [ours[r] / theirs[r] for r in ours if theirs.get(r)]

    def json_lines(self):
        for peer, rounds in self.values.items():
            yield {"bench": self.bench, "peer": peer, "workers": self.workers,
                   "value": round(self.median(peer), 3), "unit": self.unit,
                   "runs": [round(v, 3) for v in rounds.values()], "noisy": self.noisy[peer]}


class Results:
    def __init__(self):
        self.rows = {}

    def add(self, family, peer, round_, sample, noisy):
        key = sample.bench, sample.workers
        row = self.rows.setdefault(key, Row(*key, sample.unit, family))
        row.add(peer, round_, sample.value, noisy)


def bootstrap_bound(ratios, direction):
    """The 95% bound of the median, on the side where the bar is missed."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios)))
                     for _ in range(RESAMPLES))
    share = 0.95 if direction == "max" else 0.05
    return medians[int(share * (RESAMPLES - 1))]


@dataclasses.dataclass(frozen=True)
class Bar:
    """A line of bars.json; README.md says what its fields mean."""
    bench: str
    workers: tuple
    kind: str
    direction: str
    value: float
    peer: str = None
    then: float = None
    paired: bool = False
    strict: bool = False
    worst: bool = False

    def text(self):
        sign = {"max": "<", "min": ">"}[self.direction] + ("" if self.strict else "=")
        if self.kind == "ratio":
            return f"{sign} {self.value:g} x {self.peer}"
        if self.then is None:
            return f"{sign} {self.value:g}"
        return f"{sign} {self.value / self.then:.3f} x {self.peer} ({self.value:g})"

    def holds(self, figure, value):
        if self.strict:
            return figure < value if self.direction == "max" else figure > value
        return figure <= value if self.direction == "max" else figure >= value

    def verdict(self, figure, value, note=""):
        if self.holds(figure, value):
            return f"met{note}"
        low, high = sorted((figure, value))
        return (f"MISSED by {high / low:.2f}x" if low else f"MISSED with {figure:g}") + note

    def figure(self, row):
        """The median; the worst round where once is too often."""
        if not self.worst:
            return row.median(WEFT)
        pick = max if self.direction == "max" else min
        return pick(row.values[WEFT].values())

    def judge(self, row):
        if WEFT not in row.values:
            return "not measured"
        if self.peer is None:
            return self.verdict(self.figure(row), self.value)
        peer = row.best_peer() if self.peer == "best" else self.peer
        if not row.values.get(peer) or not row.median(peer):
            return f"MISSED, no {self.peer} beside it"
        limit = self.value if self.kind == "ratio" else self.value / self.then
        verdict = self.judge_ratio(row, peer, limit)
        return verdict + self.figure_note(row) if self.kind == "limit" else verdict

    def judge_ratio(self, row, peer, limit):
        if not self.paired:
            return self.verdict(row.ratio(peer), limit, f", {row.ratio(peer):.3f} of {limit:.3f}")
        ratios = row.paired_ratios(peer)
        if not ratios:
            return f"MISSED, no round with {peer}"
        bound = bootstrap_bound(ratios, self.direction)
        few = f", only {len(ratios)} rounds" if len(ratios) < ROUNDS_PAIRED else ""
        return self.verdict(bound, limit, f", bound {bound:.3f} of {limit:.3f}{few}")

    def figure_note(self, row):
        return f" (the figure: {self.verdict(row.median(WEFT), self.value)})"


def make_bars(entries):
    for entry in entries:
        yield Bar(**dict(entry, workers=tuple(entry["workers"])))
