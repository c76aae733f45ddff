#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Build weft in several ways, run its tests in each, and count.

A stage is one build: a compiler, options, perhaps a sanitizer or an emulator.
What it runs is what tests/meson.build lists.  Every test case of every program
counts once; the last line says how many passed, failed and were skipped, the
lines before it name those that failed or were skipped.  Builds and whole
outputs stay in build/test-STAGE and build/test-logs.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
LOGS = BUILD / "test-logs"
SKIPPED = 77  # the exit status of a program that cannot run here

PLAIN = ("-Dinvariants=true",)
WITHOUT_PROGRAMS = ("-Dexamples=disabled", "-Dbench=disabled",
                    "-Djemalloc=disabled")
ALL_PROGRAMS = ("-Dexamples=enabled", "-Dbench=enabled")

ASAN = {"ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
# For a crowd of suspended tasks: to find uses after a return costs 5.6 MiB and
# several mappings for each of their stacks.
ASAN_CROWD = {"ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=0"}
TSAN = {"TSAN_OPTIONS": "second_deadlock_stack=1"}
VALGRIND = ("valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full",
            "--errors-for-leak-kinds=definite", "--num-callers=30",
            "--fair-sched=yes")
LONG = {"WEFT_TEST_LONG": "1"}
FEW = {"WEFT_TEST_FEW": "1"}  # seeds; all of them in the plain builds
# They begin first, so that none runs on alone at the end.
LONGEST = ("model_blocking", "model_close", "model_idle", "model_limit",
           "model_op", "test_sched_runs", "test_sched_storm")


@dataclasses.dataclass(frozen=True)
class Stage:
    name: str
    cc: str = "gcc"
    options: tuple = ()
    suites: frozenset = frozenset()   # of which a test must be in one; or all
    without: frozenset = frozenset({"teeth"})  # of which it must be in none
    wrapper: tuple = ()
    env: dict = dataclasses.field(default_factory=dict)
    slowness: int = 1
    planted: tuple = ()   # (program, what must be reported)
    fuzz_seconds: int = 0
    like: str = ""        # the stage whose build it uses
    long: bool = False

    def base(self):
        """The stage that it shares a build with, if not itself."""
        return next(s for s in STAGES if s.name == (self.like or self.name))

    def shadowed(self):
        """Whether its shadow memory may meet the addresses of this kernel."""
        bits = pathlib.Path("/proc/sys/vm/mmap_rnd_bits")
        return (any(name.endswith("SAN_OPTIONS") for name in self.env)
                and bits.exists() and int(bits.read_text()) > 28)

    def takes(self, suites):
        wanted = not self.suites or self.suites & suites
        return wanted and not self.without & suites


def suites(words):
    return frozenset(words.split())


STAGES = [
    Stage("gcc", options=PLAIN + ALL_PROGRAMS, without=suites("mutants")),
    Stage("clang", cc="clang", options=PLAIN + ALL_PROGRAMS,
          without=suites("source model stress teeth mutants liveness")),
    # Nobody looks up who was not woken: a wake-up that is lost stays so.  What
    # tests the looking up is left out; runs on the fake driver choose by
    # themselves.
    Stage("no-monitor", like="gcc", suites=suites("check"),
          without=suites("portable model"),
          env={"WEFT_TEST_MONITOR": "off", "CK_EXCLUDE_TAGS": "monitor"}),
    Stage("asan", options=PLAIN + ("-Db_sanitize=address,undefined",
                                   "-Dbench=disabled"),
          env={**ASAN, **FEW}, slowness=4,
          planted=(("planted_asan", "AddressSanitizer: heap-use-after-free"),
                   ("planted_ubsan", "signed integer overflow"))),
    # Without what runs on one thread: there is no race to find.
    Stage("tsan", cc="clang",
          options=PLAIN + WITHOUT_PROGRAMS + ("-Db_sanitize=thread",),
          without=suites("portable teeth"), env=TSAN, slowness=10,
          planted=(("planted_tsan", "ThreadSanitizer: data race"),)),
    Stage("valgrind", options=PLAIN + WITHOUT_PROGRAMS + ("-Dvalgrind=true",),
          suites=suites("memcheck"), wrapper=VALGRIND, slowness=20,
          planted=(("planted_valgrind", "depends on uninitialised value"),)),
    Stage("aarch64", options=PLAIN + WITHOUT_PROGRAMS + (
              "-Ddefault_library=static", "-Dc_link_args=-static",
              "-Db_pie=false"),
          # Fewer preemptions than the models have natively.
          suites=suites("portable"), wrapper=("qemu-aarch64",), slowness=10,
          env={"MODEL_BOUND": "1", **FEW}),
    Stage("fuzz", cc="clang", fuzz_seconds=5,
          env=ASAN, options=PLAIN + WITHOUT_PROGRAMS + (
              "-Dtests=disabled", "-Dfuzz=true", "-Db_lundef=false",
              "-Db_sanitize=address,undefined",
              "-Dc_args=-fsanitize=fuzzer-no-link")),

    Stage("aarch64-long", like="aarch64", suites=suites("portable"),
          wrapper=("qemu-aarch64",), slowness=20, long=True),
    Stage("stress", like="gcc", suites=suites("stress"), env=LONG,
          slowness=60, long=True),
    Stage("asan-stress", like="asan", suites=suites("portable"),
          without=suites("teeth"), env={**ASAN, **LONG}, slowness=20,
          long=True),
    Stage("models", like="gcc", suites=suites("model"), slowness=20,
          without=suites("mutants"), env={"MODEL_BOUND": "3"}, long=True),
    # Not so many preemptions, but more loads of old values in an execution than
    # the largest models have otherwise.
    Stage("models-weak", like="gcc", suites=suites("model"), slowness=20,
          without=suites("mutants"), long=True,
          env={"MODEL_BOUND": "2", "MODEL_WEAK": "2"}),
    Stage("mutants", like="gcc", suites=suites("mutants"), long=True),
    Stage("gcc-O3", options=ALL_PROGRAMS + ("-Doptimization=3",),
          without=suites("source model teeth"), long=True),
    Stage("gcc-lto", options=ALL_PROGRAMS + ("-Db_lto=true",),
          without=suites("source model teeth"), long=True),
    Stage("clang-O3", cc="clang", options=ALL_PROGRAMS + ("-Doptimization=3",),
          without=suites("source model teeth"), long=True),
    Stage("clang-lto", cc="clang", options=ALL_PROGRAMS + ("-Db_lto=true",),
          without=suites("source model teeth"), long=True),
    Stage("tsan-no-sync", cc="clang", long=True, slowness=10,
          options=PLAIN + WITHOUT_PROGRAMS + (
              "-Db_sanitize=thread",
              "-Dc_args=-DWEFT__TSAN_SWITCH_FLAGS=1"),
          without=suites("portable teeth"), env=TSAN),
    # A crowd has more fibers than can be mapped.
    Stage("tsan-deep", like="tsan", cc="clang", long=True, slowness=20,
          without=suites("crowd teeth"),
          env={**TSAN, "TSAN_OPTIONS": "history_size=7:report_atomic_races=1:"
                                       "detect_deadlocks=1"}),
    Stage("valgrind-all", like="valgrind", wrapper=VALGRIND, slowness=40,
          suites=suites("check"), without=suites("stress teeth"), long=True),
    Stage("fuzz-long", like="fuzz", env=ASAN, fuzz_seconds=60, long=True),
]


class Tally:
    """Who passed, failed and was skipped; printed as it comes."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.lock = threading.Lock()

    def add(self, name, cases, seconds=None, log=None):
        """cases: pairs of (name, None if passed, else what was wrong)."""
        bad = [(f"{name}: {case}", wrong) for case, wrong in cases if wrong]
        with self.lock:
            self.passed += len(cases) - len(bad)
            self.failed += bad
            took = "" if seconds is None else f" ({seconds:.1f} s)"
            counts = f"{len(cases) - len(bad)} passed"
            counts += f", {len(bad)} FAILED" if bad else ""
            print(f"{name}: {counts}{took}", flush=True)
            show_grouped("  FAILED ", bad)
            if bad and log:
                show_end(log)

    def skip(self, name, why):
        with self.lock:
            self.skipped.append((name, why))
            print(f"{name}: skipped: {why}", flush=True)

    def report(self):
        for title, entries in ("failed", self.failed), ("skipped", self.skipped):
            if entries:
                print(f"\n{title}:")
            show_grouped("  ", entries)
        print(f"\n{self.passed} passed, {len(self.failed)} failed, "
              f"{len(self.skipped)} skipped", flush=True)
        return 1 if self.failed or not self.passed else 0


def show_grouped(prefix, entries):
    """A line a name; of a test that is run in a loop, the first words."""
    first = {}
    for name, why in entries:
        first.setdefault(name, why)
    counts = collections.Counter(name for name, _ in entries)
    for name, why in first.items():
        times = f" ({counts[name]} times)" if counts[name] > 1 else ""
        print(f"{prefix}{name}: {why}{times}")


def show_end(log, most=40):
    lines = log.read_text(errors="replace").splitlines()
    lines = [line for line in lines if not re.match(r"\[\d+/\d+\] ", line)]
    for line in lines[-most:]:
        print(f"  | {line}")
    if len(lines) > most:
        print(f"  | all of it: {log.relative_to(ROOT)}")


# The programs that run now, for who ends this one.
running = set()


def stop(*_):
    for process in list(running):
        end_group(process)
    os._exit(130)


def end_group(process):
    """Ends a program and all it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command, log, env=None, timeout=None, folder=ROOT):
    """Exit status, or -signal, or None after the timeout; output to log."""
    with open(log, "w") as output:
        process = subprocess.Popen(
            [str(c) for c in command], stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, env={**os.environ, **(env or {})},
            cwd=folder, start_new_session=True)
        running.add(process)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end_group(process)
            process.wait()
            running.discard(process)


