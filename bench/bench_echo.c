/* SPDX-License-Identifier: MIT */
/*
 * weft's echo server, measured beside those of peers/.
 *
 *	bench_echo --port P [--threads N] [--buf BYTES] [--style STYLE]
 *
 * Styles.  stream, the default, reads and writes through a weft_stream.  plain
 * is the program that a reader of the manual would write first: a task for each
 * connection, a loop, a buffer on the stack.  lean holds no buffer while the
 * connection is idle: it waits for input first, and only then takes a buffer
 * from a common list.  future is the same as lean, with a future for each
 * connection in place of a task.
 *
 * What would fool it: a buffer on the stack stays resident once it has been
 * used, so lean must not have one.  One listener serves all workers: stealing
 * spreads the connections, not the kernel.
 */
#include "bench/bench.h"

#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>

enum { STACK_BUF = 4096, BUF_MIN = 64, BUF_MAX = 1 << 20 };

static struct {
	const char *port, *threads, *buf, *style;
} opt = { .threads = "1", .buf = "4096", .style = "stream" };

static size_t buf_bytes;

static void echo_through(int fd, char *buf, size_t bytes)
{
	ssize_t n;

	while ((n = weft_read(fd, buf, bytes)) > 0)
		if (weft_write_all(fd, buf, (size_t)n, NULL) < 0)
			break;
}

static int64_t echo_plain(void *arg)
{
	int fd = *(int *)arg;
	char buf[STACK_BUF];

	echo_through(fd, buf, buf_bytes < STACK_BUF ? buf_bytes : STACK_BUF);
	weft_close(fd);
	return 0;
}

/* For a buffer that is too large for a page of the stack. */
static int64_t echo_large(void *arg)
{
	int fd = *(int *)arg;
	char *buf = malloc(buf_bytes);

	if (buf)
		echo_through(fd, buf, buf_bytes);
	weft_close(fd);
	free(buf);
	return 0;
}

/* Input is read in place.  Output is sent when no more input has arrived. */
static int64_t echo_stream(void *arg)
{
	struct weft_stream stream = WEFT_STREAM_INIT(*(int *)arg);
	const void *data;
	ssize_t n;

	while ((n = weft_stream_peek(&stream, &data)) > 0) {
		if (weft_stream_put(&stream, data, (size_t)n) < 0)
			break;
		weft_stream_skip(&stream, (size_t)n);
	}
	weft_stream_close(&stream);
	return 0;
}

/* Buffers that are not in use; the last one used is first. */
static struct {
	pthread_mutex_t lock;
	void *first; /* each begins with a pointer to the next */
} heap = { .lock = PTHREAD_MUTEX_INITIALIZER };

static char *buffer_get(void)
{
	void *buf;

	pthread_mutex_lock(&heap.lock);
	buf = heap.first;
	if (buf)
		memcpy(&heap.first, buf, sizeof(heap.first));
	pthread_mutex_unlock(&heap.lock);
	return buf ? buf : malloc(buf_bytes);
}

static void buffer_put(char *buf)
{
	pthread_mutex_lock(&heap.lock);
	memcpy(buf, &heap.first, sizeof(heap.first));
	heap.first = buf;
	pthread_mutex_unlock(&heap.lock);
}

/* Serves one request.  Returns false at the end of the connection. */
static bool echo_once(int fd)
{
	char *buf = buffer_get();
	ssize_t n;
	bool more;

	if (!buf)
		return false;
	n = weft_read(fd, buf, buf_bytes);
	more = n > 0 && weft_write_all(fd, buf, (size_t)n, NULL) == 0;
	buffer_put(buf);
	return more;
}

static int64_t echo_lean(void *arg)
{
	int fd = *(int *)arg;

	while (weft_poll(fd, POLLIN) > 0 && echo_once(fd))
		;
	weft_close(fd);
	return 0;
}

/* A connection as a future.  `rest` holds output that is still to be sent. */
struct session {
	WEFT_FUTURE_STATE;
	int fd;
	char *rest;
	uint32_t from, to;
};

/* Serves one request as far as possible without waiting.  Returns 0 at the end
 * of the connection, and WEFT_PENDING if `rest` must be sent. */
static ssize_t echo_try(struct session *s)
{
	char *buf = buffer_get();
	ssize_t n, sent = 0;

	if (!buf)
		return -ENOMEM;
	n = recv(s->fd, buf, buf_bytes, MSG_DONTWAIT);
	if (n > 0)
		sent = send(s->fd, buf, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n <= 0 || sent == n) {
		buffer_put(buf);
		return n;
	}
	s->rest = buf;
	s->from = sent > 0 ? (uint32_t)sent : 0;
	s->to = (uint32_t)n;
	return WEFT_PENDING;
}

static int64_t echo_future(void *state)
{
	struct session *s = state;
	ssize_t n;

	WEFT_FUTURE_BEGIN(s);
	for (;;) {
		WEFT_AWAIT_AS(s, n, weft_await_ready(s->fd, POLLIN));
		if (n > 0)
			n = echo_try(s);
		if (n <= 0 && n != WEFT_PENDING)
			break;
		while (s->from < s->to) {
			WEFT_AWAIT_AS(s, n,
				      weft_await_send(s->fd, s->rest + s->from,
						      s->to - s->from, 0));
			if (n < 0)
				s->from = s->to;
			else
				s->from += (uint32_t)n;
		}
		if (s->rest)
			buffer_put(s->rest);
		s->rest = NULL;
	}
	WEFT_AWAIT(s, weft_await_close(s->fd));
	WEFT_FUTURE_END(s);
	return 0;
}

static int go_session(struct weft_scope *peers, weft_fn echo, int fd)
{
	const struct session session = { .fd = fd };

	if (echo != echo_future)
		return WEFT_GO(peers, echo, fd);
	return WEFT_GO_FUTURE(peers, echo, session);
}

static weft_fn echo_style(void)
{
	if (strcmp(opt.style, "future") == 0)
		return echo_future;
	if (strcmp(opt.style, "lean") == 0)
		return echo_lean;
	if (strcmp(opt.style, "stream") == 0)
		return echo_stream;
	if (strcmp(opt.style, "plain") == 0)
		return buf_bytes <= STACK_BUF ? echo_plain : echo_large;
	return NULL;
}

static int64_t serve(void *arg)
{
	weft_fn echo = *(weft_fn *)arg;
	char address[32];
	int fd, listener;

	snprintf(address, sizeof(address), "127.0.0.1:%s", opt.port);
	listener = (int)bench_must(address, weft_tcp_listen(address, NULL));
	WEFT_SUPERVISE(peers)
		while ((fd = weft_accept(listener, NULL)) >= 0)
			if (go_session(peers, echo, fd) < 0)
				weft_close(fd);
	return weft_close(listener);
}

int main(int argc, char **argv)
{
	static const struct bench_option options[] = {
		{ "--port", &opt.port, false },
		{ "--threads", &opt.threads, false },
		{ "--buf", &opt.buf, false },
		{ "--style", &opt.style, false },
		{ NULL, NULL, false },
	};
	struct rlimit limit;
	weft_fn echo;

	bench_parse(argc, argv, options);
	out_workers = atoi(opt.threads);
	buf_bytes = strtoul(opt.buf, NULL, 10);
	echo = echo_style();
	if (!opt.port || !echo || out_workers < 1 || buf_bytes < BUF_MIN ||
	    buf_bytes > BUF_MAX) {
		fprintf(stderr, "usage: --port P [--threads N] [--buf BYTES] "
				"[--style plain|stream|lean|future]\n");
		return 2;
	}
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	bench_run(serve, &echo);
	return 0;
}
