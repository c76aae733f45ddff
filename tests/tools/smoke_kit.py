# SPDX-License-Identifier: MIT
"""Shared by the smoke tests of the examples: programs, sockets, verdicts."""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import select
import socket
import subprocess
import sys
import threading
import time

import tap

PATIENCE = 20
# Where the built programs are.
PROGRAMS = pathlib.Path(sys.argv[1]).absolute() if sys.argv[1:] else None


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(map(str, what)))


def expect_equal(got, wanted, what):
    """Shows where two texts begin to differ."""
    if got != wanted and isinstance(got, (str, bytes)):
        start = max(0, len(os.path.commonprefix([got, wanted])) - 100)
        what = f"{what}, from {start} on"
        got, wanted = got[start:start + 500], wanted[start:start + 500]
    expect(got == wanted, f"{what}:\n  got    {got!r}\n  wanted {wanted!r}")


class Server:
    def __init__(self, process):
        self.process = process
        ready = select.select([process.stdout], [], [], PATIENCE)[0]
        line = process.stdout.readline() if ready else "nothing"
        match = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", line)
        expect(match, process.args, "said", repr(line))
        self.port = int(match.group(1))

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @contextlib.contextmanager
    def leaks_nothing(self):
        exchange(self, b"")  # so that its set-up is complete
        before = self.descriptors()
        yield
        end = time.monotonic() + PATIENCE
        while self.descriptors() > before:
            expect(time.monotonic() < end, "it had", before, "descriptors and",
                   "has now", self.descriptors())
            time.sleep(0.005)


@contextlib.contextmanager
def serving(name, *arguments, status=None):
    """A server that runs until the end of the block, or ends there by itself,
    with a status."""
    process = subprocess.Popen(
        [PROGRAMS / name, *map(str, arguments)], text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        yield Server(process)
        if status is None:
            expect(process.poll() is None, name, "ended", process.returncode)
        else:
            expect_equal(process.wait(PATIENCE), status, name)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def run(name, *arguments, stdin=""):
    return subprocess.run([PROGRAMS / name, *map(str, arguments)], text=True,
                          input=stdin, capture_output=True, timeout=PATIENCE)


def has_names():
    """Whether weft was built with c-ares."""
    return "Function not implemented" not in run("resolve").stderr


def expect_complaint(name, *arguments):
    """One sentence, about the last argument."""
    done = run(name, *arguments)
    expect_equal(done.returncode, 1, arguments)
    expect(done.stderr.count("\n") == 1 and str(arguments[-1]) in done.stderr,
           name, "said", repr(done.stderr))


def read_exactly(peer, size):
    data = bytearray()
    while len(data) < size:
        piece = peer.recv(min(65536, size - len(data)))
        expect(piece, "the stream ended after", len(data), "of", size)
        data += piece
    return bytes(data)


def read_header(peer):
    header = b""
    while not header.endswith(b"\r\n\r\n"):
        header += read_exactly(peer, 1)
    return header


def read_to_end(peer):
    data = bytearray()
    while piece := peer.recv(65536):
        data += piece
    return bytes(data)


def exchange(server, data):
    """Sends all while it reads all, then half-closes, then reads to the end."""
    with server.connect() as peer:
        sender = threading.Thread(target=lambda: (
            peer.sendall(data), peer.shutdown(socket.SHUT_WR)))
        sender.start()
        got = read_to_end(peer)
        sender.join()
        return got


def in_parallel(count, function):
    """Runs function(0 ... count - 1), each in a thread."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        list(pool.map(function, range(count)))


def reset(peer):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                    b"\1\0\0\0\0\0\0\0")
    peer.close()


def test_all(cases):
    return tap.report([(test.__name__, test) for test in cases])
