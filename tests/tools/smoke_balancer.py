# SPDX-License-Identifier: MIT
"""Smoke tests of examples/balancer; smoke_examples.py runs them."""

import collections
import contextlib
import os
import select
import signal
import socket
import threading
import time

from tap import Skip
from smoke_kit import (exchange, expect, expect_equal, held_port, in_parallel,
                       read_exactly, read_to_end, reset, run, serving, soon,
                       ADDRESS, PATIENCE)

NEVER = "--check-ms", "1000000"  # after the first check


class Backend:
    """Sends its name, of one byte, to each client, and then what it gets.  Its
    port is held: it refuses connections when the backend is gone."""

    def __init__(self, name, port):
        self.name = name
        self.ended = 0  # connections
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = port
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                peer = self.listener.accept()[0]
                threading.Thread(target=self.serve, args=(peer,),
                                 daemon=True).start()

    def serve(self, peer):
        with peer, contextlib.suppress(OSError):
            peer.sendall(self.name)
            while data := peer.recv(65536):
                peer.sendall(data)
        self.ended += 1

    def close(self):
        """No further connection is accepted."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()


@contextlib.contextmanager
def backends(names):
    with contextlib.ExitStack() as stack:
        made = [Backend(bytes([name]), stack.enter_context(held_port()))
                for name in names]
        try:
            yield made
        finally:
            for backend in made:
                with contextlib.suppress(OSError):
                    backend.close()


def balancer(servers, *options, **more):
    return serving("balancer", ADDRESS,
                   *[f"127.0.0.1:{server.port}" for server in servers],
                   *options, **more)


def names_of(server, count):
    """How many of those clients, one after the other, each backend served."""
    return collections.Counter(exchange(server, b"x")[:-1]
                               for _ in range(count))


def balancer_gives_each_backend_its_turn():
    for workers in 1, 2:
        with backends(b"abc") as three, \
                balancer(three, *NEVER, "-w", workers) as server, \
                server.leaks_nothing():
            names_of(server, 2)  # the turns need not begin with the first
            expect_equal(names_of(server, 30), {b"a": 10, b"b": 10, b"c": 10},
                         "turns")


def balancer_prefers_the_backend_with_fewest_connections():
    with backends(b"ab") as two, balancer(two, *NEVER, "--least") as server, \
            contextlib.ExitStack() as stack:
        soon(lambda: all(one.ended for one in two), "a check has ended")
        held = collections.defaultdict(list)

        def hold(count):
            for _ in range(count):
                peer = stack.enter_context(server.connect())
                held[read_exactly(peer, 1)].append(peer)
        hold(10)
        expect_equal([len(held[b"a"]), len(held[b"b"])], [5, 5], "equal")
        before = server.descriptors()
        for _ in range(4):
            held[b"a"].pop().close()
        soon(lambda: server.descriptors() <= before - 2 * 4, "six left")
        hold(4)
        expect_equal([len(held[b"a"]), len(held[b"b"])], [5, 5], "equal again")


def balancer_hides_from_clients_that_a_backend_is_gone():
    with backends(b"abc") as three, balancer(three, *NEVER) as server, \
            server.leaks_nothing():
        three[1].close()
        expect_equal(set(names_of(server, 30)), {b"a", b"c"}, "names")


def balancer_uses_a_backend_again_that_is_back():
    with backends(b"ab") as two, \
            balancer(two, "--check-ms", 20) as server, server.leaks_nothing():
        for _ in range(2):
            two[0].close()
            expect_equal(names_of(server, 10), {b"b": 10}, "without the first")
            two[0] = Backend(b"a", two[0].port)
            soon(lambda: names_of(server, 1)[b"a"], "used again")
        # It takes part in full, and not only now and then.
        expect_equal(names_of(server, 10), {b"a": 5, b"b": 5}, "both")


def balancer_waits_a_limited_time_for_a_connect():
    with socket.socket() as full, backends(b"a") as one, \
            contextlib.ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(64):
            peer = stack.enter_context(socket.socket())
            peer.setblocking(False)
            peer.connect_ex(full.getsockname())
            if not select.select([], [peer], [], 0.3)[1]:
                break
        else:
            raise Skip("a listener's backlog has no end here")
        silent = collections.namedtuple("Silent", "port")(
            full.getsockname()[1])
        with balancer([silent, *one], *NEVER, "--connect-ms", 2000) as server:
            expect_equal(names_of(server, 6), {b"a": 6}, "one")


def balancer_ends_connections_that_no_backend_takes():
    with backends(b"ab") as two, \
            balancer(two, "--check-ms", 20) as server, server.leaks_nothing():
        for backend in two:
            backend.close()
        for _ in range(5):
            with contextlib.suppress(ConnectionError):
                expect_equal(exchange(server, b""), b"", "from nobody")
        two[1] = Backend(b"b", two[1].port)
        soon(lambda: exchange(server, b"") == b"b", "used again")


def balancer_passes_a_mebibyte_for_each_of_50():
    def client(i):
        data = os.urandom(1 << 20)
        got = exchange(server, data)
        expect(got[:1] in b"ab" and got[1:] == data, "client", i, "other bytes")
    for option in "--least", "-w2":
        with backends(b"ab") as two, balancer(two, option) as server, \
                server.leaks_nothing():
            in_parallel(50, client)


def balancer_passes_on_that_a_client_is_gone():
    with backends(b"a") as one, balancer(one, *NEVER) as server, \
            server.leaks_nothing():
        for _ in range(20):
            peer = server.connect()
            read_exactly(peer, 1)
            reset(peer)


def balancer_lets_open_connections_end():
    for told in signal.SIGTERM, signal.SIGINT:
        with backends(b"a") as one, \
                balancer(one, "--grace-ms", 1000 * PATIENCE, status=0) as server, \
                server.connect() as peer:
            expect_equal(read_exactly(peer, 1), b"a", "before")
            server.process.send_signal(told)
            soon(server.refuses, "the end of listening")
            peer.sendall(b"still here")
            expect_equal(read_exactly(peer, 10), b"still here", "after")
            peer.shutdown(socket.SHUT_WR)
            expect_equal(read_to_end(peer), b"", "the end")


def balancer_ends_connections_after_the_time_of_grace():
    with backends(b"a") as one, \
            balancer(one, "--grace-ms", 200, status=0) as server, \
            server.connect() as peer:
        expect_equal(read_exactly(peer, 1), b"a", "before")
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(ConnectionError):
            expect_equal(read_to_end(peer), b"", "the end")
        expect(time.monotonic() - start >= 0.2, "not after 0.2 s")


def balancer_says_what_is_wrong():
    with backends(b"a") as one, balancer(one) as server:
        used = f"127.0.0.1:{server.port}"
        for address in "nowhere", used:
            done = run("balancer", address, used)
            expect_equal(done.returncode, 1, address)
            expect(address in done.stderr, repr(done.stderr))
    for arguments in [], [":0"], [":0", "nowhere"], [":0", ":1", "-w", "0"], \
            [":0", ":1", "--check-ms", "x"], [":0", *[":1"] * 65]:
        expect_equal(run("balancer", *arguments).returncode, 2, arguments)


CASES = [function for name, function in list(globals().items())
         if name.startswith("balancer_")]
