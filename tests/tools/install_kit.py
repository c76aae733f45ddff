# SPDX-License-Identifier: MIT
"""Shared by the tests of an installed weft, and of weft's source in projects of
others."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from tap import Skip

ROOT = pathlib.Path(__file__).resolve().parents[2]
HELLO = ROOT / "examples/hello.c"


def once(function):
    """The function is called once; each caller gets its result, or its error."""
    outcome = []

    @functools.wraps(function)
    def called():
        if not outcome:
            try:
                outcome.append((function(), None))
            except Exception as error:
                outcome.append((None, error))
        result, error = outcome[0]
        if error:
            raise error
        return result
    return called


def run(*command, **options):
    """The output; an error if the command fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise RuntimeError(f"{command}:\n{done.stdout}{done.stderr}")
    return done.stdout


def refusal(*command, **options):
    """The output of a command that must fail."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if not done.returncode:
        raise RuntimeError(f"{command} succeeded:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def require(*programs):
    """Skips the case if one is missing."""
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"no {program}")


def install(build, directory):
    """Installs below the directory; returns the place of the libraries."""
    run("meson", "install", "-C", build, "--no-rebuild", "--quiet",
        "--destdir", directory)
    return library_directory(directory)


def library_directory(directory):
    return next(pathlib.Path(directory).rglob("weft.pc")).parents[1]


def pkg_config(directory):
    """The environment in which pkg-config finds weft there."""
    libraries = library_directory(directory)
    return {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig"),
            "PKG_CONFIG_SYSROOT_DIR": str(directory),
            "LD_LIBRARY_PATH": str(libraries)}


def copy_source(directory):
    """A copy of the source, without what was built from it."""
    def built(folder, names):
        top = pathlib.Path(folder) == ROOT
        return [name for name in names
                if name in (".git", ".cache", "__pycache__")
                or top and name.startswith("build")]
    shutil.copytree(ROOT, directory, ignore=built, symlinks=True)
    return directory


def readme(language):
    """The blocks of README.md in that language."""
    return re.findall(rf"^```{language}\n(.*?)^```$",
                      (ROOT / "README.md").read_text(), re.M | re.S)


def says_hello(program, **options):
    said = run(str(program), **options)
    if said != "hello\nworld\n":
        raise RuntimeError(f"{program} said {said!r}")


def needed(program):
    """The names of the shared libraries that it is linked to."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]",
                      run("readelf", "-d", str(program)))


def links_statically(directory):
    """Are there static libraries, of C and of what weft needs?"""
    source = pathlib.Path(directory, "probe.c")
    source.write_text("int main(void) { return 0; }\n")
    names = [name for name in ("liburing", "libcares") if subprocess.run(
        ["pkg-config", "--exists", name], check=False).returncode == 0]
    libraries = run("pkg-config", "--libs", "--static", *names).split()
    return subprocess.run(
        ["cc", "-static", source, *libraries, "-pthread",
         "-o", str(source.with_suffix(""))],
        capture_output=True, check=False).returncode == 0


def require_static(directory):
    if not links_statically(directory):
        raise Skip("no static libraries of C, or of what weft needs")


def cmake_project(directory, text, *options, files=None, action=run):
    """Configures a project of CMakeLists.txt, prog.c, which is hello.c, and
    further files; returns its build directory and the output."""
    source = pathlib.Path(tempfile.mkdtemp(prefix="project-", dir=directory))
    shutil.copy(HELLO, source / "prog.c")
    for name, content in (files or {}).items():
        (source / name).write_text(content)
    (source / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.18)\n{text}")
    build = source / "build"
    return build, action("cmake", "-G", "Ninja", "-S", str(source), "-B",
                         str(build), *options)


def cmake_build(build):
    """Builds it, and runs its program; returns the program."""
    run("cmake", "--build", str(build))
    says_hello(build / "prog")
    return build / "prog"