def problem(status):
    """None if all is well."""
    return None if status == 0 else ending(status)


def ending(status):
    if status is None:
        return "did not end in time"
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"


CHECK_LINE = re.compile(r"(not )?ok \d+ - [^:]*:([^:]*:[^:]*): (.*)")
TAP_LINE = re.compile(r"(not )?ok \d+ - (.*)")


def cases_of(text, status, pattern):
    """The cases of a TAP report, and one more if the whole went wrong."""
    cases, planned = [], False
    for line in text.splitlines():
        match = pattern.match(line)
        planned |= line.startswith("1..")
        if match:
            name, *message = match.groups()[1:]
            name = re.sub(r" \(\d+\.\d+ s\)$", "", name)
            wrong = (message or ["see its log"])[0] if match.group(1) else None
            cases.append((name, wrong))
    told = any(wrong for _, wrong in cases)
    if not planned or status is None or (status != 0 and not told):
        last = f" after {cases[-1][0]}" if cases and not planned else ""
        cases.append(("the program itself", ending(status) + last))
    return cases


class Runner:
    """Runs one stage."""

    def __init__(self, stage, tally, options):
        self.stage, self.tally, self.options = stage, tally, options
        self.base = stage.base()
        self.directory = BUILD / f"test-{self.base.name}"
        self.broken = False
        self.placed = ("setarch", "-R") if stage.shadowed() else ()

    def log(self, name):
        safe = re.sub(r"[^\w.=-]+", "_", name)
        return LOGS / f"{self.stage.name}-{safe}.log"

    def build(self):
        """True unless there is nothing at all to run."""
        start = time.monotonic()
        log = self.log("build")
        env = {"CC": self.base.cc}
        if self.base.name == "clang-lto":
            env["CC_LD"] = "lld"
        if not (self.directory / "build.ninja").exists():
            setup = ["meson", "setup", self.directory, ROOT, "--werror",
                     "-Dman=disabled", *self.base.options]
            if self.base.name == "aarch64":
                setup += ["--cross-file", self.cross_file()]
            status = run(setup, log, env)
            if status != 0:
                self.tally.add(f"{self.stage.name} set-up", [
                    ("meson setup", ending(status))], log=log)
                return False
        status = run(["ninja", "-C", self.directory, "-k", "0"], log, env)
        self.broken = status != 0
        self.tally.add(f"{self.stage.name} build", [
            ("no warning, no error", problem(status))],
            time.monotonic() - start, log)
        return True

    def cross_file(self):
        sysroot = self.options.arm64
        path = BUILD / "test-aarch64.ini"
        path.write_text(f"""[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = 'qemu-aarch64'

[properties]
sys_root = '{sysroot}'
pkg_config_libdir = '{sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig'

[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
""")
        return path

    def introspect(self, what):
        return json.loads(subprocess.run(
            ["meson", "introspect", what, self.directory], check=True,
            capture_output=True, text=True).stdout)

    def built(self, program):
        """Up to date: after a failed build, not each program is."""
        if not self.broken:
            return True
        path = pathlib.Path(program)
        if BUILD not in path.parents:
            return True
        target = path.relative_to(self.directory)
        return run(["ninja", "-C", self.directory, target],
                   self.log(f"build-{path.name}")) == 0

    def tests(self):
        for test in self.introspect("--tests"):
            test["suite"] = {s.split(":")[-1] for s in test["suite"]}
            if (self.stage.takes(test["suite"])
                    and self.options.match.search(test["name"])):
                yield test

    def run_test(self, test):
        name = f"{self.stage.name} {test['name']}"
        tap = test["protocol"] == "tap"
        # A script looks by itself whether there is what it needs.
        if not tap and not self.built(test["cmd"][-1]):
            self.tally.add(name, [("the program itself", "not built")])
            return
        start = time.monotonic()
        log = self.log(test["name"])
        timeout = test["timeout"] * self.stage.slowness
        # Neither Python nor what it starts needs to be emulated or watched.
        wrapper = [*self.placed, *(() if tap else self.stage.wrapper)]
        with tempfile.TemporaryDirectory() as scratch:
            report = pathlib.Path(scratch, "tap")
            env = {"CK_TIMEOUT_MULTIPLIER": str(self.stage.slowness),
                   **test["env"], **self.stage.env,
                   "CK_TAP_LOG_FILE_NAME": str(report)}
            if "ASAN_OPTIONS" in env and "crowd" in test["suite"]:
                env.update(ASAN_CROWD)
            if "_dump" in test["name"]:
                env["CK_MAX_MSG_SIZE"] = str(1 << 16)  # it shows the dump
            if not test["name"].startswith("model_"):
                env.pop("MODEL_BOUND", None)  # the checker's own tests
                env.pop("MODEL_WEAK", None)
            status = run([*wrapper, *self.command(test)], log, env, timeout,
                         test["workdir"] or self.directory)
            if status == SKIPPED:
                self.tally.skip(name, last_line(log))
                return
            source = log if tap else report
            text = source.read_text(errors="replace") if source.exists() else ""
        if tap or test["suite"] & {"check", "teeth"}:
            cases = cases_of(text, status, TAP_LINE if tap else CHECK_LINE)
        else:
            cases = [("all of it", problem(status))]
        if "teeth" in test["suite"]:
            cases = self.bitten(cases)
        self.tally.add(name, cases, time.monotonic() - start, log)

    def command(self, test):
        """What meson prefixes for a cross build is our wrapper already."""
        command = test["cmd"]
        if self.stage.wrapper and command[0].endswith(self.stage.wrapper[0]):
            command = command[1:]
        return command

    @staticmethod
    def bitten(cases):
        """Without its safeguard, each test must fail, at least once."""
        failed = {name: False for name, _ in cases}
        for name, wrong in cases:
            failed[name] |= bool(wrong)
        failed.pop("the program itself", None)
        return [(f"{name} fails", None if fails else "it passed")
                for name, fails in failed.items()] or [
                    ("some test fails", "none was run")]

    def run_tests(self):
        tests = sorted(self.tests(), key=lambda t: t["name"] not in LONGEST)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self.run_test,
                          [t for t in tests if t["is_parallel"]]))
        for test in tests:
            if not test["is_parallel"]:
                self.run_test(test)

    def run_planted(self, program, words):
        name = f"{self.stage.name} {program}"
        path = self.directory / "tests" / program
        case = f"is reported: {words}"
        log = self.log(program)
        if not self.built(path):
            self.tally.add(name, [(case, "not built")])
            return
        start = time.monotonic()
        status = run([*self.placed, *self.stage.wrapper, path], log,
                     self.stage.env, 60 * self.stage.slowness)
        said = words in log.read_text(errors="replace")
        wrong = None if said and status else f"{ending(status)}, not reported"
        self.tally.add(name, [(case, wrong)], time.monotonic() - start, log)

    def run_fuzzer(self, path):
        """No finding within the time; seeds: tests/corpus/NAME."""
        name = f"{self.stage.name} {path.name}"
        seconds = self.stage.fuzz_seconds
        corpus = ROOT / "tests/corpus" / path.name
        log = self.log(path.name)
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as found:
            status = run([*self.placed, path, f"-max_total_time={seconds}", "-timeout=20",
                          "-max_len=4096", f"-artifact_prefix={LOGS}/",
                          found, *([corpus] if corpus.exists() else [])],
                         log, self.stage.env, seconds * 3 + 60)
        self.tally.add(name, [
            (f"no finding in {seconds} s", problem(status))],
            time.monotonic() - start, log)

    def run_all(self):
        if not self.build():
            return
        self.run_tests()
        for program, words in self.stage.planted:
            if self.options.match.search(program):
                self.run_planted(program, words)
        if self.stage.fuzz_seconds:
            for path in sorted((self.directory / "tests").glob("fuzz_*")):
                if path.is_file() and self.options.match.search(path.name):
                    self.run_fuzzer(path)


