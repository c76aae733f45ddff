/* SPDX-License-Identifier: MIT */
/*
 * A planted bug, which ThreadSanitizer must report: two tasks on two workers
 * write one variable.
 *
 * Each task waits for the other with relaxed operations, which order nothing,
 * and does not yield; so the two run at the same time on two workers.  All of
 * it happens in a child of fork(), as it does in Check's test cases.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/weft.h>

#include "runtime/base/atomic.h"

#define TASKS 2
#define PATIENCE_NS WEFT_SEC(20)
#define WRITES 1000

static weft__atomic(unsigned) met;
static int shared;

static int64_t race(void *arg)
{
	weft_nsec deadline_ns = weft_now() + PATIENCE_NS;

	(void)arg;
	/* relaxed: nothing must be ordered here; that is the bug. */
	weft__add(&met, 1u, relaxed);
	while (weft__load(&met, relaxed) < TASKS)
		if (weft_now() > deadline_ns)
			return -1;
	for (int i = 0; i < WRITES; i++)
		*(volatile int *)&shared = i;
	return 0;
}

static int64_t start(void *arg)
{
	int64_t result = 0;

	(void)arg;
	WEFT_SCOPE(both, &result) {
		for (int i = 0; i < TASKS; i++)
			if (weft_go(both, race, NULL, 0) < 0)
				return -1;
	}
	return result;
}

static int run(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = TASKS;
	if (weft_run(start, NULL, &opts) == 0)
		return 0;
	fprintf(stderr, "the tasks did not meet on two workers\n");
	return 1;
}

int main(void)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		exit(run());
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
