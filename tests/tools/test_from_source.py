#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_from_source.py: projects that have weft's source build it with their own,
as README.md says, by meson and by CMake.  TAP."""

import json
import pathlib
import shutil
import sys
import tempfile

import tap
from install_kit import (HELLO, cmake_build, cmake_project, copy_source, needed,
                         once, readme, require, run, says_hello)

SHARED = "libweft.so.0"
PLAIN = "-Dbuildtype=plain"  # nothing is measured
SCRATCH = tempfile.TemporaryDirectory()


@once
def source():
    return copy_source(pathlib.Path(SCRATCH.name, "weft"))


def meson_project(name, text, wrap=None):
    """Configures a project with weft in subprojects/; returns its build
    directory."""
    require("meson", "ninja")
    top = pathlib.Path(SCRATCH.name, name)
    (top / "subprojects").mkdir(parents=True)
    (top / "subprojects/weft").symlink_to(source())
    if wrap:
        (top / "subprojects/weft.wrap").write_text(wrap)
    shutil.copy(HELLO, top / "prog.c")
    (top / "meson.build").write_text(f"project('prog', 'c')\n{text}")
    # A weft that is installed must not be found instead.
    run("meson", "setup", str(top / "build"), str(top), PLAIN,
        "--force-fallback-for=weft")
    return top / "build"


@once
def subproject():
    """The project of README.md, and a static program."""
    return meson_project("project", f"""{readme("meson")[0]}
executable('static', 'prog.c',
  dependencies: dependency('weft', static: true))
""")


def built(build, name="prog"):
    """Builds and runs a program; returns the libraries that it needs."""
    run("ninja", "-C", str(build), name)
    says_hello(build / name)
    return needed(build / name)


def introspected(build, what):
    return json.loads(run("meson", "introspect", f"--{what}", str(build)))


def test_subproject():
    """a meson project uses weft as a subproject, as README.md says"""
    libraries = built(subproject())
    assert SHARED in libraries, libraries


def test_static():
    """with static: true, the program is linked with libweft.a"""
    libraries = built(subproject(), "static")
    assert SHARED not in libraries, libraries


def test_default_library():
    """without static, default_library chooses"""
    run("meson", "configure", "-Dweft:default_library=static",
        str(subproject()))
    libraries = built(subproject())
    assert SHARED not in libraries, libraries


def test_library_alone():
    """a subproject builds, installs and tests the library alone"""
    build = subproject()
    targets = {t["name"] for t in introspected(build, "targets")}
    assert targets == {"prog", "static", "weft", "weft-core",
                       "weft-outer"}, targets
    assert not introspected(build, "tests"), introspected(build, "tests")
    places = " ".join(introspected(build, "installed").values())
    assert "/weft.pc" in places and "/man/" not in places, places
    looked_for = {d["name"] for d in introspected(build, "dependencies")}
    assert not looked_for & {"check", "jemalloc"}, looked_for


def test_wrap():
    """with a wrap file that provides weft, no fallback needs to be named"""
    meson_project("wrapped", "dependency('weft', version: '>= 0.1')\n",
                  "[wrap-file]\ndirectory = weft\n"
                  "[provide]\ndependency_names = weft\n")


def test_more():
    """an option of the subproject asks for the examples"""
    run("meson", "configure", "-Dweft:examples=enabled",
        "-Dweft:jemalloc=disabled", str(subproject()))
    run("ninja", "-C", str(subproject()), "subprojects/weft/examples/hello")


def test_headers():
    """a subproject shows the public headers alone, and passes its flags on"""
    commands = json.loads(
        (subproject() / "compile_commands.json").read_text())
    command = next(c["command"] for c in commands
                   if c["file"].endswith("/prog.c"))
    words = command.split()
    shown = [word for word in words
             if word.startswith("-I") and word.endswith("subprojects/weft")]
    assert not shown, command
    assert "-fstack-clash-protection" in words, command


@once
def fetching():
    """Configures a CMake project as in README.md, with the source that is
    here; returns its build directory."""
    require("cmake", "meson", "ninja")
    block = next(block for block in readme("cmake") if "FetchContent" in block)
    return cmake_project(
        SCRATCH.name,
        f"project(prog C)\nadd_executable(prog prog.c)\n{block}",
        f"-DFETCHCONTENT_SOURCE_DIR_WEFT={source()}",
        f"-DWEFT_MESON_OPTIONS={PLAIN}")[0]


def test_fetch():
    """a CMake project builds weft's source, as README.md says"""
    libraries = needed(cmake_build(fetching()))
    assert SHARED not in libraries, libraries


def test_fetch_shared():
    """with BUILD_SHARED_LIBS, weft::weft is the shared library"""
    build = fetching()
    run("cmake", "-DBUILD_SHARED_LIBS=ON", str(build))
    libraries = needed(cmake_build(build))
    assert SHARED in libraries, libraries


def test_fetch_follows_source():
    """a change of weft's source is built with the project"""
    build = fetching()
    library = next(build.rglob("libweft.a"))
    before = library.stat().st_mtime_ns
    cmake_build(build)
    assert library.stat().st_mtime_ns == before, "it was built in vain"
    with open(source() / "net/addr.c", "a", encoding="utf-8") as file:
        file.write("extern int weft__appended;\nint weft__appended = 1;\n")
    cmake_build(build)
    assert "weft__appended" in run("nm", str(library)), "not built again"


def test_fetch_follows_options():
    """other options take effect in a build directory that exists"""
    build = fetching()
    run("cmake", f"-DWEFT_MESON_OPTIONS={PLAIN};-Dinvariants=true", str(build))
    cmake_build(build)
    options = introspected(next(build.rglob("meson")), "buildoptions")
    assert {"invariants": True, "buildtype": "plain"}.items() <= {
        option["name"]: option["value"] for option in options}.items(), options


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
