#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutation test of the models: do they notice when the sources are wrong?

models.txt says which program models which sources.  From every source that is
modelled, mutants are generated, one change each:

  order    every memory order at a weft__ atomic operation, one step weaker
  failure  a weft__cas_acquire() that does not acquire on failure
  barrier  a weft__heavy_barrier() removed
  recheck  the condition at a comment "mutate: recheck", "recheck=false" or
           "recheck=true", replaced by that value (false); it is not evaluated
  wake     the statement at a comment "mutate: wake" removed
  retry    the loop at a comment "mutate: retry" tries once

A tag stands before its statement, or after it on the line where it ends; a
retry tag may also be the last thing in the body of its loop, where giving up is
the first return statement of that loop, or else a break.

A mutant is killed when a program that models its source exits nonzero.  Running
out of time does not count as that.  equivalent.txt lists mutants that change
nothing, one per line: the id, " :: ", and the reason.

Exit status 1: fewer than 95 % of the mutants that are not equivalent were
killed, a survivor is not listed, or a listed mutant was killed or is not there.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ENGINE = ["engine", "schedule", "memory", "order", "operation", "data",
          "kernel", "trace", "fiber", "fail"]
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-DWEFT__MODEL", "-O1", "-w"]

OPERATION = re.compile(
    r"\bweft__(load|store|swap|add|sub|or|and|cas|cas_acquire)\s*\(")
BARRIER = re.compile(r"\bweft__heavy_barrier\s*\(\s*\)")
COMMENT = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
                     re.S)
TAG = re.compile(r"mutate:\s*(recheck|wake|retry)(?:=(true|false))?")
HEADER = re.compile(r"\s*(?:else\b|(?:if|while|for|switch)\s*\()")

WEAKER = {
    "load": {"seq_cst": ["acquire"], "acquire": ["relaxed"]},
    "store": {"seq_cst": ["release"], "release": ["relaxed"]},
    "rmw": {"seq_cst": ["acq_rel"], "acq_rel": ["acquire", "release"],
            "acquire": ["relaxed"], "release": ["relaxed"]},
}
ORDERS = {"relaxed", "acquire", "release", "acq_rel", "seq_cst"}


class BadTag(Exception):
    pass


