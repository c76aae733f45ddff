# SPDX-License-Identifier: MIT
"""Smoke tests of examples/dns_forward, before a server that is part of the test;
smoke_examples.py runs them."""

import collections
import contextlib
import random
import socket
import struct
import threading
import time

from smoke_kit import (expect, expect_complaint, expect_equal, in_parallel,
                       read_exactly, run, serving, PATIENCE)

LOOPBACK = "127.0.0.1"
A, AAAA, SOA, OPT, BIG = 1, 28, 6, 41, 16
RESPONSE, TRUNCATED, NO_NAME, FAILED = 0x8180, 0x0200, 3, 2


def question(name, kind=A):
    return b"".join(bytes([len(part)]) + part.encode()
                    for part in name.split(".")) + b"\0" + struct.pack(
                        ">HH", kind, 1)


def query(name, kind=A, number=None):
    number = random.randrange(1 << 16) if number is None else number
    return struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + question(name, kind)


def record(kind, ttl, data):
    """Of the name in the question."""
    return b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


class Upstream:
    """Answers by the first part of a name, and counts what it is asked."""

    def __init__(self, tcp, udp):
        self.asked = collections.Counter()
        self.ports = collections.defaultdict(set)
        self.tcp, self.udp = tcp, udp
        for work in self.serve_tcp, self.serve_udp:
            threading.Thread(target=work, daemon=True).start()

    def answer(self, message, over):
        name, at = "", 12
        while message[at]:
            name += message[at + 1:at + 1 + message[at]].decode() + "."
            at += 1 + message[at]
        what, flags, records = name.split(".")[0].lower(), RESPONSE, []
        self.asked[name.lower().strip("."), over] += 1
        if what == "none":
            flags |= NO_NAME
            soa = b"\0\0" + struct.pack(">5I", 1, 2, 3, 4, 2)
            records = [record(SOA, 600, soa)]
        elif what == "fail":
            flags |= FAILED
        elif what == "cut" and over == "udp":
            flags |= TRUNCATED
        elif what in ("big", "cut"):
            records = [record(BIG, 60, bytes([255]) + b"x" * 255)] * 100
        elif what == "zero":
            records = [record(A, 0, b"\x7f\0\0\x09")]
        else:
            records = [record(A, 60, b"\x7f\0\0\x09"),
                       record(A, 1000, b"\x7f\0\0\x0a")]
        return (message[:2] + struct.pack(">5H", flags, 1, len(records) * (
            what != "none"), what == "none", 0) + message[12:at + 5] +
                b"".join(records))

    def serve_udp(self):
        with contextlib.suppress(OSError):
            while True:
                message, peer = self.udp.recvfrom(512)
                answer = self.answer(message, "udp")
                if b"forged" in message:
                    other = bytes([answer[0] ^ 1]) + answer[1:-1] + b"\x66"
                    self.udp.sendto(other, peer)
                    self.udp.sendto(answer.replace(b"forged", b"forge2"), peer)
                    self.udp.sendto(message, peer)
                    self.udp.sendto(answer[:11], peer)
                self.ports["all"].add(peer[1])
                self.udp.sendto(answer, peer)

    def serve_tcp(self):
        with contextlib.suppress(OSError, ValueError):
            while True:
                peer, _ = self.tcp.accept()
                with peer:
                    peer.settimeout(PATIENCE)
                    bytes_, = struct.unpack(">H", read_exactly(peer, 2))
                    answer = self.answer(read_exactly(peer, bytes_), "tcp")
                    peer.sendall(struct.pack(">H", len(answer)) + answer)


def bound():
    """A port for both; neither listens yet."""
    while True:
        tcp = socket.socket()
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            tcp.bind((LOOPBACK, 0))
            udp.bind(tcp.getsockname())
            return tcp, udp
        except OSError:
            tcp.close()
            udp.close()


@contextlib.contextmanager
def forwarder():
    tcp, udp = bound()
    with tcp, udp:
        tcp.listen()
        upstream = Upstream(tcp, udp)
        with serving("dns_forward", f"{LOOPBACK}:0",
                     f"{LOOPBACK}:{tcp.getsockname()[1]}",
                     "--workers", 2,
                     "--patience-ms", PATIENCE * 1000) as server:
            yield server.port, upstream
        # Its threads end.
        tcp.shutdown(socket.SHUT_RDWR)


def ask(port, message):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.settimeout(PATIENCE)
        peer.connect((LOOPBACK, port))
        peer.send(message)
        answer = peer.recv(65535)
    expect_equal(answer[:2], message[:2], "the ID")
    return answer


def times(answer):
    """The time to live of the first record."""
    # The ID may look like a pointer to the name, too.
    at = answer.index(b"\xc0\x0c", 12) + 6
    return struct.unpack(">I", answer[at:at + 4])[0]


