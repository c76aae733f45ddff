/* SPDX-License-Identifier: MIT */
/*
 * Barriers for two sides that each write one word and then read the other's,
 * where one side is hot and the other rare: the rare one has the kernel put a
 * barrier into every thread of the process that runs, and the hot one only
 * keeps the compiler from turning its two accesses round.  (Asymmetric Dekker
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

/* Takes microseconds.  False: there was none, since it is refused (by a filter
 * that came after weft__heavy_barrier_prepare()). */
static inline bool weft__heavy_barrier(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0,
		       0) == 0;
}

/* For the process, before the first heavy barrier.  False: there are none
 * here. */
static inline bool weft__heavy_barrier_prepare(void)
{
	return syscall(SYS_membarrier,
		       MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
	       weft__heavy_barrier();
}

#endif

#endif
