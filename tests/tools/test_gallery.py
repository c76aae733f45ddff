#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does a dump alone tell why each program of examples/gallery hangs?

The expected lines stand here as a dump prints them, with # for a number or an
address.  Without libdw a dump has no source lines and no names of functions and
variables, but everything else.  If weft itself is inlined into the programs
(--inlined), the innermost source line in a dump is one of weft's.
"""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from smoke_kit import (expect, expect_equal, read_exactly, read_to_end,
                       test_all, PATIENCE, PROGRAMS)

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "examples/gallery"
# With sanitizers the first dump alone takes seconds.
LONGEST = 3 * PATIENCE
INLINED = "--inlined" in sys.argv


def pattern(wanted, names):
    if not names:
        wanted = re.sub(r" <\w+>", "", wanted)
    text = re.escape(wanted).replace(r"\#", "[0-9a-fx.]+")
    return text if names else re.sub(r"\\\(\w+\\\)", r"\\([^)]+\\)", text)


class Dump:
    def __init__(self, text):
        self.text = text
        self.names = "weft: no backtraces" not in text

    def find(self, wanted):
        return re.search(pattern(wanted, self.names), self.text)

    def calls(self, wanted):
        """The calls of the task to which that line belongs."""
        lines = self.text[self.find(wanted).start():].split("\n")
        while lines and not lines[0].startswith("    "):
            lines.pop(0)
        count = next(i for i, line in enumerate(lines + [""])
                     if not line.startswith("    "))
        return lines[:count]


class Hung:
    """A program that hangs, and its dump socket."""

    def __init__(self, name, directory):
        self.name = name
        self.path = f"{directory}/socket"
        self.says = pathlib.Path(directory, "stderr")
        with open(self.says, "wb") as stderr:
            self.process = subprocess.Popen(
                [PROGRAMS / name, self.path], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=stderr)

    def repeat(self, take, found, what):
        """Repeats `take` until `found` accepts the result, and returns it."""
        end = time.monotonic() + LONGEST
        while True:
            got = take()
            if got is not None and found(got):
                return got
            expect(self.process.poll() is None, self.name, "ended")
            expect(time.monotonic() < end, "never", what, "in\n",
                   got.text if isinstance(got, Dump) else got)
            time.sleep(0.02)

    def dump(self):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(LONGEST)
            try:
                peer.connect(self.path)
            except (FileNotFoundError, ConnectionRefusedError):
                return None
            return Dump(read_to_end(peer).decode())

    def tells(self, *wanted):
        """A dump that has all these lines."""
        return self.repeat(self.dump, lambda dump: all(map(dump.find, wanted)),
                           wanted)

    def said(self, *wanted):
        """The output on stderr, once it has all these lines."""
        return self.repeat(lambda: Dump(self.says.read_text()),
                           lambda dump: all(map(dump.find, wanted)), wanted)

    def expect_at(self, dump, wanted, code):
        """The task of that line must be at the source line with that code."""
        if not dump.names:
            print("# no backtraces: lines of the source are not looked for")
            return
        if INLINED:
            print("# weft is inlined: lines of the source are not looked for")
            return
        source = (SOURCES / f"{self.name}.c").read_text().split("\n")
        lines = [i for i, line in enumerate(source, 1) if code in line]
        expect_equal(len(lines), 1, f"lines with {code}")
        place = f"gallery/{self.name}.c:{lines[0]}"
        calls = dump.calls(wanted)
        expect(any(call.endswith(place) for call in calls),
               "no", place, "in", calls, "of\n", dump.text)


@contextlib.contextmanager
def hung(name):
    with tempfile.TemporaryDirectory() as directory:
        program = Hung(name, directory)
        try:
            yield program
        finally:
            program.process.kill()
            program.process.communicate()


# ---- One each ----------------------------------------------------------------

def transfer_says_by_itself_who_holds_what_in_a_circle():
    save = ("task # save (move) waits to lock mutex # <savings> "
            "held by task # spend (move)\n")
    spend = ("task # spend (move) waits to lock mutex # <checking> "
             "held by task # save (move)\n")
    main = "main (run_orders), # s old: waits for 2 tasks of its scope to end\n"
    circle = "deadlock: 2 tasks wait for each other\n"
    with hung("transfer") as program:
        for dump in (program.said("weft: no task can go on", main, circle,
                                  save, spend),
                     program.tells(main, circle, save, spend)):
            program.expect_at(dump, "save (move), # s old",
                              "weft_mutex_lock(&order->to->mutex)")
            program.expect_at(dump, main, "WEFT_SCOPE(")


def shards_wait_for_who_waits_for_them():
    main = "main (run_table), # s old: waits for 3 tasks of its scope to end\n"
    shard = "(run_shard), # s old: waits for event # <all_loaded>\n"
    with hung("shards") as program:
        dump = program.tells(main, shard, "0 run, 4 wait, 0 ready, 0 not begun")
        program.expect_at(dump, main, "WEFT_SCOPE(")
        program.expect_at(dump, shard, "weft_event_wait(&all_loaded)")


def squares_have_nobody_left_who_sends():
    main = "main (add_up), # s old: waits for 4 tasks of its scope to end\n"
    work = ("(work), # s old: waits to receive from channel # <numbers> "
            "(0 of 16 values)\n")
    with hung("squares") as program:
        dump = program.tells(main, work, "0 run, 5 wait, 0 ready, 0 not begun")
        program.expect_at(dump, main, "WEFT_SCOPE(")
        program.expect_at(dump, work, "weft_chan_recv(&numbers")


def peer_of(process, descriptor):
    """The ports of a connection, its own and its peer's, as ss -tnp shows."""
    link = os.readlink(f"/proc/{process.pid}/fd/{descriptor}")
    inode = re.fullmatch(r"socket:\[(\d+)\]", link).group(1)
    for row in pathlib.Path("/proc/net/tcp").read_text().split("\n")[1:]:
        fields = row.split()
        if fields and fields[9] == inode:
            return [int(end.split(":")[1], 16) for end in fields[1:3]]
    raise AssertionError(f"no connection has inode {inode}")


