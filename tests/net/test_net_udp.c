/* SPDX-License-Identifier: MIT */
/*
 * Suite net/udp: sockets of datagrams, their options, messages that are
 * received and sent, and multicast groups.
 *
 * This file defines socket(2) in the place of the C library, to play a kernel
 * without IPv6.
 */
#include <net/if.h>
#include <netinet/in.h>
#include <sys/syscall.h>

#include "tests/support/features.h"
#include "tests/support/udp_kit.h"

static bool without_ipv6;

int socket(int domain, int type, int protocol)
{
	if (without_ipv6 && domain == AF_INET6) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	return (int)syscall(SYS_socket, domain, type, protocol);
}

static int option(const struct weft_udp *udp, int level, int name)
{
	int value = -1;
	socklen_t bytes = sizeof(value);

	EXPECT(getsockopt(weft_udp_fd(udp), level, name, &value, &bytes) == 0);
	return value;
}

static void close_now(struct weft_udp *udp)
{
	EXPECT(close(weft_udp_fd(udp)) == 0);
}

/* ---- Opening ------------------------------------------------------------- */

START_TEST(socket_is_bound)
{
	static const char *const texts[] = { "127.0.0.1:0", ":0", NULL };
	struct weft_addr addr, again;
	struct weft_udp udp;

	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(weft_udp_open(&udp, texts[i], NULL), 0);
		ck_assert_int_eq(fcntl(weft_udp_fd(&udp), F_GETFD), FD_CLOEXEC);
		udp_addr(&udp, &addr);
		ck_assert_int_ne(weft_addr_port(&addr), 0);
		udp_addr(&udp, &again);
		ck_assert(weft_addr_equal(&addr, &again));
		close_now(&udp);
	}
}
END_TEST

START_TEST(any_address_takes_what_families_there_are)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	char text[WEFT_ADDR_TEXT_BYTES];
	struct weft_udp udp;

	without_ipv6 = true;
	ck_assert_int_eq(weft_udp_open(&udp, ":0", NULL), 0);
	weft_local_addr_text(weft_udp_fd(&udp), text);
	ck_assert_int_eq(strncmp(text, "0.0.0.0:", 8), 0);
	close_now(&udp);
	/* A socket for IPv6 is one, or an error. */
	ck_assert_int_eq(weft_udp_open(&udp, "[::]:0", NULL), -EAFNOSUPPORT);
	opts.only_ipv6 = true;
	ck_assert_int_eq(weft_udp_open(&udp, ":0", &opts), -EAFNOSUPPORT);
}
END_TEST

/* So a client needs not know which families its system has. */
START_TEST(any_address_takes_the_family_of_its_peer)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_addr addr;
	struct weft_udp udp;

	opts.connect = "127.0.0.1:9";
	ck_assert_int_eq(weft_udp_open(&udp, NULL, &opts), 0);
	ck_assert_int_eq(weft_peer_addr(weft_udp_fd(&udp), &addr), 0);
	ck_assert_int_eq(weft_addr_port(&addr), 9);
	udp_addr(&udp, &addr);
	ck_assert_int_eq(weft_addr_family(&addr), AF_INET);
	ck_assert_int_ne(weft_addr_port(&addr), 0);
	close_now(&udp);
}
END_TEST

