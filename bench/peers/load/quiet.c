/* SPDX-License-Identifier: MIT */
/*
 * quiet LIMIT TRIES CMD...
 *
 * Runs CMD and passes its output on if the rest of the machine stayed quiet: it
 * used at most LIMIT of one core meanwhile.  Otherwise runs CMD again, TRIES
 * times at most.  The output of the last try is always passed on; if that try
 * was not quiet, the share is reported on stderr.  For measuring on a machine
 * that is shared.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cpu.h"

static double wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * Returns CMD's wait status, or -1 if it could not be run; and the CPU time
 * that other programs used meanwhile, as a share of one core.
 */
static int run_once(char **cmd, int out, double *ret_others)
{
	double machine = machine_cpu(), began = wall(), took;
	struct rusage ru;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		dup2(out, STDOUT_FILENO);
		execvp(cmd[0], cmd);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &ru) != pid)
		return -1;
	took = wall() - began;
	*ret_others = (machine_cpu() - machine - rusage_cpu(&ru)) /
		      (took > 0.01 ? took : 0.01);
	return status;
}

static int pass_on(int from)
{
	char buf[4096];
	ssize_t n;

	lseek(from, 0, SEEK_SET);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(STDOUT_FILENO, buf, (size_t)n) != n)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	int status, tries;
	double limit, others;
	FILE *out;

	if (argc < 4)
		return 2;
	limit = atof(argv[1]);
	tries = atoi(argv[2]);
	for (int i = 1;; i++) {
		out = tmpfile();
		if (out == NULL)
			return 1;
		status = run_once(argv + 3, fileno(out), &others);
		if (status < 0)
			return 1;
		if (others <= limit || i >= tries)
			break;
		fclose(out);
	}
	if (others > limit)
		fprintf(stderr, "quiet: %.2f of a core used by others: %s\n",
			others, argv[3]);
	if (pass_on(fileno(out)) < 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
