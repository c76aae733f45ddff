# SPDX-License-Identifier: MIT
"""Smoke tests of examples/kv; smoke_examples.py runs them."""

import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import time

from tap import Skip
from smoke_kit import (exchange, expect, expect_complaint, expect_equal,
                       in_parallel, read_exactly, read_to_end, reset, run,
                       serving, soon, ADDRESS, PATIENCE)

OK, NIL, PONG = b"+OK\r\n", b"$-1\r\n", b"+PONG\r\n"


def kv(workers=2, grace_ms=1000 * PATIENCE, **options):
    return serving("kv", ADDRESS, "--workers", workers, "--grace-ms", grace_ms,
                   **options)


def text(value):
    return value if isinstance(value, bytes) else str(value).encode()


def bulk(value):
    value = text(value)
    return b"$%d\r\n%b\r\n" % (len(value), value)


def array(*values):
    return b"*%d\r\n" % len(values) + b"".join(
        NIL if value is None else bulk(value) for value in values)


def number(value):
    return b":%d\r\n" % value


def error(sentence):
    return b"-ERR %b\r\n" % sentence.encode()


def ask(words):
    """A request: of a text's words, or of the values."""
    return array(*(words.split(" ") if isinstance(words, str) else words))


SYNTAX = error("syntax error")
NO_NUMBER = error("value is not an integer or out of range")
ODD = bytes(range(256))


def bad_time(name):
    return error(f"invalid expire time in '{name}' command")


def bad_count(name):
    return error(f"wrong number of arguments for '{name}' command")


# Requests, and their answers, in this order.
TALK = [(ask(request), answer) for request, answer in [
    ("PING", PONG),
    ("pInG", PONG),
    ("PING hello", bulk("hello")),
    (["ECHO", ODD], bulk(ODD)),
    ("ECHO", bad_count("echo")),
    ("GET a", NIL),
    ("SET a 1", OK),
    ("GET a", bulk(1)),
    (["SET", "", ""], OK),
    (["GET", ""], bulk("")),
    (["SET", ODD, ODD * 3], OK),
    (["GET", ODD], bulk(ODD * 3)),
    (["MGET", "a", "none", ODD, ""], array(1, None, ODD * 3, "")),
    ("DBSIZE", number(3)),
    # Options of SET
    ("SET a 2 NX", NIL),
    ("SET b 2 XX", NIL),
    ("SET a 3 xx", OK),
    ("SET b 4 nx EX 100", OK),
    ("MGET a b", array(3, 4)),
    ("TTL b", number(100)),
    ("SET b 5", OK),
    ("TTL b", number(-1)),
    ("SET b 5 PX 100000", OK),
    ("TTL b", number(100)),
    *[(f"SET b 6 {options}", SYNTAX) for options in (
        "NX XX", "EX", "PX", "EX 1 PX 1", "KEEP", "NX EX")],
    *[(f"SET b 6 EX {seconds}", NO_NUMBER) for seconds in (
        "x", "1x", "01", "+1", "1.5", "--1", "9223372036854775808")],
    *[(f"SET b 6 {time}", bad_time("set")) for time in (
        "EX 0", "PX -1", "EX 9223372036854775807", "EX 4611686018")],
    ("GET b", bulk(5)),
    # Numbers
    ("INCR n", number(1)),
    ("INCR n", number(2)),
    ("DECR n", number(1)),
    ("DECR m", number(-1)),
    ("GET m", bulk(-1)),
    ("SET n 9223372036854775806 EX 50", OK),
    ("INCR n", number(9223372036854775807)),
    ("INCR n", error("increment or decrement would overflow")),
    ("TTL n", number(50)),
    ("SET n -9223372036854775807", OK),
    ("DECR n", number(-9223372036854775808)),
    ("DECR n", error("increment or decrement would overflow")),
    *[step for value in ("1 ", "", "-", "01", "-0", "1a", "+1")
      for step in ((["SET", "n", value], OK), ("INCR n", NO_NUMBER))],
    # Times
    ("SET t 1", OK),
    ("EXPIRE t 1000", number(1)),
    ("TTL t", number(1000)),
    ("PEXPIRE t 2000000", number(1)),
    ("TTL t", number(2000)),
    ("EXPIRE none 1", number(0)),
    ("EXPIRE t x", NO_NUMBER),
    ("EXPIRE t 9223372036854775807", bad_time("expire")),
    ("PEXPIRE t 9223372036854775807", bad_time("pexpire")),
    ("EXPIRE t", bad_count("expire")),
    ("EXPIRE t -9223372036", number(1)),
    ("GET t", NIL),
    ("TTL t", number(-2)),
    ("PTTL a", number(-1)),
    # Several keys
    ("MSET a 1 b 2 c 3 a 4", OK),
    ("MGET c b a", array(3, 2, 4)),
    ("MSET a 1 b", bad_count("mset")),
    ("EXISTS a b none a", number(3)),
    ("DEL a none a b", number(2)),
    ("EXISTS a b c", number(1)),
    ("FLUSHALL", OK),
    ("DBSIZE", number(0)),
    ("GET c", NIL),
    # Questions of clients when they begin, and no commands
    ("CONFIG GET save", array("save", "")),
    ("CONFIG GET appendonly", array("appendonly", "no")),
    ("CONFIG GET other", array()),
    ("CONFIG SET save x", error("only CONFIG GET")),
    ("COMMAND DOCS", array()),
    ("NOTHING at all", error("unknown command 'NOTHING'")),
    ("G", error("unknown command 'G'")),
    (["\r\n-"], error("unknown command '  -'")),
    ("x" * 100, error(f"unknown command '{'x' * 64}'")),
    ("GET", bad_count("get")),
    ("GET a b", bad_count("get")),
]] + [
    (b"*0\r\n", b""),
    (b"\r\n\n \t \r\n", b""),
    (b"SET line 1\r\n", OK),
    (b"  get\t line  \n", bulk(1)),
    (b"flushall\r\n", OK),
]
QUESTIONS = b"".join(request for request, _ in TALK)


