/* SPDX-License-Identifier: MIT */
/*
 * TCP: listening and connecting by text, options, refusals.
 *
 * All connections are on the loopback interface.  This file defines socket(2)
 * in the place of the C library, to play a kernel without IPv6.  A listener
 * whose backlog is full drops what comes, so that a connect waits as long as
 * a test needs.
 */
#include <netinet/tcp.h>
#include <sys/syscall.h>

#include "tests/support/child_kit.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

static bool without_ipv6;

/* Acts as a kernel without IPv6 when a test asks for it. */
int socket(int domain, int type, int protocol)
{
	if (without_ipv6 && domain == AF_INET6) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	return (int)syscall(SYS_socket, domain, type, protocol);
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t bytes = sizeof(value);

	ck_assert_int_eq(getsockopt(fd, level, name, &value, &bytes), 0);
	return value;
}

static void text_of(int fd, bool peer, char text[WEFT_ADDR_TEXT_BYTES])
{
	struct weft_addr addr;

	ck_assert_int_eq(peer ? weft_peer_addr(fd, &addr) :
				weft_local_addr(fd, &addr),
			 0);
	ck_assert_int_gt(weft_addr_format(&addr, text, WEFT_ADDR_TEXT_BYTES),
			 0);
}

/* ---- Listening -------------------------------------------------------- */

START_TEST(listening_needs_no_task)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int fd = tcp_listener(text);

	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(option(fd, SOL_SOCKET, SO_ACCEPTCONN), 1);
	ck_assert_int_eq(option(fd, SOL_SOCKET, SO_REUSEADDR), 1);
	ck_assert_int_eq(option(fd, SOL_SOCKET, SO_REUSEPORT), 0);
	ck_assert_int_ne(option(fd, IPPROTO_TCP, TCP_NODELAY), 0);
	close(fd);
}
END_TEST

START_TEST(port_0_is_a_free_port_that_local_addr_tells)
{
	char one[WEFT_ADDR_TEXT_BYTES], two[WEFT_ADDR_TEXT_BYTES];
	int a = tcp_listener(one), b = tcp_listener(two);

	ck_assert_str_ne(one, two);
	ck_assert_int_eq(weft_tcp_listen(one, NULL), -EADDRINUSE);
	close(a);
	close(b);
}
END_TEST

START_TEST(bad_addresses_and_options_are_refused)
{
	struct weft_socket_opts opts = WEFT_SOCKET_OPTS_INIT;
	struct weft_addr addr;
	int before = fds_open();

	ck_assert_int_eq(weft_tcp_listen(NULL, NULL), -EINVAL);
	ck_assert_int_eq(weft_tcp_listen("", NULL), -EINVAL);
	ck_assert_int_eq(weft_tcp_listen("localhost:80", NULL), -EPERM);
	ck_assert_int_eq(weft_tcp_listen("unix:/x", NULL), -EAFNOSUPPORT);
	ck_assert_int_eq(weft_tcp_listen("[fe80::1%nosuchdevice0]:0", NULL),
			 -ENODEV);
	ck_assert_int_eq(weft_tcp_listen("192.0.2.1:80", NULL),
			 -EADDRNOTAVAIL);
	opts.size--;
	ck_assert_int_eq(weft_tcp_listen("127.0.0.1:0", &opts), -EINVAL);
	opts.size++;
	opts.backlog = -1;
	ck_assert_int_eq(weft_tcp_listen("127.0.0.1:0", &opts), -EINVAL);
	opts.backlog = 0;
	opts.reserved[3] = 1;
	ck_assert_int_eq(weft_tcp_listen("127.0.0.1:0", &opts), -EINVAL);
	ck_assert_int_eq(weft_local_addr(-1, &addr), -EBADF);
	ck_assert_int_eq(weft_local_addr(0, NULL), -EINVAL);
	ck_assert_int_le(fds_open(), before);
}
END_TEST

static int64_t listen_refused(void *arg)
{
	int before = fds_open();

	(void)arg;
	NEED(weft_tcp_listen("127.0.0.1:80", NULL) == -EACCES);
	NEED(fds_open() == before);
	return 0;
}

/* Which ports are privileged is a setting of the machine. */
START_TEST(port_that_is_refused_is_eacces)
{
	unsigned call = SYS_bind;

	child_run_refused(&call, 1, EACCES, listen_refused, NULL);
}
END_TEST

