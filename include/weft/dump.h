/* SPDX-License-Identifier: MIT */
/*
 * Dump: a report in plain text on what each task of a runtime does, while all
 * tasks go on.
 *
 *	weft: 3 tasks (1 run, 2 wait, 0 ready, 0 not begun), 2 workers
 *	worker 0: runs task 100000005, for 1.52 s at most
 *	worker 1: parked
 *	task 100000000 main (serve), 12.31 s old: waits for 2 tasks of its scope
 *	    weft_scope_end  runtime/task/scope.c:318
 *	    serve  server.c:40
 *	task 100000004 left (move), 12.30 s old: waits to lock mutex 0x7ffd12...
 *	    ...
 *
 * Options of a runtime (struct weft_opts) request a dump without a call:
 *
 * dump_signal	on stderr, when the process gets the signal; not SIGURG or a
 *		signal of a fault, such as SIGSEGV
 * dump_path	to each peer that connects to that Unix stream socket (nc -U
 *		PATH); only the user of the process, or root, may
 * stall_ns	on stderr, when a task has run for that long without a pause,
 *		or no task has been able to go on for that long
 */
#ifndef WEFT_DUMP_H
#define WEFT_DUMP_H

#include <weft/config.h>
#include <weft/runtime.h>

WEFT_BEGIN_DECLS

/*
 * Writes a report to fd.  For each task: its name, function, handle and age;
 * whether it runs, is ready, or what it waits for; and its backtrace, with file
 * and line where the program has debugging information.  Tasks that do the same
 * in the same calls are grouped, and the first ten of a group are listed.  At
 * the end come tasks that wait for each other: a deadlock.  The report is for
 * people, and its form may change.
 *
 * From any thread, which blocks, or from a task, which suspends; neither
 * deadlines nor cancellation end the call.  NULL means the runtime of the
 * calling task; any other runtime must not end before the call has begun.  fd
 * stays the caller's.  No worker has to answer, so a dump also shows where all
 * of them hang.
 *
 * Nothing is stopped.  A task that waits is held for some microseconds, and
 * entries of two tasks may describe different moments.  A thread that
 * computes is interrupted by SIGURG, whose handler is set for that time.  A
 * thread that sleeps in a system call is not: no call is cut short.  The
 * backtrace of such a task ends early where it depends on registers, as in
 * programs that were built without optimization; then the entry says so.  On
 * x86-64 a task that is ready has a backtrace, if it does not begin to run
 * while its stack is copied.  Backtraces need libdw.so.1 of elfutils at run
 * time, and a program that is not static; otherwise one of the first lines
 * says why there are none.
 *
 * Returns 0, -EPERM (NULL outside a task, or called in a future), -EBADF,
 * -ENOMEM, -EAGAIN (no thread could be made for it), or an error of write(2).
 */
WEFT_API int weft_dump(struct weft_runtime *runtime, int fd);

WEFT_END_DECLS

#endif
