/* SPDX-License-Identifier: MIT */
/*
 * Dialling: which address wins, and that nothing else stays open.
 *
 * An address that does not answer is a listener whose backlog is full: the
 * kernel drops what comes.  One that refuses is a port that was closed.
 */
#include "net/dial.h"
#include "net/socket.h"
#include "tests/support/io_kit.h"

struct full {
	struct weft_addr addr;
	int listener;
	int clients[8];
	int count;
};

static void full_open(struct full *full)
{
	struct weft_socket_opts opts = WEFT_SOCKET_OPTS_INIT;
	int r = 0;

	opts.backlog = 1;
	full->listener = weft_tcp_listen("127.0.0.1:0", &opts);
	ck_assert_int_eq(weft_local_addr(full->listener, &full->addr), 0);
	full->count = 0;
	while (full->count < 8 && r >= 0) {
		/* The kernel has room for two at least. */
		WEFT_WITHIN(full->count < 2 ? WEFT_SEC(20) : WEFT_MS(50))
			r = weft_socket_connect(&full->addr, NULL);
		if (r >= 0)
			full->clients[full->count++] = r;
	}
	ck_assert_int_eq(r, -ETIMEDOUT);
}

static void full_close(struct full *full)
{
	while (full->count)
		ck_assert_int_eq(weft_close(full->clients[--full->count]), 0);
	ck_assert_int_eq(weft_close(full->listener), 0);
}

static int listener_at(struct weft_addr *addr)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int fd = tcp_listener(text);

	ck_assert_int_eq(weft_addr_parse(text, addr), 0);
	return fd;
}

static struct weft_addr refusing(void)
{
	struct weft_addr addr;

	ck_assert_int_eq(weft_close(listener_at(&addr)), 0);
	return addr;
}

static void expect_peer(int fd, const struct weft_addr *addr)
{
	struct weft_addr peer;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_peer_addr(fd, &peer), 0);
	ck_assert(weft_addr_equal(&peer, addr));
	ck_assert_int_eq(weft_close(fd), 0);
}

/* Does a connection wait to be accepted? */
static bool has_come(int listener)
{
	struct pollfd look = { .fd = listener, .events = POLLIN };

	return poll(&look, 1, 0) == 1;
}

/* ---- Several addresses --------------------------------------------------- */

IO_TEST(address_that_does_not_answer_is_passed)
{
	struct weft_dial_opts opts = WEFT_DIAL_OPTS_INIT;
	struct weft_addr addrs[2];
	struct full full;
	int listener = listener_at(&addrs[1]), before;

	full_open(&full);
	addrs[0] = full.addr;
	opts.delay_ns = WEFT_MS(10);
	before = fds_open();
	expect_peer(weft__dial_addrs(addrs, 2, NULL, &opts), &addrs[1]);
	/* The attempt that lost is closed. */
	ck_assert_int_le(fds_open(), before);
	full_close(&full);
	ck_assert_int_eq(weft_close(listener), 0);
	return 0;
}

/* Neither is the delay waited for, nor is it in the way. */
IO_TEST(address_that_refuses_is_passed_immediately)
{
	struct weft_dial_opts opts = WEFT_DIAL_OPTS_INIT;
	struct weft_addr addrs[3] = { refusing(), refusing() };
	int listener = listener_at(&addrs[2]);

	opts.delay_ns = WEFT_SEC(3600);
	expect_peer(weft__dial_addrs(addrs, 3, NULL, &opts), &addrs[2]);
	ck_assert_int_eq(weft_close(listener), 0);
	return 0;
}

IO_TEST(first_address_that_answers_is_the_only_one_tried)
{
	enum { TURNS = 200 };
	struct weft_dial_opts opts = WEFT_DIAL_OPTS_INIT;
	struct weft_addr addrs[2];
	int listeners[] = { listener_at(&addrs[0]), listener_at(&addrs[1]) };

	opts.delay_ns = WEFT_SEC(3600);
	for (int turn = 0; turn < TURNS; turn++) {
		expect_peer(weft__dial_addrs(addrs, 2, NULL, &opts), &addrs[0]);
		ck_assert_int_eq(close(accept(listeners[0], NULL, NULL)), 0);
		ck_assert(!has_come(listeners[1]));
	}
	close_both(listeners);
	return 0;
}

IO_TEST(first_error_is_reported_when_all_fail)
{
	struct weft_dial_opts opts = WEFT_DIAL_OPTS_INIT;
	struct weft_addr addrs[3] = { refusing(), refusing(), refusing() };
	int before = fds_open();

	ck_assert_int_eq(weft__dial_addrs(addrs, 3, NULL, &opts),
			 -ECONNREFUSED);
	ck_assert_int_eq(weft__dial_addrs(addrs, 1, NULL, &opts),
			 -ECONNREFUSED);
	ck_assert_int_le(fds_open(), before);
	return 0;
}

