# SPDX-License-Identifier: MIT
"""The machine: its cores, its lock, and processes and their CPU time."""

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import platform
import random
import resource
import signal
import socket
import subprocess
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """A measurement that gave no figure; the message says why."""


def cores():
    """The core of the server or the only worker, and the core of the load."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[-1]


def pinned(core, command):
    return ["taskset", "-c", str(core), *command]


def raise_descriptor_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def describe():
    """The machine, to be quoted with its figures."""
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    allowed, count = len(os.sched_getaffinity(0)), os.cpu_count()
    of = "" if allowed == count else f" of {count}"
    return f"{model}, {allowed}{of} processors, Linux {platform.release()}"


@contextlib.contextmanager
def lock():
    """Held during each single measurement, so that users of a machine take turns."""
    default = pathlib.Path(tempfile.gettempdir()) / "bench.lock"
    with open(os.environ.get("BENCH_LOCK", default), "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def machine_cpu():
    """Seconds the whole machine was busy, or stolen by the hypervisor."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, soft, steal = map(int, f.readline().split()[1:9])
    return (user + nice + system + irq + soft + steal) / TICKS


def stat_fields(pid):
    """The fields after the name in /proc/PID/stat; None if the process is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def process_tree(root):
    """The pids of a process and its descendants, root first."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        fields = stat_fields(entry.name) if entry.name.isdigit() else None
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    tree = [root]
    for pid in tree:
        tree += children.get(pid, [])
    return tree


def tree_cpu(root):
    """User and system seconds of a process and its descendants."""
    stats = filter(None, map(stat_fields, process_tree(root)))
    return sum(int(s[11]) + int(s[12]) for s in stats) / TICKS


@dataclasses.dataclass(frozen=True)
class Used:
    """seconds: how long a load took; server: processor seconds of the server and its
    descendants; other: the share of a core that the rest of the machine used."""
    seconds: float
    server: float
    other: float


def under_load(pid, load, *aides):
    """Calls load(), which runs what loads the server pid.  Returns its result, and what
    was used.  This process, the children that ended, and the processes of aides are
    part of the load."""
    def now():
        loading = sum(os.times()[:4]) + sum(map(tree_cpu, aides))
        return time.monotonic(), tree_cpu(pid), loading, machine_cpu()

    before = now()
    result = load()
    seconds, server, loading, busy = (b - a for a, b in zip(before, now()))
    return result, Used(seconds, server, (busy - server - loading) / seconds)


def complete(command, timeout, **files):
    """Runs a command in a session of its own.  Returns its status, and what it wrote
    to pipes; if it does not end in time, it is ended with all its descendants."""
    try:
        child = subprocess.Popen(command, text=True, start_new_session=True,
                                 stderr=subprocess.PIPE, **files)
    except OSError as e:
        raise Failed(str(e)) from e
    try:
        out, err = child.communicate(timeout=timeout)
    except BaseException as e:
        end_tree(child)
        if isinstance(e, subprocess.TimeoutExpired):
            raise Failed(f"no end after {timeout} s: {' '.join(command)}") from e
        raise
    return child.returncode, out, err


def timed(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=300):
    """Runs a tool.  Returns its seconds, the processor seconds of all its processes,
    and the share of a core that the rest of the machine used."""
    def children_cpu():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    busy, own, start = machine_cpu(), children_cpu(), time.monotonic()
    status, _, err = complete(command, timeout, stdin=stdin, stdout=stdout)
    seconds, cpu = time.monotonic() - start, children_cpu() - own
    if status != 0:
        raise Failed(f"status {status}: {last_line(err)}")
    return seconds, cpu, (machine_cpu() - busy - cpu) / seconds


def run(command, timeout):
    """Runs a command.  Returns its stdout and stderr, and ignores its status if it
    has printed anything."""
    status, out, err = complete(command, timeout, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE)
    if not out.strip():
        raise Failed(f"status {status}: {last_line(err)}")
    return out, err


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no output"


def started(pid):
    """When a process started: with its pid, a name that is never reused."""
    fields = stat_fields(pid)
    return fields and fields[19]


def end_tree(child):
    """Ends a process that was started here, and its descendants, each by its pid."""
    ours = {pid: started(pid) for pid in process_tree(child.pid)}
    child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(2)
    for pid, start in ours.items():
        if start and started(pid) == start:
            os.kill(pid, signal.SIGKILL)
    child.wait()


def free_port():
    """A random loopback port below the range that outgoing connections use."""
    while True:
        port = random.randrange(20000, 30000)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


def accepts(port):
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


def await_server(child, is_up, seconds=10):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise Failed(f"server ended with status {child.returncode}")
        if is_up():
            return
        time.sleep(0.01)
    raise Failed("server does not answer")


@contextlib.contextmanager
def server(command, port, is_up=accepts):
    """Runs a server while the block runs; gives its pid.  It is up when is_up(port)."""
    with tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=err)
        try:
            await_server(child, lambda: is_up(port))
            yield child.pid
        except Failed as e:
            err.seek(0)
            raise Failed(f"{e} ({last_line(err.read())})") from e
        finally:
            end_tree(child)
