# SPDX-License-Identifier: MIT
"""The cases that are measured, and the peers that take part in each.

A case gives its entrants: pairs of a peer's name and a function that measures
it once and returns (samples, other).  other is the share of a core that the rest
of the machine used meanwhile, or None if the measuring tool handles that itself.
"""

import contextlib
import dataclasses
import json
import os
import re
import time

from . import copies, dns, kv, machine, trees, walks, web
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
    """A program that prints its figures; it runs under quiet.

    labels: baselines in weft's program, which --label chooses.  rivals: programs of
    peers.  epoll: weft takes part on its engine over epoll, too."""
    weft_program: str = ""
    command: str = ""
    figures: tuple = ()
    labels: tuple = ()
    rivals: tuple = ()
    epoll: bool = False

    def benches(self):
        return [self.name, *self.figures]

    def entrants(self, bench):
        def entry(peer, program):
            return peer, lambda: self.measure(bench, peer, program())

        def weft():
            return bench.weft(self.weft_program)

        yield entry(WEFT, weft)
        if self.epoll:
            yield entry(WEFT_EPOLL, lambda: over_epoll(weft()))
        for peer in self.labels:
            yield entry(peer, weft)
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
    """Random reads, from the page cache or past it; a copy; and sums of many files.

    A copy is of 256 MiB at most: a hypervisor that takes free memory back, and has to fetch
    it for each new page of the cache, makes a larger one several times as slow by chance."""

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
        if self.name == "write":
            yield "go", "gopeer", ["file", "write", *w]
            return
        if single:
            yield "fio", "fio", None
            yield "raw-io_uring", "uring_file", [self.name]
        if single and self.name == "rand_direct":
            yield "raw-each", "uring_file", ["rand_direct_each"]
        yield "go", "gopeer", ["file", self.name, *w]
        yield "tokio", "tokio", ["file", self.name, *w]

    def benches(self):
        more = {"copy": ["copy_synced"], "write": ["write_calls"],
                "checksum": ["checksum_calls"]}
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
        src, dst = self.data_file(bench), bench.scratch / "dst.bin"
        if self.name == "checksum":
            dst = bench.scratch / "files"
        self.await_disk()
        out, err = machine.run(
            [*command, "--label", peer, "--path", str(src), "--dst", str(dst),
             "--secs", str(bench.plan.secs)], 120)
        if not dst.is_dir():
            dst.unlink(missing_ok=True)
        samples = [dataclasses.replace(s, workers=self.workers) for s in parse_samples(out)]
        if not samples:
            raise Failed(machine.last_line(err))
        return samples, None

    def data_file(self, bench):
        return bench.data_file(256) if self.name == "copy" else bench.data_file()

    def await_disk(self):
        """So that data of the copy before does not slow this one down."""
        if self.name == "copy":
            os.sync()

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
        src, dst = self.data_file(bench), bench.scratch / "dst.bin"
        self.await_disk()
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
                        command=name, figures=tuple(f"{name}_{f}" for f in figures),
                        epoll=True)


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
        yield Micro(name, 2, "queues", False, weft_program="bench/bench_queues",
                    command=word, figures=figures, labels=baselines)
    for workers in 64, 256:
        yield Micro("looks", workers, "looks", False, weft_program="bench/bench_looks",
                    command="looks", figures=LOOKS)
    yield Micro("udp", 1, "udp", paired=True, weft_program="bench/bench_udp",
                command="udp", figures=("udp_plain",), labels=("raw-gso",),
                rivals=TOKIO[:1] + GO, epoll=True)
    yield Micro("names", 1, "names", weft_program="bench/bench_names", command="names",
                figures=("names_rate", "names_cpu", "names_both_rate", "names_both_cpu"),
                epoll=True)
    for name, figures in HOSTILE:
        yield Micro(f"hostile_{name}", 1, "hostile", False,
                    weft_program="bench/bench_hostile", command=name,
                    figures=tuple(f"hostile_{name}_{f}" for f in figures), epoll=True)
    yield from echo_cases()
    for name in "tls_echo", "tls_echo_16k":
        yield Micro(name, 1, "tls", paired=True, weft_program="bench/bench_tls",
                    command=name, labels=("raw-openssl",), epoll=True)
    yield from web.web_cases()
    yield from kv.kv_cases()
    yield from dns.dns_cases()
    for workers in 1, 2:
        for name in "rand_cached", "rand_direct", "write", "checksum":
            yield File(name, workers, "file")
    for workers in 1, 2:
        yield File("copy", workers, "copy", default=False)
    yield from copies.copy_cases()
    yield from trees.tree_cases()
    yield from walks.walk_cases()
    yield from liveness_cases()