IO_TEST(deadline_closes_all_attempts)
{
	struct weft_dial_opts opts = WEFT_DIAL_OPTS_INIT;
	struct full full;
	struct weft_addr addrs[3];
	int r = 0, before;

	full_open(&full);
	addrs[0] = addrs[1] = addrs[2] = full.addr;
	opts.delay_ns = WEFT_MS(1);
	before = fds_open();
	WEFT_WITHIN(WEFT_MS(50))
		r = weft__dial_addrs(addrs, 3, NULL, &opts);
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_int_le(fds_open(), before);
	/* While the next one is waited for, too. */
	opts.delay_ns = WEFT_SEC(3600);
	WEFT_WITHIN(WEFT_MS(20))
		r = weft__dial_addrs(addrs, 3, NULL, &opts);
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_int_le(fds_open(), before);
	full_close(&full);
	return 0;
}

struct dialling {
	struct weft_addr addrs[3];
	int result;
};

static int64_t dial_slowly(void *arg)
{
	struct dialling *dialling = *(struct dialling **)arg;
	struct weft_dial_opts opts = WEFT_DIAL_OPTS_INIT;

	opts.delay_ns = WEFT_MS(1);
	dialling->result = weft__dial_addrs(dialling->addrs, 3, NULL, &opts);
	return 0;
}

IO_TEST(cancellation_closes_all_attempts)
{
	struct dialling dialling, *at = &dialling;
	struct full full;
	int before;

	full_open(&full);
	for (int i = 0; i < 3; i++)
		dialling.addrs[i] = full.addr;
	before = fds_open();
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, dial_slowly, at), 0);
		/* All three are under way. */
		wait_until(fds_open() >= before + 3);
		weft_scope_cancel(scope);
	}
	ck_assert_int_eq(dialling.result, -ECANCELED);
	ck_assert_int_le(fds_open(), before);
	full_close(&full);
	return 0;
}

/* As many connections as there are addresses may come at the same time. */
IO_TEST(losers_are_closed)
{
	enum { ADDRS = 8, TURNS = 50 };
	struct weft_dial_opts opts = WEFT_DIAL_OPTS_INIT;
	struct weft_addr addrs[ADDRS];
	int listener = listener_at(&addrs[0]), before;

	for (int i = 1; i < ADDRS; i++)
		addrs[i] = addrs[0];
	opts.delay_ns = 1;
	before = fds_open();
	for (int turn = 0; turn < TURNS; turn++) {
		expect_peer(weft__dial_addrs(addrs, ADDRS, NULL, &opts),
			    &addrs[0]);
		/* A short backlog is not to be full. */
		while (has_come(listener))
			ck_assert_int_eq(close(accept(listener, NULL, NULL)),
					 0);
	}
	ck_assert_int_le(fds_open(), before);
	ck_assert_int_eq(weft_close(listener), 0);
	return 0;
}

static struct weft_addr addr_of(const char *text)
{
	struct weft_addr addr;

	ck_assert_int_eq(weft_addr_parse(text, &addr), 0);
	return addr;
}

START_TEST(families_take_turns)
{
	struct weft_addr addrs[] = {
		addr_of("[::1]:1"),	addr_of("[::1]:2"),
		addr_of("127.0.0.1:1"), addr_of("[::1]:3"),
		addr_of("127.0.0.1:2"), addr_of("127.0.0.1:3"),
		addr_of("127.0.0.1:4"),
	};
	static const char *const order[] = {
		"[::1]:1", "127.0.0.1:1", "[::1]:2",	 "127.0.0.1:2",
		"[::1]:3", "127.0.0.1:3", "127.0.0.1:4",
	};
	char text[WEFT_ADDR_TEXT_BYTES];

	weft__dial_order(addrs, 7);
	for (int i = 0; i < 7; i++) {
		weft_addr_format(&addrs[i], text, sizeof(text));
		ck_assert_str_eq(text, order[i]);
	}
}
END_TEST

/* All attempts connect from the same one; another program may take it. */
IO_TEST(local_port_is_no_reason_to_try_one_address_only)
{
	struct weft_dial_opts opts = WEFT_DIAL_OPTS_INIT;
	struct weft_addr addrs[2], local, bound;
	int listener = listener_at(&addrs[1]), fd;
	struct full full;

	full_open(&full);
	addrs[0] = full.addr;
	opts.delay_ns = WEFT_MS(10);
	do {
		local = refusing();
		fd = -ETIMEDOUT;
		WEFT_WITHIN(WEFT_SEC(20))
			fd = weft__dial_addrs(addrs, 2, &local, &opts);
	} while (fd == -EADDRINUSE);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_local_addr(fd, &bound), 0);
	ck_assert(weft_addr_equal(&bound, &local));
	expect_peer(fd, &addrs[1]);
	full_close(&full);
	ck_assert_int_eq(weft_close(listener), 0);
	return 0;
}

/* ---- One address --------------------------------------------------------- */

