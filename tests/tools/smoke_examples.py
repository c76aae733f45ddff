#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""smoke_examples.py DIRECTORY: the examples, run for real.  TAP.

DIRECTORY holds the built programs.  Each server listens on a port that the
kernel chooses, and is ended by its process id.  No test sleeps for a fixed
time: each waits for an event, for at most PATIENCE.
"""

import contextlib
import hashlib
import os
import pathlib
import re
import resource
import select
import socket
import sys
import tempfile
import time

import smoke_balancer
import smoke_clients
import smoke_cp
import smoke_dns
import smoke_embed
import smoke_files
import smoke_h2d
import smoke_h2d_hostile
import smoke_h2d_tls
import smoke_kv
import smoke_languages
import smoke_processes
import smoke_prompt
import smoke_restart
import smoke_socks5
import smoke_tail
import smoke_tasks
import smoke_tls
import smoke_trees
from tap import Skip
from smoke_kit import (accepted, exchange, expect, expect_complaint,
                       expect_equal, expect_gone, expect_half_close, has_names,
                       in_parallel, listening, one_of_three, read_exactly,
                       read_header, read_to_end, reset, run, serving, test_all,
                       ADDRESS, PATIENCE)

CHANGED_NS = 784_111_777_250_000_000  # the date of RFC 9110, and a quarter
CHANGED = "Sun, 06 Nov 1994 08:49:37 GMT"


# ---- hello, lookup, million, timeout, echo, udp_echo, proxy --------------------------

@one_of_three  # 10 ms are between the words
def hello_greets():
    done = run("hello")
    expect_equal((done.returncode, done.stdout), (0, "hello\nworld\n"), "hello")


def lookup_resolves_each_name():
    done = run("lookup", "127.0.0.1", "::1", "x" * 64)  # not asked for
    expect(re.fullmatch(r"127.0.0.1: 127.0.0.1\n::1: ::1\nx{64}: .+\n",
                        done.stdout), "lookup said", repr(done.stdout))


def resolve_prints_the_addresses_of_each_name():
    if not has_names():
        raise Skip("it was built without c-ares")
    # Nothing listens there: localhost is known without a server.
    done = run("resolve", "127.0.0.1:1", stdin="localhost\nno name\n127.0.0.9")
    expect_equal((done.returncode, done.stderr), (1, ""), "resolve")
    lines = set(done.stdout.splitlines())
    expect("no name: Invalid argument" in lines, repr(done.stdout))
    expect("127.0.0.9 127.0.0.9" in lines, repr(done.stdout))
    expect(lines & {"localhost 127.0.0.1", "localhost [::1]"},
           repr(done.stdout))


def resolve_refuses_servers_that_are_none():
    done = run("resolve", "nowhere")
    expect_equal(done.returncode, 1, "status")


def million_futures_sleep_and_wake():
    done = run("million", "20000")
    said = re.fullmatch(r"20000 futures sleep, (\d+) bytes each\n60000 beats\n",
                        done.stdout)
    expect(done.returncode == 0 and said, "million said", repr(done.stdout))
    # The figure includes the memory of any program, and of sanitizers.  With a
    # stack for each future it would be at least 4096.
    expect(int(said[1]) < 1000, "bytes of a future", said[1])


def million_refuses_no_futures():
    done = run("million", "0")
    expect_equal(done.returncode, 2, "status")


@one_of_three  # 50 ms are between the third attempt and the end
def timeout_gives_up_and_goes_on():
    done = run("timeout")
    attempts = ("  attempt 1: nothing in 100 ms\n"
                "  attempt 2: nothing in 100 ms\n")
    expect_equal((done.returncode, done.stdout), (
        0, "within 2 s, an answer after 250 ms:\n" + attempts +
        "  answered: pong\nwithin 250 ms, no answer:\n" + attempts +
        "  gave up: the outer deadline has passed\n"), "timeout")


def fifty_clients_echo(server):
    def client(i):
        data = os.urandom(1 << 20)
        expect(exchange(server, data) == data, "client", i, "got other bytes")
    with server.leaks_nothing():
        in_parallel(50, client)


def echo_returns_a_mebibyte_to_each_of_50():
    for workers in 1, 2, 4:
        with serving("echo", ADDRESS, "--workers", workers) as server:
            fifty_clients_echo(server)


def echo_says_what_is_wrong():
    with serving("echo", ADDRESS) as server:
        for address in "nowhere", f"127.0.0.1:{server.port}":
            expect_complaint("echo", address)
    expect_equal(run("echo", "--workers", "0").returncode, 2, "usage")


def udp_echo_answers_each_of_20():
    def client(i):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(0.5)
            s.connect(("127.0.0.1", server.port))
            for turn in range(20):
                data = b"%d %d" % (i, turn) * (1 + 60 * turn)
                expect_equal(answered(s, data), data, "client")

    def answered(s, data):
        """A datagram may be lost, so it is sent again."""
        for _ in range(int(PATIENCE / 0.5)):
            s.send(data)
            with contextlib.suppress(TimeoutError):
                while (got := s.recv(65536)) != data:
                    pass
                return got
        return None
    with serving("udp_echo", ADDRESS) as server:
        in_parallel(20, client)
        for address in "nowhere", f"127.0.0.1:{server.port}":
            expect_complaint("udp_echo", address)


def proxy_passes_a_mebibyte_for_each_of_50():
    with serving("echo", ADDRESS) as echo, \
            serving("proxy", ADDRESS, f"127.0.0.1:{echo.port}") as proxy:
        with echo.leaks_nothing():
            fifty_clients_echo(proxy)


@contextlib.contextmanager
def proxied():
    """A proxy, and both ends of a connection through it."""
    with listening() as (listener, port), \
            serving("proxy", ADDRESS, f"127.0.0.1:{port}") as proxy, \
            proxy.connect() as client, accepted(listener) as server:
        yield client, server


def proxy_passes_a_half_close_either_way():
    for first in 0, 1:
        with proxied() as ends:
            expect_half_close(ends[first], ends[1 - first])


def proxy_passes_on_that_a_peer_is_gone():
    for gone in 0, 1:
        with proxied() as ends:
            expect_gone(ends[gone], ends[1 - gone])
    with serving("proxy", ADDRESS, "127.0.0.1:1") as proxy:
        with proxy.leaks_nothing():
            expect_equal(exchange(proxy, b""), b"", "where nobody listens")


def proxy_refuses_wrong_usage():
    for arguments in [], [ADDRESS, "nowhere"], [ADDRESS]:
        expect_equal(run("proxy", *arguments).returncode, 2, arguments)


# ---- httpd: a site, and what it should answer --------------------------------

INDEX = b"<p>index\n"
NOTE = b"0123456789"
BIG = os.urandom(3_000_000)
HUGE = (5 << 30) + 3
LISTING = b"""<!DOCTYPE html>
<meta charset="utf-8">
<title>/sub/</title>
<h1>/sub/</h1>
<ul>
<li><a href="./../">../</a>
<li><a href="./%3Cb%3E%26%22%3A%25">&lt;b&gt;&amp;&quot;:%</a>
<li><a href="./inner/">inner/</a>
<li><a href="./note.txt">note.txt</a>
</ul>
"""


def make_site(directory):
    root = pathlib.Path(directory, "root")
    (root / "sub" / "inner").mkdir(parents=True)
    pathlib.Path(directory, "secret").write_text("secret")
    for name, data in {
            "index.html": INDEX, "sub/note.txt": NOTE, "empty.css": b"",
            "sub/<b>&\":%": b"odd", "sub/.hidden": b"", "big.bin": BIG,
            "back\\slash": b"bs", "sp ace.json": b"{}", "64k": BIG[:65536],
            "8000.PNG": BIG[:8000], "huge": b""}.items():
        (root / name).write_bytes(data)
    os.truncate(root / "huge", HUGE)
    for name, target in {
            "out": "../secret", "out-dir": "..", "loop": "loop",
            "absolute": f"{directory}/secret", "in": "sub/note.txt"}.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(root / "socket"))
    for path in root.rglob("*"):
        if path.is_file():
            os.utime(path, ns=(CHANGED_NS, CHANGED_NS), follow_symlinks=False)
    return root


@contextlib.contextmanager
def site(*options):
    """An httpd with two workers."""
    with tempfile.TemporaryDirectory() as directory:
        root = make_site(directory)
        with serving("httpd", root, ADDRESS, "--workers", 2,
                     *options) as server:
            server.root = root
            yield server


def request(line="GET / HTTP/1.1", *fields, host="Host: x"):
    return "\r\n".join([line, host, *fields, "", ""]).encode("latin-1")


def answer(status, *fields, body=None, keep=True):
    if body is None:
        body = f"{status}\n".encode()
        fields = ("Content-Type: text/plain",
                  f"Content-Length: {len(body)}") + fields
    return "\r\n".join([
        f"HTTP/1.1 {status}", "Date: now", *fields,
        "Connection: " + ("keep-alive" if keep else "close"),
        "", ""]).encode() + body


def last_answer(status):
    return answer(status, keep=False)


def etag(size):
    return f'"784111777.250000000-{size}"'


def validators(size):
    return (f"Last-Modified: {CHANGED}", f"ETag: {etag(size)}",
            "Accept-Ranges: bytes")


def file_answer(kind, whole, part=None, head=False, keep=True):
    first, last = part or (0, len(whole) - 1)
    body = whole[first:last + 1]
    return answer(
        "206 Partial Content" if part else "200 OK",
        f"Content-Type: {kind}", f"Content-Length: {len(body)}",
        *[f"Content-Range: bytes {first}-{last}/{len(whole)}"] * bool(part),
        *validators(len(whole)), body=b"" if head else body, keep=keep)


def get(path, *fields):
    return request(f"GET {path} HTTP/1.1", *fields)


def note(*fields):
    return get("/sub/note.txt", *fields)


def note_part(first, last):
    return file_answer(TEXT, NOTE, (first, last))


CLOSE, BYTES = b"\r\nConnection: close\r\n", "application/octet-stream"
HTML, TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
NOTE_WHOLE = file_answer(TEXT, NOTE)
NOT_MODIFIED = answer("304 Not Modified", *validators(10), body=b"")
NO_RANGE = answer("416 Range Not Satisfiable", "Content-Range: bytes */10")
NOT_AS_ASKED = answer("412 Precondition Failed")
NOT_ALLOWED = answer("405 Method Not Allowed", "Allow: GET, HEAD")
MISSING = answer("404 Not Found")


def all_of(make, wanted, *arguments):
    return [(make(argument), wanted) for argument in arguments]


# The request, and the answer, which must match byte for byte, except the date.
TABLE = [
    *all_of(get, file_answer(HTML, INDEX), "/", "/index.html?query=1",
            "http://elsewhere", "/./sub/..//index.html"),
    *all_of(get, NOTE_WHOLE, "/sub/note.txt", "http://elsewhere/sub/note.txt"),
    (b"\r\n" + note(), NOTE_WHOLE),
    (note().replace(b"\r\n", b"\n"), NOTE_WHOLE),
    (get("/empty.css"), file_answer("text/css; charset=utf-8", b"")),
    (get("/8000.PNG"), file_answer("image/png", BIG[:8000])),
    (get("/64k"), file_answer(BYTES, BIG[:65536])),
    (get("/big.bin"), file_answer(BYTES, BIG)),
    (get("/sp%20ace.json"), file_answer("application/json", b"{}")),
    *all_of(get, file_answer(BYTES, b"bs"), "/back\\slash", "/back%5cslash"),
    (get("/in"), file_answer(BYTES, NOTE)),
    (get("/huge", f"Range: bytes={HUGE - 2}-"), answer(
        "206 Partial Content", f"Content-Type: {BYTES}", "Content-Length: 2",
        f"Content-Range: bytes {HUGE - 2}-{HUGE - 1}/{HUGE}",
        *validators(HUGE), body=b"\0\0")),
    # HEAD
    (request("HEAD / HTTP/1.1"), file_answer(HTML, INDEX, head=True)),
    (request("HEAD /none HTTP/1.1"), MISSING[:-len(b"404 Not Found\n")]),
    (request("HEAD /big.bin HTTP/1.1", "Range: bytes=1-2"),
     file_answer(BYTES, BIG, head=True)),
    # Directories
    *all_of(get, answer("301 Moved Permanently", "Location: /sub/"),
            "/sub", "//sub"),
    *all_of(get, answer("200 OK", f"Content-Type: {HTML}",
                    f"Content-Length: {len(LISTING)}", body=LISTING),
            "/sub/", "/sub/.", "/sub/inner/.."),
    # Ranges
    (note("Range: bytes=0-0"), note_part(0, 0)),
    (note("Range: bytes=2-4"), note_part(2, 4)),
    *all_of(note, note_part(7, 9), "range:bytes=7-", "Range: bytes=-3",
            "Range: bytes=7-99999999999999999999"),
    (note("Range: bytes=-11"), note_part(0, 9)),
    *all_of(note, NO_RANGE, "Range: bytes=10-", "Range: bytes=-0",
            "Range: bytes=99999999999999999999-"),
    *all_of(note, NOTE_WHOLE, "Range: bytes=0-1,3-4", "Range: bytes=4-2",
            "Range: bytes=-", "Range: lines=1-2", "Range: bytes"),
    (note("Range: bytes=2-4", f"If-Range: {etag(10)}"), note_part(2, 4)),
    (note("Range: bytes=2-4", 'If-Range: "other"'), NOTE_WHOLE),
    # Conditions
    *all_of(note, NOT_MODIFIED, "If-None-Match: *",
            f"If-None-Match: {etag(10)}", f'If-None-Match: "a", W/{etag(10)}',
            f"If-Modified-Since: {CHANGED}"),
    *all_of(note, NOTE_WHOLE, f"If-None-Match: {etag(11)}",
            "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT",
            "If-Modified-Since: nonsense"),
    (note('If-None-Match: "a"', f"If-Modified-Since: {CHANGED}"), NOTE_WHOLE),
    (note('If-None-Match: "a"', f"If-None-Match: {etag(10)}",
          'If-None-Match: "b"'), NOT_MODIFIED),
    *all_of(note, NOTE_WHOLE, "If-Match: *", f'If-Match: "a", {etag(10)}',
            f"If-Match: W/{etag(10)}, {etag(10)}",
            f"If-Unmodified-Since: {CHANGED}", "If-Unmodified-Since: nonsense"),
    *all_of(note, NOT_AS_ASKED, f"If-Match: {etag(11)}",
            f"If-Match: W/{etag(10)}",
            "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT"),
    (note('If-Match: "a"', f"If-Match: {etag(10)}",
          "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT",
          "Range: bytes=2-4"), note_part(2, 4)),
    *all_of(lambda condition: note("Range: bytes=2-4", condition),
            NOT_AS_ASKED, f"If-Match: {etag(11)}",
            "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT"),
    (note(f"If-Match: {etag(11)}", f"If-None-Match: {etag(10)}"),
     NOT_AS_ASKED),
    # Missing files, files that must not be sent, and paths out of the root
    *all_of(get, MISSING, "/none", "/" + "n" * 256, "/sub/note.txt/",
            "/%252e%252e/secret", "/..%2fsecret", "/..%5csecret",
            "/..\\secret", "/.../secret"),
    *all_of(get, answer("403 Forbidden"), "/fifo", "/socket", "/loop", "/..",
            "/../secret", "/sub/../../secret", "/%2e%2e/secret", "/absolute",
            "/.%2E/secret", "//../secret", "/out", "/out-dir/secret"),
    *all_of(get, answer("400 Bad Request"), "/index.html%00.txt", "/%", "/%4",
            "/%zz", "*"),
    (get("/" + "x" * 3000), answer("414 URI Too Long")),
    # Methods and versions
    (request("DELETE / HTTP/1.1"), NOT_ALLOWED),
    (request("OPTIONS * HTTP/1.1"), NOT_ALLOWED),
    (request("CONNECT x:80 HTTP/1.1"), last_answer("501 Not Implemented")),
    (get("/", "Connection: close"), file_answer(HTML, INDEX, keep=False)),
    (request("GET / HTTP/1.0", host="X: y"),
     file_answer(HTML, INDEX, keep=False)),
    (request("GET / HTTP/1.0", "Connection: keep-alive"),
     file_answer(HTML, INDEX)),
    (request("GET / HTTP/2.0"), last_answer("505 HTTP Version Not Supported")),
    # Invalid requests
    *[(data, last_answer("400 Bad Request")) for data in (
        request(host="X: y"), request("GET / HTTP/1.1", "Host: y"),
        get("/", "X : y"), get("/", "X: y", " folded"), get("/", "\r1"),
        b"nonsense\r\n\r\n", b"\x16\x03\x01\x02\x00", b"HTTP/1.1\r\n\r\n",
        get("/", "Content-Length: 1", "Content-Length: 2"),
        get("/", "Content-Length: 1", "Transfer-Encoding: chunked"))],
    # Bodies, which the server does not use
    (request("POST / HTTP/1.1", "Content-Length: 3") + b"abc", NOT_ALLOWED),
    (note("Content-Length: 20000") + b"b" * 20000, NOTE_WHOLE),
    (note("Transfer-Encoding: chunked") + b"3\r\nabc\r\n0\r\nT: x\r\n\r\n",
     NOTE_WHOLE),
    (note("Content-Length: 70000") + b"b" * 70000,
     last_answer("413 Payload Too Large")),
    (note("Transfer-Encoding: gzip"), last_answer("501 Not Implemented")),
    (note("Content-Length: 3", "Expect: 100-continue"),
     file_answer(TEXT, NOTE, keep=False)),
    # Endless headers
    (get("/", "X: " + "y" * 9000),
     last_answer("431 Request Header Fields Too Large")),
    (get("/" + "x" * 9000), last_answer("414 URI Too Long")),
]


def undated(data):
    return re.sub(rb"(HTTP/1\.1 .*\r\nDate: )\w{3}, \d\d \w{3} \d{4} "
                  rb"\d\d:\d\d:\d\d GMT\r\n", rb"\1now\r\n", data)


def httpd_answers_each_request_byte_for_byte():
    """A second request follows, to show where the first one ended."""
    with site() as server, server.leaks_nothing():
        for data, wanted in TABLE:
            wanted += b"" if CLOSE in wanted else MISSING
            got = exchange(server, data + get("/none"))
            expect_equal(undated(got), wanted, data[:99])


def httpd_answers_twenty_requests_in_one_segment():
    cases = [c for c in TABLE if CLOSE not in c[1] and len(c[0]) < 400][10:30]
    with site() as server:
        got = exchange(server, b"".join(data for data, _ in cases))
        expect_equal(undated(got), b"".join(wanted for _, wanted in cases),
                     "pipelined")


def httpd_puts_a_request_together_byte_by_byte():
    with site() as server, server.connect() as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = b"5\r\nabcde\r\n0\r\n\r\n"
        for byte in note("Transfer-Encoding: chunked") + body + note():
            peer.sendall(bytes([byte]))
        peer.shutdown(socket.SHUT_WR)
        expect_equal(undated(read_to_end(peer)), NOTE_WHOLE * 2, "trickled")


def httpd_answers_what_exceeds_its_buffer_in_pieces():
    """A buffer's end falls everywhere within a request."""
    requests = [note("X: " + "y" * (i * 37 % 1000)) for i in range(200)]
    with site() as server:
        got = exchange(server, b"".join(requests))
        expect_equal(undated(got), NOTE_WHOLE * 200, "many")


