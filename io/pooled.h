/* SPDX-License-Identifier: MIT */
/*
 * Pooled - calls on files that may wait for a disk or a server and that no ring
 * carries out, or several in one step, on a thread of the blocking pool, in a
 * lane of their own.
 *
 *	the task                            a thread of the pool
 *	links itself to the descriptor,
 *	  if the call is made on one
 *	asks for a thread, suspends  -----> makes the calls
 *	unlinks itself             <------- the result
 *
 * A task that is interrupted before its job has begun leaves without it.  One
 * whose job has begun waits for its end.  If no thread can be made the calling
 * thread does the job itself.
 *
 * Calls that may wait for ever, as for the other end of a FIFO, are apart:
 * io/request/waits.h.
 */
#ifndef WEFT_IO_POOLED_H
#define WEFT_IO_POOLED_H

#include <stdint.h>

#include <weft/task.h>

struct weft_runtime;

/* Runs fn(arg): its result, or -EPERM, -ECANCELED, -ETIMEDOUT, -ENOMEM without
 * having run it. */
int64_t weft__pooled(weft_fn fn, void *arg);

/* The same on a descriptor, whose close waits for the end: also -EBADF. */
int64_t weft__pooled_on(int fd, weft_fn fn, void *arg);

/* Runs it whatever the task is to do, unless there is no task: cleaning up. */
int64_t weft__pooled_shielded(weft_fn fn, void *arg);

/* One system call, by its number (SYS_...), in the pool. */
enum { WEFT__WORDS = 6 };

static inline long weft__word(const void *pointer)
{
	return (long)(uintptr_t)pointer;
}

int64_t weft__pooled_call(long number, const long words[WEFT__WORDS]);
int64_t weft__pooled_call_on(int fd, long number,
			     const long words[WEFT__WORDS]);

#define WEFT__CALL(number, ...) \
	weft__pooled_call(number, (const long[WEFT__WORDS]){ __VA_ARGS__ })
#define WEFT__CALL_ON(fd, number, ...)  \
	weft__pooled_call_on(fd, number, \
			     (const long[WEFT__WORDS]){ fd, __VA_ARGS__ })

#endif
