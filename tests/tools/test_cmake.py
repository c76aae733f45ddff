#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_cmake.py BUILD: the CMake package of an installed weft is used as
README.md says, from wherever it was moved to.  TAP."""

import pathlib
import shutil
import sys
import tempfile

import tap
from install_kit import (ROOT, cmake_build, cmake_project, install, needed,
                         once, readme, refusal, require, require_static, run)

SHARED = "libweft.so.0"
CXX = """#include <weft/weft.h>
#include <cstdio>
static int64_t hello(void *) { return std::puts("hello\\nworld") < 0; }
int main() { return (int)weft_run(hello, nullptr, nullptr); }
"""
# A program uses of each part an own function, and a header and a function of
# the library that the part joins with weft.
PARTS = {"curl": ("weft_curl_open", "curl/curl.h", "curl_version"),
         "nats": ("weft_nats_close", "nats/nats.h", "nats_GetVersion"),
         "pq": ("weft_pq_exec", "libpq-fe.h", "PQlibVersion"),
         "redis": ("weft_redis_over", "hiredis/hiredis.h", "redisFree"),
         "tls": ("weft_tls_shutdown", "weft/tls.h", "weft_tls_context_free")}
SCRATCH = tempfile.TemporaryDirectory()


@once
def installed():
    """The prefix of an installation that was moved, and its library directory,
    relative to the prefix."""
    require("cmake", "ninja")
    top = pathlib.Path(SCRATCH.name)
    libraries = install(sys.argv[1], top / "installed")
    prefix = next(parent for parent in libraries.parents
                  if (parent / "include").exists())
    relative = libraries.relative_to(prefix)
    return prefix.rename(top / "moved"), relative


def project(text, *options, prefix=None, **more):
    """Configures a project; returns its build directory and the output."""
    prefix = prefix or installed()[0]
    return cmake_project(SCRATCH.name, text, f"-DCMAKE_PREFIX_PATH={prefix}",
                         *options, **more)


def program(text, *options, **more):
    """Configures, builds and runs a project; returns the program."""
    build, _ = project(text, *options, **more)
    return cmake_build(build)


def recipe(target="weft::weft"):
    """The project of README.md."""
    block = next(block for block in readme("cmake")
                 if block.startswith("find_package"))
    return ("project(prog C)\nadd_executable(prog prog.c)\n" +
            block.replace("weft::weft", target))


def find(words, **more):
    """Looks for weft, and no more; returns the output."""
    return project(f"project(prog C)\nfind_package(weft {words})\n",
                   **more)[1]


def copy(name):
    """A copy of the installation, to be changed; and its library directory."""
    prefix, libraries = installed()
    copied = prefix.with_name(name)
    shutil.copytree(prefix, copied, symlinks=True)
    return copied, copied / libraries


def test_shared():
    """a program with weft::weft builds and runs as README.md says"""
    libraries = needed(program(recipe()))
    assert SHARED in libraries, libraries


def test_static():
    """a program with weft::weft_static needs no libweft.so"""
    libraries = needed(program(recipe("weft::weft_static")))
    assert SHARED not in libraries, libraries


def test_static_all():
    """with -static, weft::weft_static links all that it needs"""
    require_static(SCRATCH.name)
    libraries = needed(program(recipe("weft::weft_static"),
                               "-DCMAKE_EXE_LINKER_FLAGS=-static"))
    assert not libraries, libraries


def test_cxx():
    """a project without C finds both libraries"""
    program("project(prog CXX)\n"
            "find_package(weft REQUIRED COMPONENTS shared static)\n"
            "add_executable(prog prog.cc)\n"
            "target_link_libraries(prog weft::weft)\n"
            "add_executable(other prog.cc)\n"
            "target_link_libraries(other weft::weft_static)\n",
            files={"prog.cc": CXX})


def test_flags():
    """programs are compiled with the flags that pkg-config prints"""
    build, _ = project(recipe(), "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    used = (build / "compile_commands.json").read_text()
    pc = next(installed()[0].rglob("weft.pc")).read_text()
    flags = next(line for line in pc.splitlines() if line.startswith("Cflags:"))
    for flag in flags.split()[2:]:
        assert flag in used, (flag, used)


def test_versions():
    """a version is refused if its API may differ, or if it is newer"""
    major, minor, patch = map(int, run(
        "pkg-config", "--modversion",
        str(next(installed()[0].rglob("weft.pc")))).split("."))
    for words in (f"{major}.{minor}", f"{major}.{minor}.{patch} EXACT",
                  f"{major}.{minor}...{major + 1}",
                  f"{major}.{minor}.{patch}...<{major}.{minor + 1}"):
        find(f"{words} REQUIRED")
    for words in (f"{major}.{minor}.{patch + 1}", f"{major}.{minor + 1}",
                  f"{major + 1}", f"0.0...<{major}.{minor}.{patch}",
                  f"{major}.{minor + 1}...{major + 1}",
                  # Only the major version counts after 1.0.
                  *([f"{major}.{minor - 1}"] if minor and not major else [])):
        said = find(f"{words} REQUIRED", action=refusal)
        assert f"version: {major}.{minor}.{patch}" in said, (words, said)


def test_components():
    """a component that there is not is refused with its name"""
    find("REQUIRED COMPONENTS static")
    find("REQUIRED COMPONENTS shared OPTIONAL_COMPONENTS other")
    said = find("REQUIRED COMPONENTS other", action=refusal)
    assert "weft has no component other" in said, said


def parts_of(prefix):
    """Those that were built."""
    built = [name for name in PARTS
             if (prefix / f"include/weft/{name}.h").exists()]
    if not built:
        raise tap.Skip("weft was built without further libraries")
    return built


def program_of_parts(names, **more):
    """A program that uses them, and names no other library."""
    source = "#include <stdio.h>\n#include <weft/weft.h>\n"
    for name in names:
        source += f"#include <{PARTS[name][1]}>\n#include <weft/{name}.h>\n"
    uses = ", ".join(f"(void *){function}" for name in names
                     for function in PARTS[name][::2])
    source += (f"static void *volatile uses[] = {{ {uses} }};\n"
               "static int64_t hello(void *arg)\n{\n\t(void)arg;\n"
               '\treturn !uses[0] || puts("hello\\nworld") < 0;\n}\n'
               "int main(void)\n{\n"
               "\treturn (int)weft_run(hello, NULL, NULL);\n}\n")
    targets = " ".join(f"weft::{name}" for name in names)
    return program(
        f"project(prog C)\n"
        f"find_package(weft REQUIRED COMPONENTS {' '.join(names)})\n"
        f"add_executable(prog prog.c)\n"
        f"target_link_libraries(prog PRIVATE {targets})\n",
        files={"prog.c": source}, **more)


def test_parts():
    """a component for each further library brings all that programs need"""
    names = parts_of(installed()[0])
    libraries = needed(program_of_parts(names))
    for name in names:
        assert f"libweft-{name}.so.0" in libraries, (name, libraries)


def test_missing_parts():
    """a component that lacks a library or a header names it"""
    name = parts_of(installed()[0])[-1]
    prefix, libraries = copy("parts")
    (prefix / f"include/weft/{name}.h").unlink()
    said = find(f"REQUIRED COMPONENTS {name}", prefix=prefix, action=refusal)
    assert f"{name}.h does not exist" in said, said
    find(f"REQUIRED OPTIONAL_COMPONENTS {name}", prefix=prefix)
    config = libraries / "cmake/weft/weft-config.cmake"
    config.write_text(config.read_text().replace("set(_weft_parts ",
                                                 "set(_weft_built "))
    said = find(f"REQUIRED COMPONENTS {name}", prefix=prefix, action=refusal)
    assert f"weft has no component {name}" in said, said


def test_link():
    """the package is found through a link to its directory of libraries"""
    link = pathlib.Path(SCRATCH.name, "root", "lib")
    link.parent.mkdir()
    link.symlink_to(installed()[0] / "lib")
    program(recipe(), prefix=link.parent)


def test_missing_files():
    """a package that lacks a library names it"""
    prefix, libraries = copy("bare")
    (libraries / "libweft.a").unlink()
    program(recipe(), prefix=prefix)
    said = find("REQUIRED COMPONENTS static", prefix=prefix, action=refusal)
    assert "libweft.a does not exist" in said, said
    for path in libraries.glob("libweft.so*"):
        path.unlink()
    for components in "", f"COMPONENTS {parts_of(prefix)[-1]}":
        said = find(f"REQUIRED {components}", prefix=prefix, action=refusal)
        assert "libweft.so" in said and "does not exist" in said, said


def test_no_liburing():
    """without liburing the shared library can be used, and no other"""
    if "liburing" not in next(installed()[0].rglob("weft.pc")).read_text():
        raise tap.Skip("weft was built without liburing")
    hidden = "set(CMAKE_FIND_LIBRARY_SUFFIXES .none)\nfind_package"
    program(recipe().replace("find_package", hidden))
    said = project(f"project(prog C)\n{hidden}(weft REQUIRED static)\n",
                   action=refusal)[1]
    assert "liburing" in said, said
    # Unless it was built without: it is not looked for.
    prefix, libraries = copy("without")
    config = libraries / "cmake/weft/weft-config.cmake"
    text = config.read_text()
    config.write_text(text.replace('(_weft_uring "uring")', '(_weft_uring "")')
                      .replace('(_weft_cares "cares")', '(_weft_cares "")'))
    assert config.read_text() != text
    project(f"project(prog C)\n{hidden}(weft REQUIRED static)\n",
            prefix=prefix)


def configured(prefix, libraries, *options):
    """Replaces the package by that of a weft with other options."""
    build = pathlib.Path(SCRATCH.name, f"weft-{prefix.name}")
    run("meson", "setup", str(build), str(ROOT), "-Dtests=disabled",
        "-Dbench=disabled", "-Dexamples=disabled", *options)
    for path in (libraries / "cmake/weft").glob("*.cmake"):
        made = build / "packaging/cmake" / path.name
        if made.exists():
            shutil.copy(made, path)


def test_static_alone():
    """weft::weft is the static library if weft has no other"""
    prefix, libraries = copy("static")
    configured(prefix, libraries, "-Ddefault_library=static")
    for path in libraries.glob("libweft.so*"):
        path.unlink()
    names = needed(program(recipe(), prefix=prefix))
    assert SHARED not in names, names
    said = find("REQUIRED COMPONENTS shared", prefix=prefix, action=refusal)
    assert "weft was built without a shared library" in said, said
    names = needed(program_of_parts(parts_of(prefix), prefix=prefix))
    assert not any(name.startswith("libweft") for name in names), names


def test_headers_elsewhere():
    """headers outside of the prefix are found"""
    prefix, libraries = copy("split")
    headers = prefix.with_name("headers")
    configured(prefix, libraries, f"--prefix={prefix}",
               f"--includedir={headers}")
    (prefix / "include").rename(headers)
    program(recipe(), prefix=prefix)


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
