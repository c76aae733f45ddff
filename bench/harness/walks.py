# SPDX-License-Identifier: MIT
"""examples/find and examples/rm beside the tools for trees of files."""

import dataclasses
import os
import pathlib
import resource
import statistics
import subprocess
import time

from . import machine
from .case import Case, over_epoll
from .machine import Failed
from .results import WEFT, WEFT_EPOLL, Sample

FILES, FILES_QUICK, FILES_A_DIRECTORY = 100_000, 5_000, 100


def make_tree(root, files):
    """Directories below directories, ten in each, with empty files."""
    for first in range(0, files, FILES_A_DIRECTORY):
        directory = root.joinpath(*str(first // FILES_A_DIRECTORY))
        directory.mkdir(parents=True, exist_ok=True)
        for i in range(FILES_A_DIRECTORY):
            (directory / f"file{i}.txt").touch()


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command):
    """Runs a tool; its seconds, and those of the machine that others used."""
    busy, own, start = machine.machine_cpu(), children_cpu(), time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, timeout=300)
    seconds, cpu = time.monotonic() - start, children_cpu() - own
    if done.returncode != 0:
        raise Failed(machine.last_line(done.stderr))
    return seconds, cpu, (machine.machine_cpu() - busy - cpu) / seconds


@dataclasses.dataclass(frozen=True)
class Tree(Case):
    """A tool on a tree of small files, in the kernel's caches; not pinned."""

    def files(self, plan):
        return FILES if plan.tries > 1 else FILES_QUICK

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
        root = bench.scratch / "walk"
        if not root.exists():
            make_tree(root, self.files(bench.plan))
        command = make_command(str(root))
        self.check(command, self.files(bench.plan))
        runs, until = [], time.monotonic() + bench.plan.secs
        while time.monotonic() < until or len(runs) < 3:
            runs.append(timed(command))
        seconds, cpu, other = (statistics.median(of) for of in zip(*runs))
        return self.samples(seconds, cpu), other

    def check(self, command, files):
        """Counts the files that it prints; and warms the caches."""
        out, _ = machine.run(command, 300)
        if out.count(".txt\n") != files:
            raise Failed(f"{out.count('.txt')} of {files} files")


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
        root = pathlib.Path(bench.scratch, "remove")
        make_tree(root, self.files(bench.plan))
        os.sync()
        seconds, cpu, other = timed(make_command(str(root)))
        if root.exists():
            raise Failed("the tree is still there")
        return self.samples(seconds, cpu), other


def walk_cases():
    yield Walk("walk", 2, "trees", default=False)
    yield Remove("remove_tree", 2, "trees", default=False)
