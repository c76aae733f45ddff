# SPDX-License-Identifier: MIT
"""Tools over many files: the examples beside the programs that people use.

Each round runs a whole program once, over cached files, with its output in a
file: GNU grep stops at the first match if its output is /dev/null.
"""

import contextlib
import dataclasses
import pathlib
import re
import subprocess
import tempfile
import threading
import time

from . import files, machine
from .case import Case, over_epoll
from .machine import Failed
from .results import WEFT, WEFT_EPOLL, Sample

TIMEOUT = 300


@dataclasses.dataclass(frozen=True)
class Tool(Case):
    """options: of weft's program; rivals: (peer, program, words), where {} stands
    for the paths."""
    program: str = ""
    options: tuple = ()
    rivals: tuple = ()
    large: bool = False

    def benches(self):
        return [self.name, f"{self.name}_peak"]

    def entrants(self, bench):
        def command(paths):
            return [*bench.weft(f"examples/{self.program}"), *self.options, *paths]

        yield WEFT, lambda: self.measure(bench, command)
        yield WEFT_EPOLL, lambda: self.measure(bench, lambda p: over_epoll(command(p)))
        for peer, program, words in self.rivals:
            yield peer, lambda program=program, words=words: self.measure(
                bench, lambda p: [*bench.peer(program), *self.filled(words, p)])

    @staticmethod
    def filled(words, paths):
        """A list of paths for {}; one word for {} within a word."""
        return [part for word in words for part in (
            paths if word == "{}" else [word.replace("{}", " ".join(map(str, paths)))])]

    def measure(self, bench, command):
        paths = files.large_files(bench) if self.large else [files.text_tree(bench)]
        words = list(map(str, [*two_cores(), *command(paths)]))
        for path in set(paths):
            self.cache(path)
        out = bench.scratch / "out"
        with out.open("wb") as stdout, tempfile.TemporaryFile() as stderr:
            began = time.monotonic()
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=stdout,
                                     stderr=stderr, start_new_session=True)
            peak = self.await_end(child, began + TIMEOUT)
            took = time.monotonic() - began
            stderr.seek(0)
            wrong = stderr.read().decode(errors="replace")
        if child.returncode != 0 or out.stat().st_size == 0:
            raise Failed(f"status {child.returncode}: {machine.last_line(wrong)}")
        return [Sample(self.name, self.workers, took * 1e3, "ms"),
                Sample(f"{self.name}_peak", self.workers, peak / 1024, "MiB")], None

    @staticmethod
    def await_end(child, until):
        """Returns its largest resident set in KiB, as of the last look.  (wait4(2)
        tells that of Python, before the exec, if that is larger.)"""
        peak, ended = [0], threading.Event()

        def look():
            while not ended.wait(0.02) and time.monotonic() < until:
                with contextlib.suppress(OSError):
                    text = pathlib.Path(f"/proc/{child.pid}/status").read_text()
                    found = re.search(r"^VmHWM:\s+(\d+)", text, re.M)
                    peak[0] = max(peak[0], int(found[1]) if found else 0)
            if not ended.is_set():
                child.terminate()

        looker = threading.Thread(target=look)
        looker.start()
        child.wait()
        ended.set()
        looker.join()
        return peak[0]

    @staticmethod
    def cache(path):
        """Reads it, so that no entrant waits for the disk."""
        subprocess.run(["grep", "-rc", "no such word", str(path)], check=False,
                       stdout=subprocess.DEVNULL)


def two_cores():
    """The words that keep a command on two cores, as there are two workers."""
    first, last = machine.cores()
    return ["taskset", "-c", f"{first},{last}"]


def tree_cases():
    greps = (("grep", "grep", ["-r", files.WORD, "{}"]),
             ("ripgrep", "rg", ["-uu", "--no-heading", files.WORD, "{}"]))
    for suffix, large in ("_tree", False), ("_large", True):
        xargs = ("xargs", "sh", ["-c", "find {} -type f -print0 | xargs -0 -P2"
                                 f" -n{1 if large else 64} sha256sum"])
        yield Tool(f"checksum{suffix}", 2, "trees", False, program="checksum",
                   options=("-r",), rivals=(xargs,), large=large)
        yield Tool(f"grep{suffix}", 2, "trees", False, program="grep",
                   options=("-r", files.WORD), rivals=greps, large=large)
