# SPDX-License-Identifier: MIT
"""One stage: its build, its programs, and the commands that repeat them."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import time

import schedule
from conditions import FRAGILE, TIMES, obstacle
from process import ROOT, Clock, ending, problem, run
from stages import ASAN_CROWD, LONGEST
from tally import CHECK_LINE, TAP_LINE, WHOLE, Case, cases_of, last_line

BUILD = ROOT / "build"
LOGS = BUILD / "test-logs"
SCRATCH = BUILD / "test-scratch"
# The caller's choices are part of the command that repeats a failure.
CHOSEN = {name: value for name, value in os.environ.items()
          if name.startswith(("CK_", "MODEL_", "WEFT_TEST_"))}
SKIPPED = 77  # the exit status of a program that cannot run here


class Runner:
    """Runs one stage."""

    def __init__(self, stage, tally, plan, options):
        self.stage, self.tally, self.plan = stage, tally, plan
        self.options = options
        self.base = stage.base()
        self.directory = BUILD / self.base.directory_name()
        self.broken = False
        self.placed = ("setarch", "-R") if stage.shadowed() else ()
        self.clock = Clock()
        self.began = self.ended = None

    def start(self):
        self.plan.add(schedule.BUILD, self.timed(self.prepare))

    def timed(self, job, *arguments):
        def runs():
            self.began = self.began or time.monotonic()
            job(*arguments)
            self.ended = time.monotonic()
        return runs

    def figures(self):
        """Its name, the wall time from first to last job, and the CPU time."""
        wall = self.ended - self.began if self.began else 0
        return self.stage.name, wall, self.clock.cpu_s

    # --- The build ----------------------------------------------------------

    def prepare(self):
        condition = self.stage.condition
        why = obstacle(condition) if condition else None
        if why:
            self.tally.skip(self.stage.name, f"{condition.what}: {why}")
        elif self.build():
            self.plan_tests()

    def log(self, name):
        safe = re.sub(r"[^\w.=-]+", "_", name)
        return LOGS / f"{self.stage.name}-{safe}.log"

    def build(self):
        """True if there is anything to run."""
        start = time.monotonic()
        log = self.log("build")
        cxx = {"gcc": "g++", "clang": "clang++"}[self.base.cc]
        env = {"CC": self.base.cc, "CXX": cxx}
        if self.base.name == "clang-lto":
            env["CC_LD"] = env["CXX_LD"] = "lld"
        if not (self.directory / "build.ninja").exists():
            setup = ["meson", "setup", self.directory, ROOT, "--werror",
                     "-Dman=disabled", *self.base.options]
            if self.base.name == "aarch64":
                setup += ["--cross-file", self.cross_file()]
            if self.base.libc == "musl":
                setup += ["--native-file", self.musl_file()]
            status = run(setup, log, env, clock=self.clock)
            if status != 0:
                self.tally.add(f"{self.stage.name} set-up", [
                    Case("meson setup", ending(status))], log=log,
                    repeat=lambda _: assigned(env) + shlex.join(
                        map(str, setup)))
                return False
        ninja = ["nice", "-n", "10", "ninja", "-C", self.directory, "-k", "0",
                 "-j", str(self.plan.slots), *self.targets()]
        status = run(ninja, log, env, clock=self.clock)
        self.broken = status != 0
        self.tally.add(f"{self.stage.name} build", [
            Case("no warning, no error", problem(status))],
            time.monotonic() - start, log,
            lambda _: self.ninja())
        return True

    def targets(self):
        """For ninja: without the programs of tests that the stage does not
        run, which are half of some builds."""
        # A build of another version may lack targets.
        subprocess.run(["ninja", "-C", self.directory, "build.ninja"],
                       check=True, stdout=subprocess.DEVNULL)
        every = self.programs(self.introspect("--tests"))
        taken = self.programs(self.tests())
        default = {os.path.relpath(path, self.directory)
                   for target in self.introspect("--targets")
                   if target["build_by_default"]
                   for path in target["filename"]}
        # Those of a cross build are not all built by default.
        return sorted(default - every | taken)

    def programs(self, tests):
        """Those of tests that are programs of this build."""
        paths = {pathlib.Path(test["cmd"][-1]) for test in tests
                 if test["protocol"] != "tap"}
        return {str(path.relative_to(self.directory)) for path in paths
                if self.directory in path.parents}

    def introspect(self, what):
        return json.loads(subprocess.run(
            ["meson", "introspect", what, self.directory], check=True,
            capture_output=True, text=True).stdout)

    def ninja(self):
        return shlex.join(["ninja", "-C", short(self.directory)])

    def cross_file(self):
        sysroot = self.options.arm64
        return machine_file("test-aarch64.ini", f"""[binaries]
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

    def musl_file(self):
        """Native: its programs run here."""
        place = self.options.musl
        return machine_file("test-musl.ini", f"""[binaries]
c = '{place}/cc'

[properties]
pkg_config_libdir = '{place}/lib/pkgconfig'
""")

    def built(self, program):
        """Whether it is up to date; after a failed build some are not."""
        if not self.broken:
            return True
        path = pathlib.Path(program)
        if BUILD not in path.parents:
            return True
        target = path.relative_to(self.directory)
        return run(["ninja", "-C", self.directory, target],
                   self.log(f"build-{path.name}"), clock=self.clock) == 0

    # --- The tests that run -------------------------------------------------

    def tests(self):
        for test in self.introspect("--tests"):
            test["left_out"] = self.stage.left_out.get(test["name"], {})
            test["suite"] = {s.split(":")[-1] for s in test["suite"]}
            test["tap"] = test["protocol"] == "tap"
            if (self.stage.takes(test["name"], test["suite"])
                    and self.options.match.search(test["name"])):
                yield test

    def plan_tests(self):
        for test in self.tests():
            condition = self.stage.condition
            kind = (schedule.ALONE if "liveness" in test["name"] or
                    condition and condition.alone else
                    schedule.SHARED if (test["is_parallel"] or
                                        self.stage.one_thread) else
                    schedule.SINGLE)
            name = test["name"]
            times = TIMES if condition and name.split()[0] in FRAGILE else 1
            for turn in range(1, times + 1):
                log = f"{name}-{turn}" if times > 1 else name
                self.plan.add(kind, self.timed(self.run_test, test, log),
                              name in LONGEST)
        for program, words in self.stage.planted:
            if self.options.match.search(program):
                self.plan.add(schedule.SHARED,
                              self.timed(self.run_planted, program, words))
        if self.stage.fuzz_seconds:
            for path in sorted((self.directory / "tests").glob("fuzz_*")):
                if path.is_file() and self.options.match.search(path.name):
                    self.plan.add(schedule.SHARED,
                                  self.timed(self.run_fuzzer, path))

    def environment(self, test):
        env = {**CHOSEN, **test["env"],
               **self.stage.environment(test["name"], test["suite"])}
        if test["left_out"]:
            env["WEFT_TEST_WITHOUT"] = ",".join(test["left_out"])
        if self.stage.slowness != 1:
            env.setdefault("CK_TIMEOUT_MULTIPLIER", str(self.stage.slowness))
        if "ASAN_OPTIONS" in env and "crowd" in test["suite"]:
            env.update(ASAN_CROWD)
        if "_dump" in test["name"]:
            env["CK_MAX_MSG_SIZE"] = str(1 << 16)  # shows the dump
        if not test["name"].startswith("model_"):
            env.pop("MODEL_BOUND", None)  # the checker's own tests
            env.pop("MODEL_WEAK", None)
        return env

    def command(self, test):
        """Meson's prefix for a cross build is the stage's wrapper."""
        command = test["cmd"]
        if self.base.wrapper and command[0].endswith(self.base.wrapper[0]):
            command = command[1:]
        # Python, and programs that it starts, need no emulator or tool.
        wrapper = () if test["tap"] else self.stage.wrapper
        return [*self.stage.conditioned(), *self.launcher(), *self.placed,
                *wrapper, *command]

    def launcher(self):
        if self.stage.kernel:
            return ("python3", ROOT / "tests/tools/qemu.py",
                    f"{self.options.kernels}/{self.stage.kernel}")
        if not self.stage.launcher:
            return ()
        program, *arguments = self.stage.launcher
        return self.directory / "tests" / program, *arguments

    def run_test(self, test, log_name):
        name = f"{self.stage.name} {test['name']}"
        for case, why in test["left_out"].items():
            self.tally.skip(f"{name}: {case}" if case else name, why)
        if "" in test["left_out"]:
            return
        # A script checks itself whether its requirements are there.
        if not test["tap"] and not self.built(test["cmd"][-1]):
            self.tally.add(name, [Case(WHOLE, "not built")],
                           repeat=lambda _: self.ninja())
            return
        start = time.monotonic()
        log = self.log(log_name)
        env, command = self.environment(test), self.command(test)
        folder = test["workdir"] or self.directory
        with tempfile.TemporaryDirectory(dir=SCRATCH) as scratch:
            pathlib.Path(scratch).chmod(0o777)  # for an unprivileged user
            report = pathlib.Path(scratch, "tap")
            status = run(command, log,
                         {**env, "CK_TAP_LOG_FILE_NAME": str(report)},
                         test["timeout"] * self.stage.slowness, folder,
                         self.clock)
            if status == SKIPPED:
                self.tally.skip(name, last_line(log))
                return
            source = log if test["tap"] else report
            text = source.read_text(errors="replace") if source.exists() else ""
        if test["tap"] or test["suite"] & {"check", "teeth"}:
            cases = cases_of(text, status,
                             TAP_LINE if test["tap"] else CHECK_LINE)
        else:
            cases = [Case("all of it", problem(status))]
        repeat = lambda case: repetition(case, env, command, folder,
                                         not test["tap"], log)
        if "teeth" in test["suite"]:
            cases = bitten(cases)
            repeat = lambda _: spelled(env, command, folder)
        self.tally.add(name, cases, time.monotonic() - start, log, repeat)

    def run_planted(self, program, words):
        name = f"{self.stage.name} {program}"
        path = self.directory / "tests" / program
        case = f"is reported: {words}"
        log = self.log(program)
        if not self.built(path):
            self.tally.add(name, [Case(case, "not built")],
                           repeat=lambda _: self.ninja())
            return
        start = time.monotonic()
        command = [*self.placed, *self.stage.wrapper, path]
        status = run(command, log, self.stage.env, 60 * self.stage.slowness,
                     clock=self.clock)
        said = words in log.read_text(errors="replace")
        wrong = None if said and status else f"{ending(status)}, not reported"
        self.tally.add(name, [Case(case, wrong)], time.monotonic() - start, log,
                       lambda _: spelled(self.stage.env, command, ROOT))

    def run_fuzzer(self, path):
        """Finds nothing within the time; its seeds: tests/corpus/NAME."""
        name = f"{self.stage.name} {path.name}"
        seconds = self.stage.fuzz_seconds
        corpus = ROOT / "tests/corpus" / path.name
        log = self.log(path.name)
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as found:
            status = run([*self.placed, path, f"-max_total_time={seconds}",
                          "-timeout=20", "-max_len=4096",
                          f"-artifact_prefix={LOGS}/", found,
                          *([corpus] if corpus.exists() else [])],
                         log, self.stage.env, seconds * 3 + 60,
                         clock=self.clock)
        input_of = re.findall(r"Test unit written to (\S+)",
                              log.read_text(errors="replace"))
        self.tally.add(name, [
            Case(f"no finding in {seconds} s", problem(status))],
            time.monotonic() - start, log,
            lambda _: spelled(self.stage.env, [*self.placed, path,
                                               *input_of[-1:]], ROOT))


