/* SPDX-License-Identifier: MIT */
/*
 * Queries over UDP.  A call receives many, and one sends all answers that are
 * kept; for each other query there is a task, which waits for the server.  At
 * the limit of such tasks no more is received: what comes meanwhile is lost, if
 * the socket's buffer is full, and is asked again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "server.h"
#include "upstream.h"

enum { BATCH = 32, ASKING_MAX = 1000 };

/* A query that no answer is kept for; the argument of its task. */
struct asking {
	struct server *server;
	struct weft_addr addr, local;
	unsigned interface;
	size_t bytes, end;
	uint8_t query[QUERY_BYTES_MAX];
};

static int64_t ask(void *arg)
{
	struct asking *asking = arg;
	struct server *server = asking->server;
	uint8_t answer[ANSWER_BYTES_MAX];
	struct weft_udp_msg msg = { .buf = answer,
				    .addr = asking->addr,
				    .local = asking->local,
				    .interface = asking->interface };
	ssize_t n = upstream_ask(&server->upstream, asking->query,
				 asking->bytes, asking->end, answer);

	if (n > 0) {
		cache_put(server->cache, asking->query, asking->bytes,
			  asking->end, answer, (size_t)n);
		msg.bytes = (size_t)n;
	} else {
		msg.buf = asking->query;
		msg.bytes = message_fail(asking->query, asking->end);
	}
	return weft_udp_send(&server->udp, &msg, 1, 0) < 0;
}

/* A query for which no task can be started is lost, too. */
static void ask_begin(struct server *server, struct weft_scope *tasks,
		      const struct weft_udp_msg *msg, size_t end)
{
	struct asking asking = { .server = server,
				 .addr = msg->addr,
				 .local = msg->local,
				 .interface = msg->interface,
				 .bytes = msg->bytes,
				 .end = end };

	memcpy(asking.query, msg->buf, asking.bytes);
	if (WEFT_GO(tasks, ask, asking) < 0)
		return;
}

/* Answers in place, or starts a task.  Returns whether there is an answer. */
static bool take(struct server *server, struct weft_scope *tasks,
		 struct weft_udp_msg *msg)
{
	size_t end = 0, kept;

	if (msg->bytes <= QUERY_BYTES_MAX)
		end = message_query_end(msg->buf, msg->bytes);
	if (end == 0)
		return false;
	kept = cache_get(server->cache, msg->buf, msg->bytes, end);
	if (kept > 0)
		msg->bytes = kept;
	else
		ask_begin(server, tasks, msg, end);
	return kept > 0;
}

/* An answer that cannot be sent is lost, as a datagram may be. */
static void send_all(struct weft_udp *udp, struct weft_udp_msg *msgs, int count)
{
	for (int at = 0, n; at < count; at += n < 1 ? 1 : n)
		n = weft_udp_send(udp, msgs + at, count - at, 0);
}

static bool goes_on(int error)
{
	return error != -ECANCELED && error != -ETIMEDOUT && error != -EBADF;
}

/* `room` is of BATCH answers. */
static int receive(struct server *server, struct weft_scope *tasks,
		   uint8_t *room)
{
	struct weft_udp_msg msgs[BATCH];
	int count = 0, n;

	for (int i = 0; i < BATCH; i++)
		msgs[i] = (struct weft_udp_msg){
			.buf = room + (size_t)i * ANSWER_BYTES_MAX,
			.room = ANSWER_BYTES_MAX,
		};
	n = weft_udp_recv(&server->udp, msgs, BATCH, 0);
	for (int i = 0; i < n; i++)
		if (take(server, tasks, &msgs[i]))
			msgs[count++] = msgs[i];
	send_all(&server->udp, msgs, count);
	return n < 0 && !goes_on(n) ? n : 0;
}

int64_t serve_datagrams(void *arg)
{
	struct server *server = *(struct server **)arg;
	uint8_t *room = malloc((size_t)BATCH * ANSWER_BYTES_MAX);
	int r = room ? 0 : -ENOMEM;

	WEFT_SUPERVISE(tasks) {
		if (r == 0)
			r = weft_scope_limit(tasks, ASKING_MAX);
		while (r == 0)
			r = receive(server, tasks, room);
	}
	free(room);
	return r;
}
