# SPDX-License-Identifier: MIT
"""Smoke tests of the examples that run commands; smoke_examples.py runs
them."""

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile

from smoke_kit import PATIENCE, PROGRAMS, expect, expect_equal, run, soon


@contextlib.contextmanager
def file_of(text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "file"
        path.write_text(text)
        yield path


# ---- runner ------------------------------------------------------------------

RULES = """# the first is made if none is named
all: left right
\techo all
left: base
\techo left; echo error >&2
right: base
\techo right
base:
\techo base
bad: base
\techo before; exit 3
worse: bad
\techo never
both: worse left
loop: loop
"""


def made(done):
    return [line.split("]")[0][1:] for line in done.stdout.splitlines()
            if line.startswith("[") and "failed" not in line]


def runner_makes_what_is_needed_in_order():
    with file_of(RULES) as path:
        for jobs in 1, 4:
            done = run("runner", "-j", jobs, path)
            expect_equal((done.returncode, done.stderr), (0, ""), "runner")
            order = made(done)
            expect_equal((order[0], sorted(order[1:3]), order[3]),
                         ("base", ["left", "right"], "all"), "order")
            expect("echo error >&2\nleft\nerror\n" in done.stdout,
                   repr(done.stdout))
        expect_equal(made(run("runner", path, "right")), ["base", "right"],
                     "one target")


def runner_stops_at_a_failure_or_goes_on():
    with file_of(RULES) as path:
        done = run("runner", "-j1", path, "bad", "worse")
        expect_equal((done.returncode, made(done)), (1, ["base", "bad"]),
                     "the first failure")
        expect("before\n[bad] failed: status 3" in done.stdout,
               repr(done.stdout))
        done = run("runner", "-k", "-j1", path, "both")
        expect_equal((done.returncode, sorted(made(done))),
                     (1, ["bad", "base", "left"]), "with -k")


def runner_ends_its_commands_when_interrupted():
    with file_of("all:\n\techo $$ > pid; exec sleep 1000\n") as path:
        process = subprocess.Popen([PROGRAMS / "runner", path],
                                   stdout=subprocess.DEVNULL, cwd=path.parent)
        try:
            pid = path.parent / "pid"
            soon(lambda: pid.exists() and pid.read_text().endswith("\n"),
                 "the command")
            process.send_signal(signal.SIGINT)
            expect_equal(process.wait(PATIENCE), 128 + signal.SIGINT, "status")
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid.read_text()), signal.SIGKILL)
                expect(False, "the command is left")
        finally:
            process.kill()
            process.wait()


def runner_says_what_is_wrong():
    with file_of(RULES) as path:
        for target in "loop", "none":
            done = run("runner", path, target)
            expect_equal((done.returncode, done.stdout), (1, ""), target)
            expect(target in done.stderr, repr(done.stderr))
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAMS / "runner", path], stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        expect_equal((done.returncode, done.stderr),
                     (1, b"runner: output: cannot be written\n"), "full disk")
    with file_of("\tno target\n") as path:
        expect_equal(run("runner", path).returncode, 1, "no target")
    expect_equal(run("runner").returncode, 2, "usage")
    expect_equal(run("runner", "-j", "0", "x").returncode, 2, "usage")


# ---- supervise ---------------------------------------------------------------

@contextlib.contextmanager
def supervising(text, *arguments):
    """Its output goes to a file, which can be read at any time."""
    with file_of(text) as path, open(path.parent / "out", "w+") as out:
        process = subprocess.Popen(
            [PROGRAMS / "supervise", *arguments, path], stdout=out,
            stdin=subprocess.DEVNULL, cwd=path.parent)
        try:
            yield process, path.parent
        finally:
            process.kill()
            process.wait()


def said(folder):
    return (folder / "out").read_text().splitlines()


def supervise_restarts_and_ends_in_order():
    text = ("first: echo here; exec sleep 1000\n"
            "second: echo again >&2; exit 3\n"
            "third: trap 'echo bye; exit 0' TERM; echo here; "
            "while :; do sleep 0.01; done\n")
    with supervising(text) as (process, folder):
        soon(lambda: said(folder).count("second: again") > 1, "a restart")
        soon(lambda: {"first: here", "third: here"} <= set(said(folder)),
             "output of both")
        process.send_signal(signal.SIGUSR1)
        soon(lambda: [s for s in said(folder) if "first: runs, process" in s],
             "the state")
        pid = int(next(s for s in said(folder) if "first: runs" in s)
                  .split("process ")[1].split(",")[0])
        process.send_signal(signal.SIGTERM)
        expect_equal(process.wait(PATIENCE), 0, "status")
        ends = [s for s in said(folder) if s.endswith(": ended")]
        expect_equal(ends, ["third: ended", "second: ended", "first: ended"],
                     "the order")
        expect("third: bye" in said(folder), said(folder))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            expect(False, "process", pid, "is left")


def supervise_writes_logs():
    with supervising("one: echo to a log; exec sleep 1000\n", "-d", ".") as (
            process, folder):
        log = folder / "one.log"
        soon(lambda: log.exists() and log.read_text() == "to a log\n",
             "the log")
        process.send_signal(signal.SIGINT)
        expect_equal(process.wait(PATIENCE), 0, "status")


def supervise_does_not_wait_for_what_left_the_group():
    text = "one: setsid sleep 1000 & echo $! > pid; exec sleep 1000\n"
    with supervising(text) as (process, folder):
        pid = folder / "pid"
        soon(lambda: pid.exists() and pid.read_text().endswith("\n"),
             "the process")
        try:
            # It is out of the group.
            soon(lambda: os.getsid(int(pid.read_text())) ==
                 int(pid.read_text()), "a session")
            process.send_signal(signal.SIGTERM)
            expect_equal(process.wait(PATIENCE), 0, "status")
        finally:
            os.kill(int(pid.read_text()), signal.SIGKILL)


def supervise_says_what_is_wrong():
    with file_of("no command\n") as path:
        for file in path, "/nowhere/at all":
            done = run("supervise", file)
            expect_equal(done.returncode, 1, file)
            expect(str(file) in done.stderr, repr(done.stderr))
    expect_equal(run("supervise").returncode, 2, "usage")


CASES = [runner_makes_what_is_needed_in_order,
         runner_stops_at_a_failure_or_goes_on,
         runner_ends_its_commands_when_interrupted, runner_says_what_is_wrong,
         supervise_restarts_and_ends_in_order, supervise_writes_logs,
         supervise_does_not_wait_for_what_left_the_group,
         supervise_says_what_is_wrong]
