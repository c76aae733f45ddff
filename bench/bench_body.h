/* SPDX-License-Identifier: MIT */
/*
 * The bodies of the tasks that are measured.  They are compiled by themselves,
 * so that no compiler can look from the loop that spawns into what it spawns.
 */
#ifndef BENCH_BENCH_BODY_H
#define BENCH_BENCH_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/atomic.h"

/* Returns 0 at once. */
int64_t body_empty(void *arg);
/* Yields once. */
int64_t body_suspended(void *arg);
/* Yields *(uint64_t *)arg times. */
int64_t body_yields(void *arg);

/* Sleeps 10 ms and notes how late it woke. */
struct body_sleeper {
	uint64_t *late_ns;
	weft__atomic(uint64_t) *early; /* counts those that woke before time */
};
int64_t body_sleeper(void *arg);

/* The same as a future. */
struct body_future_sleeper {
	uint64_t due_ns; /* 0: it has not begun */
	struct body_sleeper sleeper;
};
int64_t body_future_sleeper(void *state);

/* Counts itself in **(weft__atomic(uint64_t) **)arg, then sleeps an hour. */
int64_t body_sleeps_long(void *arg);

/* The same as a future, with a blank `at`. */
struct body_future_long {
	unsigned at;
	weft__atomic(uint64_t) *up;
};
int64_t body_future_sleeps_long(void *state);

/* Random reads of a block until *stop. */
struct body_reader {
	weft__atomic(bool) *stop;
	void *buffer;
	uint64_t seed, blocks, done;
	size_t block_bytes;
	int fd;
};
/* arg: a struct body_reader **, whose `done` counts. */
int64_t body_reader(void *arg);

/* Copies chunk after chunk, each taken off *next. */
struct body_copier {
	weft__atomic(uint64_t) *next;
	void *buffer;
	uint64_t size;
	size_t chunk_bytes;
	int src, dst;
};
int64_t body_copier(void *arg);

#endif
