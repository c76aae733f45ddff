#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The manual holds every public name in exactly one page, as the headers
declare it; its pages are well formed, lead to each other, and their C compiles
as printed.  TAP.

A comment above each display of a page names its kind:

    .\\" C program       a whole file
    .\\" C functions     after #include <weft/weft.h>
    .\\" C statements    in a function, with AROUND's variables
    .\\" C++ functions   after #include <weft/weft.h>, in each C++
    .\\" not C
"""

import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True

import tap
import test_headers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs/man"
HEADERS = ROOT / "include/weft"
# Macros for the headers' own use.
PLUMBING = {"WEFT_API", "WEFT_WARN_UNUSED", "WEFT_BEGIN_DECLS",
            "WEFT_END_DECLS"}
# Columns of a display, which is indented, on a terminal with 80.
COLUMNS = 67
SECTIONS = {"3": ["NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUES", "ERRORS",
                  "SEE ALSO"],
            "7": ["NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"]}

INCLUDES = """#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>
#pragma GCC diagnostic ignored "-Wunused-function"
"""
INCLUDES_CXX = """#include <iostream>
#include <memory>
#include <string>
#include <weft/weft.h>
"""
AROUND = INCLUDES + """
int fd, r;
ssize_t n;
int64_t result;
char buf[512];
struct weft_runtime *runtime;
struct weft_scope *scope;
int64_t work(void *arg);
int fragment(void);
int fragment(void)
{
%s
return 0;
}
"""


def plain(text):
    """A piece of C with normalized spaces."""
    return re.sub(r"\s*([*(),;])\s*", r"\1", " ".join(text.split()))


# ---- Declarations in the headers ----------------------------------------------


@dataclasses.dataclass
class Group:
    """Functions behind one comment, and the errors that it names."""
    functions: list
    errors: set


@dataclasses.dataclass
class Api:
    functions: dict = dataclasses.field(default_factory=dict)  # prototypes
    macros: dict = dataclasses.field(default_factory=dict)     # parameters
    types: dict = dataclasses.field(default_factory=dict)      # declarations
    members: dict = dataclasses.field(default_factory=dict)    # their types
    groups: list = dataclasses.field(default_factory=list)     # see Group

    def names(self):
        return {**self.functions, **self.macros, **self.types}


def read_functions(api, text):
    start = 0
    for match in re.finditer(r"^WEFT_API\b([^;{]*);", text, re.M):
        words = re.sub(r"\b(?:WEFT_WARN_UNUSED|WEFT__\w+)\b", "",
                       match.group(1))
        result, name, parameters = re.fullmatch(
            r"\s*(.*?)\b(weft_\w+)\s*\((.*)\)\s*", words, re.S).groups()
        before, start = text[start:match.start()], match.end()
        if name.startswith("weft__"):
            continue
        api.functions[name] = (plain(result),
                               [plain(p) for p in parameters.split(",")])
        comments = " ".join(re.findall(r"/\*.*?\*/", before, re.S))
        if comments or not api.groups:
            api.groups.append(Group([], set(re.findall(
                r"(?<!\w)-E[A-Z0-9]+\b", comments))))
        api.groups[-1].functions.append(name)


def read_macros(api, code):
    for match in re.finditer(r"^#define (WEFT_\w+)(\(([^)]*)\))?", code, re.M):
        name, whole, parameters = match.groups()
        if (name.startswith("WEFT__") or name.endswith("_H")
                or name in PLUMBING):
            continue
        api.macros[name] = (
            [p.strip() for p in parameters.split(",")] if whole else None)


def read_types(api, code):
    for match in re.finditer(
            r"^((struct|enum) (weft_[a-z]\w*))\s*(\{(.*?)^\}[^;]*)?;", code,
            re.M | re.S):
        api.types[match.group(1)] = plain(match.group(1))
        inside = match.group(5) or ""
        if match.group(2) == "enum":
            found = re.findall(r"\b(WEFT_\w+)", inside)
        else:
            found = re.findall(r"(?:\(\*)?(\w+)"
                               r"(?:\[[^]]*\]|\)\([^)]*\))?;", inside)
        for member in found:
            if not re.match("private_words|reserved", member):
                api.members.setdefault(match.group(1), []).append(member)
    for match in re.finditer(r"^typedef ([^;]*?(weft_\w+)[^;]*);", code, re.M):
        api.types[match.group(2)] = "typedef " + plain(match.group(1))


def declared():
    api = Api()
    for header in sorted(HEADERS.glob("*.h")):
        text = header.read_text()
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        read_functions(api, text)
        read_macros(api, code)
        read_types(api, code)
    return api


# ---- The text of the pages ----------------------------------------------------


def words_of(line):
    """A macro's words, without roff's escapes and trailing punctuation."""
    words = [quoted or word for quoted, word in
             re.findall(r'"([^"]*)"|(\S+)', line.replace("\\&", ""))]
    while len(words) > 1 and words[-1] in (",", ".", ";", ")", ":"):
        words.pop()
    return words


class Page:
    def __init__(self, path):
        self.path = path
        self.name, self.section = path.name.rsplit(".", 1)
        self.lines = path.read_text().splitlines()
        self.headings = []
        self.parts = {}
        part = []
        for number, line in enumerate(self.lines, 1):
            if line.startswith(".Sh "):
                self.headings.append(line[4:])
                part = self.parts[line[4:]] = []
            elif line.startswith(".") and not line.startswith('.\\"'):
                part.append((number, words_of(line[1:])))

    def macros(self, *parts):
        for heading in parts or self.headings:
            yield from self.parts.get(heading, [])

    def arguments(self, *macros):
        """All words that follow one of those macros, callable ones too."""
        for _, words in self.macros():
            for i, word in enumerate(words[:-1]):
                if word in macros:
                    yield words[i + 1]

    def names(self):
        return [words[1] for _, words in self.macros("NAME")
                if words[0] == "Nm"]

    def declarations(self):
        """From the SYNOPSIS: the line, the name, and its declaration there."""
        result = function = None
        for number, (macro, *words) in self.macros("SYNOPSIS"):
            if macro == "Ft":
                result = plain(" ".join(words))
            elif macro == "Fn":
                yield number, words[0], (result, [plain(w) for w in words[1:]])
                result = None
            elif macro == "Fo":
                function, parameters = words[0], []
            elif macro == "Fa":
                parameters += [plain(w) for w in words]
            elif macro == "Fc":
                yield number, function, (result, parameters)
                result = None
            elif macro == "Fd":
                yield number, words[1], (None, None)
            elif macro == "Vt":
                text = plain(" ".join(words))
                name = re.search(r"weft_\w+", text).group()
                kind = "" if words[0] == "typedef" else words[0] + " "
                yield number, kind + name, text

    def displays(self):
        """Line, mark and text."""
        at = 0
        while at < len(self.lines):
            at += 1
            if not self.lines[at - 1].startswith(".Bd -literal"):
                continue
            mark = re.fullmatch(
                r'\.\\" ((?:not )?C\b.*)', self.lines[at - 2])
            end = self.lines.index(".Ed", at)
            text = "\n".join(self.lines[at:end]) + "\n"
            yield at, mark and mark.group(1), re.sub(
                r"\\(&|e|-)", lambda m: {"&": "", "e": "\\", "-": "-"}[m[1]],
                text)
            at = end


def read_pages():
    return [Page(path) for path in sorted(PAGES.glob("*.[37]"))]


def at(page, number, text):
    return f"docs/man/{page.path.name}:{number}: {text}"


# ---- Rules: each gives its name and its findings ----------------------------


def each_name_in_one_page(api, pages):
    where = {}
    for page in pages:
        for number, name, _ in page.declarations():
            where.setdefault(name, []).append((page, number))
    for name in api.names():
        if name not in where:
            yield f"{name}: in no page's SYNOPSIS"
    for name, places in where.items():
        for page, number in places[1:]:
            yield at(page, number, f"{name} is also in {places[0][0].name}")
        if name not in api.names():
            page, number = places[0]
            yield at(page, number, f"{name} is in no header")


def declared_as_in_the_headers(api, pages):
    for page in pages:
        for number, name, text in page.declarations():
            if name in api.functions:
                expected = api.functions[name]
            elif name in api.macros:
                expected = (None, api.macros[name])
            else:
                expected = api.types.get(name, text)
            if text != expected:
                yield at(page, number, f"{name}: {text}, not {expected}")


def found_by_each_name(api, pages):
    for page in pages:
        names = page.names()
        known = [name for _, name, _ in page.declarations()
                 if name in api.functions or name in api.macros]
        if page.name not in names:
            yield at(page, 1, f"NAME lacks {page.name}")
        for name in sorted(set(known) - set(names)):
            yield at(page, 1, f"NAME lacks {name}")
        for name in sorted(set(names) - set(known) - {page.name}):
            yield at(page, 1, f"{name} is in NAME, not in SYNOPSIS")


def members_are_told_of(api, pages):
    for page in pages:
        listed = {word for _, words in page.macros()
                  if words[:2] == ["It", "Fa"] for word in words[2:]}
        named = set(page.arguments("Dv"))
        for _, name, _ in page.declarations():
            told = named if name.startswith("enum") else listed
            for member in api.members.get(name, []):
                if member not in told:
                    yield at(page, 1, f"nothing on {member} of {name}")


def errors_are_told_of(api, pages):
    for group in api.groups:
        told = set()
        for page in pages:
            if {name for _, name, _ in page.declarations()} & set(
                    group.functions):
                told.update(page.arguments("Er"))
        for error in sorted(group.errors - told):
            yield f"{group.functions[0]}: its page has nothing on {error}"


def references_lead_somewhere(_, pages):
    known = {(name, page.section) for page in pages for name in page.names()}
    for page in pages:
        for number, words in page.macros():
            for i, word in enumerate(words[:-2]):
                target = words[i + 1], words[i + 2]
                if (word == "Xr" and target[0].lower().startswith("weft")
                        and target not in known):
                    yield at(page, number, "no page {}({})".format(*target))


def overview_lists_all(_, pages):
    overview = next(page for page in pages if page.name == "weft")
    listed = set(overview.arguments("Xr"))
    for page in pages:
        if page is not overview and page.name not in listed:
            yield at(overview, 1, f"nothing leads to {page.name}")


def sections_are_there(_, pages):
    for page in pages:
        for heading in SECTIONS[page.section]:
            if heading not in page.headings:
                yield at(page, 1, f"no {heading}")


def installed_by_each_name(_, pages):
    text = (ROOT / "docs/meson.build").read_text()
    lists = {name: re.findall(r"'(\w+)'", links) for name, links in
             re.findall(r"'(\w+\.\d)': \[(.*?)\]", text, re.S)}
    for page in pages:
        links = set(page.names()) - {page.name}
        if page.section == "7":
            links = set()
        if page.path.name not in lists:
            yield at(page, 1, "docs/meson.build does not list it")
            continue
        for name in sorted(links ^ set(lists.pop(page.path.name))):
            yield at(page, 1, f"{name}: NAME and docs/meson.build differ")
    for name in lists:
        yield f"docs/meson.build: there is no {name}"


def no_name_is_reserved_in_cxx(api, pages):
    """Names with two underscores are the compiler's."""
    for name in [*api.names(), *sum(api.members.values(), [])]:
        if "__" in name:
            yield f"{name} has two underscores"
    for page in pages:
        for number, mark, text in page.displays():
            for name in re.findall(r"\w*__\w*", text):
                yield at(page, number, f"{name} has two underscores")


