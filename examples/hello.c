/* SPDX-License-Identifier: MIT */
/*
 * The smallest program: two tasks in a group, and a sleep.
 *
 * Shows	weft_run() runs the first task; WEFT_SCOPE waits for the tasks
 *		that were started in it; arguments are copied, so they may be
 *		local variables.
 * Run		build/examples/hello
 */
#include <stdio.h>
#include <string.h>

#include <weft/weft.h>

struct greeting {
	const char *text;
	weft_nsec delay_ns;
};

static int64_t greet(void *arg)
{
	const struct greeting *greeting = arg;
	int r;

	r = weft_sleep(greeting->delay_ns);
	if (r == 0)
		puts(greeting->text);
	return r;
}

static int64_t hello(void *arg)
{
	const struct greeting first = { "hello", WEFT_MS(10) };
	const struct greeting second = { "world", WEFT_MS(20) };
	int64_t result = 0;
	int r;

	(void)arg;
	WEFT_SCOPE(both, &result) {
		/* Both sleep at the same time: this takes 20 ms, not 30. */
		if ((r = WEFT_GO(both, greet, second)) < 0 ||
		    (r = WEFT_GO(both, greet, first)) < 0)
			weft_scope_fail(both, r);
	}
	return result;
}

int main(void)
{
	int64_t result = weft_run(hello, NULL, NULL);

	if (result < 0)
		fprintf(stderr, "hello: %s\n", strerror((int)-result));
	return result < 0;
}