def httpd_bounds_a_header_not_an_idle_connection():
    """The deadline covers the whole header, even if bytes keep coming."""
    with site("--header-timeout-ms", 400) as server, \
            server.connect() as idle, server.connect() as slow:
        start = time.monotonic()
        slow.sendall(b"GET / HTTP/1.1\r\n")
        while not select.select([slow], [], [], 0.02)[0]:
            slow.sendall(b"X: y\r\n")
        expect(0.39 < time.monotonic() - start < PATIENCE, "not after 0.4 s")
        slow.shutdown(socket.SHUT_WR)
        expect_equal(undated(read_to_end(slow)),
                     last_answer("408 Request Timeout"), "slow")
        idle.sendall(note("Connection: close"))
        expect_equal(undated(read_to_end(idle)),
                     file_answer(TEXT, NOTE, keep=False), "idle")


def httpd_sends_a_big_file_to_200_at_once():
    wanted = hashlib.sha256(BIG).digest()

    def client(_):
        body = hashlib.sha256()
        with server.connect() as peer:
            peer.sendall(get("/big.bin", "Connection: close"))
            read_header(peer)
            while piece := peer.recv(65536):
                body.update(piece)
        expect_equal(body.digest(), wanted, "the digest")
    with site() as server, server.leaks_nothing():
        in_parallel(200, client)


