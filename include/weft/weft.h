/* SPDX-License-Identifier: MIT */
/*
 * weft - tasks written as plain sequential C, suspended instead of blocking.
 *
 * This header includes the rest; it is for C11 or later and for C++11 or later,
 * by gcc or clang.  The conventions that hold for all of it:
 *
 * Errors	A failure is a negative errno; `errno` itself is never used.
 *		Success is 0, a count, or a descriptor.  Outputs named ret_*
 *		are untouched on failure.  strerror(-r) has the words.
 * Suspending	A call that says it suspends must be made inside a task; made
 *		elsewhere, or in a child after fork(), it returns -EPERM.  It
 *		returns -ECANCELED once the task is cancelled, and -ETIMEDOUT
 *		when the deadline of the innermost WEFT_WITHIN block passed.
 *		If an operation finished all the same, its result is returned
 *		and the next call reports the cancellation.
 * Forking	A child after fork() ends by exec() or _exit(); it must not
 *		return from the task that forked.
 * Blocks	WEFT_SCOPE, WEFT_SUPERVISE, WEFT_RACE, WEFT_WITHIN and
 *		WEFT_SHIELD are loops that run once: break and continue leave
 *		the block, and no loop around it.  Leave them by those, return
 *		or goto, never by longjmp, pthread_exit or exit.  Outside of a
 *		task they end the process with a message.
 * Threads	Tasks run in parallel, on as many threads as the runtime has
 *		workers, so what they share needs a lock or atomics.  A short
 *		section under a pthread mutex is fine if nothing in it suspends.
 *		With one worker, tasks change only in calls that suspend.
 *
 *		A task may resume on another thread.  Do not keep the address
 *		of errno or of a thread-local, nor a pthread mutex, across a
 *		suspending call, unless the task is WEFT_PINNED.
 * Options	Begin with the initialiser of their kind, which sets `size`; a
 *		struct that is all zero gives -EINVAL.  NULL: the defaults.
 * Time		Nanoseconds of CLOCK_MONOTONIC, in uint64_t.
 */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <weft/addr.h>
#include <weft/blocking.h>
#include <weft/broadcast.h>
#include <weft/chan.h>
#include <weft/config.h>
#include <weft/dump.h>
#include <weft/future.h>
#include <weft/io.h>
#include <weft/task_local.h>
#include <weft/net.h>
#include <weft/runtime.h>
#include <weft/scope.h>
#include <weft/select.h>
#include <weft/signal.h>
#include <weft/stream.h>
#include <weft/sync.h>
#include <weft/task.h>
#include <weft/time.h>

#endif
