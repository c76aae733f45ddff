#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check the rules that no compiler checks; each is a test case (TAP).

Findings go to stderr as file:line: text.  The rules are the functions here and
in tidy_prose.py whose names begin with rule_; their first line is their name in
the report.
"""

import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True

import tap
import tidy_prose

ROOT = pathlib.Path(__file__).resolve().parents[2]

LAYERS = ["runtime", "timer", "io", "net", "fs", "process", "tls"]
# Libraries of their own, which see of weft what it exports.
APART = ["tls"]
# The rooms, from the ground floor up.  A file includes its own room, those
# before it in this list, and include/weft/.
ROOMS = """
    runtime/base runtime/stack runtime/sched runtime/task runtime/future
    runtime/blocking runtime/sync runtime/dump runtime
    timer
    io/os io/ring io/ring/uring io/ring/soft io/request io/stream io
    net
    fs
    process
    adapters/aside adapters/curl adapters/nats adapters/pq adapters/redis
    tls
""".split()
ANYTHING = ["tests", "bench"]
# The only place where the sources refer to the model checker.
SEAM = ("runtime/base/atomic.h", "tests/model/model_atomic.h")

FUNCTION_LINES = 70
FILE_LINES = 600
HEADER_LINES = 250
COLUMNS = 80
TAB = 8
# The number of lines above a site in which its comment may stand.
NEAR = 8

C = {".c", ".cc", ".h", ".S"}
CODE = C | {".py", ".build", ".txt", ".map", ".go", ".rs", ".sh", ""}
PROSE = {".md", ".json", ".yml", ".3", ".7"}

COMMENT_OR_LITERAL = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
ATOMIC = re.compile(
    r"\bweft__(?:load|store|swap|add|sub|or|and|cas|cas_acquire)\s*\(")
ORDERS = {"relaxed", "acquire", "release", "acq_rel", "seq_cst"}
TAG = re.compile(r"\[([a-z0-9_]+(?:\.[a-z0-9_]+)+)\]")
DEFINITION = re.compile(r"^\s*\*\s+\[([a-z0-9_]+(?:\.[a-z0-9_]+)+)\]\s+\S",
                        re.M)
RAW_ATOMIC = re.compile(
    r"\b_Atomic\b|\batomic_\w+\s*\(|\b__atomic_\w+|\b__sync_\w+|stdatomic\.h")


def blank(text):
    """Spaces in place of the text, with the same length and line ends."""
    return re.sub(r"[^\n]", " ", text)


def columns(line):
    return len(line.expandtabs(TAB))


class File:
    def __init__(self, path):
        self.path = path
        self.name = path.relative_to(ROOT).as_posix()
        self.folder = self.name.split("/")[0] if "/" in self.name else ""
        self.kind = path.suffix
        self.text = path.read_text(encoding="utf-8", errors="replace")
        self.lines = self.text.splitlines()
        self.is_c = self.kind in C
        self.is_library = self.is_c and self.folder in LAYERS
        self.is_public = self.name.startswith("include/weft/")
        self.comments = []
        self.code = self.text
        if self.is_c:
            self.split()

    def split(self):
        """code: the text without comments and the contents of literals."""
        def replace(match):
            found = match.group()
            if found[0] == "/":
                self.comments.append((match.start(), found))
                return blank(found)
            return found[0] + blank(found[1:-1]) + found[-1]
        self.code = COMMENT_OR_LITERAL.sub(replace, self.text)
        self.notes = list(blank(self.text))
        for start, found in self.comments:
            self.notes[start:start + len(found)] = found
        self.notes = "".join(self.notes).split("\n")

    def line_at(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def notes_near(self, first, last):
        """The comments from a little above line first to line last."""
        return "\n".join(self.notes[max(0, first - 1 - NEAR):last])

    def matches(self, pattern, where=None):
        for match in re.finditer(pattern, self.text if where is None else where):
            yield self.line_at(match.start()), match


def walk():
    for folder, folders, names in os.walk(ROOT):
        top = pathlib.Path(folder) == ROOT
        folders[:] = sorted(
            f for f in folders
            if f not in ("__pycache__", "target", ".git", ".cache")
            and not (top and f.startswith("build")))
        for name in sorted(set(names) - {".git"}):  # a work tree's
            path = pathlib.Path(folder, name)
            if path.suffix in CODE | PROSE and not path.is_symlink():
                yield File(path)


class Site:
    """An atomic operation: its lines and its orders."""

    def __init__(self, file, match):
        depth, end = 0, match.end() - 1
        for end in range(match.end() - 1, len(file.code)):
            depth += {"(": 1, ")": -1}.get(file.code[end], 0)
            if depth == 0:
                break
        self.file = file
        self.first = file.line_at(match.start())
        self.last = file.line_at(end)
        arguments = file.code[match.end():end]
        self.order = re.split(r"[,\s]+", arguments.strip())[-1]
        self.name = match.group().rstrip("( \t")
        self.notes = file.notes_near(self.first, self.last)
        self.tags = set(TAG.findall(self.notes))

    def strong(self):
        return self.order in ORDERS and self.order != "relaxed"

    def sends(self):
        return self.order in ("release", "acq_rel", "seq_cst")

    def receives(self):
        return (self.order in ("acquire", "acq_rel", "seq_cst") or
                self.name == "weft__cas_acquire")


def sites(files):
    for file in files:
        if file.is_library and file.name != SEAM[0]:
            for match in ATOMIC.finditer(file.code):
                site = Site(file, match)
                if site.order in ORDERS:
                    yield site


def definitions(files):
    """Maps tags to (file, line), from the Orderings in comments."""
    found = {}
    for file in files:
        if not file.is_library:
            continue
        for start, comment in file.comments:
            at = comment.find("Orderings")
            if at < 0:
                continue
            for match in DEFINITION.finditer(comment, at):
                found[match.group(1)] = (
                    file.name, file.line_at(start + match.start(1)))
    return found


def rule_includes(files):
    """includes follow the order of the rooms"""
    for file in files:
        if not file.is_c or file.folder in ANYTHING:
            continue
        for line, match in file.matches(r'(?m)^\s*#\s*include\s*(["<])([^">]+)'):
            quoted, name = match.group(1) == '"', match.group(2)
            problem = include_problem(file, quoted, name)
            if problem and (file.name, name) != SEAM:
                yield file.name, line, f"{problem}: {name}"


def include_problem(file, quoted, name):
    if file.folder == "examples":
        inside = (file.path.parent / name).exists()
        return quoted and not inside and "not of this example"
    if name in ("liburing.h", "linux/io_uring.h"):
        return (file.folder != "tests"
                and not file.name.startswith("io/ring/uring/")
                and "only io/ring/uring/ knows io_uring")
    if not quoted:
        return False
    if file.is_public:
        return "public headers include <weft/...> alone"
    if not (ROOT / name).exists():
        return "not named from the top of the tree"
    room, other = (os.path.dirname(path) for path in (file.name, name))
    if ("adapters" in (file.folder, name.split("/")[0])
            and other not in (room, "adapters/aside")):
        return "an adapter and weft know each other's public headers alone"
    if other not in ROOMS:
        return "in no room that tidy knows"
    if room != other and room in APART:
        return "a library of its own includes <weft/...> alone"
    return (ROOMS.index(other) > ROOMS.index(room)
            and f"{room}/ is below and must not include")


def rule_functions(files):
    """no function is longer than 70 lines"""
    for file in files:
        if file.kind not in (".c", ".cc", ".h"):
            continue
        start = 0
        for number, line in enumerate(file.code.split("\n"), 1):
            if line.rstrip() == "{":
                start = number
            elif line.startswith("}") and start:
                if number - start + 1 > FUNCTION_LINES:
                    yield (file.name, start,
                           f"a function of {number - start + 1} lines")
                start = 0


def rule_files(files):
    """no file is longer than 600 lines, no public header than 250"""
    for file in files:
        most = HEADER_LINES if file.is_public else FILE_LINES
        if file.kind in CODE and len(file.lines) > most:
            yield file.name, most + 1, f"{len(file.lines)} lines, {most} at most"


def rule_columns(files):
    """no line is wider than 80 columns, tabs of 8"""
    for file in files:
        if file.is_c or file.kind in (".build", ".sh", ".map"):
            for number, line in enumerate(file.lines, 1):
                if columns(line) > COLUMNS:
                    yield file.name, number, f"{columns(line)} columns"


def rule_blanks(files):
    """lines end where their text ends, files with a newline"""
    for file in files:
        for number, line in enumerate(file.lines, 1):
            if line != line.rstrip() and file.kind != ".md":
                yield file.name, number, "blanks at the end of the line"
        if file.text and not file.text.endswith("\n"):
            yield file.name, len(file.lines), "no newline at the end"


def rule_comments(files):
    """comments are between /* and */"""
    for file in files:
        for start, comment in file.comments:
            if comment.startswith("//"):
                yield file.name, file.line_at(start), comment


def rule_licence(files):
    """every source says its licence first"""
    for file in files:
        if file.is_c or file.kind in (".py", ".build"):
            if not any("SPDX-License-Identifier: MIT" in line
                       for line in file.lines[:2]) and file.text:
                yield file.name, 1, "no SPDX line"


def rule_atomics(files):
    """atomics go through runtime/base/atomic.h"""
    for file in files:
        if file.is_library and file.name != SEAM[0]:
            for line, match in file.matches(RAW_ATOMIC, file.code):
                yield file.name, line, match.group()


def rule_orders(files):
    """every acquire, release and seq_cst names its pair"""
    known = definitions(files)
    for site in sites(files):
        if not site.strong():
            continue
        if not site.tags:
            yield site.file.name, site.first, f"{site.order} without [tag]"
        for tag in sorted(site.tags - known.keys()):
            yield (site.file.name, site.first,
                   f"[{tag}] is in nobody's Orderings")


def rule_pairs(files):
    """every pair of memory orders has both ends"""
    known = definitions(files)
    strong = [site for site in sites(files) if site.strong()]
    for tag, (name, line) in sorted(known.items()):
        ends = [site for site in strong if tag in site.tags]
        if not any(site.sends() for site in ends):
            yield name, line, f"[{tag}] is never released"
        if not any(site.receives() for site in ends):
            yield name, line, f"[{tag}] is never acquired"


def rule_relaxed(files):
    """every relaxed says why"""
    for site in sites(files):
        if site.order == "relaxed" and "relaxed" not in site.notes.lower():
            yield site.file.name, site.first, f"{site.name}: no word on relaxed"


def rule_calls(files):
    """no call that is banned"""
    always = "strcpy strcat sprintf vsprintf gets alloca strtok"
    in_tests = "sleep usleep nanosleep"
    for file in files:
        if not file.is_c:
            continue
        names = always + (" " + in_tests if file.folder == "tests" else "")
        pattern = rf"\b(?:{'|'.join(names.split())})\s*\("
        for line, match in file.matches(pattern, file.code):
            yield file.name, line, match.group().rstrip("(")


HEAP = re.compile(
    r"(?<![\w>.])(?:malloc|calloc|realloc|reallocarray|aligned_alloc|memalign|"
    r"posix_memalign|valloc|free|strn?dup|v?asprintf|get(?:line|delim)|"
    r"open_memstream|fd?open|(?:fd)?opendir|scandir|getaddrinfo|realpath)\s*\(")
HEAP_HERE = "runtime/base/memory.h"
# Calls of the C library that allocate, where they are what the file is for.
HEAP_KNOWN = {"net/names_system.c": "getaddrinfo(",
              "io/path.c": "realpath(",
              "fs/watch.c": "realpath("}
# Mappings, which the allocator of a program does not replace.
MAPS = {
    "runtime/stack/stack.c": "stacks of tasks",
    "runtime/stack/overflow.c": "stacks of handlers",
    "runtime/sched/task.c": "records, unless the program has an allocator",
    "io/request/recv_buffers.c": "the same for buffers; the kernel's rings",
    "io/request/fd_table.c": "address space, of which little is touched",
    "io/ring/uring/probe.c": "a ring that exists once, and briefly",
    "io/os/look.c": "a file that is looked at",
    "io/direct.c": "buffers for O_DIRECT, which begin at a page",
}


def rule_memory(files):
    """memory comes through runtime/base/memory.h, mappings are known"""
    for file in files:
        if not file.is_library or file.name == HEAP_HERE:
            continue
        for line, match in file.matches(HEAP, file.code):
            if match.group() == HEAP_KNOWN.get(file.name):
                continue
            yield file.name, line, f"{match.group()}) beside {HEAP_HERE}"
        if file.name not in MAPS:
            for line, match in file.matches(r"\bmmap\s*\(", file.code):
                yield file.name, line, "a mapping that tidy does not know"


def rule_words(files):
    """no word that promises later work"""
    # In pieces, so that this file has none of them.
    words = "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"))
    for file in files:
        for line, match in file.matches(rf"\b(?:{words})\b"):
            yield file.name, line, match.group()


def rule_paths(files):
    """no path of somebody's machine"""
    for file in files:
        pattern = r"(?<![\w.])/(?:work|root|home|farm)/[\w.]"
        for line, match in file.matches(pattern):
            yield file.name, line, file.lines[line - 1].strip()