def greeter_has_a_peer_that_says_nothing():
    main = "main (serve), # s old: waits for 1 task of its scope to end\n"
    # And no deadline.
    silent = "(greet), # s old: waits to receive from descriptor #\n"
    with hung("greeter") as program:
        line = program.process.stdout.readline().decode()
        port = int(re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n",
                                line).group(1))
        with socket.create_connection(("127.0.0.1", port), LONGEST) as other, \
                socket.create_connection(("127.0.0.1", port), LONGEST) as peer:
            other.sendall(b"Ada")
            expect_equal(read_to_end(other), b"name? hello Ada", "to the other")
            expect_equal(read_exactly(peer, 6), b"name? ", "to the silent one")
            program.process.send_signal(signal.SIGTERM)
            # Before that, main waits for one task of another scope.
            program.said("ending\n")
            dump = program.tells(main, silent)
            program.expect_at(dump, main, "WEFT_SUPERVISE(connections)")
            program.expect_at(dump, silent, "weft_read(fd")
            descriptor = re.search(r"receive from descriptor (\d+)", dump.text)
            expect_equal(peer_of(program.process, descriptor.group(1)),
                         [port, peer.getsockname()[1]], "the ports")
            peer.sendall(b"Eve")
            expect_equal(read_to_end(peer), b"hello Eve", "the answer")
        expect_equal(program.process.wait(LONGEST), 0, "the status")


def prompt_says_by_itself_what_keeps_its_worker():
    ask = "(ask), # s old: runs on worker 0\n"
    with hung("prompt") as program:
        for dump in (program.said("weft: worker 0 has been in one task for #",
                                  ask),
                     program.tells("worker 0: runs task #, for # s at most\n",
                                   ask)):
            program.expect_at(dump, ask, 'scanf("%7s", word)')
        program.process.stdin.write(b"yes\n")
        program.process.stdin.flush()
        expect_equal(program.process.wait(LONGEST), 0, "the status")


def fetches_wait_for_permits_that_no_task_has():
    main = "main (fetch_all), # s old: waits for # tasks of its scope to end\n"
    fetch = ("(fetch), # s old: waits for permits of semaphore # <places> "
             "(0 free)\n")

    def all_wait_for_permits(dump):
        """All tasks but main wait for permits."""
        more = re.search(r"\.\.\. and (\d+) more like these", dump.text)
        count = re.search(r"weft: (\d+) tasks", dump.text)
        return (dump.find(main) and dump.find(fetch) and
                dump.text.count("waits for permits of ") +
                int(more.group(1) if more else 0) == int(count.group(1)) - 1)
    with hung("fetches") as program:
        dump = program.repeat(program.dump, all_wait_for_permits,
                              "all wait for permits")
        program.expect_at(dump, fetch, "weft_sem_acquire(&places")


def batch_has_two_full_channels():
    main = ("main (run_batch), # s old: waits for one of 2 cases: "
            "to send to channel # <jobs> (4 of 4 values); "
            "for the end of task # worker (work)\n")
    work = ("worker (work), # s old: waits to send to channel # <results> "
            "(4 of 4 values)\n")
    with hung("batch") as program:
        dump = program.tells(main, work)
        program.expect_at(dump, main, "weft_select(cases")
        program.expect_at(dump, work, "weft_chan_send(&results")


CASES = [function for name, function in list(globals().items())
         if name.split("_")[0] in {path.stem for path in SOURCES.glob("*.c")}]


if __name__ == "__main__":
    sys.exit(test_all(CASES))
