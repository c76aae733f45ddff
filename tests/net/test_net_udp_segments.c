/* SPDX-License-Identifier: MIT */
/*
 * Suite net/udp segments: messages of several datagrams, which the kernel cuts
 * and joins, and what is done where it does not.
 *
 * The linker puts __wrap_syscall() in the place of the C library's.  For
 * sendmmsg(2) it counts the messages with segments, and plays a device that
 * refuses them, after the socket has taken the option.  It may also send less
 * than it was given.
 */
#include <netinet/udp.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "tests/support/features.h"
#include "tests/support/udp_kit.h"

static struct {
	int refuses;	  /* messages with segments: -errno, or 0 */
	unsigned refused; /* how often */
	unsigned cut;	  /* messages with segments that went */
	unsigned whole;	  /* and without */
	unsigned most;	  /* messages that a call sends; 0: all */
	unsigned calls;
	unsigned fails_at; /* that call, from 1 on */
	int fails;	   /* with that -errno */
} device;

long __real_syscall(long number, ...);
__attribute__((used)) long __wrap_syscall(long number, ...);

static bool has_segments(const struct msghdr *header)
{
	const char *at = header->msg_control;
	const struct cmsghdr *control;

	for (size_t i = 0; i + sizeof(*control) <= header->msg_controllen;
	     i += CMSG_ALIGN(control->cmsg_len)) {
		control = (const void *)(at + i);
		if (control->cmsg_level == IPPROTO_UDP &&
		    control->cmsg_type == UDP_SEGMENT)
			return true;
	}
	return false;
}

static long fails_with(int error)
{
	errno = -error;
	return -1;
}

static long send_some(int fd, struct mmsghdr *messages, unsigned count,
		      int flags)
{
	long n;

	if (++device.calls == device.fails_at)
		return fails_with(device.fails);
	if (device.most && count > device.most)
		count = device.most;
	for (unsigned i = 0; i < count && device.refuses; i++) {
		if (!has_segments(&messages[i].msg_hdr))
			continue;
		device.refused += i == 0;
		count = i;
	}
	if (!count)
		return fails_with(device.refuses);
	n = __real_syscall(SYS_sendmmsg, fd, messages, count, flags);
	for (int i = 0; i < n; i++) {
		bool cut = has_segments(&messages[i].msg_hdr);

		device.cut += cut;
		device.whole += !cut;
	}
	return n;
}

/* No system call has more than six arguments; those that are not there are not
 * looked at. */
long __wrap_syscall(long number, ...)
{
	long with[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		with[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_sendmmsg)
		return send_some((int)with[0], (struct mmsghdr *)with[1],
				 (unsigned)with[2], (int)with[3]);
	return __real_syscall(number, with[0], with[1], with[2], with[3],
			      with[4], with[5]);
}

/* ---- Datagrams ----------------------------------------------------------- */

enum { BYTES_MAX = 200000, ROOM = 1 << 20 };

static unsigned char sent[BYTES_MAX], got[BYTES_MAX + 65536];

static void sent_fill(void)
{
	for (size_t i = 0; i < BYTES_MAX; i++)
		sent[i] = (unsigned char)(i * 167 + (i >> 8) * 13);
}

static struct weft_udp_msg sent_msg(size_t at, size_t bytes, unsigned each)
{
	struct weft_udp_msg msg = udp_msg(sent + at, 0, bytes);

	msg.segment_bytes = each;
	return msg;
}

/* Datagrams of that size come, and one with the rest. */
static void expect_datagrams(struct weft_udp *udp, size_t at, size_t bytes,
			     size_t each)
{
	struct weft_udp_msg msg = udp_msg(got, sizeof(got), 0);
	size_t n;

	for (; bytes; bytes -= n, at += n) {
		n = bytes < each ? bytes : each;
		EXPECT(weft_udp_recv(udp, &msg, 1, 0) == 1);
		EXPECT(msg.bytes == n && msg.segment_bytes == 0);
		EXPECT(memcmp(got, sent + at, n) == 0);
	}
}

static void expect_nothing(struct weft_udp *udp)
{
	struct weft_udp_msg msg = udp_msg(got, sizeof(got), 0);

	EXPECT(weft_udp_recv(udp, &msg, 1, MSG_DONTWAIT) == -EAGAIN);
}

static void open_two(struct weft_udp two[2], bool coalesces)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;

	memset(&device, 0, sizeof(device));
	sent_fill();
	opts.receive_bytes = ROOM;
	opts.coalesce = coalesces;
	udp_pair(two, &opts);
}

static void send_one(struct weft_udp *udp, size_t bytes, unsigned each)
{
	struct weft_udp_msg msg = sent_msg(0, bytes, each);

	EXPECT(weft_udp_send(udp, &msg, 1, 0) == 1);
	EXPECT(msg.sent_bytes == 0 && msg.bytes == bytes);
}

