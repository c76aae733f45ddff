# SPDX-License-Identifier: MIT
"""examples/find and examples/rm beside the tools for trees of files."""

import dataclasses
import os
import statistics
import time

from . import files, machine
from .case import Case, over_epoll
from .machine import Failed
from .results import WEFT, WEFT_EPOLL, Sample


@dataclasses.dataclass(frozen=True)
class Tree(Case):
    """A tool on a tree of small files, in the kernel's caches; not pinned."""

    def benches(self):
        return [self.name, f"{self.name}_cpu"]

    def samples(self, seconds, cpu):
        return [Sample(self.name, self.workers, seconds * 1e3, "ms"),
                Sample(f"{self.name}_cpu", self.workers, cpu * 1e3, "ms")]


@dataclasses.dataclass(frozen=True)
class Walk(Tree):
    """Prints the names of all files, into /dev/null."""

    def entrants(self, bench):
        def weft(root):
            return [*bench.weft("examples/find"), root]

        yield WEFT, lambda: self.measure(bench, weft)
        yield WEFT_EPOLL, lambda: self.measure(bench, lambda root: over_epoll(weft(root)))
        for peer in "bfs", "find":
            yield peer, lambda peer=peer: self.measure(
                bench, lambda root: [*bench.peer(peer), root])

    def measure(self, bench, make_command):
        command = make_command(str(files.walked_tree(bench)))
        self.check(command, bench.plan.tree_files)
        runs, until = [], time.monotonic() + bench.plan.secs
        while time.monotonic() < until or len(runs) < 3:
            runs.append(machine.timed(command))
        seconds, cpu, other = (statistics.median(of) for of in zip(*runs))
        return self.samples(seconds, cpu), other

    def check(self, command, count):
        """Counts the files that it prints; and warms the caches."""
        out, _ = machine.run(command, 300)
        if out.count(".txt\n") != count:
            raise Failed(f"{out.count('.txt')} of {count} files")


@dataclasses.dataclass(frozen=True)
class Remove(Tree):
    """Removes a tree that was just made, and written back."""

    def entrants(self, bench):
        def weft(root):
            return [*bench.weft("examples/rm"), "-r", root]

        yield WEFT, lambda: self.measure(bench, weft)
        yield WEFT_EPOLL, lambda: self.measure(bench, lambda root: over_epoll(weft(root)))
        yield "rm", lambda: self.measure(bench, lambda root: [*bench.peer("rm"), "-r", root])

    def measure(self, bench, make_command):
        root = files.removed_tree(bench)
        os.sync()
        seconds, cpu, other = machine.timed(make_command(str(root)))
        if root.exists():
            raise Failed("the tree is still there")
        return self.samples(seconds, cpu), other


def walk_cases():
    yield Walk("walk", 2, "trees", default=False)
    yield Remove("remove_tree", 2, "trees", default=False)
