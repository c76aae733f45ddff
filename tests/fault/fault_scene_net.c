/* SPDX-License-Identifier: MIT */
/*
 * Scenes of sockets: connections, datagrams and streams, with tasks and with
 * futures.
 *
 * As in fault_scene_io.c, each call may return its documented errors, and the
 * tasks then give up.
 */
#include <linux/openat2.h>
#include <poll.h>
#include <sys/socket.h>

#include "net/dial.h"
#include "tests/fault/fault_scene.h"
#include "tests/support/errno_now.h"

/* ---- Connections --------------------------------------------------------- */

enum { PEERS = 4 };

static int64_t echo(void *arg)
{
	int fd = *(int *)arg;
	char buf[512];
	int64_t n;

	while ((n = MAY(weft_read(fd, buf, sizeof(buf)), MOVE_ERRORS)) > 0)
		if (MAY(weft_write_all(fd, buf, (size_t)n, NULL), MOVE_ERRORS) <
		    0)
			break;
	EXPECT(weft_close(fd) == 0);
	return 0;
}

static int64_t serve(void *arg)
{
	int listener = *(int *)arg, fd;

	WEFT_SUPERVISE (peers)
		for (;;) {
			fd = weft_accept(listener, NULL);
			/* It may be closed before this task has a stack. */
			if (fd == -ECANCELED ||
			    MAY(fd, ENOMEM, EBADF) == -EBADF)
				break;
			if (fd < 0)
				continue;
			if (MAY(WEFT_GO(peers, echo, fd), ENOMEM, ECANCELED) <
			    0)
				EXPECT(weft_close(fd) == 0);
		}
	return 0;
}

struct client {
	char address[WEFT_ADDR_TEXT_BYTES];
	int (*connect)(const char *address,
		       const struct weft_socket_opts *opts);
};

static int64_t talk(void *arg)
{
	struct client *client = arg;
	int fd = (int)MAY(client->connect(client->address, NULL),
			  CONNECT_ERRORS);
	char buf[100] = "hello";

	if (fd < 0)
		return 0;
	/* It may have been accepted by nobody, or closed at once. */
	if (MAY(weft_send_all(fd, buf, sizeof(buf), 0, NULL), MOVE_ERRORS) ==
	    0) {
		weft_shutdown(fd, SHUT_WR);
		MAY(weft_read_all(fd, buf, sizeof(buf), NULL), MOVE_ERRORS);
	}
	EXPECT(weft_close(fd) == 0);
	return 0;
}

static void talk_all(const struct client *client)
{
	WEFT_SUPERVISE (clients)
		for (int i = 0; i < PEERS; i++)
			MAY(weft_go(clients, talk, client, sizeof(*client)),
			    ENOMEM);
}

static void meet(int listener, struct client *client)
{
	WEFT_SUPERVISE (servers) {
		if (MAY(WEFT_GO(servers, serve, listener), ENOMEM) == 0)
			talk_all(client);
		EXPECT(weft_close(listener) == 0);
	}
}

static int64_t tcp(void *arg)
{
	struct client client = { .connect = weft_tcp_connect };
	int listener =
		(int)MAY(weft_tcp_listen("127.0.0.1:0", NULL), CONNECT_ERRORS);

	(void)arg;
	if (listener < 0)
		return 0;
	weft_local_addr_text(listener, client.address);
	meet(listener, &client);
	return 0;
}

void scene_tcp(unsigned workers)
{
	scene_run(tcp, NULL, workers);
}

static int64_t unix_sockets(void *arg)
{
	struct client client = { .connect = weft_unix_connect };
	int listener;

	(void)arg;
	snprintf(client.address, sizeof(client.address), "unix:@fault_%d",
		 (int)getpid());
	listener = (int)MAY(weft_unix_listen(client.address, NULL),
			    CONNECT_ERRORS);
	if (listener >= 0)
		meet(listener, &client);
	return 0;
}

void scene_unix(unsigned workers)
{
	scene_run(unix_sockets, NULL, workers);
}

/* ---- Datagrams ----------------------------------------------------------- */