END = bulk("end")
TTL = ask("TTL ?")[:-3]


def read_to_echo(peer):
    """Up to the answer to ECHO end, which is the last request."""
    got = bytearray()
    while not got.endswith(END):
        piece = peer.recv(65536)
        expect(piece, "the stream ended after", got[-100:])
        got += piece
    return bytes(got)


def expect_answers(got, since, steps=TALK, then=b""):
    """The answers of these steps, and then other ones.  A time to live is rounded
    to seconds, and some of it has passed since the first request."""
    passed = time.monotonic() - since + 0.5
    at = 0
    for request, answer in steps:
        left = request.startswith(TTL) and re.compile(rb":(\d+)\r\n").match(
            got, at)
        if left and 0 <= int(answer[1:]) - int(left[1]) <= passed:
            answer = left[0]
        expect_equal(got[at:at + len(answer)], answer, request[:500])
        at += len(answer)
    expect_equal(got[at:], then, "what follows")


def kv_answers_each_request_byte_for_byte():
    for workers in 1, 2:
        with kv(workers) as server, server.leaks_nothing(), \
                server.connect() as peer:
            start = time.monotonic()
            for step in TALK:
                peer.sendall(step[0] + ask("ECHO end"))
                expect_answers(read_to_echo(peer), start, [step], END)


def kv_answers_requests_that_come_together():
    with kv() as server:
        for times in 1, 50:
            start = time.monotonic()
            expect_answers(exchange(server, QUESTIONS * times), start,
                           TALK * times)


def kv_puts_requests_together_from_pieces():
    """One byte at a time, and random pieces, of short and of long values."""
    chance = random.Random(1)
    long = ask(["SET", "long", os.urandom(300_000)])
    value = long[long.index(b"$300000"):]
    parts = (QUESTIONS + long + ask("GET long") + ask("DEL long") +
             ask("ECHO end"))
    then = OK + value + number(1) + END
    with kv() as server, server.leaks_nothing(), server.connect() as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = time.monotonic()
        for byte in QUESTIONS + ask("ECHO end"):
            peer.sendall(bytes([byte]))
        expect_answers(read_to_echo(peer), start, then=END)
        for most in 3, 60, 5000, 100_000:
            start, at = time.monotonic(), 0
            while at < len(parts):
                size = chance.randint(1, most)
                # The long value in short pieces is no other case.
                if len(QUESTIONS) + 500 < at < len(parts) - 500:
                    size = max(size, 1000)
                peer.sendall(parts[at:at + size])
                at += size
            expect_answers(read_to_echo(peer), start, then=then)


