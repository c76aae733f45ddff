/* SPDX-License-Identifier: MIT */
/*
 * Thread - a thread of the runtime that runs no tasks: in the blocking pool, or
 * for dumps.
 */
#ifndef WEFT_RUNTIME_STACK_THREAD_H
#define WEFT_RUNTIME_STACK_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* Makes a thread with a stack of `stack_bytes`.  All signals are blocked except
 * those of faults, which go to the faulting thread and would end the process
 * unseen.  The thread unblocks what it is to take.  0 or -errno. */
int weft__thread_make(pthread_t *ret_thread, size_t stack_bytes,
		      void *(*fn)(void *arg), void *arg);

#endif
