#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutants of what the ledger promises: each is noticed by the test that its row
names.  TAP.

The files ledger_mutants*.txt list them.  Each is made in a copy of the tree, the one
program that must notice it is built there, and the one test runs, with a few
seeds.  That test must fail, and must pass without a mutant.  Running out of time
does not count as a failure.  There is a copy for every two processors: a test
that fails because it has none would seem to notice a mutant.

--check only looks whether each mutant can be made: its text occurs once in its
file, and its row names its test.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).parents[1] / "tools"))

import mutate
import tidy

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LISTS = sorted(HERE.glob("ledger_mutants*.txt"))
HEAD = re.compile(r"([A-Z]\d+): (.+)\nfile: (\S+)\ntest: (\w+): (\w+)\n")
OPTIONS = ["-Dinvariants=true", "-Doptimization=1", "-Dman=disabled",
           "-Dexamples=disabled", "-Dbench=disabled", "-Djemalloc=disabled",
           "-Ddefault_library=static"]
SECONDS = 600  # most tests take one


class Wrong(Exception):
    """The sentence that says why a mutant was not noticed."""


@dataclasses.dataclass
class Mutant:
    row: str
    what: str
    path: str
    program: str
    claim: str
    old: str
    new: str

    def __str__(self):
        return f"{self.row}: {self.what}"

    def text(self):
        """The file with the mutant in it."""
        text, count = re.subn("^" + re.escape(self.old), lambda _: self.new,
                              (ROOT / self.path).read_text(), flags=re.M)
        if count != 1:
            raise Wrong(f"its text occurs {count} times in {self.path}, not "
                        "once: write the mutant for the code as it is now")
        return text

    def check(self, rows):
        self.text()
        if (self.program, self.claim) not in rows.get(self.row, ()):
            raise Wrong(f"the row {self.row} of docs/LEDGER.md does not name "
                        f"{self.program}: {self.claim}")


def mutants_read(path):
    """A block of lines each; in its change, lines begin as in a diff."""
    mutants = []
    text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.M)
    for block in filter(None, (b.strip("\n") for b in text.split("\n\n"))):
        head = HEAD.match(block + "\n")
        change = block[head.end():].split("\n") if head else []
        if not head or not all(line[:1] in ("-", "+", " ") for line in change):
            sys.exit(f"{path}: this is no mutant:\n{block}")
        old, new = ("".join(line[1:] + "\n" for line in change
                            if line[0] != skipped) for skipped in "+-")
        mutants.append(Mutant(*head.groups(), old, new))
    return mutants


def rows_read():
    """The tests that each row of the ledger names."""
    rows = {}
    for line in (ROOT / "docs/LEDGER.md").read_text().splitlines():
        head = re.match(r"\| ([A-Z]\d+)\b", line)
        if head:
            rows[head.group(1)] = set(tidy.ledger_claims(line))
    return rows


class Tree(mutate.Tree):
    """A copy of the whole tree with a build of its own.  It may be there from
    an earlier run, which was perhaps ended while a mutant was in it: then only
    files that differ are written, and built again."""

    def __init__(self, directory, args):
        self.directory, self.args = directory, args
        self.build_directory = os.path.join(directory, "build")
        for path in self.files():
            copy = pathlib.Path(directory, path)
            content = (ROOT / path).read_bytes()
            if not copy.exists() or copy.read_bytes() != content:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
        if not os.path.exists(os.path.join(self.build_directory,
                                           "build.ninja")):
            subprocess.run(["meson", "setup", self.build_directory, directory,
                            *OPTIONS], check=True, stdout=sys.stderr)

    @staticmethod
    def files():
        for path in ("meson.build", "meson_options.txt", "weft.map"):
            yield path
        for folder in (*mutate.FOLDERS, "adapters", "bench", "docs",
                       "examples", "packaging", "tls"):
            for path in (ROOT / folder).rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    yield str(path.relative_to(ROOT))

    def build(self, program):
        folder = "tests/model" if program.startswith("model_") else "tests"
        target = os.path.join(folder, program)
        done = subprocess.run(
            ["ninja", "-C", self.build_directory, "-j1", target],
            text=True, capture_output=True)
        if done.returncode:
            raise Wrong("it does not build: " + first_error(done.stdout))
        return os.path.join(self.build_directory, target)

    def run(self, program, claim):
        """Whether the test fails, and how."""
        environment = {"WEFT_TEST_FEW": "4", "CK_DEFAULT_TIMEOUT": "60",
                       "WEFT_TEST_ONLY": claim}
        if program.startswith("model_"):
            environment.update({"CK_FORK": "no", "MODEL_STOP": "yes"})
        return mutate.verdict([self.build(program)], program, SECONDS,
                              environment)


