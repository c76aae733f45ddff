# SPDX-License-Identifier: MIT
"""Smoke tests of h2d: curl and nghttp, and a client that does as it likes.
smoke_examples.py runs them."""

import contextlib
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

import smoke_tls
from http2_peer import (ACK, CANCEL, CONCURRENT_STREAMS, DATA, END_HEADERS,
                        END_STREAM, GOAWAY, HEADERS, INITIAL_WINDOW, NO_ERROR,
                        PING, REFUSED_STREAM, RST_STREAM, SETTINGS,
                        WINDOW_UPDATE, Peer, fields, frame, request, reset,
                        setting, update)
from smoke_kit import (built, expect, expect_complaint, expect_equal,
                       in_parallel, run, serving, soon, ADDRESS, PATIENCE)
from tap import Skip

INDEX, NOTE = b"<p>index\n", b"0123456789"
BIG = os.urandom(1 << 20)
HUGE = 5 << 30
WHOLE_WINDOW = setting(INITIAL_WINDOW, (1 << 31) - 1)
NO_WINDOW = setting(INITIAL_WINDOW, 0)


def make_site(directory):
    root = pathlib.Path(directory, "root")
    (root / "sub").mkdir(parents=True)
    pathlib.Path(directory, "secret").write_text("secret")
    for name, data in {"index.html": INDEX, "sub/note.txt": NOTE,
                       "empty.css": b"", "big.bin": BIG, "huge": b"",
                       **{f"f{i}": b"%d" % i * (i * 37 % 500)
                          for i in range(100)}}.items():
        (root / name).write_bytes(data)
    os.truncate(root / "huge", HUGE)
    (root / "out").symlink_to("../secret")
    os.mkfifo(root / "fifo")
    return root


@contextlib.contextmanager
def site(*options, status=None):
    """An h2d with two workers."""
    built("h2d", "there is no libnghttp2")
    with tempfile.TemporaryDirectory() as directory:
        root = make_site(directory)
        with serving("h2d", root, ADDRESS, "--workers", 2, *options,
                     status=status) as server:
            server.root = root
            server.url = f"http://127.0.0.1:{server.port}"
            server.curl = ["--http2-prior-knowledge"]
            yield server


@contextlib.contextmanager
def secure_site():
    smoke_tls.needs("openssl", "curl")
    smoke_tls.certificates()
    top = smoke_tls.TOP
    with site("--cert", top / "server.pem", "--key",
              top / "server.key") as server:
        server.url = f"https://localhost:{server.port}"
        server.curl = ["--http2", "--cacert", top / "ca.pem"]
        yield server


def curl(server, path, *options):
    """The status, the header in lower case, and the body."""
    if not shutil.which("curl"):
        raise Skip("no curl")
    done = subprocess.run(
        ["curl", "-sSi", *map(str, server.curl), *options, "--path-as-is",
         server.url + path], capture_output=True, timeout=PATIENCE)
    expect_equal((done.returncode, done.stderr), (0, b""), path)
    head, body = done.stdout.split(b"\r\n\r\n", 1)
    version, status = head.split()[:2]
    expect_equal(version, b"HTTP/2", "version")
    return int(status), head.decode().lower(), body


def expect_served(server, connect=Peer):
    """It serves on, whatever came before."""
    with connect(server) as peer:
        peer.send(request(1))
        expect_equal(peer.status(1), 200, "status")
        expect_equal(peer.content(1, len(INDEX)), INDEX, "content")


# ---- Well-behaved clients ----------------------------------------------------

