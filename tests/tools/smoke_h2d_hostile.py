# SPDX-License-Identifier: MIT
"""Smoke tests of h2d with hostile clients.  smoke_examples.py runs them."""

import contextlib
import os
import resource
import threading

import smoke_kit
from http2_peer import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM,
                        ENHANCE_YOUR_CALM, HEADERS, INITIAL_WINDOW, PING,
                        PREFACE, PRIORITY, SETTINGS, WINDOW_UPDATE, Peer,
                        fields, field, frame, request, reset, setting, string,
                        update)
from smoke_h2d import BIG, NO_WINDOW, WHOLE_WINDOW, expect_served, site
from smoke_kit import (expect, expect_equal, read_to_end, soon, PATIENCE)

BUFFER, STACK = 32 << 10, 64 << 10  # of a stream, and of its task


def h2d_ends_garbage():
    """Without the end of the client's input."""
    big = b"\xff\xff\xff"
    with site() as server, server.leaks_nothing():
        for data in (
                b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\xaa" * 5000,
                b"\x16\x03\x01\x02\x00", PREFACE + b"\xaa" * 5000,
                PREFACE + frame(DATA, 0, 1, b"x"),
                *(PREFACE + frame(SETTINGS) + data for data in (
                    big + frame(HEADERS)[3:], frame(HEADERS, 0, 2, fields()),
                    frame(HEADERS, END_HEADERS, 1, b"\xff" * 100),
                    frame(DATA, 0, 5, b"x"), frame(WINDOW_UPDATE, 0, 0, b"0"),
                    frame(SETTINGS, 0, 0, b"odd"), update(0, 0),
                    frame(CONTINUATION, 0, 1, b""), reset(9),
                    frame(HEADERS, 0, 1, fields()) + frame(PING)))):
            with server.connect() as peer, \
                    contextlib.suppress(ConnectionError):
                peer.sendall(data)
                read_to_end(peer)
        expect_served(server)


def expect_calmed(server, frames, settings=b"", connect=Peer, together=100):
    """It ends a connection on which those come, that many in a call.  They are
    more than it allows in the time that the tests wait.  The client sends no more
    when it knows, as the server waits a short time for the end."""
    ended = threading.Event()
    pieces = [b"".join(frames[i:i + together])
              for i in range(0, len(frames), together)]
    with connect(server, settings) as peer:
        sender = threading.Thread(target=send_until,
                                  args=(ended, peer, pieces))
        sender.start()
        try:
            peer.kept.append(peer.goaway())
        finally:
            ended.set()
            sender.join()
        expect_equal(peer.end(), ENHANCE_YOUR_CALM, "GOAWAY")
    expect_served(server, connect)


def send_until(ended, peer, pieces):
    with contextlib.suppress(OSError):
        for piece in pieces:
            if ended.is_set():
                break
            peer.send(piece)


def h2d_ends_rapid_resets():
    with site() as server, server.leaks_nothing():
        expect_calmed(server, [request(i, "/big.bin") + reset(i)
                               for i in range(1, 4000, 2)])
        # Reset when the first bytes have come.
        with Peer(server, setting(INITIAL_WINDOW, 100)) as peer:
            for i in range(1, 121, 2):
                peer.send(request(i, "/big.bin"))
                peer.content(i, 1)
                peer.send(reset(i))
            peer.send(request(201))
            expect_equal(peer.status(201), 200, "after a few resets")


def h2d_ends_provoked_resets():
    """Of streams whose window is made too large, and those over the limit."""
    with site() as server, server.leaks_nothing():
        expect_calmed(server, [request(i, "/big.bin") + update(i, (1 << 31) - 1)
                               for i in range(1, 4000, 2)])
    with site("--max-streams", 1) as server, server.leaks_nothing():
        expect_calmed(server, [request(i, "/big.bin")
                               for i in range(1, 40000, 2)], NO_WINDOW)


def h2d_ends_floods():
    one = frame(HEADERS, END_HEADERS, 1, fields(method="POST"))
    with site() as server, server.leaks_nothing():
        for kind, flood in {
                "SETTINGS": [frame(SETTINGS)] * 5000,
                "PING": [frame(PING, 0, 0, b"12345678")] * 5000,
                "PRIORITY": [frame(PRIORITY, 0, 3, b"\0\0\0\0\1")] * 5000,
                "DATA": [one] + [frame(DATA, 0, 1)] * 5000}.items():
            try:
                expect_calmed(server, flood, NO_WINDOW)
            except AssertionError as error:
                raise AssertionError(f"frames {kind}: {error}") from error


