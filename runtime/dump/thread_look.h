/* SPDX-License-Identifier: MIT */
/* Thread look - what the kernel reports of another thread of the process,
 * without a signal to that thread. */
#ifndef WEFT_RUNTIME_DUMP_THREAD_LOOK_H
#define WEFT_RUNTIME_DUMP_THREAD_LOOK_H

#include <stdbool.h>
#include <stdint.h>

/* A thread that sleeps in the kernel. */
struct weft__sleeper {
	int call; /* the number of its system call; -1: none, as in a fault */
	uint64_t sp, pc;
};

/* 1: it sleeps; 0: it does not; or -errno: /proc cannot be read. */
int weft__thread_sleeper(uint32_t thread, struct weft__sleeper *ret_sleeper);

/* The CPU time of the thread: it has not run between two equal times.  0: there
 * is no such thread. */
uint64_t weft__thread_ran_ns(uint32_t thread);

/* The clock of the CPU time that the thread has used outside of the kernel, and
 * its time.  The kernel adds to it at ticks. */
int weft__thread_user_clock(uint32_t thread);
uint64_t weft__thread_user_ns(uint32_t thread);

#endif