def protocol_error(sentence):
    return error(f"Protocol error: {sentence}")


BULK, ARRAY = "invalid bulk length", "invalid multibulk length"
NO_REQUESTS = [
    *[(b"*%b\r\n" % count, ARRAY) for count in (
        b"", b"-1", b"x", b"1x", b"1025", b"999999999", b"99999999999999999",
        b" 1", b"+1", b"0x1", b"\0")],
    (b"*1\r$4\r\nPING", ARRAY),
    (b"*1\n", ARRAY),
    *[(b"*1\r\n$%b\r\n" % count, BULK) for count in (
        b"", b"-1", b"x", b"4 ", b"16777217", b"536870912", b"2147483648",
        b"4294967300", b"18446744073709551620", b"9" * 1000)],
    (b"*1\r\n:4\r\nPING\r\n", "expected '$'"),
    (b"*2\r\n$4\r\nPING\r\n*1\r\n", "expected '$'"),
    (b"*1\r\n\r\n", "expected '$'"),
    (b"*1\r\n$4\r\nPINGPING\r\n", "expected CRLF"),
    (b"*1\r\n$4\r\nPING\n\n", "expected CRLF"),
    (b"x" * 70000, "too big inline request"),
    (b"\0" * 70000 + b"\n", "too big inline request"),
    (b"x " * 1025 + b"\n", "too many words"),
    # More than all of a request may be, in arguments that each may be.
    (b"*3\r\n$9000000\r\n%b\r\n$9000000\r\n" % bytes(9_000_000), BULK),
]


def kv_refuses_what_is_no_request():
    """After a sentence the connection ends; nothing that follows is read as a
    request, and no reset destroys the sentence."""
    with kv() as server, server.leaks_nothing():
        for data, sentence in NO_REQUESTS:
            for rest in b"", ask("SET a 1") * 50_000:
                expect_equal(exchange(server, ask("PING") + data + rest,
                                      taken=True),
                             PONG + protocol_error(sentence), data[:50])
        expect_equal(exchange(server, ask("DBSIZE")), number(0), "keys")


def kv_limits_a_request_as_a_whole():
    """The argument that fills it to the last byte is taken, and none after it."""
    begin = b"*3\r\n$3\r\nSET\r\n$16777192\r\n"
    request = begin + bytes((1 << 24) - len(begin)) + b"\r\n$%d\r\n"
    with kv() as server, server.leaks_nothing():
        for length in 0, 1, 999_999_999:
            expect_equal(exchange(server, request % length),
                         protocol_error(BULK), length)


