# SPDX-License-Identifier: MIT
"""The base of all cases, with the plan, the programs and the directories."""

import dataclasses
import os
import pathlib


class Missing(Exception):
    """A program that this case needs is not there."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long and how often to measure, and the noise to accept."""
    secs: float
    warmup: float
    tries: int
    quiet: float
    file_mib: int
    tree_files: int
    large_mib: int

    FULL = None
    QUICK = None


Plan.FULL = Plan(secs=2, warmup=0.4, tries=3, quiet=0.06, file_mib=1024,
                 tree_files=100_000, large_mib=20 << 10)
Plan.QUICK = Plan(secs=0.3, warmup=0.1, tries=1, quiet=99, file_mib=64,
                  tree_files=2000, large_mib=128)


@dataclasses.dataclass
class Bench:
    """Everything that the cases need: programs, directories, and the plan."""
    build: pathlib.Path
    scratch: pathlib.Path
    programs: dict
    plan: Plan

    def weft(self, program):
        path = self.build / program
        if not os.access(path, os.X_OK):
            raise Missing(f"{program} is not built")
        return [str(path)]

    def peer(self, program):
        if program not in self.programs:
            raise Missing(f"{program} is not installed or not built")
        return self.programs[program]

    def data_file(self, mib_max=1 << 20):
        """A file of random bytes, on the disk and in the page cache."""
        mib = min(self.plan.file_mib, mib_max)
        path, size = self.scratch / f"src-{mib}.bin", mib << 20
        if not path.exists() or path.stat().st_size != size:
            with path.open("wb") as f:
                for _ in range(mib):
                    f.write(os.urandom(1 << 20))
                os.fsync(f.fileno())
        with path.open("rb", buffering=0) as f:
            while f.read(1 << 20):
                pass
        return path


def over_epoll(command):
    """The same command of weft's, on its engine over epoll."""
    return ["env", "WEFT_ENGINE=epoll", *command]


@dataclasses.dataclass(frozen=True)
class Case:
    """default: part of a run that names no bench; paired: needs more rounds."""
    name: str
    workers: int
    family: str = ""
    default: bool = True
    paired: bool = False

    def benches(self):
        """The names of the figures it gives."""
        return [self.name]

    def selected_by(self, name):
        return name in (self.name, self.family) or name in self.benches()
