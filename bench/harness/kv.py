# SPDX-License-Identifier: MIT
"""examples/kv beside redis-server, under redis-benchmark."""

import csv
import dataclasses
import os
import socket

from . import machine
from .case import Case, over_epoll
from .machine import Failed
from .results import WEFT, WEFT_EPOLL, Sample

KEYS, VALUE_BYTES = 100_000, 64
# As many as a server may answer in a second, so that a round takes about its time.
REQUESTS_A_SECOND = {1: 75_000, 16: 600_000}


@dataclasses.dataclass(frozen=True)
class Kv(Case):
    """Half of the requests set a key, then the other half get one.

    One worker: the server and the load are on a core each.  Two: not pinned."""
    conns: int = 50
    pipeline: int = 1

    def benches(self):
        return [f"{self.name}_{f}" for f in ("rate", "cpu")]

    def entrants(self, bench):
        def weft(port):
            return [*bench.weft("examples/kv"), f"127.0.0.1:{port}",
                    "--workers", str(self.workers)]

        yield WEFT, lambda: self.measure(bench, weft)
        yield WEFT_EPOLL, lambda: self.measure(bench, lambda port: over_epoll(weft(port)))
        yield "redis-server", lambda: self.measure(bench, lambda port: [
            *bench.peer("redis-server"), "--bind", "127.0.0.1", "--port", str(port),
            "--save", "", "--appendonly", "no", "--dir", str(bench.scratch)])

    def measure(self, bench, make_command):
        port, (first, last) = machine.free_port(), machine.cores()
        load = [*bench.peer("redis-benchmark"), "-p", str(port), "-t", "set,get",
                "-n", str(self.requests(bench.plan.secs) // 2), "-c", str(self.conns),
                "-P", str(self.pipeline), "-r", str(KEYS), "-d", str(VALUE_BYTES), "--csv"]
        command = make_command(port)
        if self.workers == 1:
            command, load = machine.pinned(first, command), machine.pinned(last, load)
        with machine.server(command, port) as pid:
            self.check(port)
            return self.load(load, pid, self.requests(bench.plan.secs))

    def requests(self, secs):
        return round(secs * REQUESTS_A_SECOND[self.pipeline]) // 2 * 2

    def check(self, port):
        """Checks that the server keeps what it is given."""
        value = os.urandom(8).hex().encode()
        with socket.create_connection(("127.0.0.1", port), 5) as peer:
            peer.sendall(b"SET check %b\r\nGET check\r\nQUIT\r\n" % value)
            with peer.makefile("rb") as answers:
                if answers.read() != b"+OK\r\n$16\r\n%b\r\n+OK\r\n" % value:
                    raise Failed("wrong answer")

    def load(self, command, pid, requests):
        (out, err), used = machine.under_load(pid, lambda: machine.run(command, 120))
        rates = [float(row["rps"]) for row in csv.DictReader(out.splitlines())]
        if len(rates) != 2:
            raise Failed(machine.last_line(err))
        # Each half has taken its own time.
        rate = 2 / sum(1 / r for r in rates)
        return [Sample(f"{self.name}_rate", self.workers, rate, "req/s"),
                Sample(f"{self.name}_cpu", self.workers, used.server * 1e6 / requests,
                       "us/req")], used.other


def kv_cases():
    for pipeline, depth in (1, ""), (16, "_p16"):
        for conns, many in (50, ""), (500, "_500"):
            for workers in 1, 2:
                yield Kv(f"kv{depth}{many}", workers, "kv", default=False, conns=conns,
                         pipeline=pipeline)