def expect_every_answer(server):
    tag = re.search(r'etag: (".*")', curl(server, "/sub/note.txt")[1])[1]
    for path, options, wanted in (
            ("/", (), (200, INDEX)),
            ("/index.html?query#part", (), (200, INDEX)),
            ("/sub/../%73ub/note.txt", (), (200, NOTE)),
            ("/big.bin", (), (200, BIG)),
            ("/empty.css", (), (200, b"")),
            ("/big.bin", ("-I",), (200, b"")),
            ("/none", (), (404, b"404 Not Found\n")),
            ("/none", ("-I",), (404, b"")),
            ("/out", (), (403, b"403 Forbidden\n")),
            ("/../secret", (), (403, b"403 Forbidden\n")),
            ("/fifo", (), (403, b"403 Forbidden\n")),
            ("/%00", (), (400, b"400 Bad Request\n")),
            ("/sub", (), (301, b"301 Moved Permanently\n")),
            ("/", ("-X", "DELETE"), (405, b"405 Method Not Allowed\n")),
            ("/sub/note.txt", ("-r", "2-4"), (206, b"234")),
            ("/sub/note.txt", ("-r", "10-"),
             (416, b"416 Range Not Satisfiable\n")),
            ("/sub/note.txt", ("-H", f"If-None-Match: {tag}"), (304, b"")),
            ("/sub/note.txt", ("-H", 'If-None-Match: "a"', "-H",
                               f"If-None-Match: {tag}"), (304, b"")),
            ("/sub/note.txt", ("-r", "2-4", "-H", f"If-Match: {tag}"),
             (206, b"234")),
            ("/sub/note.txt", ("-r", "2-4", "-H", 'If-Match: "a"'),
             (412, b"412 Precondition Failed\n")),
            ("/", ("-H", "x: " + "y" * 9000),
             (431, b"431 Request Header Fields Too Large\n"))):
        status, head, body = curl(server, path, *options)
        expect_equal((status, body), wanted, (path, *options[:1]))
        if status == 200 and path != "/sub/":
            expect("etag: " in head and "\r\ndate: " in head, head)
    expect("location: /sub/" in curl(server, "/sub")[1], "location")
    expect("allow: get, head" in curl(server, "/", "-X", "DELETE")[1], "allow")
    status, head, body = curl(server, "/sub/")
    expect("text/html" in head and b'<a href="./note.txt">' in body, body)


def h2d_answers_curl():
    with site() as server, server.leaks_nothing():
        expect_every_answer(server)


def h2d_answers_curl_over_tls():
    with secure_site() as server:
        expect_every_answer(server)


def expect_parallel(server):
    """All over one connection."""
    names = [f"f{i}" for i in range(100)] + ["big.bin"] * 10
    with tempfile.TemporaryDirectory() as directory:
        got = pathlib.Path(directory)
        config = "".join(f'url = "{server.url}/{name}"\n'
                         f'output = "{got}/{i}"\n'
                         for i, name in enumerate(names))
        done = subprocess.run(
            ["curl", "-sS", *map(str, server.curl), "--parallel",
             "--parallel-max", "60", "-w", "%{http_code} %{num_connects}\n",
             "-K", "-"], input=config, text=True, capture_output=True,
            timeout=2 * PATIENCE)
        expect_equal(done.returncode, 0, done.stderr)
        lines = done.stdout.split("\n")[:-1]
        expect_equal(sorted(lines), ["200 0"] * (len(names) - 1) + ["200 1"],
                     "statuses and connections")
        for i, name in enumerate(names):
            expect_equal((got / f"{i}").read_bytes(),
                         (server.root / name).read_bytes(), name)


def h2d_serves_many_streams_to_curl():
    """Over TLS: without it, curl 7.88 sends one request after another."""
    with secure_site() as server:
        in_parallel(3, lambda _: expect_parallel(server))


def expect_nghttp_served(server, **environment):
    def nghttp(*options):
        done = subprocess.run(["nghttp", *options], text=True,
                              capture_output=True, timeout=PATIENCE,
                              env={**os.environ, **environment})
        expect_equal((done.returncode, done.stderr), (0, ""), options)
        return done.stdout

    if not shutil.which("nghttp"):
        raise Skip("no nghttp")
    # It prints pieces of contents as they come; these have one each.
    got = nghttp("-m", "30", server.url + "/f77", server.url + "/none")
    expect_equal((got.count("77" * (77 * 37 % 500)),
                  got.count("404 Not Found\n")), (30, 30), "contents")
    got = nghttp("-nsm", "90", server.url + "/big.bin")
    expect_equal(len(re.findall(r" 200 +1M /big.bin", got)), 90, got)


def h2d_serves_nghttp():
    with site() as server, server.leaks_nothing():
        expect_nghttp_served(server)


def h2d_speaks_of_http2_alone():
    with secure_site() as server:
        refused = subprocess.run(
            ["curl", "-sS", "--http1.1", *map(str, server.curl[1:]),
             server.url], capture_output=True, timeout=PATIENCE)
        expect(refused.returncode != 0, refused.stdout)
        expect_equal(curl(server, "/")[0], 200, "and goes on")


