/* SPDX-License-Identifier: MIT */
/*
 * echo [ADDR] [--workers N] - a server that sends back what it receives.
 *
 * Shows	one task for each connection, in a supervisor: a connection that
 *		fails ends alone, and the server goes on.  Each connection is a
 *		stream: data is read in place, so no buffer is needed here, and
 *		what is put is sent together when there is nothing more to read.
 * Run		build/examples/echo 127.0.0.1:7000 &  nc 127.0.0.1 7000
 */
#include <getopt.h>
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

static void parse_options(struct options *options, int argc, char **argv)
{
	static const struct option table[] = {
		{ "workers", required_argument, NULL, 'w' },
		{ NULL, 0, NULL, 0 },
	};
	char *end;
	int option;

	while ((option = getopt_long(argc, argv, "w:", table, NULL)) == 'w') {
		options->workers = (unsigned)strtoul(optarg, &end, 10);
		if (*end || !options->workers || options->workers > 1024)
			break;
	}
	if (option >= 0 || optind + 1 < argc) {
		fprintf(stderr, "usage: echo [ADDR] [--workers N]\n"
				"N is 1 to 1024; one per CPU if not given\n");
		exit(2);
	}
	if (optind < argc)
		options->address = argv[optind];
}

int main(int argc, char **argv)
{
	struct options options = { "127.0.0.1:7000", 0 };
	struct weft_opts opts = WEFT_OPTS_INIT;
	char text[WEFT_ADDR_TEXT_BYTES];
	int64_t result;
	int listener;

	parse_options(&options, argc, argv);
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
