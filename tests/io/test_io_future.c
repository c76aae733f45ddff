/* SPDX-License-Identifier: MIT */
/*
 * Futures on sockets: transfers, deadlines, cancellation and closing lose no
 * byte and leak no descriptor.
 */
#include <pthread.h>
#include <sched.h>

#include "tests/support/io_future.h"

/* Valgrind makes these tests fifty times as slow. */
#ifdef WEFT_VALGRIND
enum { PAIRS = 3, BYTES = 40000, REUSES = 10, CLOSES = 3 };
#else
enum { PAIRS = 8, BYTES = 300000, REUSES = 60, CLOSES = 20 };
#endif

/* ---- Bytes --------------------------------------------------------------- */

/* A future that sends back what it receives and closes at the end.  Its result
 * is the number of bytes. */
struct echo {
	WEFT_FUTURE_STATE;
	int fd;
	uint32_t from, to;
	int64_t total;
	char buf[700];
};

static int64_t echo(void *state)
{
	struct echo *e = state;
	ssize_t n;

	WEFT_FUTURE_BEGIN(e);
	for (;;) {
		WEFT_AWAIT_AS(e, n,
			      weft_await_recv(e->fd, e->buf, sizeof(e->buf),
					      0));
		if (n <= 0)
			break;
		e->total += n;
		for (e->from = 0, e->to = (uint32_t)n; e->from < e->to;) {
			WEFT_AWAIT_AS(e, n,
				      weft_await_send(e->fd, e->buf + e->from,
						      e->to - e->from, 0));
			if (n < 0)
				return n;
			e->from += (uint32_t)n;
		}
	}
	if (n < 0)
		e->total = n;
	WEFT_AWAIT_AS(e, n, weft_await_close(e->fd));
	ck_assert_int_eq(n, 0);
	WEFT_FUTURE_END(e);
	return e->total;
}

struct talk {
	int fd;
	size_t bytes;
};

static unsigned char byte_at(size_t i)
{
	return (unsigned char)(i * 31 + i / 251);
}

static int64_t say(void *arg)
{
	struct talk *talk = arg;
	unsigned char buf[5000];
	size_t sent = 0;

	while (sent < talk->bytes) {
		size_t n = talk->bytes - sent;

		if (n > sizeof(buf))
			n = sizeof(buf);
		for (size_t i = 0; i < n; i++)
			buf[i] = byte_at(sent + i);
		ck_assert_int_eq(weft_write_all(talk->fd, buf, n, NULL), 0);
		sent += n;
	}
	return weft_shutdown(talk->fd, SHUT_WR);
}

