#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutation test of the models: do they notice when the sources are wrong?

models.txt lists the sources that each program models.  mutants.py makes mutants
of each of these sources, each wrong in one place.  A mutant is killed when a
program that models its source exits nonzero; running out of time does not count.
equivalent.txt lists mutants that change nothing, one per line: the id, " :: ",
and the reason.

With --memory each verdict is kept as soon as it is found: a run that was ended
early continues there.  A mutant that depends on a changed file is judged again,
beginning with the test case that killed it last time.

Exit status 1: fewer than 95 % of the mutants that are not equivalent were
killed, a survivor is not listed, or a listed mutant was killed or is not there.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from mutants import BadTag, mutants_of

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ENGINE = ["engine", "schedule", "memory", "order", "operation", "data",
          "kernel", "trace", "fiber", "fail"]
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-DWEFT__MODEL", "-O1", "-w"]
FOLDERS = ("include", "runtime", "timer", "io", "net", "fs", "process",
           "tests")


class Death(collections.namedtuple("Death", "program case what",
                                   defaults=("", "", ""))):
    """The program, its test case, and the claim that failed."""

    def __str__(self):
        return ": ".join(part for part in self if part)


class Model:
    """A line of models.txt: program | sources it models | sources to link."""

    def __init__(self, line):
        fields = [field.split() for field in line.split("|")]
        (self.program,), self.covers = fields[0], fields[1]
        self.links = fields[2] if len(fields) > 2 else []
        self.name = os.path.splitext(os.path.basename(self.program))[0]
        self.seconds = 0.0
        self.files = {}

    def files_read(self, args):
        """All files that it is compiled from, by name."""
        rule = subprocess.run(
            [args.cc, *FLAGS, *args.cflags, "-I.", "-Iinclude", "-MM",
             self.program, *self.links], cwd=ROOT, check=True, text=True,
            capture_output=True).stdout
        for name in re.findall(r"[^\s\\]+(?=\s)", rule):
            if not name.endswith(":"):
                with open(os.path.join(ROOT, name)) as f:
                    self.files[os.path.normpath(name)] = f.read()


def models_read(path):
    with open(path) as f:
        lines = [line.split("#")[0].strip() for line in f]
    return [Model(line) for line in lines if line]


def equivalents_read(path):
    equivalents = {}
    if not os.path.exists(path):
        return equivalents
    with open(path) as f:
        for line in f:
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            mutant, separator, reason = line.partition(" :: ")
            if not separator or not reason.strip():
                sys.exit("%s: no reason: %s" % (path, line))
            equivalents[mutant.strip()] = reason.strip()
    return equivalents


class Memory:
    """The verdicts of earlier runs: a line of JSON each, the last one counts."""

    def __init__(self, path, args):
        self.path = path
        self.found = {}
        self.killers = {}
        self.lock = threading.Lock()
        self.common = repr((args.cc, FLAGS, args.cflags,
                            os.environ.get("MODEL_BOUND")))
        for name in sorted(os.listdir(HERE)):
            if os.path.splitext(name)[0] in ENGINE:
                with open(os.path.join(HERE, name)) as f:
                    self.common += name + "\0" + f.read() + "\0"
        if path and os.path.exists(path):
            with open(path) as f:
                for line in f:
                    self.learn(line)

    def learn(self, line):
        try:
            subject, digest, verdict, how = json.loads(line)
        except ValueError:
            return  # the run was ended while it wrote this
        self.found[subject, digest] = verdict, how
        if verdict == "killed":
            self.killers[subject] = Death(*how)

    def digest(self, models, path="", text=""):
        """Of everything that the verdicts of these models depend on."""
        digest = hashlib.sha256(self.common.encode())
        for model in models:
            for name, content in sorted(model.files.items()):
                content = text if name == path else content
                digest.update(("%s\0%s\0" % (name, content)).encode())
        return digest.hexdigest()

    def put(self, subject, digest, verdict, how):
        if not self.path:
            return
        with self.lock, open(self.path, "a") as f:
            f.write(json.dumps([subject, digest, verdict, how]) + "\n")


