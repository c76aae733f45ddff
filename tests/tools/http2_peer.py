# SPDX-License-Identifier: MIT
"""A client of HTTP/2 that sends what a test likes, frame by frame (RFC 9113)."""

import contextlib
import socket
import struct

from smoke_kit import expect, read_exactly

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
(DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, _, PING, GOAWAY, WINDOW_UPDATE,
 CONTINUATION) = range(10)
END_STREAM = ACK = 1
END_HEADERS = 4
NO_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 0, 7, 8, 11
CONCURRENT_STREAMS, INITIAL_WINDOW = 3, 4
# An answer begins with its status, which HPACK's static table has.
STATUS = {0x88: 200, 0x8a: 206, 0x8b: 304, 0x8c: 400, 0x8d: 404, 0x8e: 500}


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(
        ">BBI", kind, flags, stream) + payload


def setting(identifier, value):
    return struct.pack(">HI", identifier, value)


def string(text):
    """Of HPACK, without a code that shortens it."""
    size = len(text)
    if size < 127:
        return bytes([size]) + text
    data, size = bytearray([127]), size - 127
    while size >= 128:
        data.append(size % 128 + 128)
        size //= 128
    return bytes(data) + bytes([size]) + text


def field(name, value):
    """That enters no table."""
    return b"\0" + string(name.encode()) + string(value.encode())


def fields(path="/", method="GET", **more):
    return b"".join(field(name, value) for name, value in {
        ":method": method, ":scheme": "http", ":path": path,
        ":authority": "x", **more}.items())


def request(stream, path="/", end=True, **more):
    return frame(HEADERS, END_HEADERS | end * END_STREAM, stream,
                 fields(path, **more))


def reset(stream, error=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", error))


def update(stream, size):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", size))


class Peer:
    """A connection whose preface is sent, with these settings."""

    def __init__(self, server, settings=b""):
        self.socket = self.connect(server)
        self.kept = []  # frames that came before one that was waited for
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings))

    @staticmethod
    def connect(server):
        plain = server.connect()
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return plain

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *frames):
        self.socket.sendall(b"".join(frames))

    def half_close(self):
        """Sends no more."""
        self.socket.shutdown(socket.SHUT_WR)

    def next(self):
        """The next frame: kind, flags, stream, payload."""
        head = read_exactly(self.socket, 9)
        kind, flags, stream = struct.unpack(">BBI", head[3:])
        return kind, flags, stream, read_exactly(
            self.socket, int.from_bytes(head[:3], "big"))

    def until(self, wanted, of=None):
        """The next frame of a kind, and, unless it is None, of a stream: flags,
        stream, payload.  Pings and settings before it are answered, other
        frames are kept for later calls."""
        def fits(kind, _, stream, __):
            return kind == wanted and of in (None, stream)

        for i, got in enumerate(self.kept):
            if fits(*got):
                return self.kept.pop(i)[1:]
        while not fits(*(got := self.next())):
            kind, flags, _, payload = got
            if kind in (PING, SETTINGS):
                if not flags & ACK:
                    self.send(frame(kind, ACK, 0, payload * (kind == PING)))
            else:
                self.kept.append(got)
        return got[1:]

    def goaway(self):
        """The frame that says that the connection ends; others before it are
        kept, and answers to them are not sent."""
        while (got := self.next())[0] != GOAWAY:
            self.kept.append(got)
        return got

    def end(self):
        """The error of the GOAWAY that ends the connection, or None if there is
        none.  The connection must not be reset."""
        came = self.kept
        with contextlib.suppress(AssertionError):
            while True:
                came.append(self.next())
        errors = [payload[4:8] for kind, _, _, payload in came
                  if kind == GOAWAY]
        return int.from_bytes(errors[-1], "big") if errors else None

    def round_trip(self):
        """After it all frames sent before have been looked at.  Returns the
        frames that came meanwhile."""
        self.send(frame(PING, 0, 0, b"12345678"))
        came = []
        while (got := self.next()) != (PING, ACK, 0, b"12345678"):
            came.append(got)
        self.kept += came
        return came

    def status(self, stream):
        _, _, payload = self.until(HEADERS, stream)
        return STATUS.get(payload[0], payload)

    def content(self, stream, size, grant=True):
        """The next bytes of a stream's content, with window updates for it."""
        data = b""
        while len(data) < size:
            flags, _, payload = self.until(DATA, stream)
            data += payload
            expect(payload or flags & END_STREAM, "an empty frame")
            if grant and payload:
                self.send(update(stream, len(payload)),
                          update(0, len(payload)))
            expect(not flags & END_STREAM or len(data) >= size,
                   "it ended after", len(data))
        return data
