# SPDX-License-Identifier: MIT
"""The cases that are measured, and the peers that take part in each.

A case gives its entrants: pairs of a peer's name and a function that measures
it once and returns (samples, other).  other is the share of a core that the rest
of the machine used meanwhile, or None if the measuring tool handles that itself.
"""

import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import pwd
import re
import time

from . import copies, dns, handshake, kv, machine, trees, walks
from .case import Bench, Case, Missing, Plan, over_epoll
from .machine import Failed
from .results import WEFT, WEFT_EPOLL, Sample

MICRO_TIMEOUT = 300


def parse_samples(text):
    samples = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            d = json.loads(line)
            samples.append(Sample(d["bench"], d["workers"], d["value"], d["unit"]))
    return samples


@dataclasses.dataclass(frozen=True)
class Micro(Case):
    """A program that prints its figures; it runs under quiet."""
    weft_program: str = ""
    command: str = ""
    figures: tuple = ()
    rivals: tuple = ()

    def benches(self):
        return [self.name, *self.figures]

    def entrants(self, bench):
        def entry(peer, program):
            return peer, lambda: self.measure(bench, peer, program())

        yield entry(WEFT, lambda: bench.weft(self.weft_program))
        if self.family == "liveness":
            yield entry(WEFT_EPOLL, lambda: over_epoll(bench.weft(self.weft_program)))
        for peer, program, *words in self.rivals:
            yield entry(peer, lambda program=program, words=words:
                        [*bench.peer(program), *words])

    def measure(self, bench, peer, program):
        command = [*program, self.command, "--workers", str(self.workers), "--label", peer]
        if self.workers == 1 and self.family != "liveness":
            command = machine.pinned(machine.cores()[0], command)
        out, err = machine.run(
            [*bench.peer("quiet"), str(bench.plan.quiet), "1", *command], MICRO_TIMEOUT)
        samples = parse_samples(out)
        if not samples:
            raise Failed(machine.last_line(err))
        noise = re.search(r"^quiet: ([\d.]+)", err, re.M)
        return samples, float(noise.group(1)) if noise else 0


@dataclasses.dataclass(frozen=True)
class Baselines(Micro):
    """weft beside baselines in the same program, which the label chooses."""

    def entrants(self, bench):
        for peer in (WEFT, *self.rivals):
            yield peer, lambda peer=peer: self.measure(
                bench, peer, bench.weft(self.weft_program))


@dataclasses.dataclass(frozen=True)
class Tls(Baselines):
    """weft, on both engines, beside a loop over epoll that calls OpenSSL."""

    def entrants(self, bench):
        yield from super().entrants(bench)
        yield WEFT_EPOLL, lambda: self.measure(
            bench, WEFT_EPOLL, over_epoll(bench.weft(self.weft_program)))


