/* SPDX-License-Identifier: MIT */
/*
 * runner [-k] [-j JOBS] FILE [TARGET ...] - runs commands that depend on each
 * other, several at the same time.
 *
 * Shows	a task for each target, which waits for the events of others; a
 *		semaphore as the limit on commands; weft_run_command(), so that
 *		the output of a command comes in one piece.  The first failure
 *		cancels the group, and so ends the commands that run; with -k
 *		all goes on that does not depend on it.  Control-C cancels all,
 *		since the commands lead groups of their own, which the terminal
 *		does not signal.
 * Run		printf 'all: a b\n\techo all\na:\n\techo a\nb:\n\techo b\n' > F
 *		build/examples/runner -j 2 F
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build.h"

/* A result above this has the number of a signal; there are fewer rules. */
enum { INTERRUPTED = 1 << 20 };

static struct rules rules;

static int usage(void)
{
	fprintf(stderr, "usage: runner [-k] [-j JOBS] FILE [TARGET ...]\n");
	return 2;
}

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "runner: %s: %s\n", what, why);
	return 1;
}

static char *file_read(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;

	if (!file || getdelim(&text, &room, '\0', file) < 0) {
		free(text);
		text = NULL;
	}
	if (file)
		fclose(file);
	return text;
}

/* All of them, or the first. */
static int targets_need(char **targets)
{
	const char *where;
	int r;

	do {
		r = rules_need(&rules, *targets, &where);
		if (r < 0)
			return complain(where, r == -ELOOP ?
						       "depends on itself" :
						       "there is no rule");
	} while (*targets && *++targets);
	return 0;
}

/* Ends the build, if it comes first. */
static int64_t interrupted(void *arg)
{
	int number, r = weft_signal_wait(*(int *)arg, &number);

	return r < 0 ? r : INTERRUPTED + number;
}

static int64_t build_until_signal(void *arg)
{
	struct build *build = *(struct build **)arg;
	int64_t first = 0;

	WEFT_RACE (either, &first) {
		if (WEFT_GO(either, interrupted, build->signal_fd) < 0 ||
		    WEFT_GO(either, build_all, build) < 0)
			weft_scope_cancel(either);
	}
	weft_close(build->signal_fd);
	return first;
}

static int64_t build_run(struct build *build)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	build->signal_fd = weft_signal_open(&signals);
	if (build->signal_fd < 0)
		return build->signal_fd;
	return weft_run(build_until_signal, &build, NULL);
}

int main(int argc, char **argv)
{
	struct build build = { .rules = &rules, .print = WEFT_MUTEX_INIT };
	int jobs = (int)sysconf(_SC_NPROCESSORS_ONLN), option, line;
	int64_t result;
	char *text;

	while ((option = getopt(argc, argv, "kj:")) >= 0)
		if (option == 'k')
			build.keeps_going = true;
		else if (option != 'j' || (jobs = atoi(optarg)) < 1)
			return usage();
	if (optind == argc)
		return usage();
	text = file_read(argv[optind]);
	if (!text)
		return complain(argv[optind], "cannot be read");
	line = rules_read(&rules, text);
	if (line > 0) {
		fprintf(stderr, "runner: %s:%d: no rule, and no command\n",
			argv[optind], line);
		return 1;
	}
	if (targets_need(argv + optind + 1) != 0)
		return 1;
	build.jobs = (struct weft_sem)WEFT_SEM_INIT((unsigned)jobs);
	result = build_run(&build);
	free(text);
	if (result > INTERRUPTED)
		return 128 + (int)(result - INTERRUPTED);
	if (result < 0)
		return complain("build", strerror((int)-result));
	if (ferror(stdout))
		return complain("output", "cannot be written");
	return result > 0 ? complain("build", "targets were not made") : 0;
}
