/* SPDX-License-Identifier: MIT */
/*
 * libuv: one loop per thread, one buffer per loop, uv_try_write() first, and a
 * queued write for the rest.
 */
#include "echo_common.h"

#include <uv.h>

struct write {
	uv_write_t req;
	char data[];
};

static struct opts o;

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *ret_buf)
{
	(void)hint;
	*ret_buf = uv_buf_init(h->loop->data, (unsigned)o.buf);
}

static void on_closed(uv_handle_t *h)
{
	free(h);
}

static void on_written(uv_write_t *req, int status)
{
	uv_handle_t *h = (uv_handle_t *)req->handle;

	if (status < 0 && !uv_is_closing(h))
		uv_close(h, on_closed);
	free(req);
}

static void write_rest(uv_stream_t *s, const char *rest, size_t len)
{
	struct write *w = malloc(sizeof(*w) + len);
	uv_buf_t buf;

	memcpy(w->data, rest, len);
	buf = uv_buf_init(w->data, (unsigned)len);
	if (uv_write(&w->req, s, &buf, 1, on_written) < 0)
		free(w);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *in)
{
	uv_buf_t out;
	int sent;

	if (n < 0) {
		uv_close((uv_handle_t *)s, on_closed);
		return;
	}
	if (n == 0)
		return;
	out = uv_buf_init(in->base, (unsigned)n);
	sent = uv_try_write(s, &out, 1);
	if (sent < 0)
		sent = 0;
	if (sent < n)
		write_rest(s, in->base + sent, (size_t)(n - sent));
}

static void on_connection(uv_stream_t *listener, int status)
{
	uv_tcp_t *conn;

	if (status < 0)
		return;
	conn = malloc(sizeof(*conn));
	uv_tcp_init(listener->loop, conn);
	if (uv_accept(listener, (uv_stream_t *)conn) == 0)
		uv_read_start((uv_stream_t *)conn, on_alloc, on_read);
	else
		uv_close((uv_handle_t *)conn, on_closed);
}

static void *loop(void *arg)
{
	uv_loop_t loop;
	uv_tcp_t listener;

	uv_loop_init(&loop);
	loop.data = malloc((size_t)o.buf);
	uv_tcp_init(&loop, &listener);
	uv_tcp_open(&listener, listen_on(o.port, SOCK_NONBLOCK));
	uv_tcp_simultaneous_accepts(&listener, 1);
	if (uv_listen((uv_stream_t *)&listener, 4096, on_connection) < 0)
		exit(1);
	uv_run(&loop, UV_RUN_DEFAULT);
	return arg;
}

int main(int argc, char **argv)
{
	o = parse_opts(argc, argv);
	prepare_process();
	run_threads(o.threads, loop);
}
