/* SPDX-License-Identifier: MIT */
/*
 * Suite net/udp errors: calls that are refused, datagrams that are, and the
 * reports of those.
 */
#include "tests/support/needs.h"
#include "tests/support/udp_kit.h"

/* ---- Wrong calls --------------------------------------------------------- */

static const struct weft_addr no_addr;

static void send_wrong(struct weft_udp *udp)
{
	char byte = 'x', *big = calloc(1, 1 << 16);
	struct weft_addr to = udp_addr_of("127.0.0.1:9");
	struct weft_addr six = udp_addr_of("[::1]:9");
	struct weft_addr path = udp_addr_of("unix:@x");
	struct weft_addr all = udp_addr_of("255.255.255.255:9");
	struct weft_udp_msg msg = udp_msg(&byte, 1, 1);

	EXPECT(weft_udp_send(udp, NULL, 1, 0) == -EINVAL);
	EXPECT(weft_udp_send(udp, &msg, 0, 0) == -EINVAL);
	EXPECT(weft_udp_send(udp, &msg, -1, 0) == -EINVAL);
	EXPECT(weft_udp_send(udp, &msg, 1, MSG_OOB) == -EINVAL);
	EXPECT(weft_udp_send(udp, &msg, 1, 0) == -EDESTADDRREQ);
	msg.addr = six;
	EXPECT(weft_udp_send(udp, &msg, 1, 0) == -EAFNOSUPPORT);
	msg.addr = path;
	EXPECT(weft_udp_send(udp, &msg, 1, 0) == -EAFNOSUPPORT);
	msg.addr = all;
	EXPECT(weft_udp_send(udp, &msg, 1, 0) == -EACCES);
	msg.addr = to;
	msg.segment_bytes = 65536;
	EXPECT(weft_udp_send(udp, &msg, 1, 0) == -EINVAL);
	msg.segment_bytes = 0;
	msg.sent_bytes = 1;
	EXPECT(weft_udp_send(udp, &msg, 1, 0) == -EINVAL);
	msg = udp_msg(big, 0, 1 << 16);
	msg.addr = to;
	EXPECT(weft_udp_send(udp, &msg, 1, 0) == -EMSGSIZE);
	EXPECT(msg.sent_bytes == 0);
	free(big);
}

IO_TEST(wrong_calls_are_refused)
{
	struct weft_addr to = udp_addr_of("127.0.0.1:9");
	struct weft_addr six = udp_addr_of("[::1]:9");
	struct weft_udp_error error;
	struct weft_udp_msg msg;
	struct weft_udp udp;
	char byte;

	EXPECT(weft_udp_open(&udp, "127.0.0.1:0", NULL) == 0);
	send_wrong(&udp);
	msg = udp_msg(&byte, 1, 0);
	EXPECT(weft_udp_recv(&udp, NULL, 1, 0) == -EINVAL);
	EXPECT(weft_udp_recv(&udp, &msg, 0, 0) == -EINVAL);
	EXPECT(weft_udp_recv(&udp, &msg, 1, MSG_PEEK) == -EINVAL);
	EXPECT(weft_udp_recv(&udp, &msg, 1, MSG_DONTWAIT) == -EAGAIN);
	EXPECT(weft_udp_recv_error(&udp, &error, 0) == -EINVAL);
	EXPECT(weft_udp_connect(&udp, NULL) == -EINVAL);
	EXPECT(weft_udp_connect(&udp, &no_addr) == -EINVAL);
	EXPECT(weft_udp_connect(&udp, &six) == -EAFNOSUPPORT);
	EXPECT(weft_udp_connect(NULL, &to) == -EINVAL);
	EXPECT(weft_udp_close(&udp) == 0);
	EXPECT(weft_udp_fd(&udp) == -1);
	msg.addr = to;
	msg.bytes = 1;
	EXPECT(weft_udp_recv(&udp, &msg, 1, 0) == -EBADF);
	EXPECT(weft_udp_send(&udp, &msg, 1, 0) == -EBADF);
	EXPECT(weft_udp_connect(&udp, &to) == -EBADF);
	EXPECT(weft_udp_join(&udp, &to, 0) == -EBADF);
	EXPECT(weft_udp_close(&udp) == -EBADF);
	return 0;
}

START_TEST(calls_need_a_task)
{
	struct weft_udp_error error;
	struct weft_udp_msg msg;
	struct weft_udp udp;
	char byte = 'x';

	udp_over(&udp, 0);
	msg = udp_msg(&byte, 1, 1);
	ck_assert_int_eq(weft_udp_recv(&udp, &msg, 1, 0), -EPERM);
	ck_assert_int_eq(weft_udp_recv(&udp, NULL, 1, 0), -EPERM);
	ck_assert_int_eq(weft_udp_send(&udp, &msg, 1, 0), -EPERM);
	ck_assert_int_eq(weft_udp_send(&udp, NULL, 1, 0), -EPERM);
	ck_assert_int_eq(weft_udp_recv_error(&udp, &error, 0), -EPERM);
	ck_assert_int_eq(weft_udp_close(&udp), -EPERM);
	ck_assert_int_eq(weft_udp_fd(&udp), 0);
}
END_TEST

/* ---- Reports ------------------------------------------------------------- */

/* Sends to a port that had a socket. */
static struct weft_addr say_to_nobody(struct weft_udp *udp)
{
	struct weft_udp gone;
	struct weft_addr addr;

	EXPECT(weft_udp_open(&gone, "127.0.0.1:0", NULL) == 0);
	udp_addr(&gone, &addr);
	EXPECT(weft_udp_close(&gone) == 0);
	udp_say(udp, "nobody hears it", &addr);
	return addr;
}

