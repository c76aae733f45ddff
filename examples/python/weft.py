# SPDX-License-Identifier: MIT
"""weft from Python: a runtime on threads of its own, and tasks in C.

man 7 weft_foreign says what holds.  tests/tools/test_ctypes.py compares the
structs and prototypes here with the headers.
"""

import ctypes
import errno
import os
import time
from ctypes import (POINTER, Structure, byref, c_char_p, c_int, c_int64,
                    c_size_t, c_uint, c_uint64, c_void_p, sizeof)


class Opts(Structure):
    _fields_ = [("size", c_size_t), ("workers", c_uint), ("tasks_max", c_uint),
                ("stack_bytes", c_size_t), ("shutdown_ns", c_uint64),
                ("ring_entries", c_uint), ("blocking_threads_max", c_uint),
                ("blocking_idle_ns", c_uint64), ("engine", c_uint),
                ("allocator", c_void_p), ("dump_signal", c_int),
                ("dump_path", c_char_p), ("stall_ns", c_uint64)]


class Handle(Structure):
    _fields_ = [("id", c_uint64)]


class TaskOpts(Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p),
                ("stack_bytes", c_size_t), ("flags", c_uint),
                ("reserved", c_uint), ("ret_task", POINTER(Handle))]


STRUCTS = {"weft_opts": Opts, "weft_task": Handle, "weft_task_opts": TaskOpts}
PROTOTYPES = {
    "weft_start": (c_int, POINTER(Opts), POINTER(c_void_p)),
    "weft_stop": (c_int, c_void_p),
    "weft_submit": (c_int, c_void_p, c_void_p, c_void_p, c_size_t,
                    POINTER(TaskOpts)),
    "weft_wait_until": (c_int, c_void_p, Handle, c_uint64, POINTER(c_int64)),
}
LOOK_NS = 100_000_000  # how often a wait looks for Ctrl-C


def load(path):
    """libweft, or a library of tasks that is linked to it.  ctypes.CDLL releases
    the lock of the interpreter during a call, ctypes.PyDLL would not."""
    library = ctypes.CDLL(path)
    for name, (result, *arguments) in PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def check(error):
    if error < 0:
        raise OSError(-error, os.strerror(-error))


class Runtime:
    """with Runtime(library) as runtime: its end cancels the tasks that are left,
    and waits for them."""

    def __init__(self, library, **options):
        self.library = library
        self.opts = Opts(size=sizeof(Opts), **options)
        self.address = c_void_p()
        self.tasks = set()  # what they point to must live as long as they do

    def __enter__(self):
        check(self.library.weft_start(byref(self.opts), byref(self.address)))
        return self

    def __exit__(self, *_):
        check(self.library.weft_stop(self.address))
        self.tasks.clear()

    def submit(self, function, argument, name=None):
        """Starts function(argument): a function in C, and a Structure, whose
        bytes are copied."""
        task = Task(self, argument)
        opts = TaskOpts(sizeof(TaskOpts), name, 0, 0, 0,
                        ctypes.pointer(task.handle))
        check(self.library.weft_submit(
            self.address, ctypes.cast(function, c_void_p), byref(argument),
            sizeof(argument), byref(opts)))
        self.tasks.add(task)
        return task


class Task:
    def __init__(self, runtime, argument):
        self.runtime, self.argument, self.handle = runtime, argument, Handle()

    def wait(self):
        """Returns what the task returned, once."""
        result, error = c_int64(), -errno.ETIMEDOUT
        while error == -errno.ETIMEDOUT:
            # Python runs handlers of signals between two calls only.
            error = self.runtime.library.weft_wait_until(
                self.runtime.address, self.handle,
                time.monotonic_ns() + LOOK_NS, byref(result))
        check(error)
        self.runtime.tasks.discard(self)
        return result.value