START_TEST(options_are_set)
{
	struct weft_socket_opts opts = WEFT_SOCKET_OPTS_INIT;
	char text[WEFT_ADDR_TEXT_BYTES];
	int a, b;

	opts.delay = true;
	opts.reuse_port = true;
	opts.keepalive = true;
	opts.backlog = 7;
	a = weft_tcp_listen("127.0.0.1:0", &opts);
	ck_assert_int_ge(a, 0);
	ck_assert_int_eq(option(a, IPPROTO_TCP, TCP_NODELAY), 0);
	ck_assert_int_eq(option(a, SOL_SOCKET, SO_REUSEPORT), 1);
	ck_assert_int_eq(option(a, SOL_SOCKET, SO_KEEPALIVE), 1);
	text_of(a, false, text);
	b = weft_tcp_listen(text, &opts);
	ck_assert_int_ge(b, 0);
	close(a);
	close(b);
}
END_TEST

START_TEST(any_address_takes_what_families_there_are)
{
	struct weft_socket_opts opts = WEFT_SOCKET_OPTS_INIT;
	char text[WEFT_ADDR_TEXT_BYTES];
	struct weft_addr addr;
	int fd = weft_tcp_listen(":0", NULL);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_local_addr(fd, &addr), 0);
	if (weft_addr_family(&addr) == AF_INET6)
		ck_assert_int_eq(option(fd, IPPROTO_IPV6, IPV6_V6ONLY), 0);
	close(fd);
	without_ipv6 = true;
	fd = weft_tcp_listen(":0", NULL);
	ck_assert_int_ge(fd, 0);
	text_of(fd, false, text);
	ck_assert_int_eq(strncmp(text, "0.0.0.0:", 8), 0);
	ck_assert_int_eq(weft_tcp_listen(strchr(text, ':'), NULL),
			 -EADDRINUSE);
	close(fd);
	/* A listener for IPv6 gets IPv6 or an error. */
	ck_assert_int_eq(weft_tcp_listen("[::]:0", NULL), -EAFNOSUPPORT);
	opts.only_ipv6 = true;
	ck_assert_int_eq(weft_tcp_listen(":0", &opts), -EAFNOSUPPORT);
}
END_TEST

START_TEST(local_address_is_told_as_text)
{
	char text[WEFT_ADDR_TEXT_BYTES], expected[WEFT_ADDR_TEXT_BYTES];
	int fd = tcp_listener(expected), fds[2];
	struct weft_addr addr;

	ck_assert_str_eq(weft_local_addr_text(fd, text), expected);
	close(fd);
	ck_assert_str_eq(weft_local_addr_text(fd, text), "?");
	ck_assert_str_eq(weft_local_addr_text(-1, text), "?");
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_str_eq(weft_local_addr_text(fds[0], text), "?");
	ck_assert_int_eq(weft_local_addr(fds[0], &addr), -ENOTSOCK);
	ck_assert_int_eq(weft_peer_addr(fds[0], &addr), -ENOTSOCK);
	close(fds[0]);
	close(fds[1]);
	ck_assert_ptr_eq(weft_local_addr_text(-1, text), text);
}
END_TEST

/* ---- Connecting ------------------------------------------------------- */

IO_TEST(connection_knows_both_ends)
{
	char text[WEFT_ADDR_TEXT_BYTES], one[WEFT_ADDR_TEXT_BYTES],
		two[WEFT_ADDR_TEXT_BYTES];
	int listener = tcp_listener(text);
	int client = weft_tcp_connect(text, NULL);
	int server = weft_accept(listener, NULL);

	ck_assert_int_ge(client, 0);
	ck_assert_int_ge(server, 0);
	ck_assert_int_eq(fcntl(client, F_GETFD), FD_CLOEXEC);
	text_of(client, true, one);
	ck_assert_str_eq(one, text);
	text_of(client, false, one);
	text_of(server, true, two);
	ck_assert_str_eq(one, two);
	/* The option is set by default, and inherited from the listener. */
	ck_assert_int_ne(option(client, IPPROTO_TCP, TCP_NODELAY), 0);
	ck_assert_int_ne(option(server, IPPROTO_TCP, TCP_NODELAY), 0);
	close_both((int[]){ client, server });
	ck_assert_int_eq(weft_close(listener), 0);
	return 0;
}

