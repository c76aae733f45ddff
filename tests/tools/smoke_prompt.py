# SPDX-License-Identifier: MIT
"""Smoke tests of examples/prompt, on a pseudo-terminal; smoke_examples.py runs
them."""

import contextlib
import curses
import os
import pathlib
import re
import shutil
import signal
import tempfile
import termios

import smoke_kit
from smoke_kit import PATIENCE, expect, expect_equal, run, soon
from tap import Skip
from terminal_kit import Terminal

CTRL_A, CTRL_C, CTRL_D, CTRL_K, CTRL_S, CTRL_U, CTRL_Z, QUIT, UNDO = (
    b"\x01", b"\x03", b"\x04", b"\x0b", b"\x13", b"\x15", b"\x1a", b"\x1c",
    b"\x1f")
UP, DOWN, LEFT = b"\x1b[A", b"\x1b[B", b"\x1b[D"


def program():
    path = smoke_kit.PROGRAMS / "prompt"
    if not path.exists():
        raise Skip("prompt was not built: GNU readline is missing")
    try:
        curses.setupterm("xterm", os.open(os.devnull, os.O_WRONLY))
    except curses.error:
        raise Skip("the description of xterm")
    return path


@contextlib.contextmanager
def prompting(*command, **options):
    terminal = Terminal(*command or [program()], **options)
    try:
        if not command:
            terminal.await_line("> ")
        yield terminal
    finally:
        terminal.close()