/* ---- Cutting ------------------------------------------------------------- */

static const struct {
	size_t bytes;
	unsigned each;
} sizes[] = {
	{ 0, 100 },   { 1, 100 },     { 100, 100 },
	{ 101, 100 }, { 3250, 1000 }, { 13000, 1300 },
	{ 3000, 0 },  { 70, 1 },      { 60000, 30000 },
};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* The receiver sees no difference. */
IO_TEST(segments_are_datagrams)
{
	static const int refusals[] = { 0, -EIO, -EINVAL, -EMSGSIZE };
	struct weft_udp two[2];

	for (int i = 0; i < 4; i++) {
		open_two(two, false);
		device.refuses = refusals[i];
		for (int k = 0; k < SIZES; k++) {
			size_t each = sizes[k].each;

			send_one(&two[1], sizes[k].bytes, sizes[k].each);
			expect_datagrams(&two[0], 0, sizes[k].bytes,
					 each ? each : sizes[k].bytes);
			if (!sizes[k].bytes)
				udp_hear(&two[0], "");
			expect_nothing(&two[0]);
		}
		udp_close_both(two);
	}
	return 0;
}

/* More than 64 datagrams, and more than 64 KiB. */
IO_TEST(long_message_is_sent_in_parts)
{
	struct weft_udp two[2];

	open_two(two, false);
	send_one(&two[1], 200 * 100, 100);
	EXPECT(device.cut == 4 || !test_has_udp_segments());
	expect_datagrams(&two[0], 0, 200 * 100, 100);
	send_one(&two[1], 90000, 1400);
	expect_datagrams(&two[0], 0, 90000, 1400);
	/* No two of these fit into a part. */
	device.cut = 0;
	send_one(&two[1], 100000, 40000);
	EXPECT(device.cut == 0);
	expect_datagrams(&two[0], 0, 100000, 40000);
	expect_nothing(&two[0]);
	udp_close_both(two);
	return 0;
}

IO_TEST(segments_are_one_message_for_the_kernel)
{
	struct weft_udp two[2];

	open_two(two, false);
	send_one(&two[1], 5500, 1000);
	EXPECT(device.cut == 1 && device.whole == 0 && device.calls == 1);
	expect_datagrams(&two[0], 0, 5500, 1000);
	/* One datagram needs no cutting. */
	send_one(&two[1], 1000, 1000);
	EXPECT(device.cut == 1 && device.whole == 1);
	expect_datagrams(&two[0], 0, 1000, 1000);
	udp_close_both(two);
	return 0;
}

/* Messages with and without segments, and an empty one, in their order. */
IO_TEST(messages_keep_their_order)
{
	struct weft_udp_msg msgs[24];
	struct weft_udp two[2];

	for (int i = 0; i < 4; i++) {
		open_two(two, false);
		device.refuses = i & 1 ? -EIO : 0;
		device.most = i & 2 ? 3 : 0;
		for (int k = 0; k < 24; k++)
			msgs[k] = sent_msg((size_t)k * 1000, 50u * (unsigned)k,
					   k % 3 ? 99 : 0);
		EXPECT(weft_udp_send(&two[1], msgs, 24, 0) == 24);
		udp_hear(&two[0], "");
		for (size_t k = 1; k < 24; k++)
			expect_datagrams(&two[0], k * 1000, 50 * k,
					 k % 3 ? 99 : 50 * k);
		expect_nothing(&two[0]);
		udp_close_both(two);
	}
	return 0;
}

/* ---- Refusals ------------------------------------------------------------ */

IO_TEST(refusal_is_remembered)
{
	static const int refusals[] = { -EIO, -EINVAL, -EOPNOTSUPP };
	struct weft_udp two[2];

	for (int i = 0; i < 3; i++) {
		open_two(two, false);
		/* It comes late. */
		send_one(&two[1], 3000, 1000);
		expect_datagrams(&two[0], 0, 3000, 1000);
		EXPECT(device.cut == 1);
		device.refuses = refusals[i];
		send_one(&two[1], 3500, 1000);
		EXPECT(device.refused == 1 && device.whole == 4);
		send_one(&two[1], 3000, 1000);
		EXPECT(device.refused == 1 && device.whole == 7);
		expect_datagrams(&two[0], 0, 3500, 1000);
		expect_datagrams(&two[0], 0, 3000, 1000);
		expect_nothing(&two[0]);
		udp_close_both(two);
	}
	return 0;
}

/* It is about the way to one peer, not about the socket: -EMSGSIZE, or with
 * older kernels -EINVAL. */
