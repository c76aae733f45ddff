/* SPDX-License-Identifier: MIT */
/*
 * pool - counts the words of the files that are named on standard input.
 *
 * Shows	a pool of workers between two channels; names.c, work.c and
 *		print.c have one stage each.  A full channel holds up its
 *		senders: names are read no faster than files, and files no
 *		faster than results are printed.  A closed channel ends the
 *		input of the next stage; a task that fails ends all others.
 * Run		find . -name '*.c' | build/examples/pool
 */
#include <stdio.h>
#include <string.h>

#include "pool.h"

#define WORKERS 4

static struct job jobs_room[16], results_room[16];
struct weft_chan jobs = WEFT_CHAN_INIT(jobs_room);
struct weft_chan results = WEFT_CHAN_INIT(results_room);

static int64_t count_all(void *arg)
{
	unsigned *failures = arg;
	int64_t printed = 0, worked = 0;
	int r = 0;

	WEFT_SCOPE (printing, &printed) {
		r = WEFT_GO(printing, print_results, failures);
		WEFT_SCOPE (working, &worked) {
			if (r == 0)
				r = weft_go(working, read_names, NULL, 0);
			for (int i = 0; i < WORKERS && r == 0; i++)
				r = weft_go(working, work, NULL, 0);
			if (r < 0)
				weft_scope_cancel(working);
		}
		weft_chan_close(&results);
	}
	/* If printing fails, the workers fail because of it. */
	return r < 0 ? r : printed < 0 ? printed : worked;
}

int main(void)
{
	unsigned failures = 0;
	int64_t result = weft_run(count_all, &failures, NULL);

	if (result < 0)
		fprintf(stderr, "pool: %s\n", strerror((int)-result));
	return result < 0 || failures > 0;
}
