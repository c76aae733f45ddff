#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_ctypes.py LIBWEFT.SO: examples/python/weft.py has the structs and the
prototypes of the headers, and weft does in a process of Python what
weft_foreign(7) says.  TAP."""

import ctypes
import faulthandler
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import test_manual
from smoke_kit import expect, expect_equal, test_all

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(sys.argv[1]).resolve()
PYTHON = ROOT / "examples/python"
sys.path.append(str(PYTHON))

import ask
import weft

CALLS = 100
# A type of C, and that of ctypes.
TYPES = {"int": ctypes.c_int, "int64_t *": ctypes.POINTER(ctypes.c_int64),
         "size_t": ctypes.c_size_t, "weft_nsec": ctypes.c_uint64,
         "weft_fn": ctypes.c_void_p, "const void *": ctypes.c_void_p,
         "struct weft_runtime *": ctypes.c_void_p,
         "struct weft_runtime **": ctypes.POINTER(ctypes.c_void_p),
         "struct weft_task": weft.Handle,
         "const struct weft_opts *": ctypes.POINTER(weft.Opts),
         "const struct weft_task_opts *": ctypes.POINTER(weft.TaskOpts)}
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))


class Call(ctypes.Structure):
    _fields_ = [("fn", FUNCTION), ("number", ctypes.c_int64)]


def compiled(directory, *arguments):
    out = pathlib.Path(directory, "out")
    subprocess.run(["cc", f"-I{ROOT}/include", "-o", out, *arguments],
                   check=True)
    return out


# ---- Layouts ------------------------------------------------------------------


def layout_in_c(name, fields, header):
    """The size of a struct; then the offset and the size of each field."""
    lines = [f'#include "{header}"', "#include <stdio.h>", "int main(void) {",
             f'printf("%zu", sizeof(struct {name}));']
    lines += [f'printf(" %zu %zu", offsetof(struct {name}, {field}), '
              f"sizeof(((struct {name} *)0)->{field}));" for field in fields]
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory, "layout.c")
        source.write_text("\n".join([*lines, "}\n"]))
        # It includes the example's source, which calls weft.
        program = compiled(directory, source, LIBRARY,
                           f"-Wl,-rpath,{LIBRARY.parent}")
        return [int(n) for n in subprocess.check_output([program]).split()]


def layout_in_python(struct):
    numbers = [ctypes.sizeof(struct)]
    for field in fields_of(struct):
        place = getattr(struct, field)
        numbers += [place.offset, place.size]
    return numbers


def fields_of(struct):
    return [field for field, _ in struct._fields_]


def structs_are_those_of_the_headers():
    members = test_manual.declared().members
    for name, struct in weft.STRUCTS.items():
        fields = fields_of(struct)
        expect_equal([field for field in fields if field != "reserved"],
                     members[f"struct {name}"], name)
        expect_equal(layout_in_python(struct),
                     layout_in_c(name, fields, "weft/weft.h"), name)


def exchange_is_that_of_the_tasks():
    expect_equal(layout_in_python(ask.Exchange),
                 layout_in_c("exchange", fields_of(ask.Exchange),
                             PYTHON / "tasks.c"), "exchange")


def prototypes_are_those_of_the_headers():
    functions = test_manual.declared().functions
    types = {test_manual.plain(c): python for c, python in TYPES.items()}

    def translated(parameter):
        """Without the parameter's name."""
        return types[test_manual.plain(
            parameter[:len(parameter) - len(name_of(parameter))])]

    def name_of(parameter):
        return test_manual.re.search(r"\w+$", parameter).group()

    for name, prototype in weft.PROTOTYPES.items():
        result, parameters = functions[name]
        expect_equal(prototype, (types[result], *map(translated, parameters)),
                     name)


# ---- Python beneath weft, and weft beneath Python ------------------------------


def doubled(number):
    return FUNCTION(lambda arg: [arg[0] * 2 for _ in range(100)][number])


def functions_of_python_run_in_the_pool():
    with tempfile.TemporaryDirectory() as directory:
        library = weft.load(compiled(
            directory, "-shared", "-fPIC", ROOT / "tests/tools/test_ctypes.c",
            LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}"))
    with weft.Runtime(library, workers=2) as runtime:
        tasks = [runtime.submit(library.call_in_pool, Call(doubled(i), i))
                 for i in range(CALLS)]
        expect_equal([task.wait() for task in tasks],
                     [2 * i for i in range(CALLS)], "results")


def function_of_python_that_does_not_wait_may_be_a_task():
    with weft.Runtime(weft.load(LIBRARY), workers=2) as runtime:
        functions = [doubled(i) for i in range(CALLS)]
        tasks = [runtime.submit(function, ctypes.c_int64(i))
                 for i, function in enumerate(functions)]
        expect_equal([task.wait() for task in tasks],
                     [2 * i for i in range(CALLS)], "results")


def child_of_fork_may_start_a_runtime_of_its_own():
    library = weft.load(LIBRARY)
    function = doubled(0)
    with weft.Runtime(library, workers=2) as outer:
        child = os.fork()
        if child == 0:
            with weft.Runtime(library, workers=2) as inner:
                result = inner.submit(function, ctypes.c_int64(20)).wait()
            os._exit(result)
        expect_equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 40,
                     "the child")
        expect_equal(outer.submit(function, ctypes.c_int64(3)).wait(), 6,
                     "the parent")


def fault_handler_of_python_reports_a_fault():
    """weft's handler passes on what is none of a task's stack."""
    def fault():
        faulthandler.enable()
        with weft.Runtime(weft.load(LIBRARY), workers=1):
            ctypes.string_at(0)

    output, end = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(end, 2)
        fault()
    os.close(end)
    with open(output, encoding="utf-8", errors="replace") as stderr:
        said = stderr.read()
    expect_equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
                 -signal.SIGSEGV, "the end")
    expect("Fatal Python error: Segmentation fault" in said, "it said", said)


if __name__ == "__main__":
    sys.exit(test_all([structs_are_those_of_the_headers,
                       exchange_is_that_of_the_tasks,
                       prototypes_are_those_of_the_headers,
                       functions_of_python_run_in_the_pool,
                       function_of_python_that_does_not_wait_may_be_a_task,
                       child_of_fork_may_start_a_runtime_of_its_own,
                       fault_handler_of_python_reports_a_fault]))
