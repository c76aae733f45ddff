#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""conditions.py NAME COMMAND [ARGUMENT ...]: run a command under a condition.

A condition is a machine that differs from this one in one respect.  Each is
data: a wrapper command, which ends with exec of its arguments; an environment;
and a probe, which runs under the wrapper and shows that the condition holds.
If its probe fails, a condition cannot be made here, and its stage is skipped by
name.  Limits and namespaces end with the command.  A setting that has no
namespace is changed for the whole machine, and restored when the command ends.
"""

import dataclasses
import fcntl
import os
import pathlib
import select
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCALES = ROOT / "build" / "locales"
NOBODY = 65534  # Debian's user and group of that name

IS_ROOT = os.geteuid() == 0
# A user namespace in which this user is root allows the same.
MAPPED = () if IS_ROOT else ("--map-root-user",)


@dataclasses.dataclass(frozen=True)
class Condition:
    name: str
    what: str                # description in the report
    wrapper: tuple = ()
    otherwise: tuple = ()    # a second wrapper, if the first one fails
    env: dict = dataclasses.field(default_factory=dict)
    probe: str = "true"      # a shell command
    slowness: int = 1
    space: bool = False      # the path of the build directory has a space
    silent: bool = False     # no standard output, so no TAP of scripts
    alone: bool = False      # a limit that the user's programs share


def shell(script):
    """A shell script whose arguments are then executed in its place."""
    return "sh", "-c", script.strip() + ' && exec "$@"', "sh"


def within_network(*settings):
    """A separate network with only a loopback, and with settings below net/."""
    words = [f"echo {shlex.quote(value)} >/proc/sys/net/{name}"
             for name, value in settings]
    return ("unshare", *MAPPED, "--net",
            *shell(" && ".join([*words, "ip link set lo up"])))


def lent(*settings):
    """Settings of the machine's own network, restored afterwards."""
    return ("python3", __file__, "--lend",
            *(f"{name}={value}" for name, value in settings), "--")


def socket_buffers(most):
    return (("ipv4/tcp_rmem", f"4096 {min(131072, most)} {most}"),
            ("ipv4/tcp_wmem", f"4096 16384 {most}"))


def holds(path, pattern):
    return f"grep -Eq {shlex.quote(pattern)} /proc/sys/net/{path}"


def without(*capabilities):
    """Drops privileges with which root exceeds limits."""
    lost = ",".join(f"-{name}" for name in capabilities)
    return (("setpriv", f"--bounding-set={lost}", f"--inh-caps={lost}")
            if IS_ROOT else ())


# The loops end with the command, however it ends: the runner ends the group.
BUSY = """
for loop in 1 2 3 4; do
	while :; do :; done &
	loops="$loops $!"
done
trap 'kill $loops' EXIT
trap 'exit 143' HUP INT TERM
"$@"
"""

# Puts $new in the place of /tmp.  The tree may itself be below /tmp: it is bound
# into the new one.
NEW_TMP = """
case $root in
/tmp/*)
	mkdir -p "$new/${root#/tmp/}" &&
	mount --bind "$root" "$new/${root#/tmp/}" ;;
esac &&
mount --move "$new" /tmp
"""
TMPFS = f"""
root={shlex.quote(str(ROOT))}
new=$root/build/tmpfs
mkdir -p "$new" && mount -t tmpfs -o mode=1777 tmpfs "$new" &&
mount -t tmpfs -o mode=1777 tmpfs /var/tmp &&
{NEW_TMP.strip()}
"""
# As in a container, whose root is an overlay.
OVERLAY = f"""
root={shlex.quote(str(ROOT))}
base=$(mktemp -d "$root/build/overlay-XXXXXX") || exit
trap 'rm -rf "$base"' EXIT
trap 'exit 143' HUP INT TERM
overlay() {{
	mkdir -p "$base/$1/low" "$base/$1/up" "$base/$1/work" "$2" &&
	mount -t overlay -o "lowerdir=$base/$1/low,upperdir=$base/$1/up,\
workdir=$base/$1/work" overlay "$2" && chmod 1777 "$2"
}}
new=$base/new
overlay one /var/tmp && overlay two "$new" &&
{NEW_TMP.strip()} &&
"$@"
"""

