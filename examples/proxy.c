/* SPDX-License-Identifier: MIT */
/*
 * proxy LISTEN UPSTREAM - passes TCP connections on, in both directions.
 *
 * Shows	two tasks in a group, one for each direction.  The end of one
 *		direction is passed on as a half-close, while the other goes on;
 *		an error in either cancels the other.  Both sockets are streams:
 *		data is passed on in place, and idle ones have no buffer.
 * Run		build/examples/proxy 127.0.0.1:8000 127.0.0.1:7000
 */
#include <stdio.h>
#include <string.h>

#include <weft/weft.h>

#define CONNECT_NS WEFT_SEC(10)

struct direction {
	struct weft_stream *from;
	struct weft_stream *to;
};

struct client {
	int fd;
	const char *upstream;
};

static int64_t pump(void *arg)
{
	const struct direction *way = arg;
	const void *data;
	ssize_t n;
	int r;

	while ((n = weft_stream_peek(way->from, &data)) > 0) {
		r = weft_stream_write_all(way->to, data, (size_t)n, NULL);
		if (r < 0)
			return r;
		weft_stream_skip(way->from, (size_t)n);
	}
	return n < 0 ? n : weft_shutdown(weft_stream_fd(way->to), SHUT_WR);
}

/* Runs both directions until both have ended or one has failed.  Closes
 * both. */
static int64_t pump_both(int client, int upstream)
{
	struct weft_stream on_client = WEFT_STREAM_INIT(client);
	struct weft_stream on_upstream = WEFT_STREAM_INIT(upstream);
	const struct direction up = { &on_client, &on_upstream };
	const struct direction down = { &on_upstream, &on_client };
	int64_t result = 0;
	int r;

	WEFT_SCOPE(both, &result)
		if ((r = WEFT_GO(both, pump, up)) < 0 ||
		    (r = WEFT_GO(both, pump, down)) < 0)
			weft_scope_fail(both, r);
	weft_stream_close(&on_upstream);
	weft_stream_close(&on_client);
	return result;
}

static int64_t relay(void *arg)
{
	const struct client *client = arg;
	int upstream = -1;

	WEFT_WITHIN(CONNECT_NS)
		upstream = weft_tcp_connect(client->upstream, NULL);
	if (upstream >= 0)
		return pump_both(client->fd, upstream);
	fprintf(stderr, "proxy: %s: %s\n", client->upstream,
		strerror(-upstream));
	weft_close(client->fd);
	return upstream;
}

static int64_t serve(void *arg)
{
	char **argv = arg;
	char text[WEFT_ADDR_TEXT_BYTES];
	struct client client = { -1, argv[2] };
	int listener = weft_tcp_listen(argv[1], NULL);

	if (listener < 0)
		return listener;
	printf("listening on %s\n", weft_local_addr_text(listener, text));
	fflush(stdout);
	WEFT_SUPERVISE(clients)
		while ((client.fd = weft_accept(listener, NULL)) >= 0)
			if (WEFT_GO(clients, relay, client) < 0)
				weft_close(client.fd);
	weft_close(listener);
	return client.fd;
}

int main(int argc, char **argv)
{
	struct weft_addr addr;
	int64_t result;

	if (argc != 3 || weft_addr_parse(argv[2], &addr) < 0) {
		fprintf(stderr, "Usage: proxy LISTEN UPSTREAM\n"
				"as in: proxy 127.0.0.1:8000 127.0.0.1:7000\n");
		return 2;
	}
	result = weft_run(serve, argv, NULL);
	fprintf(stderr, "proxy: %s: %s\n", argv[1], strerror((int)-result));
	return 1;
}