IO_TEST(refusals_leave_nothing_open)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int listener = tcp_listener(text), before;
	struct weft_addr addr;

	ck_assert_int_eq(weft_close(listener), 0);
	before = fds_open();
	for (int i = 0; i < 50; i++)
		ck_assert_int_eq(weft_tcp_connect(text, NULL), -ECONNREFUSED);
	ck_assert_int_eq(weft_tcp_connect(NULL, NULL), -EINVAL);
	ck_assert_int_eq(weft_tcp_connect("1.2.3.4", NULL), -EINVAL);
	ck_assert_int_eq(weft_tcp_connect("unix:/x", NULL), -EAFNOSUPPORT);
	ck_assert_int_eq(weft_tcp_connect("255.255.255.255:1", NULL),
			 -ENETUNREACH);
	ck_assert_int_le(fds_open(), before);
	listener = tcp_listener(text);
	ck_assert_int_eq(weft_peer_addr(listener, &addr), -ENOTCONN);
	ck_assert_int_eq(weft_local_addr(listener, &addr), 0);
	ck_assert_int_eq(weft_close(listener), 0);
	before = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(weft_shutdown(before, SHUT_WR), -ENOTCONN);
	ck_assert_int_eq(weft_connect(before, &addr), -ECONNREFUSED);
	ck_assert_int_eq(weft_close(before), 0);
	return 0;
}

/* A listener with a full backlog: the kernel drops new connections, and the
 * client tries again and again. */
struct full {
	char text[WEFT_ADDR_TEXT_BYTES];
	int listener;
	int clients[8], count;
};

static void full_open(struct full *full)
{
	struct weft_socket_opts opts = WEFT_SOCKET_OPTS_INIT;
	int r = 0;

	opts.backlog = 1;
	full->listener = weft_tcp_listen("127.0.0.1:0", &opts);
	text_of(full->listener, false, full->text);
	full->count = 0;
	while (full->count < 8 && r >= 0) {
		/* The kernel has room for two at least. */
		WEFT_WITHIN(full->count < 2 ? WEFT_SEC(20) : WEFT_MS(50))
			r = weft_tcp_connect(full->text, NULL);
		if (r >= 0)
			full->clients[full->count++] = r;
	}
	ck_assert_int_eq(r, -ETIMEDOUT);
}

static void accept_and_close(int listener, int count)
{
	for (int i = 0; i < count; i++) {
		int fd = weft_accept(listener, NULL);

		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(weft_close(fd), 0);
	}
}

static void full_close(struct full *full)
{
	while (full->count)
		ck_assert_int_eq(weft_close(full->clients[--full->count]), 0);
	ck_assert_int_eq(weft_close(full->listener), 0);
}

IO_TEST(connecting_in_vain_ends_with_the_deadline)
{
	struct full full;
	int r = 0, before;

	full_open(&full);
	before = fds_open();
	WEFT_WITHIN(WEFT_MS(50))
		r = weft_tcp_connect(full.text, NULL);
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_int_le(fds_open(), before);
	full_close(&full);
	return 0;
}

static int connect_within(int fd, const char *text, weft_nsec length_ns)
{
	struct weft_addr addr;
	int r = 0;

	ck_assert_int_eq(weft_addr_parse(text, &addr), 0);
	WEFT_WITHIN(length_ns)
		r = weft_connect(fd, &addr);
	return r;
}

/* The sockets are blocking and non-blocking ones. */
IO_TEST(connecting_goes_on_where_it_was_interrupted)
{
	struct full full;
	int fds[2];

	full_open(&full);
	for (int i = 0; i < 2; i++) {
		fds[i] = socket(AF_INET,
				SOCK_STREAM | (i ? SOCK_NONBLOCK : 0), 0);
		ck_assert_int_ge(fds[i], 0);
		for (int tries = 0; tries < 3; tries++)
			ck_assert_int_eq(connect_within(fds[i], full.text,
							WEFT_MS(20)),
					 -ETIMEDOUT);
	}
	accept_and_close(full.listener, full.count);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(
			connect_within(fds[i], full.text, WEFT_SEC(20)), 0);
	accept_and_close(full.listener, 2);
	close_both(fds);
	full_close(&full);
	return 0;
}

enum { CONNECTS = 50 };

static int64_t connect_in_vain(void *arg)
{
	const char *text = *(const char **)arg;
	int r = 0;

	ck_assert_int_eq(weft_sleep(WEFT_MS(5)), 0);
	WEFT_WITHIN(WEFT_MS(100))
		r = weft_tcp_connect(text, NULL);
	ck_assert_int_eq(r, -ETIMEDOUT);
	return 0;
}

