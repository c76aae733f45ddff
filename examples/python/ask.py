#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ask - sends standard input to many servers at the same time.

Shows    weft from Python: the runtime has threads of its own, the tasks are in
         C (tasks.c), and Python starts them, waits, and prints each answer.
Run      printf 'GET / HTTP/1.0\\r\\n\\r\\n' |
         examples/python/ask.py build/examples/tasks.so 127.0.0.1:80 [::1]:80
Needs    a build of the shared library
"""

import argparse
import ctypes
import os
import sys
from ctypes import Structure, c_char_p, c_size_t, c_uint64, c_void_p

import weft

ANSWER_BYTES = 1 << 20


class Exchange(Structure):
    """struct exchange of tasks.c."""
    _fields_ = [("address", c_char_p), ("request", c_char_p),
                ("request_bytes", c_size_t), ("answer", c_void_p),
                ("answer_bytes", c_size_t), ("within_ns", c_uint64)]


def describe(result, answer):
    if result < 0:
        return os.strerror(-result)
    line = answer[:result].split(b"\n", 1)[0].strip()
    return f"{result} bytes: {line.decode(errors='replace')}"


def ask_all(library, addresses, request, within_ns):
    """Address and description, in the order of the addresses."""
    with weft.Runtime(library) as runtime:
        started = []
        for address in addresses:
            answer = ctypes.create_string_buffer(ANSWER_BYTES)
            argument = Exchange(
                address.encode(), request, len(request),
                ctypes.addressof(answer), ANSWER_BYTES, within_ns)
            argument.keep = answer  # an address does not keep it alive
            started.append((address, answer, runtime.submit(
                library.ask, argument, b"ask")))
        for address, answer, task in started:
            yield address, describe(task.wait(), answer)


def main():
    parser = argparse.ArgumentParser(description="Asks many servers.")
    parser.add_argument("tasks", help="the library of tasks.c")
    parser.add_argument("address", nargs="+")
    parser.add_argument("--within", type=float, default=10, metavar="SECONDS")
    options = parser.parse_args()
    library = weft.load(options.tasks)
    for address, text in ask_all(
            library, options.address, sys.stdin.buffer.read(),
            int(options.within * 1e9)):
        print(f"{address}: {text}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