def rule_references(files):
    """files that comments name exist"""
    pattern = r"\b(?:runtime|timer|io|net|tls|tests|bench)/[\w/]+\.(?:[chS]|py)\b"
    for file in files:
        for start, comment in file.comments:
            for match in re.finditer(pattern, comment):
                if not (ROOT / match.group()).exists():
                    line = file.line_at(start + match.start())
                    yield file.name, line, f"{match.group()} does not exist"


def rule_built(files):
    """every source is in its folder's meson.build"""
    for file in files:
        top = file.folder in (*LAYERS, "adapters", "examples", "tests",
                              "bench")
        if not top or file.kind not in (".c", ".cc", ".S"):
            continue
        if "/peers/" in file.name:  # bench/run.py builds those
            continue
        folder = file.path.parent
        while not (folder / "meson.build").exists():
            folder = folder.parent
        name = file.path.relative_to(folder)
        listed = (folder / "meson.build").read_text()
        models = folder / "models.txt"
        if models.exists():
            listed += models.read_text()
        if not re.search(rf"\b{re.escape(str(name.with_suffix('')))}\b", listed):
            yield file.name, 1, "no meson.build lists it"


MONITOR = re.compile(r'tcase_set_tags\(\w+, "monitor"\)')


def rule_monitor(files):
    """tests that need a monitor are in the suite that runs with one"""
    for file in files:
        # On virtual time each test chooses itself.
        if (file.folder != "tests" or not file.is_c or
                "tests/fake/fake_check.h" in file.text):
            continue
        for line, _ in file.matches(MONITOR):
            listed = (ROOT / "tests/meson.build").read_text()
            if not re.search(rf"/{file.path.stem}': \[[^\]]*'monitor'", listed):
                yield file.name, line, "not in the suite monitor"


