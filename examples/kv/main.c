/* SPDX-License-Identifier: MIT */
/*
 * kv [ADDR] [--workers N] [--grace-ms N] - keys and values in memory, for
 * clients of Redis.
 *
 * Shows	a protocol that is parsed where the stream received it (input.c,
 *		array.c), and answers that leave together; a table that tasks of
 *		all workers share (table.h), whose locks are never held while a
 *		task suspends; a timer task that does a bounded part of its work
 *		at a time (server.c); and an end in which no request that has
 *		come is lost (clients.c).
 * Run		build/examples/kv &  redis-cli set greeting hello
 *		redis-benchmark -t set,get -P 16;  kill %1
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../common/serving.h"
#include "options.h"
#include "server.h"

static int64_t run(struct server *server, const struct options *options)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	char text[WEFT_ADDR_TEXT_BYTES];
	int64_t result;

	server->table = table_new();
	if (!server->table)
		return -ENOMEM;
	printf("listening on %s\n",
	       weft_local_addr_text(server->listener, text));
	fflush(stdout);
	opts.workers = options->workers;
	result = weft_run(server_run, server, &opts);
	table_free(server->table);
	return result;
}

int main(int argc, char **argv)
{
	struct server server = { .clients = CLIENTS_INIT };
	struct options options;
	int64_t result;

	options_parse(&options, argc, argv);
	server.grace_ns = WEFT_MS(options.grace_ms);
	serving_raise_descriptor_limit();
	server.signal_fd = serving_open_signals();
	server.listener = weft_tcp_listen(options.address, NULL);
	result = server.listener < 0 ? server.listener : server.signal_fd;
	if (result >= 0)
		result = run(&server, &options);
	if (result < 0)
		fprintf(stderr, "kv: %s: %s\n", options.address,
			strerror((int)-result));
	return result < 0;
}