@dataclasses.dataclass(frozen=True)
class Echo(Case):
    """A server and echo_load: on a core each, on the same core, or not pinned."""
    conns: int = 64
    size: int = 64
    mode: str = "echo"
    depth: int = 1
    place: str = "apart"
    weft_options: tuple = ()
    alone: bool = False

    FIGURES = {"rate": ("rps", "req/s"), "cpu": ("server_us_per_req", "us/req"),
               "p50": ("p50_us", "us"), "p99": ("p99_us", "us")}
    IDLE_FIGURES = {"bytes": ("bytes_per_conn", "bytes"), "errors": ("errors", "count")}
    RIVALS = (("raw-epoll", "epoll_echo"), ("raw-io_uring", "uring_echo"),
              ("libuv", "uv_echo"), ("tokio", "tokio", "echo"), ("go", "gopeer", "echo"))

    def figures(self):
        return self.IDLE_FIGURES if self.mode == "idle" else self.FIGURES

    def benches(self):
        return [f"{self.name}_{f}" for f in self.figures()]

    def entrants(self, bench):
        def command():
            return [*bench.weft("bench/bench_echo"), *self.weft_options]

        yield WEFT, lambda: self.measure(bench, command())
        yield WEFT_EPOLL, lambda: self.measure(bench, over_epoll(command()))
        for peer, program, *words in () if self.alone else self.RIVALS:
            yield peer, lambda program=program, words=words: self.measure(
                bench, [*bench.peer(program), *words])

    def pin(self):
        """Functions that place the command of the server and of the load."""
        first, last = machine.cores()
        if self.place == "free":
            return (lambda c: c), (lambda c: c)
        load = last if self.place == "apart" else first
        return (lambda c: machine.pinned(first, c)), (lambda c: machine.pinned(load, c))

    def measure(self, bench, server):
        port, (pin_server, pin_load) = machine.free_port(), self.pin()
        command = pin_server([*server, "--port", str(port), "--threads", str(self.workers),
                              "--buf", str(max(4096, self.size))])
        with machine.server(command, port) as pid:
            load = [*bench.peer("echo_load"), "--port", str(port), "--server-pid", str(pid),
                    *self.load_options(bench.plan)]
            out, _ = machine.run(pin_load(load), 60)
        return self.samples(json.loads(out))

    def load_options(self, plan):
        secs = 10 if self.mode == "idle" else plan.secs
        options = {"conns": self.conns, "size": self.size, "mode": self.mode,
                   "depth": self.depth, "secs": secs, "warmup": plan.warmup}
        return [word for k, v in options.items() for word in (f"--{k}", str(v))]

    def samples(self, d):
        if self.mode == "idle":
            d["errors"] += self.conns - d["echoed"]
        elif d["errors"]:
            raise Failed(f"{d['errors']} errors")
        return [Sample(f"{self.name}_{f}", self.workers, d[key], unit)
                for f, (key, unit) in self.figures().items()], d.get("other_cpu")


@dataclasses.dataclass(frozen=True)
class File(Case):
    """Random reads, from the page cache or past it; a copy; and sums of many files."""

    def rivals(self):
        """(peer, program, words); peers with one thread take part with one worker."""
        w = ["--workers", str(self.workers)]
        single = self.workers == 1
        if self.name == "checksum":
            return
        if self.name == "copy":
            yield "dd", None, ["dd"]
            yield "raw-io_uring", "uring_file", ["copy"]
            for how in "io", "pipe", "par":
                yield f"go-{how}", "gopeer", ["file", f"copy_{how}", *w]
            for how in "fs", "pool":
                yield f"tokio-{how}", "tokio", ["file", f"copy_{how}", *w]
            return
        if single:
            yield "fio", "fio", None
            yield "raw-io_uring", "uring_file", [self.name]
        if single and self.name == "rand_direct":
            yield "raw-each", "uring_file", ["rand_direct_each"]
        yield "go", "gopeer", ["file", self.name, *w]
        yield "tokio", "tokio", ["file", self.name, *w]

    def benches(self):
        more = {"copy": ["copy_synced"], "checksum": ["checksum_calls"]}
        return [self.name, *more.get(self.name, [])]

    def entrants(self, bench):
        yield WEFT, lambda: self.measure_program(
            bench, WEFT, [*bench.weft("bench/bench_file"), self.name,
                          "--workers", str(self.workers)])
        for peer, program, words in self.rivals():
            yield peer, self.rival(bench, peer, program, words)

    def rival(self, bench, peer, program, words):
        if peer == "fio":
            return lambda: self.measure_fio(bench)
        if peer == "dd":
            return lambda: self.measure_dd(bench)
        return lambda: self.measure_program(bench, peer, [*bench.peer(program), *words])

    def measure_program(self, bench, peer, command):
        """The files of `checksum` stay for the next round."""
        src, dst = bench.data_file(), bench.scratch / "dst.bin"
        if self.name == "checksum":
            dst = bench.scratch / "files"
        out, err = machine.run(
            [*command, "--label", peer, "--path", str(src), "--dst", str(dst),
             "--secs", str(bench.plan.secs)], 120)
        if not dst.is_dir():
            dst.unlink(missing_ok=True)
        samples = [dataclasses.replace(s, workers=self.workers) for s in parse_samples(out)]
        if not samples:
            raise Failed(machine.last_line(err))
        return samples, None

    def measure_fio(self, bench):
        direct = int(self.name == "rand_direct")
        out, _ = machine.run(
            [*bench.peer("fio"), "--output-format=json", "--name=x",
             f"--filename={bench.data_file()}", "--ioengine=io_uring", f"--direct={direct}",
             "--invalidate=0", "--rw=randread", "--bs=4k", "--iodepth=32",
             f"--runtime={bench.plan.secs}", "--time_based", "--norandommap",
             "--randrepeat=0"], 120)
        iops = json.loads(out[out.index("{"):])["jobs"][0]["read"]["iops"]
        return [Sample(self.name, self.workers, iops, "iops")], None

    def measure_dd(self, bench):
        src, dst = bench.data_file(), bench.scratch / "dst.bin"
        t = time.monotonic()
        machine.run(["sh", "-c", f"dd if='{src}' of='{dst}' bs=256k 2>&1"], 120)
        copied = time.monotonic() - t
        with dst.open("rb") as f:
            os.fdatasync(f.fileno())
        synced = time.monotonic() - t
        dst.unlink()
        rate = src.stat().st_size / 1e6
        return [Sample("copy", self.workers, rate / copied, "MB/s"),
                Sample("copy_synced", self.workers, rate / synced, "MB/s")], None