def bitten(cases):
    """Without its safeguard, each test must fail at least once."""
    failed = {case.name: False for case in cases}
    for case in cases:
        failed[case.name] |= bool(case.wrong)
    failed.pop(WHOLE, None)
    return [Case(f"{name} fails", None if fails else "it passed")
            for name, fails in failed.items()] or [
                Case("some test fails", "none was run")]


# --- How to repeat what failed ----------------------------------------------

def machine_file(name, text):
    """For meson.  Not written again: builds that have it would be set up
    again, and two programs of one build cannot do that at a time."""
    path = BUILD / name
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


def short(path):
    """The path relative to the top of the tree, if it is inside."""
    path = pathlib.Path(path)
    return str(path.relative_to(ROOT) if ROOT in path.parents else path)


def assigned(env):
    return "".join(f"{name}={shlex.quote(value)} "
                   for name, value in sorted(env.items()))


def spelled(env, command, folder):
    """The command, for a shell at the top of the tree."""
    inside = f"{folder}/"
    return shlex.join([
        "env", "-C", short(folder),
        *(f"{name}={value}" for name, value in sorted(env.items())),
        *(os.path.normpath(word).removeprefix(inside) if "/" in word else word
          for word in map(str, command))])


def repetition(case, env, command, folder, chooses, log):
    """The command that runs a case again, or one turn of a loop; the whole
    program if the program itself failed."""
    env = dict(env)
    group, _, name = case.name.partition(":")
    if chooses and name:
        env |= {"CK_RUN_CASE": group, "WEFT_TEST_ONLY": f"{name}:{case.nth}"}
    said = log.read_text(errors="replace") if log.exists() else ""
    seeds = set(re.findall(r"WEFT_TEST_SEED=(\d+)", said))
    if len(seeds) == 1:
        env["WEFT_TEST_SEED"] = seeds.pop()
    path = re.search(rf"MODEL_REPLAY='({re.escape(name)}:.*?)'", said)
    if name and path:
        env["MODEL_REPLAY"] = path.group(1)
    return spelled(env, command, folder)
