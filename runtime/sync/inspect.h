/* SPDX-License-Identifier: MIT */
/*
 * Inspect - reads the state of an object for a dump: momentary values, read
 * under its lock, from any thread, while a task waits for it.
 */
#ifndef WEFT_RUNTIME_SYNC_INSPECT_H
#define WEFT_RUNTIME_SYNC_INSPECT_H

#include <stdint.h>

/* The rest of the count. */
uint64_t weft__count_left(const void *count);

/* The writer, as weft__owner_of() has it, 0: none; and the number of
 * readers. */
uint64_t weft__rwlock_writer(const void *rwlock, uint64_t *ret_readers);

/* The number of tasks that wait at the barrier; and the number of parties. */
uint64_t weft__barrier_came(const void *barrier, uint64_t *ret_parties);

#endif
