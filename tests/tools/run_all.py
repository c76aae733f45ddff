#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Build weft in several ways, run its tests in each, and count.

A stage is one build: a compiler, options, perhaps a sanitizer or an emulator.
The table in tests/tools/stages.py lists the stages, and which of them run every
day, in CI and in long runs.  A stage runs the programs that tests/meson.build
lists.  Every test case of every program counts once.  The last line gives the
numbers of passed, failed and skipped cases.  The lines before it name the cases
that failed, each with the command that repeats it, and those that were skipped.
Builds and complete outputs stay in build/test-STAGE and build/test-logs.
"""

import argparse
import os
import re
import signal
import sys
import time

import process
from conditions import CONDITIONS
from runner import LOGS, SCRATCH, Runner
from schedule import Schedule
from stages import LEVELS, STAGES
from tally import Tally

# Programs that sleep, or run alone, leave processors idle: a run takes so many
# times the time that its work would.
IDLE = 1.23


def arguments():
    parser = argparse.ArgumentParser(
        prog="run test", description="Build and run the tests, and count.")
    parser.add_argument("--all", action="store_true",
                        help="what CI runs: all stages in full")
    parser.add_argument("--long", action="store_true",
                        help="also the stages that take hours")
    parser.add_argument("--elsewhere", metavar="CONDITION,...", nargs="?",
                        const=",".join(c.name for c in CONDITIONS),
                        help="under conditions of other machines; all, or "
                             "some of: "
                             + ", ".join(c.name for c in CONDITIONS))
    parser.add_argument("--only", metavar="STAGE,...", default="",
                        help="these in full: "
                             + ", ".join(s.name for s in STAGES))
    parser.add_argument("--brief", action="store_true",
                        help="those of --only as they are every day")
    parser.add_argument("--match", metavar="REGEX", default="",
                        type=re.compile, help="only programs of such a name")
    parser.add_argument("--arm64", metavar="DIR", help=argparse.SUPPRESS)
    parser.add_argument("--musl", metavar="DIR", help=argparse.SUPPRESS)
    parser.add_argument("--kernels", metavar="DIR", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.match = re.compile(options.match)
    options.stages = chosen(parser, options)
    return options


def chosen(parser, options):
    """The stages, brief or in full."""
    names = [name for name in options.only.split(",") if name]
    names += [f"elsewhere-{name}"
              for name in (options.elsewhere or "").split(",") if name]
    unknown = set(names) - {s.name for s in STAGES}
    if unknown:
        parser.error(f"no such stage: {', '.join(sorted(unknown))}")
    level = ("everyday" if options.brief else
             "long" if options.long else "all" if options.all else
             None if names else "everyday")
    levels = LEVELS.get(level, ()) if not options.only else ()
    return [s.for_level(level) for s in STAGES
            if s.level in levels or s.name in names]


def announce(options, slots):
    """The estimated time, from measurements; empty for a choice of tests."""
    seconds = sum(stage.estimate_s() for stage in options.stages)
    minutes = max(1, round(seconds / slots * IDLE / 60))
    if options.match.pattern:
        return
    if any(stage.level in ("long", "elsewhere") for stage in options.stages):
        print("this takes hours", flush=True)
    elif seconds:
        print(f"this takes about {minutes} minutes on {slots} processors, if "
              f"they do nothing else", flush=True)


def summarize(runners, seconds):
    """Stages overlap: their wall times add up to more than the whole."""
    print(f"\n{'stage':24}{'wall s':>8}{'CPU s':>8}")
    total = 0
    for name, wall_s, cpu_s in (runner.figures() for runner in runners):
        print(f"{name:24}{wall_s:8.0f}{cpu_s:8.0f}")
        total += cpu_s
    print(f"{'in all':24}{seconds:8.0f}{total:8.0f}", flush=True)


def main():
    options = arguments()
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, process.stop)
    for folder in LOGS, SCRATCH:
        folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    tally = Tally()
    slots = len(os.sched_getaffinity(0))
    announce(options, slots)
    schedule = Schedule(slots, tally)
    runners = [Runner(stage, tally, schedule, options)
               for stage in options.stages]
    for runner in runners:
        runner.start()
    schedule.run()
    summarize(runners, time.monotonic() - start)
    return tally.report()


if __name__ == "__main__":
    sys.exit(main())
