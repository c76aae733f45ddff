# SPDX-License-Identifier: MIT
"""examples/dns_forward beside dnsmasq, under dnsperf; and examples/resolve beside
other programs that look many names up."""

import contextlib
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


def asked(port, seconds):
    """The answer of a server to a query for the IPv4 address of a name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.settimeout(seconds)
        peer.connect(("127.0.0.1", port))
        peer.send(query("check.test"))
        return peer.recv(512)


def answers(port):
    with contextlib.suppress(OSError):
        return bool(asked(port, 1))
    return False


def perf_field(out, name):
    """A figure that dnsperf printed."""
    return float(re.search(rf"{name}:\s+([\d.]+)", out)[1])


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
        for _ in range(2):
            if not asked(port, 5).endswith(socket.inet_aton(ADDRESS)):
                raise Failed("wrong answer")

    def load(self, command, pid):
        before = machine.tree_cpu(pid)
        began, busy = time.monotonic(), machine.machine_cpu()
        out, err = machine.run(command, 120)
        server = machine.tree_cpu(pid) - before
        # The load and the server of the names have the other core for themselves.
        other = (machine.machine_cpu() - busy - server) / (time.monotonic() - began) - 1

        if "Queries lost" not in out:
            raise Failed(machine.last_line(err))
        answered, lost = perf_field(out, "Queries completed"), perf_field(out, "Queries lost")
        if lost > answered / 100:
            raise Failed(f"{lost:.0f} queries were lost")
        return [Sample(f"{self.name}_rate", self.workers,
                       perf_field(out, "Queries per second"), "req/s"),
                Sample(f"{self.name}_cpu", self.workers, server * 1e6 / answered,
                       "us/req")], max(0.0, other)


@dataclasses.dataclass(frozen=True)
class Resolve(Case):
    """A program starts, reads names, and asks for the IPv4 and the IPv6 address of each.
    The server, which is that of bench_names, has the other core.  A look-up is a name,
    so two queries."""

    def benches(self):
        return [self.name, f"{self.name}_cpu"]

    def entrants(self, bench):
        def weft(port):
            return [*bench.weft("examples/resolve"), f"127.0.0.1:{port}"]

        def dig(port):
            return [*bench.peer("dig"), "@127.0.0.1", "-p", str(port), "+short",
                    "-f", str(self.queries(bench))]

        def dnsperf(port):
            return [*bench.peer("dnsperf"), "-s", "127.0.0.1", "-p", str(port),
                    "-d", str(self.queries(bench)), "-n", "1", "-c", "1", "-T", "1"]

        yield WEFT, lambda: self.measure(bench, weft, addresses)
        yield WEFT_EPOLL, lambda: self.measure(
            bench, lambda port: over_epoll(weft(port)), addresses)
        yield "dig", lambda: self.measure(bench, dig, addresses)
        yield "dnsperf", lambda: self.measure(
            bench, dnsperf, lambda out: perf_field(out, "Queries completed") / 2)

    def count(self, bench):
        return min(20_000, bench.plan.tree_files)

    def names(self, bench):
        path = bench.scratch / "names.txt"
        if not path.exists():
            path.write_text("".join(f"n{i}.test\n" for i in range(self.count(bench))))
        return path

    def queries(self, bench):
        """The names, for programs that ask only what the file asks."""
        path = bench.scratch / "queries.txt"
        if not path.exists():
            path.write_text("".join(f"{name} A\n{name} AAAA\n" for name in
                                    self.names(bench).read_text().split()))
        return path

    def measure(self, bench, make_command, found):
        """found: how many names were found, from the output."""
        port, (first, last) = machine.free_port(), machine.cores()
        command = machine.pinned(first, make_command(port))
        server = machine.pinned(last, [*bench.weft("bench/bench_names"), "serve",
                                       "--address", f"127.0.0.1:{port}"])
        out = bench.scratch / "found.txt"
        with machine.server(server, port, answers) as pid, \
                self.names(bench).open() as names, out.open("w") as stdout:
            (took, cpu, _), used = machine.under_load(
                pid, lambda: machine.timed(command, names, stdout))
        count = self.count(bench)
        if found(out.read_text()) != count:
            raise Failed(f"{found(out.read_text())} of {count} names")
        return [Sample(self.name, self.workers, took * 1e6 / count, "us/look-up"),
                Sample(f"{self.name}_cpu", self.workers, cpu * 1e6 / count,
                       "us/look-up")], used.other


def addresses(out):
    """How many lines end with the address."""
    return len(re.findall(rf"(?<![\d.]){re.escape(ADDRESS)}$", out, re.M))


def dns_cases():
    for name in NAMES:
        yield Dns(name, 1, "dns", default=False)
    yield Resolve("resolve", 1, "names")