def h2d_ends_endless_headers():
    bomb = (fields() + b"\x40" + string(b"x") + string(b"y" * 4000) +
            b"\xbe" * 10000)
    endless = field("x", "y" * 15000)
    with site() as server, server.leaks_nothing():
        expect_calmed(server, [frame(HEADERS, END_HEADERS, 1, bomb)])
        expect_calmed(server, [frame(HEADERS, 0, 1, fields())] +
                      [frame(CONTINUATION, 0, 1, endless)] * 100, together=1)
        with Peer(server) as peer:
            long = fields("/" + "x" * 40000)
            peer.send(frame(HEADERS, END_STREAM, 1, long[:16000]),
                      frame(CONTINUATION, 0, 1, long[16000:32000]),
                      frame(CONTINUATION, END_HEADERS, 1, long[32000:]))
            expect_equal(peer.content(1, 36)[:4], b"431 ", "content")


def h2d_ends_endless_trailers():
    first = (frame(HEADERS, END_HEADERS, 1, fields() + b"\x40" + string(b"x") +
                   string(b"y" * 4000)))
    trailer = END_HEADERS | END_STREAM
    with site() as server, server.leaks_nothing():
        expect_calmed(server, [first, frame(HEADERS, trailer, 1,
                                            b"\xbe" * 16000)], NO_WINDOW)
        with Peer(server, NO_WINDOW) as peer:
            peer.send(request(1, "/big.bin", end=False),
                      frame(HEADERS, trailer, 1, field("x", "y")),
                      request(3))
            expect_equal(peer.status(3), 200, "after a short one")


def h2d_stops_reading_for_a_client_that_does_not_read():
    """Each request is refused, and the refusals are not read: they are not
    collected without end.  When they are read, it goes on.  (It refuses as long
    as its settings are not answered.)"""
    window = 16 << 20  # more than the kernel's buffers
    long = "y" * 16000
    data = b"".join(request(i, "/", x=long) for i in range(3, 6003, 2))
    size = len(request(3, "/", x=long))
    with site("--max-streams", 1) as server, server.leaks_nothing(), \
            Peer(server, setting(INITIAL_WINDOW, window)) as peer:
        peer.send(update(0, window), request(1, "/huge"))
        peer.socket.settimeout(2)
        done = 0
        with contextlib.suppress(TimeoutError):
            while done < len(data):
                done += peer.socket.send(data[done:done + 65536])
            raise AssertionError("it read 48 MB of requests")
        expect_served(server)
        peer.socket.settimeout(PATIENCE)
        rest = data[done:done + -done % size] + frame(PING, 0, 0, b"12345678")
        sender = threading.Thread(target=peer.send, args=(rest,))
        sender.start()
        while peer.next() != (PING, ACK, 0, b"12345678"):
            pass
        sender.join()


def h2d_needs_little_memory_for_slow_clients():
    """100 streams of 5 GiB in each of 10 connections that are not read: a
    buffer and a stack for each, and a descriptor."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    connections = min(10, (descriptors - 64) // 101)
    limit = connections * 100 * (BUFFER + STACK) + (64 << 20)
    with site() as server, contextlib.ExitStack() as peers:
        expect_served(server)
        before = server.memory()
        for _ in range(connections):
            peer = peers.enter_context(Peer(server, WHOLE_WINDOW))
            peer.send(update(0, (1 << 31) - 65536),
                      *(request(i, "/huge") for i in range(1, 200, 2)))
            for i in range(1, 200, 2):
                expect_equal(peer.status(i), 200, "status")
        for _ in range(20):
            with Peer(server) as peer:
                peer.send(request(1, "/big.bin"))
                expect_equal(peer.content(1, len(BIG)), BIG, "content")
        grown = server.memory() - before
        expect(grown < limit, "it grew by", grown, "of at most", limit)


def h2d_forgets_clients_that_break_off():
    with site() as server, server.leaks_nothing():
        for data in b"", request(1, "/huge"), *(
                [b"".join(request(i, "/huge") for i in range(1, 80, 2))]):
            for _ in range(20):
                peer = Peer(server, WHOLE_WINDOW)
                peer.send(data)
                if data:
                    peer.until(DATA)
                smoke_kit.reset(peer.socket)


def h2d_survives_a_lack_of_descriptors():
    with site() as server, Peer(server, NO_WINDOW) as peer:
        expect_served(server)
        limit = 20 + max(map(int, os.listdir(
            f"/proc/{server.process.pid}/fd")))
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE,
                         (limit, limit))
        peer.send(*(request(i, "/big.bin") for i in range(1, 100, 2)))
        # 503 is in no table of HPACK.
        seen = {peer.status(i) == 200 for i in range(1, 100, 2)}
        expect_equal(seen, {True, False}, "statuses")
        peer.send(*(reset(i) for i in range(1, 100, 2)))
        soon(lambda: server.descriptors() < limit - 10, "a close of the files")
        expect_served(server)


CASES = [function for name, function in list(globals().items())
         if name.startswith("h2d_")]
