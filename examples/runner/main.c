/* SPDX-License-Identifier: MIT */
/*
 * runner [-k] [-j JOBS] FILE [TARGET ...] - runs commands that depend on each
 * other, several at the same time.
 *
 * Shows	a task for each target, which waits for the events of others; a
 *		semaphore as the limit on commands; weft_run_command(), so that
 *		the output of a command comes in one piece.  The first failure
 *		cancels the group, and so ends the commands that run; with -k
 *		all goes on that does not depend on it.
 * Run		printf 'all: a b\n\techo all\na:\n\techo a\nb:\n\techo b\n' > F
 *		build/examples/runner -j 2 F
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build.h"

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
	result = weft_run(build_all, &build, NULL);
	free(text);
	if (result < 0)
		return complain("build", strerror((int)-result));
	return result > 0 ? complain("build", "targets were not made") : 0;
}