enum { DATAGRAMS = 3, DATAGRAM_BYTES = 100 };

/* A call that fails is made again: no datagram is lost by it. */
static void udp_send_all(struct weft_udp *udp)
{
	char buf[DATAGRAMS * DATAGRAM_BYTES] = "hello";
	struct weft_udp_msg msg = { .buf = buf, .bytes = sizeof(buf),
				    .segment_bytes = DATAGRAM_BYTES };

	while (MAY(weft_udp_send(udp, &msg, 1, 0), MOVE_ERRORS) < 0)
		EXPECT(msg.sent_bytes < sizeof(buf));
}

static void udp_take_all(struct weft_udp *udp)
{
	char buf[DATAGRAM_BYTES];
	struct weft_udp_msg msg = { .buf = buf, .room = sizeof(buf) };
	int64_t n;

	for (int left = DATAGRAMS; left > 0; left -= (int)n) {
		n = MAY(weft_udp_recv(udp, &msg, 1, 0), MOVE_ERRORS);
		if (n < 0)
			n = 0;
		else
			EXPECT(msg.whole_bytes == DATAGRAM_BYTES);
	}
}

static int64_t udp_take(void *arg)
{
	udp_take_all(*(struct weft_udp **)arg);
	return 0;
}

static void udp_talk(struct weft_udp *to, struct weft_udp *from)
{
	struct weft_addr addr;

	EXPECT(weft_local_addr(weft_udp_fd(to), &addr) == 0);
	EXPECT(weft_udp_connect(from, &addr) == 0);
	/* It waits, or is there already. */
	WEFT_SUPERVISE (scope) {
		if (MAY(WEFT_GO(scope, udp_take, to), ENOMEM) == 0)
			udp_send_all(from);
	}
	udp_send_all(from);
	udp_take_all(to);
}

static int64_t datagrams(void *arg)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_udp to, from;

	(void)arg;
	opts.want_local = opts.want_traffic_class = opts.want_errors = true;
	if (MAY(weft_udp_open(&to, "127.0.0.1:0", &opts), CONNECT_ERRORS) < 0)
		return 0;
	if (MAY(weft_udp_open(&from, NULL, NULL), CONNECT_ERRORS) == 0) {
		udp_talk(&to, &from);
		EXPECT(weft_udp_close(&from) == 0);
	}
	EXPECT(weft_udp_close(&to) == 0);
	return 0;
}

void scene_datagrams(unsigned workers)
{
	scene_run(datagrams, NULL, workers);
}

/* ---- Names -------------------------------------------------------------- */

/* An interface is looked up with a socket. */
static void parse_scope(void)
{
	struct weft_addr addr;
	int r = weft_addr_parse("[fe80::1%lo]:1", &addr);

	if (r != -ENODEV)
		MAY(r, FD_ERRORS);
}

/* Three attempts, of which one wins.  No task accepts. */
static int64_t dial_thrice(void *arg)
{
	struct weft_dial_opts opts = WEFT_DIAL_OPTS_INIT;
	struct weft_addr addrs[3];
	int fd, listener = (int)MAY(weft_tcp_listen("127.0.0.1:0", NULL),
				    CONNECT_ERRORS);

	(void)arg;
	parse_scope();
	if (listener < 0)
		return 0;
	EXPECT(weft_local_addr(listener, &addrs[0]) == 0);
	addrs[1] = addrs[2] = addrs[0];
	opts.delay_ns = 1;
	for (int i = 0; i < PEERS; i++) {
		fd = (int)MAY(weft__dial_addrs(addrs, 3, NULL, &opts),
			      CONNECT_ERRORS);
		if (fd >= 0)
			EXPECT(weft_close(fd) == 0);
	}
	EXPECT(weft_close(listener) == 0);
	return 0;
}

void scene_dial(unsigned workers)
{
	scene_run(dial_thrice, NULL, workers);
}

