# SPDX-License-Identifier: MIT
"""A program that the runner starts: its status, output and CPU time."""

import os
import pathlib
import select
import signal
import subprocess
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The programs that run now, which must end with the runner.
running = set()


class Clock:
    """The CPU seconds of the programs of a stage."""

    def __init__(self):
        self.cpu_s = 0.0
        self.lock = threading.Lock()

    def add(self, seconds):
        with self.lock:
            self.cpu_s += seconds


def stop(*_):
    for process in list(running):
        end_group(process)
    os._exit(130)


def end_group(process, number=signal.SIGKILL):
    """Ends a program and all that it started."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def run(command, log, env=None, timeout=None, folder=ROOT, clock=None):
    """Exit status, or -signal, or None after the timeout; output to log."""
    with open(log, "w") as output:
        process = subprocess.Popen(
            [str(c) for c in command], stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, env={**os.environ, **(env or {})},
            cwd=folder, start_new_session=True)
    running.add(process)
    ended = wait(process, timeout)
    end_group(process)
    # Not process.wait(), which does not return the CPU time.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    running.discard(process)
    if clock:
        clock.add(usage.ru_utime + usage.ru_stime)
    return process.returncode if ended else None


def wait(process, timeout):
    """Returns whether the program ended in time.  It is not reaped, so that its
    group's number is not reused before the group is ended."""
    descriptor = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(None if timeout is None else timeout * 1000))
    finally:
        os.close(descriptor)


def problem(status):
    """None if all is well."""
    return None if status == 0 else ending(status)


def ending(status):
    if status is None:
        return "did not end in time"
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
