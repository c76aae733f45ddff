#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A test provokes each error that a page of the manual lists.  TAP.

A claim is an error and the calls that it is listed for: those that its item
names, as in ".Fn weft_unlink :", else all of the page.  It holds if

- a test program has one of the calls and the error in its code,
- or a scene of the sweep of failing calls allows one of the calls to return it
  (tests/fault/fault_scene*.c: MAY(call, errors)),
- or a table of calls that are interrupted has a row for one of the calls
  (tests/support/*_calls.h), and the error is -ECANCELED, -ETIMEDOUT or in the
  row.

That the program gets the error from that call is for its reader to see.
"""

import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True

import tap

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
REFUSED = {"ENOMEM", "EMFILE", "ENFILE", "EAGAIN", "ENOSYS"}
INTERRUPTED = {"ECANCELED", "ETIMEDOUT"}
# Of the programs that include them, for calls that these hand over.
KITS = {"tests/support/interrupt_kit.h": INTERRUPTED,
        "tests/support/poor_kit.h": {"ENOMEM"}}
# No programs over a whole weft.
APART = {"model", "fuzz"}


# ---- The manual -----------------------------------------------------------------


def claims_of_item(text, everything):
    """The calls that it is listed for: a list of sets."""
    found, names = [], set()
    for line in text:
        call = re.fullmatch(r"\.Fn (weft_\w[\w ,]*?) ?[,:]?", line)
        if call:
            names |= set(re.findall(r"weft_\w+", call[1]))
        if line.endswith(":") and names:
            found.append(names)
            names = set()
        elif line.endswith("."):
            names = set()
        if not call and not line.startswith(".Pp") and not found and not names:
            return [everything]
    return found or [everything]


def claims_of_page(path):
    """Errors and the calls that they are listed for."""
    head, text = path.read_text().split(".Sh SYNOPSIS", 1)
    page = set(re.findall(r"^\.Nm (\w+)", head, re.M))
    everything = page
    section = re.search(r"^\.Sh ERRORS\n(.*?)(?=^\.Sh |\Z)", text, re.S | re.M)
    lines = section[1].splitlines() if section else []
    for at, line in enumerate(lines):
        if line.startswith(".Bl "):
            call = re.fullmatch(r"\.Fn (weft_\w+) :", lines[at - 1])
            everything = {call[1]} if call else page
        if not line.startswith(".It "):
            continue
        end = at + 1
        while end < len(lines) and not re.match(r"\.It |\.El", lines[end]):
            end += 1
        for calls in claims_of_item(lines[at + 1:end], everything):
            for error in re.findall(r"Er -(E\w+)", line):
                yield error, frozenset(calls)


def claims():
    return sorted({(path.name, error, calls)
                   for path in (ROOT / "docs/man").glob("*.3")
                   for error, calls in claims_of_page(path)},
                  key=lambda claim: (*claim[:2], sorted(claim[2])))


# ---- The tests ------------------------------------------------------------------


def words(text):
    """Names of calls and of errors."""
    return set(re.findall(r"\b(?<!struct )(?<!enum )"
                          r"(?:weft_[a-z_0-9]+|WEFT_[A-Z_]+|E[A-Z0-9]{2,})\b",
                          text))


def code(path):
    return COMMENT.sub(" ", path.read_text())


def arguments(text, at):
    """Of a macro: what is between its parentheses, cut at its first comma."""
    depth, comma = 0, None
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if text[i] == "," and depth == 1 and comma is None:
            comma = i
        if depth == 0:
            return text[at:comma], text[comma or i:i]
    raise ValueError(text[at:at + 80])


def of_scenes(tests):
    """Words of each MAY(call, errors) of the sweep."""
    texts = [code(path) for path in sorted(tests.glob("fault/*.[ch]"))]
    define = re.compile(r"^#define (\w+_ERRORS) (.*)", re.M)
    shared = dict(define.findall("\n".join(texts)))
    for text in texts:
        lists = shared | dict(define.findall(text))
        for match in re.finditer(r"\bMAY(?:_END)?(?=\()", text):
            call, errors = arguments(text, match.end())
            if "weft_" not in call:
                # A result; the call is in the statement before.
                call = " ".join(text[:match.start()].split(";")[-3:])
            for _ in range(3):
                errors = re.sub(r"\w+_ERRORS",
                                lambda m: lists.get(m[0], m[0]), errors)
            yield words(call) | words(errors) & REFUSED


def of_rows(text):
    """Words of each row of a table of calls that are interrupted."""
    for table in re.findall(r"struct call calls\[\] = \{(.*?)^\};", text,
                            re.M | re.S):
        for row in re.findall(r'\{ "(.*?) \}', table, re.S):
            if "EXEMPT" not in row:
                call = re.match(r"\w+", row)[0]
                yield {"weft_" + call} | INTERRUPTED | words(row)


def evidence():
    """Sets of words; errors and calls in one set go together."""
    tests = ROOT / "tests"
    yield from of_scenes(tests)
    for path in sorted(tests.rglob("*.[ch]")):
        text = code(path)
        if "struct call calls[]" in text:
            yield from of_rows(text)
        elif (path.parent.name not in APART
              and not path.name.startswith("fault_")):
            yield words(text).union(*(errors for kit, errors in KITS.items()
                                      if kit in text))


def missing():
    """The claims that nothing provokes."""
    sets = list(evidence())
    for page, error, calls in claims():
        if not any(error in found and calls & found for found in sets):
            functions = sorted(name for name in calls if name.islower())
            yield f"{page}: no test has -{error} of {', '.join(functions)}"


# ---- Test cases -----------------------------------------------------------------


PAGE = """.Sh NAME
.Nm weft_one ,
.Nm weft_two
.Nd two calls
.Sh SYNOPSIS
.Sh ERRORS
.Bl -tag
.It Er -%s
%s
.El
"""
BOTH = "The file is full.\n.Fn weft_two\nreads it first."
SCENE = "#define ONE_ERRORS EMFILE, ENOMEM\n"


def expect(found, error, item, sources):
    """Whether a claim is missing where the tests are these."""
    global ROOT
    with tempfile.TemporaryDirectory() as folder:
        root, ROOT = ROOT, pathlib.Path(folder)
        try:
            for name, text in {"docs/man/weft_one.3": PAGE % (error, item),
                               **sources}.items():
                path = ROOT / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            got = list(missing())
        finally:
            ROOT = root
    if len(got) != found:
        raise AssertionError(f"{error} of {item!r} in {sources}: {got}")


def expect_code(found, item, text):
    expect(found, "EIO", item, {"tests/io/test_io_q.c": text})


def test_programs():
    """an error needs a program that has it, and one of its calls"""
    expect_code(0, BOTH, "x = weft_one() == -EIO;")
    expect_code(0, BOTH, "x = weft_two() == -EIO;")
    expect_code(1, BOTH, "x = weft_three() == -EIO;")
    expect_code(1, BOTH, "x = weft_one() == -ENOMEM;")
    expect(1, "EIO", BOTH, {"tests/a.c": "weft_one()", "tests/b.c": "-EIO"})


def test_items():
    """an item that names calls needs one of those"""
    for item in (".Fn weft_one :\nit is full.",
                 ".Fn weft_one ,\n.Fn weft_three :\nit is full."):
        expect_code(0, item, "x = weft_one() == -EIO;")
        expect_code(1, item, "x = weft_two() == -EIO;")
    both = ".Fn weft_one :\nit is full.\n.Fn weft_two :\nit is empty."
    expect_code(2, both, "")
    expect_code(1, both, "x = weft_two() == -EIO;")


def test_words():
    """comments and types are no calls, and no errors"""
    expect_code(1, BOTH, "x = weft_one(); /* not -EIO */")
    expect_code(1, BOTH, "x = -EIO; /* of weft_one() */")
    expect_code(1, BOTH, "struct weft_one x = { -EIO };")


def test_scenes():
    """a scene counts for its calls and the errors that it allows them"""
    for error, text, found in (
            ("ENOMEM", "MAY(weft_one(a, b), ENOMEM);", 0),
            ("EMFILE", "MAY(weft_one(f(a)), EIO, ONE_ERRORS);", 0),
            ("ENOMEM", "r = weft_one();\n\tMAY(r, ENOMEM);", 0),
            ("ENFILE", "MAY(weft_one(), ONE_ERRORS);", 1),
            ("ENOMEM", "MAY(weft_three(), ENOMEM); weft_one();", 1),
            ("EIO", "MAY(weft_one(), EIO);", 1)):
        expect(found, error, BOTH,
               {"tests/fault/fault_scene_q.c": SCENE + text})


def test_tables():
    """a row of calls that are interrupted counts for its call"""
    for row, error, found in (
            ("one of a pipe", "ECANCELED", 0), ("two", "ETIMEDOUT", 0),
            ("three", "ECANCELED", 1), ("one", "EIO", 1),
            ("one", "EPIPE", 0)):
        table = ("static const struct call calls[] = {\n"
                 f'\t{{ "{row}", make, LOOPS, -EPIPE }},\n'
                 '\t{ "three", weft_one, EXEMPT, 1 },\n};\n')
        expect(found, error, BOTH, {"tests/support/io_calls.h": table})


def test_manual():
    """each error in the manual has a test"""
    got = list(missing())
    for line in got:
        print(line, file=sys.stderr)
    if len(claims()) < 500 or got:
        raise AssertionError(f"{len(got)} of {len(claims())} claims")


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
