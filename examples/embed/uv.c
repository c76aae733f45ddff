/* SPDX-License-Identifier: MIT */
/*
 * Tasks inside a loop of libuv, as in a module for Node.
 *
 * Shows	The descriptor is a uv_poll_t, whose callback is one call.
 *		Tasks run on the loop's thread: the last one calls uv_stop()
 *		itself.
 * Run		build/examples/embed_uv 127.0.0.1:8080 / /index.html
 */
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "jobs.h"

static void on_ready(uv_poll_t *ready, int status, int events)
{
	(void)status, (void)events;
	/* It may leave something: then the descriptor is readable. */
	if (weft_turn(ready->data, NULL) < 0)
		uv_stop(ready->loop);
}

static void on_tick(uv_timer_t *timer)
{
	(void)timer;
	tick();
}

static void quit(void *loop)
{
	uv_stop(loop);
}

static int loop_run(uv_loop_t *loop, struct weft_runtime *runtime,
		    const struct jobs *jobs)
{
	uv_poll_t ready = { .data = runtime };
	uv_timer_t timer;
	int r = uv_poll_init(loop, &ready, weft_loop_fd(runtime));

	if (r < 0)
		return r;
	uv_timer_init(loop, &timer);
	uv_poll_start(&ready, UV_READABLE, on_ready);
	uv_timer_start(&timer, on_tick, TICK_MS, TICK_MS);
	if (jobs->left > 0)
		uv_run(loop, UV_RUN_DEFAULT);
	/* Before weft_stop(), which closes the descriptor. */
	uv_close((uv_handle_t *)&ready, NULL);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	return 0;
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();
	struct jobs jobs = { .quit = quit, .loop = loop };
	struct weft_runtime *runtime;
	int r = weft_attach(NULL, &runtime), stopped;

	if (r == 0) {
		r = jobs_start(runtime, &jobs, argc, argv);
		if (r == 0)
			r = loop_run(loop, runtime, &jobs);
		stopped = weft_stop(runtime);
		r = r < 0 ? r : stopped;
	}
	uv_loop_close(loop);
	if (r < 0)
		fprintf(stderr, "embed_uv: %s\n", strerror(-r));
	return r < 0 || jobs.failed > 0;
}