def displays_are_marked(_, pages):
    for page in pages:
        for number, mark, _ in page.displays():
            if mark not in ("C program", "C functions", "C statements",
                            "C++ functions", "not C"):
                yield at(page, number, f"a display of what? {mark}")


def displays_fit(_, pages):
    for page in pages:
        for number, _, text in page.displays():
            for i, line in enumerate(text.splitlines(), number + 1):
                if len(line.expandtabs(8)) > COLUMNS:
                    yield at(page, i, f"more than {COLUMNS} columns")


def mandoc_is_content(_, pages):
    if not shutil.which("mandoc"):
        yield "mandoc is not installed"
        return
    for page in pages:
        done = subprocess.run(
            ["mandoc", "-T", "lint", "-W", "warning", page.path],
            capture_output=True, text=True)
        if done.returncode or done.stdout:
            yield done.stdout.rstrip()


RULES = {
    "every public name is in the SYNOPSIS of one page": each_name_in_one_page,
    "and declared as in the headers": declared_as_in_the_headers,
    "every page has its names in NAME": found_by_each_name,
    "and is installed by each": installed_by_each_name,
    "every member and enumerator is told of": members_are_told_of,
    "every error that a header tells of is": errors_are_told_of,
    "every page has its sections": sections_are_there,
    "references lead to pages": references_lead_somewhere,
    "weft(7) leads to every page": overview_lists_all,
    "no program writes a name with two underscores":
        no_name_is_reserved_in_cxx,
    "displays say what they are": displays_are_marked,
    "and fit": displays_fit,
    "mandoc has no warnings": mandoc_is_content,
}