/* The answer is there when the send returns, or later. */
IO_TEST(refused_datagram_has_a_report)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_addr to, here = udp_addr_of("127.0.0.1:0");
	struct weft_udp_error error;
	struct weft_udp udp;

	opts.want_errors = true;
	EXPECT(weft_udp_open(&udp, "127.0.0.1:0", &opts) == 0);
	EXPECT(weft_udp_recv_error(&udp, NULL, 0) == -EINVAL);
	EXPECT(weft_udp_recv_error(&udp, &error, MSG_PEEK) == -EINVAL);
	EXPECT(weft_udp_recv_error(&udp, &error, MSG_DONTWAIT) == -EAGAIN);
	for (int i = 0; i < 3; i++) {
		to = say_to_nobody(&udp);
		memset(&error, 0xff, sizeof(error));
		EXPECT(weft_udp_recv_error(&udp, &error, 0) == 0);
		EXPECT(error.error == -ECONNREFUSED);
		EXPECT(weft_addr_equal(&error.addr, &to));
		EXPECT(weft_addr_equal(&error.reporter, &here));
		EXPECT(error.icmp_type == 3 && error.icmp_code == 3);
		EXPECT(error.mtu == 0);
	}
	EXPECT(weft_udp_recv_error(&udp, &error, MSG_DONTWAIT) == -EAGAIN);
	EXPECT(weft_udp_close(&udp) == 0);
	return 0;
}

IO_TEST(report_ends_a_receive)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_udp_error error;
	struct weft_udp_msg msg;
	struct weft_udp udp;
	char buf[8];

	opts.want_errors = true;
	EXPECT(weft_udp_open(&udp, "127.0.0.1:0", &opts) == 0);
	EXPECT(weft_udp_recv_error(&udp, &error, MSG_DONTWAIT) == -EAGAIN);
	say_to_nobody(&udp);
	msg = udp_msg(buf, sizeof(buf), 0);
	EXPECT(weft_udp_recv(&udp, &msg, 1, 0) == -ECONNREFUSED);
	/* A receive goes on beside reports that no task has taken yet. */
	WEFT_WITHIN (WEFT_MS(20))
		EXPECT(weft_udp_recv(&udp, &msg, 1, 0) == -ETIMEDOUT);
	EXPECT(weft_udp_recv_error(&udp, &error, MSG_DONTWAIT) == 0);
	EXPECT(weft_udp_close(&udp) == 0);
	return 0;
}

static uint64_t ops(void)
{
	struct weft_stats stats;

	EXPECT(weft_stats_get(weft_runtime_self(), &stats) == 0);
	return stats.total.ops;
}

/* A program may want the errors of its calls and no more. */
IO_TEST(untaken_reports_are_dropped)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_udp_error error;
	struct weft_udp_msg msg;
	struct weft_udp udp;
	uint64_t before;
	char buf[8];

	opts.want_errors = true;
	EXPECT(weft_udp_open(&udp, "127.0.0.1:0", &opts) == 0);
	msg = udp_msg(buf, sizeof(buf), 0);
	for (int i = 0; i < 3; i++) {
		say_to_nobody(&udp);
		EXPECT(weft_udp_recv(&udp, &msg, 1, 0) == -ECONNREFUSED);
	}
	before = ops();
	WEFT_WITHIN (WEFT_MS(200))
		EXPECT(weft_udp_recv(&udp, &msg, 1, 0) == -ETIMEDOUT);
	/* A wait that they end, and the one that lasts. */
	EXPECT(ops() - before < 10);
	EXPECT(weft_udp_recv_error(&udp, &error, MSG_DONTWAIT) == -EAGAIN);
	EXPECT(weft_udp_close(&udp) == 0);
	return 0;
}

/* A socket for IPv6 has reports of its IPv4 peers. */
IO_TEST(report_of_a_mapped_address)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_udp_error error;
	struct weft_addr to;
	struct weft_udp udp;
	int r = 1;

	opts.want_errors = true;
	EXPECT(weft_udp_open(&udp, "[::]:0", &opts) == 0);
	to = say_to_nobody(&udp);
	WEFT_WITHIN (WEFT_SEC(20))
		r = weft_udp_recv_error(&udp, &error, 0);
	EXPECT(r == 0);
	EXPECT(error.error == -ECONNREFUSED);
	EXPECT(weft_addr_family(&error.addr) == AF_INET6);
	EXPECT(weft_addr_port(&error.addr) == weft_addr_port(&to));
	EXPECT(weft_udp_close(&udp) == 0);
	return 0;
}

/* A connected socket has the error without a queue. */
IO_TEST(connected_socket_is_refused)
{
	struct weft_udp_msg msg;
	struct weft_addr addr;
	struct weft_udp two[2];
	char buf[8];

	udp_pair(two, NULL);
	udp_addr(&two[0], &addr);
	EXPECT(weft_udp_close(&two[0]) == 0);
	udp_say(&two[1], "nobody hears it", NULL);
	msg = udp_msg(buf, sizeof(buf), 0);
	EXPECT(weft_udp_recv(&two[1], &msg, 1, 0) == -ECONNREFUSED);
	EXPECT(weft_udp_close(&two[1]) == 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("net/udp errors");
	TCase *tc = tcase_create("errors");

	io_add_test(tc, wrong_calls_are_refused);
	tcase_add_test(tc, calls_need_a_task);
	io_add_test(tc, refused_datagram_has_a_report);
	io_add_test(tc, report_ends_a_receive);
	io_add_test(tc, untaken_reports_are_dropped);
	if (test_needs(udp_has_ipv6(), "report_of_a_mapped_address",
		       "the address ::1"))
		io_add_test(tc, report_of_a_mapped_address);
	io_add_test(tc, connected_socket_is_refused);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
