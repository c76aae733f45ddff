/* SPDX-License-Identifier: MIT */
/*
 * Suite net/udp waits: tasks that wait for messages, and their interruption.
 *
 * On a pair of Unix sockets (tests/support/udp_kit.h) the sender waits, too.
 */
#include "tests/support/udp_kit.h"

enum { BYTES = 8 };

static struct weft_udp two[2];

/* Sends until there is no room; returns how many. */
static int stuff(struct weft_udp *udp)
{
	char bytes[BYTES] = "stuffed";
	struct weft_udp_msg msg = udp_msg(bytes, 0, BYTES);
	int n = 0;

	while (weft_udp_send(udp, &msg, 1, MSG_DONTWAIT) == 1)
		n++;
	EXPECT(n > 0);
	EXPECT(weft_udp_send(udp, &msg, 1, MSG_DONTWAIT) == -EAGAIN);
	return n;
}

static int take_all(struct weft_udp *udp)
{
	char bytes[BYTES];
	struct weft_udp_msg msg = udp_msg(bytes, BYTES, 0);
	int n = 0;

	while (weft_udp_recv(udp, &msg, 1, MSG_DONTWAIT) == 1) {
		EXPECT(msg.bytes == BYTES);
		n++;
	}
	return n;
}

/* Does a task of the runtime wait there? */
static bool waits_in(struct weft_runtime *runtime, int fd)
{
	struct weft__fd *entry =
		weft__fd_find(&weft__reactor(runtime)->fds, fd);
	bool waits;

	if (!entry)
		return false;
	weft__lock_take(&entry->lock);
	waits = entry->waiting;
	weft__lock_drop(&entry->lock);
	return waits;
}

/* ---- Interruptions ------------------------------------------------------- */

enum call { RECV, SEND, RECV_ERROR, CALLS };

static int make(int call)
{
	char bytes[BYTES] = "message";
	struct weft_udp_msg msg = udp_msg(bytes, BYTES, BYTES);
	struct weft_udp_error error;

	switch (call) {
	case RECV:
		return weft_udp_recv(&two[0], &msg, 1, 0);
	case SEND:
		return weft_udp_send(&two[0], &msg, 1, 0);
	default:
		return weft_udp_recv_error(&two[0], &error, 0);
	}
}

/* RECV_ERROR: on a socket that knows of errors. */
static void two_open(int call)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;

	opts.want_errors = true;
	if (call == RECV_ERROR)
		udp_pair(two, &opts);
	else
		udp_over_pair(two);
	if (call == SEND)
		stuff(&two[0]);
}

static weft__atomic(int) results;

static int64_t make_and_note(void *arg)
{
	int r = make(*(int *)arg);

	/* relaxed: read when the task has ended. */
	weft__store(&results, r, relaxed);
	return 0;
}

static int64_t end_by_close(void *arg)
{
	int call = *(int *)arg, r;

	for (int waits = 0; waits < 2; waits++) {
		two_open(call);
		WEFT_SUPERVISE (scope) {
			EXPECT(WEFT_GO(scope, make_and_note, call) == 0);
			if (waits)
				wait_until(waits_in(weft_runtime_self(),
						    weft_udp_fd(&two[0])));
			else
				EXPECT(weft_yield() == 0);
			EXPECT(weft_udp_close(&two[0]) == 0);
		}
		/* relaxed: the task has ended. */
		r = weft__load(&results, relaxed);
		ck_assert_msg(r == -ECANCELED || (!waits && r == -EBADF),
			      "%d: %d", waits, r);
		EXPECT(weft_udp_close(&two[0]) == -EBADF);
		EXPECT(weft_udp_close(&two[1]) == 0);
	}
	return 0;
}

START_TEST(close_ends_a_wait)
{
	io_run(end_by_close, &(int){ _i / 2 }, _i % 2 ? 2 : 1);
}
END_TEST

static int64_t end_by_deadline(void *arg)
{
	int call = *(int *)arg, r = 0;

	two_open(call);
	WEFT_WITHIN (WEFT_MS(5))
		r = make(call);
	EXPECT(r == -ETIMEDOUT);
	WEFT_SUPERVISE (scope) {
		EXPECT(WEFT_GO(scope, make_and_note, call) == 0);
		wait_until(waits_in(weft_runtime_self(),
				    weft_udp_fd(&two[0])));
		weft_scope_cancel(scope);
	}
	/* relaxed: the task has ended. */
	EXPECT(weft__load(&results, relaxed) == -ECANCELED);
	udp_close_both(two);
	return 0;
}

START_TEST(deadline_and_cancellation_end_a_wait)
{
	io_run(end_by_deadline, &(int){ _i / 2 }, _i % 2 ? 2 : 1);
}
END_TEST

