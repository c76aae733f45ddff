/* SPDX-License-Identifier: MIT */
/*
 * Tasks inside a loop of one's own, around poll(2).
 *
 * Shows	weft_attach() starts a runtime without a thread; the loop polls
 *		weft_loop_fd(), and weft_turn() runs the tasks that are ready.
 *		The loop's timer goes on while the tasks wait.
 * Run		build/examples/embed_poll 127.0.0.1:8080 / /index.html
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "jobs.h"

static void quit(void *loop)
{
	*(bool *)loop = true;
}

/* Until the next tick, rounded up. */
static int timeout_ms(weft_nsec tick_at)
{
	weft_nsec now = weft_now();

	return tick_at > now ? (int)((tick_at - now) / 1000000) + 1 : 0;
}

/* 0, or a negative errno. */
static int loop_run(struct weft_runtime *runtime, const bool *over)
{
	struct pollfd pollfd = { weft_loop_fd(runtime), POLLIN, 0 };
	weft_nsec tick_at = weft_now() + WEFT_MS(TICK_MS);
	int r = 0;

	while (r >= 0 && !*over) {
		/* A failure, such as EINTR, has no events. */
		if (poll(&pollfd, 1, timeout_ms(tick_at)) > 0)
			r = weft_turn(runtime, NULL);
		if (weft_now() >= tick_at) {
			tick();
			tick_at += WEFT_MS(TICK_MS);
		}
	}
	return r < 0 ? r : 0;
}

int main(int argc, char **argv)
{
	bool over = argc < 3;
	struct jobs jobs = { .quit = quit, .loop = &over };
	struct weft_runtime *runtime;
	int r = weft_attach(NULL, &runtime), stopped;

	if (r == 0) {
		r = jobs_start(runtime, &jobs, argc, argv);
		if (r == 0)
			r = loop_run(runtime, &over);
		stopped = weft_stop(runtime);
		r = r < 0 ? r : stopped;
	}
	if (r < 0)
		fprintf(stderr, "embed_poll: %s\n", strerror(-r));
	return r < 0 || jobs.failed > 0;
}
