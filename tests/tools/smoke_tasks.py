# SPDX-License-Identifier: MIT
"""Smoke tests of the examples whose tasks share something; smoke_examples.py
runs them."""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import select
import signal
import socket
import tempfile
import threading
import time

from smoke_kit import (asking, exchange, exchange_over, expect,
                       expect_complaint, expect_equal, in_parallel,
                       one_of_three, read_exactly, reset, run, serving, soon,
                       start, talk, ADDRESS, PATIENCE, Talk)

LONG_MS = 1_000_000  # is longer than the patience


def slow_talk(server):
    """A connection with small buffers, which are soon full."""
    peer = socket.socket()
    peer.settimeout(PATIENCE)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.connect(("127.0.0.1", server.port))
    return Talk(peer)


def lines_to_be_missed(size):
    """How many lines of that size are more than the kernel keeps for a reader
    with small buffers, whatever its limits are."""
    kept = 4 << 20
    with contextlib.suppress(OSError):
        limits = pathlib.Path("/proc/sys/net/ipv4/tcp_wmem").read_text()
        kept = int(limits.split()[2])
    return min((10_000_000 + kept) // size, 999_999)  # as they are numbered


# ---- chat -------------------------------------------------------------------

def chatter(server):
    client = talk(server)
    client.expect(b"* welcome")
    return client


def chat_passes_lines_to_all_others():
    with serving("chat", ADDRESS) as server, chatter(server) as a, \
            chatter(server) as b, chatter(server) as c:
        a.say(b"one", b"")
        b.expect(b"one", b"")
        b.say(b"two")
        a.expect(b"two")
        for piece in b"thr", b"ee\nfo", b"ur\nfive":
            a.peer.sendall(piece)
        c.expect(b"one", b"", b"two", b"three", b"four")
        a.peer.shutdown(socket.SHUT_WR)
        expect_equal(a.stream.read(), b"", "after all")
        b.expect(b"three", b"four", b"five")
        c.expect(b"five")


def chat_passes_long_lines_in_pieces():
    long = os.urandom(5000).hex().encode()
    with serving("chat", ADDRESS) as server, chatter(server) as a, \
            chatter(server) as b:
        a.say(long, b"end")
        got = b""
        while not got.endswith(b"end"):
            got += b.line()
        expect_equal(got, long + b"end", "the pieces")


TEXT = b"x" * 480


def count_missed(client, pattern, kinds, count):
    """Reads the numbered lines of some kinds up to the last ones.  They must be
    whole and in order, except those that the server reports as missed; returns
    the number of these.  The pattern's groups are a kind and a number, or a
    kind and a count of missed lines."""
    next_number, told = dict.fromkeys(kinds, 0), 0
    while kinds:
        line = client.line()
        found = re.fullmatch(pattern, line)
        expect(found, "no such line:", line)
        kind, number, missed_kind, missed = found.groups()
        if missed:
            next_number[missed_kind] += int(missed)
            told += int(missed)
        else:
            expect_equal(int(number), next_number[kind], "its number")
            next_number[kind] += 1
            if int(number) == count - 1:
                kinds = kinds - {kind}
    return told


def chat_tells_a_slow_reader_what_it_missed():
    count = lines_to_be_missed(len(TEXT))
    pattern = rb"()(\d{6}) x{480}|\*() missed (\d+) lines"
    with serving("chat", ADDRESS) as server, slow_talk(server) as slow, \
            chatter(server) as sender, chatter(server) as other:
        slow.expect(b"* welcome")
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            listener = thread.submit(
                count_missed, other, pattern, {b""}, count)
            for i in range(count):
                sender.say(b"%06d %s" % (i, TEXT))
            listener.result(PATIENCE)
        expect(count_missed(slow, pattern, {b""}, count) > 0,
               "the slow one missed nothing")


def chat_forgets_who_leaves():
    with serving("chat", ADDRESS) as server, server.leaks_nothing():
        for i in range(20):
            # The lines of the previous client may still arrive.
            got = exchange(server, b"own\n" * i)
            expect(got.startswith(b"* welcome\n"), got)
            expect(b"own" not in got, got)
            client = chatter(server)
            client.say(b"x" * 1000)
            client.stream.close()
            reset(client.peer)


def servers_say_what_is_wrong():
    for name in "chat", "drain", "limiter", "pubsub":
        with serving(name, ADDRESS) as server:
            for address in "nowhere", f"127.0.0.1:{server.port}":
                expect_complaint(name, address)


# ---- drain ------------------------------------------------------------------

def drain_lets_connections_finish():
    data = os.urandom(1 << 20)
    with serving("drain", ADDRESS, "--grace-ms", LONG_MS, status=0) as server, \
            server.connect() as first, talk(server) as second:
        first.sendall(b"before")
        expect_equal(read_exactly(first, 6), b"before", "echoed")
        second.ask(b"before", b"before")
        server.process.send_signal(signal.SIGTERM)
        soon(server.refuses, "the end of listening")
        expect_equal(exchange_over(first, data), data, "after the signal")
        second.ask(b"after", b"after")
        second.peer.shutdown(socket.SHUT_WR)


def drain_cancels_what_is_left_after_a_time():
    with serving("drain", ADDRESS, "--grace-ms", 500, status=0) as server, \
            talk(server) as idle:
        idle.ask(b"before", b"before")
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        expect_equal(idle.stream.read(), b"", "at the end")
        expect(time.monotonic() - start >= 0.5, "cancelled too soon")


def drain_ends_at_once_when_nobody_is_there():
    with serving("drain", ADDRESS, "--grace-ms", LONG_MS, status=0) as server:
        exchange(server, b"x")
        server.process.send_signal(signal.SIGTERM)


def drain_says_how_it_is_used():
    for option in "--grace-ms=0", "--grace-ms=1x", "--other":
        expect_equal(run("drain", ADDRESS, option).returncode, 2, option)


# ---- fetch ------------------------------------------------------------------

PATIENT = "--timeout-ms", str(LONG_MS)


def fetch_prints_sizes():
    with tempfile.TemporaryDirectory() as directory:
        sizes = [0, 1, 70_000, 3_000_000]
        for size in sizes:
            pathlib.Path(directory, str(size)).write_bytes(b"x" * size)
        with serving("httpd", directory, ADDRESS) as server:
            address = f"127.0.0.1:{server.port}"
            done = run("fetch", *PATIENT, address,
                       *[f"/{size}" for size in sizes] * 10)
            expect_equal((done.returncode, done.stdout, done.stderr), (
                0, "".join(f"{size:8} /{size}\n" for size in sizes) * 10, ""),
                "fetch")
            done = run("fetch", *PATIENT, address, "/1", "/none", "/0")
            expect_equal((done.returncode, done.stdout, done.stderr), (
                1, "", "fetch: /none: HTTP/1.1 404 Not Found\n"), "fetch")


@contextlib.contextmanager
def fetching(count, complaint, options=PATIENT):
    """A fetch that fails; yields its connections by path, when all of them
    have sent their requests."""
    paths = [f"/{i}" for i in range(count)]
    with asking("fetch", paths, *options) as (process, peers):
        yield [peers[path] for path in paths]
        out, err = process.communicate(timeout=PATIENCE)
        expect_equal((process.returncode, out), (1, ""), "fetch")
        expect(re.fullmatch(f"fetch: {complaint}\n", err), "fetch said", err)


def fetch_cancels_the_rest_at_the_first_failure():
    with fetching(5, "/2: HTTP/1.0 500 Out of order") as peers:
        peers[4].sendall(b"HTTP/1.0 200 OK\r\n\r\nwhole")
        peers[4].shutdown(socket.SHUT_WR)
        expect_equal(peers[4].recv(1), b"", "when it has all")
        peers[0].sendall(b"HTTP/1.0 200 OK\r\n\r\nbegun")
        peers[2].sendall(b"HTTP/1.0 500 Out of order\r\n\r\n")
        for peer in peers:
            # A reset if bytes were unread, else an end.
            with contextlib.suppress(ConnectionResetError):
                expect_equal(peer.recv(1), b"", "when cancelled")


def fetch_has_one_deadline_for_all():
    """The deadline holds even if bytes keep coming."""
    start = time.monotonic()
    with fetching(2, ".*: not all came in time",
                  ["--timeout-ms", "4000"]) as peers:
        peers[0].sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while not select.select(peers, [], [], 0.02)[0]:
                peers[0].sendall(b"x")
    expect(time.monotonic() - start >= 4, "not after 4 s")


def fetch_notices_answers_that_are_none():
    for answer, why in [
            (b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\n1234", "No data.*"),
            (b"HTTP/1.0 200 OK\r\nX: y\r\n", "Bad message"), (b"", ".*message"),
            (b"nonsense\r\n\r\n", "Bad message"), (b"\0" * 9000, ".*message")]:
        with fetching(1, f"/0: {why}") as peers:
            with contextlib.suppress(OSError):  # it may be closed by now
                peers[0].sendall(answer)
                peers[0].shutdown(socket.SHUT_WR)
    done = run("fetch", *PATIENT, "127.0.0.1:1", "/")
    expect_equal((done.returncode, done.stderr),
                 (1, "fetch: /: Connection refused\n"), "fetch")
    expect_equal(run("fetch", "127.0.0.1:1").returncode, 2, "usage")


# ---- limiter ----------------------------------------------------------------

BURST, RATE = 16384, 102400


def limiter_holds_its_rate_over_all():
    """Idle time accumulates at most one burst."""
    data = os.urandom(60_000)
    with serving("limiter", ADDRESS) as server:
        with server.connect() as idle:
            expect(not select.select([idle], [], [], 0.4)[0], "said something")
        start = time.monotonic()
        in_parallel(2, lambda _: expect_equal(
            exchange(server, data), data, "echoed"))
        took = time.monotonic() - start
        least = (2 * len(data) - BURST) / RATE - 0.02
        expect(least < took < PATIENCE, "it took", took, "s, not", least)


@one_of_three
def limiter_serves_in_turn():
    data = bytes(200_000)
    with serving("limiter", ADDRESS) as server, server.leaks_nothing(), \
            server.connect() as big, talk(server) as small:
        sender = threading.Thread(target=lambda: big.sendall(data))
        sender.start()
        read_exactly(big, 2 * BURST)
        small.ask(b"hello", b"hello")
        big.setblocking(False)
        at_once = b""
        with contextlib.suppress(BlockingIOError):
            at_once = big.recv(len(data))
        expect(len(at_once) < len(data) // 2, "it waited for", len(at_once))
        big.settimeout(PATIENCE)
        read_exactly(big, len(data) - 2 * BURST - len(at_once))
        sender.join()


# ---- pool -------------------------------------------------------------------

@contextlib.contextmanager
def texts(count):
    """Files with 0 to count - 1 words."""
    with tempfile.TemporaryDirectory() as directory:
        paths = [pathlib.Path(directory, str(i)) for i in range(count)]
        for i, path in enumerate(paths):
            path.write_text(" \n\tword\r\n" * i)
        yield paths


def counted(paths):
    return sorted(f"{int(path.name):8} {path}" for path in paths)


def pool_counts_words():
    with texts(50) as paths:
        paths[40].write_text("x" * 20_000 + " " + "y" * 20_000 + "\n" * 9)
        names = "\n".join(map(str, paths))
        paths[40] = paths[2]
        wanted = counted(paths)
        wanted[wanted.index(f"       2 {paths[2]}")] = (
            f"       2 {paths[40].parent}/40")
        for end in "", "\n":
            done = run("pool", stdin=names + end)
            expect_equal((done.returncode, done.stderr), (0, ""), "pool")
            expect_equal(sorted(done.stdout.splitlines()), sorted(wanted),
                         "results")
        expect_equal(run("pool").stdout, "", "of nothing")
        done = run("pool", stdin=f"{paths[1]}\n/none\n{paths[3].parent}\n")
        expect_equal(done.returncode, 1, "status")
        expect_equal(sorted(done.stderr.splitlines()), sorted([
            "pool: /none: No such file or directory",
            f"pool: {paths[3].parent}: Is a directory"]), "complaints")
        expect_equal(done.stdout, f"       1 {paths[1]}\n", "the other")


def pool_refuses_what_is_no_name():
    done = run("pool", stdin="/none\n" + "x" * 10_000)
    expect_equal(done.returncode, 1, "status")
    # glibc's words, and musl's.
    expect(done.stderr.endswith(("pool: File name too long\n",
                                 "pool: Filename too long\n")), done.stderr)


def pool_ends_when_nobody_reads():
    with texts(2) as paths, start("pool") as pool:
        pool.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            while True:
                expect(select.select([], [pool.stdin], [], PATIENCE)[1],
                       "it neither reads nor ends")
                os.write(pool.stdin.fileno(), f"{paths[1]}\n".encode())
        expect_equal(pool.wait(PATIENCE), 1, "status")
        expect_equal(pool.stderr.read(), "pool: Broken pipe\n", "complaint")
        with contextlib.suppress(BrokenPipeError):
            pool.stdin.close()


def fill(pipe, text):
    """Writes the text again and again until the pipe stays full; returns the
    number of bytes."""
    os.set_blocking(pipe.fileno(), False)
    done = 0
    while select.select([], [pipe], [], 0.3)[1]:
        done += os.write(pipe.fileno(), (text * 2)[done % len(text):][:4096])
        expect(done < 2 << 20, "it takes names without end")
    os.set_blocking(pipe.fileno(), True)
    return done


def let_go(fifo):
    """Lets all readers of the FIFO, open or opening, see its end."""
    with contextlib.suppress(OSError):
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))


def pool_reads_no_faster_than_it_works():
    """All workers of the pool wait for a pipe: soon it takes no more names."""
    with texts(2) as paths, start("pool") as pool:
        fifo = f"{paths[0].parent}/fifo"
        os.mkfifo(fifo)
        holder = os.open(fifo, os.O_RDWR)
        pool.stdin.write(f"{fifo}\n" * 4)
        pool.stdin.flush()
        text = f"{paths[1]}\n".encode()
        done = fill(pool.stdin, text)
        expect(not select.select([pool.stdout], [], [], 0)[0], "it worked")
        os.close(holder)
        lines = []
        reader = threading.Thread(
            target=lambda: lines.extend(pool.stdout.readlines()))
        reader.start()
        os.write(pool.stdin.fileno(), text[done % len(text):])
        pool.stdin.close()
        soon(lambda: let_go(fifo) or pool.poll() is not None, "the end")
        reader.join()
        expect_equal(pool.returncode, 0, "status")
        expect_equal(sorted(lines), [f"       0 {fifo}\n"] * 4 + [
            f"       1 {paths[1]}\n"] * (done // len(text) + 1), "results")


# ---- pubsub -----------------------------------------------------------------

INVALID, FULL = b"ERR Invalid argument", b"ERR No space left on device"


def pubsub_passes_on_what_was_asked_for():
    with serving("pubsub", ADDRESS) as server, talk(server) as a, \
            talk(server) as b:
        a.ask(b"SUB weather", b"OK")
        a.ask(b"SUB sport", b"OK")
        b.ask(b"SUB sport", b"OK")
        b.ask(b"PUB weather rain at noon", b"OK")
        b.ask(b"PUB nothing is known of this", b"OK")
        b.ask(b"PUB spor none", b"OK")
        b.ask(b"PUB weather", b"OK")
        a.expect(b"weather rain at noon", b"weather")
        for byte in b"PUB sport 1:0\nPUB sport 1:1\n":
            a.peer.sendall(bytes([byte]))
        b.expect(b"sport 1:0", b"sport 1:1")
        expect_equal(sorted(a.line() for _ in range(4)),
                     [b"OK", b"OK", b"sport 1:0", b"sport 1:1"], "to itself")


def pubsub_says_what_is_wrong():
    with serving("pubsub", ADDRESS) as server, talk(server) as client:
        client.ask(b"SUB a", b"OK")
        client.ask(b"SUB a", b"ERR File exists")
        for line in (b"", b"SUB", b"SUB ", b"SUB a b", b"SUB " + b"x" * 64,
                     b"sub a", b"NONE"):
            client.ask(line, INVALID)
        client.ask(b"PUB a " + b"x" * 505, b"OK")
        client.expect(b"a " + b"x" * 505)
        client.peer.sendall(b"x" * 600)
        with contextlib.suppress(ConnectionResetError):
            expect_equal(client.stream.read(), b"", "after a line too long")


def pubsub_gives_names_away_that_nobody_has():
    with serving("pubsub", ADDRESS) as server, server.leaks_nothing():
        for turn in range(3):
            with talk(server) as client:
                # Possible once the names of the previous client are free.
                for i in range(64):
                    def subscribed():
                        client.say(b"SUB %d-%d" % (turn, i))
                        answer = client.line()
                        expect(answer in (b"OK", FULL), answer)
                        return answer == b"OK"
                    soon(subscribed, "room for a topic")
                client.ask(b"SUB more", FULL)
                if turn == 1:
                    client.stream.close()
                    reset(client.peer)


def pubsub_tells_a_slow_subscriber_what_it_missed():
    count = lines_to_be_missed(2 * len(TEXT))
    pattern = rb"(\w+) (\d{6}) x{480}|MISSED (\w+) (\d+)"
    with serving("pubsub", ADDRESS) as server, slow_talk(server) as slow, \
            talk(server) as sender:
        slow.ask(b"SUB news", b"OK")
        slow.ask(b"SUB sport", b"OK")
        for i in range(count):
            sender.say(b"PUB news %06d %s" % (i, TEXT),
                       b"PUB sport %06d %s" % (i, TEXT))
            sender.expect(b"OK", b"OK")
        expect(count_missed(slow, pattern, {b"news", b"sport"}, count) > 0,
               "the slow one missed nothing")


CASES = [function for name, function in list(globals().items())
         if re.match("(chat|servers|drain|fetch|limiter|pool|pubsub)_", name)]