/* So does a loop of calls that find something each time. */
static int64_t note_a_turn(void *arg)
{
	weft__store(*(weft__atomic(bool) **)arg, true, release);
	return 0;
}

/* A message to and fro. */
static int move_one(void)
{
	char bytes[BYTES] = "message";
	struct weft_udp_msg msg = udp_msg(bytes, BYTES, BYTES);
	int r = weft_udp_send(&two[1], &msg, 1, 0);

	return r < 0 ? r : weft_udp_recv(&two[0], &msg, 1, 0);
}

IO_TEST(calls_that_do_not_wait_are_waits)
{
	weft__atomic(bool) had_a_turn = false, *turn = &had_a_turn;
	weft_nsec end_ns = weft_now() + WEFT_SEC(20);
	int r = 1;

	udp_over_pair(two);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, note_a_turn, turn) == 0);
		while (r == 1 && !weft__load(&had_a_turn, acquire) &&
		       weft_now() < end_ns)
			r = move_one();
		EXPECT(weft__load(&had_a_turn, acquire));
	}
	WEFT_WITHIN (WEFT_MS(2))
		while (r == 1 && weft_now() < end_ns)
			r = move_one();
	EXPECT(r == -ETIMEDOUT);
	udp_close_both(two);
	return 0;
}

enum { COUNT = 20000 };

/* For one call that never has to wait, as UDP drops what finds no room. */
static void many_begin(struct weft_udp_msg msgs[COUNT])
{
	static char bytes[BYTES] = "message";

	for (int i = 0; i < COUNT; i++)
		msgs[i] = udp_msg(bytes, 0, BYTES);
	udp_pair(two, NULL);
}

static int64_t send_many_beside_another(void *arg)
{
	static struct weft_udp_msg msgs[COUNT];
	weft__atomic(bool) had_a_turn = false, *turn = &had_a_turn;

	(void)arg;
	many_begin(msgs);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, note_a_turn, turn) == 0);
		EXPECT(weft_udp_send(&two[1], msgs, COUNT, 0) == COUNT);
		EXPECT(weft__load(&had_a_turn, acquire));
	}
	udp_close_both(two);
	return 0;
}

/* On one worker: a second one could take either task, and then lose its
 * processor. */
START_TEST(long_call_lets_others_run)
{
	io_run(send_many_beside_another, NULL, 1);
}
END_TEST

IO_TEST(long_call_ends_at_its_deadline)
{
	static struct weft_udp_msg msgs[COUNT];
	int r = 0;

	many_begin(msgs);
	WEFT_WITHIN (WEFT_US(200))
		r = weft_udp_send(&two[1], msgs, COUNT, 0);
	EXPECT(r == -ETIMEDOUT || (r > 0 && r < COUNT));
	udp_close_both(two);
	return 0;
}

/* ---- Nothing is lost ----------------------------------------------------- */

IO_TEST(interrupted_wait_takes_nothing)
{
	int sent, r = 0;

	udp_over_pair(two);
	WEFT_WITHIN (WEFT_MS(2))
		r = make(RECV);
	EXPECT(r == -ETIMEDOUT);
	sent = stuff(&two[1]);
	EXPECT(take_all(&two[0]) == sent);
	sent = stuff(&two[0]);
	WEFT_WITHIN (WEFT_MS(2))
		r = make(SEND);
	EXPECT(r == -ETIMEDOUT);
	EXPECT(take_all(&two[1]) == sent);
	udp_close_both(two);
	return 0;
}

/* Datagrams of one message, until there is no room; then the rest. */
IO_TEST(interrupted_message_goes_on)
{
	static unsigned char bytes[4000];
	struct weft_udp_msg msg = udp_msg(bytes, 0, sizeof(bytes));
	unsigned char piece[16];
	struct weft_udp_msg in = udp_msg(piece, sizeof(piece), 0);
	size_t got = 0;
	int r = 0;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7 + (i >> 8));
	msg.segment_bytes = 16;
	udp_over_pair(two);
	while (got < sizeof(bytes)) {
		if (r != 1)
			WEFT_WITHIN (WEFT_MS(1))
				r = weft_udp_send(&two[1], &msg, 1, 0);
		EXPECT(r == 1 || r == -ETIMEDOUT);
		while (weft_udp_recv(&two[0], &in, 1, MSG_DONTWAIT) == 1) {
			EXPECT(in.bytes == 16);
			EXPECT(memcmp(piece, bytes + got, 16) == 0);
			got += 16;
		}
		EXPECT(msg.sent_bytes == (r == 1 ? 0 : got));
	}
	EXPECT(r == 1 && got == sizeof(bytes));
	udp_close_both(two);
	return 0;
}

enum { TASKS = 4, EACH = 200 };

static weft__atomic(unsigned) received, sums;

