/* SPDX-License-Identifier: MIT */
/*
 * Suite io/future_accept: futures and tasks accept from one listener in turn,
 * and no connection is lost when a future is interrupted.
 */
#include "tests/support/accept_scene.h"
#include "tests/support/idle.h"
#include "tests/support/io_future.h"

/* ---- Taking ------------------------------------------------------------ */

struct acceptor {
	int listener;
	weft_nsec within_ns;
	struct weft_addr *ret_peer;
};

static int64_t accept_by_future(void *state)
{
	struct acceptor *a = *(struct acceptor **)state;

	/* The deadline is set only at the first poll. */
	if (a->within_ns)
		ck_assert_int_eq(weft_future_within(a->within_ns), 0);
	a->within_ns = 0;
	return weft_await_accept(a->listener, a->ret_peer);
}

static int64_t accept_by_task(void *arg)
{
	struct acceptor *a = *(struct acceptor **)arg;

	return weft_accept(a->listener, a->ret_peer);
}

static struct weft_task start_acceptor(struct weft_scope *scope,
				       struct acceptor *a, bool by_future)
{
	return start(scope, by_future ? accept_by_future : accept_by_task,
		     by_future ? WEFT_FUTURE : 0, &a, sizeof(a));
}

IO_TEST(accepted_descriptor_is_closed_on_exec_and_knows_its_peer)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int listener = tcp_listener(text);
	struct weft_addr peer, local;
	struct acceptor a = { listener, 0, &peer };

	/* In the first round the future waits for the client; in the second
	 * round the client waits for it. */
	for (int i = 0; i < 2; i++)
		WEFT_SUPERVISE(scope) {
			int client = i ? connect_to(text) : -1, fd;
			struct weft_task task = start_acceptor(scope, &a, true);

			if (!i) {
				wait_until(calls_waiting(listener) == 1);
				client = connect_to(text);
			}
			fd = (int)join(task);
			ck_assert_int_ge(fd, 0);
			ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
			ck_assert_int_eq(weft_local_addr(client, &local), 0);
			ck_assert(weft_addr_equal(&peer, &local));
			close_both((int[]){ fd, client });
		}
	ck_assert_int_eq(weft_close(listener), 0);
	return 0;
}

enum { ACCEPTORS = 8, CONNECTIONS = 200 };

IO_TEST(who_waits_longest_is_served_first)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	struct acceptor a = { .listener = tcp_listener(text) };
	struct weft_task tasks[ACCEPTORS];

	WEFT_SUPERVISE(scope) {
		for (int i = 0; i < ACCEPTORS; i++) {
			tasks[i] = start_acceptor(scope, &a, i % 3);
			wait_until(calls_waiting(a.listener) == i + 1);
		}
		for (int i = 0; i < ACCEPTORS; i++) {
			int client = connect_to(text);

			/* All later acceptors go on waiting. */
			close_both((int[]){ (int)join(tasks[i]), client });
			ck_assert_int_eq(calls_waiting(a.listener),
					 ACCEPTORS - 1 - i);
		}
	}
	ck_assert_int_eq(weft_close(a.listener), 0);
	return 0;
}

IO_TEST(connections_wait_for_futures)
{
	enum { COUNT = 30 };
	char text[WEFT_ADDR_TEXT_BYTES];
	struct acceptor a = { .listener = tcp_listener(text) };
	int clients[COUNT];

	for (int i = 0; i < COUNT; i++)
		clients[i] = connect_to(text);
	for (int i = 0; i < COUNT; i++)
		WEFT_SUPERVISE(scope) {
			struct weft_addr peer;
			int fd;

			a.ret_peer = &peer;
			fd = (int)join(start_acceptor(scope, &a, true));
			ck_assert_int_ge(fd, 0);
			ck_assert_uint_eq(backlog_of(a.listener),
					  (unsigned)(COUNT - 1 - i));
			close_both((int[]){
				fd, client_of(clients, COUNT, &peer) });
		}
	ck_assert_int_eq(weft_close(a.listener), 0);
	return 0;
}

IO_TEST(listener_that_does_not_block_does_as_well)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	struct acceptor a = { .listener = tcp_listener(text) };

	ck_assert_int_eq(fcntl(a.listener, F_SETFL, O_NONBLOCK), 0);
	WEFT_SUPERVISE(scope) {
		struct weft_task task = start_acceptor(scope, &a, true);
		int client;

		wait_until(calls_waiting(a.listener) == 1);
		client = connect_to(text);
		close_both((int[]){ (int)join(task), client });
		a.within_ns = WEFT_MS(1);
		ck_assert_int_eq(join(start_acceptor(scope, &a, true)),
				 -ETIMEDOUT);
	}
	ck_assert_int_eq(weft_close(a.listener), 0);
	return 0;
}

