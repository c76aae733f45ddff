/* SPDX-License-Identifier: MIT */
/*
 * The same for all loops: tasks that fetch pages.  They run on the loop's
 * thread, so they count without a lock, and the last one calls a function of
 * the loop.
 */
#include <stdio.h>

#include "../fetch/page.h"
#include "jobs.h"

struct job {
	struct jobs *jobs;
	struct page page;
};

static int64_t job_run(void *arg)
{
	struct job *job = arg;
	struct page *page = &job->page;
	struct jobs *jobs = job->jobs;
	int64_t result = page_fetch(&page);

	if (result < 0)
		jobs->failed++;
	else
		printf("%s: %llu bytes\n", page->path,
		       (unsigned long long)page->bytes);
	if (--jobs->left == 0)
		jobs->quit(jobs->loop);
	return 0;
}

int jobs_start(struct weft_runtime *runtime, struct jobs *jobs, int argc,
	       char **argv)
{
	int r = 0;

	for (int i = 2; r == 0 && i < argc; i++) {
		struct job job = { jobs, { argv[1], argv[i], 0 } };

		r = weft_submit(runtime, job_run, &job, sizeof(job), NULL);
		jobs->left += r == 0;
	}
	return r;
}

void tick(void)
{
	puts("tick");
	fflush(stdout);
}