/* Each takes what it gets, until it gets an empty message. */
static int64_t take_until_the_end(void *arg)
{
	unsigned char bufs[3][BYTES];
	struct weft_udp_msg msgs[3];
	int n;

	(void)arg;
	for (;;) {
		for (int i = 0; i < 3; i++)
			msgs[i] = udp_msg(bufs[i], BYTES, 0);
		n = weft_udp_recv(&two[0], msgs, 3, 0);
		EXPECT(n >= 1);
		for (int i = 0; i < n; i++) {
			if (!msgs[i].bytes)
				return 0;
			/* relaxed: read when all have ended. */
			weft__add(&received, 1u, relaxed);
			/* relaxed: see above. */
			weft__add(&sums, (unsigned)bufs[i][0], relaxed);
		}
	}
}

static int64_t send_each(void *arg)
{
	unsigned char bytes[BYTES] = { 0 };
	struct weft_udp_msg msg = udp_msg(bytes, 0, BYTES);

	(void)arg;
	for (int i = 0; i < EACH; i++) {
		bytes[0] = (unsigned char)i;
		EXPECT(weft_udp_send(&two[1], &msg, 1, 0) == 1);
	}
	return 0;
}

/* A task that takes several of them leaves fewer for the others, so they come
 * until all have ended. */
static void send_ends(struct weft_scope *takers)
{
	struct weft_udp_msg end = udp_msg(NULL, 0, 0);

	while (weft_scope_count(takers)) {
		int r = weft_udp_send(&two[1], &end, 1, MSG_DONTWAIT);

		EXPECT(r == 1 || r == -EAGAIN);
		EXPECT(weft_sleep(WEFT_US(200)) == 0);
	}
}

IO_TEST(several_tasks_share_a_socket)
{
	udp_over_pair(two);
	/* relaxed: no other task runs. */
	weft__store(&received, 0u, relaxed);
	/* relaxed: see above. */
	weft__store(&sums, 0u, relaxed);
	WEFT_SCOPE (takers, NULL) {
		for (int i = 0; i < TASKS; i++)
			EXPECT(weft_go(takers, take_until_the_end, NULL, 0) ==
			       0);
		WEFT_SCOPE (senders, NULL)
			for (int i = 0; i < TASKS; i++)
				EXPECT(weft_go(senders, send_each, NULL, 0) ==
				       0);
		send_ends(takers);
	}
	/* relaxed: all have ended. */
	EXPECT(weft__load(&received, relaxed) == TASKS * EACH);
	/* relaxed: see above. */
	EXPECT(weft__load(&sums, relaxed) == TASKS * (EACH * (EACH - 1) / 2));
	udp_close_both(two);
	return 0;
}

/* ---- Other runtimes ------------------------------------------------------ */

static struct weft_runtime *other;
static weft__atomic(int) made_there;

static int64_t make_there(void *arg)
{
	(void)arg;
	weft__store(&made_there, make(RECV), release);
	return 0;
}

static int64_t close_in_vain(void *arg)
{
	char byte = 'x';
	struct weft_udp_msg msg = udp_msg(&byte, 0, 1);
	int fd = weft_udp_fd(&two[0]);

	(void)arg;
	wait_until(waits_in(other, fd));
	EXPECT(weft_udp_close(&two[0]) == -EBUSY);
	EXPECT(weft_udp_fd(&two[0]) == fd);
	EXPECT(weft_udp_send(&two[1], &msg, 1, 0) == 1);
	wait_until(weft__load(&made_there, acquire) == 1);
	udp_close_both(two);
	return 0;
}

/* A close cannot end the calls of another runtime. */
START_TEST(close_is_refused_while_another_runtime_waits)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	int fds = fds_open();

	opts.workers = 1;
	udp_over_pair(two);
	ck_assert_int_eq(weft_start(&opts, &other), 0);
	ck_assert_int_eq(weft_submit(other, make_there, NULL, 0, NULL), 0);
	ck_assert_int_eq(weft_run(close_in_vain, NULL, &opts), 0);
	ck_assert_int_eq(weft_stop(other), 0);
	ck_assert_int_eq(fds_open(), fds);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("net/udp waits");
	TCase *tc = tcase_create("waits");

	tcase_add_loop_test(tc, close_ends_a_wait, 0, 2 * CALLS);
	tcase_add_loop_test(tc, deadline_and_cancellation_end_a_wait, 0,
			    2 * CALLS);
	io_add_test(tc, calls_that_do_not_wait_are_waits);
	tcase_add_test(tc, long_call_lets_others_run);
	io_add_test(tc, long_call_ends_at_its_deadline);
	io_add_test(tc, interrupted_wait_takes_nothing);
	io_add_test(tc, interrupted_message_goes_on);
	io_add_test(tc, several_tasks_share_a_socket);
	tcase_add_test(tc, close_is_refused_while_another_runtime_waits);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
