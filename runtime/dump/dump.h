/* SPDX-License-Identifier: MIT */
/*
 * Dump - weft_dump() for a thread that runs no task and has enough stack,
 * WEFT__DUMP_BYTES; and the watchdog's reports.  All return 0 or -errno.
 */
#ifndef WEFT_RUNTIME_DUMP_DUMP_H
#define WEFT_RUNTIME_DUMP_DUMP_H

#include <stddef.h>
#include <stdint.h>

#define WEFT__DUMP_BYTES ((size_t)2 << 20)

struct weft_runtime;

/* `max_ms` as in text_buffer.h. */
int weft__dump_all(struct weft_runtime *runtime, int fd, int max_ms);

/* Reports that a worker has been in one task for that time, since it counted
 * that number of polls, and where. */
int weft__dump_stall(struct weft_runtime *runtime, uint32_t worker,
		     uint64_t polls, uint64_t stalled_ns, int fd);

/* If there are tasks and all wait for other tasks: reports that, with a
 * dump. */
int weft__dump_standstill(struct weft_runtime *runtime, int fd);

#endif
