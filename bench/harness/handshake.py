# SPDX-License-Identifier: MIT
"""Full handshakes of TLS: examples/httpd beside nginx, under `openssl s_time`."""

import concurrent.futures
import contextlib
import dataclasses
import os
import pwd
import re
import socket
import ssl
import subprocess
import time

from . import machine
from .case import Case, over_epoll
from .machine import Failed
from .results import WEFT, WEFT_EPOLL, Sample

CLIENTS = 4
NGINX_CONF = """
daemon off;
user {user};
worker_processes {workers};
pid {dir}/nginx.pid;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    ssl_certificate {dir}/tls.pem;
    ssl_certificate_key {dir}/tls.key;
    ssl_protocols TLSv1.2 TLSv1.3;
    server {{ listen 127.0.0.1:{port} ssl backlog=4096; root {root}; }}
}}
"""


@dataclasses.dataclass(frozen=True)
class Handshake(Case):
    """Four clients connect, do a handshake of TLS 1.3 and close, again and again.  The
    key of the certificate is on a curve (P-256); no client resumes a session."""

    def benches(self):
        return [f"{self.name}_{f}" for f in ("rate", "cpu")]

    def entrants(self, bench):
        yield WEFT, lambda: self.measure(bench, self.weft_command)
        yield WEFT_EPOLL, lambda: self.measure(
            bench, lambda *where: over_epoll(self.weft_command(*where)))
        yield "nginx", lambda: self.measure(bench, self.nginx_command)

    def weft_command(self, bench, root, port):
        return [*bench.weft("examples/httpd"), str(root), f"127.0.0.1:{port}",
                "--workers", str(self.workers), "--cert", str(bench.scratch / "tls.pem"),
                "--key", str(bench.scratch / "tls.key")]

    def nginx_command(self, bench, root, port):
        conf = bench.scratch / "nginx-tls.conf"
        conf.write_text(NGINX_CONF.format(
            user=pwd.getpwuid(os.getuid()).pw_name, workers=self.workers,
            dir=bench.scratch, port=port, root=root))
        return [*bench.peer("nginx"), "-e", "stderr", "-p", str(bench.scratch),
                "-c", str(conf)]

    def prepare(self, bench):
        root = bench.scratch / "tls-www"
        root.mkdir(exist_ok=True)
        (root / "file").write_text("a file")
        if not (bench.scratch / "tls.pem").exists():
            subprocess.run([*bench.peer("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
                            "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
                            "-addext", "subjectAltName=DNS:localhost", "-days", "2",
                            "-keyout", bench.scratch / "tls.key",
                            "-out", bench.scratch / "tls.pem"],
                           check=True, capture_output=True, timeout=60)
        return root

    def measure(self, bench, make_command):
        root, port = self.prepare(bench), machine.free_port()
        first, last = machine.cores()
        command = machine.pinned(first, make_command(bench, root, port))
        with machine.server(command, port) as pid:
            self.check(port, bench.scratch / "tls.pem")
            return self.load(machine.pinned(last, [
                *bench.peer("openssl"), "s_time", "-connect", f"127.0.0.1:{port}", "-new",
                "-time", str(max(1, round(bench.plan.secs)))]), pid)

    def check(self, port, authority):
        """Checks that the server has the certificate, and the version."""
        context = ssl.create_default_context(cafile=authority)
        with socket.create_connection(("127.0.0.1", port), 5) as plain, \
                context.wrap_socket(plain, server_hostname="localhost") as peer:
            peer.sendall(b"GET /file HTTP/1.0\r\nHost: localhost\r\n\r\n")
            answer = b""
            with contextlib.suppress(ssl.SSLError):
                while more := peer.recv(4096):
                    answer += more
            if peer.version() != "TLSv1.3" or not answer.endswith(b"a file"):
                raise Failed(f"wrong answer with {peer.version()}")

    def load(self, command, pid):
        server, busy, own = machine.tree_cpu(pid), machine.machine_cpu(), os.times()
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            outs = [out for out, _ in pool.map(
                lambda _: machine.run(command, 60), range(CLIENTS))]
        now, seconds = os.times(), time.monotonic() - began
        server = machine.tree_cpu(pid) - server
        load = sum(now[:4]) - sum(own[:4])
        other = (machine.machine_cpu() - busy - server - load) / seconds
        found = [re.search(r"^(\d+) connections in (\d+) real seconds", out, re.M)
                 for out in outs]
        if not all(found):
            raise Failed(machine.last_line(outs[0]))
        done = sum(int(f[1]) for f in found)
        if done == 0:
            raise Failed("no handshake")
        return [Sample(f"{self.name}_rate", self.workers, done / seconds, "req/s"),
                Sample(f"{self.name}_cpu", self.workers, server * 1e6 / done,
                       "us/req")], other
