/* SPDX-License-Identifier: MIT */
/*
 * httpd DIR [ADDR] - serves the files below a directory over HTTP/1.1, with
 * TLS if it has a certificate.
 *
 * Shows	a complete server: a task for each connection, deadlines,
 *		limits.  Read server.c, then session.c; the rest is HTTP.
 * Run		build/examples/httpd . 127.0.0.1:8080
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "options.h"

static int fail(const char *what, const char *name, int error)
{
	fprintf(stderr, "httpd: cannot %s %s: %s\n", what, name,
		strerror(error));
	return 1;
}

/* A connection needs a descriptor, and a second one while a file is sent. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	char text[WEFT_ADDR_TEXT_BYTES];
	struct options options;
	struct server *server = &options.server;
	int64_t result;

	options_parse(&options, argc, argv);
	raise_descriptor_limit();
	server->root_fd =
		open(options.directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (server->root_fd < 0)
		return fail("serve", options.directory, errno);
	if (options.cert) {
		server->secure = secure_context_new(
			options.cert, options.key ? options.key : options.cert);
		if (!server->secure)
			return 1;
	}
	server->listener = weft_tcp_listen(options.address, NULL);
	if (server->listener < 0)
		return fail("listen on", options.address, -server->listener);
	/* For port 0 this is the port that the kernel chose. */
	printf("listening on %s\n",
	       weft_local_addr_text(server->listener, text));
	fflush(stdout);
	opts.workers = options.workers;
	result = weft_run(server_run, server, &opts);
	return fail("go on serving", options.directory, (int)-result);
}
