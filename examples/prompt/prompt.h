/* SPDX-License-Identifier: MIT */
/* The task that has the terminal. */
#ifndef PROMPT_PROMPT_H
#define PROMPT_PROMPT_H

#include <signal.h>
#include <weft/weft.h>

#include "jobs.h"

struct prompt {
	struct jobs jobs;
	bool ended; /* no more commands */
};

/* Reads commands until the end; `signals` are those of the terminal, or NULL:
 * there is none.  Returns the status of the program. */
int64_t prompt_run(const sigset_t *signals);

/* Carries out what was typed. */
void command_run(struct prompt *prompt, char *line);

/* The name of a command; NULL: there are no more. */
const char *command_name(unsigned i);

#endif
