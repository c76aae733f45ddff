# SPDX-License-Identifier: MIT
"""Runs the functions test_* of a script, and reports each as a TAP case."""

import traceback


class Skip(Exception):
    """The machine lacks something; the text says what."""


def run(names):
    """names: the globals() of the script.  Returns its exit status."""
    tests = [t for name, t in names.items() if name.startswith("test_")]
    failed = 0
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        skipped = ""
        try:
            test()
            ok = "ok"
        except Skip as lack:
            ok, skipped = "ok", f" # SKIP {lack}"
        except Exception:
            traceback.print_exc()
            ok = "not ok"
            failed += 1
        print(f"{ok} {number} - {test.__doc__}{skipped}", flush=True)
    return 1 if failed else 0
