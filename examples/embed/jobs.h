/* SPDX-License-Identifier: MIT */
#ifndef EMBED_JOBS_H
#define EMBED_JOBS_H

#include <weft/weft.h>

/* Pages to fetch from one server, each by a task. */
struct jobs {
	int left;
	int failed;
	/* Called by the last task: ends the loop that runs it. */
	void (*quit)(void *loop);
	void *loop;
};

/* Starts a task for each of the paths argv[2...]; the server is argv[1].
 * jobs must exist until they are over.  0, or a negative errno. */
int jobs_start(struct weft_runtime *runtime, struct jobs *jobs, int argc,
	       char **argv);

/* The loop's own timer: every 10 ms. */
enum { TICK_MS = 10 };
void tick(void);

#endif
