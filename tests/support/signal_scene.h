/* SPDX-License-Identifier: MIT */
/*
 * Children that get a signal before, in or after a runtime, and how they end:
 * by the signal, or with a status.
 */
#ifndef WEFT_TESTS_SUPPORT_SIGNAL_SCENE_H
#define WEFT_TESTS_SUPPORT_SIGNAL_SCENE_H

#include <signal.h>

#include "tests/support/death.h"
#include "tests/support/io_kit.h"
#include "tests/support/need.h"
#include "tests/support/needs.h"

#ifdef WEFT__TSAN
enum { WITH_TSAN = 1 };
#else
enum { WITH_TSAN = 0 };
#endif

static const int numbers[] = { SIGSEGV, SIGBUS };
enum { NUMBERS = 2, HANGS_S = 50 };

/* ---- Children ------------------------------------------------------------ */

static int number; /* of the signal that the test is about */

/* Calls of a child: before its runtime, in it, and after it. */
struct scene {
	void (*before)(void);
	weft_fn within;
	void (*after)(void);
};

static inline void play(void *arg)
{
	const struct scene *scene = arg;
	struct weft_opts opts = WEFT_OPTS_INIT;

	/* The test runner and sanitizers have handlers. */
	signal(SIGALRM, SIG_DFL);
	signal(number, SIG_DFL);
	alarm(HANGS_S);
	if (scene->before)
		scene->before();
	opts.workers = 2;
	NEED(weft_run(scene->within, NULL, &opts) == 0);
	if (scene->after)
		scene->after();
}

static inline int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static inline void expect_killed(const struct scene *scene)
{
	struct death death = death_of(play, (void *)(uintptr_t)scene);

	ck_assert_msg(WIFSIGNALED(death.status) &&
			      WTERMSIG(death.status) == number,
		      "status %#x, it said: %s", (unsigned)death.status,
		      death.text);
	ck_assert_msg(!strstr(death.text, "stack overflow"), "it said: %s",
		      death.text);
}

static inline void expect_end(const struct scene *scene)
{
	struct death death = death_of(play, (void *)(uintptr_t)scene);

	ck_assert_msg(WIFEXITED(death.status) &&
			      WEXITSTATUS(death.status) == 0,
		      "status %#x, it said: %s", (unsigned)death.status,
		      death.text);
}

/* ---- The program's handler ----------------------------------------------- */

static volatile sig_atomic_t calls;

static inline void handle(int signal_number)
{
	NEED(signal_number == number);
	calls = calls + 1;
}

static inline void has_handler(void)
{
	signal(number, handle);
}

static inline void is_default(void)
{
	struct sigaction now;

	NEED(sigaction(number, NULL, &now) == 0);
	NEED(now.sa_handler == SIG_DFL);
}

#endif
