# SPDX-License-Identifier: MIT
"""A tree of small files: examples/cp beside cp, one or under xargs -P."""

import dataclasses
import os

from . import files, machine
from .case import Case, over_epoll
from .machine import Failed
from .results import WEFT, WEFT_EPOLL, Sample

# Parts of the tree that a process of xargs takes at a time: the fastest choice.
XARGS_BATCH = 4


@dataclasses.dataclass(frozen=True)
class CopyTree(Case):
    """100,000 files of 4 KiB on average in 1000 directories, which are in the page
    cache, to the same file system.

    One worker: all on one core.  Two: two threads or processes, not pinned.  A copy
    is removed, and the disk is idle, before the next one begins.  The time that the
    tools take to start counts; xargs starts several, and the time of the disk after
    the copy does not."""

    def benches(self):
        return [self.name, f"{self.name}_cpu"]

    def entrants(self, bench):
        def weft(tree, copy):
            return [*bench.weft("examples/cp"), "-j", str(self.workers), "-r", tree, copy]

        yield WEFT, lambda: self.measure(bench, weft)
        yield WEFT_EPOLL, lambda: self.measure(bench, lambda *where: over_epoll(weft(*where)))
        yield "cp", lambda: self.measure(
            bench, lambda tree, copy: [*bench.peer("cp"), "-r", tree, copy])
        yield "xargs", lambda: self.measure(
            bench, lambda tree, copy: self.xargs(bench, tree, copy))

    def xargs(self, bench, tree, copy):
        xargs, cp = *bench.peer("xargs"), *bench.peer("cp")
        return ["sh", "-c",
                f"mkdir '{copy}' && cd '{tree}' && ls | {xargs} -P {self.workers} "
                f"-n {XARGS_BATCH} {cp} -r -t '{copy}'"]

    def measure(self, bench, make_command):
        tree, copy = files.copied_tree(bench), bench.scratch / "copy"
        files.remove(copy)
        os.sync()
        command = make_command(str(tree), str(copy))
        if self.workers == 1:
            command = machine.pinned(machine.cores()[0], command)
        try:
            took, cpu, other = machine.timed(command)
            count = bench.plan.tree_files
            if files.count(copy) != count:
                raise Failed("not all files were copied")
        finally:
            files.remove(copy)
        return [Sample(self.name, self.workers, took * 1e6 / count, "us/file"),
                Sample(f"{self.name}_cpu", self.workers, cpu * 1e6 / count, "us/file")], other


def copy_cases():
    for workers in 1, 2:
        yield CopyTree("copy_tree", workers, "copy_tree", default=False)
