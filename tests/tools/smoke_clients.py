# SPDX-License-Identifier: MIT
"""Smoke tests of the examples over the libraries of adapters/, with real
servers; smoke_examples.py runs them."""

import contextlib
import re
import shutil
import socket
import subprocess
import tempfile
import time

import smoke_kit
from smoke_kit import expect_complaint, expect_equal, run, PATIENCE
from tap import Skip


def built(name):
    if not (smoke_kit.PROGRAMS / name).exists():
        raise Skip(f"{name} is not built: its library is missing")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def listens(port, process):
    """Whether it soon does; it ends if another process has its port."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), \
                socket.create_connection(("127.0.0.1", port), 1):
            return True
        time.sleep(0.01)
    return False


@contextlib.contextmanager
def server(*command):
    """A server on a free port, which stands for {port} in its command, and with
    a directory that stands for {dir}; its port."""
    if not shutil.which(command[0]):
        raise Skip(f"no {command[0]}")
    with tempfile.TemporaryDirectory() as place:
        for _ in range(20):
            port = free_port()
            words = [word.format(port=port, dir=place) for word in command]
            process = subprocess.Popen(words, cwd=place,
                                       stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            try:
                if listens(port, process):
                    yield port
                    return
            finally:
                process.kill()
                process.wait()
        raise AssertionError(f"{command[0]} does not serve")


# ---- tally --------------------------------------------------------------------


def redis():
    built("tally")
    return server("redis-server", "--bind", "127.0.0.1", "--port", "{port}",
                  "--dir", "{dir}", "--save", "")


def tally_counts_the_words_of_its_input():
    with redis() as port:
        words = [f"w{i}" for i in range(12) for _ in range(100 * (i + 1))]
        text = "\n".join(" ".join(words[i::7]) for i in range(7)) + "\n"
        for _ in range(2):  # the first run leaves nothing behind
            done = run("tally", f"127.0.0.1:{port}", stdin=text)
            expect_equal((done.returncode, done.stderr), (0, ""), "tally")
            expect_equal(done.stdout, "".join(
                f"{100 * (i + 1):>6} w{i}\n" for i in range(11, 1, -1)),
                "its output")


def tally_says_what_is_wrong():
    built("tally")
    expect_complaint("tally", f"127.0.0.1:{free_port()}")
    expect_complaint("tally", "nowhere")
    expect_equal(run("tally").returncode, 2, "usage")


CASES = [function for name, function in list(globals().items())
         if re.match("tally_", name)]
