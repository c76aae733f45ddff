# SPDX-License-Identifier: MIT
"""Smoke tests of the examples that read many files, each beside the tool that
it is like; smoke_examples.py runs them."""

import contextlib
import errno
import hashlib
import os
import pathlib
import subprocess
import tempfile

from smoke_kit import built, expect, expect_equal, PATIENCE
from tap import Skip

ENVIRONMENT = {**os.environ, "LC_ALL": "C"}


def said(program, *arguments, folder, name=None, stdin=b""):
    """The status, the output and the complaints, with one name for both."""
    try:
        done = subprocess.run([program, *arguments], cwd=folder, input=stdin,
                              capture_output=True, timeout=PATIENCE,
                              env=ENVIRONMENT, check=False)
    except FileNotFoundError:
        raise Skip(f"{program} is not installed")
    wrong = done.stderr.replace(name.encode() + b":", b"us:") if name else b""
    return done.returncode, done.stdout, wrong


@contextlib.contextmanager
def tree():
    """Files of many kinds, in folders."""
    with tempfile.TemporaryDirectory() as directory:
        root = os.fsencode(directory)
        os.makedirs(root + b"/t/a/b/c")
        os.mkdir(root + b"/t/empty")
        for i in range(300):
            with open(root + b"/t/a/%d" % i, "wb") as file:
                file.write(b"line %d\nnext\n" % i * (i % 50))
        files = {
            b"t/new\nline": b"a word\n", b"t/back\\slash": b"word\nno\nword",
            b"t/\xff\xfe": b"\n\n", b"t/a/b/c/x": b"WORD 17\r\n",
            b"t/binary": b"some word\nand\0more\nword\n", b"t/none": b"",
            b"t/large": b"0123456789\n" * 50_000 + b"the last word\n",
            b"t/wide": b"x" * 400_000 + b"word" + b"y" * 400_000 + b"\nline\n",
        }
        for name, data in files.items():
            with open(root + b"/" + name, "wb") as file:
                file.write(data)
        os.symlink("none", root + b"/t/link")
        os.symlink("nowhere", root + b"/t/dangling")
        os.symlink("a", root + b"/t/folder")
        os.mkfifo(root + b"/t/fifo")
        yield pathlib.Path(directory)


def both_say(ours, theirs, *arguments, **more):
    """Both programs say the same, in the same order."""
    mine = said(built(ours), *arguments, name=ours, **more)
    wanted = said(theirs, *arguments, name=theirs, **more)
    expect_equal(mine, wanted, f"{ours} {arguments}")
    return mine


def walked(folder):
    """The files in the order of their names."""
    found = subprocess.run(["find", "t", "-type", "f", "-print0"], cwd=folder,
                           capture_output=True, check=True).stdout
    return sorted(found.split(b"\0")[:-1], key=lambda path: path.split(b"/"))


# ---- checksum ----------------------------------------------------------------

def checksum_prints_what_sha256sum_does():
    program = built("checksum")
    with tree() as folder:
        names = walked(folder)
        status, out, wrong = both_say("checksum", "sha256sum", *names,
                                      folder=folder)
        expect_equal((status, wrong), (0, b""), "without errors")
        expect_equal(said(program, "-r", "t", folder=folder)[:2], (0, out),
                     "a tree")
        status, _, wrong = both_say("checksum", "sha256sum", "t/none",
                                    "t/nothing", "t/a", "t/link", folder=folder)
        expect_equal((status, wrong.count(b"\n")), (1, 2), "with errors")


def checksum_reads_the_folders_that_it_is_told():
    """Also where a link names one; and files beside them."""
    with tree() as folder:
        below = [name.replace(b"t/a/", b"t/folder/")
                 for name in walked(folder) if name.startswith(b"t/a/")]
        out = said("sha256sum", "t/none", *below, "t/large", folder=folder)[1]
        mine = said(built("checksum"), "-r", "t/none", "t/folder/", "t/empty",
                    "t/nothing", "", "t/large", folder=folder,
                    name="checksum")
        expect_equal(mine[1], out, "sums")
        expect_equal((mine[0], mine[2].splitlines()), (1, [
            b"us: %b: No such file or directory" % name
            for name in (b"t/nothing", b"")]), "errors")


def checksum_goes_on_where_it_may_not_read():
    if os.geteuid() == 0:
        raise Skip("root reads each folder")
    with tree() as folder:
        (folder / "t/a/b").chmod(0)
        (folder / "t/large").chmod(0)
        mine = said(built("checksum"), "-r", "t", folder=folder,
                    name="checksum")
        wrong = [b"us: %b: Permission denied" % name
                 for name in (b"t/a/b", b"t/large")]
        expect_equal((mine[0], mine[2].splitlines()), (1, wrong), "errors")
        # Without the two, and what is in the folder.
        expect_equal(mine[1].count(b"\n"), 300 + 6, "sums")
        (folder / "t/a/b").chmod(0o700)


