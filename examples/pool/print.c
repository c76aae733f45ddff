/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pool.h"

static int print(const struct job *job)
{
	char text[sizeof(*job) + 32];
	int bytes = snprintf(text, sizeof(text), "%8llu %s\n",
			     (unsigned long long)job->words, job->path);

	return weft_write_all(STDOUT_FILENO, text, (size_t)bytes, NULL);
}

/* Closes the results if it fails, so that no worker waits to send one. */
int64_t print_results(void *arg)
{
	unsigned *failures = *(unsigned **)arg;
	struct job job;
	int r = 0;

	while (r == 0 && weft_chan_recv(&results, &job) == 0)
		if (job.error == 0) {
			r = print(&job);
		} else {
			fprintf(stderr, "pool: %s: %s\n", job.path,
				strerror(-job.error));
			++*failures;
		}
	weft_chan_close(&results);
	return r;
}
