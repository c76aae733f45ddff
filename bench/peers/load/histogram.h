/* SPDX-License-Identifier: MIT */
/*
 * Log-linear histogram of nanoseconds: 64 buckets for each power of two, so the
 * error of a percentile is at most 1.6%.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>
#include <string.h>

enum { HISTOGRAM_SUB = 6, HISTOGRAM_BUCKETS = 64 << HISTOGRAM_SUB };

struct histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS];
	uint64_t count, max;
};

static inline unsigned histogram__bucket(uint64_t v)
{
	unsigned e;

	if (v < 1u << HISTOGRAM_SUB)
		return (unsigned)v;
	e = 63u - (unsigned)__builtin_clzll(v);
	return ((e - HISTOGRAM_SUB + 1) << HISTOGRAM_SUB) +
	       (unsigned)((v >> (e - HISTOGRAM_SUB)) &
			  ((1u << HISTOGRAM_SUB) - 1));
}

/* The largest value that falls into bucket b. */
static inline uint64_t histogram__top(unsigned b)
{
	unsigned e, sub = b & ((1u << HISTOGRAM_SUB) - 1);

	if (b < 1u << HISTOGRAM_SUB)
		return b;
	e = (b >> HISTOGRAM_SUB) - 1;
	return ((((uint64_t)1 << HISTOGRAM_SUB) + sub + 1) << e) - 1;
}

static inline void histogram_clear(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
}

static inline void histogram_add(struct histogram *h, uint64_t v)
{
	h->buckets[histogram__bucket(v)]++;
	h->count++;
	if (v > h->max)
		h->max = v;
}

static inline uint64_t histogram_percentile(const struct histogram *h, double p)
{
	uint64_t want = (uint64_t)(p * (double)h->count), seen = 0, top;

	for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++) {
		seen += h->buckets[b];
		if (seen <= want)
			continue;
		top = histogram__top(b);
		return top < h->max ? top : h->max;
	}
	return h->max;
}

#endif
