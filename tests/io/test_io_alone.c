/* SPDX-License-Identifier: MIT */
/*
 * A worker that no other worker helps: its ring belongs to its thread alone
 * (IORING_SETUP_SINGLE_ISSUER and IORING_SETUP_DEFER_TASKRUN), and the kernel
 * does work for it only when the thread enters the kernel.
 *
 * Covered: which runtimes have such rings, more completions than one batch,
 * runtimes in several threads, the end of a runtime, a kernel that refuses
 * requests, and tasks that compute.
 */
#include <pthread.h>
#include <sys/syscall.h>

#include "io/request/shard.h"
#include "io/ring/uring/uring.h"
#include "tests/support/engine.h"
#include "tests/support/expect.h"
#include "tests/support/io_kit.h"
#include "tests/support/features.h"
#include "tests/support/needs.h"
#include "tests/support/wrap_enter.h"

/* ---- Which runtimes ------------------------------------------------------ */

static int64_t ring_flags(void *arg)
{
	struct weft__worker *worker = weft__worker_self();

	(void)arg;
	return weft__uring(&weft__shard(worker)->ring)->uring.flags &
	       (IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER);
}

static int64_t flags_of_run(unsigned workers)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = workers;
	return weft_run(ring_flags, NULL, &opts);
}

/* A runtime of weft_start() is started by one thread, and may be stopped by
 * another. */
static int64_t flags_of_start(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_task_opts task_opts = WEFT_TASK_OPTS_INIT;
	struct weft_runtime *runtime;
	struct weft_task task;
	int64_t flags = -1;

	opts.workers = 1;
	task_opts.ret_task = &task;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	ck_assert_int_eq(weft_submit(runtime, ring_flags, NULL, 0, &task_opts),
			 0);
	ck_assert_int_eq(weft_wait(runtime, task, &flags), 0);
	ck_assert_int_eq(weft_stop(runtime), 0);
	return flags;
}

START_TEST(one_worker_of_the_caller_s_is_alone)
{
#ifndef WEFT_VALGRIND
	ck_assert_int_ne(flags_of_run(1), 0);
#endif
	ck_assert_int_eq(flags_of_run(2), 0);
	ck_assert_int_eq(flags_of_start(), 0);
}
END_TEST

/* ---- More than the kernel does at a time --------------------------------- */

enum { MANY = 300 };

static int64_t read_one(void *arg)
{
	char byte;

	EXPECT(weft_read(*(int *)arg, &byte, 1) == 1 && byte == 'x');
	return 0;
}

static int64_t wake_many(void *arg)
{
	static int pairs[MANY][2];

	(void)arg;
	for (int i = 0; i < MANY; i++)
		socket_pair(pairs[i]);
	WEFT_SUPERVISE (readers) {
		for (int i = 0; i < MANY; i++)
			EXPECT(WEFT_GO(readers, read_one, pairs[i][0]) == 0);
		while (weft_scope_count(readers) < MANY)
			EXPECT(weft_yield() == 0);
		EXPECT(weft_yield() == 0);
		/* Written with write(2), not by weft: all bytes are there at
		 * the worker's next look. */
		for (int i = 0; i < MANY; i++)
			EXPECT(write(pairs[i][1], "x", 1) == 1);
	}
	for (int i = 0; i < MANY; i++)
		close_both(pairs[i]);
	return 0;
}

/* ---- Other threads ------------------------------------------------------- */

/* Two such runtimes, each in a thread, talk to each other, and the main thread
 * writes to both. */
struct party {
	pthread_t thread;
	int from_other, to_other, from_main;
	bool begins;
};

enum { ROUNDS = 500 };

static int64_t play(void *arg)
{
	struct party *party = *(struct party **)arg;
	char ball = 'b';

	for (int i = 0; i < ROUNDS; i++) {
		if (party->begins)
			EXPECT(weft_write(party->to_other, &ball, 1) == 1);
		EXPECT(weft_read(party->from_other, &ball, 1) == 1);
		if (!party->begins)
			EXPECT(weft_write(party->to_other, &ball, 1) == 1);
	}
	return 0;
}

static int64_t hear(void *arg)
{
	struct party *party = *(struct party **)arg;
	char byte;

	for (int i = 0; i < ROUNDS; i++)
		EXPECT(weft_read(party->from_main, &byte, 1) == 1);
	return 0;
}

static int64_t take_part(void *arg)
{
	WEFT_SUPERVISE (scope) {
		EXPECT(weft_go(scope, play, &arg, sizeof(arg)) == 0);
		EXPECT(weft_go(scope, hear, &arg, sizeof(arg)) == 0);
	}
	return 0;
}

/* The other runtime opens and closes descriptors, too, so they are not counted
 * here. */
