# SPDX-License-Identifier: MIT
"""Smoke tests of the examples in other languages; smoke_examples.py runs them."""

import concurrent.futures
import errno
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from smoke_kit import (built, expect_complaint, expect_equal, in_parallel,
                       listening, read_to_end, serving, talk, ADDRESS, PATIENCE)
from tap import Skip

# ---- store -------------------------------------------------------------------


def store_keeps_values_of_all_clients():
    with built_store() as server:
        with talk(server) as one, talk(server) as other:
            one.ask(b"set a 1 2", b"1 2")
            other.ask(b"get a", b"1 2")
            other.ask(b"set a 3", b"3")
            one.ask(b"get a", b"3")


def store_answers_each_of_50_with_its_own_errors():
    """Each answer to a wrong line is sent in a catch block."""
    wrong = (b"get none", b"error: no value"), (
        b"put a 1", b"error: get KEY, or set KEY VALUE")

    def client(i):
        with talk(server) as peer:
            for turn in range(50):
                line, answer = wrong[(i + turn) % 2]
                peer.say(line, b"set %d %d" % (i, turn), b"get %d" % i)
                peer.expect(answer, b"%d" % turn, b"%d" % turn)

    with built_store() as server, server.leaks_nothing():
        in_parallel(50, client)


def store_ends_by_a_signal_with_its_clients():
    with built_store(status=0) as server, talk(server) as peer:
        peer.ask(b"set a 1", b"1")
        server.process.send_signal(signal.SIGTERM)
        expect_equal(peer.stream.read(), b"", "after the end")


def store_says_what_is_wrong():
    with built_store() as server:
        expect_complaint("store", f"127.0.0.1:{server.port}")


def built_store(**options):
    return serving(built("store", "there is no compiler of C++"), ADDRESS,
                   **options)


# ---- ask.py ------------------------------------------------------------------

ASK = pathlib.Path(__file__).parents[2] / "examples/python/ask.py"


def start_ask(*arguments):
    # Another user may not run the one that runs this.
    python = (sys.executable if os.access(sys.executable, os.X_OK) else
              shutil.which("python3"))
    if not python:
        raise Skip("this user has no Python")
    tasks = built("tasks.so", "there is no shared library")
    if b"libc.so.6\0" not in tasks.read_bytes():
        raise Skip("Python has another C library")
    return subprocess.Popen(
        [python, "-B", ASK, tasks, *arguments], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        # A shell may have set SIGINT to be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def ask(request, *arguments):
    """Lines of the output, without the addresses."""
    with start_ask(*arguments) as process:
        said, _ = process.communicate(request, timeout=PATIENCE)
    expect_equal(process.returncode, 0, "status")
    return [line.split(": ", 1)[1] for line in said.splitlines()]


def ask_talks_to_200_servers_at_the_same_time():
    """None of them answers before the last one has its request."""
    def serve(listener):
        peers = [listener.accept()[0] for _ in range(200)]
        requests = [read_to_end(peer) for peer in peers]
        for peer, request in zip(peers, requests):
            peer.sendall(b"got " + request)
            peer.close()

    with listening(backlog=512) as (listener, port), \
            concurrent.futures.ThreadPoolExecutor(1) as pool:
        served = pool.submit(serve, listener)
        lines = ask("a line\nand another\n", *[f"127.0.0.1:{port}"] * 200)
        served.result()
    expect_equal(lines, ["23 bytes: got a line"] * 200, "the answers")


def ask_reports_each_failure():
    with listening() as (_, silent), serving("echo", ADDRESS) as echo:
        silent = f"127.0.0.1:{silent}"
        echoing = f"127.0.0.1:{echo.port}"
        lines = ask("x", "--within", "2", echoing, silent, "nowhere",
                    "127.0.0.1:1")
        expect_equal(lines, ["1 bytes: x", os.strerror(errno.ETIMEDOUT),
                             os.strerror(errno.EINVAL),
                             os.strerror(errno.ECONNREFUSED)], "the answers")
        lines = ask("x" * ((1 << 20) + 1), echoing)
        expect_equal(lines, [os.strerror(errno.EMSGSIZE)], "a long answer")


def ask_ends_by_a_signal_while_it_waits():
    with listening() as (listener, port), start_ask(
            "--within", "3600", f"127.0.0.1:{port}") as process:
        process.stdin.close()
        with listener.accept()[0] as peer:
            expect_equal(read_to_end(peer), b"", "the request")
            process.send_signal(signal.SIGINT)
            expect_equal(process.wait(PATIENCE), 130, "status")


CASES = [function for name, function in list(globals().items())
         if re.match("(store|ask)_", name)]