def httpd_forgets_clients_that_break_off():
    with site() as server, server.leaks_nothing():
        for data in b"", b"GET /", get("/big.bin"), get("/big.bin") * 50:
            for _ in range(20):
                peer = server.connect()
                peer.sendall(data)
                if len(data) > 10:
                    read_exactly(peer, 1000)
                reset(peer)


def httpd_keeps_newcomers_waiting_at_its_limit():
    with site("--max-connections", 2) as server:
        with server.connect() as first, server.connect() as second, \
                server.connect() as third:
            for peer in first, second:
                peer.sendall(note())
                read_header(peer)
            third.sendall(note("Connection: close"))
            expect(not select.select([third], [], [], 0.1)[0], "served a third")
            first.close()
            expect_equal(undated(read_to_end(third)),
                         file_answer(TEXT, NOTE, keep=False), "the third")


def httpd_survives_a_lack_of_descriptors():
    with site() as server:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (64, 64))
        peers = [server.connect() for _ in range(200)]
        for peer in peers:
            peer.sendall(note("Connection: close"))
        for peer in peers:
            status = read_to_end(peer)[:12]
            expect(status in (b"HTTP/1.1 200", b"HTTP/1.1 503"), status)
            peer.close()
        expect(undated(exchange(server, note())) == NOTE_WHOLE, "afterwards")


