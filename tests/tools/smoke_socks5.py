# SPDX-License-Identifier: MIT
"""Smoke tests of examples/socks5; smoke_examples.py runs them."""

import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time

from tap import Skip
from smoke_kit import (accepted, exchange, exchange_over, expect,
                       expect_complaint, expect_equal, expect_gone,
                       expect_half_close, has_names, held_port, in_parallel,
                       listening, read_exactly, read_to_end, run, serving,
                       ADDRESS, PATIENCE)

GREETING, WELCOME, UNWELCOME = b"\5\1\0", b"\5\0", b"\5\xff"
CONNECT, BIND, ASSOCIATE = 1, 2, 3
IPV4, NAME, IPV6 = 1, 3, 4
FAILED, UNREACHABLE, REFUSED, NO_COMMAND, NO_KIND = 1, 4, 5, 7, 8


def socks(timeout_ms=1000 * PATIENCE):
    return serving("socks5", ADDRESS, "--timeout-ms", timeout_ms)


def ipv4(host, port):
    return bytes([IPV4]) + socket.inet_aton(host) + struct.pack("!H", port)


def ipv6(host, port):
    return (bytes([IPV6]) + socket.inet_pton(socket.AF_INET6, host) +
            struct.pack("!H", port))


def name(host, port):
    host = host if isinstance(host, bytes) else host.encode()
    return bytes([NAME, len(host)]) + host + struct.pack("!H", port)


def request(target, command=CONNECT, version=5):
    return bytes([version, command, 0]) + target


def refusal(number):
    return WELCOME + bytes([5, number, 0, IPV4]) + bytes(6)


def expect_granted(peer):
    """Returns the address that the server connected from."""
    expect_equal(read_exactly(peer, 5), WELCOME + b"\5\0\0", "the answer")
    kind = read_exactly(peer, 1)[0]
    host = read_exactly(peer, 4 if kind == IPV4 else 16)
    family = socket.AF_INET if kind == IPV4 else socket.AF_INET6
    return (socket.inet_ntop(family, host),
            struct.unpack("!H", read_exactly(peer, 2))[0])


def has_ipv6():
    try:
        with listening("::1"):
            return True
    except OSError:
        return False


def socks5_connects_to_an_address():
    targets = [("127.0.0.1", ipv4, "127.0.0.1"), ("127.0.0.1", name, "127.0.0.1")]
    if has_ipv6():
        targets += [("::1", ipv6, "::1"), ("::1", name, "::1")]
    with socks() as server, server.leaks_nothing():
        for host, kind, spelled in targets:
            with listening(host) as (listener, port), \
                    server.connect() as client:
                client.sendall(GREETING + request(kind(spelled, port)))
                bound = expect_granted(client)
                with listener.accept()[0] as upstream:
                    expect_equal(upstream.getpeername()[:2], bound, "bound")
                    client.sendall(b"there")
                    expect_equal(read_exactly(upstream, 5), b"there", "there")
                    upstream.sendall(b"back")
                    expect_equal(read_exactly(client, 4), b"back", "back")


def socks5_reads_messages_byte_by_byte():
    with socks() as server, listening() as (listener, port), \
            server.connect() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in GREETING + request(name("127.0.0.1", port)) + b"early":
            client.sendall(bytes([byte]))
        expect_granted(client)
        with accepted(listener) as upstream:
            expect_equal(read_exactly(upstream, 5), b"early", "early data")


def socks5_passes_a_half_close_either_way():
    for first in 0, 1:
        with socks() as server, listening() as (listener, port), \
                server.connect() as client:
            client.sendall(GREETING + request(ipv4("127.0.0.1", port)))
            expect_granted(client)
            with accepted(listener) as upstream:
                ends = client, upstream
                expect_half_close(ends[first], ends[1 - first])


def socks5_passes_on_that_a_peer_is_gone():
    for gone in 0, 1:
        with socks() as server, listening() as (listener, port), \
                server.leaks_nothing():
            client = server.connect()
            client.sendall(GREETING + request(ipv4("127.0.0.1", port)))
            expect_granted(client)
            ends = client, accepted(listener)
            expect_gone(ends[gone], ends[1 - gone])
            ends[1 - gone].close()


def socks5_passes_a_mebibyte_for_each_of_50():
    def client(_):
        data = os.urandom(1 << 20)
        with server.connect() as peer:
            peer.sendall(GREETING + request(ipv4("127.0.0.1", echo.port)))
            expect_granted(peer)
            expect(exchange_over(peer, data) == data, "other bytes")
    with serving("echo", ADDRESS) as echo, socks() as server, \
            server.leaks_nothing(), echo.leaks_nothing():
        in_parallel(50, client)


def socks5_says_why_not():
    with held_port() as port:
        expect_refused(port)


