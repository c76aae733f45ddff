/* SPDX-License-Identifier: MIT */
/*
 * rotlog FILE - appends its input, line by line, to a log that may be rotated.
 *
 * Shows	a writer that is safe with logrotate: before each line it opens
 *		the log again if SIGHUP came, or if the name means another file
 *		or none.  Each line is in one of the files, and none is cut in
 *		two.  weft_stat() of a cached name does not suspend.
 * Run		tail -F /etc/motd | build/examples/rotlog /tmp/app.log &
 *		mv /tmp/app.log /tmp/app.log.1
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/weft.h>

struct log {
	const char *name;
	int fd;
	struct stat status;
};

static volatile sig_atomic_t hung_up;

static void on_hang_up(int number)
{
	(void)number;
	hung_up = 1;
}

static int log_open(struct log *log)
{
	int fd;

	hung_up = 0;
	fd = weft_open(log->name, O_WRONLY | O_CREAT | O_APPEND, 0644);

	if (fd < 0)
		return fd;
	if (log->fd >= 0)
		weft_close(log->fd);
	log->fd = fd;
	return weft_fstat(fd, &log->status);
}

/* Without a directory for it, the writer goes on with the old file. */
static int log_check(struct log *log)
{
	struct stat now;
	int r = weft_stat(log->name, &now);

	if (!hung_up && r == 0 && now.st_ino == log->status.st_ino &&
	    now.st_dev == log->status.st_dev)
		return 0;
	r = log_open(log);
	return r == -ENOENT ? 0 : r;
}

/* A line of any length; the last one may have no end. */
static ssize_t line_peek(struct weft_stream *in, const void **ret_line)
{
	ssize_t n = weft_stream_until(in, "\n", 1, SIZE_MAX, ret_line);

	return n == -ENODATA ? weft_stream_peek(in, ret_line) : n;
}

static int write_lines(struct log *log)
{
	struct weft_stream in = WEFT_STREAM_INIT(STDIN_FILENO);
	const void *line;
	ssize_t n = 0;
	int r = 0;

	while (r == 0 && (n = line_peek(&in, &line)) > 0) {
		r = log_check(log);
		if (r == 0)
			r = weft_write_all(log->fd, line, (size_t)n, NULL);
		weft_stream_skip(&in, (size_t)n);
	}
	weft_stream_close(&in);
	return r < 0 ? r : (int)n;
}

static int64_t run(void *arg)
{
	struct log log = { .name = arg, .fd = -1 };
	int r = log_open(&log);

	if (r < 0)
		return r;
	r = write_lines(&log);
	weft_close(log.fd);
	return r;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_hang_up };
	int64_t r;

	if (argc != 2) {
		fprintf(stderr, "usage: rotlog FILE <LINES\n");
		return 2;
	}
	sigaction(SIGHUP, &action, NULL);
	r = weft_run(run, argv[1], NULL);
	if (r < 0)
		fprintf(stderr, "rotlog: %s: %s\n", argv[1], strerror((int)-r));
	return r < 0;
}
