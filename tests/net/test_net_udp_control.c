/* SPDX-License-Identifier: MIT */
/*
 * Suite net/udp control: control messages of datagrams.  The owner of the
 * descriptor may ask for more of them than weft; and what a message that is
 * sent asks for goes to a peer of either family.
 */
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <netinet/in.h>

#include "net/udp_control.h"
#include "tests/support/errno_now.h"
#include "tests/support/needs.h"
#include "tests/support/udp_kit.h"

static struct weft_udp_opts opts_of_all(void)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;

	opts.want_local = opts.want_traffic_class = opts.want_errors = true;
	return opts;
}

/* ---- Their length -------------------------------------------------------- */

static const struct {
	int level, type;
	size_t bytes;
} kinds[] = {
	{ IPPROTO_IP, IP_PKTINFO, sizeof(struct in_pktinfo) },
	{ IPPROTO_IPV6, IPV6_PKTINFO, sizeof(struct in6_pktinfo) },
	{ IPPROTO_IP, IP_TOS, 1 },
	{ IPPROTO_IPV6, IPV6_TCLASS, sizeof(int) },
	{ IPPROTO_UDP, UDP_GRO, sizeof(int) },
};

/* Takes a control message of so many bytes, of which each is 1. */
static struct weft_udp_msg told_by(int kind, size_t bytes)
{
	union weft__udp_control control;
	struct weft_udp_msg msg = { .bytes = 0 };
	struct msghdr header = { .msg_control = &control,
				 .msg_controllen = (socklen_t)CMSG_LEN(bytes) };

	/* Behind its end there is something. */
	memset(&control, 1, sizeof(control));
	control.aligned.cmsg_len = (socklen_t)CMSG_LEN(bytes);
	control.aligned.cmsg_level = kinds[kind].level;
	control.aligned.cmsg_type = kinds[kind].type;
	weft__udp_control_take(&header, &msg);
	return msg;
}

static bool tells(const struct weft_udp_msg *msg)
{
	return msg->local.bytes || msg->interface || msg->traffic_class ||
	       msg->segment_bytes;
}

START_TEST(control_that_is_cut_off_counts_as_none)
{
	struct weft_udp_msg msg;

	for (size_t bytes = 0; bytes < kinds[_i].bytes; bytes++) {
		msg = told_by(_i, bytes);
		ck_assert_msg(!tells(&msg), "%zu bytes", bytes);
	}
	msg = told_by(_i, kinds[_i].bytes);
	ck_assert(tells(&msg));
}
END_TEST

/* ---- Their number -------------------------------------------------------- */

/* The times need 96 bytes. */
static int ask_for_times(int fd)
{
	int on = 1;
	int flags = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE;

	if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on)) < 0)
		return -errno_now();
	if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)) <
	    0)
		return -errno_now();
	return 0;
}

static bool kernel_tells_times(void)
{
	struct weft_udp udp;
	int r;

	EXPECT(weft_udp_open(&udp, "127.0.0.1:0", NULL) == 0);
	r = ask_for_times(weft_udp_fd(&udp));
	close(weft_udp_fd(&udp));
	return r == 0;
}

static const char *const hosts[] = { "127.0.0.1:0", "[::1]:0" };

static int64_t tell_times(void *arg)
{
	struct weft_udp_opts opts = opts_of_all();
	struct weft_addr here = udp_addr_of(hosts[*(int *)arg]);
	char text[] = "timed";
	struct weft_udp two[2];
	struct weft_udp_msg msg;

	udp_pair_at(hosts[*(int *)arg], two, &opts);
	EXPECT(ask_for_times(weft_udp_fd(&two[0])) == 0);
	msg = udp_msg(text, 0, strlen(text));
	msg.traffic_class = 0x2b;
	EXPECT(weft_udp_send(&two[1], &msg, 1, 0) == 1);
	msg = udp_hear(&two[0], text);
	EXPECT(msg.traffic_class == 0x2b);
	EXPECT(msg.interface == if_nametoindex("lo"));
	EXPECT(weft_addr_equal(&msg.local, &here));
	udp_close_both(two);
	return 0;
}

START_TEST(owner_may_ask_for_more)
{
	io_run(tell_times, &(int){ _i }, 1);
}
END_TEST