def expect_refused(port):
    here = ipv4("127.0.0.1", port)
    cases = [
        (request(here), REFUSED),
        (request(name("127.0.0.1", port)), REFUSED),
        (request(here, BIND), NO_COMMAND),
        (request(here, ASSOCIATE), NO_COMMAND),
        (request(here, 0xff), NO_COMMAND),
        (request(b"\2" + bytes(6)), NO_KIND),
        *[(request(name(host, 80)), NO_KIND) for host in (
            "", "x" * 255, "127.0.0.1:1", "127.0.0.01", "unix",
            "unix:/tmp/x", "/tmp/x", b"127.0.0.1\0", b"\xff\r\n", "[::1]", "::1]",
            "%s%s%n")],
        # To TCP this address is no host's.
        (request(ipv4("255.255.255.255", 80)), None),
    ]
    with socks() as server, server.leaks_nothing():
        for data, number in cases:
            for more in b"", b"x" * 300_000:
                got = exchange(server, GREETING + data + more, taken=True)
                if number is None:
                    expect(got in map(refusal, range(1, 9)), got)
                else:
                    expect_equal(got, refusal(number), data)


def socks5_looks_names_up():
    if not has_names():
        raise Skip("it was built without c-ares")
    # The resolver keeps descriptors.
    with socks() as server, listening() as (listener, port):
        for spelled in "localhost", "LOCALHOST", "localhost.":
            with server.connect() as client:
                client.sendall(GREETING + request(name(spelled, port)))
                expect_granted(client)
                with listener.accept()[0] as upstream:
                    upstream.sendall(b"back")
                    expect_equal(read_exactly(client, 4), b"back", "back")


def socks5_accepts_only_clients_without_a_password():
    target = request(ipv4("127.0.0.1", 1))
    with socks() as server, server.leaks_nothing():
        for methods, wanted in [
                (b"", UNWELCOME), (b"\2", UNWELCOME), (b"\1\2", UNWELCOME),
                (bytes(range(1, 256)), UNWELCOME), (b"\2\0", refusal(REFUSED)),
                (bytes(range(255)), refusal(REFUSED))]:
            greeting = b"\5" + bytes([len(methods)]) + methods
            expect_equal(exchange(server, greeting + target), wanted, methods)


def socks5_answers_nothing_to_others():
    with socks() as server, server.leaks_nothing():
        for data, wanted in [
                (b"", b""), (b"\5", b""), (b"\5\3\0", b""),
                (b"\4\1\0\x50\x7f\0\0\1\0", b""), (b"GET / HTTP/1.1\r\n\r\n", b""),
                (GREETING, WELCOME), (GREETING + b"\5\1", WELCOME),
                (GREETING + request(ipv4("127.0.0.1", 1))[:-1], WELCOME),
                (GREETING + request(name("x" * 9, 1))[:-5], WELCOME),
                (GREETING + request(ipv4("127.0.0.1", 1), version=4), WELCOME)]:
            expect_equal(exchange(server, data), wanted, data)


def socks5_waits_a_limited_time_for_a_request():
    with socks(2000) as server, server.leaks_nothing(), \
            listening() as (listener, port), server.connect() as served:
        served.sendall(GREETING + request(ipv4("127.0.0.1", port)))
        expect_granted(served)
        for data, wanted in (b"", b""), (GREETING + b"\5\1", WELCOME):
            start = time.monotonic()
            with server.connect() as peer:
                peer.sendall(data)
                expect_equal(read_to_end(peer), wanted, "slow")
            expect(time.monotonic() - start >= 2, "not after 2 s")
        with listener.accept()[0] as upstream:
            upstream.sendall(b"still here")
            expect_equal(read_exactly(served, 10), b"still here", "served")
        served.close()


def socks5_says_what_is_wrong():
    with socks() as server:
        for address in "nowhere", f"127.0.0.1:{server.port}":
            expect_complaint("socks5", address)
    for arguments in ["--timeout-ms", "0"], ["--timeout-ms", "x"], ["a", "b"]:
        expect_equal(run("socks5", *arguments).returncode, 2, arguments)


def socks5_serves_curl():
    if not shutil.which("curl"):
        raise Skip("curl is not installed")
    with tempfile.TemporaryDirectory() as root, \
            serving("httpd", root, ADDRESS) as httpd, socks() as server:
        data = os.urandom(100_000)
        with open(os.path.join(root, "file"), "wb") as file:
            file.write(data)
        for option in "--socks5", "--socks5-hostname":
            done = subprocess.run(
                ["curl", "-sS", option, f"127.0.0.1:{server.port}",
                 f"http://127.0.0.1:{httpd.port}/file"],
                capture_output=True, timeout=PATIENCE,
                env={**os.environ, "no_proxy": ""})
            expect_equal((done.returncode, done.stderr), (0, b""), option)
            expect(done.stdout == data, option, "other bytes")


CASES = [function for name_, function in list(globals().items())
         if name_.startswith("socks5_")]