# Headers of other libraries, which a page's library needs and a machine may
# lack.
OTHERS = re.compile(r"^\.In ((?:hiredis|libpq|curl|nats)\b[\w/-]*\.h)$", re.M)


def lacks_header(page):
    """Whether a header that the page includes is not installed."""
    return any(test_headers.compile_text("gcc", "C11", f"#include <{name}>\n")
               for name in OTHERS.findall("\n".join(page.lines)))


def examples(pages):
    """The code in the pages that is compiled, and its languages."""
    for page in pages:
        if lacks_header(page):
            continue
        for number, mark, text in page.displays():
            if mark == "C functions":
                text = INCLUDES + text
            elif mark == "C statements":
                text = AROUND % text
            elif mark == "C++ functions":
                text = INCLUDES_CXX + text
            if mark != "not C":
                yield (f"{page.path.name}:{number}", text,
                       [language for language in test_headers.LANGUAGES
                        if language.startswith("C++")]
                       if mark == "C++ functions" else ["C11"])


def compiled(text, languages):
    for compiler in test_headers.COMPILERS:
        if not shutil.which(compiler):
            yield f"{compiler} is not installed"
            continue
        for language in languages:
            error = (test_headers.knows(compiler, language)
                     and test_headers.compile_text(compiler, language, text))
            if error:
                yield error


def cases():
    api = declared()
    pages = read_pages()
    for what, rule in RULES.items():
        yield what, list(rule(api, pages))
    for what, text, languages in examples(pages):
        yield f"{what} compiles", list(compiled(text, languages))


if __name__ == "__main__":
    sys.exit(tap.judge(cases()))
