# SPDX-License-Identifier: MIT
"""A tree of small files: examples/cp beside cp, one or under xargs -P."""

import dataclasses
import os
import pathlib
import random
import shutil
import subprocess
import time

from . import machine
from .case import Case, Missing, over_epoll
from .machine import Failed
from .results import WEFT, WEFT_EPOLL, Sample

FILES_IN_A_DIRECTORY, BYTES_MAX = 100, 8192
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
            bench, lambda tree, copy: [tool("cp"), "-r", tree, copy])
        yield "xargs", lambda: self.measure(bench, self.xargs)

    def xargs(self, tree, copy):
        return ["sh", "-c",
                f"mkdir '{copy}' && cd '{tree}' && ls | {tool('xargs')} -P {self.workers} "
                f"-n {XARGS_BATCH} {tool('cp')} -r -t '{copy}'"]

    def measure(self, bench, make_command):
        tree, copy = self.make_tree(bench), bench.scratch / "copy"
        remove(copy)
        os.sync()
        command = make_command(str(tree), str(copy))
        if self.workers == 1:
            command = machine.pinned(machine.cores()[0], command)
        try:
            began, busy = time.monotonic(), machine.machine_cpu()
            cpu = run(command)
            took = time.monotonic() - began
            other = (machine.machine_cpu() - busy - cpu) / took
            files = self.files(bench)
            if count(copy) != files:
                raise Failed("not all files were copied")
        finally:
            remove(copy)
        return [Sample(self.name, self.workers, took * 1e6 / files, "us/file"),
                Sample(f"{self.name}_cpu", self.workers, cpu * 1e6 / files, "us/file")], other

    def files(self, bench):
        return 100_000 if bench.plan.secs >= 1 else 2_000

    def make_tree(self, bench):
        """The tree stays for the next round."""
        top, directories = bench.scratch / "tree", self.files(bench) // FILES_IN_A_DIRECTORY
        if not top.exists():
            rng = random.Random(1)
            for d in range(directories):
                folder = top / f"part-{d % 50}" / f"directory-{d}"
                folder.mkdir(parents=True)
                for i in range(FILES_IN_A_DIRECTORY):
                    (folder / f"file-{i}").write_bytes(rng.randbytes(rng.randrange(BYTES_MAX)))
        return top


def tool(name):
    path = shutil.which(name)
    if not path:
        raise Missing(f"{name} is not installed")
    return path


def run(command):
    """User and system seconds of the command and all that it waits for."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise Failed(f"status {child.returncode}: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime


def count(top):
    return sum(len(names) for _, _, names in os.walk(top))


def remove(path: pathlib.Path):
    if path.exists():
        shutil.rmtree(path)
