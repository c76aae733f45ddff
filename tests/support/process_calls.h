/* SPDX-License-Identifier: MIT */
/*
 * The calls of <weft/process.h> that suspend, for the table of io_calls.h.
 */
#ifndef WEFT_TESTS_SUPPORT_PROCESS_CALLS_H
#define WEFT_TESTS_SUPPORT_PROCESS_CALLS_H

#include "tests/support/io_place.h"

/* Children read from a pipe, until the peer closes its other end. */
static inline void gate_open(struct place *place)
{
	int fds[2];

	EXPECT(pipe2(fds, O_CLOEXEC) == 0);
	place->file = fds[0];
	place->peer = fds[1];
}
static inline void gate_let_go(struct place *place)
{
	if (place->peer >= 0)
		EXPECT(weft_close(place->peer) == 0);
	place->peer = -1;
}

static inline struct weft_spawn_opts reader_opts(struct place *place,
						 struct weft_child_fd *fds)
{
	static const char *const argv[] = { "/bin/cat", NULL };
	struct weft_spawn_opts opts = WEFT_SPAWN_OPTS_INIT;

	*fds = (struct weft_child_fd){ 0, place->file, NULL };
	opts.argv = argv;
	opts.fds = fds;
	opts.fds_count = 1;
	return opts;
}
static inline struct weft_process *reader_start(struct place *place)
{
	struct weft_process *process = NULL;
	struct weft_child_fd fds;
	struct weft_spawn_opts opts = reader_opts(place, &fds);

	WEFT_SHIELD
		EXPECT(weft_spawn(&opts, &process) == 0);
	return process;
}

static inline ssize_t make_spawn(struct place *place)
{
	struct weft_child_fd fds;
	struct weft_spawn_opts opts = reader_opts(place, &fds);
	struct weft_process *process = NULL;
	int r = weft_spawn(&opts, &process);

	EXPECT((r == 0) == (process != NULL));
	EXPECT(weft_process_close(process, NULL) == 0);
	return r;
}
static inline ssize_t make_process_wait(struct place *place)
{
	struct weft_process *process = reader_start(place);
	struct weft_exit exit;
	int r = weft_process_wait(process, &exit);

	EXPECT(r < 0 || (exit.status == 0 && exit.signal == 0));
	EXPECT(weft_process_close(process, NULL) == 0);
	return r;
}
static inline ssize_t make_process_close(struct place *place)
{
	return weft_process_close(reader_start(place), NULL);
}

/* The first of two reads from the pipe. */
static inline ssize_t run_readers(struct place *place, unsigned count)
{
	struct weft_child_fd fds;
	struct weft_spawn_opts opts[2] = { reader_opts(place, &fds) };
	struct weft_exit exits[2];
	int r;

	opts[1] = opts[0];
	opts[1].fds_count = 0;
	r = weft_run_commands(opts, count, NULL, exits);
	for (unsigned i = 0; i < count; i++)
		EXPECT(r < 0 || exits[i].status == 0);
	return r;
}
static inline ssize_t make_run_command(struct place *place)
{
	return run_readers(place, 1);
}
static inline ssize_t make_run_commands(struct place *place)
{
	return run_readers(place, 2);
}

#endif
