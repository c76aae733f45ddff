/* SPDX-License-Identifier: MIT */
/*
 * Each query has a socket of its own, so its port is a new one each time, as
 * its ID is: an attacker that forges an answer has to guess both (RFC 5452).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "message.h"
#include "upstream.h"

enum { TRIES = 3 };

/* Waits for the answer; all else is passed over. */
static ssize_t answer_await(struct weft_udp *udp, const uint8_t *query,
			    size_t end, uint8_t *answer)
{
	struct weft_udp_msg msg = { .buf = answer, .room = ANSWER_BYTES_MAX };
	int r;

	while ((r = weft_udp_recv(udp, &msg, 1, 0)) == 1)
		if (msg.bytes == msg.whole_bytes &&
		    message_answers(answer, msg.bytes, query, end))
			return (ssize_t)msg.bytes;
	return r;
}

static ssize_t ask_once(struct weft_udp *udp, weft_nsec patience_ns,
			uint8_t *query, size_t bytes, size_t end,
			uint8_t *answer)
{
	struct weft_udp_msg msg = { .buf = query, .bytes = bytes };
	ssize_t n = 0;

	if (getrandom(query, 2, 0) != 2)
		return -EIO;
	WEFT_WITHIN(patience_ns) {
		n = weft_udp_send(udp, &msg, 1, 0);
		if (n == 1)
			n = answer_await(udp, query, end, answer);
	}
	return n;
}

ssize_t upstream_ask(const struct upstream *upstream, const uint8_t *query,
		     size_t bytes, size_t end, uint8_t *answer)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	uint8_t own[QUERY_BYTES_MAX];
	struct weft_udp udp;
	ssize_t n = -ETIMEDOUT;
	int r;

	memcpy(own, query, bytes);
	opts.connect = upstream->address;
	for (int i = 0; i < TRIES && n == -ETIMEDOUT; i++) {
		r = weft_udp_open(&udp, NULL, &opts);
		if (r < 0)
			return r;
		n = ask_once(&udp, upstream->patience_ns, own, bytes, end,
			     answer);
		weft_udp_close(&udp);
	}
	if (n > 0)
		memcpy(answer, query, 2);
	return n;
}

static ssize_t exchange(int fd, const uint8_t *query, size_t bytes, size_t end,
			uint8_t **ret_answer)
{
	ssize_t n = message_write(fd, query, bytes);

	if (n == 0)
		n = message_read(fd, ret_answer, UINT16_MAX);
	if (n > 0 && !message_answers(*ret_answer, (size_t)n, query, end)) {
		free(*ret_answer);
		return -EBADMSG;
	}
	return n == 0 ? -ECONNRESET : n;
}

ssize_t upstream_ask_tcp(const struct upstream *upstream, const uint8_t *query,
			 size_t bytes, size_t end, uint8_t **ret_answer)
{
	ssize_t n = 0;
	int fd;

	WEFT_WITHIN(TRIES *upstream->patience_ns) {
		fd = weft_tcp_connect(upstream->address, NULL);
		n = fd;
		if (fd >= 0) {
			n = exchange(fd, query, bytes, end, ret_answer);
			weft_close(fd);
		}
	}
	return n;
}
