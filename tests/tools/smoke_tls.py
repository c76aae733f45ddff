# SPDX-License-Identifier: MIT
"""Smoke tests of TLS: the examples against `openssl` and curl, which bring another
client and another server.  smoke_examples.py runs them."""

import contextlib
import functools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile

from smoke_kit import (built, expect, expect_equal, held_port, in_parallel, run,
                       serving, soon, ADDRESS, PATIENCE)
from tap import Skip

SCRATCH = tempfile.TemporaryDirectory()
TOP = pathlib.Path(SCRATCH.name)
EXTENSIONS = """[ca]
basicConstraints = critical,CA:TRUE
[leaf]
basicConstraints = critical,CA:FALSE
subjectAltName = DNS:localhost,IP:127.0.0.1
[stranger]
basicConstraints = critical,CA:FALSE
subjectAltName = DNS:stranger.test
"""


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"no {program}")
    built("https", "there is no libweft-tls")


def openssl(*arguments, stdin=""):
    return subprocess.run(["openssl", *map(str, arguments)], input=stdin,
                          text=True, capture_output=True, timeout=PATIENCE)


def make(name, section, *signer):
    """NAME.pem and NAME.key, signed by another, or by itself."""
    made = openssl("req", "-x509" if not signer else "-new", "-newkey",
                   "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                   "-subj", f"/CN={name}", "-keyout", TOP / f"{name}.key",
                   *(("-extensions", section, "-config", TOP / "conf", "-days",
                      "2", "-out", TOP / f"{name}.pem") if not signer else
                     ("-out", TOP / f"{name}.csr")))
    expect_equal(made.returncode, 0, made.stderr)
    if signer:
        made = openssl("x509", "-req", "-in", TOP / f"{name}.csr", "-CA",
                       TOP / f"{signer[0]}.pem", "-CAkey",
                       TOP / f"{signer[0]}.key", "-CAcreateserial",
                       "-extfile", TOP / "conf", "-extensions", section,
                       "-days", "2", "-out", TOP / f"{name}.pem")
        expect_equal(made.returncode, 0, made.stderr)


@functools.lru_cache(None)
def certificates():
    (TOP / "conf").write_text(
        "[req]\ndistinguished_name = name\n[name]\n" + EXTENSIONS)
    make("ca", "ca")
    make("server", "leaf", "ca")
    make("other", "leaf", "ca")
    make("stranger", "stranger", "ca")


@contextlib.contextmanager
def https():
    needs("openssl")
    certificates()
    for kind in "pem", "key":
        shutil.copy(TOP / f"server.{kind}", TOP / f"served.{kind}")
    with serving("https", ADDRESS, TOP / "served.pem",
                 TOP / "served.key") as server:
        yield server