NGINX_CONF = """
daemon off;
user {user};
worker_processes {workers};
pid {dir}/nginx.pid;
error_log stderr;
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
    server {{ listen 127.0.0.1:{port} backlog=4096; root {root}; }}
}}
"""
WRK_UNITS_US = {"us": 1, "ms": 1e3, "s": 1e6}


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

    def nginx_command(self, bench, root, port):
        conf = bench.scratch / "nginx.conf"
        conf.write_text(NGINX_CONF.format(
            user=pwd.getpwuid(os.getuid()).pw_name, workers=self.workers,
            dir=bench.scratch, port=port, root=root))
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
            self.check(port, body)
            return self.load(bench, port, pid)

    def check(self, port, body):
        """Checks that the server sends the right bytes."""
        conn = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        with contextlib.closing(conn):
            conn.request("GET", "/file.bin")
            reply = conn.getresponse()
            if reply.status != 200 or reply.read() != body:
                raise Failed(f"wrong answer, status {reply.status}")

    def load(self, bench, port, pid, *aides):
        """The processes of aides take part in the load."""
        load = [*bench.peer("wrk"), "-t1", f"-c{self.conns}", "--latency",
                f"-d{max(1, round(bench.plan.secs))}s", f"http://127.0.0.1:{port}/file.bin"]
        def aid():
            return sum(map(machine.tree_cpu, aides))

        t, busy, own = time.monotonic(), machine.machine_cpu(), os.times()
        server, aided = machine.tree_cpu(pid), aid()
        out, _ = machine.run(machine.pinned(machine.cores()[1], load), 60)
        server = machine.tree_cpu(pid) - server
        now = os.times()
        wrk = sum(now[:4]) - sum(own[:4]) + aid() - aided
        other = (machine.machine_cpu() - busy - server - wrk) / (time.monotonic() - t)
        return self.samples(out, server), other

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
            self.check(port, body)
            return self.load(bench, port, pid, aide)


@dataclasses.dataclass(frozen=True)
class Datagrams(Baselines):
    """Also weft on its engine over epoll."""

    def entrants(self, bench):
        yield from super().entrants(bench)
        yield WEFT_EPOLL, lambda: self.measure(
            bench, WEFT_EPOLL, over_epoll(bench.weft(self.weft_program)))


