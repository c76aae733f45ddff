/* SPDX-License-Identifier: MIT */
/*
 * echo [ADDR] [--workers N] - a server that sends back what it receives.
 *
 * Shows	one task for each connection, in a supervisor: a connection that
 *		fails ends alone, and the server goes on.  Each connection is a
 *		stream: data is read in place, so no buffer is needed here, and
 *		what is put is sent together when there is nothing more to read.
 * Run		build/examples/echo 127.0.0.1:7000 &  nc 127.0.0.1 7000
 * Needs	Linux 6.1 or newer
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

struct options {
	const char *address;
	unsigned workers;
};

static int64_t echo(void *arg)
{
	struct weft_stream stream = WEFT_STREAM_INIT(*(int *)arg);
	const void *data;
	ssize_t n;

	while ((n = weft_stream_peek(&stream, &data)) > 0 &&
	       weft_stream_put(&stream, data, (size_t)n) == 0)
		weft_stream_skip(&stream, (size_t)n);
	return weft_stream_close(&stream);
}

static int64_t serve(void *arg)
{
	int listener = *(int *)arg;
	int fd = -1;

	WEFT_SUPERVISE(connections)
		while ((fd = weft_accept(listener, NULL)) >= 0)
			if (WEFT_GO(connections, echo, fd) < 0)
				weft_close(fd);
	return fd;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct options *options = state->input;
	char *end;

	switch (key) {
	case 'w':
		options->workers = (unsigned)strtoul(value, &end, 10);
		if (options->workers == 0 || options->workers > 1024 || *end)
			argp_error(state, "--workers: not 1 to 1024: %s",
				   value);
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 0)
			argp_usage(state);
		options->address = value;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option table[] = {
		{ "workers", 'w', "N", 0, "threads (default: one per CPU)", 0 },
		{ 0 },
	};
	static const struct argp argp = {
		table, parse_option, "[ADDR]", 0, 0, 0, 0
	};
	struct options options = { "127.0.0.1:7000", 0 };
	struct weft_opts opts = WEFT_OPTS_INIT;
	char text[WEFT_ADDR_TEXT_BYTES];
	int64_t result;
	int listener;

	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	listener = weft_tcp_listen(options.address, NULL);
	if (listener < 0) {
		fprintf(stderr, "echo: cannot listen on %s: %s\n",
			options.address, strerror(-listener));
		return 1;
	}
	/* For port 0 this is the port that the kernel chose. */
	printf("listening on %s\n", weft_local_addr_text(listener, text));
	fflush(stdout);
	opts.workers = options.workers;
	result = weft_run(serve, &listener, &opts);
	fprintf(stderr, "echo: %s\n", strerror((int)-result));
	return 1;
}
