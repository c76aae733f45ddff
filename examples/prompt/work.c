/* SPDX-License-Identifier: MIT */
/* The tasks of the jobs: timers, and commands of the shell. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "work.h"

static struct output room[16];
struct weft_chan job_output = WEFT_CHAN_INIT(room);

/* Waits while the prompt is slow.  Control characters would move the cursor. */
static int say(struct work *work, const char *text, size_t bytes)
{
	char *to = work->said.text;

	while (bytes > 0 && text[bytes - 1] == '\n')
		bytes--;
	for (size_t i = 0; i < bytes && i < TEXT_BYTES - 1; i++) {
		unsigned char byte = (unsigned char)text[i];

		*to++ = byte < ' ' || byte == 127 ? ' ' : text[i];
	}
	*to = 0;
	return weft_chan_send(&job_output, &work->said);
}

/* A line, or the part of one that there is room for. */
static ssize_t piece(struct weft_stream *stream, const void **ret_data)
{
	ssize_t n = weft_stream_until(stream, "\n", 1, TEXT_BYTES - 1,
				      ret_data);

	if (n != -EMSGSIZE && n != -ENODATA)
		return n;
	n = weft_stream_peek(stream, ret_data);
	return n < TEXT_BYTES - 1 ? n : TEXT_BYTES - 1;
}

static int output_say(struct work *work, int fd)
{
	struct weft_stream output = WEFT_STREAM_INIT(fd);
	const void *data;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = piece(&output, &data)) != 0) {
		r = n < 0 ? (int)n : say(work, data, (size_t)n);
		if (n > 0)
			weft_stream_skip(&output, (size_t)n);
	}
	weft_stream_close(&output);
	return r;
}

/* A command that is cancelled is ended, with all that it has started in its
 * group. */
static int64_t command_do(struct work *work)
{
	const char *argv[] = { "sh", "-c", "exec 2>&1; eval \"$0\"",
			       work->text, NULL };
	int fd, r;
	struct weft_child_fd fds[] = {
		{ 0, WEFT_NULL_FD, NULL },
		{ 1, WEFT_PIPE_WRITTEN, &fd },
	};
	struct weft_spawn_opts opts = WEFT_SPAWN_OPTS_INIT;
	struct weft_exit exit = { .status = 0 };
	struct weft_process *process;

	opts.argv = argv;
	opts.fds = fds;
	opts.fds_count = 2;
	opts.flags = WEFT_SPAWN_GROUP;
	r = weft_spawn(&opts, &process);
	if (r < 0)
		return r;
	r = output_say(work, fd);
	if (r == 0)
		r = weft_process_wait(process, NULL);
	weft_process_close(process, &exit);
	return r < 0 ? r : exit.signal ? 128 + exit.signal : exit.status;
}

int64_t work_run(void *arg)
{
	struct work *work = arg;
	int r;

	if (work->kind == JOB_COMMAND)
		return command_do(work);
	do {
		r = weft_sleep(work->delay_ns);
		if (r == 0)
			r = say(work, work->text, strlen(work->text));
	} while (r == 0 && work->kind == JOB_EVERY);
	return r;
}