def httpd_serves_a_file_as_it_is_now():
    with site() as server, server.connect() as peer:
        for data in NOTE, b"changed", b"":
            (server.root / "sub" / "note.txt").write_bytes(data)
            peer.sendall(note(f"If-None-Match: {etag(10)}"))
            expect_equal(read_header(peer)[:12], b"HTTP/1.1 200", "status")
            expect_equal(read_exactly(peer, len(data)), data, "content")
        (server.root / "sub" / "note.txt").unlink()
        peer.sendall(note())
        expect_equal(read_header(peer)[:12], b"HTTP/1.1 404", "when gone")


def httpd_says_what_is_wrong():
    with site() as server:
        for arguments in ([server.root / "none"], [server.root / "index.html"],
                          [server.root, f"127.0.0.1:{server.port}"],
                          [server.root, "nowhere"]):
            expect_complaint("httpd", *arguments)
    for arguments in [], [".", ":0", "x"], [".", "--workers", "x"], ["--no"]:
        expect_equal(run("httpd", *arguments).returncode, 2, arguments)


CASES = [function for name, function in list(globals().items())
         if re.match("(hello|lookup|resolve|million|timeout|echo|udp_echo|proxy|"
                     "httpd)_", name)]
MODULES = [smoke_balancer, smoke_clients, smoke_cp, smoke_dns, smoke_embed,
           smoke_files, smoke_h2d, smoke_h2d_hostile, smoke_h2d_tls,
           smoke_kv, smoke_languages, smoke_processes, smoke_prompt, smoke_restart,
           smoke_socks5, smoke_tail, smoke_tasks, smoke_tls, smoke_trees]


if __name__ == "__main__":
    sys.exit(test_all(CASES + [
        case for module in MODULES for case in module.CASES]))
