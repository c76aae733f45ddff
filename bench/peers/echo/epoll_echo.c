/* SPDX-License-Identifier: MIT */
/*
 * The usual loop written by hand: level-triggered epoll, one loop per thread,
 * one buffer per loop, EPOLLOUT only after a socket has accepted too little.
 */
#include "echo_common.h"

#include <sys/epoll.h>

struct conn {
	int fd;
	size_t off, len; /* of the bytes still to be sent */
	char *pending; /* NULL unless bytes are still to be sent */
};

static struct opts o;

static void conn_drop(struct conn *c)
{
	close(c->fd);
	free(c->pending);
	free(c);
}

static void conn_want(int ep, struct conn *c, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = c };

	epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &ev);
}

static void conn_keep(int ep, struct conn *c, const char *rest, size_t len)
{
	c->len = len;
	c->off = 0;
	c->pending = malloc(len);
	memcpy(c->pending, rest, len);
	conn_want(ep, c, EPOLLOUT);
}

static void readable(int ep, struct conn *c, char *buf)
{
	ssize_t sent, n = recv(c->fd, buf, (size_t)o.buf, 0);

	if (n <= 0) {
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			conn_drop(c);
		return;
	}
	sent = send(c->fd, buf, (size_t)n, MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN) {
		conn_drop(c);
		return;
	}
	if (sent < 0)
		sent = 0;
	if (sent < n)
		conn_keep(ep, c, buf + sent, (size_t)(n - sent));
}

static void writable(int ep, struct conn *c)
{
	ssize_t n = send(c->fd, c->pending + c->off, c->len - c->off,
			 MSG_NOSIGNAL);

	if (n < 0) {
		if (errno != EAGAIN)
			conn_drop(c);
		return;
	}
	c->off += (size_t)n;
	if (c->off < c->len)
		return;
	free(c->pending);
	c->pending = NULL;
	conn_want(ep, c, EPOLLIN);
}

static void accept_all(int ep, int listener)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct conn *c;
	int fd;

	while ((fd = accept4(listener, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		c = calloc(1, sizeof(*c));
		c->fd = fd;
		ev.data.ptr = c;
		epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
	}
}

static void *loop(void *arg)
{
	int ep = epoll_create1(EPOLL_CLOEXEC);
	int listener = listen_on(o.port, SOCK_NONBLOCK);
	struct epoll_event ev[256], on_accept = { .events = EPOLLIN };
	char *buf = malloc((size_t)o.buf);

	epoll_ctl(ep, EPOLL_CTL_ADD, listener, &on_accept);
	for (;;) {
		int n = epoll_wait(ep, ev, 256, -1);

		for (int i = 0; i < n; i++) {
			struct conn *c = ev[i].data.ptr;

			if (c == NULL)
				accept_all(ep, listener);
			else if (c->pending != NULL)
				writable(ep, c);
			else
				readable(ep, c, buf);
		}
	}
	return arg;
}

int main(int argc, char **argv)
{
	o = parse_opts(argc, argv);
	prepare_process();
	run_threads(o.threads, loop);
}
