#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_install.py BUILD [--man]: an installed weft is used as README.md says,
from C and C++, shared and static, and without a warning; a static program dumps;
the adapters that were built are found; and, with --man, its manual is there.
TAP."""

import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import tap
import test_manual
from install_kit import (HELLO, ROOT, install, needed, pkg_config, readme,
                         require_static, run, says_hello)
from smoke_kit import held_port
from tap import Skip

WARNINGS = ["-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror"]


# Exceptions may leave blocks whose ends do not suspend, and a group may end by
# one that is caught inside.
EXCEPTIONS = """#include <weft/weft.h>
#include <exception>
static int64_t wait_long(void *) { return weft_sleep(WEFT_SEC(3600)); }
static void undo(void *done) { *(bool *)done = true; }
static int64_t throws(void *)
{
	bool undone = false, caught = false;
	int64_t result = 0;

	try {
		WEFT_WITHIN(WEFT_SEC(3600)) {
			WEFT_SHIELD {
				WEFT_DEFER(undo, &undone);
				throw 1;
			}
		}
	} catch (int) {
		caught = true;
	}
	if (!caught || !undone || weft_deadline() != WEFT_NEVER)
		return -1;
	WEFT_SCOPE(group, &result) {
		try {
			if (WEFT_GO(group, wait_long, 1) < 0)
				return -2;
			throw 1;
		} catch (int) {
			weft_scope_fail(group, -EIO);
		}
	}
	return result == -EIO && !std::uncaught_exception() ? 0 : -3;
}
int main() { return weft_run(throws, nullptr, nullptr) != 0; }
"""


def flags(env, *more):
    return run("pkg-config", "--cflags", "--libs", *more, "weft",
               env=env).split()


def program_of_readme():
    return next(block for block in readme("c") if block.startswith("#include"))


def read_until(stream, what):
    """Reads lines until one has the text; returns them."""
    text = ""
    while what not in text:
        line = stream.readline()
        if not line:
            raise RuntimeError(f"no {what!r} in:\n{text}")
        text += line
    return text


def answer_of(path):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
        return peer.makefile().read()


# In a dump of a static program.
WHY = re.compile("^weft: no backtraces: (?:"
                 "a static program cannot load libdw.so.1|"
                 "libweft was built without libdw)$", re.M)


def dumps(program, path):
    """The program of test_install.c dumps in every way, and goes on."""
    with subprocess.Popen([program, path], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        try:
            told = [read_until(process.stdout, "no backtraces: ")]
            read_until(process.stderr, "worker 0 has been in one task for ")
            told.append(read_until(process.stderr, "no backtraces: "))
            process.send_signal(signal.SIGUSR1)
            told.append(read_until(process.stderr, "no backtraces: "))
            told.append(answer_of(path))
            for text in told:
                if not WHY.search(text):
                    raise RuntimeError(f"no reason, or another, in:\n{text}")
            process.communicate("\n")
            if process.returncode:
                raise RuntimeError(f"it ended with {process.returncode}")
        finally:
            process.kill()


def echoes_at(address, process):
    """The program serves there, or will soon."""
    host, port = address.split(":")
    end = time.monotonic() + 60
    while True:
        try:
            peer = socket.create_connection((host, int(port)), 60)
            break
        except ConnectionRefusedError:
            if process.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.01)
    with peer:
        peer.sendall(b"abc")
        peer.shutdown(socket.SHUT_WR)
        got = peer.makefile().read()
    if got != "abc":
        raise RuntimeError(f"it answered {got!r}")


def uses(directory, env):
    server = pathlib.Path(directory, "prog.c")
    server.write_text(program_of_readme())
    macros = ROOT / "tests/tools/test_headers.c"
    out = str(pathlib.Path(directory, "prog"))

    def compile_and_link(compiler, *sources_and_flags):
        run(compiler, *WARNINGS, *sources_and_flags, "-o", out, env=env)

    def in_c():
        compile_and_link("cc", server, *flags(env))

    def echoes():
        source = pathlib.Path(directory, "echo.c")
        with held_port() as port:
            address = f"127.0.0.1:{port}"
            source.write_text(program_of_readme().replace("[::]:7000", address))
            compile_and_link("cc", source, *flags(env))
            with subprocess.Popen([out], env=env) as process:
                try:
                    echoes_at(address, process)
                finally:
                    process.kill()

    def in_cxx():
        compile_and_link("c++", "-x", "c++", macros, *flags(env))

    def with_exceptions():
        source = pathlib.Path(directory, "throws.cc")
        source.write_text(EXCEPTIONS)
        compile_and_link("c++", "-std=c++11", str(source), *flags(env))
        run(out, env=env)

    def with_tls():
        if not any(pathlib.Path(directory).rglob("weft-tls.pc")):
            raise Skip("it was built without libweft-tls")
        for language in "c", "c++":
            compile_and_link("cc", "-x", language, str(macros).replace(
                "headers", "headers_tls"), *flags(env, "weft-tls"))
            said = run(out, env=env)
            if said != "Bad file descriptor\n":
                raise RuntimeError(said)

    def shared():
        compile_and_link("cc", HELLO, *flags(env))
        says_hello(out, env=env)

    def link_statically(source):
        require_static(directory)
        compile_and_link("cc", "-static", source, *flags(env, "--static"))

    def static():
        link_statically(HELLO)
        says_hello(out, env=env)

    def static_dumps():
        link_statically(ROOT / "tests/tools/test_install.c")
        dumps(out, str(pathlib.Path(directory, "dump")))

    return {"README.md's program compiles as it says": in_c,
            "README.md's program answers": echoes,
            "C++ links with it": in_cxx,
            "exceptions leave blocks that do not suspend": with_exceptions,
            "a program has TLS": with_tls,
            "a program runs": shared,
            "a static program runs": static,
            "a static program dumps without backtraces": static_dumps}


# A program that uses the library of an adapter, and its header alone.
OF_ADAPTER = """#include <stdio.h>
#include <weft/weft.h>
#include <weft/{name}.h>
static void *volatile address;
int main(void)
{{
	address = (void *)(size_t)&{function};
	return printf("%s\\n", address ? "linked" : "") < 0;
}}
"""
ADAPTERS = {"curl": "weft_curl_open", "nats": "weft_nats_close",
            "pq": "weft_pq_exec", "redis": "weft_redis_over"}


def adapters(directory, env):
    """Each adapter that was built is found by pkg-config."""
    def links(name, function):
        source = pathlib.Path(directory, f"{name}.c")
        source.write_text(OF_ADAPTER.format(name=name, function=function))
        out = str(pathlib.Path(directory, name))
        run("cc", "-std=c11", str(source), *run(
            "pkg-config", "--cflags", "--libs", f"weft-{name}",
            env=env).split(), "-o", out, env=env)
        said = run(out, env=env)
        if said != "linked\n" or f"libweft-{name}.so.0" not in needed(out):
            raise RuntimeError(f"{out} said {said!r}, needs {needed(out)}")
    return {f"a program links to libweft-{name}":
            lambda name=name, function=function: links(name, function)
            for name, function in ADAPTERS.items()
            if any(pathlib.Path(directory).rglob(f"weft-{name}.pc"))}


def manual(directory):
    """Each page is found by each of its names."""
    def found():
        for page in test_manual.read_pages():
            names = page.names() if page.section == "3" else [page.name]
            for name in names:
                place = f"share/man/man{page.section}/{name}.{page.section}"
                texts = [path.read_text() for path in
                         pathlib.Path(directory).glob(f"**/{place}")]
                if texts != [page.path.read_text()]:
                    raise RuntimeError(f"no {place}, or another page")
    return {"the manual has a page of every name": found}


def main():
    build, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        install(build, directory)
        env = pkg_config(directory)
        cases = uses(directory, env) | adapters(directory, env)
        if "--man" in options:
            cases |= manual(directory)
        return tap.report(list(cases.items()))


if __name__ == "__main__":
    sys.exit(main())
