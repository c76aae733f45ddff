/* SPDX-License-Identifier: MIT */
/*
 * prompt [SOCKET] - a clock that ticks ten times a second, until the user types
 * that it is enough.
 *
 * From outside	It asks, and the clock ticks once, or not at all: the next tick
 *		comes when something is typed.  After a second it prints a
 *		report on stderr, which has not been read yet.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <weft/weft.h>

static bool enough;

static int64_t tick(void *arg)
{
	int r = 0;

	(void)arg;
	while (r == 0 && !enough) {
		puts("tick");
		fflush(stdout);
		r = weft_sleep(WEFT_MS(100));
	}
	return r;
}

static int64_t ask(void *arg)
{
	char word[8];

	(void)arg;
	do
		fputs("enough? ", stderr);
	while (scanf("%7s", word) == 1 && strcmp(word, "yes") != 0);
	enough = true;
	return 0;
}

static int64_t run_clock(void *arg)
{
	int64_t result = 0;
	int r = 0;

	(void)arg;
	WEFT_SCOPE(both, &result) {
		r = weft_go(both, ask, NULL, 0);
		if (r == 0)
			r = weft_go(both, tick, NULL, 0);
	}
	return r < 0 ? r : result;
}

int main(int argc, char **argv)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1; /* so that `enough` needs no lock */
	opts.stall_ns = WEFT_SEC(1);
	opts.dump_path = argc > 1 ? argv[1] : NULL;
	return weft_run(run_clock, NULL, &opts) < 0;
}
