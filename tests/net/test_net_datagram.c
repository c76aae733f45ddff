/* SPDX-License-Identifier: MIT */
/*
 * Suite net/datagram: datagrams to and from addresses, over UDP and Unix
 * sockets, and stream sockets that connect to an address.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "io/os/message.h"
#include "tests/support/io_kit.h"

/* A socket of datagrams.  text is the address to bind it to; NULL: none. */
static int open_bound(int family, const char *text, struct weft_addr *ret_addr)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	if (text) {
		ck_assert_int_eq(weft_addr_parse(text, ret_addr), 0);
		ck_assert_int_eq(bind(fd, weft_addr_sockaddr(ret_addr),
				      weft_addr_sockaddr_bytes(ret_addr)),
				 0);
		ck_assert_int_eq(weft_local_addr(fd, ret_addr), 0);
	}
	return fd;
}

/* Two sockets, and their addresses.  The names of Unix sockets have no file. */
struct two {
	int family, fds[2];
	struct weft_addr addrs[2];
};

static struct two two_open(int i)
{
	struct two two = { .family = i ? AF_UNIX : AF_INET };
	char text[64];

	for (int k = 0; k < 2; k++) {
		snprintf(text, sizeof(text), "unix:@weft-datagram-%ld-%d",
			 (long)getpid(), k);
		two.fds[k] = open_bound(two.family, i ? text : "127.0.0.1:0",
					&two.addrs[k]);
	}
	return two;
}

static void two_close(const struct two *two)
{
	ck_assert_int_eq(weft_close(two->fds[0]), 0);
	ck_assert_int_eq(weft_close(two->fds[1]), 0);
}

/* ---- Arriving ------------------------------------------------------------ */

/* Answers each datagram to the address that it came from. */
static int64_t answer(void *arg)
{
	int fd = *(int *)arg;
	struct weft_addr peer;
	char buf[64];

	for (int i = 0; i < 100; i++) {
		ssize_t n = weft_recvfrom(fd, buf, sizeof(buf), 0, &peer);

		ck_assert_int_gt(n, 0);
		buf[0] ^= 1;
		ck_assert_int_eq(weft_sendto(fd, buf, (size_t)n, 0, &peer), n);
	}
	return 0;
}

static int64_t ask_and_answer(void *arg)
{
	struct two two = two_open(*(int *)arg);
	struct weft_addr peer;
	char buf[64];

	WEFT_SCOPE(server, NULL) {
		ck_assert_int_eq(WEFT_GO(server, answer, two.fds[0]), 0);
		for (int i = 0; i < 100; i++) {
			int bytes = snprintf(buf, sizeof(buf), "%d asks", i);
			char first = buf[0];

			ck_assert_int_eq(weft_sendto(two.fds[1], buf,
						     (size_t)bytes, 0,
						     &two.addrs[0]),
					 bytes);
			memset(buf, 0, sizeof(buf));
			ck_assert_int_eq(weft_recvfrom(two.fds[1], buf,
						       sizeof(buf), 0,
						       i % 2 ? &peer : NULL),
					 bytes);
			ck_assert_int_eq(buf[0], first ^ 1);
			if (i % 2)
				ck_assert(weft_addr_equal(&peer,
							  &two.addrs[0]));
		}
	}
	two_close(&two);
	return 0;
}

START_TEST(datagram_is_answered_to_its_sender)
{
	io_run(ask_and_answer, &(int){ _i & 1 }, _i & 2 ? 2 : 1);
}
END_TEST

