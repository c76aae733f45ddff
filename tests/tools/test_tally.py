#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The results of the test runner: how they are read, counted and shown.  TAP.

The functions below whose names begin with test_ are the test cases; their first
line is the claim.
"""

import contextlib
import io
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True

import tally
import tap

PLAN = "1..3\n"
SKIPS = PLAN + ("ok 1 - one (0.0 s)\n"
                "ok 2 - two (0.1 s) # SKIP no c-ares\n"
                "ok 3 - three # SKIP\n")


def expect(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {got!r}, wanted {wanted!r}")


def cases(text, status=0):
    return tally.cases_of(text, status, tally.TAP_LINE)


def shown(text, status):
    """The lines that are printed of a script with this output, and the tally."""
    count = tally.Tally()
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        log.write_text(text)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            count.add("script", cases(text, status), log=log)
    return out.getvalue().splitlines(), count


def test_skips():
    """a case that a script skips has not passed, and is listed with its reason"""
    lines, count = shown(SKIPS, 0)
    expect(lines, ["script: 1 passed, 2 skipped"])
    expect((count.passed, count.failed), (1, []))
    expect(count.skipped, [("script: two", "no c-ares", ""),
                           ("script: three", "no reason given", "")])


def test_names():
    """the time of a case is no part of its name"""
    expect([case.name for case in cases(SKIPS)], ["one", "two", "three"])


def test_skip_of_all():
    """a script that skips all its cases has not passed"""
    count = shown("1..0 # SKIP no gdb\n", 0)[1]
    expect((count.passed, count.failed), (0, []))
    expect(count.skipped, [("script: the program itself", "no gdb", "")])


def test_failure_with_skip():
    """a case that failed is no skip"""
    lines, count = shown("1..1\nnot ok 1 - one # SKIP none\n", 1)
    expect((count.passed, len(count.failed), count.skipped), (0, 1, []))
    expect(lines[0], "script: 0 passed, 1 FAILED")


def test_last_words():
    """of a script that crashed, the words after its last case are shown, too"""
    text = PLAN + "first\nnot ok 1 - one\nok 2 - two\nlast words\n"
    for status in -11, None:
        lines, count = shown(text.replace("1..3\n", ""), status)
        expect(len(count.failed), 2)
        expect([line for line in lines if line.startswith("  | ")],
               ["  | first", "  | not ok 1 - one", "  | last words"])


def test_words_of_failures():
    """of a script that ended, the words before each failure are shown alone"""
    text = PLAN + "not ok 1 - one\nok 2 - two\nwhy\nnot ok 3 - three\nrest\n"
    expect([line for line in shown(text, 1)[0] if line.startswith("  | ")],
           ["  | 1..3", "  | not ok 1 - one", "  | why", "  | not ok 3 - three"])


sys.exit(tap.run(globals()))