START_TEST(wrong_addresses_and_options_are_refused)
{
	static const char *const wrong[] = { "", "127.0.0.1", "local host:1",
					     "127.0.0.1:65536" };
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_udp udp, before;
	int fds = fds_open();

	memset(&udp, 0x5a, sizeof(udp));
	before = udp;
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(weft_udp_open(&udp, wrong[i], NULL), -EINVAL);
	ck_assert_int_eq(weft_udp_open(NULL, ":0", NULL), -EINVAL);
	ck_assert_int_eq(weft_udp_open(&udp, "unix:@x", NULL), -EAFNOSUPPORT);
	/* RFC 5737 keeps it for documents. */
	ck_assert_int_eq(weft_udp_open(&udp, "192.0.2.1:0", NULL),
			 -EADDRNOTAVAIL);
	opts.connect = "nowhere";
	ck_assert_int_eq(weft_udp_open(&udp, NULL, &opts), -EINVAL);
	opts.connect = "/a/path";
	ck_assert_int_eq(weft_udp_open(&udp, NULL, &opts), -EAFNOSUPPORT);
	opts.connect = "[::1]:9";
	ck_assert_int_eq(weft_udp_open(&udp, "127.0.0.1:0", &opts),
			 -EAFNOSUPPORT);
	opts.connect = NULL;
	opts.multicast_ttl = 256;
	ck_assert_int_eq(weft_udp_open(&udp, NULL, &opts), -EINVAL);
	opts.multicast_ttl = -1;
	ck_assert_int_eq(weft_udp_open(&udp, NULL, &opts), -EINVAL);
	opts.multicast_ttl = 0;
	opts.receive_bytes = -1;
	ck_assert_int_eq(weft_udp_open(&udp, NULL, &opts), -EINVAL);
	opts.receive_bytes = 0;
	opts.send_bytes = -1;
	ck_assert_int_eq(weft_udp_open(&udp, NULL, &opts), -EINVAL);
	opts.send_bytes = 0;
	opts.reserved[3] = 1;
	ck_assert_int_eq(weft_udp_open(&udp, NULL, &opts), -EINVAL);
	opts.reserved[3] = 0;
	opts.size--;
	ck_assert_int_eq(weft_udp_open(&udp, NULL, &opts), -EINVAL);
	ck_assert_int_eq(memcmp(&udp, &before, sizeof(udp)), 0);
	ck_assert_int_eq(fds_open(), fds);
}
END_TEST

START_TEST(port_is_shared_only_if_asked_for)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_udp first, second;
	char text[WEFT_ADDR_TEXT_BYTES];

	for (int i = 0; i < 2; i++) {
		opts.reuse_port = i;
		ck_assert_int_eq(weft_udp_open(&first, "127.0.0.1:0", &opts),
				 0);
		weft_local_addr_text(weft_udp_fd(&first), text);
		ck_assert_int_eq(weft_udp_open(&second, text, &opts),
				 i ? 0 : -EADDRINUSE);
		if (i)
			close_now(&second);
		close_now(&first);
	}
}
END_TEST

START_TEST(options_are_set)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_udp udp, plain;

	ck_assert_int_eq(weft_udp_open(&plain, "127.0.0.1:0", NULL), 0);
	ck_assert_int_eq(option(&plain, SOL_SOCKET, SO_BROADCAST), 0);
	ck_assert_int_eq(option(&plain, SOL_SOCKET, SO_REUSEPORT), 0);
	ck_assert_int_eq(option(&plain, IPPROTO_IP, IP_PKTINFO), 0);
	ck_assert_int_eq(option(&plain, IPPROTO_IP, IP_RECVTOS), 0);
	ck_assert_int_eq(option(&plain, IPPROTO_IP, IP_MULTICAST_TTL), 1);
	ck_assert_int_eq(option(&plain, IPPROTO_IP, IP_MULTICAST_LOOP), 1);
	close_now(&plain);
	opts.broadcast = opts.reuse_port = true;
	opts.want_local = opts.want_traffic_class = true;
	opts.multicast_ttl = 7;
	opts.multicast_to_others = true;
	opts.receive_bytes = 5000;
	opts.send_bytes = 6000;
	ck_assert_int_eq(weft_udp_open(&udp, "127.0.0.1:0", &opts), 0);
	ck_assert_int_eq(option(&udp, SOL_SOCKET, SO_BROADCAST), 1);
	ck_assert_int_eq(option(&udp, SOL_SOCKET, SO_REUSEPORT), 1);
	ck_assert_int_eq(option(&udp, IPPROTO_IP, IP_PKTINFO), 1);
	ck_assert_int_eq(option(&udp, IPPROTO_IP, IP_RECVTOS), 1);
	ck_assert_int_eq(option(&udp, IPPROTO_IP, IP_MULTICAST_TTL), 7);
	ck_assert_int_eq(option(&udp, IPPROTO_IP, IP_MULTICAST_LOOP), 0);
	/* The kernel doubles the sizes, or takes its limit. */
	ck_assert_int_ne(option(&udp, SOL_SOCKET, SO_RCVBUF), 0);
	ck_assert_int_ne(option(&udp, SOL_SOCKET, SO_SNDBUF), 0);
	close_now(&udp);
}
END_TEST