class Tree:
    """A copy of the sources, of which one file at a time is a mutant."""

    def __init__(self, directory, args):
        self.directory = directory
        self.args = args
        os.makedirs(directory)
        for folder in FOLDERS:
            if os.path.isdir(os.path.join(ROOT, folder)):
                shutil.copytree(os.path.join(ROOT, folder),
                                os.path.join(directory, folder))

    def put(self, path, text):
        with open(os.path.join(self.directory, path), "w") as f:
            f.write(text)

    def build(self, model, library):
        # Linked without the flags: -fsanitize=thread only announces accesses.
        sources = [model.program] + model.links
        objects = ["%s.%d.o" % (model.name, i) for i in range(len(sources))]
        commands = [[self.args.cc, *FLAGS, *self.args.cflags, "-I.",
                     "-Iinclude", "-c", source, "-o", target]
                    for source, target in zip(sources, objects)]
        commands.append([self.args.cc, *objects, library, "-o", model.name,
                         *self.args.libs])
        for command in commands:
            done = subprocess.run(command, cwd=self.directory, text=True,
                                  capture_output=True)
            if done.returncode:
                return done.stderr
        return None

    def run(self, model, seconds, only=""):
        return verdict([os.path.join(self.directory, model.name)], model.name,
                       seconds, {"CK_FORK": "no", "MODEL_STOP": "yes",
                                 "MODEL_ONLY": only})


def verdict(command, program, seconds, environment):
    """The result of a program of tests, and how it killed the mutant."""
    environment = {**os.environ, **environment}
    environment.pop("MODEL_REPLAY", None)
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds,
                              env=environment, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        return "time", None
    if done.returncode == 0:
        return "ok", None
    for line in done.stdout.splitlines():
        if line.startswith("violation: "):
            _, case, what = line.split(": ", 2)
            return "killed", Death(program, case, what)
    for line in done.stdout.splitlines():
        if re.search(r":[FE]:", line):
            return "killed", Death(program, "", line)
    return "killed", Death(program, "", "exit status %d" % done.returncode)


def library_build(directory, args):
    objects = []
    for name in ENGINE:
        target = os.path.join(directory, name + ".o")
        subprocess.run([args.cc, "-std=c11", "-D_GNU_SOURCE", "-O2",
                        "-DWEFT__MODEL", "-I" + ROOT, "-c",
                        os.path.join(HERE, name + ".c"), "-o", target],
                       check=True)
        objects.append(target)
    library = os.path.join(directory, "libmodel.a")
    subprocess.run(["ar", "rc", library, *objects], check=True)
    return library


def baseline(models, directory, library, memory, args):
    """Runs each model without a mutant: it must pass; keeps its time."""
    tree = Tree(directory, args)
    for model in models:
        subject, digest = "baseline " + model.name, memory.digest([model])
        if (subject, digest) in memory.found:
            model.seconds = memory.found[subject, digest][1]
            continue
        message = tree.build(model, library)
        if message:
            sys.exit("%s does not build:\n%s" % (model.name, message))
        start = time.monotonic()
        result, death = tree.run(model, 3600)
        model.seconds = time.monotonic() - start
        if result != "ok":
            sys.exit("fails without a mutant: %s" % (death or model.name))
        print("%s: %.2f s" % (subject, model.seconds), flush=True)
        memory.put(subject, digest, "ok", model.seconds)


def judge(mutant, models, tree, library, killer, args):
    """Tries all models, the fastest first; but first the last killer."""
    verdict, how = "SURVIVED", Death()
    tries = [(model, "") for model in models]
    tries[:0] = [(model, killer.case) for model in models
                 if model.name == killer.program and killer.case]
    tree.put(mutant.source.path, mutant.text())
    built = set()
    try:
        for model, only in tries:
            message = model not in built and tree.build(model, library)
            if message:
                return "INVALID", Death(model.name, "",
                                        message.strip().splitlines()[0])
            built.add(model)
            result, death = tree.run(
                model, max(args.time, 4 * model.seconds), only)
            if result == "killed":
                return "killed", death
            if result == "time":
                verdict, how = "TIMED OUT", Death(model.name)
    finally:
        tree.put(mutant.source.path, mutant.source.text)
    return verdict, how


def covering(mutant, models):
    return sorted((model for model in models
                   if mutant.source.path in model.covers),
                  key=lambda model: model.seconds)


def judge_all(mutants, models, directory, library, memory, args):
    trees = threading.local()
    number = iter(range(args.jobs))
    lock = threading.Lock()

    def work(mutant):
        if not hasattr(trees, "tree"):
            with lock:
                path = os.path.join(directory, "tree%d" % next(number))
            trees.tree = Tree(path, args)
        mutant.verdict, mutant.how = judge(
            mutant, covering(mutant, models), trees.tree, library,
            memory.killers.get(mutant.id, Death()), args)
        memory.put(mutant.id, mutant.digest, mutant.verdict, mutant.how)
        with lock:
            print("%-9s %s:%d: %s%s" % (
                mutant.verdict, mutant.source.path, mutant.line, mutant.id,
                "\n          by %s" % (mutant.how,) if any(mutant.how) else ""),
                flush=True)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(work, mutants))


