/* SPDX-License-Identifier: MIT */
/*
 * Commands - children that run to their end, and what they read and write
 * meanwhile.  A command is a pipeline of one.
 *
 *	opens the pipes, starts the children, first to last
 *	pumps (process/pump.h) until all have ended and there is no more output
 *	interrupted, or too much output: SIGTERM, and pumps for the grace;
 *		SIGKILL, and pumps until all have ended
 *	closes the processes
 *
 * It pumps in its last steps, too: a child that waits for room in a pipe would
 * not end by itself, and what it wrote before its end is not lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <weft/task.h>

#include "io/request/call.h"
#include "process/process.h"
#include "process/pump.h"
#include "runtime/base/nsec.h"
#include "runtime/base/own_fd.h"

#define LINGER_DEFAULT_NS WEFT_MS(200)

struct run {
	const struct weft_spawn_opts *opts;
	unsigned count;
	struct weft_command *command;
	struct weft_exit *exits; /* or NULL */
	int child_ends[WEFT__PORTS]; /* -1: none */
	int before; /* what the next child reads; -1: none */
	struct weft__pump pump;
};

/* ---- The pipes ----------------------------------------------------------- */

static void fd_drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int pipe_open(int *ret_reads, int *ret_writes)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ret_reads = weft__fd_above_stdio(fds[0]);
	*ret_writes = weft__fd_above_stdio(fds[1]);
	if (*ret_reads >= 0 && *ret_writes >= 0)
		return 0;
	fds[0] = *ret_reads < 0 ? *ret_reads : *ret_writes;
	fd_drop(ret_reads);
	fd_drop(ret_writes);
	return fds[0];
}

static int port_open(struct run *run, int which, const void *bytes,
		     size_t bytes_max)
{
	struct weft__port *port = &run->pump.ports[which];
	int r;

	if (!bytes)
		return 0;
	port->bytes = (char *)(uintptr_t)bytes;
	port->bytes_max = bytes_max;
	if (which == WEFT__PORT_INPUT)
		r = pipe_open(&run->child_ends[which], &port->fd);
	else
		r = pipe_open(&port->fd, &run->child_ends[which]);
	if (r == 0)
		r = weft__syscall_set_flags(port->fd, O_NONBLOCK);
	return r;
}

static int ports_open(struct run *run)
{
	const struct weft_command *command = run->command;
	int r = port_open(run, WEFT__PORT_INPUT, command->input,
			  command->input_bytes);

	if (r == 0)
		r = port_open(run, WEFT__PORT_OUTPUT, command->output,
			      command->output_bytes_max);
	if (r == 0)
		r = port_open(run, WEFT__PORT_ERRORS, command->errors,
			      command->errors_bytes_max);
	return r == 0 ? weft__pump_watch_ports(&run->pump) : r;
}

/* ---- The children -------------------------------------------------------- */

static bool names(const struct weft_spawn_opts *opts, int number)
{
	for (unsigned i = 0; i < opts->fds_count; i++)
		if (opts->fds[i].number == number)
			return true;
	return false;
}

/* Unless the list has that number. */
static void fd_add(struct weft_spawn_opts *opts, struct weft_child_fd *fds,
		   int number, int source)
{
	if (!names(opts, number))
		fds[opts->fds_count++] =
			(struct weft_child_fd){ number, source, NULL };
}

static int or_null(int fd)
{
	return fd >= 0 ? fd : WEFT_NULL_FD;
}

static int child_start(struct run *run, unsigned i, int output)
{
	struct weft_child_fd fds[WEFT_CHILD_FDS_MAX + WEFT__PORTS];
	struct weft_spawn_opts opts = run->opts[i];
	struct weft_process *process;
	int r;

	if (opts.fds_count)
		memcpy(fds, opts.fds, opts.fds_count * sizeof(*fds));
	opts.fds = fds;
	fd_add(&opts, fds, STDIN_FILENO, or_null(run->before));
	fd_add(&opts, fds, STDOUT_FILENO, or_null(output));
	if (run->child_ends[WEFT__PORT_ERRORS] >= 0)
		fd_add(&opts, fds, STDERR_FILENO,
		       run->child_ends[WEFT__PORT_ERRORS]);
	r = weft_spawn(&opts, &process);
	if (r < 0) {
		run->command->failed = i;
		return r;
	}
	weft__pump_add(&run->pump, process);
	return 0;
}

static int children_start(struct run *run)
{
	int r = 0;

	run->before = run->child_ends[WEFT__PORT_INPUT];
	run->child_ends[WEFT__PORT_INPUT] = -1;
	for (unsigned i = 0; i < run->count && r == 0; i++) {
		bool last = i + 1 == run->count;
		int reads = -1, writes = -1;

		if (last)
			writes = run->child_ends[WEFT__PORT_OUTPUT];
		else
			r = pipe_open(&reads, &writes);
		if (r == 0)
			r = child_start(run, i, writes);
		if (!last)
			fd_drop(&writes);
		fd_drop(&run->before);
		run->before = reads;
	}
	fd_drop(&run->before);
	for (int i = 0; i < WEFT__PORTS; i++)
		fd_drop(&run->child_ends[i]);
	return r;
}

/* ---- The end ------------------------------------------------------------- */