START_TEST(options_of_both_families_are_set)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_udp udp;

	for (int only = 0; only < 2; only++) {
		opts.only_ipv6 = only;
		opts.want_local = opts.want_traffic_class = true;
		opts.want_errors = opts.multicast_to_others = true;
		opts.multicast_ttl = 5;
		opts.multicast_interface = if_nametoindex("lo");
		ck_assert_int_eq(weft_udp_open(&udp, "[::]:0", &opts), 0);
		ck_assert_int_eq(option(&udp, IPPROTO_IPV6, IPV6_V6ONLY), only);
		ck_assert_int_eq(option(&udp, IPPROTO_IPV6, IPV6_RECVPKTINFO),
				 1);
		ck_assert_int_eq(option(&udp, IPPROTO_IPV6, IPV6_RECVTCLASS),
				 1);
		ck_assert_int_eq(option(&udp, IPPROTO_IPV6, IPV6_RECVERR), 1);
		ck_assert_int_eq(
			option(&udp, IPPROTO_IPV6, IPV6_MULTICAST_HOPS), 5);
		ck_assert_int_eq(
			option(&udp, IPPROTO_IPV6, IPV6_MULTICAST_LOOP), 0);
		ck_assert_int_eq(option(&udp, IPPROTO_IP, IP_RECVERR), !only);
		ck_assert_int_eq(option(&udp, IPPROTO_IP, IP_RECVTOS), !only);
		close_now(&udp);
	}
}
END_TEST

/* ---- Messages ------------------------------------------------------------ */

/* By IPv4; by IPv6; from IPv4 to a socket for both. */
static void open_ends(int way, const struct weft_udp_opts *opts,
		      struct weft_udp *server, struct weft_udp *client)
{
	static const char *const servers[] = { "127.0.0.1:0", "[::1]:0",
					       "[::]:0" };
	struct weft_addr addr;
	char text[64];

	EXPECT(weft_udp_open(server, servers[way], opts) == 0);
	EXPECT(weft_udp_open(client, way == 1 ? "[::1]:0" : "127.0.0.1:0",
			     opts) == 0);
	udp_addr(server, &addr);
	snprintf(text, sizeof(text), "%s:%d", way == 1 ? "[::1]" : "127.0.0.1",
		 weft_addr_port(&addr));
	addr = udp_addr_of(text);
	EXPECT(weft_udp_connect(client, &addr) == 0);
}

static int64_t answer_all(void *arg)
{
	struct weft_udp *udp = *(struct weft_udp **)arg;
	char bufs[4][64];
	struct weft_udp_msg msgs[4];
	int n, left = 40;

	for (int i = 0; i < 4; i++)
		msgs[i] = udp_msg(bufs[i], sizeof(bufs[i]), 0);
	while (left > 0) {
		n = weft_udp_recv(udp, msgs, 4, 0);
		EXPECT(n >= 1 && n <= 4);
		for (int i = 0; i < n; i++)
			bufs[i][0] ^= 1;
		EXPECT(weft_udp_send(udp, msgs, n, 0) == n);
		left -= n;
	}
	EXPECT(left == 0);
	return 0;
}

