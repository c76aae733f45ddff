# SPDX-License-Identifier: MIT
"""Tasks in gdb: what each of them waits for, in a process or a core file.

    gdb -x weft-gdb.py -p PID           or: -x weft-gdb.py PROGRAM CORE

    weft tasks      every task that lives, with the call it waits in
    weft task N     look at task N from here on: bt, up, info locals; frame #0
                    remains that of the thread
    weft task       look at the thread again

A task that waits is on no thread, so gdb does not see it.  But its stack has
all that gdb needs (runtime/stack/context.h); an unwinder goes on from there.

Needs gdb 13 or newer, x86-64, and a libweft with debugging symbols, as ./run
build makes it.  Of core files those of the kernel will do; those of gdb 13's
gcore have no stacks of tasks where their guards are MADV_GUARD_INSTALL's.
"""

import gdb
import gdb.unwinder

CHUNK_BITS = 12  # runtime/sched/runtime.h
PARKED, DONE, FREE = 1 << 0, 1 << 2, 1 << 9  # runtime/sched/task.h


class TaskUnwinder(gdb.unwinder.Unwinder):
    """The caller of the innermost frame is the task that was chosen."""

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


def workers():
    """Those of all runtimes, with the number of their thread."""
    before = gdb.selected_thread()
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        try:
            worker = gdb.parse_and_eval("weft__worker_local")
        except gdb.error:
            continue  # of a thread that has none
        if worker:
            yield thread.num, worker
    before.switch()


def records(runtime):
    slabs = runtime["tasks"]
    for index in range(int(slabs["used"])):
        chunk = slabs["chunks"][index >> CHUNK_BITS]
        task = chunk + (index & ((1 << CHUNK_BITS) - 1))
        if not int(task["state"]) & (DONE | FREE):
            yield index, task


def tasks():
    """Each with its number, and the thread it runs on or None."""
    running, runtimes = {}, {}
    for thread, worker in workers():
        running[int(worker["current"])] = thread
        runtimes[int(worker["runtime"])] = worker["runtime"]
    for runtime in runtimes.values():
        for index, task in records(runtime):
            yield index, task, running.get(int(task))


def call(task):
    """The call of the library that the task made: those within it are its own
    affair, and it calls nobody back."""
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
    """Lists the tasks that live."""

    def __init__(self):
        super().__init__("weft tasks", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        for index, task, thread in tasks():
            function = task["fn"].format_string(symbols=True, address=False)
            if task["name"]:
                function = f"{task['name'].string()} {function}"
            print(f"{index:6}  {function}: {state(task, thread)}")


class WeftTask(gdb.Command):
    """weft task [N]: look at a task, or at the thread again."""

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
