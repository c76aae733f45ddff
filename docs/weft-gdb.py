# SPDX-License-Identifier: MIT
"""Tasks in gdb, in a process or a core file: which call each of them waits in.

    gdb -x weft-gdb.py -p PID           or: -x weft-gdb.py PROGRAM CORE

    weft tasks      list every living task, with the call it waits in
    weft task N     select task N: bt, up and info locals show it; frame #0
                    remains the thread's
    weft task       select the thread again

A waiting task is on no thread, so gdb does not see it.  Its stack has all that
gdb needs (runtime/stack/context.h); the unwinder below continues there.

Needs gdb 13 or newer, x86-64, and a libweft with debugging symbols, as ./run
build makes it.  Core files must be the kernel's: those of gdb 13's gcore lack
the stacks of tasks whose guards were made with MADV_GUARD_INSTALL.
"""

import gdb
import gdb.unwinder

CHUNK_BITS = 12  # runtime/sched/runtime.h
PARKED, DONE, FREE = 1 << 0, 1 << 2, 1 << 9  # runtime/sched/task.h


class TaskUnwinder(gdb.unwinder.Unwinder):
    """Makes the chosen task the caller of the innermost frame."""

    def __init__(self):
        super().__init__("weft-task")
        self.sp = None

    def choose(self, sp):
        self.sp = sp
        gdb.invalidate_cached_frames()

    def __call__(self, pending):
        if self.sp is None or pending.level() != 0:
            return None
        words = gdb.Value(self.sp).cast(
            gdb.lookup_type("unsigned long").pointer())
        frame = gdb.unwinder.FrameId(
            pending.read_register("rsp"), pending.read_register("rip"))
        info = pending.create_unwind_info(frame)
        info.add_saved_register("rbp", words[1])
        info.add_saved_register("rip", words[2])
        info.add_saved_register("rsp", gdb.Value(self.sp + 24))
        return info


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


if not hasattr(gdb.unwinder, "FrameId"):  # since gdb 14
    gdb.unwinder.FrameId = FrameId

UNWINDER = TaskUnwinder()
gdb.unwinder.register_unwinder(None, UNWINDER, replace=True)


def home():
    """The file that has weft's code: the library or, with a static one, the
    program."""
    files = [objfile.filename or "?" for objfile in gdb.objfiles()]
    libraries = [name for name in files if "/libweft.so" in name]
    return (libraries or files or ["no file"])[0]


def require_symbols():
    """Refuses, with a sentence, what would find nothing."""
    if not gdb.selected_inferior().threads():
        raise gdb.GdbError("there is no process and no core file: give gdb "
                           "-p PID, or PROGRAM CORE")
    try:
        gdb.lookup_type("struct weft__task")
        gdb.lookup_type("struct weft__worker")
    except gdb.error:
        raise gdb.GdbError(
            f"{home()} has no debugging symbols of weft, which describe its "
            "tasks: build weft with -g, as ./run build does, and do not strip "
            "it, or load them with symbol-file") from None


def workers():
    """The workers of all runtimes, each with the number of its thread."""
    require_symbols()
    found, reason = False, "no thread is a worker of weft: no runtime runs"
    before = gdb.selected_thread()
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        try:
            worker = gdb.parse_and_eval("weft__worker_local")
        except gdb.error as error:
            # Of all threads, if gdb cannot read thread-locals.
            reason = f"no worker of weft is found: {error}"
            continue  # a thread without weft's thread-local
        if worker:
            found = True
            yield thread.num, worker
    if before:
        before.switch()
    if not found:
        raise gdb.GdbError(reason)


def records(runtime):
    slabs = runtime["tasks"]
    for index in range(int(slabs["used"])):
        chunk = slabs["chunks"][index >> CHUNK_BITS]
        task = chunk + (index & ((1 << CHUNK_BITS) - 1))
        if not int(task["state"]) & (DONE | FREE):
            yield index, task


def tasks():
    """Every living task, with its number and its thread, or None."""
    running, runtimes = {}, {}
    for thread, worker in workers():
        running[int(worker["current"])] = thread
        runtimes[int(worker["runtime"])] = worker["runtime"]
    for runtime in runtimes.values():
        for index, task in records(runtime):
            yield index, task, running.get(int(task))


def call(task):
    """The outermost public call that the task is in; public calls within it are
    the library's own."""
    UNWINDER.choose(int(task["sp"]))
    found, frame = "?", gdb.newest_frame().older()
    while frame:
        name = frame.name() or ""
        if name.startswith("weft_") and not name.startswith("weft__"):
            found = name
        frame = frame.older()
    UNWINDER.choose(None)
    return found


def state(task, thread):
    if thread is not None:
        return f"runs on thread {thread}"
    if not task["stack"]:
        return "has not begun"
    if not int(task["state"]) & PARKED:
        return "is ready to run"
    return f"waits in {call(task)}"


class Weft(gdb.Command):
    """Tasks of weft."""

    def __init__(self):
        super().__init__("weft", gdb.COMMAND_STACK, prefix=True)


class WeftTasks(gdb.Command):
    """List the living tasks."""

    def __init__(self):
        super().__init__("weft tasks", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        for index, task, thread in tasks():
            function = task["fn"].format_string(symbols=True, address=False)
            if task["name"]:
                function = f"{task['name'].string()} {function}"
            print(f"{index:6}  {function}: {state(task, thread)}")


class WeftTask(gdb.Command):
    """weft task [N]: select a task, or the thread again."""

    def __init__(self):
        super().__init__("weft task", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        UNWINDER.choose(None)
        if not argument:
            return
        for index, task, thread in tasks():
            if index == int(argument):
                break
        else:
            raise gdb.GdbError(f"no task {argument}")
        if thread is not None:
            raise gdb.GdbError(f"it runs: thread {thread}")
        if not task["stack"]:
            raise gdb.GdbError("it has not begun")
        UNWINDER.choose(int(task["sp"]))
        gdb.newest_frame().older().select()


Weft()
WeftTasks()
WeftTask()