IO_TEST(too_long_for_one_peer_is_not_remembered)
{
	static const struct {
		int refusal;
		unsigned bytes;
	} ways[] = { { -EMSGSIZE, 1000 }, { -EINVAL, 1400 } };
	struct weft_udp two[2];

	for (int i = 0; i < 2; i++) {
		open_two(two, false);
		device.refuses = ways[i].refusal;
		send_one(&two[1], 3000, ways[i].bytes);
		EXPECT(device.refused == 1 && device.whole == 3);
		device.refuses = 0;
		send_one(&two[1], 3000, ways[i].bytes);
		EXPECT(device.cut == 1);
		expect_datagrams(&two[0], 0, 3000, ways[i].bytes);
		expect_datagrams(&two[0], 0, 3000, ways[i].bytes);
		udp_close_both(two);
	}
	return 0;
}

/* Datagrams of the same message fail too: the segments were not at fault. */
IO_TEST(other_errors_are_no_refusal)
{
	struct weft_udp two[2];
	struct weft_udp_msg msg;

	open_two(two, false);
	msg = sent_msg(0, 3000, 1000);
	/* The kernel refuses port 0 with -EINVAL. */
	EXPECT(weft_addr_parse("127.0.0.1:0", &msg.addr) == 0);
	EXPECT(weft_udp_send(&two[1], &msg, 1, 0) == -EINVAL);
	EXPECT(msg.sent_bytes == 0 && device.whole == 0);
	send_one(&two[1], 3000, 1000);
	EXPECT(device.cut == 1);
	expect_datagrams(&two[0], 0, 3000, 1000);
	expect_nothing(&two[0]);
	udp_close_both(two);
	return 0;
}

/* Linux refuses segments where checksums are off. */
IO_TEST(kernel_that_refuses_is_not_asked_again)
{
	struct weft_udp two[2];
	int off = 1;

	open_two(two, false);
	EXPECT(setsockopt(weft_udp_fd(&two[1]), SOL_SOCKET, SO_NO_CHECK, &off,
			  sizeof(off)) == 0);
	for (int i = 0; i < 3; i++) {
		send_one(&two[1], 4100, 1000);
		expect_datagrams(&two[0], 0, 4100, 1000);
	}
	EXPECT(device.cut == 0 && device.whole == 15);
	/* The first try, and then one call for each message. */
	EXPECT(device.calls == 1 + 3);
	udp_close_both(two);
	return 0;
}

/* ---- Parts of a message -------------------------------------------------- */

/* Of a message that was begun nothing is lost, or sent twice. */
IO_TEST(message_goes_on_where_it_stopped)
{
	struct weft_udp_msg msgs[2];
	struct weft_udp two[2];

	open_two(two, false);
	device.refuses = -EIO;
	device.most = 2;
	device.fails = -ENOBUFS;
	/* A message before it; the refusal; two parts; then the error. */
	device.fails_at = 4;
	msgs[0] = sent_msg(0, 10, 0);
	msgs[1] = sent_msg(10, 5500, 1000);
	EXPECT(weft_udp_send(&two[1], msgs, 2, 0) == 1);
	EXPECT(msgs[0].sent_bytes == 0 && msgs[1].sent_bytes == 2000);
	device.fails_at = device.calls + 2;
	EXPECT(weft_udp_send(&two[1], &msgs[1], 1, 0) == -ENOBUFS);
	EXPECT(msgs[1].sent_bytes == 4000);
	EXPECT(weft_udp_send(&two[1], &msgs[1], 1, 0) == 1);
	EXPECT(msgs[1].sent_bytes == 0);
	expect_datagrams(&two[0], 0, 10, 10);
	expect_datagrams(&two[0], 10, 5500, 1000);
	expect_nothing(&two[0]);
	udp_close_both(two);
	return 0;
}

/* A socket that is ready and still has no room is asked again. */
IO_TEST(send_waits_for_room)
{
	struct weft_udp_msg msg;
	struct weft_udp two[2];

	open_two(two, false);
	device.fails = -EAGAIN;
	device.fails_at = 1;
	msg = sent_msg(0, 10, 0);
	EXPECT(weft_udp_send(&two[1], &msg, 1, MSG_DONTWAIT) == -EAGAIN);
	device.fails_at = 2;
	EXPECT(weft_udp_send(&two[1], &msg, 1, 0) == 1);
	EXPECT(device.calls == 3);
	expect_datagrams(&two[0], 0, 10, 10);
	expect_nothing(&two[0]);
	udp_close_both(two);
	return 0;
}

/* ---- Joining ------------------------------------------------------------- */

/* Does the loopback interface pass on what it need not cut?  Asked with nothing
 * of weft's. */
