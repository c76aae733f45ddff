# SPDX-License-Identifier: MIT
"""examples/dns_forward beside dnsmasq, under dnsperf."""

import dataclasses
import os
import pwd
import re
import socket
import struct
import time

from . import machine
from .case import Case, over_epoll
from .machine import Failed
from .results import WEFT, WEFT_EPOLL, Sample

ADDRESS = "127.0.0.9"
# More than are asked in a round, so that none is asked twice.
NAMES = {"dns": 1000, "dns_new": 400_000}


def query(name):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">6H", 4711, 0x100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1"


@dataclasses.dataclass(frozen=True)
class Dns(Case):
    """Queries for a thousand names, whose answers are kept (dns), or each for another
    name, which is forwarded to a server on the core of the load (dns_new)."""

    def benches(self):
        return [f"{self.name}_{f}" for f in ("rate", "cpu")]

    def entrants(self, bench):
        def weft(port, upstream):
            return [*bench.weft("examples/dns_forward"), f"127.0.0.1:{port}",
                    f"127.0.0.1:{upstream}", "--workers", str(self.workers)]

        def dnsmasq(port, upstream):
            return self.dnsmasq(bench, port, f"--server=127.0.0.1#{upstream}",
                                "--cache-size=10000", "--dns-forward-max=1000")

        yield WEFT, lambda: self.measure(bench, weft)
        yield WEFT_EPOLL, lambda: self.measure(bench, lambda *at: over_epoll(weft(*at)))
        yield "dnsmasq", lambda: self.measure(bench, dnsmasq)

    def dnsmasq(self, bench, port, *options):
        conf = bench.scratch / "dnsmasq.conf"
        conf.write_text("")
        return [*bench.peer("dnsmasq"), "--keep-in-foreground", f"--conf-file={conf}",
                f"--port={port}", "--listen-address=127.0.0.1", "--bind-interfaces",
                "--no-resolv", "--no-hosts", "--pid-file=", f"--user={pwd.getpwuid(os.getuid()).pw_name}",
                *options]

    def measure(self, bench, make_command):
        port, upstream = machine.free_port(), machine.free_port()
        first, last = machine.cores()
        names = bench.scratch / f"{self.name}.txt"
        if not names.exists():
            names.write_text("".join(f"n{i}.test A\n" for i in range(NAMES[self.name])))
        load = [*bench.peer("dnsperf"), "-s", "127.0.0.1", "-p", str(port), "-d", str(names),
                "-l", str(max(1, round(bench.plan.secs))), "-c", "10", "-T", "1"]
        server = self.dnsmasq(bench, upstream, f"--address=/test/{ADDRESS}",
                              "--local-ttl=3600")
        with machine.server(machine.pinned(last, server), upstream), \
                machine.server(machine.pinned(first, make_command(port, upstream)),
                               port) as pid:
            self.check(port)
            return self.load(machine.pinned(last, load), pid)

    def check(self, port):
        """Checks that the server knows the address, at first and again."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.settimeout(5)
            for _ in range(2):
                peer.sendto(query("check.test"), ("127.0.0.1", port))
                if not peer.recv(512).endswith(socket.inet_aton(ADDRESS)):
                    raise Failed("wrong answer")

    def load(self, command, pid):
        before = machine.tree_cpu(pid)
        began, busy = time.monotonic(), machine.machine_cpu()
        out, err = machine.run(command, 120)
        server = machine.tree_cpu(pid) - before
        # The load and the server of the names have the other core for themselves.
        other = (machine.machine_cpu() - busy - server) / (time.monotonic() - began) - 1

        def field(name):
            found = re.search(rf"{name}:\s+([\d.]+)", out)
            if not found:
                raise Failed(machine.last_line(err))
            return float(found[1])

        answered, lost = field("Queries completed"), field("Queries lost")
        if lost > answered / 100:
            raise Failed(f"{lost:.0f} queries were lost")
        return [Sample(f"{self.name}_rate", self.workers, field("Queries per second"),
                       "req/s"),
                Sample(f"{self.name}_cpu", self.workers, server * 1e6 / answered,
                       "us/req")], max(0.0, other)


def dns_cases():
    for name in NAMES:
        yield Dns(name, 1, "dns", default=False)