def remember(mutants, models, memory):
    """The mutants that are not judged yet."""
    for mutant in mutants:
        # In the order of models.txt, not of their times.
        mutant.digest = memory.digest(
            [model for model in models if mutant.source.path in model.covers],
            mutant.source.path, mutant.text())
        verdict, how = memory.found.get((mutant.id, mutant.digest), ("", ()))
        if verdict in ("killed", "SURVIVED"):
            mutant.verdict, mutant.how = verdict, Death(*how)
    return [mutant for mutant in mutants if not mutant.verdict]


def table(mutants, equivalents):
    """One line per source: mutants, killed, equivalent, left."""
    rows = collections.defaultdict(list)
    for mutant in mutants:
        rows[mutant.source.path].append(mutant)
    if len(rows) > 1:
        rows["all"] = mutants
    print("\n%-24s mutants  killed  equivalent  left  killed of the rest" % "")
    for path, row in rows.items():
        killed = sum(m.verdict == "killed" for m in row)
        equal = sum(m.verdict != "killed" and m.id in equivalents for m in row)
        counted = len(row) - equal
        print("%-24s %7d %7d %11d %5d %17.1f %%" % (
            path, len(row), killed, equal, counted - killed,
            100.0 * killed / counted if counted else 100.0))


def report(mutants, equivalents, partial):
    killed = [m for m in mutants if m.verdict == "killed"]
    listed = [m for m in mutants
              if m.id in equivalents and m.verdict != "killed"]
    others = [m for m in mutants
              if m.id not in equivalents and m.verdict != "killed"]
    wrong = ["listed as equivalent, but killed: " + m.id
             for m in killed if m.id in equivalents]
    if not partial:
        known = {m.id for m in mutants}
        wrong += ["listed as equivalent, but not there: " + mutant
                  for mutant in equivalents if mutant not in known]
    table(mutants, equivalents)
    counted = len(mutants) - len(listed)
    percent = 100.0 * len(killed) / counted if counted else 100.0
    print("\n%d mutants, %d killed (%.1f %% of those not equivalent), "
          "%d equivalent, survivors: %s" % (
              len(mutants), len(killed), percent, len(listed),
              len(others) or "none"))
    for mutant in others:
        print("  %s %s:%d\n    %s" % (mutant.verdict, mutant.source.path,
                                      mutant.line, mutant.id))
    for line in wrong:
        print("  " + line)
    return 1 if percent < 95 or others or wrong else 0


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", default=os.path.join(HERE, "models.txt"))
    parser.add_argument("--equivalent",
                        default=os.path.join(HERE, "equivalent.txt"))
    parser.add_argument("--memory", help="file of what was found out")
    parser.add_argument("--root", default=ROOT, help="of the sources")
    parser.add_argument("--only", default="", help="mutants that match this")
    parser.add_argument("--list", action="store_true", help="do not run them")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--time", type=float, default=60.0,
                        help="seconds for a program that takes longer than "
                        "without a mutant (at least four times as long)")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--cflags", type=str.split,
                        default=["-fsanitize=thread"])
    args = parser.parse_args()
    args.libs = subprocess.check_output(["pkg-config", "--libs", "check"],
                                        text=True).split()
    return args


def main():
    global ROOT
    args = arguments()
    ROOT = os.path.abspath(args.root)
    models = models_read(args.models)
    equivalents = equivalents_read(args.equivalent)
    sources = sorted({path for model in models for path in model.covers})
    try:
        mutants = [m for path in sources for m in mutants_of(ROOT, path)]
    except BadTag as error:
        sys.exit(str(error))
    mutants = [m for m in mutants if re.search(args.only, m.id)]
    if not mutants:
        sys.exit("no mutants")
    if args.list:
        for mutant in mutants:
            print("%s:%d: %s" % (mutant.source.path, mutant.line, mutant.id))
        return 0
    used = [model for model in models
            if any(m.source.path in model.covers for m in mutants)]
    for model in used:
        model.files_read(args)
    memory = Memory(args.memory, args)
    new = remember(mutants, used, memory)
    print("%d mutants, %d of them known" % (len(mutants),
                                            len(mutants) - len(new)))
    if new:
        with tempfile.TemporaryDirectory(prefix="weft-mutate-") as directory:
            library = library_build(directory, args)
            baseline([model for model in used
                      if any(m.source.path in model.covers for m in new)],
                     os.path.join(directory, "baseline"), library, memory, args)
            judge_all(new, used, directory, library, memory, args)
    return report(mutants, equivalents, bool(args.only))


if __name__ == "__main__":
    sys.exit(main())