static int64_t have_no_name(void *arg)
{
	struct two two = two_open(1);
	struct weft_addr peer;
	int nameless, pair[2];
	char byte = 'x';

	(void)arg;
	memset(&peer, 0xff, sizeof(peer));
	nameless = open_bound(AF_UNIX, NULL, NULL);
	ck_assert_int_eq(weft_sendto(nameless, &byte, 1, 0, &two.addrs[0]), 1);
	ck_assert_int_eq(weft_recvfrom(two.fds[0], &byte, 1, 0, &peer), 1);
	ck_assert_int_eq(weft_addr_family(&peer), AF_UNSPEC);
	ck_assert_uint_eq(weft_addr_sockaddr_bytes(&peer), 0);
	/* A reply to it is refused, and does not go anywhere. */
	ck_assert_int_eq(weft_sendto(two.fds[0], &byte, 1, 0, &peer), -EINVAL);

	memset(&peer, 0xff, sizeof(peer));
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    pair),
			 0);
	ck_assert_int_eq(weft_sendto(pair[0], &byte, 1, 0, NULL), 1);
	ck_assert_int_eq(weft_recvfrom(pair[1], &byte, 1, 0, &peer), 1);
	ck_assert_int_eq(weft_close(pair[0]), 0);
	ck_assert_int_eq(weft_recvfrom(pair[1], &byte, 1, 0, &peer), 0);
	ck_assert_int_eq(weft_close(pair[1]), 0);
	ck_assert_int_eq(weft_close(nameless), 0);
	two_close(&two);
	return 0;
}

START_TEST(sender_without_a_name_has_no_address)
{
	io_run(have_no_name, NULL, 1);
}
END_TEST

static int64_t be_too_long(void *arg)
{
	struct two two = two_open(*(int *)arg);
	struct weft_addr peer;
	char buf[8] = "1234567";

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(weft_sendto(two.fds[1], buf, sizeof(buf), 0,
					     &two.addrs[0]),
				 sizeof(buf));
		memset(&peer, 0, sizeof(peer));
		ck_assert_int_eq(weft_recvfrom(two.fds[0], buf, 3,
					       i ? MSG_TRUNC : 0, &peer),
				 i ? 8 : 3);
		ck_assert(weft_addr_equal(&peer, &two.addrs[1]));
	}
	/* The rest is gone. */
	ck_assert_int_eq(weft_recvfrom(two.fds[0], buf, sizeof(buf),
				       MSG_DONTWAIT, &peer),
			 -EAGAIN);
	/* An empty datagram is one. */
	ck_assert_int_eq(weft_sendto(two.fds[1], NULL, 0, 0, &two.addrs[0]),
			 0);
	memset(&peer, 0, sizeof(peer));
	ck_assert_int_eq(weft_recvfrom(two.fds[0], buf, sizeof(buf), 0, &peer),
			 0);
	ck_assert(weft_addr_equal(&peer, &two.addrs[1]));
	two_close(&two);
	return 0;
}

START_TEST(datagram_that_is_too_long_is_cut_off)
{
	io_run(be_too_long, &(int){ _i }, 1);
}
END_TEST

/* ---- Waiting ------------------------------------------------------------ */

static int64_t wait_in_vain(void *arg)
{
	struct two two = two_open(*(int *)arg);
	struct weft_addr peer = two.addrs[1];
	char byte = 'x';
	ssize_t r = 1;

	WEFT_WITHIN(WEFT_MS(20))
		r = weft_recvfrom(two.fds[0], &byte, 1, 0, &peer);
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert(weft_addr_equal(&peer, &two.addrs[1]));
	/* The next datagram is for the next call. */
	ck_assert_int_eq(weft_sendto(two.fds[1], "y", 1, 0, &two.addrs[0]), 1);
	ck_assert_int_eq(weft_recvfrom(two.fds[0], &byte, 1, 0, NULL), 1);
	ck_assert_int_eq(byte, 'y');
	two_close(&two);
	return 0;
}

START_TEST(interrupted_wait_takes_nothing)
{
	io_run(wait_in_vain, &(int){ _i }, 1);
}
END_TEST

enum { MANY = 300 };

