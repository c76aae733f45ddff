/* SPDX-License-Identifier: MIT */
/*
 * A bar that shows how far a long job is: one line of a terminal, which is
 * drawn again at most ten times a second.  On anything but a terminal it
 * prints nothing.
 */
#ifndef EXAMPLES_COMMON_PROGRESS_H
#define EXAMPLES_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool on;	   /* stderr is a terminal */
	bool drawn;	   /* the line is there now */
	unsigned turns;	   /* how often it was drawn */
	uint64_t began_ns; /* on the clock of weft_now() */
	uint64_t drawn_ns;
};

void progress_begin(struct progress *progress);

/* total 0: it is not known, and a mark moves through the bar.  The text stands
 * behind the bar. */
void progress_show(struct progress *progress, uint64_t done, uint64_t total,
		   const char *text);

/* Takes the line away: before other output, and at the end. */
void progress_clear(struct progress *progress);

#endif
