# SPDX-License-Identifier: MIT
"""The results: read from TAP, counted, and printed as they arrive."""

import collections
import re
import threading

from process import ROOT, ending

CHECK_LINE = re.compile(r"(not )?ok \d+ - [^:]*:([^:]*:[^:]*): (.*)")
TAP_LINE = re.compile(r"(not )?ok \d+ - (.*)")
SKIP = re.compile(r" # SKIP *(.*)")
WHOLE = "the program itself"

# nth: the turn of a test that runs in a loop, from 0.  lack: why it was skipped.
Case = collections.namedtuple("Case", "name wrong nth lack",
                              defaults=(0, None))


class Tally:
    """Counts the cases that passed, failed and were skipped."""

    def __init__(self):
        self.passed = 0
        self.failed = []   # (name, what was wrong, the command that repeats it)
        self.skipped = []
        self.lock = threading.Lock()

    def add(self, name, cases, seconds=None, log=None, repeat=None):
        """repeat: from a case to the command that runs it again."""
        bad = [(f"{name}: {case.name}", case.wrong,
                repeat(case) if repeat else "")
               for case in cases if case.wrong]
        lacking = [(f"{name}: {case.name}", case.lack, "")
                   for case in cases if case.lack and not case.wrong]
        passed = len(cases) - len(bad) - len(lacking)
        with self.lock:
            self.passed += passed
            self.failed += bad
            self.skipped += lacking
            took = "" if seconds is None else f" ({seconds:.1f} s)"
            counts = f"{passed} passed"
            counts += f", {len(bad)} FAILED" if bad else ""
            counts += f", {len(lacking)} skipped" if lacking else ""
            print(f"{name}: {counts}{took}", flush=True)
            show_grouped("  FAILED ", bad)
            if bad and log:
                show_end(log, any(case.name == WHOLE for case in cases))

    def fail(self, name, why):
        self.add(name, [Case("it goes on", why)])

    def skip(self, name, why):
        with self.lock:
            self.skipped.append((name, why, ""))
            print(f"{name}: skipped: {why}", flush=True)

    def say(self, text):
        with self.lock:
            print(text, flush=True)

    def report(self):
        """Prints all cases that did not pass; the last line has the numbers."""
        for title, entries in (("failed", self.failed),
                               ("skipped", self.skipped)):
            if entries:
                print(f"\n{title}:")
            show_grouped("  ", entries)
        print(f"\n{self.passed} passed, {len(self.failed)} failed, "
              f"{len(self.skipped)} skipped", flush=True)
        return 1 if self.failed or not self.passed else 0


def show_grouped(prefix, entries):
    """A line for each name, and the command that repeats it; for a test that
    runs in a loop, only the first turn that failed."""
    first = {}
    for name, why, repeat in entries:
        first.setdefault(name, (why, repeat))
    counts = collections.Counter(name for name, *_ in entries)
    for name, (why, repeat) in first.items():
        times = f" ({counts[name]} times)" if counts[name] > 1 else ""
        print(f"{prefix}{name}: {why}{times}")
        if repeat:
            print(f"    repeat: {repeat}")


def show_end(log, broke_off, most=40):
    """The words of a script before each case that failed, and its last words
    if it broke off; or else the end."""
    lines = log.read_text(errors="replace").splitlines()
    lines = [line for line in lines if not re.match(r"\[\d+/\d+\] ", line)]
    shown, said = [], []
    for line in lines:
        said.append(line)
        if TAP_LINE.match(line):
            shown += said[-most:] if line.startswith("not") else []
            said = []
    if shown and broke_off:
        shown += said[-most:]
    for line in (shown or lines)[-most:]:
        print(f"  | {line}")
    if len(lines) > most:
        print(f"  | all of it: {log.relative_to(ROOT)}")


def last_line(log):
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no reason given"


def cases_of(text, status, pattern):
    """The cases of a TAP report, and one more if the whole went wrong."""
    cases, planned = [], None
    turns = collections.Counter()
    for line in text.splitlines():
        match = pattern.match(line)
        planned = line if line.startswith("1..") else planned
        if match:
            name, *message = match.groups()[1:]
            lack = SKIP.search(name) if pattern is TAP_LINE else None
            name = name[:lack.start()] if lack else name
            name = re.sub(r" \(\d+\.\d+ s\)$", "", name)
            wrong = (message or ["see its log"])[0] if match.group(1) else None
            cases.append(Case(name, wrong, turns[name],
                              lack and (lack[1] or "no reason given")))
            turns[name] += 1
    told = any(case.wrong for case in cases)
    if not planned or status is None or (status != 0 and not told):
        last = f" after {cases[-1].name}" if cases and not planned else ""
        cases.append(Case(WHOLE, ending(status) + last))
    elif not cases and SKIP.search(planned):
        cases.append(Case(WHOLE, None, lack=SKIP.search(planned)[1]))
    return cases