def expect_answer(server, *options, wanted):
    """s_client ends when its input does, so that it waits for the answer."""
    command = ["openssl", "s_client", "-quiet", "-no_ign_eof", "-connect",
               f"127.0.0.1:{server.port}", "-servername", "localhost",
               "-verify_hostname", "localhost", "-CAfile", TOP / "ca.pem",
               "-verify_return_error", *options]
    with subprocess.Popen(list(map(str, command)), text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as client:
        try:
            client.stdin.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            client.stdin.flush()
            head = [client.stdout.readline() for _ in range(3)]
            body = client.stdout.readline()
            expect_equal(head[0], "HTTP/1.1 200 OK\n", head)
            expect(re.fullmatch(wanted, body), "it said", repr(body))
            client.stdin.close()
            expect_equal(client.wait(PATIENCE), 0, "s_client")
        finally:
            client.kill()


def openssl_is_a_client_of_both_versions():
    with https() as server:
        expect_answer(server, "-tls1_2",
                      wanted=r"TLSv1\.2 ECDHE-\S+ alpn= name=localhost\n")
        expect_answer(server, "-tls1_3", "-alpn", "h2,http/1.1",
                      wanted=r"TLSv1\.3 TLS_\S+ alpn=http/1\.1 "
                             r"name=localhost\n")


def openssl_resumes_its_session():
    with https() as server:
        for version in "-tls1_2", "-tls1_3":
            session = TOP / f"session{version}"
            expect_answer(server, version, "-sess_out", session,
                          wanted=r"TLS.* name=localhost\n")
            expect(session.exists(), "no session of", version)
            expect_answer(server, version, "-sess_in", session,
                          wanted=r"TLS.* name=localhost resumed\n")


def openssl_is_refused_where_it_should_be():
    with https() as server:
        for options in (("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"),
                        ("-alpn", "h2"), ("-tls1_2", "-cipher", "PSK")):
            done = openssl("s_client", "-connect",
                           f"127.0.0.1:{server.port}", *options)
            expect(done.returncode != 0, options, done.stdout)
        # And serves on.
        expect_answer(server, wanted=r"TLSv1\.3 .*\n")


def certificate_is_renewed_at_a_signal():
    def subject(server):
        done = openssl("s_client", "-connect", f"127.0.0.1:{server.port}")
        return re.search(r"subject=CN = (\w+)", done.stdout).group(1)

    with https() as server:
        expect_equal(subject(server), "server", "subject")
        for kind in "pem", "key":
            shutil.copy(TOP / f"other.{kind}", TOP / f"served.{kind}")
        os.kill(server.process.pid, signal.SIGHUP)
        soon(lambda: subject(server) == "other", "another certificate")


def curl_gets_many_answers():
    needs("curl")
    with https() as server:
        def client(_):
            url = f"https://localhost:{server.port}/"
            done = subprocess.run(
                ["curl", "-sS", "--cacert", str(TOP / "ca.pem"), "--http1.1",
                 *[url] * 5],
                capture_output=True, text=True, timeout=PATIENCE)
            expect_equal((done.returncode, done.stderr), (0, ""), "curl")
            expect_equal(len(re.findall("alpn=http/1.1 name=localhost",
                                        done.stdout)), 5, done.stdout)
        in_parallel(20, client)


@contextlib.contextmanager
def secure_site():
    """httpd with TLS; yields its port and the bytes of its two files."""
    needs("openssl", "curl")
    built("httpd")
    certificates()
    files = {"small": b"x" * 100, "large": os.urandom(1 << 20)}
    root = TOP / "site"
    root.mkdir(exist_ok=True)
    for name, content in files.items():
        (root / name).write_bytes(content)
    with serving("httpd", root, ADDRESS, "--cert", TOP / "server.pem",
                 "--key", TOP / "server.key") as server:
        yield server.port, files


def curl(port, *arguments):
    """The answers of the server, with their headers."""
    done = subprocess.run(
        ["curl", "-sSi", "--cacert", str(TOP / "ca.pem"),
         *(f"https://localhost:{port}{a}" if a.startswith("/") else a
           for a in arguments)], capture_output=True, timeout=PATIENCE)
    expect_equal((done.returncode, done.stderr), (0, b""), "curl")
    return done.stdout


def httpd_serves_over_tls():
    with secure_site() as (port, files):
        def client(_):
            for name, content in files.items():
                got = curl(port, f"/{name}")
                expect(got.startswith(b"HTTP/1.1 200"), got[:100])
                expect(got.endswith(b"\r\n\r\n" + content), "content", name)
        in_parallel(10, client)
        several = curl(port, "-w", "%{num_connects} ", *["/small"] * 5)
        expect_equal(several.count(b"x" * 100), 5, several)
        expect(several.endswith(b"x0 "), "it kept no connection", several)
        part = curl(port, "-r", "1000-200999", "/large")
        expect(part.endswith(b"\r\n\r\n" + files["large"][1000:201000]), "part")
        head = curl(port, "-I", "/large")
        expect(head.endswith(b"\r\n\r\n"), head)
        expect(b"<a href" in curl(port, "/"), "listing")
        # The last answer of a connection arrives in full.
        last = curl(port, "-H", "Connection: close", "/large")
        expect(last.endswith(files["large"]), "last")


def server_gives_one_ticket():
    request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with secure_site() as (port, _):
        done = openssl("s_client", "-tls1_3", "-ign_eof", "-connect",
                       f"127.0.0.1:{port}", stdin=request)
    expect_equal(done.stdout.count("New Session Ticket arrived"), 1, "tickets")


def httpd_takes_tls_alone():
    with secure_site() as (port, _):
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as peer:
            peer.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):
                while got := peer.recv(1000):
                    expect(b"HTTP" not in got, got)
        expect(curl(port, "/small"), "it goes on")
    for arguments in (["--cert", TOP / "conf"],
                      ["--cert", TOP / "server.pem", "--key", TOP / "ca.key"]):
        done = run("httpd", TOP, ADDRESS, *arguments)
        expect_equal((done.returncode, done.stdout), (1, ""), arguments)
        expect("cannot use" in done.stderr, done.stderr)


@contextlib.contextmanager
def openssl_server(*options, name="server"):
    """Serves a page; yields its port."""
    needs("openssl")
    certificates()
    command = ["openssl", "s_server", "-www", "-cert", TOP / f"{name}.pem",
               "-key", TOP / f"{name}.key", *options, "-accept"]
    with held_port() as port, \
            subprocess.Popen([*map(str, command), f"127.0.0.1:{port}"],
                             text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT) as process:
        try:
            while "ACCEPT" not in (line := process.stdout.readline()):
                expect(line, "s_server ended")
            yield port
        finally:
            process.kill()


def openssl_is_a_server_of_both_versions():
    for option, version in (("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")):
        with openssl_server(option) as port:
            done = run("https_get", f"127.0.0.1:{port}", TOP / "ca.pem")
            expect_equal((done.returncode, done.stderr), (0, ""), "https_get")
            expect(done.stdout.startswith("HTTP/1.0 200 ok") and
                   f"Protocol  : {version}" in done.stdout, done.stdout)


def server_of_another_name_is_refused():
    for name, ca, why in (("stranger", "ca", "IP address mismatch"),
                          ("server", "stranger",
                           "unable to get local issuer certificate")):
        with openssl_server(name=name) as port:
            done = run("https_get", f"127.0.0.1:{port}", TOP / f"{ca}.pem")
            expect_equal((done.returncode, done.stdout), (1, ""), name)
            expect(why in done.stderr, "it said", done.stderr)


CASES = [
    openssl_is_a_client_of_both_versions,
    openssl_resumes_its_session,
    openssl_is_refused_where_it_should_be,
    certificate_is_renewed_at_a_signal,
    curl_gets_many_answers,
    httpd_serves_over_tls,
    server_gives_one_ticket,
    httpd_takes_tls_alone,
    openssl_is_a_server_of_both_versions,
    server_of_another_name_is_refused,
]
