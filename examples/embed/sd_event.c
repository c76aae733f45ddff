/* SPDX-License-Identifier: MIT */
/*
 * Tasks inside the event loop of libsystemd, as in a service with sd-bus.
 *
 * Shows	The descriptor is a source of the loop, and its callback is one
 *		call.  Tasks run on the loop's thread: the last one calls
 *		sd_event_exit() itself.
 * Run		build/examples/embed_sd_event 127.0.0.1:8080 / /index.html
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "jobs.h"

static int on_ready(sd_event_source *ready, int fd, uint32_t events,
		    void *runtime)
{
	(void)ready, (void)fd, (void)events;
	/* It may leave something: then the descriptor is readable. */
	return weft_turn(runtime, NULL);
}

static int on_tick(sd_event_source *timer, uint64_t usec, void *data)
{
	(void)data;
	tick();
	return sd_event_source_set_time(timer, usec + TICK_MS * 1000);
}

static void quit(void *loop)
{
	sd_event_exit(loop, 0);
}

/* 0, or a negative errno. */
static int loop_run(sd_event *loop, struct weft_runtime *runtime,
		    const struct jobs *jobs)
{
	sd_event_source *ready = NULL, *timer = NULL;
	int r = sd_event_add_io(loop, &ready, weft_loop_fd(runtime), EPOLLIN,
				on_ready, runtime);

	if (r >= 0)
		r = sd_event_add_time_relative(loop, &timer, CLOCK_MONOTONIC,
					       TICK_MS * 1000, 1, on_tick,
					       NULL);
	if (r >= 0)
		r = sd_event_source_set_enabled(timer, SD_EVENT_ON);
	if (r >= 0 && jobs->left > 0)
		r = sd_event_loop(loop);
	sd_event_source_unref(timer);
	/* Before weft_stop(), which closes the descriptor. */
	sd_event_source_unref(ready);
	return r;
}

int main(int argc, char **argv)
{
	struct jobs jobs = { .quit = quit };
	struct weft_runtime *runtime;
	sd_event *loop = NULL;
	int r = sd_event_new(&loop), stopped;

	jobs.loop = loop;
	if (r >= 0)
		r = weft_attach(NULL, &runtime);
	if (r == 0) {
		r = jobs_start(runtime, &jobs, argc, argv);
		if (r == 0)
			r = loop_run(loop, runtime, &jobs);
		stopped = weft_stop(runtime);
		r = r < 0 ? r : stopped;
	}
	sd_event_unref(loop);
	if (r < 0)
		fprintf(stderr, "embed_sd_event: %s\n", strerror(-r));
	return r < 0 || jobs.failed > 0;
}
