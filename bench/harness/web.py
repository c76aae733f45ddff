# SPDX-License-Identifier: MIT
"""Servers of HTTP: examples/httpd beside nginx, under wrk or, for handshakes of TLS,
`openssl s_time`; and examples/balancer beside haproxy, in front of nginx."""

import concurrent.futures
import contextlib
import dataclasses
import http.client
import os
import pwd
import re
import ssl
import subprocess

from . import machine
from .case import Case, over_epoll
from .machine import Failed
from .results import WEFT, WEFT_EPOLL, Sample

NGINX_CONF = """
daemon off;
user {user};
worker_processes {workers};
pid {dir}/nginx.pid;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    default_type application/octet-stream;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    {more}
    server {{ listen 127.0.0.1:{port} {listen} backlog=4096; root {root}; }}
}}
"""
NGINX_TLS = """
    ssl_certificate {dir}/tls.pem;
    ssl_certificate_key {dir}/tls.key;
    ssl_protocols TLSv1.2 TLSv1.3;
"""
HAPROXY_CONF = """
global
    nbthread {workers}
    maxconn 1000
defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
listen proxy
    bind 127.0.0.1:{port}
    server one 127.0.0.1:{upstream} check
"""
WRK_UNITS_US = {"us": 1, "ms": 1e3, "s": 1e6}
CLIENTS = 4  # of s_time


def whole_seconds(plan):
    return max(1, round(plan.secs))


@dataclasses.dataclass(frozen=True)
class Http(Case):
    """wrk requests a small file over 64 connections that are kept alive."""
    size: int = 1024
    conns: int = 64

    def benches(self):
        return [f"{self.name}_{f}" for f in ("rate", "p99", "cpu")]

    def entrants(self, bench):
        yield WEFT, lambda: self.measure(bench, self.weft_command)
        yield WEFT_EPOLL, lambda: self.measure(
            bench, lambda *where: over_epoll(self.weft_command(*where)))
        yield "nginx", lambda: self.measure(bench, self.nginx_command)

    def weft_command(self, bench, root, port):
        return [*bench.weft("examples/httpd"), str(root), f"127.0.0.1:{port}",
                "--workers", str(self.workers)]

    def nginx_command(self, bench, root, port, listen="", more=""):
        conf = bench.scratch / "nginx.conf"
        conf.write_text(NGINX_CONF.format(
            user=pwd.getpwuid(os.getuid()).pw_name, workers=self.workers,
            dir=bench.scratch, port=port, root=root, listen=listen, more=more))
        return [*bench.peer("nginx"), "-e", "stderr", "-p", str(bench.scratch),
                "-c", str(conf)]

    def make_site(self, bench):
        root = bench.scratch / "www"
        root.mkdir(exist_ok=True)
        body = os.urandom(self.size)
        (root / "file.bin").write_bytes(body)
        return root, body

    def measure(self, bench, make_command):
        root, body = self.make_site(bench)
        port = machine.free_port()
        command = make_command(bench, root, port)
        with machine.server(machine.pinned(machine.cores()[0], command), port) as pid:
            self.check(bench, port, body)
            return self.load(bench, port, pid)

    def connection(self, bench, port):
        return http.client.HTTPConnection("127.0.0.1", port, timeout=5)

    def check(self, bench, port, body):
        """Checks that the server sends the right bytes."""
        with contextlib.closing(self.connection(bench, port)) as conn:
            conn.request("GET", "/file.bin")
            reply = conn.getresponse()
            if reply.status != 200 or reply.read() != body:
                raise Failed(f"wrong answer, status {reply.status}")

    def load(self, bench, port, pid, *aides):
        """The processes of aides take part in the load."""
        load = machine.pinned(machine.cores()[1], [
            *bench.peer("wrk"), "-t1", f"-c{self.conns}", "--latency",
            f"-d{whole_seconds(bench.plan)}s", f"http://127.0.0.1:{port}/file.bin"])
        (out, _), used = machine.under_load(pid, lambda: machine.run(load, 60), *aides)
        return self.samples(out, used.server), used.other

    def samples(self, out, server_cpu):
        def field(pattern):
            found = re.search(pattern, out, re.M)
            if not found:
                raise Failed(f"wrk printed no {pattern!r}: {machine.last_line(out)}")
            return found.groups()

        for trouble in "Socket errors", "Non-2xx":
            if trouble in out:
                raise Failed(*field(rf"({trouble}.*)$"))
        requests, = field(r"^\s*(\d+) requests in")
        rate, = field(r"^Requests/sec:\s*([\d.]+)")
        p99, unit = field(r"^\s*99%\s+([\d.]+)(us|ms|s)$")
        values = (("rate", float(rate), "req/s"),
                  ("p99", float(p99) * WRK_UNITS_US[unit], "us"),
                  ("cpu", server_cpu * 1e6 / int(requests), "us/req"))
        return [Sample(f"{self.name}_{f}", self.workers, v, unit) for f, v, unit in values]


