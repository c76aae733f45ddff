/* SPDX-License-Identifier: MIT */
#ifndef PROMPT_WORK_H
#define PROMPT_WORK_H

#include "jobs.h"

struct work {
	enum job_kind kind;
	weft_nsec delay_ns;
	char text[TEXT_BYTES];
	struct output said;
};

/* The task of a job.  Returns the status of a command, as a shell has it, or
 * 0, or an error. */
int64_t work_run(void *work);

#endif
