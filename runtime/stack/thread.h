/* SPDX-License-Identifier: MIT */
/*
 * Thread - one of the runtime's own that runs no tasks: of the pool, and those
 * that dump.
 */
#ifndef WEFT_RUNTIME_STACK_THREAD_H
#define WEFT_RUNTIME_STACK_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* Makes a thread with a stack of that size, and all signals blocked but those
 * of faults, which come to the thread at fault and would end the process
 * unseen.  0 or -errno. */
int weft__thread_make(pthread_t *ret_thread, size_t stack_bytes,
		      void *(*fn)(void *arg), void *arg);

#endif
