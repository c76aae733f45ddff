/* SPDX-License-Identifier: MIT */
/*
 * Programs that break a rule: each is told which, in a sentence, and ends.
 */
#ifndef WEFT_TESTS_SUPPORT_MISUSE_KIT_H
#define WEFT_TESTS_SUPPORT_MISUSE_KIT_H

#include <weft/weft.h>

#include "tests/support/death.h"

struct misuse {
	weft_fn fn;
	const char *sentence;
};

static inline void run_one_worker(weft_fn fn, void *arg)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	weft_run(fn, arg, &opts);
}

static inline void run_in_task(void *arg)
{
	const struct misuse *misuse = arg;

	run_one_worker(misuse->fn, NULL);
}

/* The child's own child goes on as the task that called fork(). */
static inline int64_t return_in_forked_child(void *arg)
{
	int status = 0;
	pid_t child = fork();

	(void)arg;
	if (child > 0 && waitpid(child, &status, 0) == child &&
	    WIFSIGNALED(status))
		raise(WTERMSIG(status));
	return 0;
}

static inline void expect_sentence(void (*fn)(void *arg), void *arg,
			    const char *sentence)
{
	struct death death = death_of(fn, arg);

	ck_assert_msg(WIFSIGNALED(death.status) &&
			      WTERMSIG(death.status) == SIGABRT &&
			      strstr(death.text, sentence),
		      "status %#x, not \"%s\" but: %s",
		      (unsigned)death.status, sentence, death.text);
}

#endif
