# SPDX-License-Identifier: MIT
"""A pseudo-terminal with a program, for smoke tests."""

import fcntl
import os
import resource
import select
import signal
import struct
import subprocess
import termios
import time

from smoke_kit import PATIENCE, expect, expect_equal, soon

COLUMNS, ROWS = 80, 24


class Screen:
    """As much of an xterm as readline needs.  It grows at its end."""

    def __init__(self):
        self.columns, self.lines, self.row, self.column = COLUMNS, [""], 0, 0
        self.rest = b""

    def put(self, char):
        if self.column == self.columns:
            self.row, self.column = self.row + 1, 0
        while self.row >= len(self.lines):
            self.lines.append("")
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = (line[:self.column] + char +
                                line[self.column + 1:])
        self.column += 1

    def control(self, byte):
        if byte == 13:
            self.column = 0
        elif byte == 8:
            self.column = max(0, min(self.column, self.columns - 1) - 1)
        elif byte == 10:
            self.row += 1
            if self.row == len(self.lines):
                self.lines.append("")
        else:
            expect(byte == 7, "a control character", byte)

    def sequence(self, parameters, final):
        if parameters[:1] == "?" or final == "m":
            return
        count, line = int(parameters or "1"), self.lines[self.row]
        if final == "K":
            expect(not parameters, "another erasure", parameters)
            self.lines[self.row] = line[:self.column]
        elif final == "J":
            expect(not parameters, "another erasure", parameters)
            self.lines[self.row:] = [line[:self.column]]
        elif final == "A":
            self.row -= count
        elif final == "C":
            self.column += count
        elif final == "P":
            self.lines[self.row] = (line[:self.column] +
                                    line[self.column + count:])
        elif final == "@":
            self.lines[self.row] = (line[:self.column] + " " * count +
                                    line[self.column:])
        else:
            expect(False, "an unknown sequence", repr(parameters + final))

    def feed(self, data):
        data, at = self.rest + data, 0
        while at < len(data):
            if data[at] == 0x1b:
                end = at + 2
                while end < len(data) and not 0x40 <= data[end] < 0x7f:
                    end += 1
                if end >= len(data):
                    break
                self.sequence(data[at + 2:end].decode(), chr(data[end]))
                at = end
            elif data[at] < 0x20:
                self.control(data[at])
            else:
                self.put(chr(data[at]))
            at += 1
        self.rest = data[at:]


class Terminal:
    """A terminal, and a program in the foreground of a session there."""

    def __init__(self, *command, settings=os.devnull):
        self.screen, self.output = Screen(), b""
        self.ours, self.theirs = os.openpty()
        self.resize(COLUMNS)
        self.before = termios.tcgetattr(self.theirs)
        environment = {**os.environ, "TERM": "xterm", "LC_ALL": "C",
                       "INPUTRC": str(settings)}
        self.process = subprocess.Popen(
            [*map(str, command)], stdin=self.theirs, stdout=self.theirs,
            stderr=self.theirs, start_new_session=True, env=environment,
            preexec_fn=self.begin)

    def begin(self):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # In the background of a script these are ignored.
        for number in signal.SIGINT, signal.SIGQUIT, signal.SIGHUP:
            signal.signal(number, signal.SIG_DFL)

    def resize(self, columns):
        self.screen.columns = columns
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ,
                    struct.pack("HHHH", ROWS, columns, 0, 0))

    def type(self, data):
        os.write(self.ours, data)

    def modes_are_set(self):
        return termios.tcgetattr(self.ours) != self.before

    def await_taken(self):
        """All that was typed has been read."""
        soon(lambda: fcntl.ioctl(self.theirs, termios.FIONREAD, b"\0" * 4) ==
             b"\0" * 4, "a read")

    def read(self, seconds):
        """Output of the program, to the screen.  False: none."""
        if not select.select([self.ours], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.ours, 4096)
        except OSError:  # the program has ended
            return False
        self.output += data
        self.screen.feed(data)
        return True

    def await_that(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            expect(time.monotonic() < end, what, "is not on",
                   self.screen.lines)
            self.read(0.05)

    def await_line(self, wanted):
        """It is the last one, and the cursor is there."""
        screen = self.screen
        self.await_that(lambda: screen.lines[-1] == wanted and
                        screen.row == len(screen.lines) - 1, repr(wanted))

    def await_lines(self, *wanted):
        self.await_that(lambda: self.screen.lines[-len(wanted):] ==
                        list(wanted), repr(wanted))

    def ended(self):
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            expect(time.monotonic() < end, "it does not end:",
                   self.screen.lines)
            self.read(0.05)
        while self.read(0):
            pass
        expect_equal(termios.tcgetattr(self.ours), self.before, "modes")
        expect(not fcntl.fcntl(self.theirs, fcntl.F_GETFL) & os.O_NONBLOCK,
               "the terminal does not block")
        return self.process.returncode

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)