TOKIO = (("tokio", "tokio", "micro"), ("tokio-jemalloc", "tokio-jemalloc", "micro"))
GO = (("go", "gopeer", "micro"),)
LIBUV = (("libuv", "uv_micro"),)

# name, weft's program, its word, figures, rivals
TASKS = (
    ("spawn_join", "spawn_join", (), TOKIO + GO),
    ("spawn_join_suspend", "spawn_join_suspend", (), TOKIO + GO),
    ("fork_join_100k", "fork_join", ("fork_join_100k_cold",), TOKIO + GO),
    ("fork_join_suspend", "fork_join_suspend", ("fork_join_suspend_cold",), TOKIO + GO),
    ("yield", "yield", ("yield_1", "yield_1000"), TOKIO + GO),
    ("foreign_spawn_join", "foreign", (), TOKIO),
)
SLEEP_WHAT = ("total", "late_p50", "late_p99", "late_max")
SLEEP = tuple(f"sleep100k_{w}{round_}" for round_ in ("", "_cold") for w in SLEEP_WHAT)
SLEEP_FUTURE = tuple(f"sleep100k_{w}_future" for w in SLEEP_WHAT)
TIMERS = (
    ("timer", "timer",
     ("timer_insert_1M", "timer_cancel_1M", "timer_insert_cancel_pair"), TOKIO + GO),
    ("sleep100k", "sleep", (*SLEEP, "sleep100k_early"), TOKIO + GO),
    ("sleep100k_future", "sleep_future", (*SLEEP_FUTURE, "sleep100k_early_future"), ()),
    ("mem_per_sleeping_task", "mem", (), TOKIO + GO),
    ("mem_per_sleeping_task_future", "mem_future", (), ()),
)
SYNC = (
    ("pingpong_chan", "pingpong", ("request_oneshot",), TOKIO + GO),
    ("channel", "channel", ("chan_1p1c", "chan_4p1c", "chan_4p4c"), TOKIO + GO),
    ("mutex", "mutex", ("mutex_uncontended", "mutex_8tasks", "mutex_8tasks_yield",
                        "sem_uncontended", "sem2_8tasks_yield"), TOKIO + GO),
    ("skynet_1M", "skynet", (), TOKIO + GO),
)
SPAWN = tuple((name, name, (), (("raw-posix_spawn", "posix_spawn"),))
              for name in ("spawn", "spawn_rss"))
QUEUES = (  # name, word, figures, baselines
    ("inject", "inject", ("inject_push_take", "inject_two"), ("chunked",)),
    ("queue_spread", "spread", (), ("global", "local")),
    ("queue_short", "short", (), ("global", "local")),
)
LOOKS = tuple(f"{look}{warm}" for look in (
    "any_work", "search", "monitor_look", "monitor_wait", "shards_due", "shards_sleep",
    "any_work_rest", "search_rest") for warm in ("", "_warm"))
HOG = ("p99", "max")
LIVENESS = (  # name, workers, figures
    ("gap", (1, 2), ("1000", "10000")),
    ("hog_echo", (2,), HOG), ("hog_echo_busy", (2,), HOG),
    ("hog_lifo", (2,), HOG), ("hog_lifo_busy", (2,), HOG),
    ("hog_submit", (2,), HOG), ("hog_submit_busy", (2,), HOG),
    ("hog_timer", (2,), HOG), ("hog_timer_busy", (2,), HOG),
    ("fairness", (1, 2, 3, 4), ("z10", "z11")),
    ("idle", (2,), ("wakeups", "syscalls")),
    ("handover", (2,), ("lost", "rescues")),
)
HOSTILE = (  # name, figures
    ("slow", ("lost", "p99", "bytes")), ("flood", ("lost", "p99", "bytes")),
    ("emfile", ("lost", "cpu")), ("reset", ("lost", "p99", "fds", "bytes", "rate")),
)
ECHO = (
    ("base", {}), ("many", {"conns": 1000}), ("big", {"size": 16384}),
    ("churn", {"mode": "churn"}), ("one", {"conns": 1}),
    ("pipe", {"mode": "pipe", "depth": 16}),
)
ECHO_TWO = (("base2", {}), ("many2", {"conns": 1000}))
IDLE_STYLES = (("", "plain"), ("_lean", "lean"), ("_future", "future"))