@contextlib.contextmanager
def prompting_with(settings):
    """With these settings of Readline."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "settings")
        path.write_text(settings)
        with prompting(settings=path) as terminal:
            yield terminal


def gate_write(gate, data):
    """To a FIFO, when a job reads it."""
    def opened():
        nonlocal fd
        with contextlib.suppress(OSError):  # there is no reader
            fd = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        return fd >= 0

    fd = -1
    soon(opened, "a job that reads")
    os.write(fd, data)
    os.close(fd)


# ---- On a terminal -----------------------------------------------------------

def prompt_keeps_what_is_typed_under_output():
    with tempfile.TemporaryDirectory() as folder, prompting() as terminal:
        gate = pathlib.Path(folder, "gate")
        os.mkfifo(gate)
        terminal.type(b"run read x < %s; printf 'a\\033[A%%s\\n' $x\r" %
                      bytes(gate))
        terminal.await_lines("[1] started", "> ")
        terminal.type(b"hexlp\x1b[D\x1b[D\x7f")
        terminal.await_that(lambda: terminal.screen.column == 4 and
                            terminal.screen.lines[-1] == "> help", "> help")
        gate_write(gate, b"word\n")
        terminal.await_lines("[1] a [Aword", "[1] done", "> help")
        terminal.await_that(lambda: terminal.screen.column == 4, "the cursor")
        terminal.type(b"\r")
        terminal.await_line("> ")
        expect("help   " in "".join(terminal.screen.lines),
               terminal.screen.lines)


def prompt_prints_above_a_line_that_is_long():
    with tempfile.TemporaryDirectory() as folder, prompting() as terminal:
        gate = pathlib.Path(folder, "gate")
        os.mkfifo(gate)
        terminal.type(b"run read x < %s; echo $x\r" % bytes(gate))
        terminal.await_lines("[1] started", "> ")
        terminal.type(b"x" * 200)
        lines = ["> " + "x" * 78, "x" * 80, "x" * 42]
        terminal.await_lines(*lines)
        gate_write(gate, b"word\n")
        terminal.await_lines("[1] word", "[1] done", *lines)


def prompt_completes_commands_and_remembers_them():
    with prompting() as terminal:
        terminal.type(b"ca\t")
        terminal.await_line("> cancel ")
        terminal.type(b"7\r")
        terminal.await_lines("no such job", "> ")
        terminal.type(UP)
        terminal.await_line("> cancel 7")


def prompt_drops_the_line_at_ctrl_c():
    with prompting() as terminal:
        terminal.type(b"quit")
        terminal.await_line("> quit")
        terminal.type(CTRL_C)
        terminal.await_lines("> quit", "> ")
        terminal.type(b"\x12")  # a search in the history
        terminal.await_that(lambda: "search" in terminal.screen.lines[-1],
                            "the search")
        terminal.type(CTRL_C)
        terminal.await_line("> ")
        terminal.type(b"lis\t\r")
        terminal.await_lines("> list ", "> ")


def prompt_undoes_nothing_of_a_dropped_line():
    with prompting() as terminal:
        terminal.type(b"abcdef" + 3 * LEFT + CTRL_K)
        terminal.await_line("> abc")
        terminal.type(CTRL_C)
        terminal.await_lines("> abc", "> ")
        terminal.type(UNDO + b"x")
        terminal.await_line("> x")


def prompt_records_no_macro_after_ctrl_c():
    with prompting() as terminal:
        terminal.type(b"\x18(ab")
        terminal.await_line("> ab")
        terminal.type(CTRL_C)
        terminal.await_lines("> ab", "> ")
        terminal.type(b"cd\x18)\x18e!")
        terminal.await_line("> cd!")


def prompt_drops_a_line_of_its_history():
    """Its list of changes is freed once."""
    with prompting() as terminal:
        terminal.type(b"list\r")
        terminal.await_line("> ")
        terminal.type(b"help\r")
        terminal.await_that(lambda: "run    " in "".join(
            terminal.screen.lines), "the help")
        terminal.await_line("> ")
        for keys, line in ((UP, "help"), (b"x", "helpx"), (UP, "list"),
                           (DOWN, "helpx")):
            terminal.type(keys)
            terminal.await_line("> " + line)
        terminal.type(CTRL_C)
        terminal.await_lines("> helpx", "> ")
        terminal.type(b"y\r")
        terminal.await_lines("no command 'y': try 'help'", "> ")
        for line in "y", "helpx":
            terminal.type(UP)
            terminal.await_line("> " + line)
        terminal.type(b"\r")
        terminal.await_lines("no command 'helpx': try 'help'", "> ")
        terminal.type(b"quit\r")
        expect_equal(terminal.ended(), 0, "status")


def prompt_does_not_wait_at_a_parenthesis():
    with prompting_with("set blink-matching-paren on\n") as terminal:
        terminal.type(b"(a")
        terminal.await_line("> (a")
        before = terminal.output
        terminal.type(b")")
        terminal.await_line("> (a)")
        # The cursor stays.
        expect_equal(terminal.output[len(before):], b")", "output")


def prompt_reads_its_settings_once():
    with tempfile.TemporaryDirectory() as folder:
        settings = pathlib.Path(folder, "settings")
        keys = "\\C-t\\C-t"
        settings.write_text(f'"{keys}": re-read-init-file\n')
        with prompting(settings=settings) as terminal:
            settings.write_text('"q": "w"\n')
            terminal.type(b"\x18\x12\x14\x14q!")
            terminal.await_line("> q!")


def prompt_starts_lists_and_cancels_jobs():
    with prompting() as terminal:
        terminal.type(b"after 1000 late\r")
        terminal.await_lines("[1] started", "> ")
        terminal.type(b"run exec sleep 1000\r")
        terminal.await_lines("[2] started", "> ")
        terminal.type(b"list\r")
        terminal.await_lines("[1] after late", "[2] run exec sleep 1000", "> ")
        for number in 1, 2:
            terminal.type(b"cancel %d\r" % number)
            terminal.await_lines(f"[{number}] cancelled", "> ")
        terminal.type(b"every 0.01 tick\r")
        terminal.await_lines("[3] tick", "[3] tick", "> ")
        terminal.type(b"run exit 3\r")
        terminal.await_that(lambda: "[4] ended with status 3" in
                            terminal.screen.lines, "status 3")
        terminal.type(b"quit\r")
        expect_equal(terminal.ended(), 0, "status")


def prompt_ends_at_ctrl_d():
    with prompting() as terminal:
        terminal.type(b"run exec sleep 1000\r")
        terminal.await_lines("[1] started", "> ")
        terminal.type(CTRL_D)
        expect_equal(terminal.ended(), 0, "status")
        terminal.await_line("")


def prompt_knows_the_size_of_the_window():
    with prompting() as terminal:
        expect(terminal.screen.columns == 80, "the size before")
        while terminal.read(0):
            pass
        terminal.resize(40)
        terminal.await_that(lambda: terminal.read(PATIENCE), "a new line")
        terminal.await_line("> ")
        terminal.type(b"y" * 50)
        terminal.await_lines("> " + "y" * 38, "y" * 12)
        terminal.type(CTRL_A)
        terminal.await_that(lambda: terminal.screen.column == 2 and
                            terminal.screen.row ==
                            len(terminal.screen.lines) - 2, "the cursor")


def prompt_restores_the_terminal_at_a_signal():
    with tempfile.TemporaryDirectory() as folder:
        pid = pathlib.Path(folder, "pid")
        for number in signal.SIGTERM, signal.SIGHUP:
            with prompting() as terminal:
                pid.unlink(missing_ok=True)
                terminal.type(b"run echo $$ > %s; exec sleep 1000\r" %
                              bytes(pid))
                terminal.await_lines("[1] started", "> ")
                soon(lambda: pid.exists() and
                     pid.read_text().endswith("\n"), "the command")
                expect(terminal.modes_are_set(), "no modes")
                terminal.type(b"half a li")
                terminal.await_line("> half a li")
                terminal.process.send_signal(number)
                expect_equal(terminal.ended(), 128 + number, "status")
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid.read_text()), signal.SIGKILL)
                    expect(False, "the command is left")
    with prompting() as terminal:
        terminal.type(QUIT)
        expect_equal(terminal.ended(), 128 + signal.SIGQUIT, "status")
        # Pastes are marked no more.
        expect(terminal.output.rfind(b"\x1b[?2004l") >
               terminal.output.rfind(b"\x1b[?2004h") >= 0, terminal.output)


def prompt_waits_for_no_end_of_a_paste():
    with prompting() as terminal:
        terminal.type(b"\x1b[200~some")
        terminal.await_taken()
        terminal.type(CTRL_C)
        terminal.await_that(lambda: len(terminal.screen.lines) > 1, "^C")
        terminal.await_line("> ")
        terminal.type(b"\x1b[200~more")
        terminal.await_taken()
        terminal.process.send_signal(signal.SIGTERM)
        expect_equal(terminal.ended(), 128 + signal.SIGTERM, "status")
    with prompting() as terminal:
        terminal.type(b"\x1b[200~cancel 1\x1b[201~")
        terminal.await_line("> cancel 1")


def prompt_shows_what_comes_before_a_wait():
    with prompting_with('"q": "hello\\e[200~"\n') as terminal:
        terminal.type(b"q")
        terminal.await_line("> hello")
        terminal.type(b" you\x1b[201~")
        terminal.await_line("> hello you")


def prompt_runs_each_line_of_a_macro():
    with prompting_with('"q": "one\\r\\C-p two\\rthr"\n') as terminal:
        terminal.type(b"q")
        terminal.await_lines("> one", "> one two",
                             "no command 'one': try 'help'",
                             "no command 'one': try 'help'", "> thr")
        terminal.type(b"ee\r")
        terminal.await_lines("> three", "no command 'three': try 'help'",
                             "> ")
        terminal.type(UP + UP)
        terminal.await_line("> one two")
        terminal.type(CTRL_C)
        terminal.await_lines("> one two", "> ")
    # Nothing that comes after it is done.
    with prompting_with('"!": "quit\\rafter 0 0\\rhalf"\n') as terminal:
        terminal.type(b"!")
        expect_equal(terminal.ended(), 0, "status")
        expect("how many" not in "".join(terminal.screen.lines),
               terminal.screen.lines)


def prompt_ends_while_the_output_is_stopped():
    with prompting() as terminal:
        terminal.type(b"every 0.001 tick\r")
        terminal.await_lines("[1] tick", "> ")
        terminal.type(CTRL_S)
        while terminal.read(0.1):
            pass
        terminal.process.send_signal(signal.SIGTERM)
        expect_equal(terminal.ended(), 128 + signal.SIGTERM, "status")


def prompt_stops_and_goes_on():
    script = 'stty -g; "$0"; stty -g; fg; stty -g'
    with prompting("sh", "-m", "-c", script, program()) as terminal:
        terminal.await_line("> ")
        modes = terminal.screen.lines[0]
        terminal.type(b"qu")
        terminal.await_line("> qu")
        terminal.type(CTRL_Z)
        lines = terminal.screen.lines
        terminal.await_that(lambda: lines.count(modes) == 2, "the shell")
        terminal.await_line("> qu")
        terminal.type(b"it\r")
        expect_equal(terminal.ended(), 0, "status")
        expect_equal(lines.count(modes), 3, lines)
        expect("> quit" in lines[lines.index(modes, 1):], lines)


def prompt_leaves_the_terminal_to_the_foreground():
    # bash continues no job that runs, dash does.
    for shell in filter(shutil.which, ("sh", "bash")):
        with tempfile.TemporaryDirectory() as folder:
            gate = pathlib.Path(folder, "gate")
            os.mkfifo(gate)
            script = '"$0"; bg; read x; echo "read $x"; fg'
            with prompting(shell, "-m", "-c", script, program()) as terminal:
                terminal.await_line("> ")
                terminal.type(b"run echo runs; read x < %s; echo $x\r" %
                              bytes(gate))
                terminal.await_lines("[1] started", "[1] runs", "> ")
                terminal.type(b"qu")
                terminal.await_line("> qu")
                terminal.type(CTRL_Z)
                soon(lambda: not terminal.modes_are_set(), "a stop")
                gate_write(gate, b"word\n")
                lines = terminal.screen.lines
                terminal.await_that(lambda: "[1] done" in lines, "a job")
                expect("[1] word" in lines, lines)
                expect(not terminal.modes_are_set(), "modes")
                terminal.type(b"mine\r")
                terminal.await_that(lambda: "read mine" in lines, "the shell")
                terminal.await_line("> qu")
                terminal.await_that(terminal.modes_are_set, "no modes")
                terminal.type(b"it\r")
                expect_equal(terminal.ended(), 0, "status")


def has_signals(pid):
    """Whether it has opened its signals, after which it begins its line."""
    links = pathlib.Path(f"/proc/{pid}/fd")
    with contextlib.suppress(OSError):
        return any("signalfd" in os.readlink(link) for link in links.iterdir())
    return False


def status(pid, field):
    return re.search(rf"^{field}:\s+(\S+)",
                     pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]


def expect_runs(pid):
    """It takes a signal, as its task does when it waits for keys, too."""
    bit = 1 << (signal.SIGCONT - 1)
    os.kill(pid, signal.SIGCONT)
    soon(lambda: not int(status(pid, "ShdPnd"), 16) & bit, "a look")
    expect(status(pid, "State") != "T", "it has stopped")


def prompt_may_be_started_in_the_background():
    for shell in filter(shutil.which, ("sh", "bash")):
        script = '"$0" & echo "pid $!"; read x; echo "read $x"; fg; echo end'
        with prompting(shell, "-m", "-c", script, program()) as terminal:
            lines = terminal.screen.lines
            terminal.await_that(lambda: len(lines) > 1, "its number")
            pid = int(lines[0].split()[-1])
            soon(lambda: has_signals(pid), "its start")
            expect_runs(pid)
            expect(not terminal.modes_are_set(), "modes")
            terminal.type(b"mine\r")
            terminal.await_that(lambda: "read mine" in lines, "the shell")
            terminal.await_line("> ")
            terminal.await_that(terminal.modes_are_set, "no modes")
            terminal.type(b"list\r")
            terminal.await_lines("> list", "> ")
            terminal.type(b"quit\r")
            expect_equal(terminal.ended(), 0, "status")
            expect_equal(lines[-2:], ["end", ""], "the end")


def prompt_sets_its_modes_after_a_stop_by_another():
    with prompting() as terminal:
        terminal.type(b"qu")
        terminal.await_line("> qu")
        terminal.process.send_signal(signal.SIGSTOP)
        expect(os.WIFSTOPPED(os.waitpid(terminal.process.pid,
                                        os.WUNTRACED)[1]), "no stop")
        # As a shell does.
        termios.tcsetattr(terminal.theirs, termios.TCSANOW, terminal.before)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.await_that(terminal.modes_are_set, "no modes")
        terminal.await_line("> qu")
        terminal.type(b"it\r")
        expect_equal(terminal.ended(), 0, "status")


def prompt_goes_on_where_it_cannot_stop():
    """No shell would continue it: its group is orphaned."""
    with prompting() as terminal:
        terminal.type(b"qu")
        terminal.await_line("> qu")
        terminal.type(CTRL_Z)
        terminal.await_lines("> qu", "> qu")
        expect(terminal.modes_are_set(), "no modes")
        terminal.type(b"it\r")
        expect_equal(terminal.ended(), 0, "status")


# ---- Without one -------------------------------------------------------------

def prompt_reads_a_script():
    program()
    done = run("prompt", stdin="no\nafter 0.01 late\nevery x\n"
               "run read x || echo none; exit 2")
    expect_equal(
        (done.returncode, done.stderr, sorted(done.stdout.splitlines())),
        (0, "", sorted([
            "no command 'no': try 'help'", "[1] started",
            "how many seconds?", "[2] started", "[1] late", "[1] done",
            "[2] none", "[2] ended with status 2"])), "a script")
    done = run("prompt", stdin="after 1000 never\nquit\nhelp\n")
    expect_equal((done.returncode, done.stdout), (0, "[1] started\n"), "quit")


def prompt_runs_no_part_of_a_command():
    program()
    room = 399
    for command in "run", "after 0.01":
        done = run("prompt", stdin=f"{command} echo {'x' * (room - 5)}\n")
        expect("[1] started" in done.stdout and "[1] done" in done.stdout,
               "a command that fits", done)
        done = run("prompt", stdin=f"{command} echo {'x' * (room - 4)}\n")
        expect_equal(done.stdout, "not started: the text is too long\n",
                     command)


def prompt_runs_no_part_of_a_line():
    program()
    for size in 4096, 5000, 9000:
        for end in "\n", "":
            line = ("run echo cut;" + " " * 9000)[:size - 4] + "help"
            done = run("prompt", stdin=line + end + ("list" if end else ""))
            expect_equal((done.returncode, done.stdout),
                         (0, "the line is too long\n"), size)
    line = "nothing".ljust(4095)
    done = run("prompt", stdin=line + "\nafter 0.01 late\n")
    expect_equal(done.stdout, "no command 'nothing': try 'help'\n"
                 "[1] started\n[1] late\n[1] done\n", "a line that fits")


CASES = [function for name, function in list(globals().items())
         if name.startswith("prompt_")]