/* As if the kernel had picked for the near end the port that is dialled. */
static int picks_the_same;

static int pick(int fd, const struct weft_addr *addr,
		const struct weft_socket_opts *opts)
{
	(void)opts;
	return picks_the_same-- > 0 ? weft__socket_bind(fd, addr) : 0;
}

/* TCP would connect them. */
IO_TEST(socket_is_not_its_own_peer)
{
	struct weft_addr addr = refusing();

	for (int picks = 0; picks < 5; picks++) {
		picks_the_same = picks;
		ck_assert_int_eq(weft__socket_connect(&addr, NULL, NULL, pick),
				 -ECONNREFUSED);
	}
	return 0;
}

IO_TEST(socket_is_bound_to_the_local_address)
{
	struct weft_dial_opts opts = WEFT_DIAL_OPTS_INIT;
	char text[WEFT_ADDR_TEXT_BYTES], local[WEFT_ADDR_TEXT_BYTES];
	struct weft_addr peer;
	int listener = tcp_listener(text), client, server;

	opts.local = "127.0.0.2:0";
	client = weft_dial(text, &opts);
	ck_assert_int_ge(client, 0);
	server = weft_accept(listener, &peer);
	ck_assert_int_ge(server, 0);
	weft_addr_format(&peer, local, sizeof(local));
	ck_assert_int_eq(strncmp(local, "127.0.0.2:", 10), 0);
	close_both((int[]){ client, server });
	opts.local = "[::1]:0";
	ck_assert_int_eq(weft_dial(text, &opts), -EAFNOSUPPORT);
	opts.local = "192.0.2.1:0";
	ck_assert_int_eq(weft_dial(text, &opts), -EADDRNOTAVAIL);
	ck_assert_int_eq(weft_close(listener), 0);
	return 0;
}

IO_TEST(unix_socket_is_dialled)
{
	char text[64];
	int listener, fd;

	snprintf(text, sizeof(text), "unix:@weft-dial-%d", (int)getpid());
	listener = weft_unix_listen(text, NULL);
	ck_assert_int_ge(listener, 0);
	fd = weft_dial(text, NULL);
	ck_assert_int_ge(fd, 0);
	close_both((int[]){ fd, listener });
	ck_assert_int_eq(weft_dial(text, NULL), -ECONNREFUSED);
	return 0;
}

IO_TEST(wrong_arguments_are_refused)
{
	struct weft_dial_opts opts = WEFT_DIAL_OPTS_INIT;
	struct weft_socket_opts wrong = { 0 };

	ck_assert_int_eq(weft_dial(NULL, NULL), -EINVAL);
	ck_assert_int_eq(weft_dial("name", NULL), -EINVAL);
	opts.local = "localhost:0";
	ck_assert_int_eq(weft_dial("127.0.0.1:1", &opts), -EINVAL);
	opts.local = NULL;
	opts.socket = &wrong;
	ck_assert_int_eq(weft_dial("127.0.0.1:1", &opts), -EINVAL);
	opts.socket = NULL;
	opts.family = AF_INET6;
	ck_assert_int_eq(weft_dial("127.0.0.1:1", &opts), -EAFNOSUPPORT);
	opts.family = AF_UNIX;
	ck_assert_int_eq(weft_dial("127.0.0.1:1", &opts), -EINVAL);
	opts.family = 0;
	opts.reserved_words[3] = 1;
	ck_assert_int_eq(weft_dial("127.0.0.1:1", &opts), -EINVAL);
	opts.reserved_words[3] = 0;
	opts.size = 0;
	ck_assert_int_eq(weft_dial("127.0.0.1:1", &opts), -EINVAL);
	return 0;
}

START_TEST(outside_a_task_nothing_is_dialled)
{
	ck_assert_int_eq(weft_dial("127.0.0.1:1", NULL), -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("net/dial");
	TCase *several = tcase_create("several");
	TCase *one = tcase_create("one");

	io_add_test(several, address_that_does_not_answer_is_passed);
	io_add_test(several, address_that_refuses_is_passed_immediately);
	io_add_test(several, first_address_that_answers_is_the_only_one_tried);
	io_add_test(several, first_error_is_reported_when_all_fail);
	io_add_test(several, deadline_closes_all_attempts);
	io_add_test(several, cancellation_closes_all_attempts);
	io_add_test(several, losers_are_closed);
	io_add_test(several, local_port_is_no_reason_to_try_one_address_only);
	tcase_add_test(several, families_take_turns);
	io_add_test(one, socket_is_bound_to_the_local_address);
	io_add_test(one, socket_is_not_its_own_peer);
	io_add_test(one, unix_socket_is_dialled);
	io_add_test(one, wrong_arguments_are_refused);
	tcase_add_test(one, outside_a_task_nothing_is_dialled);
	suite_add_tcase(suite, several);
	suite_add_tcase(suite, one);
	return io_tests_run(suite);
}
