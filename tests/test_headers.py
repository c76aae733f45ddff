#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each public header compiles alone, in C11 and in C++17, by gcc and clang;
and so do the macros in use (test_headers.c).  TAP."""

import pathlib
import shutil
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent
INCLUDE = TESTS.parent / "include"
FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Werror",
         f"-I{INCLUDE}"]
# Not -Wshadow in C++: struct weft_stats and weft_stats() share a name, as
# stat(2) and its struct do.
LANGUAGES = {"C11": ["-x", "c", "-std=c11", "-Wshadow", "-Wstrict-prototypes",
                     "-D_GNU_SOURCE"],
             "C++17": ["-x", "c++", "-std=c++17"]}
COMPILERS = ["gcc", "clang"]


def compile_text(compiler, language, text):
    done = subprocess.run([compiler, *FLAGS, *LANGUAGES[language], "-"],
                          input=text, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def cases():
    for header in sorted(INCLUDE.glob("weft/*.h")):
        name = f"<weft/{header.name}>"
        # Twice: the guard holds.
        yield f"{name} alone", f"#include {name}\n" * 2
    yield "the macros in use", (TESTS / "test_headers.c").read_text()


def main():
    number = failed = 0
    for what, text in cases():
        for language in LANGUAGES:
            for compiler in COMPILERS:
                number += 1
                if shutil.which(compiler):
                    error = compile_text(compiler, language, text)
                else:
                    error = f"{compiler} is not installed\n"
                failed += bool(error)
                print("not ok" if error else "ok", number,
                      f"- {what}, {language}, {compiler}", flush=True)
                sys.stderr.write(error)
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
