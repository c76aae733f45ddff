#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_symbols.py LIBWEFT.SO LIBWEFT.A [NAME]: the exported symbols are those that
the public headers declare and weft.map names; and the library is hardened.  The
same for libweft-NAME, a library of its own, and its header and map.  TAP."""

import itertools
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True

import tap

ROOT = pathlib.Path(__file__).resolve().parents[2]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout


def maps():
    """Of the libraries of their own, by their names."""
    found = {path.parent.name: path for path in ROOT.glob("adapters/*/*.map")}
    return found | {"tls": ROOT / "tls/tls.map"}


def headers(apart):
    """Those of weft, or the one of a library of its own."""
    return [path for path in (ROOT / "include/weft").glob("*.h")
            if (path.stem == apart if apart else path.stem not in maps())]


def declared(apart):
    """The functions marked WEFT_API."""
    names = set()
    for header in headers(apart):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for match in re.finditer(r"^WEFT_API\b([^;{]*);", text, re.M):
            names.add(re.search(r"\b(weft_\w+)\s*\(", match.group(1)).group(1))
    return names


def mapped(apart):
    path = maps()[apart] if apart else ROOT / "weft.map"
    text = re.sub(r"#.*", "", path.read_text())
    return set(re.findall(r"\b(weft_\w+)\s*;", text))


def exported(library):
    names = set()
    for line in output("nm", "-D", "--defined-only", library).splitlines():
        kind, name = line.split()[-2:]
        if kind != "A":  # not the name of the version
            names.add(name.split("@")[0])
    return names


def archived(library):
    return {line.split()[-1] for line in
            output("nm", "-g", "--defined-only", library).splitlines()
            if len(line.split()) == 3}


def missing(names, other, why):
    return [f"{name}: {why}" for name in sorted(names - other)]


def symbols(shared, static, apart):
    api, version_map = declared(apart), mapped(apart)
    so = exported(shared)
    yield ("every declaration marked WEFT_API is in the map",
           missing(api, version_map, "declared, not in the map"))
    yield ("every name in the map is declared in a public header",
           missing(version_map, api, "in the map, not declared"))
    yield ("every name in the map is exported",
           missing(version_map, so, "in the map, not exported"))
    yield ("nothing else is exported",
           missing(so, version_map, "exported, not in the map"))
    yield ("names in the static library begin with weft_",
           [name for name in sorted(archived(static))
            if not name.startswith("weft_")])


def hardening(shared):
    segments = output("readelf", "-lW", shared)
    dynamic = output("readelf", "-dW", shared)
    stack = re.search(r"GNU_STACK.*", segments)
    yield ("the library is relocated before it runs, and read-only after",
           [] if "GNU_RELRO" in segments and "BIND_NOW" in dynamic else
           ["no full RELRO"])
    yield ("its stack is not executable",
           [] if stack and "RWE" not in stack.group() else ["executable stack"])
    yield ("its text has no relocations",
           ["TEXTREL"] if "TEXTREL" in dynamic else [])


def main():
    shared, static = sys.argv[1:3]
    apart = sys.argv[3] if sys.argv[3:] else None
    return tap.judge(itertools.chain(symbols(shared, static, apart),
                                     hardening(shared)))


if __name__ == "__main__":
    sys.exit(main())