static int64_t ask_and_answer(void *arg)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_udp server, client, *answers = &server;
	char text[32], expected[32];

	opts.want_local = opts.want_traffic_class = true;
	open_ends(*(int *)arg, &opts, &server, &client);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, answer_all, answers) == 0);
		for (int i = 0; i < 40; i++) {
			snprintf(text, sizeof(text), "%d asks", i);
			memcpy(expected, text, sizeof(text));
			expected[0] ^= 1;
			udp_say(&client, text, NULL);
			udp_hear(&client, expected);
		}
	}
	EXPECT(weft_udp_close(&server) == 0 && weft_udp_close(&client) == 0);
	return 0;
}

START_TEST(message_goes_back_to_its_sender)
{
	io_run(ask_and_answer, &(int){ _i / 2 }, _i % 2 ? 2 : 1);
}
END_TEST

static int64_t tell_of(void *arg)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_udp server, client;
	struct weft_addr addr;
	struct weft_udp_msg msg;
	int way = *(int *)arg;
	char text[] = "congested";

	for (int wants = 0; wants < 2; wants++) {
		opts.want_local = opts.want_traffic_class = wants;
		open_ends(way, &opts, &server, &client);
		msg = udp_msg(text, 0, strlen(text));
		msg.traffic_class = 0x2b; /* ECN 3: congestion experienced */
		EXPECT(weft_udp_send(&client, &msg, 1, 0) == 1);
		/* The call sets all but these two. */
		memset(&msg, 0xff, sizeof(msg));
		msg.buf = text;
		msg.room = sizeof(text);
		memset(text, 0, sizeof(text));
		EXPECT(weft_udp_recv(&server, &msg, 1, 0) == 1);
		EXPECT(strcmp(text, "congested") == 0);
		EXPECT(msg.bytes == 9 && msg.whole_bytes == 9);
		udp_addr(&client, &addr);
		EXPECT(weft_addr_port(&msg.addr) == weft_addr_port(&addr));
		EXPECT(msg.traffic_class == (wants ? 0x2b : 0));
		EXPECT(msg.interface == (wants ? if_nametoindex("lo") : 0));
		EXPECT(msg.segment_bytes == 0 && msg.sent_bytes == 0);
		addr = udp_addr_of(way == 0 ? "127.0.0.1:0" :
				   way == 1 ? "[::1]:0" :
					      "[::ffff:127.0.0.1]:0");
		if (!wants)
			addr = (struct weft_addr){ .bytes = 0 };
		EXPECT(weft_addr_equal(&msg.local, &addr));
		EXPECT(weft_udp_close(&server) == 0);
		EXPECT(weft_udp_close(&client) == 0);
	}
	return 0;
}

START_TEST(message_tells_of_its_way)
{
	io_run(tell_of, &(int){ _i }, 1);
}
END_TEST

/* A host has all addresses of 127.0.0.0/8. */
IO_TEST(source_address_is_chosen)
{
	struct weft_addr to, from = udp_addr_of("127.0.0.77:0");
	struct weft_udp two[2];
	struct weft_udp_msg msg;
	char text[] = "from here";

	EXPECT(weft_udp_open(&two[0], "127.0.0.1:0", NULL) == 0);
	EXPECT(weft_udp_open(&two[1], "0.0.0.0:0", NULL) == 0);
	udp_addr(&two[0], &to);
	msg = udp_msg(text, 0, strlen(text));
	msg.addr = to;
	msg.local = from;
	msg.interface = if_nametoindex("lo");
	EXPECT(weft_udp_send(&two[1], &msg, 1, 0) == 1);
	msg = udp_hear(&two[0], text);
	udp_addr(&two[1], &to);
	EXPECT(weft_addr_port(&msg.addr) == weft_addr_port(&to));
	EXPECT(memcmp(&((struct sockaddr_in *)&msg.addr.storage)->sin_addr,
		      &((struct sockaddr_in *)&from.storage)->sin_addr,
		      sizeof(struct in_addr)) == 0);
	udp_close_both(two);
	return 0;
}