static void *party_thread(void *arg)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	EXPECT(weft_run(take_part, arg, &opts) == 0);
	return NULL;
}

START_TEST(two_in_two_threads_talk)
{
	struct party parties[2] = { { .begins = true } };
	int to_main[2][2], between[2][2], before = fds_open();

	for (int i = 0; i < 2; i++) {
		socket_pair(to_main[i]);
		socket_pair(between[i]);
	}
	for (int i = 0; i < 2; i++) {
		parties[i].from_main = to_main[i][0];
		parties[i].from_other = between[i][0];
		parties[i].to_other = between[!i][1];
		EXPECT(pthread_create(&parties[i].thread, NULL, party_thread,
				      &parties[i]) == 0);
	}
	for (int n = 0; n < ROUNDS; n++)
		for (int i = 0; i < 2; i++)
			EXPECT(write(to_main[i][1], "m", 1) == 1);
	for (int i = 0; i < 2; i++)
		EXPECT(pthread_join(parties[i].thread, NULL) == 0);
	for (int i = 0; i < 2; i++) {
		EXPECT(close(to_main[i][0]) == 0 && close(to_main[i][1]) == 0);
		EXPECT(close(between[i][0]) == 0 && close(between[i][1]) == 0);
	}
	expect_fds(before);
}
END_TEST

/* ---- Ending -------------------------------------------------------------- */

/* A listener and a stream that are left open. */
struct left {
	struct weft_stream stream;
	int listener;
	int fds[2];
};

static int64_t leave_open(void *arg)
{
	struct left *left = arg;
	const void *data;
	char address[WEFT_ADDR_TEXT_BYTES];
	ssize_t n = 0;

	left->listener = tcp_listener(address);
	WEFT_WITHIN (WEFT_US(10))
		n = weft_accept(left->listener, NULL);
	EXPECT(n == -ETIMEDOUT);
	socket_pair(left->fds);
	weft_stream_init(&left->stream, left->fds[0]);
	WEFT_WITHIN (WEFT_US(10))
		n = weft_stream_peek(&left->stream, &data);
	EXPECT(n == -ETIMEDOUT);
	return 0;
}

START_TEST(what_is_left_open_ends_with_it)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	int before = fds_open();
	struct left left;

	opts.workers = 1;
	EXPECT(weft_run(leave_open, &left, &opts) == 0);
	EXPECT(close(left.listener) == 0);
	EXPECT(close(left.fds[0]) == 0 && close(left.fds[1]) == 0);
	expect_fds(before);
}
END_TEST

/* ---- A kernel that refuses requests -------------------------------------- */

static weft__atomic(bool) refuses;

/* A kernel without memory for a request fails the call, and does not do the
 * rest of it either. */
int __wrap_io_uring_enter2(unsigned fd, unsigned to_submit,
			   unsigned min_complete, unsigned flags, sigset_t *sig,
			   size_t sz)
{
	long r;

	/* relaxed: only this thread uses it. */
	if (to_submit && weft__load(&refuses, relaxed))
		return -EAGAIN;
	r = syscall(SYS_io_uring_enter, fd, to_submit, min_complete, flags, sig,
		    sz);
	return (int)(r < 0 ? -errno : r);
}

static int64_t end_refusal(void *arg)
{
	int *fds = *(int **)arg;
	char byte;

	EXPECT(weft_read(fds[0], &byte, 1) == 1);
	/* relaxed: only this thread uses it. */
	weft__store(&refuses, false, relaxed);
	EXPECT(write(fds[3], "x", 1) == 1);
	return 0;
}

static uint64_t requests(void)
{
	/* relaxed: only the worker uses it. */
	return weft__load(&weft__worker_self()->counts[WEFT__N_OPS], relaxed);
}

static uint32_t unsubmitted(void)
{
	return weft__ring_unsubmitted(&weft__shard(weft__worker_self())->ring);
}

/* The kernel takes requests again after its completions were reaped. */
static int64_t wait_for_refusal(void *arg)
{
	int fds[4];
	char byte;

	(void)arg;
	socket_pair(fds);
	socket_pair(fds + 2);
	WEFT_SUPERVISE (scope) {
		int *pointer = fds;
		uint64_t before = requests();

		EXPECT(WEFT_GO(scope, end_refusal, pointer) == 0);
		/* Waits until the kernel has the request. */
		while (requests() == before || unsubmitted())
			EXPECT(weft_yield() == 0);
		/* relaxed: only this thread uses it. */
		weft__store(&refuses, true, relaxed);
		EXPECT(write(fds[1], "x", 1) == 1);
		EXPECT(weft_read(fds[2], &byte, 1) == 1);
	}
	close_both(fds);
	close_both(fds + 2);
	return 0;
}