static bool loopback_joins(void)
{
	int in = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int out = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in name = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(name);
	int on = 1, size = 100;
	ssize_t n = 0;

	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(in, (struct sockaddr *)&name, sizeof(name)) == 0 &&
	    getsockname(in, (struct sockaddr *)&name, &bytes) == 0 &&
	    setsockopt(in, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) == 0 &&
	    setsockopt(out, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)) ==
		    0 &&
	    sendto(out, sent, 300, 0, (struct sockaddr *)&name, bytes) == 300)
		n = recv(in, got, sizeof(got), MSG_DONTWAIT);
	close(in);
	close(out);
	return n == 300;
}

#define NEEDS_JOINING "udp_gro on the loopback interface (Linux 5.12)"

IO_TEST(datagrams_come_together)
{
	struct weft_udp_msg msg = udp_msg(got, 65535, 0);
	struct weft_udp two[2];

	open_two(two, true);
	send_one(&two[1], 5500, 1000);
	EXPECT(weft_udp_recv(&two[0], &msg, 1, 0) == 1);
	EXPECT(msg.bytes == 5500 && msg.segment_bytes == 1000);
	EXPECT(memcmp(got, sent, 5500) == 0);
	expect_nothing(&two[0]);
	/* The message is sent back as it came. */
	EXPECT(weft_udp_send(&two[0], &msg, 1, 0) == 1);
	memset(got, 0, 5500);
	msg = udp_msg(got, 65535, 0);
	EXPECT(weft_udp_recv(&two[1], &msg, 1, 0) == 1);
	EXPECT(msg.bytes == 5500 && msg.segment_bytes == 1000);
	EXPECT(memcmp(got, sent, 5500) == 0);
	/* One datagram. */
	send_one(&two[1], 900, 1000);
	EXPECT(weft_udp_recv(&two[0], &msg, 1, 0) == 1);
	EXPECT(msg.bytes == 900 && msg.segment_bytes == 0);
	/* With too little room the rest is cut off. */
	send_one(&two[1], 5500, 1000);
	msg.room = 2500;
	EXPECT(weft_udp_recv(&two[0], &msg, 1, 0) == 1);
	EXPECT(msg.bytes == 2500 && msg.whole_bytes == 5500);
	EXPECT(msg.segment_bytes == 1000);
	udp_close_both(two);
	return 0;
}

/* ---- Without the kernel -------------------------------------------------- */

static int64_t do_without(void *arg)
{
	struct weft_udp_msg msg = udp_msg(got, 65535, 0);
	struct weft_udp two[2];

	(void)arg;
	open_two(two, true);
	send_one(&two[1], 5500, 1000);
	EXPECT(device.cut == 0 && device.whole == 6);
	expect_datagrams(&two[0], 0, 5500, 1000);
	EXPECT(weft_udp_recv(&two[0], &msg, 1, MSG_DONTWAIT) == -EAGAIN);
	udp_close_both(two);
	return 0;
}

START_TEST(kernel_may_know_no_segments)
{
	ck_assert_int_eq(setenv("WEFT_MASK", "udp_segment,udp_gro", 1), 0);
	io_run(do_without, NULL, 1);
}
END_TEST

#define ADD_IF(met, tc, name, what)               \
	do {                                      \
		if (test_needs(met, #name, what)) \
			io_add_test(tc, name);    \
	} while (0)

#define NEEDS_ROOM "a receive buffer of 256 KiB (net.core.rmem_max)"

int main(void)
{
	Suite *suite = suite_create("net/udp segments");
	TCase *tc = tcase_create("segments");
	bool room = udp_has_room(ROOM / 4), cuts = test_has_udp_segments();

	ADD_IF(room, tc, segments_are_datagrams, NEEDS_ROOM);
	ADD_IF(room, tc, long_message_is_sent_in_parts, NEEDS_ROOM);
	ADD_IF(room, tc, messages_keep_their_order, NEEDS_ROOM);
	ADD_IF(cuts, tc, segments_are_one_message_for_the_kernel,
	       NEEDS_UDP_SEGMENTS);
	ADD_IF(cuts, tc, refusal_is_remembered, NEEDS_UDP_SEGMENTS);
	ADD_IF(cuts, tc, too_long_for_one_peer_is_not_remembered,
	       NEEDS_UDP_SEGMENTS);
	ADD_IF(cuts, tc, other_errors_are_no_refusal, NEEDS_UDP_SEGMENTS);
	ADD_IF(cuts, tc, kernel_that_refuses_is_not_asked_again,
	       NEEDS_UDP_SEGMENTS);
	ADD_IF(cuts, tc, message_goes_on_where_it_stopped, NEEDS_UDP_SEGMENTS);
	io_add_test(tc, send_waits_for_room);
	ADD_IF(cuts && test_has_udp_gro() && loopback_joins(), tc,
	       datagrams_come_together, NEEDS_JOINING);
	tcase_add_test(tc, kernel_may_know_no_segments);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
