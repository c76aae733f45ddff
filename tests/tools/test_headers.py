#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each public header compiles alone, in C11 and each C++ from 2011 on, by gcc and
clang; and so do uses of all macros (MACROS).  The C of README.md
compiles as printed, in C11.  An ignored result causes a warning.  TAP."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True

import tap

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INCLUDE = ROOT / "include"
FLAGS = ["-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{INCLUDE}"]
LOOK = ["-fsyntax-only"]
# gcc warns of ignored results only when it generates code.
COMPILE = ["-S", "-o", "/dev/null"]
# Where there is little time, the oldest and the newest.
YEARS = ["11", "14", "17", "20", "2b"][::4 if "WEFT_TEST_FEW" in os.environ else 1]
LANGUAGES = {"C11": ["-x", "c", "-std=c11", "-Wshadow", "-Wstrict-prototypes",
                     "-D_GNU_SOURCE"],
             "strict C11": ["-x", "c", "-std=c11", "-Wpedantic"],
             **{f"C++{year}": ["-x", "c++", f"-std=c++{year}", "-Wshadow",
                               "-Wold-style-cast", "-Wpedantic"]
                for year in YEARS}}
COMPILERS = ["gcc", "clang"]
README = ROOT / "README.md"
MACROS = [HERE / "test_headers.c", HERE / "test_headers_tls.c"]
# The code around a fragment of README.md.
AROUND = """#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>
int fd, left, right, r;
ssize_t n;
int64_t result;
char buf[512];
sigset_t signals;
weft_fn fetch;
struct job { int number; } job;
void work_on(struct job *job);
int fragment(void);
int fragment(void)
{
%s
return 0;
}
"""
# Variables of a program, which no code of the headers may shadow.
OWN_NAMES = """arg at block bytes cases count data error fd first fn item length
literal n name now ns once opts owner poll_fn r result room scope self size start
state task text to type unit value within""".split()
# A task that was not started leaves its descriptor to the caller.
UNSEEN = """#include <weft/weft.h>

int64_t serve(void *arg);
void start(struct weft_scope *scope, int fd);
void start(struct weft_scope *scope, int fd)
{
	WEFT_GO(scope, serve, fd);
}
"""


# Of an array only a pointer would be copied.
ARRAY = """#include <weft/weft.h>

static char fixed[8];
int64_t serve(void *arg);
int start(struct weft_scope *scope);
int start(struct weft_scope *scope)
{
	char name[8] = "";
	const char text[] = "text";
	struct { char name[8]; } in = { "" };

	(void)fixed, (void)name, (void)text, (void)in;
	return %s(scope, serve, %s);
}
"""
# The size of a pointer is not that of its array.
ROOM = """#include <weft/weft.h>

static long fixed[4];
%s at_file_scope = %s(fixed);
void init(long *pointer, %s *ret_object);
void init(long *pointer, %s *ret_object)
{
	long room[4];
	%s object = %s(%s);

	(void)pointer, (void)room, (void)at_file_scope;
	*ret_object = object;
}
"""
# Of an object of C++ only the bytes would be copied.
OBJECT = """#include <weft/weft.h>

struct Name {
	char *text;
	Name(const Name &);
	~Name();
};
int64_t serve(void *arg);
int start(struct weft_scope *scope, %s name);
int start(struct weft_scope *scope, %s name)
{
	return %s(scope, serve, name);
}
"""
ARRAYS = ["name", "text", "fixed", "in.name"]


# Words of the headers' own, which no program writes.
NOT_FOR_PROGRAMS = re.compile(
    r"WEFT__|WEFT_\w+_H$|WEFT_(API|WARN_UNUSED|BEGIN_DECLS|END_DECLS)$")
# A compiler too old for a standard does not know its name.
UNKNOWN = re.compile(r"unrecognized command-line option|invalid value '")


def macros_left_out():
    """The macros that no file of MACROS uses."""
    used = "".join(path.read_text() for path in MACROS)
    return [name for header in sorted(INCLUDE.glob("weft/*.h"))
            for name in re.findall(r"^#define (WEFT_\w+)", header.read_text(),
                                   re.M)
            if not NOT_FOR_PROGRAMS.match(name)
            and not re.search(rf"\b{name}\b", used)]


