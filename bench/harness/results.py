# SPDX-License-Identifier: MIT
"""Samples, and rows of them: one row holds all values of one figure."""

import dataclasses
import statistics

WEFT = "weft"
WEFT_EPOLL = "weft-epoll"  # weft on its engine over epoll
OWN = (WEFT, WEFT_EPOLL)
MORE_IS_BETTER = {"req/s", "iops", "MB/s", "look-ups/s", "datagrams/cpu-s"}


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

    def runs(self):
        """How many times each was measured: "5", or "3-5" if they differ."""
        counts = [len(rounds) for rounds in self.values.values()] or [0]
        low, high = min(counts), max(counts)
        return str(high) if low == high else f"{low}-{high}"

    def peers(self):
        return [p for p in self.values if p not in OWN]

    def best_peer(self):
        pick = max if self.unit in MORE_IS_BETTER else min
        return pick(self.peers(), key=self.median, default=None)

    def is_ahead(self, entrant=WEFT):
        """Whether weft is better than every peer of this row."""
        ratio = self.ratio(self.best_peer(), entrant)
        if ratio is None:
            return False
        return ratio > 1 if self.unit in MORE_IS_BETTER else ratio < 1

    def ratio(self, peer, entrant=WEFT):
        """entrant / peer, of the medians; None if one of them has no figure."""
        if not all(map(self.values.get, (entrant, peer))) or not self.median(peer):
            return None
        return self.median(entrant) / self.median(peer)

    def paired_ratios(self, peer, entrant=WEFT):
        """entrant / peer in each round that has both: slow phases cancel out."""
        ours, theirs = self.values[entrant], self.values[peer]
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