static int64_t close_another(void *arg)
{
	int fd = *(int *)arg;

	ck_assert_int_eq(weft_sleep(WEFT_MS(5)), 0);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

/* The new sockets get the numbers of sockets that were closed a moment ago, so
 * their requests start from the beginning. */
IO_TEST(connecting_goes_on_while_others_close)
{
	struct full full;
	const char *text = full.text;

	full_open(&full);
	WEFT_SUPERVISE(scope)
		for (int i = 0; i < CONNECTS; i++) {
			int fd = dup(full.listener);

			ck_assert_int_ge(fd, 0);
			ck_assert_int_eq(WEFT_GO(scope, close_another, fd), 0);
			ck_assert_int_eq(WEFT_GO(scope, connect_in_vain, text),
					 0);
		}
	full_close(&full);
	return 0;
}

/* The kernel may lack IPv6, or the loopback interface. */
static bool loopback_has_ipv6(void)
{
	int fd = weft_tcp_listen("[::1]:0", NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A socket that has a port of IPv4, and does not listen: a connect is refused,
 * and no other process can listen there.  Others of this test may. */
static int hold_port(int *ret_port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(addr);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
				    sizeof(on)),
			 0);
	ck_assert_int_eq(bind(fd, (void *)&addr, bytes), 0);
	ck_assert_int_eq(getsockname(fd, (void *)&addr, &bytes), 0);
	*ret_port = ntohs(addr.sin_port);
	return fd;
}

/* Listens at a port that is held for IPv4.  Another process may have that of
 * IPv6. */
static int listen_at_ipv6(const struct weft_socket_opts *opts, int *ret_holder,
			  int *ret_port)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int listener;

	for (;;) {
		*ret_holder = hold_port(ret_port);
		snprintf(text, sizeof(text), "[::]:%d", *ret_port);
		listener = weft_tcp_listen(text, opts);
		if (listener != -EADDRINUSE)
			return listener;
		ck_assert_int_eq(weft_close(*ret_holder), 0);
	}
}

IO_TEST(ipv6_takes_ipv4_unless_told_not_to)
{
	struct weft_socket_opts opts = WEFT_SOCKET_OPTS_INIT;
	char text[WEFT_ADDR_TEXT_BYTES];
	struct weft_addr addr;
	int listener = weft_tcp_listen("[::]:0", NULL), client, server;
	int holder, port;

	ck_assert_int_ge(listener, 0);
	ck_assert_int_eq(weft_local_addr(listener, &addr), 0);
	snprintf(text, sizeof(text), "127.0.0.1:%d", weft_addr_port(&addr));
	client = weft_tcp_connect(text, NULL);
	ck_assert_int_ge(client, 0);
	server = weft_accept(listener, NULL);
	close_both((int[]){ client, server });
	ck_assert_int_eq(weft_close(listener), 0);
	opts.only_ipv6 = true;
	listener = listen_at_ipv6(&opts, &holder, &port);
	ck_assert_int_ge(listener, 0);
	snprintf(text, sizeof(text), "127.0.0.1:%d", port);
	ck_assert_int_eq(weft_tcp_connect(text, NULL), -ECONNREFUSED);
	snprintf(text, sizeof(text), "[::1]:%d", port);
	client = weft_tcp_connect(text, NULL);
	ck_assert_int_ge(client, 0);
	close_both((int[]){ client, listener });
	ck_assert_int_eq(weft_close(holder), 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("net/tcp");
	TCase *listening = tcase_create("listening");
	TCase *connecting = tcase_create("connecting");

	tcase_add_test(listening, listening_needs_no_task);
	tcase_add_test(listening, port_0_is_a_free_port_that_local_addr_tells);
	tcase_add_test(listening, bad_addresses_and_options_are_refused);
	if (test_needs(test_can(child_may_refuse),
		       "port_that_is_refused_is_eacces", NEEDS_REFUSED_CALLS))
		tcase_add_test(listening, port_that_is_refused_is_eacces);
	tcase_add_test(listening, options_are_set);
	tcase_add_test(listening, any_address_takes_what_families_there_are);
	tcase_add_test(listening, local_address_is_told_as_text);
	io_add_test(connecting, connection_knows_both_ends);
	io_add_test(connecting, refusals_leave_nothing_open);
	io_add_test(connecting, connecting_in_vain_ends_with_the_deadline);
	io_add_test(connecting, connecting_goes_on_where_it_was_interrupted);
	io_add_test(connecting, connecting_goes_on_while_others_close);
	if (test_needs(loopback_has_ipv6(),
		       "ipv6_takes_ipv4_unless_told_not_to",
		       "the address ::1"))
		io_add_test(connecting, ipv6_takes_ipv4_unless_told_not_to);
	suite_add_tcase(suite, listening);
	suite_add_tcase(suite, connecting);
	return io_tests_run(suite);
}
