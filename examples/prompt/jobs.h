/* SPDX-License-Identifier: MIT */
/* Jobs in the background: a task each. */
#ifndef PROMPT_JOBS_H
#define PROMPT_JOBS_H

#include <stdlib.h>
#include <weft/weft.h>

enum { JOBS_MAX = 32, TEXT_BYTES = 400 };

enum job_kind { JOB_AFTER, JOB_EVERY, JOB_COMMAND };

struct job {
	unsigned number; /* 0: the place is free */
	enum job_kind kind;
	struct weft_task task;
	char text[TEXT_BYTES];
};

struct jobs {
	struct weft_scope *scope;
	unsigned count, last_number;
	struct job job[JOBS_MAX];
};

/* A line of a job. */
struct output {
	unsigned number;
	char text[TEXT_BYTES];
};

/* Where jobs send their lines. */
extern struct weft_chan job_output;

/* The task that began the scope makes these calls.  The first returns the
 * number of the job, or an error; -EMSGSIZE: the text is too long. */
int job_start(struct jobs *jobs, enum job_kind kind, weft_nsec delay_ns,
	      const char *text);

/* 0, or -ESRCH. */
int job_cancel(struct jobs *jobs, unsigned number);

/* Fills an array of JOBS_MAX, and returns how many there are. */
unsigned jobs_all(struct jobs *jobs, struct job **ret_jobs);

/* Takes the result of a job that has ended: how it did is put into words. */
void job_join(struct jobs *jobs, struct job *job, char *ret_how, size_t bytes);

#endif
