# SPDX-License-Identifier: MIT
"""The table of stages: how each is built, and which of its tests run when.

Three runs, each of which does everything that the one before does:

    everyday   `./run test`: finds the most frequent errors in the time of a
               break.  It has the stages of that level, made brief.
    all        `./run test --all`, as in CI: every tool and every bound, in the
               time of a meal.  No stage is brief.
    long       `./run test --long`: the stages that take hours.

A brief stage only leaves out suites or seeds, or lowers a bound of a model.  So
--all includes all of an everyday run, and runs no program twice for that.  The
reasons for each omission stand beside the stages, and in docs/TESTING.md.
"""

import dataclasses
import pathlib

import conditions
from conditions import CONDITIONS, Condition
from emulated import QEMU_USER, STATIC

PLAIN = ("-Dinvariants=true",)
WITHOUT_PROGRAMS = ("-Dexamples=disabled", "-Dbench=disabled",
                    "-Djemalloc=disabled")
# musl has no libdw and no jemalloc.
MUSL = ("-Dbench=disabled", "-Djemalloc=disabled", "-Dbacktrace=disabled")
STATIC = ("-Ddefault_library=static", "-Dprefer_static=true",
          "-Dc_link_args=-static", "-Db_pie=false")
ALL_PROGRAMS = ("-Dexamples=enabled", "-Dbench=enabled")