/* The end of the longest grace. */
static weft_nsec grace_end(const struct run *run)
{
	weft_nsec now_ns = weft_now(), last_ns = now_ns;

	for (unsigned i = 0; i < run->pump.count; i++) {
		weft_nsec end_ns = weft__nsec_after(
			now_ns, run->pump.processes[i]->grace_ns);

		if (end_ns > last_ns)
			last_ns = end_ns;
	}
	return last_ns;
}

static void each(struct run *run, void (*fn)(struct weft_process *process))
{
	for (unsigned i = 0; i < run->pump.count; i++)
		fn(run->pump.processes[i]);
}

static void stop(struct run *run)
{
	struct weft__pump *pump = &run->pump;

	pump->persists = true;
	pump->cuts = true;
	/* Within a shield: a deadline that has passed bounds the linger. */
	weft__pump_hurry(pump, LINGER_DEFAULT_NS);
	WEFT_SHIELD {
		each(run, weft__process_ask);
		if (weft__pump_run(pump, grace_end(run)) < 0) {
			each(run, weft__process_kill);
			(void)weft__pump_run(pump, WEFT_NEVER);
		}
	}
}

static int processes_close(struct run *run, int r)
{
	for (unsigned i = 0; i < run->pump.count; i++) {
		struct weft_exit exit = { .status = -1 };
		int closed = weft_process_close(run->pump.processes[i], &exit);

		if (r == 0)
			r = closed;
		if (run->exits)
			run->exits[i] = exit;
	}
	return r;
}

static void results_set(struct run *run)
{
	const struct weft__port *ports = run->pump.ports;
	struct weft_command *command = run->command;

	command->input_bytes_done = ports[WEFT__PORT_INPUT].done;
	command->output_bytes = ports[WEFT__PORT_OUTPUT].done;
	command->errors_bytes = ports[WEFT__PORT_ERRORS].done;
	command->output_cut = ports[WEFT__PORT_OUTPUT].cut;
	command->errors_cut = ports[WEFT__PORT_ERRORS].cut;
	command->output_open = run->pump.left_open;
}

/* ---- The calls ----------------------------------------------------------- */

static bool is_twice(const struct run *run)
{
	const struct weft_command *command = run->command;

	if (command->input && names(&run->opts[0], STDIN_FILENO))
		return true;
	if (command->output && names(&run->opts[run->count - 1], STDOUT_FILENO))
		return true;
	for (unsigned i = 0; i < run->count; i++)
		if (command->errors && names(&run->opts[i], STDERR_FILENO))
			return true;
	return false;
}

static int check(const struct run *run)
{
	const struct weft_command *command = run->command;

	if (!run->opts || !run->count || run->count > WEFT_COMMANDS_MAX ||
	    command->size != sizeof(*command) ||
	    (command->flags & ~WEFT_COMMAND_CUT))
		return -EINVAL;
	for (unsigned i = 0; i < run->count; i++)
		if (run->opts[i].size != sizeof(*run->opts) ||
		    run->opts[i].fds_count > WEFT_CHILD_FDS_MAX - WEFT__PORTS ||
		    (run->opts[i].fds_count && !run->opts[i].fds))
			return -EINVAL;
	return is_twice(run) ? -EINVAL : 0;
}

/* Before this call itself opens descriptors, which would be taken for them. */
static int sources_check(struct run *run)
{
	int r = 0;

	for (unsigned i = 0; i < run->count && r == 0; i++) {
		r = weft__spawn_sources_check(&run->opts[i]);
		if (r < 0)
			run->command->failed = i;
	}
	return r;
}

static int run_all(struct run *run)
{
	int r = sources_check(run);

	if (r == 0)
		r = weft__pump_open(&run->pump);
	if (r < 0)
		return r;
	r = ports_open(run);
	if (r == 0)
		r = children_start(run);
	else
		for (int i = 0; i < WEFT__PORTS; i++)
			fd_drop(&run->child_ends[i]);
	if (r == 0)
		r = weft__pump_run(&run->pump, WEFT_NEVER);
	if (r < 0 && run->pump.count)
		stop(run);
	r = processes_close(run, r);
	weft__pump_close(&run->pump);
	return r;
}

int weft_run_commands(const struct weft_spawn_opts *opts, unsigned count,
		      struct weft_command *command, struct weft_exit *ret_exits)
{
	struct weft_command none = WEFT_COMMAND_INIT;
	struct run run = {
		.opts = opts,
		.count = count,
		.command = command ? command : &none,
		.exits = ret_exits,
		.child_ends = { -1, -1, -1 },
		.before = -1,
	};
	struct weft__worker *worker;
	int r = check(&run);

	if (r < 0)
		return weft__call_refused(r);
	for (unsigned i = 0; i < count && ret_exits; i++)
		ret_exits[i] = (struct weft_exit){ .status = -1 };
	run.pump.cuts = run.command->flags & WEFT_COMMAND_CUT;
	run.pump.linger_ns = run.command->linger_ns ? run.command->linger_ns :
						      LINGER_DEFAULT_NS;
	r = weft__call_begin(&worker);
	if (r == 0)
		r = run_all(&run);
	results_set(&run);
	return r;
}

int weft_run_command(const struct weft_spawn_opts *opts,
		     struct weft_command *command, struct weft_exit *ret_exit)
{
	return weft_run_commands(opts, 1, command, ret_exit);
}
