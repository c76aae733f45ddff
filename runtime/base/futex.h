/* SPDX-License-Identifier: MIT */
/*
 * Waits on a word, for threads that are no workers and for locks.
 */
#ifndef WEFT_RUNTIME_BASE_FUTEX_H
#define WEFT_RUNTIME_BASE_FUTEX_H

#include "runtime/base/atomic.h"

#ifdef WEFT__MODEL

/* Defined by the models; in them time stands still. */
static inline void weft__futex_wait(weft__atomic(uint32_t) *word,
				    uint32_t value);

static inline void weft__futex_wait_for(weft__atomic(uint32_t) *word,
					uint32_t value, uint64_t wait_ns)
{
	(void)wait_ns;
	weft__futex_wait(word, value);
}

#else

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while the word is `value`; may return early. */
static inline void weft__futex_wait(weft__atomic(uint32_t) *word,
				    uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

/* The same, for wait_ns at most. */
static inline void weft__futex_wait_for(weft__atomic(uint32_t) *word,
					uint32_t value, uint64_t wait_ns)
{
	const struct timespec timeout = {
		.tv_sec = (time_t)(wait_ns / 1000000000u),
		.tv_nsec = (long)(wait_ns % 1000000000u),
	};

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &timeout, NULL, 0);
}

static inline void weft__futex_wake(weft__atomic(uint32_t) *word, int threads)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

#endif

#endif
