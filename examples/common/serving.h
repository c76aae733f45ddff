/* SPDX-License-Identifier: MIT */
/* For servers: signals that end them, and descriptors for connections. */
#ifndef COMMON_SERVING_H
#define COMMON_SERVING_H

#include <stdint.h>

/* Blocks SIGTERM and SIGINT in all threads that are made later, and opens a
 * descriptor for them: that, or an error. */
int serving_open_signals(void);

/* A task: waits for one of them, and returns it as a failure, -EINTR, which
 * ends the task's group.  arg is the address of the descriptor. */
int64_t serving_wait_for_signal(void *arg);

/* As many descriptors as the process may have: a connection needs one or
 * two. */
void serving_raise_descriptor_limit(void);

#endif
