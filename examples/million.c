/* SPDX-License-Identifier: MIT */
/*
 * million [COUNT] - COUNT futures (default: a million), each of which wakes up
 * three times and counts.
 *
 * Shows	futures, tasks without a stack: a million of them that sleep
 *		take 200 MB; as many tasks with stacks would take over 4 GB.
 * Run		build/examples/million 1000000
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/weft.h>

enum { BEATS = 3 };

struct heart {
	WEFT_FUTURE_STATE;
	unsigned beats;
	uint64_t *count; /* a counter of its own needs no lock */
};

static int64_t beat(void *state)
{
	struct heart *h = state;
	int r;

	WEFT_FUTURE_BEGIN(h);
	for (h->beats = 0; h->beats < BEATS; h->beats++) {
		WEFT_AWAIT_AS(h, r, weft_await_sleep(WEFT_MS(500)));
		if (r < 0)
			return r;
		++*h->count;
	}
	WEFT_FUTURE_END(h);
	return 0;
}

static double resident_bytes(void)
{
	unsigned long total = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%lu %lu", &total, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static int64_t run(void *arg)
{
	uint64_t count = *(uint64_t *)arg, beats = 0;
	uint64_t *counts = calloc(count, sizeof(*counts));
	double before = resident_bytes();
	int64_t result = -ENOMEM;

	if (!counts)
		return result;
	WEFT_SCOPE(hearts, &result) {
		for (uint64_t i = 0; i < count; i++) {
			struct heart h = { .count = &counts[i] };
			int error = WEFT_GO_FUTURE(hearts, beat, h);

			if (error < 0) {
				weft_scope_fail(hearts, error);
				break;
			}
		}
		(void)weft_sleep(WEFT_MS(250));
		printf("%" PRIu64 " futures sleep, %.0f bytes each\n", count,
		       (resident_bytes() - before) / (double)count);
	}
	for (uint64_t i = 0; i < count; i++)
		beats += counts[i];
	printf("%" PRIu64 " beats\n", beats);
	free(counts);
	return result;
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	int64_t result;

	if (count == 0 || argc > 2) {
		fprintf(stderr, "usage: million [COUNT]\n");
		return 2;
	}
	result = weft_run(run, &count, NULL);
	if (result < 0)
		fprintf(stderr, "million: %s\n", strerror((int)-result));
	return result < 0;
}