def h2d_refuses_a_wrong_command_line():
    with site() as server:
        for arguments in ([server.root / "none"], [server.root / "index.html"],
                          [server.root, f"127.0.0.1:{server.port}"],
                          [server.root, "nowhere"]):
            expect_complaint("h2d", *arguments)
    for arguments in [], [".", ":0", "x"], [".", "--idle-ms", "0"], ["--no"]:
        expect_equal(run("h2d", *arguments).returncode, 2, arguments)


# ---- Windows and streams -----------------------------------------------------

def h2d_keeps_to_windows():
    with site() as server, Peer(server, NO_WINDOW) as peer:
        peer.send(request(1, "/big.bin"))
        expect_equal(peer.status(1), 200, "status")
        expect(not any(got[0] == DATA for got in peer.round_trip()), "DATA")
        for size in 1, 2, 40000:
            peer.send(update(1, size))
            expect(peer.content(1, size, grant=False), "content")
        # 65,535 bytes are the window of the connection.
        peer.send(update(1, 1 << 30))
        got = peer.content(1, 65535 - 40003, grant=False)
        expect_equal(got, BIG[40003:65535], "content")
        expect(not any(got[0] == DATA for got in peer.round_trip()), "DATA")
        peer.send(update(0, 1 << 30))
        got = peer.content(1, len(BIG) - 65535, grant=False)
        expect_equal(got, BIG[65535:], "content")


def h2d_lets_no_stream_hold_up_another():
    """Of 50 streams that get no further, and others that do."""
    with site() as server, Peer(server, setting(INITIAL_WINDOW, 10)) as peer:
        peer.send(*(request(i, "/huge") for i in range(1, 100, 2)))
        for i in range(1, 100, 2):
            expect_equal(peer.content(i, 10, grant=False), b"\0" * 10, "huge")
        for i in range(101, 141, 2):
            peer.send(request(i, "/sub/note.txt"))
            expect_equal(peer.content(i, 10, grant=False), NOTE, "note")
        peer.send(*(reset(i) for i in range(1, 100, 2)))
        expect(not any(got[0] == GOAWAY for got in peer.round_trip()), "GOAWAY")
        soon(lambda: server.descriptors() < 50, "a close of the files")


def h2d_limits_streams():
    with site("--max-streams", 3) as server, Peer(server, NO_WINDOW) as peer:
        kind, _, _, payload = peer.next()
        expect_equal(kind, SETTINGS, "the first frame")
        expect(setting(CONCURRENT_STREAMS, 3) in payload, payload)
        peer.send(*(request(i, "/big.bin") for i in (1, 3, 5, 7)))
        _, stream, payload = peer.until(RST_STREAM)
        expect_equal((stream, payload[3]), (7, REFUSED_STREAM), "refused")
        peer.send(reset(1), request(9, "/none", method="HEAD"))
        expect_equal(peer.status(9), 404, "another")


def h2d_limits_connections():
    with site("--max-connections", 2) as server:
        first, second, third = (Peer(server) for _ in range(3))
        with first, second, third:
            for peer in first, second:
                peer.send(request(1))
                expect_equal(peer.status(1), 200, "status")
            third.send(request(1))
            third.socket.settimeout(0.1)
            with contextlib.suppress(TimeoutError):
                expect(not third.next(), "served a third")
            third.socket.settimeout(PATIENCE)
            first.socket.close()
            expect_equal(third.status(1), 200, "the third")


def h2d_drops_the_content_of_requests():
    with site() as server, Peer(server) as peer:
        peer.send(request(1, "/sub/note.txt", end=False))
        expect_equal(peer.content(1, 10, grant=False), NOTE, "content")
        _, _, payload = peer.until(RST_STREAM, 1)
        expect_equal(payload[3], NO_ERROR, "reason")
    # The window of the connection opens again, those of streams do not.
    with site() as server, Peer(server, NO_WINDOW) as peer:
        for i in 1, 3, 5:
            peer.send(request(i, "/big.bin", end=False),
                      frame(DATA, 0, i, b"x" * 16000))
        expect_equal(peer.until(WINDOW_UPDATE)[1], 0, "the stream")
        expect(not any(got[0] == WINDOW_UPDATE for got in peer.round_trip()),
               "more")


