/* SPDX-License-Identifier: MIT */
/*
 * weft - tasks written as plain sequential C, suspended instead of blocking.
 *
 * This header includes all others but curl.h, nats.h, pq.h, redis.h and tls.h,
 * which belong to libraries of their own.  It is for C11 or later and C++11 or
 * later, with gcc or clang.  These conventions hold for all calls:
 *
 * Errors	A failure is a negative errno; `errno` itself is never used.
 *		Success is 0, a count, or a descriptor.  On failure the outputs
 *		named ret_* are unchanged.  strerror(-r) gives the message.
 * Suspending	A call that suspends must be made inside a task.  Outside a
 *		task, or in a child after fork(), it returns -EPERM.  It returns
 *		-ECANCELED once the task is cancelled, and -ETIMEDOUT once the
 *		deadline of the innermost WEFT_WITHIN block has passed.  If the
 *		operation was done all the same, the call returns its result,
 *		and the next call reports the cancellation.
 * Forking	A child after fork() must end by exec() or _exit(); it must not
 *		return from the task that forked.
 * Blocks	WEFT_SCOPE, WEFT_SUPERVISE, WEFT_RACE, WEFT_WITHIN and
 *		WEFT_SHIELD are loops that run once: break and continue leave
 *		the block, and no loop around it.  A block may also be left by
 *		return, goto or an exception of C++, but never by longjmp,
 *		pthread_exit or exit.
 *		A block outside a task ends the process with a message.
 * Threads	Tasks run in parallel on the threads of the workers, so data
 *		that they share needs a lock or atomics.  A short section under
 *		a pthread mutex is fine if nothing in it suspends.  With one
 *		worker, a switch of tasks happens only in calls that suspend.
 *
 *		A task may resume on another thread.  Across a suspending call,
 *		do not hold a pthread mutex, nor keep the address of errno or of
 *		a thread-local, unless the task is WEFT_PINNED.
 * Options	Begin with the initialiser of the struct, which sets `size`; a
 *		struct that is all zero gives -EINVAL.  NULL: the defaults.
 * Memory	Objects are structs that you place where you like; there is
 *		nothing to free unless a comment says so.  The buffers given to
 *		a call are the caller's again when the call returns.
 * Mistakes	A broken rule of an object, such as to unlock a mutex that the
 *		caller does not hold, ends the process with a message.
 * Time		Nanoseconds of CLOCK_MONOTONIC, in uint64_t.
 */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <weft/addr.h>
#include <weft/allocator.h>
#include <weft/blocking.h>
#include <weft/broadcast.h>
#include <weft/chan.h>
#include <weft/config.h>
#include <weft/copy.h>
#include <weft/dial.h>
#include <weft/dir.h>
#include <weft/dump.h>
#include <weft/file.h>
#include <weft/fs.h>
#include <weft/follow.h>
#include <weft/fs_watch.h>
#include <weft/future.h>
#include <weft/io.h>
#include <weft/loop.h>
#include <weft/task_local.h>
#include <weft/net.h>
#include <weft/process.h>
#include <weft/pipeline.h>
#include <weft/resolve.h>
#include <weft/runtime.h>
#include <weft/scope.h>
#include <weft/select.h>
#include <weft/serve.h>
#include <weft/signal.h>
#include <weft/stream.h>
#include <weft/sync.h>
#include <weft/task.h>
#include <weft/time.h>
#include <weft/terminal.h>
#include <weft/udp.h>
#include <weft/walk.h>
#include <weft/wall.h>

#endif