def last_line(log):
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no reason given"


def arguments():
    parser = argparse.ArgumentParser(
        prog="run test", description="Build and run the tests, and count.")
    parser.add_argument("--long", action="store_true",
                        help="also the stages that take an hour")
    parser.add_argument("--only", metavar="STAGE,...", default="",
                        help=", ".join(s.name for s in STAGES))
    parser.add_argument("--match", metavar="REGEX", default="",
                        type=re.compile, help="only programs of such a name")
    parser.add_argument("--arm64", metavar="DIR", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.match = re.compile(options.match)
    only = [name for name in options.only.split(",") if name]
    unknown = set(only) - {s.name for s in STAGES}
    if unknown:
        parser.error(f"no such stage: {', '.join(sorted(unknown))}")
    options.stages = [s for s in STAGES if (s.name in only if only else
                                            options.long or not s.long)]
    return options


def main():
    options = arguments()
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, stop)
    LOGS.mkdir(parents=True, exist_ok=True)
    tally = Tally()
    start = time.monotonic()
    for stage in options.stages:
        print(f"\n--- {stage.name} ---", flush=True)
        Runner(stage, tally, options).run_all()
    print(f"\n{time.monotonic() - start:.0f} s in all")
    return tally.report()


if __name__ == "__main__":
    sys.exit(main())