@dataclasses.dataclass(frozen=True)
class Proxy(Http):
    """The same through a proxy.  nginx serves the file, on the core of the load."""

    def entrants(self, bench):
        yield WEFT, lambda: self.measure(bench, self.balancer_command)
        yield WEFT_EPOLL, lambda: self.measure(
            bench, lambda *where: over_epoll(self.balancer_command(*where)))
        yield "haproxy", lambda: self.measure(bench, self.haproxy_command)

    def balancer_command(self, bench, upstream, port):
        return [*bench.weft("examples/balancer"), f"127.0.0.1:{port}",
                f"127.0.0.1:{upstream}", "--workers", str(self.workers)]

    def haproxy_command(self, bench, upstream, port):
        conf = bench.scratch / "haproxy.cfg"
        conf.write_text(HAPROXY_CONF.format(workers=self.workers, port=port,
                                            upstream=upstream))
        return [*bench.peer("haproxy"), "-db", "-f", str(conf)]

    def measure(self, bench, make_command):
        root, body = self.make_site(bench)
        upstream, port = machine.free_port(), machine.free_port()
        first, last = machine.cores()
        nginx = machine.pinned(last, self.nginx_command(bench, root, upstream))
        proxy = machine.pinned(first, make_command(bench, upstream, port))
        with machine.server(nginx, upstream) as aide, machine.server(proxy, port) as pid:
            self.check(bench, port, body)
            return self.load(bench, port, pid, aide)


@dataclasses.dataclass(frozen=True)
class Handshake(Http):
    """Four clients connect, do a handshake of TLS 1.3 and close, again and again.  The
    key of the certificate is on a curve (P-256); no client resumes a session."""

    def benches(self):
        return [f"{self.name}_{f}" for f in ("rate", "cpu")]

    def weft_command(self, bench, root, port):
        return [*super().weft_command(bench, root, port),
                "--cert", str(bench.scratch / "tls.pem"),
                "--key", str(bench.scratch / "tls.key")]

    def nginx_command(self, bench, root, port):
        return super().nginx_command(bench, root, port, "ssl",
                                     NGINX_TLS.format(dir=bench.scratch))

    def make_site(self, bench):
        """With a certificate of the server's address."""
        if not (bench.scratch / "tls.pem").exists():
            subprocess.run([*bench.peer("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
                            "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
                            "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
                            "-keyout", bench.scratch / "tls.key",
                            "-out", bench.scratch / "tls.pem"],
                           check=True, capture_output=True, timeout=60)
        return super().make_site(bench)

    def connection(self, bench, port):
        """Has the certificate, and the version."""
        context = ssl.create_default_context(cafile=bench.scratch / "tls.pem")
        conn = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
        conn.connect()
        if conn.sock.version() != "TLSv1.3":
            raise Failed(f"agreed on {conn.sock.version()}")
        return conn

    def load(self, bench, port, pid):
        client = machine.pinned(machine.cores()[1], [
            *bench.peer("openssl"), "s_time", "-connect", f"127.0.0.1:{port}", "-new",
            "-time", str(whole_seconds(bench.plan))])

        def clients():
            with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
                return [out for out, _ in pool.map(
                    lambda _: machine.run(client, 60), range(CLIENTS))]

        outs, used = machine.under_load(pid, clients)
        found = [re.search(r"^(\d+) connections in (\d+) real seconds", out, re.M)
                 for out in outs]
        if not all(found):
            raise Failed(machine.last_line(outs[0]))
        done = sum(int(f[1]) for f in found)
        if done == 0:
            raise Failed("no handshake")
        return [Sample(f"{self.name}_rate", self.workers, done / used.seconds, "req/s"),
                Sample(f"{self.name}_cpu", self.workers, used.server * 1e6 / done,
                       "us/req")], used.other


def web_cases():
    yield Handshake("tls_handshake", 1, "tls")
    for name, size in ("httpd_1k", 1 << 10), ("httpd_64k", 64 << 10):
        yield Http(name, 1, "httpd", size=size)
    for name, size in ("proxy", 1 << 10), ("proxy_64k", 64 << 10):
        yield Proxy(name, 1, "proxy", default=False, size=size)
