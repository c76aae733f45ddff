/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_BUILD_H
#define RUNNER_BUILD_H

#include "rules.h"

struct build {
	struct rules *rules;
	struct weft_sem jobs;	 /* commands that may begin */
	struct weft_mutex print; /* the output of one at a time */
	bool keeps_going;
	int signal_fd;
};

/* arg: a struct build **.  The number of needed targets that were not made, or
 * an error. */
int64_t build_all(void *arg);

#endif