CONDITIONS = [
    Condition("one-processor", "one processor", slowness=4,
              wrapper=("taskset", "-c", str(min(os.sched_getaffinity(0)))),
              probe='[ "$(nproc)" = 1 ]'),
    Condition("busy", "four busy loops beside it", slowness=8,
              wrapper=("sh", "-c", BUSY, "sh")),
    Condition("large-buffers", "TCP buffers of up to 32 MiB",
              wrapper=within_network(*socket_buffers(32 << 20)),
              otherwise=lent(*socket_buffers(32 << 20)),
              probe=holds("ipv4/tcp_wmem", r"\s33554432$")),
    Condition("small-buffers", "TCP buffers of up to 64 KiB",
              wrapper=within_network(*socket_buffers(64 << 10)),
              otherwise=lent(*socket_buffers(64 << 10)),
              probe=holds("ipv4/tcp_wmem", r"\s65536$")),
    Condition("unprivileged", "an unprivileged user",
              wrapper=("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
                       "--clear-groups", "--bounding-set=-all",
                       "--inh-caps=-all") if IS_ROOT else (),
              probe='[ "$(id -u)" != 0 ] && '
                    f"[ -x {shlex.quote(str(ROOT / 'build'))} ]"),
    Condition("memlock", "64 KiB of memory may be locked", alone=True,
              wrapper=("prlimit", "--memlock=65536:65536",
                       *without("ipc_lock", "sys_resource")),
              probe='[ "$(ulimit -Hl)" = 64 ]'),
    Condition("descriptors", "256 descriptors",
              wrapper=("prlimit", "--nofile=256:256",
                       *without("sys_resource")),
              probe='[ "$(ulimit -Hn)" = 256 ]'),
    Condition("no-ipv6", "IPv6 disabled",
              wrapper=within_network(
                  ("ipv6/conf/all/disable_ipv6", "1"),
                  ("ipv6/conf/default/disable_ipv6", "1")),
              probe="! grep -q . /proc/net/if_inet6"),
    Condition("locale", "German, in Kathmandu, with umask 077",
              wrapper=("env", "-u", "LC_ALL", *shell("umask 077")),
              env={"LANG": "de_DE.UTF-8", "TZ": "Asia/Kathmandu",
                   "LOCPATH": str(LOCALES)},
              probe='[ "$(locale decimal_point)" = , ] && '
                    '[ "$(date +%z)" = +0545 ] && [ "$(umask)" = 0077 ]'),
    Condition("space", "a build directory with a space in its path",
              space=True),
    Condition("tmpfs", "a /tmp and a /var/tmp in memory",
              wrapper=("unshare", *MAPPED, "--mount", *shell(TMPFS)),
              probe='[ "$(stat -f -c %T /tmp /var/tmp)" = "tmpfs\ntmpfs" ]'),
    Condition("overlay", "a /tmp and a /var/tmp of overlays",
              wrapper=("unshare", *MAPPED, "--mount", "sh", "-c", OVERLAY,
                       "sh"),
              probe='[ "$(stat -f -c %T /tmp /var/tmp)" = '
                    '"overlayfs\noverlayfs" ]'),
    Condition("closed", "descriptors 0 to 2 closed", silent=True,
              wrapper=("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"),
              probe="! [ -e /proc/self/fd/2 ]"),
]

