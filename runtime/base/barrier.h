/* SPDX-License-Identifier: MIT */
/*
 * Barriers for two threads that each write one word and then read the other's,
 * where one side is hot and the other rare.  The rare side has the kernel put a
 * barrier into every running thread of the process; the hot side only keeps the
 * compiler from reordering its two accesses.  (Asymmetric Dekker
 * synchronization; Dice, Huang, Yang 2001.  See membarrier(2).)
 */
#ifndef WEFT_RUNTIME_BASE_BARRIER_H
#define WEFT_RUNTIME_BASE_BARRIER_H

#include <stdbool.h>

#ifdef WEFT__MODEL

#include "runtime/base/atomic.h"

static inline bool weft__heavy_barrier_prepare(void)
{
	return true;
}

static inline void weft__light_barrier(void)
{
}

static inline bool weft__heavy_barrier(void)
{
	model_heavy_barrier();
	return true;
}

#else

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void weft__light_barrier(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Takes microseconds.  False: there was no barrier, since the kernel refused
 * the call (by a filter installed after weft__heavy_barrier_prepare()). */
static inline bool weft__heavy_barrier(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0,
		       0) == 0;
}

/* Called for the process, before the first heavy barrier.  False: there are no
 * heavy barriers here. */
static inline bool weft__heavy_barrier_prepare(void)
{
	return syscall(SYS_membarrier,
		       MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
	       weft__heavy_barrier();
}

#endif

#endif
