# SPDX-License-Identifier: MIT
"""Smoke tests of examples/cp, beside cp; smoke_examples.py runs them."""

import contextlib
import os
import pathlib
import pty
import select
import shutil
import subprocess
import tempfile

import smoke_kit
from smoke_kit import expect, expect_equal, run, soon, PATIENCE
from tap import Skip


@contextlib.contextmanager
def tree():
    """A folder with a tree: "from", of all kinds of files."""
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        for i in range(30):
            (top / f"from/{i % 5}/dir {i}").mkdir(parents=True)
            for j in range(10):
                path = top / f"from/{i % 5}/dir {i}/file\n{j}"
                path.write_bytes(b"%d" % i * j * 100)
                path.chmod(0o600 + i)
                os.utime(path, ns=(10**18 + i, 10**18 + j))
        os.symlink("0/nowhere", top / "from/link")
        os.link(top / "from/0/dir 0/file\n1", top / "from/name")
        os.mkfifo(top / "from/fifo")
        yield top


def listed(top):
    """Everything that ls -l shows, and the contents."""
    seen = {}
    for folder, folders, names in os.walk(top):
        for name in [".", *folders, *names]:
            path = pathlib.Path(folder, name)
            status = path.lstat()
            regular = path.is_file() and not path.is_symlink()
            seen[str(path.relative_to(top))] = (
                status.st_mode, status.st_mtime_ns, status.st_uid,
                status.st_nlink,
                path.is_symlink() and os.readlink(path),
                regular and path.read_bytes())
    return seen


def cp_copies_a_tree_as_cp_does():
    if not shutil.which("cp"):
        raise Skip("there is no cp")
    with tree() as top:
        done = run("cp", "-a", top / "from", top / "ours")
        expect_equal((done.returncode, done.stdout, done.stderr), (0, "", ""),
                     "cp")
        subprocess.run(["cp", "-a", top / "from", top / "theirs"], check=True)
        expect_equal(listed(top / "ours"), listed(top / "theirs"), "the trees")
        expect_equal(listed(top / "ours"), listed(top / "from"), "the copy")


def cp_puts_several_into_a_directory():
    with tree() as top:
        (top / "into").mkdir()
        done = run("cp", "-r", top / "from/1/", top / "from/2", top / "into")
        expect_equal((done.returncode, done.stderr), (0, ""), "cp")
        expect_equal(sorted(os.listdir(top / "into")), ["1", "2"], "names")
        expect_equal(run("cp", top / "from/1", top / "from/2",
                         top / "from/name").returncode, 2, "no directory")


def cp_of_a_parent_stays_in_the_directory():
    """"into/.." would be another directory, and is full of other files."""
    with tree() as top:
        (top / "place/into").mkdir(parents=True)
        done = run("cp", "-r", top / "from/1/dir 1/..", top / "place/into")
        expect_equal((done.returncode, done.stderr), (0, ""), "cp")
        expect_equal(os.listdir(top / "place"), ["into"], "beside it")
        expect_equal(sorted(os.listdir(top / "place/into")),
                     sorted(os.listdir(top / "from/1")), "names")


def cp_follows_links_but_as_trees():
    with tree() as top:
        os.symlink("name", top / "from/another")
        for option, links in ([], False), (["-r"], True), (["-a"], True):
            done = run("cp", *option, top / "from/another", top / "to")
            expect_equal((done.returncode, done.stderr), (0, ""), option)
            expect_equal((top / "to").is_symlink(), links, option)
            (top / "to").unlink()
        done = run("cp", top / "from/link", top / "to")
        expect_equal((done.returncode, done.stderr), (
            1, f"cp: {top}/from/link: No such file or directory\n"), "nowhere")


def cp_replaces_no_fifo_by_a_file():
    with tree() as top:
        done = run("cp", "-f", top / "from/name", top / "from/fifo")
        expect(done.returncode == 1 and "fifo: " in done.stderr, done)
        expect((top / "from/fifo").is_fifo(), "it is another file")
        done = run("cp", "-n", top / "from/name", top / "from/fifo")
        expect_equal((done.returncode, done.stderr), (0, ""), "no-clobber")
        expect((top / "from/fifo").is_fifo(), "it is another file")


def cp_replaces_a_fifo_by_a_fifo():
    with tree() as top:
        os.mkfifo(top / "to")
        (top / "from/fifo").chmod(0o640)
        done = run("cp", "-af", top / "from/fifo", top / "to")
        expect_equal((done.returncode, done.stderr), (0, ""), "cp")
        expect_equal((top / "to").lstat().st_mode,
                     (top / "from/fifo").lstat().st_mode, "mode")


def cp_keeps_replaces_and_complains():
    with tree() as top:
        (top / "to").write_bytes(b"before")
        done = run("cp", top / "from/name", top / "to")
        expect_equal((done.returncode, done.stderr),
                     (1, f"cp: {top}/from/name: File exists\n"), "plain")
        done = run("cp", "--no-clobber", top / "from/name", top / "to")
        expect_equal((done.returncode, done.stderr), (0, ""), "no-clobber")
        expect_equal((top / "to").read_bytes(), b"before", "kept")
        expect_equal(run("cp", "-f", top / "from/name", top / "to").returncode,
                     0, "force")
        expect_equal((top / "to").read_bytes(),
                     (top / "from/name").read_bytes(), "replaced")
        done = run("cp", "-r", top / "from", top / "other")
        expect(done.returncode == 1 and done.stderr in (
            f"cp: {top}/from/fifo: Operation not supported\n",
            f"cp: {top}/from/fifo: Not supported\n"), done)  # musl
        expect_equal(run("cp", top / "to").returncode, 2, "usage")


def cp_names_each_file():
    with tree() as top:
        done = run("cp", "-rv", top / "from/1", top / "to")
        # Six directories of ten files, whose names have two lines.
        expect_equal(done.stdout.count("' -> '"), 6 * 11 + 1, done.stdout)
        expect(f"'{top}/from/1/dir 1' -> '{top}/to'" in done.stdout,
               done.stdout)


def cp_shows_a_bar_on_a_terminal():
    with tree() as top:
        ours, theirs = pty.openpty()
        with subprocess.Popen([smoke_kit.PROGRAMS / "cp", "-a", top / "from",
                               top / "to"], stderr=theirs) as process:
            expect_equal(process.wait(PATIENCE), 0, "status")
        os.close(theirs)
        shown = b""
        while select.select([ours], [], [], 0)[0]:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
        os.close(ours)
        expect(shown.startswith(b"\r[") and b" files, " in shown, shown)
        expect(shown.endswith(b"\r\033[K"), shown)


def cp_that_is_interrupted_leaves_no_part():
    with tree() as top, open(top / "large", "wb") as large:
        # Sparse, in small parts: many turns of work.
        for i in range(20000):
            os.pwrite(large.fileno(), b"x", i << 13)
        process = subprocess.Popen([smoke_kit.PROGRAMS / "cp", top / "large",
                                    top / "to"])
        # It may be complete by now.
        soon(lambda: len(os.listdir(top)) > 2, "the copy")
        process.terminate()
        expect(process.wait(PATIENCE) in (128 + 15, 0), process.returncode)
        expect_equal(sorted(os.listdir(top))[:2], ["from", "large"], "left")


CASES = [function for name, function in list(globals().items())
         if name.startswith("cp_")]
