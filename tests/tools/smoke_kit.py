# SPDX-License-Identifier: MIT
"""Shared by the smoke tests of the examples: programs, sockets, verdicts."""

import concurrent.futures
import contextlib
import functools
import os
import pathlib
import re
import resource
import select
import socket
import subprocess
import sys
import time

import tap
from tap import Skip

PATIENCE = 20
ADDRESS = "127.0.0.1:0"
# Where the built programs are.
PROGRAMS = pathlib.Path(sys.argv[1]).absolute() if sys.argv[1:] else None


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(map(str, what)))


def expect_equal(got, wanted, what):
    """Shows where two texts begin to differ."""
    if (got != wanted and type(got) is type(wanted) and
            isinstance(got, (str, bytes))):
        start = max(0, len(os.path.commonprefix([got, wanted])) - 100)
        what = f"{what}, from {start} on"
        got, wanted = got[start:start + 500], wanted[start:start + 500]
    expect(got == wanted, f"{what}:\n  got    {got!r}\n  wanted {wanted!r}")


def soon(condition, what, process=None):
    """Waits until the condition holds, looking again and again; the process may
    not end meanwhile."""
    end = time.monotonic() + PATIENCE
    while not condition():
        expect(process is None or process.poll() is None, "it ended, before",
               what)
        expect(time.monotonic() < end, "not in time:", what)
        time.sleep(0.005)


def one_of_three(case):
    """A case that a busy machine may hold up for too long: one of three runs
    must pass."""
    @functools.wraps(case)
    def repeated():
        for _ in range(2):
            with contextlib.suppress(AssertionError, OSError):
                return case()
        return case()
    return repeated


# ---- Programs ----------------------------------------------------------------

def built(name, lack="its library is missing"):
    """The path of a program that is not built everywhere."""
    program = PROGRAMS / name
    if not program.exists():
        raise Skip(f"{name} was not built: {lack}")
    return program


def may_lock(size):
    """May the programs of this user lock that many bytes for their rings?"""
    status = pathlib.Path("/proc/self/status").read_text()
    capable = int(re.search(r"^CapEff:\s+(\w+)", status, re.M)[1], 16)
    allowed = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return (capable >> 14 & 1 or  # CAP_IPC_LOCK
            allowed == resource.RLIM_INFINITY or allowed >= size)


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

    def memory(self, field="VmHWM"):
        """Bytes that it has in memory, or had at most."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s+(\d+) kB", status,
                             re.M)[1]) << 10

    @contextlib.contextmanager
    def leaks_nothing(self):
        exchange(self, b"")  # so that its set-up is complete
        before = self.descriptors()
        yield
        soon(lambda: self.descriptors() <= before,
             f"as few descriptors as before, which were {before}")

    def refuses(self):
        """Whether it listens no more."""
        try:
            self.connect().close()
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:
            pass
        return False


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


@contextlib.contextmanager
def start(name, *arguments):
    """A program and its pipes; it must end before the block does."""
    with subprocess.Popen(
            [PROGRAMS / name, *arguments], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def expect_complaint(name, *arguments):
    """One sentence, about the last argument."""
    done = run(name, *arguments)
    expect_equal(done.returncode, 1, arguments)
    expect(done.stderr.count("\n") == 1 and str(arguments[-1]) in done.stderr,
           name, "said", repr(done.stderr))


# ---- Sockets -----------------------------------------------------------------

@contextlib.contextmanager
def listening(host="127.0.0.1", **options):
    """A listener, and its port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family, **options) as listener:
        listener.settimeout(PATIENCE)
        yield listener, listener.getsockname()[1]


def unused_port():
    with listening() as (_, port):
        return port


@contextlib.contextmanager
def held_port():
    """A port that no other process gets in the meantime.  It refuses connections,
    except while a program of the test listens there, which SO_REUSEADDR
    allows."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def accepted(listener):
    peer = listener.accept()[0]
    peer.settimeout(PATIENCE)
    return peer


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


@contextlib.contextmanager
def asking(name, paths, *options):
    """A program that asks a server for paths: yields its process, and its
    connections by path, when all of them have sent their requests."""
    with listening() as (listener, port), contextlib.ExitStack() as stack:
        process = stack.enter_context(
            start(name, *options, f"127.0.0.1:{port}", *paths))
        peers = {}
        for _ in paths:
            peer = stack.enter_context(accepted(listener))
            peers[read_header(peer).split()[1].decode()] = peer
        yield process, peers


def exchange_over(peer, data, taken=False):
    """Sends all while it reads all, then half-closes, then reads to the end.
    taken: the other end must take all, so that no reset destroys its answer."""
    def send():
        peer.sendall(data)
        peer.shutdown(socket.SHUT_WR)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        sent = pool.submit(send)
        got = read_to_end(peer)
    if taken:
        sent.result()
    return got


def exchange(server, data, taken=False):
    with server.connect() as peer:
        return exchange_over(peer, data, taken)


def in_parallel(count, function):
    """Runs function(0 ... count - 1), each in a thread."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        list(pool.map(function, range(count)))


def reset(peer):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                    b"\1\0\0\0\0\0\0\0")
    peer.close()


def expect_half_close(early, late):
    """The end of one direction is passed on; the other direction stays open."""
    early.sendall(b"all I have")
    early.shutdown(socket.SHUT_WR)
    expect_equal(read_to_end(late), b"all I have", "one way")
    data = os.urandom(300_000)
    late.sendall(data)
    late.shutdown(socket.SHUT_WR)
    expect_equal(read_to_end(early), data, "the other way, after")


def expect_gone(gone, other):
    """The other end is told that this one is gone."""
    reset(gone)
    with contextlib.suppress(ConnectionResetError):
        expect_equal(other.recv(1), b"", "from nobody")


class Talk:
    """A connection of lines."""

    def __init__(self, peer):
        self.peer = peer
        self.stream = peer.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.peer.close()

    def say(self, *lines):
        self.peer.sendall(b"".join(line + b"\n" for line in lines))

    def line(self):
        line = self.stream.readline()
        expect(line.endswith(b"\n"), "no whole line:", line)
        return line[:-1]

    def expect(self, *lines):
        for line in lines:
            expect_equal(self.line(), line, "a line")

    def ask(self, line, answer):
        self.say(line)
        self.expect(answer)


def talk(server):
    return Talk(server.connect())


# ---- Verdicts ----------------------------------------------------------------


def test_all(cases):
    return tap.report([(test.__name__, test) for test in cases])
