# SPDX-License-Identifier: MIT
"""Smoke tests of examples/tail and examples/rotlog; smoke_examples.py runs
them."""

import contextlib
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import tempfile
import time
import tty

from tap import Skip
from smoke_kit import expect, expect_equal, run, soon, PATIENCE, PROGRAMS

CONTENTS = {
    "empty": b"",
    "short": b"one\ntwo\n",
    "open": b"one\ntwo",
    "ends": b"\n\n\n",
    "long": b"".join(b"%d\n" % i for i in range(5000)),
    "wide": b"x" * 20000 + b"\n" + b"y" * 20000,
}


@contextlib.contextmanager
def program(name, *arguments):
    process = subprocess.Popen(
        [PROGRAMS / name, *map(str, arguments)], bufsize=0,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def read_until(process, wanted):
    """Output of that length, which is what was wanted."""
    got, end = b"", time.monotonic() + PATIENCE
    while len(got) < len(wanted):
        left = end - time.monotonic()
        expect(left > 0 and select.select([process.stdout], [], [], left)[0],
               "no more than", len(got), "of", len(wanted), "bytes came")
        data = os.read(process.stdout.fileno(), len(wanted) - len(got))
        expect(data, "it ended")
        got += data
    expect_equal(got, wanted, "output")


def gnu_tail():
    gnu = shutil.which("tail")
    if not gnu or b"GNU" not in subprocess.run(
            [gnu, "--version"], capture_output=True, check=False).stdout:
        raise Skip("GNU tail")
    return gnu


def tail_prints_what_gnu_tail_prints():
    gnu = gnu_tail()
    with tempfile.TemporaryDirectory() as path:
        for name, content in CONTENTS.items():
            pathlib.Path(path, name).write_bytes(content)
        files = sorted(CONTENTS)
        for lines in "0", "1", "2", "10", "4999", "6000":
            for names in [[name] for name in files] + [files]:
                wanted = subprocess.run(
                    [gnu, "-n", lines, *names], cwd=path, check=True,
                    stdout=subprocess.PIPE).stdout
                got = subprocess.run(
                    [PROGRAMS / "tail", "-n", lines, *names], cwd=path,
                    check=True, stdout=subprocess.PIPE).stdout
                expect_equal(got, wanted, (lines, names))


def tail_reads_files_whose_size_says_nothing():
    """Those of /proc have none, those of /sys have a page."""
    files = [pathlib.Path("/proc/filesystems"),
             pathlib.Path("/sys/devices/system/cpu/possible")]
    for file in files:
        if file.exists():
            got = run("tail", "-n", 1, file)
            last = file.read_text().splitlines(keepends=True)[-1]
            expect_equal((got.returncode, got.stdout), (0, last), file)


def tail_says_what_is_wrong():
    done = run("tail", "/nowhere/at/all")
    expect_equal((done.returncode, done.stderr), (
        1, "tail: cannot open '/nowhere/at/all': No such file or directory\n"),
        "tail")
    expect_equal(run("tail").returncode, 2, "usage")


def tail_follows_files_that_come_and_go():
    with tempfile.TemporaryDirectory() as path:
        a, b = pathlib.Path(path, "a"), pathlib.Path(path, "b")
        a.write_bytes(b"1\n")
        with program("tail", "-F", a, b) as tail:
            read_until(tail, b"==> %s <==\n1\n" % bytes(a))
            b.write_bytes(b"2\n")
            read_until(tail, b"\n==> %s <==\n2\n" % bytes(b))
            a.unlink()
            a.write_bytes(b"3\n")
            read_until(tail, b"\n==> %s <==\n3\n" % bytes(a))


def tail_follows_the_same_files_as_gnu_tail():
    """Each step waits for the same output of both."""
    gnu = gnu_tail()
    with tempfile.TemporaryDirectory() as path:
        log, other = pathlib.Path(path, "log"), pathlib.Path(path, "other")
        log.write_bytes(b"1\n2\n3\n")
        other.write_bytes(b"a\n")
        for option in "-f", "-F":
            log.write_bytes(b"1\n2\n3\n")
            with program("tail", "-n", 2, option, log) as ours, \
                    program(gnu, "-n", 2, option, log) as theirs, \
                    open(log, "ab", buffering=0) as writer:
                def both(wanted):
                    read_until(theirs, wanted)
                    read_until(ours, wanted)
                both(b"2\n3\n")
                writer.write(b"4\n")
                both(b"4\n")
                writer.truncate(0)
                writer.write(b"5\n")
                both(b"5\n")
                log.rename(other)
                log.write_bytes(b"new\n")
                if option == "-F":
                    both(b"new\n")
                    continue
                writer.write(b"6\n")
                both(b"6\n")
                log.unlink()
                other.unlink()
                writer.write(b"7\n")
                both(b"7\n")


def has_open(process, path):
    for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(link) == str(path):
                return True
    return False


def tail_follows_a_file_that_is_truncated_at_the_start():
    """While its last lines are looked for, which takes a while."""
    with tempfile.TemporaryDirectory() as path:
        log = pathlib.Path(path, "log").resolve()
        for turn in range(6):
            log.write_bytes(b"")
            os.truncate(log, 256 << 20)
            with program("tail", "-F", log) as tail:
                soon(lambda: has_open(tail, log), "the file is open", tail)
                time.sleep(turn * 0.004)
                os.truncate(log, 0)
                with open(log, "ab") as writer:
                    writer.write(b"line\n")
                got, end = b"", time.monotonic() + PATIENCE
                # Before it, zeroes, if it was quick.
                while not got.endswith(b"line\n"):
                    left = end - time.monotonic()
                    expect(left > 0 and select.select(
                        [tail.stdout], [], [], left)[0], "no line came")
                    data = os.read(tail.stdout.fileno(), 65536)
                    expect(data, "it ended")
                    got = got[-8:] + data


def tail_follows_a_device():
    """Such as /dev/null, which has no end; here a terminal."""
    ours, theirs = pty.openpty()
    try:
        tty.setraw(theirs)
        with program("tail", "-f", os.ttyname(theirs)) as tail:
            for text in b"one\n", b"two\n":
                os.write(ours, text)
                read_until(tail, text)
    finally:
        os.close(ours)
        os.close(theirs)


def tail_ends_when_it_has_no_files():
    done = run("tail", "-f", "/nowhere/at/all", "/")
    expect_equal((done.returncode, done.stdout), (1, ""), "tail -f")
    lines = done.stderr.splitlines()
    expect_equal((sorted(lines[:2]), lines[2:]), ([
        "tail: cannot follow '/': Invalid argument",
        "tail: cannot follow '/nowhere/at/all': No such file or directory"],
        ["tail: no files remaining"]), "tail -f")


def rotlog_writes_lines_of_any_length():
    with tempfile.TemporaryDirectory() as path:
        log = pathlib.Path(path, "log")
        text = b"x" * 100000 + b"\nshort\n" + b"y" * 20000
        done = subprocess.run([PROGRAMS / "rotlog", log], input=text,
                              capture_output=True, check=False)
        expect_equal((done.returncode, done.stderr), (0, b""), "rotlog")
        expect_equal(log.read_bytes(), text, "log")


def rotlog_loses_no_line_and_tail_reads_them_all():
    with tempfile.TemporaryDirectory() as path:
        log, parts = pathlib.Path(path, "log"), []
        with program("rotlog", log) as rotlog:
            soon(log.exists, "the log", rotlog)
            rotlog.stdin.write(b"first\n")
            with program("tail", "-F", log) as tail:
                read_until(tail, b"first\n")
                rotlog.stdin.write(b"second\n")
                read_until(tail, b"second\n")  # it follows
                for turn in range(12):
                    lines = b"".join(b"%d %d\n" % (turn, i)
                                     for i in range(200))
                    rotlog.stdin.write(lines[:600])
                    if turn % 3 == 2:
                        rotlog.send_signal(signal.SIGHUP)
                    else:
                        parts.append(log.rename(f"{log}.{turn}"))
                    rotlog.stdin.write(lines[600:])
                    read_until(tail, lines)
                rotlog.stdin.close()
                expect_equal(rotlog.wait(PATIENCE), 0, "status of rotlog")
        expect_equal(b"".join(part.read_bytes() for part in [*parts, log]),
                     b"first\nsecond\n" +
                     b"".join(b"%d %d\n" % (turn, i) for turn in range(12)
                              for i in range(200)), "all parts")


CASES = [function for name, function in list(globals().items())
         if name.startswith(("tail_", "rotlog_"))]