def h2d_takes_an_empty_frame_as_the_end_of_a_request():
    with site() as server, Peer(server) as peer:
        for first in range(1, 4001, 100):
            streams = range(first, first + 100, 2)
            peer.send(*(request(i, "/none", end=False, method="HEAD") +
                        frame(DATA, END_STREAM, i) for i in streams))
            for i in streams:
                expect_equal(peer.status(i), 404, "status")


def h2d_survives_a_file_that_shrinks():
    with site() as server, Peer(server, setting(INITIAL_WINDOW, 10)) as peer:
        peer.send(request(1, "/big.bin"), request(3))
        expect_equal(peer.content(1, 10, grant=False), BIG[:10], "content")
        os.truncate(server.root / "big.bin", 1000)
        peer.send(update(1, 1 << 30), update(0, 1 << 30))
        peer.until(RST_STREAM, 1)
        peer.send(request(5))
        expect_equal(peer.status(5), 200, "the connection")


# ---- Ends --------------------------------------------------------------------

IDLE_MS = 2000


def h2d_ends_idle_connections():
    """Those that ask for nothing, and those whose answers do not get on."""
    kinds = [("idle", b""), ("part of a frame", frame(HEADERS)[:4]),
             ("part of a header", frame(HEADERS, 0, 1, fields())),
             ("answered", request(1, "/none", method="HEAD")),
             ("no window", request(1, "/big.bin"))]

    def client(i):
        what, data = kinds[i]
        with Peer(server, NO_WINDOW) as peer:
            peer.send(data)
            expect_equal(peer.end(), NO_ERROR, what)
    with site("--idle-ms", IDLE_MS) as server, server.leaks_nothing():
        in_parallel(len(kinds), client)


def h2d_ends_connections_that_are_only_pinged():
    with site("--idle-ms", IDLE_MS) as server, Peer(server) as peer:
        end = time.monotonic() + PATIENCE
        kind = None
        while kind != GOAWAY:
            expect(time.monotonic() < end, "pings keep it open")
            if not select.select([peer.socket], [], [], IDLE_MS / 10_000)[0]:
                peer.send(frame(PING, 0, 0, b"12345678"))
            kind, _, _, payload = peer.next()
        expect_equal(payload[7], NO_ERROR, "GOAWAY")


def h2d_ends_connections_that_are_not_read():
    with site("--idle-ms", IDLE_MS) as server:
        sockets = opened(server, "socket:")
        with Peer(server, WHOLE_WINDOW) as peer:
            peer.send(update(0, (1 << 31) - 65536), request(1, "/huge"))
            peer.content(1, 1000, grant=False)
            soon(lambda: opened(server, "/huge") == 0, "a close of its file")
            soon(lambda: opened(server, "socket:") == sockets, "its end")


def expect_answers_after_half_close(server, connect=Peer):
    with connect(server, WHOLE_WINDOW) as peer:
        peer.send(update(0, 1 << 30), request(1, "/big.bin"),
                  request(3, "/none", method="HEAD"),
                  request(5, "/sub/note.txt"))
        peer.half_close()
        peer.end()
        for stream, content in (1, BIG), (3, b""), (5, NOTE):
            came = [got for got in peer.kept if got[2] == stream]
            expect_equal(b"".join(payload for kind, _, _, payload in came
                                  if kind == DATA), content, stream)
            expect(came and came[-1][1] & END_STREAM, stream, "has no end")


def h2d_answers_clients_that_half_close():
    with site() as server, server.leaks_nothing():
        expect_answers_after_half_close(server)


def h2d_ends_half_closed_connections_that_are_owed_nothing():
    """Long before they are idle.  No window will grow."""
    with site() as server, server.leaks_nothing():
        for what, data in {
                "idle": b"", "part of a frame": frame(HEADERS)[:4],
                "part of a header": frame(HEADERS, 0, 1, fields()),
                "part of a request": frame(HEADERS, END_HEADERS, 1, fields()),
                "reset": request(1, "/big.bin") + reset(1),
                "no window": request(1, "/big.bin"),
                "some window": request(1, "/big.bin") + update(1, 40000),
                "one window": request(1, "/big.bin") + update(1, 1 << 30),
        }.items():
            with Peer(server, NO_WINDOW) as peer:
                peer.send(data)
                peer.half_close()
                peer.end()
                expect(not what.endswith("window") or any(
                    got[0] == HEADERS for got in peer.kept), what, peer.kept)


