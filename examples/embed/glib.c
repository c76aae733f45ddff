/* SPDX-License-Identifier: MIT */
/*
 * Tasks inside the main loop of GLib, as in a program with GTK.
 *
 * Shows	The descriptor is a source of the loop, and its callback is one
 *		call.  Tasks run on the loop's thread: the last one calls
 *		g_main_loop_quit() itself.
 * Run		build/examples/embed_glib 127.0.0.1:8080 / /index.html
 */
#include <glib-unix.h>
#include <stdio.h>
#include <string.h>

#include "jobs.h"

static gboolean on_ready(gint fd, GIOCondition condition, gpointer runtime)
{
	(void)fd, (void)condition;
	/* It may leave something: then the descriptor is readable. */
	return weft_turn(runtime, NULL) < 0 ? G_SOURCE_REMOVE :
					      G_SOURCE_CONTINUE;
}

static gboolean on_tick(gpointer data)
{
	(void)data;
	tick();
	return G_SOURCE_CONTINUE;
}

static void quit(void *loop)
{
	g_main_loop_quit(loop);
}

int main(int argc, char **argv)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	struct jobs jobs = { .quit = quit, .loop = loop };
	struct weft_runtime *runtime;
	int r = weft_attach(NULL, &runtime), stopped;

	if (r == 0) {
		guint ready = g_unix_fd_add(weft_loop_fd(runtime), G_IO_IN,
					    on_ready, runtime);
		guint timer = g_timeout_add(TICK_MS, on_tick, NULL);

		r = jobs_start(runtime, &jobs, argc, argv);
		if (r == 0 && jobs.left > 0)
			g_main_loop_run(loop);
		g_source_remove(timer);
		/* Before weft_stop(), which closes the descriptor. */
		g_source_remove(ready);
		stopped = weft_stop(runtime);
		r = r < 0 ? r : stopped;
	}
	g_main_loop_unref(loop);
	if (r < 0)
		fprintf(stderr, "embed_glib: %s\n", strerror(-r));
	return r < 0 || jobs.failed > 0;
}