def dns_forward_asks_once():
    with forwarder() as (port, upstream):
        def client(number):
            name = f"n{number}.test"
            start = time.monotonic()
            for spelling in name, name, name.upper():
                message = query(spelling)
                answer = ask(port, message)
                expect_equal(answer[12:len(message)], message[12:], "question")
                expect(answer.endswith(b"\x7f\0\0\x0a"), answer)
                least = 59 - (time.monotonic() - start)
                expect(least <= times(answer) <= 60, times(answer))
            expect_equal(upstream.asked[name, "udp"], 1, name)
            # Another type is another question.
            ask(port, query(name, AAAA))
            expect_equal(upstream.asked[name, "udp"], 2, name)
        in_parallel(20, client)
        expect(len(upstream.ports["all"]) > 10, "one port for all")


def dns_forward_keeps_what_may_be_kept():
    with forwarder() as (port, upstream):
        for what, kept in (("none", True), ("zero", False), ("fail", False),
                           ("cut", False)):
            name = f"{what}.test"
            first, second = (ask(port, query(name, number=1))
                             for _ in range(2))
            expect_equal(first[:4], second[:4], what)
            expect_equal(upstream.asked[name, "udp"], 1 if kept else 2, what)


def dns_forward_passes_forgeries_over():
    with forwarder() as (port, _):
        answer = ask(port, query("forged.test"))
        expect(answer.endswith(b"\x7f\0\0\x0a"), answer)


def dns_forward_ignores_what_is_no_query():
    with forwarder() as (port, upstream):
        good = query("good.test")
        bad = [b"", b"x", good[:11], good[:12], good[:-1], good[:14],
               good[:2] + b"\x80" + good[3:], good[:5] + b"\2" + good[6:],
               good[:12] + b"\xc0\x0c" + good[14:], good[:12] + b"\x3f",
               query(".".join(["x" * 60] * 5)), bytes(3000)]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            for message in bad:
                peer.sendto(message, (LOOPBACK, port))
            # No more at once than the smallest buffer holds.
            for _ in range(20):
                for _ in range(10):
                    peer.sendto(random.randbytes(random.randrange(12, 60)),
                                (LOOPBACK, port))
                expect(ask(port, good).endswith(b"\x7f\0\0\x0a"), "it goes on")
        for message in bad[3:]:
            with socket.create_connection((LOOPBACK, port), PATIENCE) as peer:
                peer.sendall(struct.pack(">H", len(message)) + message)
                with contextlib.suppress(ConnectionResetError):
                    expect_equal(peer.recv(1), b"", message)
        expect_equal(upstream.asked["good.test", "udp"], 1, "asked")


def ask_tcp(peer, message):
    peer.sendall(struct.pack(">H", len(message)) + message)
    bytes_, = struct.unpack(">H", read_exactly(peer, 2))
    return read_exactly(peer, bytes_)


def dns_forward_answers_over_tcp():
    with forwarder() as (port, upstream):
        ask(port, query("kept.test"))
        with socket.create_connection((LOOPBACK, port), PATIENCE) as peer:
            for name in "big.test", "kept.test", "cut.test":
                message = query(name)
                answer = ask_tcp(peer, message)
                expect_equal(answer[:2], message[:2], "the ID")
                expect_equal(answer[3] & 15, 0, "the code")
                expect_equal(len(answer) > 10000, name != "kept.test", name)
        expect_equal(upstream.asked["kept.test", "tcp"], 0, "kept")


def dns_forward_says_that_its_server_is_gone():
    tcp, udp = bound()
    # No other process gets the port; datagrams of others are refused, too.
    udp.connect(udp.getsockname())
    gone = tcp.getsockname()[1]
    with tcp, udp, serving("dns_forward", f"{LOOPBACK}:0",
                           f"{LOOPBACK}:{gone}") as server:
        message = query("a.test")
        answer = ask(server.port, message)
        expect_equal((answer[3] & 15, answer[12:]), (FAILED, message[12:]), "")
        with socket.create_connection((LOOPBACK, server.port),
                                      PATIENCE) as peer:
            expect_equal(ask_tcp(peer, message)[3] & 15, FAILED, "over TCP")


def dns_forward_says_what_is_wrong():
    expect_complaint("dns_forward", f"{LOOPBACK}:0", "nowhere")
    for arguments in ([], [":0"], [":0", ":1", "x"], [":0", ":1", "-w", "x"],
                      [":0", ":1", "-p", "0"]):
        expect_equal(run("dns_forward", *arguments).returncode, 2, arguments)


CASES = [
    dns_forward_asks_once,
    dns_forward_keeps_what_may_be_kept,
    dns_forward_passes_forgeries_over,
    dns_forward_ignores_what_is_no_query,
    dns_forward_answers_over_tcp,
    dns_forward_says_that_its_server_is_gone,
    dns_forward_says_what_is_wrong,
]
