#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_gdb.py ECHO: docs/weft-gdb.py finds the tasks of a running echo server
and unwinds their stacks, and says what it lacks.  TAP."""

import itertools
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import tap

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "docs/weft-gdb.py"
PATIENCE = 60


def gdb(pid, *commands):
    """The output of gdb, without and with its errors.  Without a pid it has no
    process."""
    process = ["-p", str(pid)] if pid else []
    done = subprocess.run(
        ["gdb", "-q", "-nx", "-batch", "-x", SCRIPT, *process,
         *[word for command in commands for word in ("-ex", command)]],
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=PATIENCE)
    return done.stdout, done.stdout + done.stderr


def inspect_stripped(program):
    """A message names the missing thing, where a list would be empty."""
    log = gdb(None, "weft tasks")[1]
    yield "that there is no process is said", "there is no process" in log, log
    if not shutil.which("strip"):
        yield "that there are no symbols is said # SKIP no strip(1)", True, ""
        return
    for option in "--strip-debug", "--strip-all":
        with tempfile.TemporaryDirectory() as directory:
            copy = pathlib.Path(directory) / "stripped"
            shutil.copy(program, copy)
            subprocess.run(["strip", option, copy], check=True)
            with subprocess.Popen([copy, "127.0.0.1:0"], text=True,
                                  stdout=subprocess.PIPE) as server:
                server.stdout.readline()
                log = gdb(server.pid, "weft tasks", "weft task 0")[1]
                server.kill()
            yield (f"that there are no symbols is said, {option}",
                   log.count("has no debugging symbols of weft") == 2, log)


def inspect(server, port):
    """The claims, each with gdb's output if it does not hold."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as peer:
        peer.sendall(b"x")
        peer.recv(1)  # its task has begun
        listed, log = gdb(server.pid, "weft tasks")
        serving = re.search(r"^ *(\d+)  main <main_task>: waits in "
                            r"weft_accept$", listed, re.M)
        echoing = re.search(r"^ *(\d+)  <echo>: (waits in weft_stream_peek|"
                            r"runs on thread \d+|is ready to run)$", listed,
                            re.M)
        yield "the tasks are listed", serving and echoing, log
        number = serving.group(1) if serving else "0"
        shown, log = gdb(server.pid, f"weft task {number}", "bt",
                         "frame function serve", "info locals",
                         "weft task", "bt 1", "weft task 999999")
        yield ("the stack of one goes from its call to its beginning",
               re.search(r"weft_accept .*\bserve \(.*weft__task_main", shown,
                         re.S), log)
        yield "with its variables", "listener = " in shown, log
        yield "who is not there is refused", "no task 999999" in log, log
    yield "the server lives on", server.poll() is None, ""


def main():
    version = re.search(r" (\d+)\.\d+", subprocess.run(
        ["gdb", "--version"], capture_output=True, text=True).stdout)
    if not version or int(version.group(1)) < 13:
        print("1..0 # SKIP gdb is older than 13")
        return 0
    with subprocess.Popen([sys.argv[1], "127.0.0.1:0"], text=True,
                          stdout=subprocess.PIPE) as server:
        try:
            port = int(server.stdout.readline().rsplit(":", 1)[1])
            claims = itertools.chain(inspect(server, port),
                                     inspect_stripped(sys.argv[1]))
            return tap.judge((what, [] if holds else [log or "it does not"])
                             for what, holds, log in claims)
        finally:
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
