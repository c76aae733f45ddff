/* SPDX-License-Identifier: MIT */
/*
 * Shared by weft's own benchmarks: the command line, a runtime to run in, and
 * the result lines and the clock of peers/micro/out.h.
 *
 *	PROGRAM WHAT [--workers N] [--label L] [the program's own options]
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdbool.h>

#include <weft/weft.h>

#include "bench/peers/micro/out.h"

/* An option of a program.  The word after its name goes to *value; a flag is
 * followed by no word and sets *value to "".  A list ends with a NULL name. */
struct bench_option {
	const char *name;
	const char **value;
	bool flag;
};

static inline _Noreturn void bench_die(const char *what, int64_t error)
{
	fprintf(stderr, "%s: %s\n", what, strerror((int)-error));
	exit(1);
}

/* Returns the result; a negative one ends the program. */
static inline int64_t bench_must(const char *what, int64_t result)
{
	if (result < 0)
		bench_die(what, result);
	return result;
}

static inline const struct bench_option *
bench__find(const struct bench_option *options, const char *name)
{
	for (; options->name; options++)
		if (strcmp(options->name, name) == 0)
			return options;
	return NULL;
}

/* Reads the command line.  Returns the first word, or "" if there is none. */
static inline const char *bench_parse(int argc, char **argv,
				      const struct bench_option *options)
{
	bool word = argc > 1 && argv[1][0] != '-';

	out_label = "weft";
	for (int i = word ? 2 : 1; i < argc; i++) {
		const struct bench_option *option =
			bench__find(options, argv[i]);

		if (option && option->flag) {
			*option->value = "";
			continue;
		}
		if (i + 1 == argc)
			bench_die(argv[i], -EINVAL);
		if (option)
			*option->value = argv[i + 1];
		else if (strcmp(argv[i], "--workers") == 0)
			out_workers = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--label") == 0)
			out_label = argv[i + 1];
		else
			bench_die(argv[i], -EINVAL);
		i++;
	}
	if (out_workers < 1)
		bench_die("--workers", -EINVAL);
	return word ? argv[1] : "";
}

static inline struct weft_opts bench_opts(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = (unsigned)out_workers;
	return opts;
}

/* Runs fn(arg) in a runtime of --workers; a failure ends the program. */
static inline void bench_run(weft_fn fn, void *arg)
{
	struct weft_opts opts = bench_opts();

	bench_must("weft_run", weft_run(fn, arg, &opts));
}

static inline void bench_go(struct weft_scope *scope, weft_fn fn,
			    const void *arg, size_t arg_bytes)
{
	bench_must("weft_go", weft_go(scope, fn, arg, arg_bytes));
}

/* Starts a task that the caller joins. */
static inline struct weft_task bench_fork(struct weft_scope *scope, weft_fn fn,
					  const void *arg, size_t arg_bytes)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;

	opts.ret_task = &task;
	bench_must("weft_go_opts",
		   weft_go_opts(scope, fn, arg, arg_bytes, &opts));
	return task;
}

static inline int64_t bench_join(struct weft_task task)
{
	int64_t result;

	bench_must("weft_join", weft_join(task, &result));
	return result;
}

/* Returns memory that causes no page faults later: it is written here.  (The
 * compiler turns malloc() and memset() into calloc(), which writes nothing.) */
static inline void *bench_alloc(size_t count, size_t bytes)
{
	void *p = malloc(count * bytes);

	if (!p)
		bench_die("malloc", -ENOMEM);
	explicit_bzero(p, count * bytes);
	return p;
}

#endif
