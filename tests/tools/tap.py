# SPDX-License-Identifier: MIT
"""Reports the cases of a script as TAP."""

import sys
import time
import traceback


class Skip(Exception):
    """The machine lacks something; the text says what."""


def report(cases):
    """Runs cases, titles and functions.  Returns the exit status."""
    failed = 0
    print(f"1..{len(cases)}")
    for number, (title, test) in enumerate(cases, 1):
        start = time.monotonic()
        verdict, why = "ok", ""
        try:
            test()
        except Skip as lack:
            why = f" # SKIP {lack}"
        except Exception:
            traceback.print_exc()
            verdict = "not ok"
            failed += 1
        print(f"{verdict} {number} - {title} "
              f"({time.monotonic() - start:.1f} s){why}", flush=True)
    return 1 if failed else 0


def run(names):
    """names: the globals() of a script, whose functions test_* are the cases;
    their first line is the title."""
    return report([(test.__doc__, test) for name, test in names.items()
                   if name.startswith("test_")])


def judge(claims):
    """claims: titles, and a list of lines for each that say what is wrong.
    Returns the exit status."""
    number = failed = 0
    for number, (title, wrong) in enumerate(claims, 1):
        failed += bool(wrong)
        for line in wrong:
            print(line, file=sys.stderr, flush=True)
        print("not ok" if wrong else "ok", number, "-", title, flush=True)
    print(f"1..{number}")
    return 1 if failed else 0
