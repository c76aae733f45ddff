/* SPDX-License-Identifier: MIT */
#include <netinet/tcp.h>

#include "tests/support/stream_ways.h"

#include "tests/support/errno_now.h"

int64_t be_ready(void *arg)
{
	weft__atomic(bool) *over = *(weft__atomic(bool) **)arg;

	while (!weft__load(over, acquire))
		EXPECT(weft_yield() == 0);
	return 0;
}

void go_one_way(struct way *way, void (*fn)(struct way *way))
{
	weft__atomic(bool) over = false;
	int fds[2];

	kit_pair(fds, way->tcp);
	if (way->nonblocking)
		EXPECT(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
	way->fd = fds[0];
	way->peer = fds[1];
	weft_stream_init(&way->stream, way->fd);
	WEFT_SUPERVISE (scope) {
		/* Wherever the stream's task is. */
		for (unsigned i = 0;
		     way->busy && i < weft_runtime_self()->workers_count; i++)
			kit_go(scope, be_ready, &over);
		fn(way);
		weft__store(&over, true, release);
	}
}

void go_all_ways(void (*fn)(struct way *way))
{
	for (int i = 0; i < 8; i++) {
		struct way way = { .tcp = i & 1,
				   .busy = i & 2,
				   .nonblocking = i & 4 };

		go_one_way(&way, fn);
	}
}

void way_end(struct way *way)
{
	EXPECT(weft_stream_close(&way->stream) == 0);
	EXPECT(weft_close(way->peer) == 0);
}

void put_bytes(struct way *way, size_t bytes, uint64_t at)
{
	unsigned char *buf = malloc(bytes + 1);

	EXPECT(buf != NULL);
	kit_fill(buf, bytes, at);
	EXPECT(weft_stream_put(&way->stream, buf, bytes) == 0);
	/* It was copied, or is sent. */
	memset(buf, 0, bytes);
	free(buf);
}

void expect_there(const struct way *way, size_t bytes, uint64_t at)
{
	unsigned char *buf = malloc(bytes + 1);

	EXPECT(buf != NULL);
	EXPECT(recv(way->peer, buf, bytes + 1, MSG_DONTWAIT) == (ssize_t)bytes);
	kit_check(buf, bytes, at);
	free(buf);
}

void expect_nothing_there(const struct way *way)
{
	char byte;

	EXPECT(recv(way->peer, &byte, 1, MSG_DONTWAIT) < 0 &&
	       errno_now() == EAGAIN);
}

void expect_no_buffers(struct way *way)
{
	EXPECT(!weft__stream(&way->stream)->out);
	EXPECT(!weft__stream(&way->stream)->going);
}

int64_t receive(void *arg)
{
	struct way *way = *(struct way **)arg;
	unsigned char *buf = malloc(1 << 16);
	uint64_t at = 0;
	ssize_t n;

	EXPECT(buf != NULL);
	for (; at < way->bytes; at += (uint64_t)n) {
		n = weft_read(way->peer, buf, 1 << 16);
		EXPECT(n > 0);
		kit_check(buf, (size_t)n, at);
	}
	EXPECT(at == way->bytes);
	free(buf);
	return 0;
}

int64_t sip(void *arg)
{
	struct way *way = *(struct way **)arg;
	unsigned char buf[10000];
	uint64_t at = 0, random = 1;

	while (at < way->bytes) {
		ssize_t n = weft_read(way->peer, buf,
				      1 + kit_chance(&random, sizeof(buf)));

		EXPECT(n > 0);
		kit_check(buf, (size_t)n, at);
		at += (uint64_t)n;
		if (kit_chance(&random, 16) == 0)
			EXPECT(weft_sleep(kit_chance(&random, WEFT_US(300))) ==
			       0);
	}
	return 0;
}

void way_make_small(const struct way *way)
{
	kit_make_small((int[]){ way->fd, way->peer });
}

/* Each acknowledgement makes room, and would come late otherwise. */
static void acknowledge_at_once(const struct way *way)
{
	EXPECT(!way->tcp || setsockopt(way->peer, IPPROTO_TCP, TCP_QUICKACK,
				       &(int){ 1 }, sizeof(int)) == 0);
}

uint64_t way_stuff(const struct way *way)
{
	unsigned char buf[1000];
	uint64_t at = 0;
	ssize_t n;

	way_make_small(way);
	for (;;) {
		kit_fill(buf, sizeof(buf), at);
		acknowledge_at_once(way);
		n = send(way->fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n < 0)
			break;
		at += (uint64_t)n;
	}
	EXPECT(errno_now() == EAGAIN);
	return at;
}

static int64_t ask_soon(void *arg)
{
	struct way *way = *(struct way **)arg;

	EXPECT(weft_sleep(WEFT_MS(2)) == 0);
	EXPECT(weft_write_all(way->peer, "ask", 3, NULL) == 0);
	return 0;
}

void ask_first(struct way *way)
{
	const void *data;

	way->bytes = way_stuff(way);
	put_bytes(way, 100, way->bytes);
	way->bytes += 100;
	WEFT_SUPERVISE (scope) {
		kit_go(scope, ask_soon, way);
		EXPECT(weft_stream_peek(&way->stream, &data) == 3);
		weft_stream_skip(&way->stream, 3);
		kit_go(scope, receive, way);
		EXPECT(weft_stream_flush(&way->stream) == 0);
	}
	EXPECT(weft_stream_close(&way->stream) == 0);
	EXPECT(weft_close(way->peer) == 0);
}

/* Takes the answer bit by bit, and then asks. */
static int64_t sip_and_ask(void *arg)
{
	struct way *way = *(struct way **)arg;
	unsigned char buf[100];
	ssize_t n;

	for (uint64_t at = 0; at < way->bytes; at += (uint64_t)n) {
		n = weft_read(way->peer, buf, sizeof(buf));
		EXPECT(n > 0);
		kit_check(buf, (size_t)n, at);
	}
	EXPECT(weft_write_all(way->peer, "ask", 3, NULL) == 0);
	return 0;
}

void answer_bit_by_bit(struct way *way)
{
	const void *data;
	int bytes = 1;

	for (int i = 0; i < 2; i++)
		EXPECT(setsockopt(i ? way->peer : way->fd, SOL_SOCKET,
				  i ? SO_RCVBUF : SO_SNDBUF, &bytes,
				  sizeof(bytes)) == 0);
	for (unsigned i = 0; i < kit_rounds(8); i++) {
		way->bytes = 2 * WEFT__SEND_BUFFER_BYTES;
		put_bytes(way, WEFT__SEND_BUFFER_BYTES, 0);
		WEFT_SUPERVISE (scope) {
			kit_go(scope, sip_and_ask, way);
			put_bytes(way, WEFT__SEND_BUFFER_BYTES,
				  WEFT__SEND_BUFFER_BYTES);
			EXPECT(weft_stream_peek(&way->stream, &data) == 3);
			weft_stream_skip(&way->stream, 3);
		}
	}
	way_end(way);
}