def h2d_ends_half_closed_connections_that_are_not_read():
    with site("--idle-ms", IDLE_MS) as server, server.leaks_nothing(), \
            Peer(server, WHOLE_WINDOW) as peer:
        peer.send(update(0, (1 << 31) - 65536), request(1, "/huge"))
        peer.content(1, 1000, grant=False)
        peer.half_close()
        soon(lambda: opened(server, "/huge") == 0, "a close of its file")


def opened(server, name):
    """How many of its descriptors are of such files."""
    links = pathlib.Path(f"/proc/{server.process.pid}/fd")
    count = 0
    for link in links.iterdir():
        with contextlib.suppress(OSError):
            count += name in os.readlink(link)
    return count


@contextlib.contextmanager
def busy(idle):
    """A client that would have been idle for so long was held up."""
    start = time.monotonic()
    try:
        yield
    except (AssertionError, ConnectionError):
        if time.monotonic() - start > idle / 2:
            raise Skip("the machine is too slow") from None
        raise


def h2d_ends_streams_that_get_no_further():
    """While new requests come."""
    idle = 2
    with site("--idle-ms", idle * 1000) as server, \
            Peer(server, NO_WINDOW) as peer:
        stalled = set(range(1, 100, 2))
        peer.send(*(request(i, "/huge") for i in stalled))
        end = time.monotonic() + PATIENCE
        last = 101
        while stalled:
            with busy(idle):
                peer.send(request(last, "/none", method="HEAD"))
                expect_equal(peer.status(last), 404, "status")
                time.sleep(0.02)
            last += 2
            for _, _, stream, payload in taken(peer, RST_STREAM):
                expect_equal(payload[3], CANCEL, "reset")
                stalled.discard(stream)
            expect(time.monotonic() < end, len(stalled), "are open")
        soon(lambda: opened(server, "/huge") == 0, "a close of the files")


def taken(peer, kind):
    """The frames of that kind that came before others."""
    came = [got for got in peer.kept if got[0] == kind]
    peer.kept = [got for got in peer.kept if got[0] != kind]
    return came


def h2d_keeps_connections_that_get_on():
    """One with new requests, and one whose answer goes on."""
    idle = 2
    with site("--idle-ms", idle * 1000) as server, Peer(server) as asks, \
            Peer(server, NO_WINDOW) as reads:
        reads.send(request(1, "/big.bin"))
        end = time.monotonic() + 1.5 * idle
        stream = 1
        while time.monotonic() < end:
            with busy(idle):
                asks.send(request(stream, "/sub/note.txt", method="HEAD"))
                expect_equal(asks.status(stream), 200, "status")
                stream += 2
                reads.send(update(1, 1), update(0, 1))
                reads.content(1, 1, grant=False)


def h2d_lets_streams_finish_at_its_end():
    with site("--grace-ms", 1_000_000, status=0) as server, \
            Peer(server) as peer:
        peer.send(request(1, "/big.bin"))
        got = peer.content(1, 1000)
        os.kill(server.process.pid, signal.SIGTERM)
        # First that there will be an end, then, after a round trip, the last.
        _, _, payload = peer.until(GOAWAY)
        expect_equal(payload, b"\x7f\xff\xff\xff\0\0\0\0", "notice")
        peer.send(request(3, "/sub/note.txt", method="HEAD"))
        _, _, payload = peer.until(PING)
        expect_equal(peer.status(3), 200, "a request that was under way")
        peer.send(frame(PING, ACK, 0, payload))
        _, _, payload = peer.until(GOAWAY)
        expect_equal(payload, b"\0\0\0\3\0\0\0\0", "the last stream")
        got += peer.content(1, len(BIG) - len(got))
        expect_equal(got, BIG, "content")
        expect_equal(peer.end(), None, "after that")
        with contextlib.suppress(ConnectionRefusedError):
            server.connect()
            raise AssertionError("it listens still")


def h2d_ends_streams_after_a_grace():
    """Without the option, that is longer than the test waits."""
    with site("--grace-ms", 300, status=0) as server, \
            Peer(server, NO_WINDOW) as peer:
        peer.send(request(1, "/big.bin"))
        expect_equal(peer.status(1), 200, "status")
        os.kill(server.process.pid, signal.SIGTERM)
        peer.end()


CASES = [function for name, function in list(globals().items())
         if name.startswith("h2d_")]
