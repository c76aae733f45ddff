#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""liveness.py BENCH_LIVENESS CASE: the bars of fairness and liveness.  TAP.

Each case is one of bench_liveness, with its limits, but shortened; with
WEFT_TEST_LONG it has its full length.  The limits are on a real clock, and
the machine may have other things to do:

  - A test has three attempts, of which one must keep every limit.  A fault of
    the scheduler does not depend on luck: it shows in all three.
  - An attempt during which other programs used the machine does not count if
    it misses a limit by less than tenfold.  If none of four attempts counts,
    the test passes, and its output gives this reason.

With a safeguard switched off (WEFT_TEST_HELP, WEFT_TEST_TIMER_SHARDS, WEFT_TEST_TURN)
there is one attempt, of fewer turns.  Only a miss by tenfold, or a program that
does not end, is reported as a failure, so that a slow machine does not look
like a missing safeguard.
"""

import os
import re
import resource
import subprocess
import sys
import time

MISSES = 3      # attempts that must fail
ATTEMPTS = 4
FAR = 10        # times the limit
OTHERS = 0.05   # share of a core: above it the attempt is blurred
PATIENCE = 50   # seconds; with WEFT_TEST_LONG ten times that

# For each case: the numbers of workers; the options for everyday runs, for
# --long, and without a safeguard.  A turn of hog_echo and hog_timer takes a
# second and a pause; four turns have every pattern of both.  A turn of hog_lifo
# and hog_submit ends with the answer.
TURNS_WHOLE = ((2,), "--reps 4", "", "--reps 2")
TURNS_SHORT = ((2,), "--reps 20", "", "--reps 2")
CASES = {
    "hog_echo": TURNS_WHOLE, "hog_echo_busy": TURNS_WHOLE,
    "hog_timer": TURNS_WHOLE, "hog_timer_busy": TURNS_WHOLE,
    "hog_lifo": TURNS_SHORT, "hog_lifo_busy": TURNS_SHORT,
    "hog_submit": TURNS_SHORT, "hog_submit_busy": TURNS_SHORT,
    "fairness": ((1, 2, 3, 4), "", "", ""),
    "gap": ((1, 2), "--secs 0.5", "", ""),
    "outside": ((1, 2), "--reps 300", "", "--reps 50"),
    "idle": ((1, 2), "--secs 1", "", ""),
    "handover": ((2,), "--reps 20", "", ""),
}

SWITCHES = "WEFT_TEST_HELP", "WEFT_TEST_TIMER_SHARDS", "WEFT_TEST_TURN"
LIMIT = re.compile(r"FAILED (\w+), .*: ([\d.]+) \S*, limit ([\d.]+)$")


def say(text):
    for line in text.splitlines():
        print("#", line, flush=True)


def by_far(text):
    """Whether a limit was missed by FAR, or something else failed."""
    missed = [LIMIT.match(line) for line in text.splitlines()
              if line.startswith("FAILED")]
    # gap_not_counted: the machine was too busy for a measurement.
    return not missed or any(
        not match or (match[1] != "gap_not_counted"
                      and float(match[2]) >= FAR * float(match[3]))
        for match in missed)


def seconds_used():
    """Seconds of all programs, and of those that were started here."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, *irqs = map(int, stat.readline().split()[1:9])
    ours = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ((user + nice + system + sum(irqs)) / os.sysconf("SC_CLK_TCK"),
            ours.ru_utime + ours.ru_stime)


def attempt(command, patience):
    """Whether all limits were kept, the output, and what others used."""
    start, before = time.monotonic(), seconds_used()
    try:
        done = subprocess.run(command, text=True, timeout=patience,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        kept, text = done.returncode == 0, done.stdout
    except subprocess.TimeoutExpired:
        kept, text = False, f"FAILED to end in {patience} s"
    everybody, ours = (b - a for a, b in zip(before, seconds_used()))
    return kept, text, (everybody - ours) / (time.monotonic() - start)


def passes(command, patience, unsafe):
    misses = 0
    for number in range(1, ATTEMPTS + 1):
        say(f"attempt {number}: {' '.join(command[1:])}")
        kept, text, others = attempt(command, patience)
        say(text)
        say(f"others used {others * 100:.0f}% of a core")
        if kept or (unsafe and not by_far(text)):
            return True
        misses += others < OTHERS or by_far(text)
        if misses == MISSES or unsafe:
            return False
    say("others were at work: limits were missed, but not by tenfold")
    return True


def main():
    bench, case = sys.argv[1:]
    workers, brief, whole, few = CASES[case]
    long = bool(os.environ.get("WEFT_TEST_LONG"))
    unsafe = any(os.environ.get(name) == "off" for name in SWITCHES)
    options = (few if unsafe else whole if long else brief).split()
    if unsafe:
        workers = workers[:1]  # more may make up for it by stealing
    print(f"1..{len(workers)}")
    for i, count in enumerate(workers, 1):
        passed = passes([bench, case, "--check", "--workers", str(count),
                         *options], PATIENCE * (10 if long else 1), unsafe)
        print(f"{'' if passed else 'not '}ok {i} - "
              f"{case}_with_{count}_workers", flush=True)


if __name__ == "__main__":
    main()
