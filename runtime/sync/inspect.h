/* SPDX-License-Identifier: MIT */
/*
 * Look - how what is waited for is, for a dump: a moment's figures, under its
 * lock, from any thread, while somebody waits for it.
 */
#ifndef WEFT_RUNTIME_SYNC_INSPECT_H
#define WEFT_RUNTIME_SYNC_INSPECT_H

#include <stdint.h>

/* What is still to be done of it. */
uint64_t weft__count_left(const void *count);

/* Who writes, as weft__owner_of() has it, 0: nobody; and how many read. */
uint64_t weft__rwlock_writer(const void *rwlock, uint64_t *ret_readers);

/* Who waits at it, and how many it is for. */
uint64_t weft__barrier_came(const void *barrier, uint64_t *ret_parties);

#endif