START_TEST(what_came_is_seen_while_nothing_is_submitted)
{
	io_run(wait_for_refusal, NULL, 1);
}
END_TEST

/* ---- A task that computes ------------------------------------------------ */

static int heard;

static int64_t hear_of_it(void *arg)
{
	int fd = *(int *)arg;
	char byte;

	while (heard < 3) {
		EXPECT(weft_read(fd, &byte, 1) == 1);
		heard++;
	}
	return 0;
}

static void compute(void)
{
	weft_nsec until_ns = weft_now() + WEFT_MS(3);

	while (weft_now() < until_ns)
		;
}

/* Events that arrive during a run are seen between two tasks. */
static int64_t compute_beside(void *arg)
{
	int fds[2];

	(void)arg;
	socket_pair(fds);
	WEFT_SUPERVISE (scope) {
		EXPECT(WEFT_GO(scope, hear_of_it, fds[0]) == 0);
		EXPECT(weft_yield() == 0);
		for (int i = 0; i < 3; i++) {
			EXPECT(write(fds[1], "x", 1) == 1);
			compute();
			for (int n = 0; n < 1000 && heard == i; n++)
				EXPECT(weft_yield() == 0);
			EXPECT(heard == i + 1);
		}
	}
	close_both(fds);
	return 0;
}

START_TEST(all_of_many_are_woken)
{
	io_run(wake_many, NULL, 1);
}
END_TEST

START_TEST(who_computes_is_followed_by_what_came)
{
	io_run(compute_beside, NULL, 1);
}
END_TEST

/* ---- A number that is not open ------------------------------------------- */

static int64_t accept_one(void *arg)
{
	return weft_accept(*(int *)arg, NULL);
}

static int connect_past_weft(int listener)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct weft_addr addr;

	EXPECT(fd >= 0 && weft_local_addr(listener, &addr) == 0);
	EXPECT(connect(fd, weft_addr_sockaddr(&addr),
		       weft_addr_sockaddr_bytes(&addr)) == 0);
	return fd;
}

/* A task accepts at a number that was closed, and its scope is cancelled in the
 * same tick, before the kernel has a request.  Another listener gets the
 * number.  No task has accepted there, so the kernel must keep that listener's
 * connections. */
static int64_t accept_nowhere(void *arg)
{
	char address[WEFT_ADDR_TEXT_BYTES];
	int fd = fd_far(tcp_listener(address)), other, client;
	int64_t result = 0;

	(void)arg;
	EXPECT(weft_close(fd) == 0);
	EXPECT(weft_yield() == 0);
	WEFT_SUPERVISE (scope) {
		struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
		struct weft_task task;

		opts.ret_task = &task;
		EXPECT(weft_go_opts(scope, accept_one, &fd, sizeof(fd),
				    &opts) == 0);
		EXPECT(weft_yield() == 0);
		weft_scope_cancel(scope);
		WEFT_SHIELD
			EXPECT(weft_join(task, &result) == 0);
	}
	EXPECT(result == -EBADF);
	other = tcp_listener(address);
	EXPECT(dup2(other, fd) == fd && weft_close(other) == 0);
	other = fd;
	EXPECT(fcntl(other, F_SETFL, O_NONBLOCK) == 0);
	client = connect_past_weft(other);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	/* On a slow machine it is not there yet. */
	EXPECT(poll(&(struct pollfd){ other, POLLIN, 0 }, 1, 20000) == 1);
	fd = accept4(other, NULL, NULL, SOCK_CLOEXEC);
	EXPECT(fd >= 0);
	close_both((int[]){ fd, client });
	return weft_close(other);
}

START_TEST(accept_at_a_closed_number_leaves_nothing_behind)
{
	io_run(accept_nowhere, NULL, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/alone");
	TCase *tests = tcase_create("alone");

	if (test_needs(test_has_uring() && test_has_lone_rings(),
		       "one_worker_of_the_caller_s_is_alone",
		       NEEDS_URING ", " NEEDS_LONE_RINGS))
		tcase_add_test(tests, one_worker_of_the_caller_s_is_alone);
	if (test_needs(test_has_descriptors(700), "all_of_many_are_woken",
		       "700 descriptors"))
		tcase_add_test(tests, all_of_many_are_woken);
	tcase_add_test(tests, what_came_is_seen_while_nothing_is_submitted);
	tcase_add_test(tests, who_computes_is_followed_by_what_came);
	tcase_add_test(tests, two_in_two_threads_talk);
	tcase_add_test(tests, what_is_left_open_ends_with_it);
	tcase_add_test(tests, accept_at_a_closed_number_leaves_nothing_behind);
	suite_add_tcase(suite, tests);
	return io_tests_run(suite);
}
