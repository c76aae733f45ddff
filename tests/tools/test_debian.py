#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_debian.py: packaging/build-deb.sh builds Debian packages that lintian
accepts, and a program is built with them.  With WEFT_TEST_LONG the build runs
its tests, too.  TAP."""

import gzip
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import tap
from install_kit import (HELLO, ROOT, cmake_build, cmake_project, copy_source,
                         needed, once, pkg_config, refusal, require,
                         require_static, run, says_hello)
from tap import Skip
from test_manual import read_pages

PACKAGES = {"libweft0", "libweft-dev", "weft-doc", "weft-tools",
            "libweft-curl0", "libweft-curl-dev",
            "libweft-nats0", "libweft-nats-dev",
            "libweft-pq0", "libweft-pq-dev",
            "libweft-redis0", "libweft-redis-dev",
            "libweft-tls0", "libweft-tls-dev"}
SCRATCH = tempfile.TemporaryDirectory()
TOP = pathlib.Path(SCRATCH.name)


BUILT = TOP / "source/built"


@once
def source():
    return copy_source(TOP / "source")


@once
def packages():
    """Builds the packages; returns their paths by their names."""
    require("dpkg-buildpackage", "dpkg-checkbuilddeps")
    fast = () if os.environ.get("WEFT_TEST_LONG") else ("-Pnocheck",)
    lacks = subprocess.run(["dpkg-checkbuilddeps", *fast,
                            str(ROOT / "packaging/debian/control")],
                           capture_output=True, text=True, check=False)
    if lacks.returncode:
        raise Skip(lacks.stderr.strip() or "dpkg-checkbuilddeps failed")
    # Flags and options of the machine are not those of a package.
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("DEB_", "CK_")) and
           not name.endswith("FLAGS")}
    if fast:
        env["DEB_BUILD_OPTIONS"] = "nocheck"
    run(str(source() / "packaging/build-deb.sh"), str(BUILT), *fast,
        env=env)
    return {path.name.split("_")[0]: path
            for path in BUILT.glob("*.deb")}


def field(package, name):
    return run("dpkg-deb", "-f", str(packages()[package]), name).strip()


def unpack(*names):
    """A directory in which the packages are as if installed."""
    root = TOP / "-".join(names)
    for name in names:
        run("dpkg-deb", "-x", str(packages()[name]), str(root))
    return root


@once
def development():
    return unpack("libweft0", "libweft-dev")


def test_packages():
    """it builds the library, its headers, the manual and the tools"""
    names = {name for name in packages() if not name.endswith("-dbgsym")}
    assert names == PACKAGES, names
    version = re.search(r"^  version: '(.*)',$",
                        (ROOT / "meson.build").read_text(), re.M).group(1)
    for name in names:
        assert field(name, "Version").startswith(f"{version}-"), name


def test_source():
    """the source package has what is in the tree, which stays as it is"""
    packages()
    listed = run("tar", "-tf", str(next(BUILT.glob("*.orig.tar.xz"))))
    names = {name.partition("/")[2] for name in listed.splitlines()}
    assert {"meson.build", "packaging/debian/control"} <= names, names
    assert not any(name.startswith("built") for name in names), names
    assert not (source() / "debian").exists()


def test_lintian():
    """lintian finds no error and nothing to warn of"""
    require("lintian")
    packages()
    said = run("lintian", "--allow-root", "--fail-on", "error,warning",
               "--no-cfg", str(next(BUILT.glob("*.changes"))))
    assert "E:" not in said and "W:" not in said, said


def test_dependencies():
    """each package depends on what it needs"""
    version = field("libweft0", "Version")
    needs = field("libweft-dev", "Depends")
    assert f"libweft0 (= {version})" in needs, needs
    assert "liburing-dev" in needs and "libc-ares-dev" in needs, needs
    needs = field("libweft0", "Depends")
    for library in ("liburing2", "libc-ares2", "libc6"):
        assert library in needs, needs
    # Programs without TLS need no OpenSSL.
    assert "libssl" not in needs, needs
    for name, library in (("curl", "libcurl4"), ("nats", "libnats"),
                          ("pq", "libpq5"), ("redis", "libhiredis"),
                          ("tls", "libssl3")):
        needs = field(f"libweft-{name}0", "Depends")
        assert library in needs and "libweft0 (>=" in needs, needs
        needs = field(f"libweft-{name}-dev", "Depends")
        assert f"libweft-dev (= {version})" in needs, needs


def test_symbols():
    """packages that use the library depend on the version of its symbols"""
    for package, path in (("libweft0", "weft.map"),
                          ("libweft-tls0", "tls/tls.map")):
        listed = run("dpkg-deb", "-I", str(packages()[package]), "symbols")
        for name in re.findall(r"^\t(weft_\w+);", (ROOT / path).read_text(),
                               re.M):
            assert f" {name}@WEFT_" in listed, (name, listed)


def pkg_config_flags(*more, root=None):
    env = pkg_config(root or development())
    return run("pkg-config", "--cflags", "--libs", *more, "weft",
               env=env).split(), env


def test_program():
    """a program is built with libweft-dev by pkg-config, and runs"""
    flags, env = pkg_config_flags()
    program = TOP / "program"
    run("cc", str(HELLO), *flags, "-o", str(program))
    says_hello(program, env=env)
    assert "libweft.so.0" in needed(program), needed(program)


def test_tls_program():
    """a program is built with libweft-tls-dev, and runs"""
    root = unpack("libweft0", "libweft-dev", "libweft-tls0", "libweft-tls-dev")
    flags, env = pkg_config_flags("weft-tls", root=root)
    program = TOP / "tls"
    run("cc", str(ROOT / "tests/tools/test_headers_tls.c"), *flags, "-o",
        str(program))
    assert run(str(program), env=env) == "Bad file descriptor\n"
    assert "libweft-tls.so.0" in needed(program), needed(program)
    assert not list(development().rglob("tls.h"))


def test_static_program():
    """a static program is built with libweft-dev, and runs"""
    require_static(TOP)
    flags, _ = pkg_config_flags("--static")
    run("cc", "-static", str(HELLO), *flags, "-o", str(TOP / "static"))
    says_hello(TOP / "static")


def test_cmake():
    """a program is built with libweft-dev by CMake, and runs"""
    require("cmake", "ninja")
    cmake_build(cmake_project(
        SCRATCH.name, "project(prog C)\nadd_executable(prog prog.c)\n"
        "find_package(weft REQUIRED)\n"
        "target_link_libraries(prog weft::weft)\n",
        f"-DCMAKE_PREFIX_PATH={development()}/usr")[0])


def test_manual_pages():
    """weft-doc has a page for each name of the manual, and the examples"""
    root = unpack("weft-doc")
    for page in read_pages():
        for name in page.names() if page.section == "3" else [page.name]:
            path = root / (f"usr/share/man/man{page.section}/"
                           f"{name}.{page.section}.gz")
            with gzip.open(path, "rt", encoding="utf-8") as text:
                assert text.read() == page.path.read_text(), path
    for path in (ROOT / "examples").rglob("*.c"):
        name = path.relative_to(ROOT)
        assert (root / "usr/share/doc/weft-doc" / name).exists(), name


def test_tools():
    """weft-tools has the commands for gdb"""
    script = unpack("weft-tools") / "usr/share/weft/weft-gdb.py"
    assert script.read_text() == (ROOT / "docs/weft-gdb.py").read_text()


def test_another_version():
    """build-deb.sh refuses a changelog of another version"""
    require("dpkg-parsechangelog")
    log = source() / "packaging/debian/changelog"
    log.write_text(re.sub(r"\((\d)", r"(9\1", log.read_text(), count=1))
    said = refusal(str(source() / "packaging/build-deb.sh"),
                   str(TOP / "refused"))
    assert "version" in said, said


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