/* Of the hosts file, or known without it: no server is asked. */
static int64_t names(void *arg)
{
	struct weft_resolver_opts opts = WEFT_RESOLVER_OPTS_INIT;
	struct weft_addr addr;

	(void)arg;
	opts.servers = "127.0.0.1:1";
#ifdef WEFT_WITHOUT_NAMES
	(void)addr;
	EXPECT(weft_resolver_set(&opts) == -ENOSYS);
#else
	MAY(weft_resolver_set(&opts), FD_ERRORS);
	opts.servers = "127.0.0.1:2,127.0.0.1:3";
	opts.resolv_conf = "/dev/null";
	for (int i = 0; i < 2; i++) {
		/* Without descriptors c-ares has no source to ask. */
		if (MAY(weft_resolve("localhost:1", NULL, &addr, 1), FD_ERRORS,
			EAGAIN, EBADMSG) > 0)
			EXPECT(weft_addr_port(&addr) == 1);
		MAY(weft_resolver_set(&opts), FD_ERRORS);
	}
#endif
	return 0;
}

void scene_names(unsigned workers)
{
	scene_run(names, NULL, workers);
}

/* ---- Streams ------------------------------------------------------------- */

static int64_t stream_echo(void *arg)
{
	struct weft_stream stream = WEFT_STREAM_INIT(*(int *)arg);
	const void *data;
	int64_t n;

	while ((n = MAY(weft_stream_peek(&stream, &data), MOVE_ERRORS)) > 0) {
		if (MAY(weft_stream_put(&stream, data, (size_t)n),
			MOVE_ERRORS) < 0)
			break;
		weft_stream_skip(&stream, (size_t)n);
	}
	MAY(weft_stream_close(&stream), MOVE_ERRORS);
	return 0;
}

static int stream_send(struct weft_stream *stream, const char *buf,
		       size_t bytes)
{
	if (bytes == 1)
		return weft_stream_put(stream, buf, bytes);
	if (MAY(weft_stream_put(stream, buf, bytes / 2), MOVE_ERRORS) < 0 ||
	    MAY(weft_stream_flush(stream), MOVE_ERRORS) < 0)
		return -EPIPE;
	return weft_stream_write_all(stream, buf, bytes - bytes / 2, NULL);
}

/* Sends it, and has it back; waits once in vain. */
static bool stream_exchange(struct weft_stream *stream, char *buf, size_t bytes)
{
	int64_t n = 0;

	if (MAY(stream_send(stream, buf, bytes), MOVE_ERRORS) < 0)
		return false;
	for (size_t done = 0; done < bytes; done += (size_t)n) {
		n = MAY(weft_stream_read(stream, buf, bytes - done),
			MOVE_ERRORS);
		if (n <= 0)
			return false;
	}
	WEFT_WITHIN (WEFT_US(10))
		n = weft_stream_read(stream, buf, bytes);
	return n == -ETIMEDOUT || MAY(n, MOVE_ERRORS) > 0;
}

static void stream_talk(int fd)
{
	struct weft_stream stream = WEFT_STREAM_INIT(fd);
	static const size_t sizes[] = { 1, 3000, 1, 20000, 20000 };
	static char buf[20000]; /* stacks may be small; one task talks */

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (!stream_exchange(&stream, buf, sizes[i]))
			break;
	MAY(weft_stream_close(&stream), MOVE_ERRORS);
}

static int64_t streams(void *arg)
{
	int fds[2];

	(void)arg;
	scene_socket_pair(fds);
	WEFT_SUPERVISE (scope) {
		if (MAY(WEFT_GO(scope, stream_echo, fds[1]), ENOMEM) < 0)
			EXPECT(weft_close(fds[1]) == 0);
		stream_talk(fds[0]);
	}
	return 0;
}

void scene_streams(unsigned workers)
{
	scene_run(streams, NULL, workers);
}

/* ---- Connections of futures ---------------------------------------------- */

struct peer {
	WEFT_FUTURE_STATE;
	int fd;
	ssize_t n;
	char buf[64];
};

