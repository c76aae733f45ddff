#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The rules of tidy.py find what is planted in a tree of their own.  TAP.

The functions below whose names begin with test_ are the test cases; their first
line is the claim.
"""

import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True

import tap
import tidy
import tidy_prose

SPDX = "/* SPDX-License-Identifier: MIT */\n"
OVERVIEW = ("/*\n * The queue of a worker, in one sentence.\n"
            " * Its owner pushes, other workers steal.\n */\n")
LONG = "int x;\n" * 100


def findings(rule, sources):
    """Where the rule finds something in a tree of these files."""
    with tempfile.TemporaryDirectory() as folder:
        root, tidy.ROOT = tidy.ROOT, pathlib.Path(folder)
        try:
            for name, text in sources.items():
                path = tidy.ROOT / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            found = sorted(set(rule(list(tidy.walk()))))
            return [f"{name}:{line}" for name, line, _ in found]
        finally:
            tidy.ROOT = root


def expect(got, wanted, what):
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, wanted {wanted!r}")


def expect_found(rule, name, text, *lines):
    """The rule finds these lines of the file, and no other."""
    expect(findings(rule, {name: text}), [f"{name}:{line}" for line in lines],
           f"{name} of {text!r}")


def test_rooms():
    """an include against the order of the rooms is found"""
    rooms = {"runtime/base/lock.h": "", "runtime/sched/task.h": "",
             "io/request/op.h": "", "io/driver.h": "", "net/socket.h": "",
             "tls/error.h": ""}

    def expect_include(name, include, found):
        sources = {**rooms, name: f'{SPDX}#include "{include}"\n'}
        expect(findings(tidy.rule_includes, sources),
               [f"{name}:2"] if found else [], f"{include} in {name}")

    for name, include in (("runtime/base/lock.c", "runtime/sched/task.h"),
                          ("runtime/sched/task.c", "io/request/op.h"),
                          ("runtime/runtime.c", "io/driver.h"),
                          ("io/request/op.c", "io/driver.h"),
                          ("io/driver.c", "net/socket.h"),
                          ("net/socket.c", "tls/error.h"),
                          ("tls/error.c", "runtime/base/lock.h"),
                          ("tls/error.c", "io/driver.h")):
        expect_include(name, include, True)
    for name, include in (("runtime/sched/task.c", "runtime/base/lock.h"),
                          ("io/request/op.c", "runtime/sched/task.h"),
                          ("io/driver.c", "io/request/op.h"),
                          ("net/socket.c", "io/driver.h"),
                          ("tls/context.c", "tls/error.h")):
        expect_include(name, include, False)
    expect_include("runtime/base/futex.c", "runtime/base/lock.h", False)
    expect_include("net/addr.c", "net/addr_in_no_room.h", True)


def test_only_the_carrier_knows_io_uring():
    """liburing is included in io/ring/uring/ and in tests alone"""
    for name, found in (("io/request/op.c", True), ("io/ring/ring.h", True),
                        ("net/socket.c", True),
                        ("io/ring/uring/uring.c", False),
                        ("tests/io/test_io_op.c", False)):
        source = f"{SPDX}#include <liburing.h>\n"
        expect(findings(tidy.rule_includes, {name: source}),
               [f"{name}:2"] if found else [], name)


def test_memory():
    """memory beside runtime/base/memory.h and an unknown mapping are found"""
    rule = tidy.rule_memory
    for call in ("malloc(1)", "calloc (1, 1)", "free(p)", "strdup(p)",
                 "aligned_alloc(8, 8)", "fopen(p, p)", "getaddrinfo(p)"):
        for name in ("runtime/sched/q.c", "timer/q.c", "io/q.h", "net/q.c"):
            expect_found(rule, name, f"int x;\nint y = {call};\n", 2)
        for name in ("runtime/base/memory.h", "tests/io/q.c", "examples/q.c"):
            expect_found(rule, name, f"int y = {call};\n")
    for text in ("x->free(p);\n", "weft__memory_free(p);\n", "/* free() */\n",
                 "x = p->free;\n", "madvise(p);\n", "munmap(p);\n"):
        expect_found(rule, "io/q.c", text)
    expect_found(rule, "io/q.c", "mmap(p);\n", 1)
    expect_found(rule, "runtime/stack/stack.c", "mmap(p);\n")


def test_monitor():
    """a test of the monitor that never runs with one is found"""
    source = 'tcase_set_tags(tc, "monitor");\n'

    def expect_listed(suites, text, found):
        listed = f"weft_tests = {{\n  'io/test_io_q': [{suites}],\n}}\n"
        expect(findings(tidy.rule_monitor, {"tests/meson.build": listed,
                                            "tests/io/test_io_q.c": text}),
               ["tests/io/test_io_q.c:1"] if found else [], suites)

    expect_listed("", source, True)
    expect_listed("'stress'", source, True)
    expect_listed("'monitor', 'stress'", source, False)
    expect_listed("", source + '#include "tests/fake/fake_check.h"\n', False)
    expect_listed("", "tcase_set_timeout(tc, 30);\n", False)


def test_overviews():
    """a long C file without an overview is found"""
    rule = tidy_prose.rule_overviews
    for name in ("runtime/sched/q.c", "timer/q.h", "io/q.c", "net/q.c",
                 "tests/io/test_io_q.c"):
        expect_found(rule, name, SPDX + LONG, 1)
        expect_found(rule, name, SPDX + OVERVIEW + LONG)
        expect_found(rule, name, SPDX + "int x;\n" * 99)
    late = "#include <stdio.h>\n"
    expect_found(rule, "io/q.c", SPDX + late + OVERVIEW + LONG, 1)
    short = "/* The queue of a worker, in one line. */\n"
    expect_found(rule, "io/q.c", SPDX + short + LONG, 1)
    expect_found(rule, "examples/q.c", SPDX + LONG)


def test_overview_of_header():
    """an overview in a source's own header counts, in another's it does not"""
    rule = tidy_prose.rule_overviews
    for header, found in (("io/q.h", []), ("io/p.h", ["io/q.c:1"]),
                          ("net/q.h", ["io/q.c:1"])):
        sources = {"io/q.c": SPDX + LONG, header: SPDX + OVERVIEW}
        expect(findings(rule, sources), found, header)


def test_persons():
    """a task that is a person is found, in comments and in prose"""
    rule = tidy_prose.rule_persons
    for word in ("he", "He", "him", "HIS"):
        expect_found(rule, "io/q.c", f"int x; /* so {word} waits */\n", 1)
        expect_found(rule, "examples/q.c", f"/*\n * so\n * {word}\n */\n", 3)
        expect_found(rule, "tests/q.py", f"x = 1  # so {word} waits\n", 1)
        expect_found(rule, "tests/q.py",
                     f'def f():\n    """So\n\n    {word} waits."""\n', 4)
        for name in ("README.md", "docs/q.md", "CHANGELOG.md",
                     "docs/man/weft.7"):
            expect_found(rule, name, f"A task:\n\nso\n{word} waits\n", 4)
        expect_found(rule, "docs/q.md", f"| a | so {word} waits |\n", 1)


def test_persons_in_code():
    """code, quotations and longer words are no persons"""
    rule = tidy_prose.rule_persons
    expect_found(rule, "io/q.c", 'int he = his("him"); /* the, this, hiss */\n')
    expect_found(rule, "io/q.c", "/* not \"he\", he->next, his() */\n")
    expect_found(rule, "tests/q.py", 'he = "his"\nprint("""him""")\n')
    expect_found(rule, "docs/q.md", "Not `he`, nor:\n\n```c\nhis(him);\n```\n")
    expect_found(rule, "docs/man/q.3",
                 ".Bd -literal -offset indent\nhis(him);\n.Ed\n")


def test_headless():
    """a headless sentence is found where it begins"""
    rule = tidy_prose.rule_headless
    for begin in ("Who waits", "What waits", "What\n * waits"):
        expect_found(rule, "io/q.c", f"/* {begin} is woken. */\n", 1)
        expect_found(rule, "io/q.c", f"/*\n * Yes.  {begin} is woken.\n */\n", 2)
        expect_found(rule, "io/q.c", f"/*\n * Really?\n * {begin} is.\n */\n", 3)
        for label in ("OP1", "Q2", "[q.wake]", "-", "1."):
            text = f"/*\n * {label}  {begin} is woken.\n */\n"
            expect_found(rule, "io/q.c", text, 2)
    expect_found(rule, "tests/q.py", '"""One.\n\nWho waits, is woken."""\n', 3)
    expect_found(rule, "tests/q.py", "# Yes.\n# Who waits, is woken.\n", 2)
    expect_found(rule, "tests/meson.build", "# What waits\nx = 1\n", 1)
    expect_found(rule, "docs/q.md", "Two:\n- Who waits\n- What is there?\n", 2)
    expect_found(rule, "docs/q.md", "**Yes.** Who waits, is woken. Why?\n", 1)
    expect_found(rule, "docs/q.md", "# What weft does\n", 1)
    expect_found(rule, "docs/man/q.7", ".Ss What weft does\nIs it?\n", 1)
    expect_found(rule, "docs/man/q.7", "It is\n.Fn q .\nWho waits is woken.\n", 3)
    expect_found(rule, "docs/man/q.7", ".It\nWho waits\n.It\nIs it?\n", 2)


def test_questions():
    """questions, and sentences that only contain the word, are none"""
    rule = tidy_prose.rule_headless
    expect_found(rule, "io/q.c", "/* Who waits, and\n * on what?  The owner. */\n")
    expect_found(rule, "io/q.c", "/* The task sees what is there. */\n")
    expect_found(rule, "io/q.c", "/* A task, not \"Who waits\", is woken. */\n")
    expect_found(rule, "io/q.c", "/* Whose lock is held, waits in q.c. */\n")
    expect_found(rule, "io/q.c", 'x = "Who waits"; /* Whatever waits. */\n')
    expect_found(rule, "bench/q.c", "/* What would fool it: a cache. */\n")
    expect_found(rule, "docs/q.md", "# What does weft do?\n\n```\nWho it\n```\n")
    expect_found(rule, "docs/man/q.7", ".Ss What does weft do?\nIt waits.\n")


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