IO_TEST(long_datagram_is_cut_off)
{
	struct weft_udp two[2];
	char buf[8] = "untaken";
	struct weft_udp_msg msg = udp_msg(buf, 3, 0);

	udp_pair(two, NULL);
	udp_say(&two[1], "0123456789", NULL);
	EXPECT(weft_udp_recv(&two[0], &msg, 1, 0) == 1);
	EXPECT(msg.bytes == 3 && msg.whole_bytes == 10);
	EXPECT(memcmp(buf, "012aken", 8) == 0);
	/* The rest is gone; an empty datagram is one. */
	udp_say(&two[1], "", NULL);
	udp_hear(&two[0], "");
	EXPECT(weft_udp_recv(&two[0], &msg, 1, MSG_DONTWAIT) == -EAGAIN);
	/* The first message is untouched. */
	EXPECT(msg.bytes == 3 && msg.whole_bytes == 10);
	udp_close_both(two);
	return 0;
}

enum { MANY = 50 };

struct many {
	unsigned char bytes[MANY][4];
	struct weft_udp_msg msgs[MANY];
};

static void many_init(struct many *many, size_t bytes)
{
	memset(many, 0, sizeof(*many));
	for (int i = 0; i < MANY; i++)
		many->msgs[i] = udp_msg(many->bytes[i], 4, bytes);
}

static int64_t take_many(void *arg)
{
	struct weft_udp *udp = *(struct weft_udp **)arg;
	struct many many;
	int n;

	for (int got = 0; got < MANY; got += n) {
		many_init(&many, 0);
		n = weft_udp_recv(udp, many.msgs, MANY, 0);
		EXPECT(n >= 1 && n <= MANY - got);
		for (int i = 0; i < n; i++) {
			EXPECT(many.msgs[i].bytes == 4);
			EXPECT(many.bytes[i][0] == got + i);
		}
		for (int i = n; i < MANY; i++)
			EXPECT(many.msgs[i].whole_bytes == 0);
	}
	return 0;
}

/* More than fit into the receiver's queue, and than a system call takes. */
IO_TEST(many_messages_arrive_in_order)
{
	struct weft_udp two[2], *to = &two[0];
	struct many many;

	udp_over_pair(two);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, take_many, to) == 0);
		many_init(&many, 4);
		for (int i = 0; i < MANY; i++)
			many.bytes[i][0] = (unsigned char)i;
		EXPECT(weft_udp_send(&two[1], many.msgs, MANY, 0) == MANY);
	}
	udp_close_both(two);
	return 0;
}

/* ---- Groups -------------------------------------------------------------- */

static bool loopback_has_multicasts(void)
{
	struct weft_addr group = udp_addr_of("239.255.77.77:0");
	struct weft_udp udp;
	int r;

	EXPECT(weft_udp_open(&udp, "127.0.0.1:0", NULL) == 0);
	r = weft_udp_join(&udp, &group, if_nametoindex("lo"));
	close_now(&udp);
	return r == 0;
}

/* By IPv4, to a socket for it or for both. */
static int64_t be_in_a_group(void *arg)
{
	bool both = *(int *)arg;
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_addr addr, group;
	struct weft_udp in, out;
	struct weft_udp_msg msg;
	char text[64];

	opts.want_local = true;
	opts.multicast_interface = if_nametoindex("lo");
	EXPECT(weft_udp_open(&in, both ? "[::]:0" : "0.0.0.0:0", &opts) == 0);
	EXPECT(weft_udp_open(&out, "127.0.0.1:0", &opts) == 0);
	udp_addr(&in, &addr);
	snprintf(text, sizeof(text), "239.255.77.77:%d", weft_addr_port(&addr));
	group = udp_addr_of(text);
	EXPECT(weft_udp_leave(&in, &group, if_nametoindex("lo")) ==
	       -EADDRNOTAVAIL);
	EXPECT(weft_udp_join(&in, &group, if_nametoindex("lo")) == 0);
	EXPECT(weft_udp_join(&in, &group, if_nametoindex("lo")) == -EADDRINUSE);
	udp_say(&out, "to all", &group);
	msg = udp_hear(&in, "to all");
	EXPECT(weft_addr_port(&msg.local) == 0);
	EXPECT(weft_addr_family(&msg.local) == (both ? AF_INET6 : AF_INET));
	/* The group is no source. */
	msg.buf = text;
	EXPECT(weft_udp_send(&in, &msg, 1, 0) == 1);
	msg = udp_msg(text, sizeof(text), 0);
	EXPECT(weft_udp_recv(&out, &msg, 1, 0) == 1);
	EXPECT(weft_udp_leave(&in, &group, if_nametoindex("lo")) == 0);
	EXPECT(weft_udp_close(&in) == 0 && weft_udp_close(&out) == 0);
	return 0;
}

