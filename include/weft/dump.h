/* SPDX-License-Identifier: MIT */
/*
 * Dump: what every task of a runtime does, in words, while all of them go on.
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
 * Options of a runtime ask for it without a call: by a signal (dump_signal), to
 * who connects to a Unix socket (dump_path: nc -U PATH), or when a task does
 * not pause, or none can go on (stall_ns); see struct weft_opts.
 */
#ifndef WEFT_DUMP_H
#define WEFT_DUMP_H

#include <weft/config.h>
#include <weft/runtime.h>

WEFT_BEGIN_DECLS

/*
 * Writes to the descriptor what each task of the runtime is (name, function,
 * handle, age), whether it runs, is ready or what it waits for, and its calls,
 * with file and line where the program has debugging information.  Tasks that
 * do the same in the same calls are told of together, ten of them by name.  At
 * the end, tasks that wait for each other: a deadlock.  It is for people, and
 * its form may change.
 *
 * From any thread, and from a task, which suspends; neither deadlines nor
 * cancellation end the call.  NULL is the runtime of the calling task; another
 * one must not end before the call has begun.  No worker needs to answer:
 * where all hang, it tells where.
 *
 * Nothing is stopped: a task that waits is held for some microseconds, and what
 * is told of two tasks need not have been so at one time.  A task that runs is
 * interrupted by SIGURG, whose handler is set meanwhile.  One that is ready to
 * run has its calls told if it stands still while it is copied.  The calls need
 * elfutils' libdw.so.1 at run time; without it one of the first lines says so.
 *
 * 0, -EPERM (no task, and no runtime; or in a future), -EBADF, -ENOMEM, -EAGAIN
 * (there is no thread for it), or what write() failed with.
 */
WEFT_API int weft_dump(struct weft_runtime *runtime, int fd);

WEFT_END_DECLS

#endif
