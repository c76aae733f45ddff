/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs.h"
#include "work.h"

unsigned jobs_all(struct jobs *jobs, struct job **ret_jobs)
{
	unsigned count = 0;

	for (unsigned i = 0; i < JOBS_MAX; i++)
		if (jobs->job[i].number)
			ret_jobs[count++] = &jobs->job[i];
	return count;
}

int job_start(struct jobs *jobs, enum job_kind kind, weft_nsec delay_ns,
	      const char *text)
{
	struct work work = { .kind = kind, .delay_ns = delay_ns };
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct job *job = jobs->job;
	int r;

	/* A part of a command would be another one. */
	if (strlen(text) >= sizeof(work.text))
		return -EMSGSIZE;
	if (jobs->count == JOBS_MAX)
		return -EAGAIN;
	while (job->number)
		job++;
	work.said.number = jobs->last_number + 1;
	snprintf(work.text, sizeof(work.text), "%s", text);
	snprintf(job->text, sizeof(job->text), "%s", text);
	opts.ret_task = &job->task;
	r = weft_go_opts(jobs->scope, work_run, &work, sizeof(work), &opts);
	if (r < 0)
		return r;
	jobs->count++;
	job->kind = kind;
	job->number = ++jobs->last_number;
	return (int)job->number;
}

int job_cancel(struct jobs *jobs, unsigned number)
{
	for (unsigned i = 0; i < JOBS_MAX && number; i++)
		if (jobs->job[i].number == number)
			return weft_cancel(jobs->job[i].task);
	return -ESRCH;
}

void job_join(struct jobs *jobs, struct job *job, char *ret_how, size_t bytes)
{
	int64_t result = 0;

	(void)!weft_join(job->task, &result);
	jobs->count--;
	if (result == 0)
		snprintf(ret_how, bytes, "done");
	else if (result == -ECANCELED)
		snprintf(ret_how, bytes, "cancelled");
	else if (result < 0)
		snprintf(ret_how, bytes, "%s", strerror((int)-result));
	else
		snprintf(ret_how, bytes, "ended with status %d", (int)result);
}