static int64_t hear(void *arg)
{
	struct talk *talk = arg;
	unsigned char buf[3000];
	size_t had = 0;
	ssize_t n;

	while ((n = weft_read(talk->fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++)
			ck_assert_uint_eq(buf[i], byte_at(had++));
	ck_assert_int_eq(n, 0);
	ck_assert_uint_eq(had, talk->bytes);
	return 0;
}

/* The sockets' buffers are small, so that sends wait, too. */
IO_TEST(bytes_go_through_in_order)
{
	struct weft_task futures[PAIRS];
	int fds[PAIRS][2], small = 4096;
	int64_t result = -1;

	WEFT_SUPERVISE(echoes) {
		WEFT_SCOPE(talks, &result)
			for (int i = 0; i < PAIRS; i++) {
				struct echo e = { 0 };
				struct talk talk;

				socket_pair(fds[i]);
				setsockopt(fds[i][0], SOL_SOCKET, SO_SNDBUF,
					   &small, sizeof(small));
				e.fd = fds[i][0];
				futures[i] = start_future(echoes, echo, &e,
							  sizeof(e));
				talk = (struct talk){ fds[i][1], BYTES };
				ck_assert_int_eq(WEFT_GO(talks, say, talk), 0);
				ck_assert_int_eq(WEFT_GO(talks, hear, talk),
						 0);
			}
		for (int i = 0; i < PAIRS; i++) {
			ck_assert_int_eq(join(futures[i]), BYTES);
			ck_assert_int_eq(weft_close(fds[i][1]), 0);
		}
	}
	ck_assert_int_eq(result, 0);
	return 0;
}

/* ---- Deadlines and cancellation ------------------------------------------ */

struct wait {
	WEFT_FUTURE_STATE;
	int fd;
	int kind;
	uint64_t within_ns;
	weft__atomic(int) *waiting;
};

enum { KINDS = 3 };

static int64_t wait_call(struct wait *w)
{
	static char byte;

	switch (w->kind) {
	case 0:
		return weft_await_ready(w->fd, POLLIN);
	case 1:
		return weft_await_recv(w->fd, &byte, 1, 0);
	default:
		return weft_await_recv(w->fd, &byte, 1, MSG_PEEK);
	}
}

static int64_t wait_on(void *state)
{
	struct wait *w = state;
	int64_t r;

	WEFT_FUTURE_BEGIN(w);
	weft__add(w->waiting, 1, acq_rel);
	if (w->within_ns)
		ck_assert_int_eq(weft_future_within(w->within_ns), 0);
	WEFT_AWAIT_AS(w, r, wait_call(w));
	WEFT_FUTURE_END(w);
	return r;
}

enum { WAITERS = 40 };

static void wait_begin(struct weft_scope *scope, int fd, uint64_t within_ns,
		       weft__atomic(int) *waiting, struct weft_task *tasks)
{
	for (int i = 0; i < WAITERS; i++) {
		struct wait w = { 0, fd, i % KINDS, within_ns, waiting };

		tasks[i] = start_future(scope, wait_on, &w, sizeof(w));
	}
	while (weft__load(waiting, acquire) < WAITERS)
		weft_yield();
}

IO_TEST(cancelling_ends_what_waits)
{
	weft__atomic(int) waiting = 0;
	struct weft_task tasks[WAITERS];
	int fds[2];

	socket_pair(fds);
	WEFT_SUPERVISE(scope) {
		wait_begin(scope, fds[0], 0, &waiting, tasks);
		wait_until(calls_waiting(fds[0]) == WAITERS);
		for (int i = 0; i < WAITERS; i++)
			ck_assert_int_eq(weft_cancel(tasks[i]), 0);
		for (int i = 0; i < WAITERS; i++)
			ck_assert_int_eq(join(tasks[i]), -ECANCELED);
	}
	weft_close(fds[0]);
	weft_close(fds[1]);
	return 0;
}

IO_TEST(deadlines_end_what_waits)
{
	weft__atomic(int) waiting = 0;
	struct weft_task tasks[WAITERS];
	weft_nsec before_ns = weft_now();
	int fds[2];

	socket_pair(fds);
	WEFT_SUPERVISE(scope) {
		wait_begin(scope, fds[0], WEFT_MS(5), &waiting, tasks);
		for (int i = 0; i < WAITERS; i++)
			ck_assert_int_eq(join(tasks[i]), -ETIMEDOUT);
	}
	ck_assert_uint_ge(weft_now() - before_ns, WEFT_MS(5));
	/* The deadline is inherited. */
	weft__store(&waiting, 0, relaxed);
	WEFT_SUPERVISE(scope) {
		WEFT_WITHIN(WEFT_MS(5))
			wait_begin(scope, fds[0], 0, &waiting, tasks);
		for (int i = 0; i < WAITERS; i++)
			ck_assert_int_eq(join(tasks[i]), -ECANCELED);
	}
	weft_close(fds[0]);
	weft_close(fds[1]);
	return 0;
}

/* Another reader takes the byte after the future was woken: the future waits
 * again, and can still be cancelled. */
static void cancel_when_ready(int how)
{
	weft__atomic(int) waiting = 0;
	weft_nsec before_ns;
	int64_t result = -1;
	int fds[2];
	char byte = 0;

	socket_pair(fds);
	WEFT_SUPERVISE(scope) {
		struct wait w = { 0, fds[0], 1, 0, &waiting };
		struct weft_task task =
			start_future(scope, wait_on, &w, sizeof(w));

		wait_until(calls_waiting(fds[0]) == 1);
		ck_assert_int_eq(send(fds[1], &byte, 1, 0), 1);
		before_ns = weft_now();
		if (how & 1)
			weft_cancel(task);
		/* The worker looks at nothing while this loop spins. */
		while (weft_now() - before_ns < WEFT_US(10) * (unsigned)how)
			;
		if (recv(fds[0], &byte, 1, MSG_DONTWAIT) == 1 && !(how & 1))
			weft_cancel(task);
		WEFT_WITHIN(WEFT_SEC(20))
			ck_assert_int_eq(weft_join(task, &result), 0);
		ck_assert_msg(result == -ECANCELED || result == 1, "%ld",
			      (long)result);
	}
	weft_close(fds[0]);
	weft_close(fds[1]);
}

IO_TEST(cancelling_ends_what_waits_anew)
{
	for (int i = 0; i < 60; i++)
		cancel_when_ready(i);
	return 0;
}

static void close_under(bool submitted, bool by_future)
{
	weft__atomic(int) waiting = 0;
	struct weft_task tasks[WAITERS];
	struct pollfd end = { .events = POLLIN };
	char byte;
	int fds[2];

	socket_pair(fds);
	end.fd = fds[1];
	WEFT_SUPERVISE(scope) {
		wait_begin(scope, fds[0], 0, &waiting, tasks);
		if (submitted)
			wait_until(calls_waiting(fds[0]) == WAITERS);
		if (by_future) {
			struct echo e = { .fd = fds[0], .buf = { 0 } };

			/* The future closes when its receive is refused. */
			(void)weft_shutdown(fds[1], SHUT_WR);
			ck_assert_int_eq(join(start_future(scope, echo, &e,
							   sizeof(e))),
					 0);
		} else {
			ck_assert_int_eq(weft_close(fds[0]), 0);
		}
		ck_assert_int_eq(poll(&end, 1, 20000), 1);
		ck_assert_int_eq(recv(fds[1], &byte, 1, MSG_DONTWAIT), 0);
		for (int i = 0; i < WAITERS; i++) {
			int64_t r = join(tasks[i]);

			/* A future closes the socket: the readers may see the
			 * end of the stream first. */
			ck_assert_msg(r == -ECANCELED || r == -EBADF ||
					      (by_future && r >= 0),
				      "%d: %ld", i, (long)r);
		}
	}
	weft_close(fds[1]);
}

IO_TEST(closing_ends_what_waits)
{
	for (int i = 0; i < CLOSES; i++) {
		close_under(false, false);
		close_under(true, false);
		close_under(i % 2, true);
	}
	return 0;
}

struct closer {
	WEFT_FUTURE_STATE;
	int fd;
};

static int64_t close_it(void *state)
{
	struct closer *c = state;

	return weft_await_close(c->fd);
}

/* Tasks wait on a descriptor that a future closes. */
static int64_t read_it(void *arg)
{
	char byte;

	return weft_read(*(int *)arg, &byte, 1);
}

IO_TEST(future_closes_what_tasks_wait_on)
{
	for (int round = 0; round < CLOSES; round++) {
		struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
		struct weft_task tasks[20];
		int fds[2];

		socket_pair(fds);
		WEFT_SUPERVISE(scope) {
			struct closer c = { .fd = fds[0] };
			struct weft_task closer;

			for (int i = 0; i < 20; i++) {
				opts.ret_task = &tasks[i];
				ck_assert_int_eq(weft_go_opts(scope, read_it,
							      &fds[0],
							      sizeof(fds[0]),
							      &opts),
						 0);
			}
			if (round % 2)
				wait_until(calls_waiting(fds[0]) == 20);
			else
				weft_yield();
			closer = start_future(scope, close_it, &c, sizeof(c));
			/* The close is carried out in full, even if it is
			 * cancelled. */
			if (round % 4 > 1)
				ck_assert_int_eq(weft_cancel(closer), 0);
			ck_assert_int_eq(join(closer), 0);
			for (int i = 0; i < 20; i++) {
				int64_t r = join(tasks[i]);

				ck_assert_msg(r == -ECANCELED || r == -EBADF,
					      "%ld", (long)r);
			}
			ck_assert_int_eq(join(start_future(scope, close_it, &c,
							   sizeof(c))),
					 -EBADF);
		}
		weft_close(fds[1]);
	}
	return 0;
}

/* Many futures close and reuse numbers as fast as they can. */
struct reuse {
	WEFT_FUTURE_STATE;
	int fds[2];
	int left;
	char byte;
};

static int64_t reuse(void *state)
{
	struct reuse *u = state;
	ssize_t n;

	WEFT_FUTURE_BEGIN(u);
	for (; u->left > 0; u->left--) {
		socket_pair(u->fds);
		u->byte = (char)u->left;
		WEFT_AWAIT_AS(u, n, weft_await_send(u->fds[0], &u->byte, 1, 0));
		ck_assert_int_eq(n, 1);
		u->byte = 0;
		WEFT_AWAIT_AS(u, n, weft_await_recv(u->fds[1], &u->byte, 1, 0));
		ck_assert_int_eq(n, 1);
		ck_assert_int_eq(u->byte, (char)u->left);
		ck_assert_int_eq(weft_future_within(WEFT_US(20)), 0);
		WEFT_AWAIT_AS(u, n, weft_await_recv(u->fds[1], &u->byte, 1, 0));
		ck_assert_int_eq(n, -ETIMEDOUT);
		ck_assert_int_eq(weft_future_within(WEFT_NEVER), 0);
		WEFT_AWAIT_AS(u, n, weft_await_close(u->fds[0]));
		ck_assert_int_eq(n, 0);
		WEFT_AWAIT_AS(u, n, weft_await_recv(u->fds[1], &u->byte, 1, 0));
		ck_assert_int_eq(n, 0);
		WEFT_AWAIT_AS(u, n, weft_await_close(u->fds[1]));
		ck_assert_int_eq(n, 0);
	}
	WEFT_FUTURE_END(u);
	return 0;
}

IO_TEST(numbers_are_had_again)
{
	int64_t result = -1;

	WEFT_SCOPE(scope, &result)
		for (int i = 0; i < 30; i++) {
			struct reuse u = { .left = REUSES };

			ck_assert_int_eq(WEFT_GO_FUTURE(scope, reuse, u), 0);
		}
	ck_assert_int_eq(result, 0);
	return 0;
}

/* ---- Invalid arguments --------------------------------------------------- */

static int64_t wrong(void *state)
{
	char byte = 0, bytes[4096] = { 0 };
	int fd = *(int *)state;

	ck_assert_int_eq(weft_await_ready(-1, POLLIN), -EBADF);
	ck_assert_int_eq(weft_await_recv(-1, &byte, 1, 0), -EBADF);
	ck_assert_int_eq(weft_await_send(-1, &byte, 1, 0), -EBADF);
	ck_assert_int_eq(weft_await_close(-1), -EBADF);
	ck_assert_int_eq(weft_await_send(STDIN_FILENO, &byte, 1, 0), -ENOTSOCK);
	ck_assert_int_eq(weft_await_recv(fd, &byte, 1, MSG_DONTWAIT), -EAGAIN);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	ck_assert_int_eq(weft_await_send(fd, bytes, sizeof(bytes),
					 MSG_DONTWAIT),
			 -EAGAIN);
	ck_assert_int_eq(weft_read(STDIN_FILENO, &byte, 1), -EPERM);
	ck_assert_int_eq(weft_close(STDIN_FILENO), -EPERM);
	ck_assert_int_eq(weft_poll(STDIN_FILENO, POLLIN), -EPERM);
	ck_assert_int_eq(weft_accept(STDIN_FILENO, NULL), -EPERM);
	return 0;
}

IO_TEST(what_cannot_be_done_is_refused)
{
	char byte = 0;
	int fds[2];

	socket_pair(fds);
	ck_assert_int_eq(weft_await_ready(0, POLLIN), -EPERM);
	ck_assert_int_eq(weft_await_recv(0, &byte, 1, 0), -EPERM);
	ck_assert_int_eq(weft_await_send(0, &byte, 1, 0), -EPERM);
	ck_assert_int_eq(weft_await_close(0), -EPERM);
	WEFT_SUPERVISE(scope)
		ck_assert_int_eq(join(start_future(scope, wrong, &fds[0],
						   sizeof(fds[0]))),
				 0);
	close_both(fds);
	return 0;
}

/* Submitted by a thread outside the runtime. */
static int64_t end_submitted(void *state)
{
	return *(int64_t *)state;
}

IO_TEST(futures_are_submitted)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.flags = WEFT_FUTURE;
	for (int64_t i = 0; i < 100; i++)
		ck_assert_int_eq(weft_submit(weft_runtime_self(), end_submitted,
					     &i, sizeof(i), &opts),
				 0);
	return 0;
}

/* The runtime ends when its last future does, which a thread has just woken. */
struct last {
	struct weft_runtime *runtime;
	struct weft_task task;
	weft__atomic(int) polls;
};

/* Only a wake polls the future again. */
static int64_t wait_last(void *state)
{
	struct last *last = *(struct last **)state;

	/* pairs: wake_last */
	return weft__add(&last->polls, 1, acq_rel) ? 0 : WEFT_PENDING;
}

static void *wake_last(void *arg)
{
	struct last *last = arg;

	/* pairs: wait_last */
	while (!weft__load(&last->polls, acquire))
		sched_yield();
	ck_assert_int_eq(weft_future_wake(last->runtime, last->task), 0);
	return NULL;
}

START_TEST(runtime_outlives_a_wake_by_a_thread)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_opts two = WEFT_OPTS_INIT;

	opts.flags = WEFT_FUTURE;
	two.workers = 2;
	for (int i = 0; i < 150; i++) {
		struct last last = { NULL, { 0 }, 0 }, *at = &last;
		pthread_t thread;

		opts.ret_task = &last.task;
		ck_assert_int_eq(weft_start(&two, &last.runtime), 0);
		ck_assert_int_eq(weft_submit(last.runtime, wait_last, &at,
					     sizeof(at), &opts),
				 0);
		pthread_create(&thread, NULL, wake_last, &last);
		ck_assert_int_eq(weft_wait(last.runtime, last.task, NULL), 0);
		ck_assert_int_eq(weft_stop(last.runtime), 0);
		pthread_join(thread, NULL);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/future");
	TCase *tc = tcase_create("future");

	tcase_set_timeout(tc, 60);
	io_add_test(tc, bytes_go_through_in_order);
	io_add_test(tc, cancelling_ends_what_waits);
	io_add_test(tc, cancelling_ends_what_waits_anew);
	io_add_test(tc, deadlines_end_what_waits);
	io_add_test(tc, closing_ends_what_waits);
	io_add_test(tc, future_closes_what_tasks_wait_on);
	io_add_test(tc, numbers_are_had_again);
	io_add_test(tc, what_cannot_be_done_is_refused);
	io_add_test(tc, futures_are_submitted);
	tcase_add_test(tc, runtime_outlives_a_wake_by_a_thread);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