START_TEST(group_receives_until_it_is_left)
{
	io_run(be_in_a_group, &(int){ _i / 2 }, _i % 2 ? 2 : 1);
}
END_TEST

START_TEST(groups_may_be_wrong)
{
	struct weft_addr none = { .bytes = 0 };
	struct weft_addr one = udp_addr_of("127.0.0.1:0");
	struct weft_addr unix_addr = udp_addr_of("unix:@x");
	struct weft_addr group = udp_addr_of("239.255.77.77:0");
	struct weft_udp udp;

	ck_assert_int_eq(weft_udp_open(&udp, "127.0.0.1:0", NULL), 0);
	ck_assert_int_eq(weft_udp_join(&udp, NULL, 0), -EINVAL);
	ck_assert_int_eq(weft_udp_join(&udp, &none, 0), -EINVAL);
	ck_assert_int_eq(weft_udp_join(&udp, &one, 0), -EINVAL);
	ck_assert_int_eq(weft_udp_leave(&udp, &unix_addr, 0), -EINVAL);
	ck_assert_int_eq(weft_udp_join(&udp, &group, 0x7ffffff0), -ENODEV);
	close_now(&udp);
}
END_TEST

static void add_opening(Suite *suite)
{
	TCase *tc = tcase_create("opening");

	tcase_add_test(tc, socket_is_bound);
	tcase_add_test(tc, any_address_takes_what_families_there_are);
	tcase_add_test(tc, any_address_takes_the_family_of_its_peer);
	tcase_add_test(tc, wrong_addresses_and_options_are_refused);
	tcase_add_test(tc, port_is_shared_only_if_asked_for);
	tcase_add_test(tc, options_are_set);
	if (test_needs(udp_has_ipv6(), "options_of_both_families_are_set",
		       "the address ::1"))
		tcase_add_test(tc, options_of_both_families_are_set);
	suite_add_tcase(suite, tc);
}

static void add_messages(Suite *suite)
{
	TCase *tc = tcase_create("messages");
	int ways = test_needs(udp_has_ipv6(), "messages by IPv6",
			      "the address ::1") ?
			   3 :
			   1;

	tcase_add_loop_test(tc, message_goes_back_to_its_sender, 0, 2 * ways);
	tcase_add_loop_test(tc, message_tells_of_its_way, 0, ways);
	io_add_test(tc, source_address_is_chosen);
	io_add_test(tc, long_datagram_is_cut_off);
	io_add_test(tc, many_messages_arrive_in_order);
	suite_add_tcase(suite, tc);
}

static void add_groups(Suite *suite)
{
	TCase *tc = tcase_create("groups");
	int ways = test_needs(udp_has_ipv6(), "a socket for both in a group",
			      "the address ::1") ?
			   2 :
			   1;

	tcase_add_test(tc, groups_may_be_wrong);
	if (test_needs(loopback_has_multicasts(),
		       "group_receives_until_it_is_left",
		       "multicasts on the loopback interface"))
		tcase_add_loop_test(tc, group_receives_until_it_is_left, 0,
				    2 * ways);
	suite_add_tcase(suite, tc);
}

int main(void)
{
	Suite *suite = suite_create("net/udp");

	add_opening(suite);
	add_messages(suite);
	add_groups(suite);
	return io_tests_run(suite);
}
