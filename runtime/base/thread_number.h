/* SPDX-License-Identifier: MIT */
/*
 * A number for each thread that asks, which no other thread of the process gets
 * later either.  In a child after fork() the thread has another one.
 */
#ifndef WEFT_RUNTIME_BASE_THREAD_NUMBER_H
#define WEFT_RUNTIME_BASE_THREAD_NUMBER_H

#include <stdint.h>

/* Of the calling thread; not 0. */
uint64_t weft__thread_number(void);

/* In a child after fork(). */
void weft__thread_number_forget(void);

#endif
