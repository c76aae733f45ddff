#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_errno.py LIBWEFT.SO: no function of the library both reads errno and may
suspend, as the compiler has made it, with what it has inlined.  TAP.

A compiler keeps the address of errno within a function, and a task that has been
suspended may be on another thread: it would read that thread's.  Calls through
pointers are not seen.
"""

import collections
import re
import subprocess
import sys

sys.dont_write_bytecode = True

import tap

FUNCTION = re.compile(r"[0-9a-f]+ <(.+)>:$")
JUMP = re.compile(r"\s(?:call|j[a-z]+)q?\s.*<([^>+]+)(?:\+0x[0-9a-f]+)?>")
# Functions from which the task's thread goes on with another task.
SWITCHES = re.compile(r"weft__(suspend|switch\w*|context_entry)$")
ERRNO = re.compile(r"_{2,3}errno_location$")  # glibc and musl


def plain(name):
    """Without the version, and without what says that it is a part."""
    return re.sub(r"(\.cold|\.part|\.constprop|\.isra|\.lto_priv)(\.\d+)*", "",
                  name.split("@")[0])


def calls(disassembly):
    """The functions that each function calls."""
    found, caller = collections.defaultdict(set), None
    for line in disassembly.splitlines():
        if head := FUNCTION.match(line):
            caller = plain(head[1])
        elif caller and (jump := JUMP.search(line)):
            found[caller].add(plain(jump[1]))
    return found


def suspending(called):
    """The functions that may suspend."""
    callers = collections.defaultdict(set)
    for caller, names in called.items():
        for name in names:
            callers[name].add(caller)
    found, todo = set(), {name for name in callers if SWITCHES.match(name)}
    while todo:
        name = todo.pop()
        found.add(name)
        todo |= callers[name] - found
    return found


def mixed(called):
    """The functions that read errno, and call one that may suspend."""
    may = suspending(called)
    return sorted(name for name, names in called.items()
                  if any(map(ERRNO.match, names)) and names - {name} & may)


def library():
    return calls(subprocess.run(["objdump", "-d", "--no-show-raw-insn",
                                 sys.argv[1]], check=True, capture_output=True,
                                text=True).stdout)


def test_planted():
    """a function that reads errno and may suspend is found"""
    text = """
1 <leaf>:
 2:\tcall   5 <__errno_location@plt>
3 <wait>:
 4:\tcall   9 <weft__suspend>
5 <apart.constprop.0>:
 6:\tcall   1 <leaf>
 7:\tjmp    3 <wait>
8 <both>:
 9:\tcall   5 <__errno_location@plt>
 a:\tjne    c <both.cold>
b <both.cold>:
 c:\tjmp    5 <apart.constprop.0>
"""
    if mixed(calls(text)) != ["both"]:
        raise AssertionError(mixed(calls(text)))


def test_library():
    """no function of the library reads errno and may suspend"""
    called = library()
    readers = [name for name, names in called.items()
               if any(map(ERRNO.match, names))]
    if len(readers) < 20 or len(suspending(called)) < 100:
        raise AssertionError("too little of the library is seen")
    if mixed(called):
        raise AssertionError(", ".join(mixed(called)))


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
