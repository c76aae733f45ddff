# SPDX-License-Identifier: MIT
"""Builds the peers' programs; skips and reports those that cannot be built."""

import ctypes.util
import os
import pathlib
import shutil
import subprocess

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "peers"
CFLAGS = ["-O2", "-g", "-std=gnu11", "-Wall", "-Wextra"]
C_PROGRAMS = {  # name: (source, libraries)
    "echo_load": ("load/echo_load.c", []),
    "quiet": ("load/quiet.c", []),
    "posix_spawn": ("raw/posix_spawn.c", ["-pthread"]),
    "epoll_echo": ("echo/epoll_echo.c", ["-pthread"]),
    "uring_echo": ("echo/uring_echo.c", ["-luring", "-pthread"]),
    "uring_file": ("raw/uring_file.c", ["-luring"]),
    "uv_echo": ("echo/uv_echo.c", ["-luv", "-pthread"]),
    "uv_micro": ("uv/uv_micro.c", ["-luv"]),
}
INSTALLED = ["fio", "wrk", "nginx", "haproxy", "redis-server", "redis-benchmark", "sh",
             "grep", "rg", "dnsmasq", "dnsperf", "openssl", "bfs", "find", "rm", "cp",
             "xargs", "dig"]


class NotBuilt(Exception):
    pass


def tool(name):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if path is None:
        raise NotBuilt(f"{name} is not installed")
    return path


def compile_with(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        errors = [s for s in done.stderr.splitlines() if "error" in s]
        raise NotBuilt((errors or done.stderr.splitlines() or ["no output"])[0])


def build_c(out, name):
    source, libraries = C_PROGRAMS[name]
    cc = tool(os.environ.get("CC", "cc"))
    compile_with([cc, *CFLAGS, SOURCES / source, "-o", out / name, *libraries])
    return [str(out / name)]


def build_go(out):
    go = tool("go")
    env = dict(os.environ, GOPROXY="off", GOFLAGS="-mod=mod")
    compile_with([go, "build", "-o", out / "gopeer", "."], cwd=SOURCES / "go", env=env)
    return [str(out / "gopeer")]


def packaged_crates():
    """The directory of the crates' sources: Debian's package names it."""
    if "PEER_CRATES" in os.environ:
        return os.environ["PEER_CRATES"]
    listing = subprocess.run([tool("dpkg"), "-L", "librust-tokio-dev"],
                             capture_output=True, text=True).stdout
    for line in listing.splitlines():
        path = pathlib.Path(line)
        if path.name == "Cargo.toml" and path.parent.name.startswith("tokio-"):
            return str(path.parent.parent)
    raise NotBuilt("librust-tokio-dev is not installed")


def build_tokio(out):
    cargo, crates = tool("cargo"), packaged_crates()
    work = out / "tokio"
    shutil.copytree(SOURCES / "tokio", work, dirs_exist_ok=True)
    compile_with([cargo, "build", "--release", "--offline", "--quiet",
                  "--config", 'source.crates-io.replace-with="packaged"',
                  "--config", f'source.packaged.directory="{crates}"'], cwd=work)
    return [str(work / "target/release/tokio-peer")]


def jemalloc(programs):
    """The allocator decides Tokio's spawn cost: measure it with jemalloc too."""
    library = ctypes.util.find_library("jemalloc")
    if library is None:
        raise NotBuilt("libjemalloc is not installed")
    if "tokio" not in programs:
        raise NotBuilt("needs tokio")
    return ["env", f"LD_PRELOAD={library}", *programs["tokio"]]


def build_all(out, say, only=None):
    """Build into out all programs, or only those named.

    Returns the command (a list) of each program that is there."""
    out.mkdir(parents=True, exist_ok=True)
    programs = {}
    makers = {name: (lambda name=name: build_c(out, name)) for name in C_PROGRAMS}
    makers["gopeer"] = lambda: build_go(out)
    makers["tokio"] = lambda: build_tokio(out)
    makers["tokio-jemalloc"] = lambda: jemalloc(programs)
    for name in INSTALLED:
        makers[name] = lambda name=name: [tool(name)]
    for name, make in makers.items():
        if only is not None and name not in only:
            continue
        try:
            programs[name] = make()
        except NotBuilt as e:
            say(f"peer program {name} skipped: {e}")
    return programs
