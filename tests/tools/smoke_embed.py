# SPDX-License-Identifier: MIT
"""Smoke tests of examples/embed: weft's tasks in the loops of other libraries.
smoke_examples.py runs them."""

import socket

from smoke_kit import asking, built, expect, expect_equal, run, PATIENCE

LOOPS = ["poll", "glib", "uv", "sd_event"]
PAGES = {f"/{i}": b"x" * (i * 40_000) for i in range(8)}


def ticks(process, count):
    """Waits until the loop's timer has gone off that often.  Returns what else
    was printed meanwhile."""
    others = []
    while count:
        line = process.stdout.readline()
        expect(line, "it ended, after", others)
        if line == "tick\n":
            count -= 1
        else:
            others.append(line)
    return others


def goes_on_while_tasks_wait(loop):
    """Requests come from all tasks before the first answer; and the loop's timer
    goes on before the header, and before the content."""
    with asking(built(f"embed_{loop}"), PAGES) as (process, peers):
        expect_equal(ticks(process, 3), [], "before an answer")
        for path, peer in peers.items():
            peer.sendall(b"HTTP/1.0 200 OK\r\ncontent-length: %d\r\n\r\n" %
                         len(PAGES[path]))
        expect(len(ticks(process, 3)) <= 1, "before the contents")  # "/0"
        for path, peer in peers.items():
            peer.sendall(PAGES[path])
            peer.shutdown(socket.SHUT_WR)
        out, err = process.communicate(timeout=PATIENCE)
        lines = [line for line in out.splitlines() if line != "tick"]
        expect_equal(sorted(lines),
                     [f"{path}: {len(PAGES[path])} bytes"
                      for path in sorted(PAGES)], "the pages")
        expect_equal((process.returncode, err), (0, ""), "the end")


def reports_a_failure(loop):
    done = run(built(f"embed_{loop}"), "127.0.0.1:1", "/", "/more")
    expect_equal((done.returncode, sorted(done.stderr.splitlines())),
                 (1, ["fetch: /: Connection refused",
                      "fetch: /more: Connection refused"]), "a failure")


def case(claim, loop):
    def test():
        claim(loop)

    test.__name__ = f"embed_{loop}_{claim.__name__}"
    return test


CASES = [case(claim, loop) for loop in LOOPS
         for claim in (goes_on_while_tasks_wait, reports_a_failure)]
