/* SPDX-License-Identifier: MIT */
/*
 * Scenes of child processes.
 *
 * The filter of the sweep is the children's, too, but its handler is not: they
 * end by SIGSYS, some before their program begins.  The calls of the parent are
 * the same.
 */
#include <signal.h>
#include <sys/resource.h>

#include "tests/fault/fault_scene.h"

static const char *const program[] = { "/bin/cat", NULL };
static const struct weft_child_limit no_core = { RLIMIT_CORE, 0, 0, 0 };

static struct weft_spawn_opts program_opts(void)
{
	struct weft_spawn_opts opts = WEFT_SPAWN_OPTS_INIT;

	opts.argv = program;
	opts.limits = &no_core;
	opts.limits_count = 1;
	return opts;
}

static void expect_exit(const struct weft_exit *exit)
{
	EXPECT(exit->status == 0 || exit->signal == SIGSYS ||
	       exit->signal == SIGPIPE || exit->signal == SIGTERM);
}

static void start_and_close(void)
{
	int in = -1, out = -1;
	struct weft_child_fd fds[] = {
		{ 0, WEFT_PIPE_READ, &in },
		{ 1, WEFT_PIPE_WRITTEN, &out },
		{ 2, WEFT_NULL_FD, NULL },
	};
	struct weft_spawn_opts opts = program_opts();
	struct weft_process *process = NULL;
	struct weft_exit exit;

	opts.fds = fds;
	opts.fds_count = 3;
	if (MAY(weft_spawn(&opts, &process), FD_ERRORS) < 0) {
		EXPECT(!process && in < 0 && out < 0);
		return;
	}
	EXPECT(weft_close(in) == 0);
	EXPECT(weft_process_wait(process, &exit) == 0);
	expect_exit(&exit);
	EXPECT(weft_process_close(process, &exit) == 0);
	EXPECT(weft_close(out) == 0);
}

static int64_t processes(void *arg)
{
	struct weft_spawn_opts opts[] = { program_opts(), program_opts() };
	struct weft_command command = WEFT_COMMAND_INIT;
	struct weft_process *left;
	struct weft_exit exits[2];
	char out[10], err[10];

	(void)arg;
	start_and_close();
	command.input = "text", command.input_bytes = 4;
	command.output = out, command.output_bytes_max = sizeof(out);
	command.errors = err, command.errors_bytes_max = sizeof(err);
	command.flags = WEFT_COMMAND_CUT;
	if (MAY(weft_run_commands(opts, 2, &command, exits), FD_ERRORS) == 0) {
		expect_exit(&exits[0]);
		expect_exit(&exits[1]);
	}
	/* It ends with the task. */
	MAY(weft_spawn(&opts[0], &left), FD_ERRORS);
	return 0;
}

bool scene_has_children = true;

void scene_processes(unsigned workers)
{
	if (!scene_has_children)
		return;
	scene_run(processes, NULL, workers);
}