ASAN = {"ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
# For thousands of suspended tasks: the detection of uses after a return costs
# 5.6 MiB and several mappings for each stack.
ASAN_CROWD = {"ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=0"}
TSAN = {"TSAN_OPTIONS": "second_deadlock_stack=1"}
VALGRIND = ("valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full",
            "--errors-for-leak-kinds=definite", "--num-callers=30",
            "--fair-sched=yes")
LONG = {"WEFT_TEST_LONG": "1"}
# No idle worker looks up unless it is woken: a wake-up that is lost stays so.
# The tests of that look are left out.
MONITOR_OFF = {"WEFT_TEST_MONITOR": "off", "CK_EXCLUDE_TAGS": "monitor"}
# One of 2, 4, 12 or 32 seeds; the plain builds run all of them with --all.
HALF = {"WEFT_TEST_FEW": "2"}
FEW = {"WEFT_TEST_FEW": "4"}
FEWER = {"WEFT_TEST_FEW": "12"}
FEWEST = {"WEFT_TEST_FEW": "32"}
# These begin first, so that none of them runs alone at the end.
LONGEST = ("debian", "from source", "examples", "test_fault_sweep",
           "model_stream_put",
           "model_stream", "model_close", "model_limit", "model_idle",
           "model_joining", "model_monitor", "test_sched_worker_limit",
           "test_sched_fair")
# In everyday runs these have one preemption: they take 35 CPU seconds, not 136
# (all models take 225).  CI finds errors that need two preemptions.
BOUNDED = ("model_stream_put", "model_stream", "model_close", "model_idle",
           "model_joining", "model_monitor")
# With ASan these take from 15 to 60 s each.
LONG_ON_VIRTUAL_TIME = ("test_sched_worker_limit", "test_sched_fair",
                        "test_sched_limit_runs", "test_sched_search",
                        "test_sched_budget", "test_timer_shard")
# Everyday runs judge each safeguard once, with or without load, whichever is
# harder; hand-over also has tests on virtual time.
SECOND_LIVENESS = ("liveness hog_echo", "liveness hog_timer",
                   "liveness hog_lifo", "liveness hog_submit",
                   "liveness handover")


@dataclasses.dataclass(frozen=True)
class Brief:
    """The tests that an everyday run leaves out of a stage."""
    only: frozenset = frozenset()     # suites: a test must be in one of them
    without: frozenset = frozenset()  # suites: it must be in none of them
    env: dict = dataclasses.field(default_factory=dict)
    bounded: tuple = ()   # models with one preemption
    skipped: tuple = ()   # tests


@dataclasses.dataclass(frozen=True)
class Stage:
    name: str
    cc: str = "gcc"
    libc: str = ""        # empty: the compiler's
    options: tuple = ()
    suites: frozenset = frozenset()   # a test must be in one; empty: all
    without: frozenset = frozenset({"teeth"})  # it must be in none
    wrapper: tuple = ()
    launcher: tuple = ()  # a program below tests/ of the build, for all tests
    kernel: str = ""      # another one: tests/tools/qemu.py
    left_out: dict = dataclasses.field(default_factory=dict)  # emulated.py
    env: dict = dataclasses.field(default_factory=dict)
    without_monitor: bool = False  # where there are threads
    slowness: int = 1
    one_thread: bool = False  # the tool runs one of a program at a time
    planted: tuple = ()   # (program, what must be reported)
    fuzz_seconds: int = 0
    like: str = ""        # the stage whose build it uses
    level: str = "everyday"
    brief: Brief = None   # None: an everyday run has all of it
    condition: Condition = None
    is_brief: bool = False

    def base(self):
        """The stage that it shares a build with, if not itself."""
        return next(s for s in STAGES if s.name == (self.like or self.name))

    def directory_name(self):
        spaced = self.condition and self.condition.space
        return "test in a space" if spaced else f"test-{self.name}"

    def conditioned(self):
        """The words in front of a command that make the condition."""
        if not self.condition:
            return ()
        return "python3", conditions.__file__, self.condition.name

    def shadowed(self):
        """Whether its shadow memory may meet the addresses of this kernel."""
        bits = pathlib.Path("/proc/sys/vm/mmap_rnd_bits")
        return (any(name.endswith("SAN_OPTIONS") for name in self.env)
                and bits.exists() and int(bits.read_text()) > 28)

    def takes(self, name, suites):
        wanted = not self.suites or self.suites & suites
        if self.is_brief:
            only, without = self.brief.only, self.brief.without
            wanted = wanted and (not only or only & suites)
            wanted = wanted and not without & suites
            wanted = wanted and name not in self.brief.skipped
        if self.condition and self.condition.silent and "check" not in suites:
            return False
        return wanted and not self.without & suites

    def environment(self, name, suites):
        """The environment of the test with that name."""
        # A model, or a run on virtual time, chooses itself.
        threads = "check" in suites and not suites & {"portable", "model"}
        env = {**self.env,
               **(MONITOR_OFF if self.without_monitor and threads else {})}
        if not self.is_brief:
            return env
        bound = {"MODEL_BOUND": "1"} if name in self.brief.bounded else {}
        return {**env, **self.brief.env, **bound}

    def for_level(self, level):
        """Itself, brief or in full."""
        is_brief = level == "everyday" and self.brief is not None
        return dataclasses.replace(self, is_brief=is_brief)

    def estimate_s(self):
        return CPU_S.get(self.name, (0, 0))[0 if self.is_brief else 1]


def suites(words):
    return frozenset(words.split())


# Measured, with the build: brief, and in full.
CPU_S = {
    "gcc": (630, 950),
    "epoll": (40, 220),
    "monitor": (10, 10),
    "asan": (240, 750),
    "tsan": (110, 410),
    "clang": (0, 260),
    "valgrind": (0, 500),
    "aarch64": (0, 400),
    "refused": (0, 40),
    "fuzz": (0, 80),
    "packages": (0, 120),
    "musl": (0, 145),
    "musl-static": (0, 60),
}

STAGES = [
    # Every day without the proofs that safeguards have teeth, which change with
    # the safeguards alone, and without what BOUNDED and SECOND_LIVENESS say.
    # The other stages have a monitor.
    Stage("gcc", options=PLAIN + ALL_PROGRAMS,
          without=suites("mutants packages"), without_monitor=True,
          brief=Brief(without=suites("teeth"), env=HALF, bounded=BOUNDED,
                      skipped=SECOND_LIVENESS)),
    # The second engine, for all that reaches the kernel.  Every day the programs
    # that Valgrind sees, too: sockets, files, streams, closes, cancellation.
    Stage("epoll", like="gcc", suites=suites("check"),
          without=suites("portable model source mutants teeth"),
          env={"WEFT_ENGINE": "epoll"},
          brief=Brief(only=suites("memcheck"), env=HALF)),
    # The tests of the monitor itself, which the gcc stage leaves out.
    Stage("monitor", like="gcc", suites=suites("monitor"),
          env={"CK_INCLUDE_TAGS": "monitor"}),
    # Errors of memory are where buffers, records and stacks end.  Every day: in
    # the programs that Valgrind sees, too, which have a kernel beneath them;
    # and, of a few seeds, in those on virtual time: the other seeds are other
    # orders of the same accesses.  With -O1 the build takes two thirds of the
    # time, and the programs as long.  Those that take longest make the same
    # accesses as others, and would take two thirds of the time.
    Stage("asan", options=PLAIN + ("-Db_sanitize=address,undefined",
                                   "-Doptimization=1", "-Dbench=disabled"),
          env={**ASAN, **FEWER}, slowness=4,
          brief=Brief(only=suites("memcheck portable"), env=FEWEST,
                      skipped=LONG_ON_VIRTUAL_TIME),
          planted=(("planted_asan", "AddressSanitizer: heap-use-after-free"),
                   ("planted_ubsan", "signed integer overflow"))),
    # Without what runs on one thread: there is no race to find.  Every day: the
    # programs that were written so that threads meet.  It is also the everyday
    # build with clang.
    Stage("tsan", cc="clang",
          options=PLAIN + WITHOUT_PROGRAMS + ("-Db_sanitize=thread",),
          without=suites("portable teeth"), env=TSAN, slowness=10,
          brief=Brief(only=suites("stress")),
          planted=(("planted_tsan", "ThreadSanitizer: data race"),)),

    # A change that a compiler may make shows in the gcc, asan and tsan stages
    # too; this one has clang's optimizer with no tool in between, and a monitor.
    # It builds the examples, too, which three other stages run.
    Stage("clang", cc="clang", options=PLAIN + ALL_PROGRAMS, level="all",
          without=suites(
              "source model stress teeth mutants liveness examples")),
    Stage("valgrind", options=PLAIN + WITHOUT_PROGRAMS + ("-Dvalgrind=true",),
          suites=suites("memcheck"), wrapper=VALGRIND, slowness=20,
          one_thread=True, level="all",
          planted=(("planted_valgrind", "depends on uninitialised value"),)),
    Stage("aarch64", level="all", options=PLAIN + WITHOUT_PROGRAMS + (
              "-Ddefault_library=static", "-Dc_link_args=-static",
              "-Db_pie=false"),
          # The models without preemptions: they check memory orders, which are
          # the checker's own, so the instruction set changes nothing in them
          # but how the code is compiled.  With one preemption they took 700
          # CPU seconds.
          suites=suites("portable emulated"), wrapper=("qemu-aarch64",),
          left_out=QEMU_USER, slowness=10, env={"MODEL_BOUND": "0", **FEWEST}),
    # The kernel refuses io_uring, as that of a container does, and weft chooses
    # its engine.  The epoll stage has the programs that do not choose.
    Stage("refused", like="gcc", suites=suites("engine examples"),
          launcher=("tools/refuse", "EPERM", "io_uring"), level="all"),
    Stage("fuzz", cc="clang", fuzz_seconds=5, level="all",
          env=ASAN, options=PLAIN + WITHOUT_PROGRAMS + (
              "-Dtests=disabled", "-Dfuzz=true", "-Db_lundef=false",
              "-Db_sanitize=address,undefined",
              "-Dc_args=-fsanitize=fuzzer-no-link")),

    # weft as a part of other projects, and as packages: it is built again.
    Stage("packages", like="gcc", suites=suites("packages"), level="all"),

    # The build of the Debian packages runs its tests, too.
    Stage("packages-long", like="gcc", suites=suites("packages"), env=LONG,
          slowness=10, level="long"),
    # Another C library, for what has a kernel beneath it.  The monitor's tests
    # and those of suite `stress` find nothing that depends on it.
    Stage("musl", libc="musl", level="all",
          options=PLAIN + MUSL + ("-Dexamples=disabled",),
          without=suites("portable model source mutants teeth stress monitor")),
    # Static programs, as musl is often used: the examples, and what loads or
    # looks for something while it runs.
    Stage("musl-static", libc="musl", level="all",
          options=PLAIN + MUSL + STATIC + ("-Dexamples=enabled",),
          suites=suites("engine dump net examples")),

    Stage("musl-whole", like="musl", level="long",
          without=suites("source mutants teeth")),
    Stage("musl-static-whole", like="musl-static", level="long",
          without=suites("source mutants teeth")),
    # Without liburing there is epoll alone.
    Stage("musl-epoll", libc="musl", level="long",
          options=PLAIN + MUSL + ("-Dio_uring=disabled",
                                 "-Dexamples=enabled"),
          without=suites("portable model source mutants teeth")),

    Stage("aarch64-long", like="aarch64", suites=suites("portable"),
          wrapper=("qemu-aarch64",), slowness=20, level="long"),
    # On epoll: qemu-user has no io_uring.
    Stage("aarch64-io", like="aarch64", suites=suites("io net"),
          wrapper=("qemu-aarch64",), left_out=QEMU_USER, slowness=20, env=FEW,
          level="long"),
    Stage("stress", like="gcc", suites=suites("stress"), env=LONG,
          slowness=60, level="long"),
    Stage("asan-stress", like="asan", suites=suites("portable"),
          without=suites("teeth"), env={**ASAN, **LONG}, slowness=20,
          level="long"),
    Stage("models", like="gcc", suites=suites("model"), slowness=20,
          without=suites("mutants"), env={"MODEL_BOUND": "3"}, level="long"),
    # Not so many preemptions, but more loads of old values in an execution than
    # the largest models have otherwise.
    Stage("models-weak", like="gcc", suites=suites("model"), slowness=20,
          without=suites("mutants"), level="long",
          env={"MODEL_BOUND": "2", "MODEL_WEAK": "2"}),
    Stage("mutants", like="gcc", suites=suites("mutants"), level="long"),
    Stage("gcc-O3", options=ALL_PROGRAMS + ("-Doptimization=3",),
          without=suites("source model teeth"), level="long"),
    Stage("gcc-lto", options=ALL_PROGRAMS + ("-Db_lto=true",),
          without=suites("source model teeth"), level="long"),
    Stage("clang-O3", cc="clang", options=ALL_PROGRAMS + ("-Doptimization=3",),
          without=suites("source model teeth"), level="long"),
    Stage("clang-lto", cc="clang", options=ALL_PROGRAMS + ("-Db_lto=true",),
          without=suites("source model teeth"), level="long"),
    Stage("tsan-no-sync", cc="clang", level="long", slowness=10,
          options=PLAIN + WITHOUT_PROGRAMS + (
              "-Db_sanitize=thread",
              "-Dc_args=-DWEFT__TSAN_SWITCH_FLAGS=1"),
          without=suites("portable teeth"), env=TSAN),
    # A crowd has more fibers than can be mapped.
    Stage("tsan-deep", like="tsan", cc="clang", level="long", slowness=20,
          without=suites("crowd teeth"),
          env={**TSAN, "TSAN_OPTIONS": "history_size=7:report_atomic_races=1:"
                                       "detect_deadlocks=1"}),
    Stage("valgrind-all", like="valgrind", wrapper=VALGRIND, slowness=40,
          one_thread=True,
          suites=suites("check"), without=suites("stress teeth"), level="long"),
    Stage("fuzz-long", like="fuzz", env=ASAN, fuzz_seconds=60, level="long"),
]

STAGES += [
    Stage(f"refused-{error}", like="gcc", suites=suites("check examples engine"),
          without=suites("portable model mutants teeth"),
          launcher=("tools/refuse", error, "io_uring"), level="long")
    for error in ("EPERM", "ENOSYS")
]

# Debian's kernels: 6.1 has io_uring, 5.10 has not all that weft needs of it.
# Without what looks at no kernel, and without scripts, which would need more of
# a system than a program has there.  An emulator takes ten times as long, and
# for the sweep of failing calls half an hour of one call in four.
STAGES += [
    Stage(f"kernel-{kernel}", like="gcc", suites=suites("check"),
          without=suites("portable model source mutants teeth"),
          kernel=kernel, slowness=10, env=FEWER, level="long")
    for kernel in ("6.1", "5.10")
]
STAGES.append(
    Stage("kernel-aarch64", like="aarch64", suites=suites("io net"),
          kernel="aarch64", left_out=STATIC, slowness=20, env=FEWER,
          level="long"))

# Each feature of the kernel that weft does without: io/os/mask.h.
STAGES += [
    Stage(f"without-{feature}", like="gcc", suites=suites("check"),
          without=suites("portable model source mutants teeth"),
          env={"WEFT_MASK": feature, **(
              {"WEFT_ENGINE": "epoll"} if "epoll" in feature else {})},
          level="long")
    for feature in ("accept_poll_first", "buf_ring", "close_range", "coop_taskrun",
                    "defer_taskrun", "epoll_pwait2", "fixed_files",
                    "multishot_recv", "no_iowait", "pidfd", "rwf_nosignal", "rwf_nowait",
                    "udp_gro", "udp_segment")
]

# Guards of stacks as before Linux 6.13: the number of mappings bounds them.
STAGES.append(
    Stage("without-guards", like="gcc", suites=suites("check"),
          without=suites("portable model source mutants teeth"),
          launcher=("tools/refuse", "EINVAL", "guards"), level="long"))

# A condition can matter to these: programs with threads and a kernel beneath
# them, and the examples.  A model and a program on virtual time ask the kernel
# for memory and eventfds alone, the sources are the same everywhere, and figures on the real
# clock cannot hold under most conditions.
ELSEWHERE_WITHOUT = suites("model mutants portable liveness teeth source")
# A build elsewhere is another compilation, so everything of it runs.
SPACE_WITHOUT = suites("model mutants liveness teeth")

STAGES += [
    Stage(f"elsewhere-{condition.name}", level="elsewhere",
          condition=condition, env=condition.env,
          like="" if condition.space else "gcc",
          options=PLAIN + ALL_PROGRAMS, slowness=condition.slowness,
          without=SPACE_WITHOUT if condition.space else ELSEWHERE_WITHOUT)
    for condition in CONDITIONS
]

LEVELS = {
    "everyday": ("everyday",),
    "all": ("everyday", "all"),
    "long": ("everyday", "all", "long", "elsewhere"),
}