def checksum_checks_what_sha256sum_does():
    with tree() as folder:
        sums = said("sha256sum", *walked(folder), folder=folder)[1]
        (folder / "sums").write_bytes(sums)
        both_say("checksum", "sha256sum", "-c", "sums", folder=folder)
        both_say("checksum", "sha256sum", "-c", "-", folder=folder,
                 stdin=sums[:-1])
        both_say("checksum", "sha256sum", "-c", "none", "sums", folder=folder)
        (folder / "t/a/17").write_text("other")
        (folder / "t/a/18").unlink()
        (folder / "sums").write_bytes(sums + b"this is no sum\n")
        status, _, wrong = both_say("checksum", "sha256sum", "-c", "sums",
                                    folder=folder)
        expect_equal((status, wrong.count(b"WARNING")), (1, 3), "changed")


def checksum_reads_a_list_that_is_named_twice():
    with tree() as folder:
        sums = said("sha256sum", *walked(folder), folder=folder)[1]
        wanted = said(built("checksum"), "-c", "-", folder=folder, stdin=sums)
        expect_equal(wanted[0], 0, "status")
        expect_equal(said(built("checksum"), "-c", "-", "-", folder=folder,
                          stdin=sums), wanted, "twice")


def checksum_does_not_judge_what_it_could_not_print():
    """On a device that is full, and where no reader is left."""
    with tree() as folder:
        sums = said("sha256sum", *walked(folder), folder=folder)[1]
        (folder / "sums").write_bytes(sums * 20)
        reader, pipe = os.pipe()
        os.close(reader)
        with open("/dev/full", "wb") as full, open(pipe, "wb") as gone:
            for out, error in (full, errno.ENOSPC), (gone, errno.EPIPE):
                done = subprocess.run(
                    [built("checksum"), "-c", "sums"], cwd=folder, stdout=out,
                    stderr=subprocess.PIPE, timeout=PATIENCE, text=True,
                    check=False)
                expect_equal((done.returncode, done.stderr), (
                    1, f"checksum: {os.strerror(error)}\n"), "complaints")


# ---- grep --------------------------------------------------------------------

def sorted_lines(text):
    return sorted(text.split(b"\n"))


def grep_finds_what_grep_does():
    with tree() as folder:
        for options in "-r", "-rn", "-rc", "-rl", "-ri", "-rin", "-rF", "-riF":
            for pattern in ("word", "^line 1", "7$", "[^0-9]$", "no such",
                            "w.rd|next", "^$", "(line|last) .*"):
                kind = "-F" if "F" in options else "-E"
                mine = said(built("grep"), options, pattern, "t",
                            folder=folder, name="grep")
                wanted = said("grep", kind, options, pattern, "t",
                              folder=folder, name="grep")
                expect_equal([sorted_lines(text) for text in mine[1:]],
                             [sorted_lines(text) for text in wanted[1:]],
                             (options, pattern))
                wanted = said("grep", kind, options, pattern, *walked(folder),
                              folder=folder, name="grep")
                expect_equal(mine, wanted, (options, pattern, "in order"))


def grep_reads_the_files_that_it_is_told():
    with tree() as folder:
        for names in (["t/large"], ["t/large", "t/a/17"], ["t/link"],
                      ["t/nothing", "t/large"], ["t/binary"], ["t/a"]):
            mine = said(built("grep"), "word", *names, folder=folder,
                        name="grep")
            wanted = said("grep", "word", *names, folder=folder, name="grep")
            expect_equal(mine, wanted, names)
        status, _, wrong = said(built("grep"), "(", "t/a/1", folder=folder,
                                name="grep")
        expect(status == 2 and wrong.startswith(b"us: "), status, wrong)


def grep_finds_a_match_that_takes_much_stack():
    with tree() as folder:
        (folder / "deep").write_bytes(b"ab" * 20_000 + b"c\nabc\n")
        mine = said(built("grep"), "-c", "(a|b)*c", "deep", folder=folder,
                    name="grep")
        expect_equal(mine, (0, b"2\n", b""), "matches")


def grep_says_that_a_match_takes_too_much():
    with tree() as folder:
        (folder / "bad").write_bytes(b"a" * 60 + b"\n")
        status, out, wrong = said(built("grep"), "(a+)+[^ab]", "bad",
                                  folder=folder, name="grep")
        expect(status == 2 and out == b"" and wrong.startswith(b"us: bad: "),
               status, out, wrong)


def grep_keeps_little_of_a_long_output():
    """A file is printed while it is read; the text of all would be 400 MB."""
    program = built("grep")
    with tempfile.TemporaryDirectory() as folder:
        wanted, names = hashlib.sha256(), []
        for letter, lines in zip("abcd", (1_000_000, 1000, 500_000, 400_000)):
            names.append(letter * 200)
            pathlib.Path(folder, names[-1]).write_bytes(b"x\n" * lines)
            for _ in range(lines // 100):
                wanted.update(f"{names[-1]}:x\n".encode() * 100)
        got = hashlib.sha256()
        # AddressSanitizer is not to keep what was freed.
        options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
        with subprocess.Popen([program, "-F", "x", *names], cwd=folder,
                              env={**os.environ, "ASAN_OPTIONS": options},
                              stdout=subprocess.PIPE) as process:
            while data := process.stdout.read(1 << 20):
                got.update(data)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        expect_equal(process.returncode, 0, "status")
        expect_equal(got.hexdigest(), wanted.hexdigest(), "output")
        expect(used.ru_maxrss < 250_000, "KiB of memory:", used.ru_maxrss)


CASES = [function for name, function in list(globals().items())
         if name.startswith(("checksum_", "grep_"))]