class Mutant:
    def __init__(self, source, position, kind, what, edits):
        self.source = source
        self.line = source.text.count("\n", 0, position) + 1
        self.kind = kind
        self.edits = edits
        self.id = "%s %s: %s" % (source.path, source.function_at(position),
                                 what)

    def text(self):
        text = self.source.text
        for start, end, new in sorted(self.edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text


class Source:
    """A file, and the same with comments and strings blanked."""

    def __init__(self, path):
        self.path = path
        with open(os.path.join(ROOT, path)) as f:
            self.text = f.read()
        self.comments = []
        self.code = COMMENT.sub(self._blank, self.text)

    def _blank(self, match):
        if match.group().startswith("/*"):
            self.comments.append(match)
        return re.sub(r"[^\n]", " ", match.group())

    def function_at(self, position):
        """The function, or macro, that the position is in."""
        name, depth = "file", 0
        candidate = None
        start = 0
        for match in re.finditer(r"[{};]|^#\s*define\s+(\w+)", self.code, re.M):
            if match.start() >= position:
                break
            token = match.group()
            if token == "{":
                if depth == 0:
                    heads = re.findall(r"(\w+)\s*\((?=[^{;]*$)",
                                       self.code[start:match.start()])
                    candidate = heads[0] if heads else None
                depth += 1
                name = candidate or name
            elif token == "}":
                depth -= 1
                if depth == 0:
                    name = "file"
            elif match.group(1) and depth == 0:
                name = match.group(1)
            if depth == 0:
                start = match.end()
        return name

    def match(self, position, opening, closing, step):
        depth, i = 0, position
        while 0 <= i < len(self.code):
            depth += (self.code[i] in opening) - (self.code[i] in closing)
            if depth == 0:
                return i
            i += step
        raise BadTag("%s: unbalanced bracket" % self.path)

    def close(self, opening):
        return self.match(opening, "({", ")}", 1)

    def open(self, closing):
        return self.match(closing, ")}", "({", -1)

    def skip(self, position):
        match = re.compile(r"\S").search(self.code, position)
        return match.start() if match else len(self.code)

    def skip_back(self, position):
        return len(self.code[:position].rstrip()) - 1

    def word(self, position):
        match = re.compile(r"\w+").match(self.code, position)
        return match.group() if match else ""

    def word_before(self, position):
        match = re.search(r"(\w+)\s*$", self.code[:position])
        return (match.group(1), match.start(1)) if match else ("", position)

    def statement_end(self, position):
        """Just past the statement that begins at position."""
        position = self.skip(position)
        word = self.word(position)
        if self.code[position] == "{":
            return self.close(position) + 1
        if word in ("if", "while", "for", "switch"):
            body = self.close(self.code.index("(", position)) + 1
            end = self.statement_end(body)
            after = self.skip(end)
            if word == "if" and self.word(after) == "else":
                end = self.statement_end(after + 4)
            return end
        if word == "do":
            end = self.statement_end(position + 2)
            return self.code.index(";", self.close(
                self.code.index("(", end))) + 1
        depth = 0
        for i in range(position, len(self.code)):
            if self.code[i] in "({":
                depth += 1
            elif self.code[i] in ")}":
                depth -= 1
            elif self.code[i] == ";" and depth == 0:
                return i + 1
        raise BadTag("%s: no end of statement" % self.path)

    def statement_before(self, position):
        """Start of the simple statement whose ; is at position."""
        depth, start = 0, position - 1
        while start >= 0:
            c = self.code[start]
            if c == ")":
                depth += 1
            elif c == "(":
                depth -= 1
            elif c in ";{}" and depth == 0:
                break
            start -= 1
        start += 1
        while True:
            match = HEADER.match(self.code, start, position)
            if not match:
                return self.skip(start)
            start = match.end()
            if self.code[start - 1] == "(":
                start = self.close(start - 1) + 1


def squeeze(text):
    """One line, without comments: what survives reformatting."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"\s+", " ", text).replace("( ", "(").strip()


def order_mutants(source):
    for match in OPERATION.finditer(source.code):
        name = match.group(1)
        end = source.close(match.end() - 1)
        if source.code.startswith("#define", source.code.rfind(
                "\n", 0, match.start()) + 1):
            continue
        comma = source.code.rfind(",", match.end(), end)
        order = source.code[comma + 1:end].strip()
        site = squeeze(source.text[match.start():end + 1])
        if order not in ORDERS:
            raise BadTag("%s: no memory order in %s" % (source.path, site))
        at = source.code.index(order, comma)
        kind = name if name in ("load", "store") else "rmw"
        for weaker in WEAKER[kind].get(order, []):
            yield Mutant(source, match.start(), "order",
                         "%s -> %s" % (site, weaker),
                         [(at, at + len(order), weaker)])
        if name == "cas_acquire":
            start = match.start(1)
            yield Mutant(source, match.start(), "failure",
                         "%s -> fails relaxed" % site,
                         [(start, start + len(name), "cas")])
    for match in BARRIER.finditer(source.code):
        yield Mutant(source, match.start(), "barrier", "no heavy barrier",
                     [(match.start(), match.end(), "((void)0)")])


def trailing(source, comment):
    line = source.code.rfind("\n", 0, comment.start()) + 1
    return source.code[line:comment.start()].strip() != ""


def recheck_edit(source, comment, value):
    if trailing(source, comment):
        last = source.skip_back(comment.start())
        if source.code[last] == ";":
            at = source.statement_before(last)
        else:
            while last >= 0 and source.code[last] != ")":
                last -= 1
            at = source.word_before(source.open(last))[1]
    else:
        at = source.skip(comment.end())
    word = source.word(at)
    if word in ("if", "while"):
        start = source.code.index("(", at)
        end = source.close(start)
        start += 1
    elif word == "return":
        start, end = at + 6, source.statement_end(at) - 1
    else:
        raise BadTag("no condition")
    old = source.text[start:end]
    new = "1 || (%s)" if value == "true" else "0 && (%s)"
    return start, "%s is %s" % (squeeze(old), value), [(start, end, new % old)]


def wake_edit(source, comment):
    if trailing(source, comment):
        end = source.skip_back(comment.start()) + 1
        start = source.statement_before(end - 1)
    else:
        start = source.skip(comment.end())
        end = source.statement_end(start)
    what = "without %s" % squeeze(source.text[start:end])
    return start, what, [(start, end, ";")]


def loop_once(source, at):
    """The loop statement at this position, made to try once."""
    word = source.word(at)
    if word == "do":
        end = source.statement_end(source.skip(at + 2))
        return tail_once(source, source.code.index("(", end))
    start = source.code.index("(", at)
    end = source.close(start)
    inside = source.text[start + 1:end]
    what = squeeze(source.text[at:end + 1])
    if word == "while":
        new = "for (int once_ = 1; once_-- && (%s);)" % inside
        return at, what + " once", [(at, end + 1, new)]
    if word == "for":
        semicolons = [i for i in range(start, end) if source.code[i] == ";"]
        first, second = semicolons[0], semicolons[-1]
        condition = source.text[first + 1:second].strip() or "1"
        return at, what + " once", [
            (at, at, "int once_ = 1; "),
            (first + 1, second, " once_-- && (%s)" % condition)]
    raise BadTag("no loop")


def tail_once(source, start):
    end = source.close(start)
    old = source.text[start + 1:end]
    return start, "do while (%s) once" % squeeze(old), [
        (start + 1, end, "(%s), 0" % old)]


def body_once(source, comment):
    end = source.skip(comment.end())
    start = source.open(end)
    gives_up = re.search(r"\breturn\b[^;]*;", source.code[start:end])
    exit_by = gives_up.group() if gives_up else "break;"
    return comment.start(), "no retry, %s" % squeeze(exit_by), [
        (comment.start(), comment.start(), exit_by + " ")]


def retry_edit(source, comment):
    after = source.skip(comment.end())
    last = source.skip_back(comment.start())
    if not trailing(source, comment):
        if source.code[after] == "}":
            return body_once(source, comment)
        return loop_once(source, after)
    if source.code[last] == ";":
        last = source.skip_back(last)
    if source.code[last] != ")":
        raise BadTag("no loop")
    start = source.open(last)
    word, at = source.word_before(start)
    if word == "while" and source.code[source.skip_back(at)] == "}" and \
            source.code[source.skip(last + 1)] == ";" and \
            source.word_before(source.open(source.skip_back(at)))[0] == "do":
        return tail_once(source, start)
    return loop_once(source, at)


def tag_mutants(source):
    for comment in source.comments:
        tag = TAG.search(comment.group())
        if not tag:
            continue
        kind, value = tag.group(1), tag.group(2)
        try:
            if kind == "recheck":
                position, what, edits = recheck_edit(source, comment,
                                                     value or "false")
            elif kind == "wake":
                position, what, edits = wake_edit(source, comment)
            else:
                position, what, edits = retry_edit(source, comment)
        except (BadTag, ValueError) as error:
            line = source.text.count("\n", 0, comment.start()) + 1
            raise BadTag("%s:%d: tag %s: %s" % (source.path, line, kind,
                                                error))
        yield Mutant(source, position, kind, "%s: %s" % (kind, what), edits)


def mutants_of(path):
    source = Source(path)
    mutants = sorted(list(order_mutants(source)) + list(tag_mutants(source)),
                     key=lambda m: m.line)
    seen = {}
    for mutant in mutants:
        seen[mutant.id] = seen.get(mutant.id, 0) + 1
        if seen[mutant.id] > 1:
            mutant.id += " #%d" % seen[mutant.id]
    return mutants


class Model:
    """A line of models.txt: program | sources it models | sources to link."""

    def __init__(self, line):
        fields = [field.split() for field in line.split("|")]
        (self.program,), self.covers = fields[0], fields[1]
        self.links = fields[2] if len(fields) > 2 else []
        self.name = os.path.splitext(os.path.basename(self.program))[0]
        self.seconds = 0.0


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


class Tree:
    """A copy of the sources, of which one file at a time is a mutant."""

    def __init__(self, directory, args):
        self.directory = directory
        self.args = args
        os.makedirs(directory)
        for folder in ("include", "runtime", "timer", "io", "net", "tests"):
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

    def run(self, model, seconds):
        environment = dict(os.environ, CK_FORK="no", MODEL_STOP="yes")
        environment.pop("MODEL_REPLAY", None)
        try:
            done = subprocess.run([os.path.join(self.directory, model.name)],
                                  capture_output=True, timeout=seconds,
                                  env=environment, errors="replace")
        except subprocess.TimeoutExpired:
            return "time"
        if done.returncode == 0:
            return "ok"
        for line in done.stdout.splitlines():
            if line.startswith("violation: "):
                return line[len("violation: "):]
        for line in done.stdout.splitlines():
            if re.search(r":[FE]:", line):
                return line
        return "exit status %d" % done.returncode


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


def baseline(models, tree, library):
    for model in models:
        message = tree.build(model, library)
        if message:
            sys.exit("%s does not build:\n%s" % (model.name, message))
        start = time.monotonic()
        result = tree.run(model, 3600)
        model.seconds = time.monotonic() - start
        if result != "ok":
            sys.exit("%s fails without a mutant: %s" % (model.name, result))
        print("baseline %s: %.2f s" % (model.name, model.seconds), flush=True)


def judge(mutant, models, tree, library, args):
    verdict, how = "SURVIVED", ""
    tree.put(mutant.source.path, mutant.text())
    try:
        for model in sorted(models, key=lambda m: m.seconds):
            if mutant.source.path not in model.covers:
                continue
            message = tree.build(model, library)
            if message:
                return "INVALID", message.strip().splitlines()[0]
            result = tree.run(model, max(args.time, 4 * model.seconds))
            if result == "time":
                verdict, how = "TIMED OUT", model.name
            elif result != "ok":
                return "killed", "%s: %s" % (model.name, result)
    finally:
        tree.put(mutant.source.path, mutant.source.text)
    return verdict, how


def judge_all(mutants, models, directory, library, args):
    trees = threading.local()
    number = iter(range(args.jobs))
    lock = threading.Lock()

    def work(mutant):
        if not hasattr(trees, "tree"):
            with lock:
                path = os.path.join(directory, "tree%d" % next(number))
            trees.tree = Tree(path, args)
        mutant.verdict, mutant.how = judge(mutant, models, trees.tree, library,
                                           args)
        with lock:
            print("%-9s %s:%d: %s%s" % (
                mutant.verdict, mutant.source.path, mutant.line, mutant.id,
                "\n          by " + mutant.how if mutant.how else ""),
                flush=True)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(work, mutants))


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
        mutants = [m for path in sources for m in mutants_of(path)]
    except BadTag as error:
        sys.exit(str(error))
    mutants = [m for m in mutants if re.search(args.only, m.id)]
    if not mutants:
        sys.exit("no mutants")
    if args.list:
        for mutant in mutants:
            print("%s:%d: %s" % (mutant.source.path, mutant.line, mutant.id))
        return 0
    with tempfile.TemporaryDirectory(prefix="weft-mutate-") as directory:
        library = library_build(directory, args)
        used = [model for model in models
                if any(m.source.path in model.covers for m in mutants)]
        baseline(used, Tree(os.path.join(directory, "baseline"), args), library)
        judge_all(mutants, models, directory, library, args)
    return report(mutants, equivalents, bool(args.only))


if __name__ == "__main__":
    sys.exit(main())