/* The connection is reset in the backlog, and comes in its turn; its peer's
 * address is not to be had any more. */
IO_TEST(connection_that_is_gone_comes_in_its_turn)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	struct weft_addr peer, local;
	struct acceptor a = { tcp_listener(text), 0, &peer };
	int gone = connect_to(text), stays, fd;

	reset_when_closed(gone);
	close(gone);
	stays = connect_to(text);
	WEFT_SUPERVISE(scope) {
		fd = (int)join(start_acceptor(scope, &a, true));
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(weft_addr_family(&peer), AF_UNSPEC);
		ck_assert_int_eq(weft_close(fd), 0);
		fd = (int)join(start_acceptor(scope, &a, true));
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(weft_local_addr(stays, &local), 0);
		ck_assert(weft_addr_equal(&peer, &local));
		close_both((int[]){ fd, stays });
	}
	ck_assert_int_eq(weft_close(a.listener), 0);
	return 0;
}

IO_TEST(needless_wakes_end_no_await)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	struct acceptor a = { .listener = tcp_listener(text) };

	WEFT_SUPERVISE(scope) {
		struct weft_task task = start_acceptor(scope, &a, true);
		int client;

		for (int i = 0; i < 50; i++) {
			ck_assert_int_eq(weft_future_wake(NULL, task), 0);
			weft_yield();
			ck_assert_int_le(calls_waiting(a.listener), 1);
		}
		wait_until(calls_waiting(a.listener) == 1);
		client = connect_to(text);
		close_both((int[]){ (int)join(task), client });
	}
	ck_assert_int_eq(weft_close(a.listener), 0);
	return 0;
}

/* ---- Interrupted ------------------------------------------------------- */

/* Takes connections; some takers have short deadlines that often pass. */
struct taker {
	WEFT_FUTURE_STATE;
	int fd;
	int listener;
	unsigned within_us;
	weft__atomic(int) * taken;
};

static int64_t take_many(void *state)
{
	struct taker *t = state;
	int r;

	WEFT_FUTURE_BEGIN(t);
	for (;;) {
		if (t->within_us)
			ck_assert_int_eq(
				weft_future_within(WEFT_US(t->within_us)), 0);
		WEFT_AWAIT_AS(t, t->fd, weft_await_accept(t->listener, NULL));
		if (t->fd == -ETIMEDOUT)
			continue;
		if (t->fd < 0)
			return t->fd;
		weft__add(t->taken, 1, acq_rel);
		WEFT_AWAIT_AS(t, r, weft_await_close(t->fd));
		ck_assert_int_eq(r, 0);
	}
	WEFT_FUTURE_END(t);
}

/* Some acceptors are cancelled while connections come.  Each connection is
 * taken once. */
IO_TEST(no_connection_is_lost_to_deadlines_and_cancels)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int listener = tcp_listener(text);
	weft__atomic(int) taken = 0;
	struct weft_task tasks[ACCEPTORS];

	WEFT_SUPERVISE(scope) {
		for (unsigned i = 0; i < ACCEPTORS; i++) {
			struct taker t = { 0, -1, listener, i * 20, &taken };

			tasks[i] = start(scope, take_many, WEFT_FUTURE, &t,
					 sizeof(t));
		}
		for (int i = 0; i < CONNECTIONS; i++) {
			int fd = weft_tcp_connect(text, NULL);

			ck_assert_int_ge(fd, 0);
			if (i % 30 == 29 && i / 30 < ACCEPTORS - 1)
				ck_assert_int_eq(weft_cancel(tasks[i / 30]), 0);
			/* Waits until a taker has closed the other end. */
			ck_assert_int_eq(weft_read(fd, &(char){ 0 }, 1), 0);
			ck_assert_int_eq(weft_close(fd), 0);
		}
		ck_assert_int_eq(weft__load(&taken, acquire), CONNECTIONS);
		ck_assert_int_eq(weft_close(listener), 0);
		for (int i = 0; i < ACCEPTORS; i++) {
			int64_t r = join(tasks[i]);

			ck_assert_msg(r == -ECANCELED || r == -EBADF, "%ld",
				      (long)r);
		}
	}
	return 0;
}