def compile_text(compiler, language, text, how=LOOK):
    done = subprocess.run(
        [compiler, *how, *FLAGS, *LANGUAGES[language], "-"],
        input=text, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def printed():
    """The C of README.md; a text that begins with #include is a program."""
    for number, text in enumerate(
            re.findall(r"^```c\n(.*?)^```$", README.read_text(),
                       re.M | re.S), 1):
        if not text.startswith("#include"):
            text = AROUND % text
        yield f"README.md's C, number {number}", text


def cases():
    for header in sorted(INCLUDE.glob("weft/*.h")):
        name = f"<weft/{header.name}>"
        # Included twice, to test the guard.
        yield f"{name} alone", f"#include {name}\n" * 2, LANGUAGES
    for path in MACROS:
        yield f"the macros in {path.name}", path.read_text(), [
            x for x in LANGUAGES if x != "strict C11"]
    own = "".join(f"extern int {name};\n" for name in OWN_NAMES)
    yield ("a program's own names", own + "#include <weft/weft.h>\n",
           [x for x in LANGUAGES if x != "strict C11"])
    for what, text in printed():
        yield what, text, ["C11"]


def refused(compiler, language):
    """Empty if an ignored result is refused, otherwise the reason."""
    said = compile_text(compiler, language, UNSEEN, COMPILE)
    return "" if "unused-result" in said else f"not refused: {said}\n"


def arrays_refused(compiler, language):
    """Empty if every array is refused with a sentence, otherwise what was not."""
    wrong = ""
    for macro in "WEFT_GO", "WEFT_GO_FUTURE":
        for array in ARRAYS:
            said = compile_text(compiler, language, ARRAY % (macro, array))
            if "the value is copied, but an array is not" not in said:
                wrong += f"{macro} of {array} is not refused: {said}\n"
        good = compile_text(compiler, language, ARRAY % (macro, "&name[0]"))
        if good:
            wrong += f"{macro} of a pointer: {good}\n"
    return wrong


def objects_refused(compiler, language):
    """Empty if an object that a program must copy itself is refused."""
    wrong = ""
    for macro in "WEFT_GO", "WEFT_GO_FUTURE":
        said = compile_text(compiler, language,
                            OBJECT % ("const Name &", "const Name &", macro))
        if "the value is copied byte by byte" not in said:
            wrong += f"{macro} of an object is not refused: {said}\n"
        wrong += compile_text(compiler, language,
                              OBJECT % ("Name *", "Name *", macro))
    return wrong


def pointers_refused(compiler, language):
    """Empty if an array is taken for room, and no pointer."""
    wrong = ""
    for kind, macro in (("struct weft_chan", "WEFT_CHAN_INIT"),
                        ("struct weft_broadcast", "WEFT_BROADCAST_INIT")):
        text = ROOM % (kind, macro, kind, kind, kind, macro, "%s")
        # Not by the compiler's warning alone, which a program may not ask for.
        said = compile_text(compiler, language, text % "pointer")
        if not re.search("need an array, not a|weft__elements_of_array", said):
            wrong += f"{macro} takes a pointer: {said}\n"
        for room in "room", "fixed":
            wrong += compile_text(compiler, language, text % room)
    return wrong


def checks():
    """All checks, each with a function that returns its error messages."""
    for what, text, languages in cases():
        for language in languages:
            yield what, language, lambda *to, text=text: compile_text(*to, text)
    for language in LANGUAGES:
        yield "a result that nobody sees is refused", language, refused
        yield "an array is refused", language, arrays_refused
        yield "a pointer is no room", language, pointers_refused
        if "C++" in language:
            yield ("an object with a destructor is refused", language,
                   objects_refused)


@functools.lru_cache(None)
def knows(compiler, language):
    return not UNKNOWN.search(compile_text(compiler, language, ""))


def claims():
    yield "every macro is in use", [f"{name} is in none of MACROS"
                                    for name in macros_left_out()]
    for what, language, check in checks():
        for compiler in COMPILERS:
            error = why = ""
            if not shutil.which(compiler):
                error = f"{compiler} is not installed"
            elif not knows(compiler, language):
                why = f" # SKIP {compiler} does not know {language}"
            else:
                error = check(compiler, language)
            yield (f"{what}, {language}, {compiler}{why}",
                   error.splitlines())


if __name__ == "__main__":
    sys.exit(tap.judge(claims()))
