#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_refuse.py REFUSE: the launcher refuses what it is asked to, and no more.

The functions below whose names begin with test_ are the test cases; their first
line is the claim.  TAP.
"""

import errno
import platform
import subprocess
import sys

sys.dont_write_bytecode = True

import tap

REFUSE = sys.argv[1]
URING = 425, 426, 427  # on each architecture
X32 = 0x40000000
SKIPPED = 77
# Without memory to write to: what is not refused does nothing.
CALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for number in {numbers}:
	print(libc.syscall({first} + number, -1, 0, -1, 0, 0, 0),
	      ctypes.get_errno())
"""


def errors(*words, numbers=URING, first=0):
    """The errors that a program meets, and one that this program starts."""
    code = CALL.format(numbers=numbers, first=first)
    starts = f"import subprocess, sys\n" \
             f"subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    seen = []
    for text in code, starts:
        done = subprocess.run([REFUSE, *words, sys.executable, "-c", text],
                              check=True, capture_output=True, text=True)
        seen.append([int(line.split()[1]) for line in
                     done.stdout.splitlines()])
    expect(seen[0], seen[1])
    return seen[0]


def expect(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {got!r}, wanted {wanted!r}")


def test_io_uring():
    """all calls of io_uring give the error that was asked for"""
    expect(errors("EPERM", "io_uring"), 3 * [errno.EPERM])
    expect(errors("ENOSYS", "io_uring"), 3 * [errno.ENOSYS])
    expect(errors("5", "io_uring"), 3 * [errno.EIO])


def test_numbers():
    """calls are refused by name and by number"""
    expect(errors("EPERM", "426,eventfd2,427")[1:], 2 * [errno.EPERM])


def test_others():
    """other calls are not refused"""
    # lseek(-1, 0, -1) has no such descriptor.
    lseek = 8 if platform.machine() == "x86_64" else 62
    expect(errors("EPERM", "io_uring", numbers=(lseek,)), [errno.EBADF])


def test_second_numbers():
    """no call gets through with the second set of numbers of x86_64"""
    if platform.machine() == "x86_64":
        expect(errors("EPERM", "io_uring", first=X32), 3 * [errno.ENOSYS])


def test_unknown():
    """a name that it does not know is an error"""
    for words in (("EPERM", "io_urin"), ("EPERM", "9999"), ("EHMM", "426"),
                  ("EPERM",), ("EPERM", "426", "./no-such-program")):
        done = subprocess.run([REFUSE, *words], capture_output=True,
                              check=False)
        expect(done.returncode, 2)
        expect(bool(done.stderr), True)


if __name__ == "__main__":
    done = subprocess.run([REFUSE, "EPERM", "io_uring", "true"], check=False)
    if done.returncode == SKIPPED:
        sys.exit(SKIPPED)
    sys.exit(tap.run(globals()))