IO_TEST(what_interrupts_is_told)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	struct acceptor a = { .listener = tcp_listener(text) };
	struct weft_task task;

	WEFT_SUPERVISE(scope) {
		a.within_ns = WEFT_MS(2);
		ck_assert_int_eq(join(start_acceptor(scope, &a, true)),
				 -ETIMEDOUT);
		WEFT_WITHIN(WEFT_MS(2))
			task = start_acceptor(scope, &a, true);
		ck_assert_int_eq(join(task), -ECANCELED);
		task = start_acceptor(scope, &a, true);
		ck_assert_int_eq(weft_cancel(task), 0);
		ck_assert_int_eq(join(task), -ECANCELED);
		task = start_acceptor(scope, &a, true);
		wait_until(calls_waiting(a.listener) == 1);
		ck_assert_int_eq(weft_cancel(task), 0);
		ck_assert_int_eq(join(task), -ECANCELED);
		ck_assert_int_eq(calls_waiting(a.listener), 0);
	}
	ck_assert_int_eq(weft_close(a.listener), 0);
	return 0;
}

IO_TEST(listener_is_closed_at_any_moment)
{
	for (int i = 0; i < 200; i++) {
		char text[WEFT_ADDR_TEXT_BYTES];
		struct acceptor a = { .listener = tcp_listener(text) };
		int client = -1;
		int64_t r = 0;

		WEFT_SUPERVISE(scope) {
			struct weft_task task = start_acceptor(scope, &a, true);

			if (i % 2)
				weft_yield();
			if (i % 3 == 0)
				client = connect_to(text);
			if (i % 5 == 0)
				weft_sleep(WEFT_US(10));
			ck_assert_int_eq(weft_close(a.listener), 0);
			r = join(task);
		}
		/* The future may not even have begun. */
		ck_assert_msg(r >= 0 || r == -ECANCELED || r == -EBADF, "%ld",
			      (long)r);
		if (r >= 0)
			ck_assert_int_eq(weft_close((int)r), 0);
		if (client >= 0)
			close(client);
	}
	return 0;
}

/* ---- Errors ------------------------------------------------------------ */

IO_TEST(what_does_not_listen_gives_one_error_each)
{
	int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct acceptor wrong[4] = { { .listener = -1 },
				     { .listener = udp },
				     { .listener = tcp } };
	const int errors[] = { -EBADF, -EOPNOTSUPP, -EINVAL, -ENOTSOCK };
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	wrong[3].listener = fds[0];
	ck_assert_int_eq(weft_await_accept(fds[0], NULL), -EPERM);
	WEFT_SUPERVISE(scope)
		for (int i = 0; i < 12; i++)
			ck_assert_int_eq(join(start_acceptor(
						 scope, &wrong[i % 4], true)),
					 errors[i % 4]);
	close_both(fds);
	close_both((int[]){ udp, tcp });
	return 0;
}

/* ---- No descriptors left ------------------------------------------------- */

struct starved {
	char text[WEFT_ADDR_TEXT_BYTES];
	struct acceptor a;
	int fds[64];
	int count;
	int client;
};

static void starve(struct starved *s)
{
	*s = (struct starved){ .client = -1 };
	s->a.listener = tcp_listener(s->text);
	s->client = connect_to(s->text);
	take_all_fds(s->fds, &s->count);
}

static void starve_end(struct starved *s, int fd)
{
	while (s->count)
		close(s->fds[--s->count]);
	ck_assert_int_ge(fd, 0);
	close_both((int[]){ fd, s->client });
	ck_assert_int_eq(weft_close(s->a.listener), 0);
}

/* Closes a descriptor with close(), which weft does not see, or with
 * weft_close().  The wait must use almost no CPU time. */
IO_TEST(starved_listener_goes_on_after_a_close)
{
	static struct starved s;

	limit_fds(64);
	for (int i = 0; i < 4; i++) {
		int fd = -1;

		starve(&s);
		WEFT_SUPERVISE(scope) {
			struct weft_task task =
				start_acceptor(scope, &s.a, true);

			expect_idle();
			/* Not while it tries. */
			wait_until(starving() == 1);
			if (i % 2)
				close(s.fds[--s.count]);
			else
				ck_assert_int_eq(weft_close(s.fds[--s.count]),
						 0);
			fd = (int)join(task);
		}
		starve_end(&s, fd);
	}
	return 0;
}

