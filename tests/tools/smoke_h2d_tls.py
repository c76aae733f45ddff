# SPDX-License-Identifier: MIT
"""Smoke tests of h2d over TLS, but for those with curl: nghttp, and a client
that does as it likes.  smoke_examples.py runs them."""

import contextlib
import socket
import ssl
import threading

import smoke_tls
from http2_peer import PING, Peer, frame, request, reset, update
from smoke_h2d import (BIG, INDEX, NO_WINDOW, WHOLE_WINDOW,
                       expect_answers_after_half_close, expect_nghttp_served,
                       expect_served, opened, secure_site)
from smoke_h2d_hostile import expect_calmed
from smoke_kit import expect, expect_equal, read_to_end, soon


class SecureSocket:
    """TLS over a socket.  One thread may send while another one receives."""

    def __init__(self, plain, *protocols):
        context = ssl.create_default_context(
            cafile=str(smoke_tls.TOP / "ca.pem"))
        if protocols:
            context.set_alpn_protocols(protocols)
        self.plain, self.lock = plain, threading.Lock()
        self.input, self.output = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.input, self.output,
                                    server_hostname="localhost")
        self.run(self.tls.do_handshake)

    def run(self, function, *arguments):
        """A function of OpenSSL, and what it sends and waits for."""
        done = False
        while not done:
            with self.lock:
                try:
                    result = function(*arguments)
                    done = True
                except ssl.SSLWantReadError:
                    pass
                finally:
                    made = self.output.read()
            if made:
                self.plain.sendall(made)
            if not done:
                self.receive()
        return result

    def receive(self):
        data = self.plain.recv(65536)
        with self.lock:
            if data:
                self.input.write(data)
            else:
                self.input.write_eof()

    def sendall(self, data):
        # A record each, so that the peer has what was sent before an error.
        for start in range(0, len(data), 16384):
            self.run(self.tls.write, data[start:start + 16384])

    def recv(self, size):
        """The end is a close_notify; without one it is an ssl.SSLEOFError."""
        with contextlib.suppress(ssl.SSLZeroReturnError):
            return self.run(self.tls.read, size)
        return b""

    def shutdown(self, _):
        """Sends close_notify, and does not wait for the peer's."""
        with self.lock, contextlib.suppress(ssl.SSLWantReadError):
            self.tls.unwrap()
        self.plain.sendall(self.output.read())

    def close(self):
        self.plain.close()


class SecurePeer(Peer):
    @staticmethod
    def connect(server):
        secure = SecureSocket(Peer.connect(server), "h2")
        expect_equal(secure.tls.selected_alpn_protocol(), "h2", "ALPN")
        return secure


def said(error):
    """A Python knows the names of some errors, and spells them its way."""
    return str(error).lower().replace("_", " ")


def h2d_serves_nghttp_over_tls():
    with secure_site() as server, server.leaks_nothing():
        expect_nghttp_served(server,
                             SSL_CERT_FILE=str(smoke_tls.TOP / "ca.pem"))


def h2d_keeps_to_windows_over_tls():
    with secure_site() as server, server.leaks_nothing(), \
            SecurePeer(server, NO_WINDOW) as peer:
        peer.send(update(0, 1 << 30), request(1, "/big.bin"))
        expect_equal(peer.status(1), 200, "status")
        peer.send(request(3, "/none", method="HEAD"))
        expect_equal(peer.status(3), 404, "status")
        at = 0
        # Some fit into a record of TLS, and some do not.
        for size in 1, 16375, 16376, 16384, 16385, 100_000, 65_535:
            peer.send(update(1, size))
            expect(peer.content(1, size, grant=False) == BIG[at:at + size],
                   "content at", at)
            at += size


def h2d_refuses_other_protocols_of_tls():
    with secure_site() as server, server.leaks_nothing():
        for protocols in ["http/1.1"], ["h2c", "h3", "H2"]:
            with server.connect() as plain:
                try:
                    SecureSocket(plain, *protocols)
                except ssl.SSLError as error:
                    expect("no application protocol" in said(error), error)
                else:
                    raise AssertionError(f"it speaks one of {protocols}")
        with server.connect() as plain:
            secure = SecureSocket(plain, "http/1.1", "h2")
            expect_equal(secure.tls.selected_alpn_protocol(), "h2", "ALPN")
        expect_served(server, SecurePeer)


def h2d_answers_clients_that_half_close_over_tls():
    with secure_site() as server, server.leaks_nothing():
        expect_answers_after_half_close(server, SecurePeer)
        # One with nothing to be sent.
        with SecurePeer(server) as peer:
            peer.half_close()
            peer.end()


def h2d_ends_connections_that_are_cut_off():
    """Without a close_notify, also in the middle of a record."""
    with secure_site() as server, server.leaks_nothing():
        for data in b"", b"\x17\x03\x03\x40\x00" + b"x" * 1000:
            with SecurePeer(server, WHOLE_WINDOW) as peer:
                peer.send(update(0, (1 << 31) - 65536), request(1, "/huge"))
                peer.content(1, 1000, grant=False)
                peer.socket.plain.sendall(data)
                peer.socket.plain.shutdown(socket.SHUT_WR)
                # It does not wait for the client to take what is on its way.
                soon(lambda: opened(server, "/huge") == 0,
                     "a close of its file")
        # In the handshake, and behind it.
        for size in 0, 3, 100, None:
            with server.connect() as plain:
                if size is None:
                    SecureSocket(plain, "h2")
                else:
                    plain.sendall(hello()[:size])
                plain.shutdown(socket.SHUT_WR)
                read_to_end(plain)
        expect_served(server, SecurePeer)


def hello():
    """The first bytes of a client."""
    output = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), output,
                                                server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return output.read()


def h2d_ends_clients_that_garble_tls():
    with secure_site() as server, server.leaks_nothing():
        for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\xaa" * 5000,
                     hello()[:-1] + b"\xaa" * 5000):
            with server.connect() as plain, \
                    contextlib.suppress(ConnectionError):
                plain.sendall(data)
                read_to_end(plain)
        # A record that does not decrypt.
        with SecurePeer(server) as peer, contextlib.suppress(ConnectionError):
            peer.send(request(1))
            expect_equal(peer.content(1, len(INDEX)), INDEX, "content")
            peer.socket.plain.sendall(b"\x17\x03\x03\x00\x40" + b"x" * 64)
            try:
                read_to_end(peer.socket)
            except ssl.SSLError as error:
                expect("bad record mac" in said(error), error)
        expect_served(server, SecurePeer)


def h2d_ends_floods_over_tls():
    with secure_site() as server, server.leaks_nothing():
        pings = [frame(PING, 0, 0, b"12345678")] * 5000
        expect_calmed(server, pings, NO_WINDOW, SecurePeer)
        expect_calmed(server, pings, b"", SecurePeer, 1)  # a record for each
        expect_calmed(server, [request(i, "/big.bin") + reset(i)
                               for i in range(1, 4000, 2)],
                      connect=SecurePeer)
        expect_served(server, SecurePeer)


CASES = [function for name, function in list(globals().items())
         if name.startswith("h2d_")]