def kv_survives_noise():
    chance = random.Random(2)
    words = [b"*", b"$", b"\r\n", b"3", b"-1", b"SET", b"GET", b"\0", b"a",
             b"1000", b"DEL", b" ", b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n"]
    with kv() as server, server.leaks_nothing():
        for _ in range(300):
            with server.connect() as peer:
                with contextlib.suppress(ConnectionError):
                    peer.sendall(b"".join(chance.choices(words, k=50)))
                if chance.random() < 0.5:
                    reset(peer)
        expect_equal(exchange(server, ask("PING")), PONG, "afterwards")


def kv_quits_when_asked():
    with kv() as server, server.connect() as peer:
        peer.sendall(ask("PING") + ask("QUIT") + ask("SET a 1") * 1000)
        expect_equal(read_to_end(peer), PONG + OK, "quit")
        expect_equal(exchange(server, ask("GET a")), NIL, "afterwards")


def kv_executes_what_is_whole_at_the_end():
    with kv() as server:
        expect_equal(exchange(server, ask("PING") + ask("SET a 1")[:-1]), PONG,
                     "cut")
        expect_equal(exchange(server, ask("GET a")), NIL, "not set")


# ---- Times -------------------------------------------------------------------

def await_answer(peer, request, answer):
    """Asks until that is the answer."""
    def answered():
        peer.sendall(request + ask("PING"))
        got = b""
        while not got.endswith(PONG):
            got += read_exactly(peer, 1)
        return got == answer + PONG

    soon(answered, f"the answer {answer} to {request}")


def kv_forgets_a_key_in_time():
    with kv() as server, server.connect() as peer:
        start = time.monotonic()
        peer.sendall(ask("SET a 1 PX 300") + ask("SET b 1") +
                     ask("PEXPIRE b 300") + ask("SET c 1 PX 300") +
                     ask("SET c 1"))
        expect_equal(read_exactly(peer, 19 + 5), OK * 2 + number(1) + OK * 2,
                     "set")
        for request, answer in ("GET a", NIL), ("TTL b", number(-2)):
            await_answer(peer, ask(request), answer)
            expect(time.monotonic() - start >= 0.3, request, "too early")
        await_answer(peer, ask("DBSIZE"), number(1))
        expect_equal(exchange(server, ask("GET c")), bulk(1), "c")


def kv_drops_expired_keys_that_are_not_asked_for():
    count = 20_000
    setting = b"".join(ask(["SET", i, "x" * 100, "PX", 200])
                       for i in range(count))
    with kv() as server:
        expect_equal(exchange(server, ask("SET stays 1 EX 1000") +
                              ask("SET too 1") + setting), OK * (count + 2),
                     "set")
        with server.connect() as peer:
            await_answer(peer, ask("DBSIZE"), number(2))


# ---- Many clients, slow ones, limits -----------------------------------------

def kv_counts_for_100_clients():
    """Each on one key of all, on one of its own, and with long values."""
    def client(i):
        value = os.urandom(1000 * i + 1)
        data = (ask("INCR all") + ask(f"INCR {i}")) * 200
        got = exchange(server, data + ask(["SET", f"v{i}", value]) +
                       ask(f"GET v{i}") + ask(f"DEL v{i}"))
        own = re.findall(rb":\d+\r\n", got[:got.index(OK)])[1::2]
        expect_equal(own, [number(n) for n in range(1, 201)], "its own")
        expect(got.endswith(OK + bulk(value) + number(1)), "other bytes")
    for workers in 1, 2, 4:
        with kv(workers) as server, server.leaks_nothing():
            in_parallel(100, client)
            expect_equal(exchange(server, ask("GET all") + ask("DBSIZE")),
                         bulk(20_000) + number(101), "all")


def kv_grows_and_shrinks():
    """A table of many keys, of which each is found, then few, then none."""
    count = 50_000
    with kv() as server:
        def all_of(make, answers):
            got = exchange(server, b"".join(map(ask, make)))
            expect_equal(got, b"".join(answers), "all keys")
        keys = range(count)
        all_of((["SET", f"key {i}", i] for i in keys), [OK] * count)
        all_of((["GET", f"key {i}"] for i in keys), map(bulk, keys))
        all_of((["DEL", f"key {i}"] for i in keys if i % 100),
               [number(1)] * (count - count // 100))
        all_of((["GET", f"key {i}"] for i in keys),
               (NIL if i % 100 else bulk(i) for i in keys))
        all_of(["DBSIZE", "FLUSHALL", "DBSIZE"],
               [number(count // 100), OK, number(0)])


def kv_needs_no_memory_for_what_is_only_announced():
    with kv() as server, contextlib.ExitStack() as stack:
        exchange(server, QUESTIONS)
        before = server.memory("VmRSS")
        for _ in range(100):
            peer = stack.enter_context(server.connect())
            peer.sendall(ask("PING") + b"*1000\r\n$16000000\r\nbegin")
            expect_equal(read_exactly(peer, len(PONG)), PONG, "ping")
        # 1.6 GB were announced.
        expect(server.memory() < before + (64 << 20), "peak",
               server.memory(), "before", before)


def await_standstill(peer):
    """Until the server's kernel holds data back, since the peer does not read:
    it looks from time to time whether the peer has room."""
    ports = peer.getpeername()[1], peer.getsockname()[1]

    def holds_back():
        for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if ports == tuple(int(end.split(":")[1], 16)
                              for end in fields[1:3]):
                return fields[5].startswith("04:")
        return False
    soon(holds_back, "a peer without room")


def kv_needs_little_memory_for_a_slow_reader():
    value = os.urandom(1 << 16)
    count = 2000
    with kv() as server, server.connect() as slow:
        slow.sendall(ask(["SET", "a", value]))
        expect_equal(read_exactly(slow, 5), OK, "set")
        before = server.memory("VmRSS")
        slow.sendall(ask("GET a") * count)
        await_standstill(slow)
        # So that memory that the first value would leave is used.
        others = [ask(["SET", i, os.urandom(1 << 16)]) for i in range(50)]
        expect_equal(exchange(server, ask("SET a other") + b"".join(others)),
                     OK * 51, "meanwhile")
        wanted = bulk(value)
        expect_equal(read_exactly(slow, len(wanted)), wanted, "the first")
        got = {}
        for _ in range(count - 1):
            head = read_exactly(slow, 4)
            size = len(wanted) if head == wanted[:4] else len(bulk("other"))
            rest = head + read_exactly(slow, size - 4)
            got[rest] = got.get(rest, 0) + 1
        expect_equal(sorted(got, key=len), [bulk("other"), wanted], "values")
        # The answers would take 128 MiB.
        expect(server.memory() < before + (32 << 20), "peak",
               server.memory(), "before", before)


# ---- The end, and other clients ----------------------------------------------

def kv_answers_what_has_come_before_it_ends():
    for told in signal.SIGTERM, signal.SIGINT:
        with kv(status=0) as server, server.connect() as idle, \
                server.connect() as busy, server.connect() as partial:
            for peer in idle, busy, partial:
                peer.sendall(ask("PING"))
                expect_equal(read_exactly(peer, len(PONG)), PONG, "ping")
            partial.sendall(ask("PING")[:-1])
            start = time.monotonic()
            busy.sendall(QUESTIONS * 10)
            server.process.send_signal(told)
            expect_answers(read_to_end(busy), start, TALK * 10)
            expect_equal(read_to_end(idle), b"", "idle")
            expect_equal(read_to_end(partial), b"", "partial")


def kv_waits_at_its_end_for_a_client_that_is_slow():
    """But not in order to end the connections of others."""
    value, count = os.urandom(1 << 16), 256
    with kv(status=0) as server, server.connect() as slow, \
            server.connect() as idle:
        slow.sendall(ask(["SET", "a", value]) + ask("GET a") * count)
        await_standstill(slow)
        server.process.send_signal(signal.SIGTERM)
        expect_equal(read_to_end(idle), b"", "idle")
        expect(read_to_end(slow) == OK + bulk(value) * count, "slow")


def kv_ends_beside_a_client_that_takes_nothing():
    """After its time of grace."""
    with kv(grace_ms=500, status=0) as server, server.connect() as slow:
        slow.sendall(ask(["SET", "a", bytes(1 << 16)]) + ask("GET a") * 1000)
        await_standstill(slow)
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        expect_equal(server.process.wait(PATIENCE), 0, "status")
        expect(time.monotonic() - start >= 0.5, "not after 0.5 s")


def kv_says_what_is_wrong():
    with kv() as server:
        for address in "nowhere", f"127.0.0.1:{server.port}":
            expect_complaint("kv", address)
    for arguments in (["--workers", "0"], ["--workers", "x"], ["a", "b"],
                      ["--grace-ms", "0"]):
        expect_equal(run("kv", *arguments).returncode, 2, arguments)


def tool(name, server, *arguments, stdin=""):
    if not shutil.which(name):
        raise Skip(f"{name} is not installed")
    done = subprocess.run([name, "-p", str(server.port), *arguments],
                          input=stdin, capture_output=True, text=True,
                          timeout=3 * PATIENCE)
    expect_equal((done.returncode, done.stderr), (0, ""), name)
    return done.stdout


def kv_serves_redis_cli():
    with kv() as server, server.leaks_nothing():
        expect_equal(tool("redis-cli", server, stdin="set a 1\nget a\nincr a\n"
                          "mget a b\nttl a\ndel a\nget a\nquit\n"),
                     "OK\n1\n2\n2\n\n-1\n1\n\n", "redis-cli")
        expect_equal(tool("redis-cli", server, "-x", "set", "a",
                          stdin="b\n" * 50_000), "OK\n", "redis-cli")
        expect_equal(tool("redis-cli", server, "get", "a"),
                     "b\n" * 50_000 + "\n", "redis-cli")


def kv_serves_redis_benchmark():
    tests = "ping_inline,ping_mbulk,set,get,incr,mset"
    for pipeline in "1", "16":
        with kv() as server, server.leaks_nothing():
            said = tool("redis-benchmark", server, "-t", tests, "-n", "3000",
                        "-P", pipeline, "-r", "1000", "--csv")
            expect_equal(len(said.splitlines()), 7, said)


CASES = [function for name, function in list(globals().items())
         if name.startswith("kv_")]
