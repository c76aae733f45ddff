/* SPDX-License-Identifier: MIT */
/*
 * The bodies of the tasks that are measured.  They are in an object of their
 * own, so that the compiler cannot inline them into the loop that spawns.
 */
#ifndef BENCH_BENCH_BODY_H
#define BENCH_BENCH_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/atomic.h"

/* Returns 0 and does nothing else. */
int64_t body_empty(void *arg);
/* Yields once. */
int64_t body_suspended(void *arg);
/* Yields *(uint64_t *)arg times. */
int64_t body_yields(void *arg);

/* Sleeps 10 ms and notes how late it woke. */
struct body_sleeper {
	uint64_t *late_ns;
	weft__atomic(uint64_t) *early; /* counts sleepers that woke too early */
};
int64_t body_sleeper(void *arg);

/* The same sleep as a future. */
struct body_future_sleeper {
	uint64_t due_ns; /* 0: the sleep has not begun */
	struct body_sleeper sleeper;
};
int64_t body_future_sleeper(void *state);

/* Adds 1 to **(weft__atomic(uint64_t) **)arg, then sleeps an hour. */
int64_t body_sleeps_long(void *arg);

/* The same as a future; `at` starts as 0. */
struct body_future_long {
	unsigned at;
	weft__atomic(uint64_t) *up;
};
int64_t body_future_sleeps_long(void *state);

/* Reads random blocks until *stop. */
struct body_reader {
	weft__atomic(bool) *stop;
	void *buffer;
	uint64_t seed, blocks, done;
	size_t block_bytes;
	int fd;
};
/* arg: a struct body_reader **; `done` is set to the number of reads. */
int64_t body_reader(void *arg);

/* Copies chunks; *next is the offset of the next chunk to copy. */
struct body_copier {
	weft__atomic(uint64_t) *next;
	void *buffer;
	uint64_t size;
	size_t chunk_bytes;
	int src, dst;
};
int64_t body_copier(void *arg);

/* Adds up the bytes of files: opens each, reads it to its end and closes it.
 * *next is the number of the next file, which is named by body_file_name(). */
struct body_summer {
	weft__atomic(uint64_t) *next;
	weft__atomic(uint64_t) *sum;
	const char *dir;
	uint64_t files;
	bool plain; /* makes the calls itself, within the task */
};
int64_t body_summer(void *arg);

enum { BODY_NAME_BYTES = 256, BODY_FILES_A_DIR = 100 };

void body_file_name(char *ret_name, const char *dir, uint64_t number);

#endif