# Programs that failed once on a machine although weft was correct, and why.
# --elsewhere runs each of them many times under each condition.
TIMES = 20
FRAGILE = {
    "test_dump_future": "looked for a time that was left; slow dumps took it",
    "test_dump_states": "a signal met a thread that was about to sleep",
    "test_dump_watchdog": "a stall is told without names under a sanitizer",
    "test_dump_waits": "as test_dump_future",
    "test_io_accept": "a charge of 10 ms was too little beside compilers",
    "test_io_alone": "slept 1 ms for a request to reach the kernel",
    "test_io_cached": "took /var/tmp for a disk",
    "test_io_cancel": "took a slow start of a task for an early end",
    "test_io_close": "waited 1 ms for a thread that had not run yet",
    "test_io_dir": "took the blocks of a disk's directory for granted",
    "test_io_driver": "the task that was to need help could be stolen",
    "test_io_worker_limit": "a worker without a processor seemed to compute",
    "test_io_file": "an uncached page was there before the look at it",
    "test_io_file_calls": "slept 2 ms for a close to begin",
    "test_io_fixed_files": "the descriptors' limit was not the kernel's",
    "test_io_future_accept": "as test_io_accept",
    "test_io_op": "did not wait for each byte of a slow reader",
    "test_io_races": "its count of started calls hangs on how threads run",
    "test_io_ring": "a sleep counted as a wait for a disk",
    "test_io_sendfile": "slept 10 ms until a sender was stuck",
    "test_io_signal": "slept 5 ms until a select waited",
    "test_io_soft_late": "another thread had the number that it had closed",
    "test_io_stream_kernel": "room and input came in the other order",
    "test_io_stream_misuse": "a peer's buffer took all that was to get stuck",
    "test_io_stream_put_races": "as test_io_stream_kernel",
    "test_io_stream_races": "left it to the scheduler where two tasks meet",
    "test_dump_tasks": "as test_dump_future",
    "test_sched_stop": "a time for the end ran out on a busy machine",
}


def find(name):
    return next(c for c in CONDITIONS if c.name == name)


def prepare(condition):
    """Creates the files that the condition needs, below build/."""
    language = condition.env.get("LANG")
    if language and not (LOCALES / language).exists():
        LOCALES.mkdir(parents=True, exist_ok=True)
        kind, charset = language.split(".")
        subprocess.run(["localedef", "-i", kind, "-f", charset,
                        LOCALES / language], check=False,
                       stdin=subprocess.DEVNULL, capture_output=True)


def attempt(condition, wrapper):
    """None, or the reason why the wrapper does not make the condition."""
    try:
        done = subprocess.run(
            [*wrapper, "sh", "-c", condition.probe],
            env={**os.environ, **condition.env}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    words = done.stderr.strip().splitlines()
    return words[-1] if words else f"it does not hold: {condition.probe}"


def obstacle(condition):
    """None, or the reason why the condition cannot be made here."""
    try:
        prepare(condition)
    except OSError as error:
        return str(error)
    why = attempt(condition, condition.wrapper)
    if why and condition.otherwise and not attempt(condition,
                                                   condition.otherwise):
        return None
    return why


def lend(settings, command):
    """Runs the command in this process with changed settings of the machine.
    They are restored when the process ends, however it ends.  Only one such
    command runs at a time."""
    lock = open(ROOT / "build" / "settings.lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    files = {pathlib.Path("/proc/sys/net", name): value
             for name, value in (word.split("=", 1) for word in settings)}
    before = {path: path.read_text() for path in files}
    this = os.pidfd_open(os.getpid())
    child = os.fork()
    if child == 0:
        os.setsid()  # not in the group that the runner ends
        if os.fork() == 0:
            select.select([this], [], [])
            for path, value in before.items():
                path.write_text(value)
        os._exit(0)
    os.waitpid(child, 0)
    for path, value in files.items():
        path.write_text(value)
    os.execvp(command[0], command)


def main():
    if sys.argv[1:2] == ["--lend"]:
        end = sys.argv.index("--")
        lend(sys.argv[2:end], sys.argv[end + 1:])
    if len(sys.argv) < 3:
        sys.exit(__doc__ + "\n" + "\n".join(
            f"  {c.name:15} {c.what}" for c in CONDITIONS))
    condition = find(sys.argv[1])
    prepare(condition)
    os.environ.update(condition.env)
    wrapper = condition.wrapper
    if condition.otherwise and attempt(condition, wrapper):
        wrapper = condition.otherwise
    command = [*wrapper, *sys.argv[2:]]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
