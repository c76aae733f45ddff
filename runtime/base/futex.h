/* SPDX-License-Identifier: MIT */
/*
 * Waiting on a word, for threads that are no workers and for locks.
 */
#ifndef WEFT_RUNTIME_BASE_FUTEX_H
#define WEFT_RUNTIME_BASE_FUTEX_H

#include "runtime/base/atomic.h"

#ifndef WEFT__MODEL

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sleeps while the word is `value`; may return early. */
static inline void weft__futex_wait(weft__atomic(uint32_t) *word,
				    uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static inline void weft__futex_wake(weft__atomic(uint32_t) *word, int threads)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

#endif

#endif
