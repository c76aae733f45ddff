/* SPDX-License-Identifier: MIT */
/* Thread state - what the kernel says of another thread of the process, without
 * a signal to that thread. */
#ifndef WEFT_RUNTIME_DUMP_THREAD_STATE_H
#define WEFT_RUNTIME_DUMP_THREAD_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* Does the thread sleep in the kernel?  False too if /proc cannot be read. */
bool weft__thread_sleeps(uint32_t thread);

/* The number of the system call in which the thread sleeps; -1: it runs, or
 * /proc does not show the number. */
int weft__thread_call(uint32_t thread);

#endif