static int64_t peer_echo(void *arg)
{
	struct peer *p = arg;
	int r;

	WEFT_FUTURE_BEGIN(p);
	for (;;) {
		WEFT_AWAIT_AS(p, p->n,
			      weft_await_recv(p->fd, p->buf, sizeof(p->buf),
					      0));
		if (MAY(p->n, MOVE_ERRORS) <= 0)
			break;
		WEFT_AWAIT_AS(p, p->n,
			      weft_await_send(p->fd, p->buf, (size_t)p->n, 0));
		if (MAY(p->n, MOVE_ERRORS) <= 0)
			break;
	}
	WEFT_AWAIT_AS(p, r, weft_await_close(p->fd));
	EXPECT(r == 0);
	WEFT_FUTURE_END(p);
	return 0;
}

struct acceptor {
	WEFT_FUTURE_STATE;
	int listener;
	struct weft_scope *peers;
	struct peer peer;
};

static int64_t accept_all(void *arg)
{
	struct acceptor *a = arg;
	int r;

	WEFT_FUTURE_BEGIN(a);
	for (;;) {
		WEFT_AWAIT_AS(a, r, weft_await_accept(a->listener, NULL));
		if (r == -ECANCELED || MAY(r, ENOMEM, EBADF) == -EBADF)
			return 0;
		if (r < 0)
			continue;
		a->peer = (struct peer){ .fd = r };
		if (MAY(WEFT_GO_FUTURE(a->peers, peer_echo, a->peer), ENOMEM) ==
		    0)
			continue;
		WEFT_AWAIT_AS(a, r, weft_await_close(a->peer.fd));
		EXPECT(r == 0);
	}
	WEFT_FUTURE_END(a);
	return 0;
}

struct dialler {
	WEFT_FUTURE_STATE;
	int fd;
	ssize_t n;
	struct weft_addr addr;
};

static int64_t dial(void *arg)
{
	struct dialler *d = arg;
	char buf[64] = "hello";
	int r;

	WEFT_FUTURE_BEGIN(d);
	d->fd = socket(weft_addr_family(&d->addr), SOCK_STREAM | SOCK_CLOEXEC,
		       0);
	if (MAY(d->fd < 0 ? -errno_now() : 0, FD_ERRORS) < 0)
		return 0;
	WEFT_AWAIT_AS(d, r, weft_await_connect(d->fd, &d->addr));
	if (MAY(r, ENOMEM) == 0) {
		WEFT_AWAIT_AS(d, d->n,
			      weft_await_send(d->fd, buf, sizeof(buf), 0));
		if (MAY(d->n, MOVE_ERRORS) > 0) {
			WEFT_AWAIT_AS(d, d->n,
				      weft_await_recv(d->fd, buf, sizeof(buf),
						      0));
			MAY(d->n, MOVE_ERRORS);
		}
	}
	WEFT_AWAIT_AS(d, r, weft_await_close(d->fd));
	EXPECT(r == 0);
	WEFT_FUTURE_END(d);
	return 0;
}

static void dial_all(struct dialler *dialler)
{
	WEFT_SUPERVISE (diallers)
		for (int i = 0; i < PEERS; i++)
			MAY(weft_go_future(diallers, dial, dialler,
					   sizeof(*dialler)),
			    ENOMEM);
}

static int64_t tcp_futures(void *arg)
{
	struct acceptor acceptor = { .listener = -1 };
	struct dialler dialler = { .fd = -1 };

	(void)arg;
	acceptor.listener =
		(int)MAY(weft_tcp_listen("127.0.0.1:0", NULL), CONNECT_ERRORS);
	if (acceptor.listener < 0)
		return 0;
	EXPECT(weft_local_addr(acceptor.listener, &dialler.addr) == 0);
	WEFT_SUPERVISE (peers) {
		acceptor.peers = peers;
		if (MAY(weft_go_future(peers, accept_all, &acceptor,
				       sizeof(acceptor)),
			ENOMEM) == 0)
			dial_all(&dialler);
		EXPECT(weft_close(acceptor.listener) == 0);
	}
	return 0;
}

void scene_tcp_futures(unsigned workers)
{
	scene_run(tcp_futures, NULL, workers);
}
