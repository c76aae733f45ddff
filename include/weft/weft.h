/* SPDX-License-Identifier: MIT */
/*
 * weft - tasks written as plain sequential C, suspended instead of blocking.
 *
 * This header includes the rest.  The conventions that hold for all of it:
 *
 * Errors	A failure is a negative errno; `errno` itself is never used.
 *		Success is 0, a count, or a descriptor.  Outputs named ret_*
 *		are untouched on failure.
 * Suspending	A call that says it suspends must be made inside a task; made
 *		elsewhere, or in a child after fork(), it returns -EPERM.  It
 *		returns -ECANCELED once the task is cancelled, and -ETIMEDOUT
 *		when the deadline of the innermost WEFT_WITHIN block passed.
 *		If an operation finished all the same, its result is returned
 *		and the next call reports the cancellation.
 * Threads	A task may resume on another thread.  Do not keep the address
 *		of errno or of a thread-local, nor a pthread mutex, across a
 *		suspending call, unless the task is WEFT_PINNED.
 * Time		Nanoseconds of CLOCK_MONOTONIC, in uint64_t.
 */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <weft/addr.h>
#include <weft/config.h>
#include <weft/io.h>
#include <weft/net.h>
#include <weft/runtime.h>
#include <weft/task.h>
#include <weft/time.h>

#endif
