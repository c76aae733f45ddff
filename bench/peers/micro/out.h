/* SPDX-License-Identifier: MIT */
/*
 * Result lines of the C micro-benchmarks: one JSON object for each figure, in
 * the format that bench/run.py reads from every program, weft's or a peer's.
 */
#ifndef BENCH_OUT_H
#define BENCH_OUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *out_label = "peer";
static int out_workers = 1;

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void emit(const char *bench, double value, const char *unit)
{
	printf("{\"bench\":\"%s\",\"peer\":\"%s\",\"workers\":%d,"
	       "\"value\":%.3f,\"unit\":\"%s\"}\n",
	       bench, out_label, out_workers, value, unit);
	fflush(stdout);
}

/* Emits the mean time of n operations, the first of which began at t0. */
static inline void per_op(const char *bench, uint64_t t0, uint64_t n)
{
	emit(bench, (double)(now_ns() - t0) / (double)n, "ns/op");
}

/* Resident memory of this process. */
static inline double rss_bytes(void)
{
	long total = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f == NULL)
		return 0;
	if (fscanf(f, "%ld %ld", &total, &resident) != 2)
		resident = 0;
	fclose(f);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static inline int out__by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static inline void out__sleep(const char *what, const char *round,
			      double value, const char *unit)
{
	char bench[64];

	snprintf(bench, sizeof(bench), "sleep100k_%s%s", what, round);
	emit(bench, value, unit);
}

/*
 * The figures of n sleepers that began at t0 and woke late_ns[i] after their
 * own deadline.  The round is a suffix, such as "_cold": see README.md.
 */
static inline void emit_sleep(const char *round, uint64_t t0,
			      uint64_t *late_ns, size_t n)
{
	out__sleep("total", round, (double)(now_ns() - t0) / 1e6, "ms");
	qsort(late_ns, n, sizeof(*late_ns), out__by_value);
	out__sleep("late_p50", round, (double)late_ns[n / 2] / 1e3, "us");
	out__sleep("late_p99", round, (double)late_ns[n * 99 / 100] / 1e3,
		   "us");
	out__sleep("late_max", round, (double)late_ns[n - 1] / 1e3, "us");
}

#endif
