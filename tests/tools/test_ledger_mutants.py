#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The list of the ledger's mutants is checked as it should be.  TAP.

The functions below whose names begin with test_ are the test cases; their first
line is the claim.
"""

import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).parents[1] / "model"))

import ledger_mutants
import tap

LEDGER = """| row | what | proof |
|---|---|---|
| V01 (!L1) | so | `test_q: one`, `two`; `model_q`, all models |
| V02 | so | see V01 |
"""
BLOCK = """V01: it is two
file: q.c
test: test_q: two
-int x = 1;
+int x = 2;
"""


def checked(block, source="int x = 1;\nint y;\n"):
    """The error of the only mutant of a list, or the text that it makes."""
    with tempfile.TemporaryDirectory() as folder:
        root, ledger_mutants.ROOT = ledger_mutants.ROOT, pathlib.Path(folder)
        try:
            (ledger_mutants.ROOT / "docs").mkdir()
            for name, text in (("docs/LEDGER.md", LEDGER), ("q.c", source),
                               ("list", "# A list.\n\n" + block)):
                (ledger_mutants.ROOT / name).write_text(text)
            mutant, = ledger_mutants.mutants_read(ledger_mutants.ROOT / "list")
            mutant.check(ledger_mutants.rows_read())
            return mutant.text()
        except (ledger_mutants.Wrong, SystemExit) as wrong:
            return str(wrong)
        finally:
            ledger_mutants.ROOT = root


def expect(got, wanted):
    if wanted not in got:
        raise AssertionError(f"got {got!r}, wanted {wanted!r}")


def test_change():
    """a mutant is its file with these lines changed"""
    expect(checked(BLOCK), "int x = 2;\nint y;\n")
    expect(checked(BLOCK + " int y;\n"), "int x = 2;\nint y;\n")
    expect(checked(BLOCK.replace("+int x = 2;\n", "")), "int y;\n")
    expect(checked(BLOCK, "int x = 0;\nint x = 1;\n"),
           "int x = 0;\nint x = 2;\n")


def test_once():
    """a text that occurs never, in a part of a line, or twice is an error"""
    for source, times in (("int y;\n", 0), ("int x = 1; /**/\n", 0),
                          ("\tint x = 1;\n", 0), ("int x = 1;\n" * 2, 2)):
        expect(checked(BLOCK, source), f"occurs {times} times in q.c")


def test_row():
    """a row that is not there or does not name the test is an error"""
    for old, new in (("V01:", "V02:"), ("V01:", "V03:"), ("q: two", "q: one_"),
                     ("test_q:", "model_q:"), ("test_q:", "test_r:")):
        expect(checked(BLOCK.replace(old, new)), "does not name")
    expect(checked(BLOCK.replace("q: two", "q: one")), "int x = 2;")


def test_form():
    """a block without its file, its test or a change is refused"""
    for line in BLOCK.splitlines(keepends=True)[:3]:
        expect(checked(BLOCK.replace(line, "")), "this is no mutant")
    expect(checked(BLOCK.replace("-int", "int")), "this is no mutant")


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