LABEL = re.compile(r"^ \*   ([A-Z]+\d)  ?\S", re.M)


def rule_labels(files):
    """labels of invariants are defined once in the tree"""
    first = {}
    for file in files:
        if file.is_library or file.folder == "tests":
            for line, match in file.matches(LABEL):
                label = match.group(1)
                before = first.setdefault(label, file.name)
                if before != file.name:
                    yield file.name, line, f"{label} is that of {before}"


# In the ledger: `program: case`, `case of the same program` ...; or `program`.
PROOF = re.compile(
    r"`((?:test|model)_\w+|tests/\w+/\w+\.py)(?:: (\w+)`"
    r"((?:(?: \([^()]*\))?,? (?:and )?`(?!test_|model_)\w+`)*)|`)")


def rule_ledger(files):
    """the ledger names tests, figures, files and code that exist"""
    ledger = next(file for file in files if file.name == "docs/LEDGER.md")
    words = {word for file in files if file.is_c
             for word in re.findall(r"\w+", file.code)}
    for number, row in enumerate(ledger.lines, 1):
        if row.startswith("|"):
            for missing in (*ledger_tests(row), *ledger_figures(row),
                            *ledger_code(PROOF.sub("", row), words)):
                yield ledger.name, number, f"{missing} does not exist"