static int64_t report_times(void *arg)
{
	struct weft_udp_opts opts = opts_of_all();
	struct weft_udp_error error;
	struct weft_addr to;
	struct weft_udp two[2];
	int r = 1;

	udp_pair_at(hosts[*(int *)arg], two, &opts);
	EXPECT(ask_for_times(weft_udp_fd(&two[1])) == 0);
	udp_addr(&two[0], &to);
	EXPECT(weft_udp_close(&two[0]) == 0);
	udp_say(&two[1], "nobody hears it", NULL);
	WEFT_WITHIN (WEFT_SEC(20))
		r = weft_udp_recv_error(&two[1], &error, 0);
	EXPECT(r == 0);
	EXPECT(error.error == -ECONNREFUSED);
	EXPECT(weft_addr_equal(&error.addr, &to));
	EXPECT(weft_udp_close(&two[1]) == 0);
	return 0;
}

START_TEST(owner_may_ask_for_more_of_a_report)
{
	io_run(report_times, &(int){ _i }, 1);
}
END_TEST

/* ---- Sources ------------------------------------------------------------- */

/* From a socket for both: to an IPv4 address; to a mapped one; to the one peer;
 * to one of IPv6. */
enum { TO_IPV4, TO_MAPPED, TO_THE_PEER, TO_IPV6, WAYS };

static struct weft_udp_msg message_to(const struct weft_udp *udp, int way)
{
	static char text[] = "from here";
	struct weft_udp_msg msg = udp_msg(text, 0, strlen(text));
	struct weft_addr addr;
	char name[64];

	udp_addr(udp, &addr);
	snprintf(name, sizeof(name), "[::ffff:127.0.0.1]:%d",
		 weft_addr_port(&addr));
	if (way == TO_MAPPED)
		msg.addr = udp_addr_of(name);
	else if (way != TO_THE_PEER)
		msg.addr = addr;
	return msg;
}

/* An address that is no source is passed over. */
static int64_t choose(void *arg)
{
	static const char *const none[] = { "0.0.0.0:0", "[::]:0",
					    "239.255.77.77:0", "[ff02::1]:0",
					    "255.255.255.255:0" };
	int way = *(int *)arg;
	struct weft_udp in, out;
	struct weft_udp_msg msg;
	struct weft_addr addr;

	EXPECT(weft_udp_open(&in, hosts[way == TO_IPV6], NULL) == 0);
	EXPECT(weft_udp_open(&out, "[::]:0", NULL) == 0);
	udp_addr(&in, &addr);
	if (way == TO_THE_PEER)
		EXPECT(weft_udp_connect(&out, &addr) == 0);
	msg = message_to(&in, way);
	msg.interface = if_nametoindex("lo");
	EXPECT(weft_udp_send(&out, &msg, 1, 0) == 1);
	udp_hear(&in, "from here");
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		msg.local = udp_addr_of(none[i]);
		EXPECT(weft_udp_send(&out, &msg, 1, 0) == 1);
		udp_hear(&in, "from here");
	}
	EXPECT(weft_udp_close(&in) == 0 && weft_udp_close(&out) == 0);
	return 0;
}

START_TEST(interface_is_chosen_for_either_family)
{
	io_run(choose, &(int){ _i }, 1);
}
END_TEST

static int64_t choose_source(void *arg)
{
	static const char *const sources[] = { "127.0.0.77:0",
					       "[::ffff:127.0.0.77]:0" };
	struct weft_udp in, out;
	struct weft_udp_msg msg;
	struct weft_addr addr;
	char name[64];

	EXPECT(weft_udp_open(&in, hosts[0], NULL) == 0);
	EXPECT(weft_udp_open(&out, "[::]:0", NULL) == 0);
	udp_addr(&out, &addr);
	snprintf(name, sizeof(name), "127.0.0.77:%d", weft_addr_port(&addr));
	addr = udp_addr_of(name);
	for (int i = 0; i < 2; i++) {
		msg = message_to(&in, *(int *)arg);
		msg.local = udp_addr_of(sources[i]);
		EXPECT(weft_udp_send(&out, &msg, 1, 0) == 1);
		msg = udp_hear(&in, "from here");
		EXPECT(weft_addr_equal(&msg.addr, &addr));
	}
	EXPECT(weft_udp_close(&in) == 0 && weft_udp_close(&out) == 0);
	return 0;
}

START_TEST(ipv4_source_is_chosen_by_a_socket_for_both)
{
	io_run(choose_source, &(int){ _i }, 1);
}
END_TEST

/* A broadcast of the loopback interface's network; its port is set. */
static bool broadcast_to(struct weft_udp *udp, const struct weft_udp *in)
{
	char byte = 'b', name[64];
	struct weft_udp_msg msg = udp_msg(&byte, 0, 1);
	struct weft_addr addr;

	udp_addr(in, &addr);
	snprintf(name, sizeof(name), "127.255.255.255:%d",
		 weft_addr_port(&addr));
	msg.addr = udp_addr_of(name);
	return weft_udp_send(udp, &msg, 1, 0) == 1;
}

