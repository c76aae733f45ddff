# SPDX-License-Identifier: MIT
"""Smoke tests of the example that is replaced while it serves;
smoke_examples.py runs them."""

import contextlib
import os
import signal
import socket
import threading

from smoke_kit import (exchange, expect, expect_equal, serving, soon, talk,
                       ADDRESS, PATIENCE)


class Load:
    """Clients that connect, ask and leave, again and again; none may fail."""

    def __init__(self, server):
        self.server = server
        self.counts = [0] * 4
        self.error = None
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,))
                        for i in range(len(self.counts))]

    def run(self, number):
        try:
            while not self.ended.is_set():
                data = os.urandom(1000)
                expect_equal(exchange(self.server, data), data, "echo")
                self.counts[number] += 1
        except (OSError, AssertionError) as error:
            self.error = error

    def more(self):
        """Each client is served again."""
        before = list(self.counts)
        soon(lambda: self.error or all(
            now > then + 1 for now, then in zip(self.counts, before)),
            "answers to all clients")
        expect(not self.error, repr(self.error))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()


def restart_loses_no_connection():
    command = ["restart", ADDRESS, f"unix:@weft-restart-{os.getpid()}",
               "--grace-ms", 1000 * PATIENCE]
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving(*command, status=0))
        with Load(server) as load:
            for turn in range(5):
                load.more()
                with talk(server) as open_one:
                    open_one.ask(b"before", b"before")
                    last = turn == 4
                    # The last is ended by force, when there are no clients.
                    following = stack.enter_context(serving(
                        *command, status=-signal.SIGKILL if last else 0))
                    expect_equal(following.port, server.port, "the port")
                    open_one.ask(b"after", b"after")
                expect_equal(server.process.wait(PATIENCE), 0, "the old one")
                server = following
                load.more()
        expect(not load.error, repr(load.error))
        server.process.kill()


def restart_goes_on_when_the_next_one_fails():
    name = f"weft-restart-alone-{os.getpid()}"
    with serving("restart", ADDRESS, f"unix:@{name}") as server:
        for _ in range(3):
            with socket.socket(socket.AF_UNIX) as next_one:
                next_one.connect("\0" + name)
                next_one.settimeout(PATIENCE)
                _, fds, _, _ = socket.recv_fds(next_one, 1, 2)
                expect_equal(len(fds), 2, "descriptors")
                for fd in fds:
                    os.close(fd)
        expect_equal(exchange(server, b"still"), b"still", "the answer")


CASES = [restart_loses_no_connection, restart_goes_on_when_the_next_one_fails]