static int64_t receive_many(void *arg)
{
	int fd = *(int *)arg, number;

	for (int i = 0; i < MANY; i++) {
		ck_assert_int_eq(weft_recvfrom(fd, &number, sizeof(number), 0,
					       NULL),
				 sizeof(number));
		ck_assert_int_eq(number, i);
		/* So that the sender is ahead, and has to wait. */
		if (i % 16 == 0)
			ck_assert_int_eq(weft_sleep(WEFT_US(200)), 0);
	}
	return 0;
}

/* The ways to send; all but the first on a connected socket. */
static ssize_t send_number(int way, const struct two *two, int number)
{
	struct iovec iov = { &number, sizeof(number) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fd = two->fds[1];

	switch (way) {
	case 0:
		return weft_sendto(fd, &number, sizeof(number), 0,
				   &two->addrs[0]);
	case 1:
		return weft_send(fd, &number, sizeof(number), 0);
	case 2:
		return weft_sendmsg(fd, &msg, 0);
	case 3:
		return weft_write(fd, &number, sizeof(number));
	default:
		return weft_writev(fd, &iov, 1);
	}
}

enum { WAYS = 5 };

/* A Unix socket takes few datagrams, and loses none. */
static int64_t send_many(void *arg)
{
	struct two two = two_open(1);
	int way = *(int *)arg % WAYS;

	if (*(int *)arg >= WAYS)
		ck_assert_int_eq(fcntl(two.fds[1], F_SETFL, O_NONBLOCK), 0);
	if (way > 0)
		ck_assert_int_eq(weft_connect(two.fds[1], &two.addrs[0]), 0);
	WEFT_SCOPE(receiver, NULL) {
		ck_assert_int_eq(WEFT_GO(receiver, receive_many, two.fds[0]),
				 0);
		for (int i = 0; i < MANY; i++)
			ck_assert_int_eq(send_number(way, &two, i),
					 sizeof(i));
	}
	two_close(&two);
	return 0;
}

START_TEST(send_waits_for_a_slow_receiver)
{
	io_run(send_many, &(int){ _i / 2 }, _i % 2 ? 2 : 1);
}
END_TEST

/* ---- Errors -------------------------------------------------------------- */

static int64_t misuse(void *arg)
{
	static const struct weft_addr none;
	struct two two = two_open(0);
	struct weft_addr addr, six;
	struct msghdr message;
	static char control[WEFT__CONTROL_BYTES + 1];
	char byte = 0;
	int pipe_fds[2], netlink;

	(void)arg;
	ck_assert_int_eq(weft_addr_parse("[::1]:9", &six), 0);
	ck_assert_int_eq(weft_sendto(two.fds[0], &byte, 1, 0, &none), -EINVAL);
	ck_assert_int_eq(weft_sendto(two.fds[0], &byte, 1, 0, NULL),
			 -EDESTADDRREQ);
	ck_assert_int_eq(weft_sendto(two.fds[0], &byte, 1, 0, &six),
			 -EAFNOSUPPORT);
	ck_assert_int_eq(weft_sendto(-1, &byte, 1, 0, &two.addrs[0]), -EBADF);
	ck_assert_int_eq(weft_recvfrom(-1, &byte, 1, 0, &addr), -EBADF);
	netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (netlink >= 0) {
		ck_assert_int_eq(weft_local_addr(netlink, &addr),
				 -EAFNOSUPPORT);
		ck_assert_int_eq(weft_close(netlink), 0);
	}
	ck_assert_int_eq(pipe(pipe_fds), 0);
	ck_assert_int_eq(weft_recvfrom(pipe_fds[0], &byte, 1, 0, &addr),
			 -ENOTSOCK);
	ck_assert_int_eq(weft_sendto(pipe_fds[1], &byte, 1, 0, &two.addrs[0]),
			 -ENOTSOCK);
	ck_assert_int_eq(weft_close(pipe_fds[0]), 0);
	ck_assert_int_eq(weft_close(pipe_fds[1]), 0);
	/* Only musl's lengths need a copy. */
	message = (struct msghdr){ .msg_control = control,
				   .msg_controllen = sizeof(control) };
	if (WEFT__MESSAGE_IS_PADDED)
		ck_assert_int_eq(weft_sendmsg(two.fds[0], &message, 0),
				 -ENOBUFS);
	two_close(&two);
	/* No socket has the name any more. */
	two = two_open(1);
	ck_assert_int_eq(weft_close(two.fds[0]), 0);
	ck_assert_int_eq(weft_sendto(two.fds[1], &byte, 1, 0, &two.addrs[0]),
			 -ECONNREFUSED);
	ck_assert_int_eq(weft_close(two.fds[1]), 0);
	return 0;
}

START_TEST(wrong_calls_are_refused)
{
	static const struct weft_addr none;
	struct weft_addr addr;
	char byte = 0;

	io_run(misuse, NULL, 1);
	ck_assert_int_eq(weft_recvfrom(0, &byte, 1, 0, &addr), -EPERM);
	ck_assert_int_eq(weft_sendto(0, &byte, 1, 0, &none), -EPERM);
	ck_assert_int_eq(weft_socket_connect(&none, NULL), -EPERM);
}
END_TEST

/* ---- Connecting ---------------------------------------------------------- */

static int listen_on(int i, struct weft_addr *ret_addr)
{
	char text[64];
	int fd;

	snprintf(text, sizeof(text), "unix:@weft-connect-%ld", (long)getpid());
	fd = i ? weft_unix_listen(text, NULL) :
		 weft_tcp_listen("127.0.0.1:0", NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_local_addr(fd, ret_addr), 0);
	return fd;
}

static int64_t connect_to(void *arg)
{
	struct weft_socket_opts wrong = WEFT_SOCKET_OPTS_INIT;
	static const struct weft_addr none;
	struct weft_addr addr, peer;
	int i = *(int *)arg, listener = listen_on(i, &addr), fd, other;
	int value = 0;
	socklen_t bytes = sizeof(value);

	fd = weft_socket_connect(&addr, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(weft_peer_addr(fd, &peer), 0);
	ck_assert(weft_addr_equal(&peer, &addr));
	if (!i) {
		/* The options are those of weft_tcp_connect(). */
		ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY,
					    &value, &bytes),
				 0);
		ck_assert_int_ne(value, 0);
	}
	other = weft_accept(listener, NULL);
	ck_assert_int_ge(other, 0);
	ck_assert_int_eq(weft_close(other), 0);
	ck_assert_int_eq(weft_close(fd), 0);

	ck_assert_int_eq(weft_socket_connect(NULL, NULL), -EINVAL);
	ck_assert_int_eq(weft_socket_connect(&none, NULL), -EINVAL);
	wrong.size = 1;
	ck_assert_int_eq(weft_socket_connect(&addr, &wrong), -EINVAL);
	ck_assert_int_eq(weft_close(listener), 0);
	ck_assert_int_eq(weft_socket_connect(&addr, NULL), -ECONNREFUSED);
	return 0;
}

START_TEST(socket_connects_to_an_address)
{
	io_run(connect_to, &(int){ _i }, 1);
}
END_TEST

static Suite *datagram_suite(void)
{
	Suite *suite = suite_create("net/datagram");
	TCase *tc = tcase_create("datagram");

	tcase_add_loop_test(tc, datagram_is_answered_to_its_sender, 0, 4);
	tcase_add_test(tc, sender_without_a_name_has_no_address);
	tcase_add_loop_test(tc, datagram_that_is_too_long_is_cut_off, 0, 2);
	tcase_add_loop_test(tc, interrupted_wait_takes_nothing, 0, 2);
	tcase_add_loop_test(tc, send_waits_for_a_slow_receiver, 0,
			    4 * WAYS);
	tcase_add_test(tc, wrong_calls_are_refused);
	tcase_add_loop_test(tc, socket_connects_to_an_address, 0, 2);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return io_tests_run(datagram_suite());
}