def first_error(output):
    return next((line for line in output.splitlines() if "error:" in line),
                "ninja failed")


def baseline(tree, mutant, known):
    """Its test passes without it."""
    test = mutant.program, mutant.claim
    if test not in known:
        known[test] = tree.run(*test)
    result, how = known[test]
    if result != "ok":
        raise Wrong(f"{test[0]}: {test[1]} fails without a mutant: {how}")


def judge(tree, mutant, rows, known):
    """The claim that notices it."""
    mutant.check(rows)
    baseline(tree, mutant, known)
    tree.put(mutant.path, mutant.text())
    try:
        result, how = tree.run(mutant.program, mutant.claim)
    finally:
        tree.put(mutant.path, (ROOT / mutant.path).read_text())
    test = f"{mutant.program}: {mutant.claim}"
    if result == "ok":
        raise Wrong(f"{test} does not notice it")
    if result != "killed" or "Test timeout expired" in str(how):
        raise Wrong(f"{test} runs out of time")
    return how


def judge_all(mutants, directory, args):
    """One future a mutant; each thread has a tree of its own."""
    rows, own, number = rows_read(), threading.local(), iter(range(args.jobs))

    def begin():
        path = os.path.join(directory, f"tree{next(number)}")
        own.tree, own.known = Tree(path, args), {}

    with concurrent.futures.ThreadPoolExecutor(args.jobs, "judge",
                                               begin) as pool:
        futures = {id(mutant): pool.submit(
                       lambda m: judge(own.tree, m, rows, own.known), mutant)
                   for mutant in mutants}
        return report(mutants, lambda m: futures[id(m)].result())


def report(mutants, judged):
    failed = 0
    print(f"1..{len(mutants)}", flush=True)
    for number, mutant in enumerate(mutants, 1):
        try:
            how = judged(mutant)
            if how:
                print(f"# {how}")
            print(f"ok {number} - {mutant}: noticed by {mutant.program}: "
                  f"{mutant.claim}" if how else f"ok {number} - {mutant}",
                  flush=True)
        except Wrong as wrong:
            failed += 1
            print(f"# {wrong}", file=sys.stderr, flush=True)
            print(f"not ok {number} - {mutant}: {wrong}", flush=True)
    return 1 if failed else 0


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="", help="mutants that match this")
    parser.add_argument("--trees", help="keep the copies and their builds here")
    parser.add_argument("--jobs", type=int,
                        default=max(1, len(os.sched_getaffinity(0)) // 2))
    return parser.parse_args()


def main():
    args = arguments()
    mutants = [mutant for path in LISTS for mutant in mutants_read(path)
               if re.search(args.only, str(mutant))]
    if not mutants:
        sys.exit("no mutants")
    if args.check:
        rows = rows_read()
        return report(mutants, lambda mutant: mutant.check(rows))
    with tempfile.TemporaryDirectory(prefix="weft-mutants-") as directory:
        return judge_all(mutants, args.trees or directory, args)


if __name__ == "__main__":
    sys.exit(main())