/* The waiter that keeps the retry timer gives up: its deadline passes first, or
 * it is cancelled.  Another one, future or task, must take over.  One of a few
 * deadlines is kept to before that timer's 50 ms, whatever else runs. */
IO_TEST(starved_listener_survives_its_oldest)
{
	static struct starved s;
	weft_nsec least_ns = WEFT_NEVER;

	limit_fds(64);
	for (int i = 0; i < 12; i++) {
		bool ends = i / 2 % 2;
		struct weft_task oldest, next;
		weft_nsec before_ns;
		int fd = -1;

		starve(&s);
		WEFT_SUPERVISE(scope) {
			if (ends)
				s.a.within_ns = WEFT_MS(5);
			before_ns = weft_now();
			oldest = start_acceptor(scope, &s.a, true);
			wait_until(starving() == 1 ||
				   (ends && !s.a.within_ns));
			next = start_acceptor(scope, &s.a, i % 2);
			wait_until(starving() == 2 || ends);
			if (ends) {
				ck_assert_int_eq(join(oldest), -ETIMEDOUT);
				before_ns = weft_now() - before_ns;
				if (before_ns < least_ns)
					least_ns = before_ns;
			} else {
				ck_assert_int_eq(weft_cancel(oldest), 0);
				ck_assert_int_eq(join(oldest), -ECANCELED);
			}
			close(s.fds[--s.count]);
			fd = (int)join(next);
		}
		starve_end(&s, fd);
	}
	ck_assert_uint_lt(least_ns, WEFT_MS(35));
	return 0;
}

static bool has_ended(struct weft_task task)
{
	struct weft__task *record = weft__task_at(weft_runtime_self(), task.id);

	/* pairs: [task.done] */
	return weft__load(&record->state, acquire) & WEFT__DONE;
}

/* Returns false if this thread was held up: until the deadline, or until the
 * future had taken the connection. */
static bool deadline_holds(weft_nsec within_ns)
{
	static struct starved s;
	bool starves = false;
	int64_t r = 0;
	int fd = -1;

	starve(&s);
	WEFT_SUPERVISE(scope) {
		struct weft_task task;

		s.a.within_ns = within_ns;
		task = start_acceptor(scope, &s.a, true);
		wait_until(starving() == 1 || has_ended(task));
		starves = !has_ended(task);
		/* Other code takes the only connection, and there is room for
		 * one more descriptor. */
		close(s.fds[--s.count]);
		close(s.fds[--s.count]);
		fd = accept4(s.a.listener, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
		r = join(task);
	}
	if (fd >= 0)
		ck_assert_int_eq(r, -ETIMEDOUT);
	starve_end(&s, fd >= 0 ? fd : (int)r);
	return starves && fd >= 0;
}

/* The future's deadline is later than the retry timer: its alarm is armed
 * again. */
IO_TEST(deadline_holds_behind_a_starved_listener)
{
	weft_nsec within_ns = WEFT_MS(120);

	limit_fds(64);
	while (!deadline_holds(within_ns))
		within_ns *= 2;
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/future_accept");
	TCase *taking = tcase_create("taking");
	TCase *ending = tcase_create("ending");
	TCase *errors = tcase_create("errors");

	tcase_set_timeout(taking, 30);
	tcase_set_timeout(ending, 30);
	tcase_set_timeout(errors, 60);
	io_add_test(taking,
		    accepted_descriptor_is_closed_on_exec_and_knows_its_peer);
	/* On one worker: two submit their requests in either order. */
	tcase_add_loop_test(taking, who_waits_longest_is_served_first, 0, 1);
	io_add_test(taking, connections_wait_for_futures);
	io_add_test(taking, connection_that_is_gone_comes_in_its_turn);
	io_add_test(taking, listener_that_does_not_block_does_as_well);
	io_add_test(taking, needless_wakes_end_no_await);
	io_add_test(ending, no_connection_is_lost_to_deadlines_and_cancels);
	io_add_test(ending, what_interrupts_is_told);
	io_add_test(ending, listener_is_closed_at_any_moment);
	io_add_test(errors, what_does_not_listen_gives_one_error_each);
	if (!LIMIT_IS_PLAYED) {
		io_add_test(errors, starved_listener_goes_on_after_a_close);
		io_add_test(errors, starved_listener_survives_its_oldest);
		io_add_test(errors, deadline_holds_behind_a_starved_listener);
	}
	suite_add_tcase(suite, taking);
	suite_add_tcase(suite, ending);
	suite_add_tcase(suite, errors);
	return io_tests_run(suite);
}
