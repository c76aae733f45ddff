# SPDX-License-Identifier: MIT
"""Smoke tests of the examples on trees of files, beside the tools that people
use; smoke_examples.py runs them."""

import contextlib
import os
import pathlib
import subprocess
import tempfile

import smoke_kit
from smoke_kit import expect, expect_equal


@contextlib.contextmanager
def tree():
    """A directory with files of all kinds below."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for i in range(15):
            directory = root / f"d{i % 7}" / f"e{i}"
            directory.mkdir(parents=True)
            for j in range(i):
                (directory / f"file{j}.{'ch'[j % 2]}").write_bytes(b"x" * 300 * j)
        (root / "new\nline").write_text("")
        pathlib.Path(os.fsdecode(os.fsencode(name) + b"/\xff\xfe")).write_text("")
        (root / "d0/up").symlink_to("..")
        (root / "d1/nowhere").symlink_to("nothing")
        (root / "d2/inside").symlink_to("../d3")
        os.mkfifo(root / "fifo")
        os.utime(root / "d1/e1", (1, 1))
        yield root


def tool(*command):
    done = subprocess.run(command, capture_output=True)
    return done.returncode, done.stdout


def ours(name, *arguments):
    return tool(smoke_kit.PROGRAMS / name, *arguments)


def sorted_paths(answer):
    status, out = answer
    return status, sorted(out.split(b"\0"))


def find_finds_what_find_finds():
    with tree() as root:
        for tests in ([], ["-name", "*.c"], ["-type", "d"], ["-type", "l"],
                      ["-type", "p"], ["-size", "+4k"], ["-size", "-2"],
                      ["-size", "600c"], ["-newer", str(root / "d1/e1")],
                      ["-maxdepth", "2"], ["-maxdepth", "0"], ["-xdev"],
                      ["-name", "e*", "-type", "d", "-maxdepth", "3"]):
            arguments = [str(root), *tests, "-print0"]
            expect_equal(sorted_paths(ours("find", *arguments)),
                         sorted_paths(tool("find", *arguments)), tests)


def find_follows_links_as_find_does():
    with tree() as root:
        (root / "d0/up").unlink()
        arguments = ["-L", str(root), "-type", "f", "-print0"]
        expect_equal(sorted_paths(ours("find", *arguments)),
                     sorted_paths(tool("find", *arguments)), "links")


def find_sorts_by_bytes():
    with tree() as root:
        status, out = ours("find", str(root), "-sorted", "-print0")
        found = out.split(b"\0")[:-1]
        expect(status == 0)
        expect_equal(found, sorted(found, key=lambda p: p.split(b"/")), "order")


def find_reports_errors():
    status, out = ours("find", "/no/such/directory")
    expect(status != 0 and not out, "find of nothing:", out)
    with tree() as root, open("/dev/full", "wb") as full:
        done = subprocess.run([smoke_kit.PROGRAMS / "find", root],
                              stdout=full, stderr=subprocess.PIPE, check=False)
        expect_equal((done.returncode, done.stderr),
                     (1, b"find: cannot write the output\n"), "a full disk")


# But for "link/": rm empties the directory that the link names.
def rm_leaves_what_rm_leaves():
    for arguments in (["-r", "."], ["d0"], ["-r", "d0"],
                      ["-rf", "nothing"], ["nothing"], ["-f", "nothing", "fifo"],
                      ["-r", "d0/up"], ["-r", "d1", "d2"],
                      ["fifo", "new\nline"], ["-r", "d0/up/d1"],
                      ["-rf", "fifo/x"], ["-f", "fifo/x"], [], ["-f"]):
        left = []
        for program in "rm", smoke_kit.PROGRAMS / "rm":
            with tree() as root:
                done = subprocess.run([program, *arguments], cwd=root,
                                      capture_output=True)
                left.append((done.returncode == 0, sorted(
                    tool("find", root, "-printf", "%P %y\\0")[1].split(b"\0"))))
        expect(left[1] == left[0], arguments, "leaves", left[1][1][:3], "...")


def rm_prints_what_it_removes():
    with tree() as root:
        expected = sorted(f"removed '{path}'".encode() for path in tool(
            "find", root / "d3")[1].decode().splitlines())
        status, out = ours("rm", "-rv", root / "d3")
        expect_equal((status, sorted(out.splitlines())), (0, expected), "names")


CASES = [find_finds_what_find_finds, find_follows_links_as_find_does,
         find_sorts_by_bytes, find_reports_errors, rm_leaves_what_rm_leaves,
         rm_prints_what_it_removes]