static int64_t answer_broadcast(void *arg)
{
	static const char *const any[] = { "0.0.0.0:0", "[::]:0" };
	struct weft_udp_opts opts = opts_of_all();
	struct weft_udp_msg msgs[3], msg;
	struct weft_udp in, out;
	char bytes[] = "answer";

	opts.broadcast = true;
	EXPECT(weft_udp_open(&in, any[*(int *)arg], &opts) == 0);
	EXPECT(weft_udp_open(&out, "127.0.0.1:0", &opts) == 0);
	EXPECT(broadcast_to(&out, &in));
	msg = udp_hear(&in, "b");
	/* Beside others; two parts; again. */
	msg.buf = bytes;
	msg.bytes = 6;
	msgs[0] = msgs[1] = msgs[2] = msg;
	memset(&msgs[0].local, 0, sizeof(msgs[0].local));
	msgs[1].segment_bytes = 3;
	EXPECT(weft_udp_send(&in, msgs, 3, 0) == 3);
	udp_hear(&out, "answer");
	udp_hear(&out, "ans");
	udp_hear(&out, "wer");
	udp_hear(&out, "answer");
	/* Another host's address is one, but not a source here. */
	msg.local = udp_addr_of("192.0.2.1:0");
	EXPECT(weft_udp_send(&in, &msg, 1, 0) < 0);
	EXPECT(weft_udp_recv(&out, &msg, 1, MSG_DONTWAIT) == -EAGAIN);
	EXPECT(weft_udp_close(&in) == 0 && weft_udp_close(&out) == 0);
	return 0;
}

START_TEST(broadcast_is_no_source)
{
	io_run(answer_broadcast, &(int){ _i }, 1);
}
END_TEST

/* The network of the loopback interface may have another length. */
static bool loopback_has_broadcasts(void)
{
	struct weft_addr addr = udp_addr_of("127.255.255.255:9");
	struct weft_udp udp;
	int r;

	EXPECT(weft_udp_open(&udp, "127.0.0.1:0", NULL) == 0);
	r = weft_udp_connect(&udp, &addr);
	close(weft_udp_fd(&udp));
	return r == -EACCES;
}

static void add_broadcasts(Suite *suite)
{
	TCase *tc = tcase_create("broadcasts");
	int ways = test_needs(udp_has_ipv6(), "broadcasts to a socket for both",
			      "the address ::1") ?
			   2 :
			   1;

	if (test_needs(loopback_has_broadcasts(), "broadcast_is_no_source",
		       "the broadcast 127.255.255.255"))
		tcase_add_loop_test(tc, broadcast_is_no_source, 0, ways);
	suite_add_tcase(suite, tc);
}

static void add_sources(Suite *suite)
{
	TCase *tc = tcase_create("sources");

	if (test_needs(udp_has_ipv6(), "interface_is_chosen_for_either_family",
		       "the address ::1"))
		tcase_add_loop_test(tc, interface_is_chosen_for_either_family,
				    0, WAYS);
	if (test_needs(udp_has_ipv6(),
		       "ipv4_source_is_chosen_by_a_socket_for_both",
		       "the address ::1"))
		tcase_add_loop_test(tc,
				    ipv4_source_is_chosen_by_a_socket_for_both,
				    TO_IPV4, TO_MAPPED + 1);
	suite_add_tcase(suite, tc);
}

static void add_number(Suite *suite)
{
	TCase *tc = tcase_create("number");
	int ways =
		test_needs(udp_has_ipv6(), "times by IPv6", "the address ::1") ?
			2 :
			1;

	if (test_needs(kernel_tells_times(), "owner_may_ask_for_more",
		       "SO_TIMESTAMPING"))
		tcase_add_loop_test(tc, owner_may_ask_for_more, 0, ways);
	if (test_needs(kernel_tells_times(),
		       "owner_may_ask_for_more_of_a_report", "SO_TIMESTAMPING"))
		tcase_add_loop_test(tc, owner_may_ask_for_more_of_a_report, 0,
				    ways);
	suite_add_tcase(suite, tc);
}

int main(void)
{
	Suite *suite = suite_create("net/udp control");
	TCase *tc = tcase_create("length");

	tcase_add_loop_test(tc, control_that_is_cut_off_counts_as_none, 0,
			    sizeof(kinds) / sizeof(kinds[0]));
	suite_add_tcase(suite, tc);
	add_number(suite);
	add_sources(suite);
	add_broadcasts(suite);
	return io_tests_run(suite);
}