def micro_cases(family, program, table, default=True):
    for workers in 1, 2:
        for name, word, figures, rivals in table:
            if workers == 1 and word in ("timer", "sleep"):
                rivals = rivals + LIBUV
            yield Micro(name, workers, family, default, weft_program=program,
                        command=word, figures=figures, rivals=rivals)


def liveness_cases():
    for name, counts, figures in LIVENESS:
        for workers in counts:
            yield Micro(name, workers, "liveness", weft_program="bench/bench_liveness",
                        command=name, figures=tuple(f"{name}_{f}" for f in figures))


def echo_cases():
    for name, options in ECHO:
        yield Echo(f"echo_{name}", 1, "echo", paired=True, **options)
    for name, options in ECHO:
        yield Echo(f"echo_{name}_same", 1, "echo", paired=True, place="same", **options)
    for name, options in ECHO_TWO:
        yield Echo(f"echo_{name}", 2, "echo", paired=True, place="free", **options)
    for suffix, style in IDLE_STYLES:
        yield Echo(f"echo_idle{suffix}", 1, "echo", mode="idle", conns=10000,
                   weft_options=("--style", style), alone=bool(suffix))


def all_cases():
    yield from micro_cases("tasks", "bench/bench_tasks", TASKS)
    yield from micro_cases("timers", "bench/bench_timers", TIMERS)
    yield from micro_cases("sync", "bench/bench_sync", SYNC, default=False)
    yield from micro_cases("spawn", "bench/bench_spawn", SPAWN)
    for name, word, figures, baselines in QUEUES:
        yield Baselines(name, 2, "queues", False, weft_program="bench/bench_queues",
                        command=word, figures=figures, rivals=baselines)
    for workers in 64, 256:
        yield Micro("looks", workers, "looks", False, weft_program="bench/bench_looks",
                    command="looks", figures=LOOKS)
    yield Datagrams("udp", 1, "udp", paired=True, weft_program="bench/bench_udp",
                    command="udp", figures=("udp_plain",), rivals=("raw-gso",))
    yield Datagrams("names", 1, "names", weft_program="bench/bench_names", command="names",
                    figures=("names_rate", "names_cpu", "names_both_rate",
                             "names_both_cpu"))
    for name, figures in HOSTILE:
        yield Datagrams(f"hostile_{name}", 1, "hostile", False,
                        weft_program="bench/bench_hostile", command=name,
                        figures=tuple(f"hostile_{name}_{f}" for f in figures))
    yield from echo_cases()
    for name in "tls_echo", "tls_echo_16k":
        yield Tls(name, 1, "tls", paired=True, weft_program="bench/bench_tls",
                  command=name, rivals=("raw-openssl",))
    yield handshake.Handshake("tls_handshake", 1, "tls")
    for name, size in ("httpd_1k", 1 << 10), ("httpd_64k", 64 << 10):
        yield Http(name, 1, "httpd", size=size)
    yield from kv.kv_cases()
    yield from dns.dns_cases()
    for name, size in ("proxy", 1 << 10), ("proxy_64k", 64 << 10):
        yield Proxy(name, 1, "proxy", default=False, size=size)
    for workers in 1, 2:
        for name in "rand_cached", "rand_direct", "checksum":
            yield File(name, workers, "file")
    for workers in 1, 2:
        yield File("copy", workers, "copy", default=False)
        yield copies.CopyTree("copy_tree", workers, "copy_tree", default=False)
    yield from trees.tree_cases()
    yield from walks.walk_cases()
    yield from liveness_cases()
