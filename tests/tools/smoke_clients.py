# SPDX-License-Identifier: MIT
"""Smoke tests of the examples over the libraries of adapters/, with real
servers; smoke_examples.py runs them."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile

from smoke_kit import (built, expect, expect_complaint, expect_equal, held_port,
                       may_lock, run, soon, unused_port, PATIENCE)
from tap import Skip


def listens(port, process):
    """Whether it soon does; it ends if another process has its port."""
    def connects():
        with contextlib.suppress(OSError), \
                socket.create_connection(("127.0.0.1", port), 1):
            return True
        return process.poll() is not None

    soon(connects, "a server")
    return process.poll() is None


@contextlib.contextmanager
def server(*command, needs=None):
    """A server on a free port, which stands for {port} in its command, and with
    a directory that stands for {dir}; its port."""
    needs = needs or command[0]
    if not shutil.which(needs):
        raise Skip(f"no {needs}")
    with tempfile.TemporaryDirectory() as place:
        for _ in range(20):
            port = unused_port()
            words = [word.format(port=port, dir=place) for word in command]
            process = subprocess.Popen(words, cwd=place,
                                       stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            try:
                if listens(port, process):
                    yield port
                    return
            finally:
                process.kill()
                process.wait()
        raise AssertionError(f"{needs} does not serve")


def programs_of_postgres():
    found = shutil.which("postgres")
    if found:
        return pathlib.Path(found).parent
    places = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not places:
        raise Skip("no postgres")
    return places[-1].parent


@contextlib.contextmanager
def postgres():
    """A server whose socket is in the directory; root is another user for it."""
    programs = programs_of_postgres()
    user = {"user": "postgres"} if os.getuid() == 0 else {}
    with tempfile.TemporaryDirectory() as place:
        if user:
            shutil.chown(place, "postgres")
        subprocess.run([programs / "initdb", "-D", "data", "-U", "weft",
                        "--auth=trust", "--no-sync", "--locale=C"], cwd=place,
                       check=True, stdout=subprocess.DEVNULL, **user)
        process = subprocess.Popen(
            [programs / "postgres", "-D", "data", "-h", "", "-k", place, "-F"],
            cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            **user)
        try:
            wait_for_postgres(place, process)
            yield place
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait(PATIENCE)


def wait_for_postgres(place, process):
    """Its file says when it takes connections."""
    state = pathlib.Path(place, "data/postmaster.pid")
    soon(lambda: state.exists() and "ready" in state.read_text(),
         "postgres serves", process)


# ---- tally --------------------------------------------------------------------


def redis():
    built("tally")
    return server("redis-server", "--bind", "127.0.0.1", "--port", "{port}",
                  "--dir", "{dir}", "--save", "")


def tally_counts_the_words_of_its_input():
    with redis() as port:
        words = [f"w{i}" for i in range(12) for _ in range(100 * (i + 1))]
        text = "\n".join(" ".join(words[i::7]) for i in range(7)) + "\n"
        for _ in range(2):  # the first run leaves nothing behind
            done = run("tally", f"127.0.0.1:{port}", stdin=text)
            expect_equal((done.returncode, done.stderr), (0, ""), "tally")
            expect_equal(done.stdout, "".join(
                f"{100 * (i + 1):>6} w{i}\n" for i in range(11, 1, -1)),
                "its output")


def tally_says_what_is_wrong():
    built("tally")
    with held_port() as port:
        expect_complaint("tally", f"127.0.0.1:{port}")
    expect_complaint("tally", "nowhere")
    expect_equal(run("tally").returncode, 2, "usage")


# ---- bank ---------------------------------------------------------------------


def bank_keeps_its_sum():
    built("bank")
    with postgres() as place:
        done = run("bank", f"host={place} user=weft dbname=postgres")
        expect_equal((done.returncode, done.stdout, done.stderr),
                     (0, "100 transfers, sum 10000\n",
                      "NOTICE:  table \"weft_bank\" does not exist, "
                      "skipping\n"), "bank")


def bank_says_what_is_wrong():
    built("bank")
    done = run("bank", "host=/nowhere")
    expect_equal(done.returncode, 1, "status")
    expect("/nowhere" in done.stderr, "bank said", repr(done.stderr))
    expect_equal(run("bank").returncode, 2, "usage")


# ---- wget ---------------------------------------------------------------------


NGINX = """daemon off; master_process off; error_log stderr; pid nginx.pid;
events {{ }}
http {{
    access_log off; client_body_temp_path body; proxy_temp_path proxy;
    fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    server {{ listen 127.0.0.1:{port}; root {dir};
        location = /moved {{ return 302 /page; }} }}
}}
"""


def wget_fetches_many_pages_at_the_same_time():
    built("wget")
    with server("sh", "-c", f"printf %s '{NGINX}' >conf; seq 5000 >page; "
                "exec nginx -p {dir} -c {dir}/conf", needs="nginx") as port:
        site = f"http://127.0.0.1:{port}"
        done = run("wget", f"{site}/moved", *[f"{site}/page?{i}"
                                             for i in range(200)])
        expect_equal((done.returncode, done.stderr), (0, ""), "wget")
        expect_equal(sorted(done.stdout.splitlines()), sorted(
            [f"200    23893 {site}/moved"] +
            [f"200    23893 {site}/page?{i}" for i in range(200)]), "pages")
        done = run("wget", f"{site}/none", "http://127.0.0.1:1/")
        expect(done.returncode == 1 and f" {site}/none\n" in done.stdout and
               "http://127.0.0.1:1/: " in done.stderr, "wget said",
               repr(done.stdout), repr(done.stderr))


def wget_says_how_it_is_used():
    built("wget")
    expect_equal(run("wget").returncode, 2, "usage")


# ---- mq -----------------------------------------------------------------------


def mq_loses_no_job_of_a_killed_process():
    built("mq")
    # A worker's rings need 8 KiB at least, and the user has other programs.
    if not may_lock(11 * os.cpu_count() * (8 << 10) + (1 << 20)):
        raise Skip("11 processes may not lock their rings")
    with server("nats-server", "-js", "-a", "127.0.0.1", "-p", "{port}", "-sd",
                "{dir}") as port:
        done = run("mq", f"127.0.0.1:{port}")
    expect_equal((done.returncode, done.stdout, done.stderr),
                 (0, "500 jobs, 10 processes, 1 killed, all done\n", ""), "mq")


def mq_says_what_is_wrong():
    built("mq")
    with held_port() as port:
        expect_complaint("mq", f"127.0.0.1:{port}")
    expect_equal(run("mq").returncode, 2, "usage")


CASES = [function for name, function in list(globals().items())
         if re.match("(bank|mq|tally|wget)_", name)]