def ledger_claims(row):
    """The tests that a row names: their programs and, if it is not all of
    them, their names."""
    for program, case, others in PROOF.findall(row):
        for name in (case, *re.findall(r"`(\w+)`", others)):
            yield program, name


def ledger_tests(row):
    for program, name in ledger_claims(row):
        source = ledger_source(program)
        if not source:
            yield program
            continue
        begins = r"^def " if source.suffix == ".py" else r"\b[A-Z_]+\(\s*"
        if name and not re.search(rf"{begins}{name}\b", source.read_text(),
                                  re.M):
            yield f"{program}: {name}"


def ledger_source(program):
    places = [ROOT / program] if "/" in program else [
        path for suffix in (".c", ".cc", ".py")
        for path in ROOT.glob(f"tests/*/{program}{suffix}")]
    return next((path for path in places if path.exists()), None)


def ledger_figures(row):
    for kind, name in re.findall(r"\*(bench|liveness) (\w+)\*", row):
        listed, told = {"bench": ("bench/bars.json", rf'"bench": "{name}[_"]'),
                        "liveness": ("tests/meson.build", rf"'{name}': \["),
                        }[kind]
        if not re.search(told, (ROOT / listed).read_text()):
            yield f"{kind} {name}"


def ledger_code(row, words):
    for name in re.findall(r"`([\w./]+)`", row):
        if name not in words and not (ROOT / name).exists():
            yield name


def main():
    files = list(walk())
    rules = [r for name, r in (globals() | vars(tidy_prose)).items()
             if name.startswith("rule_")]

    def judged():
        for rule in rules:
            findings = sorted(set(rule(files)))
            count = f" ({len(findings)} findings)" if findings else ""
            yield (f"{rule.__doc__.splitlines()[0]}{count}",
                   [f"{name}:{line}: {text}" for name, line, text in findings])
    return tap.judge(judged())


if __name__ == "__main__":
    sys.exit(main())
