/* SPDX-License-Identifier: MIT */
/*
 * Waits - system calls that may wait for ever, each on a thread of the blocking
 * pool, which a signal gets out of it (io/os/interrupt.h).
 *
 *	the task                            a thread of the pool
 *	asks for a thread, suspends  -----> makes the call
 *	is interrupted: sends the
 *	  signal, again and again    -----> ... -EINTR
 *	goes on                      <----- the result, if there is one
 *
 * A ring is no place for them.  The kernel has few threads for files, four for
 * each processor: as many calls that wait would keep all others from their
 * disks, also the ones that they wait for.  For the same reason they are given
 * half of the pool's threads, at most; the ring has the rest.
 *
 * Without a signal (weft__interrupt_works()) the ring has all of them.
 */
#ifndef WEFT_IO_REQUEST_WAITS_H
#define WEFT_IO_REQUEST_WAITS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <weft/task.h>

/* Runs fn(arg), which returns -EINTR after a signal, and is called again if
 * that was one of the program's.  *ret_ran: was it called?  The result is its
 * own, or why the task was interrupted: -ECANCELED or -ETIMEDOUT.  If it was
 * not called, that, or -EAGAIN or -ENOMEM: there is no thread for it. */
int64_t weft__waits_run(weft_fn fn, void *arg, bool *ret_ran);

/* Is that why a task was interrupted? */
static inline bool weft__waits_was_interrupted(int64_t result)
{
	return result == -ECANCELED || result == -ETIMEDOUT;
}

#endif
