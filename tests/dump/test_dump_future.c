/* SPDX-License-Identifier: MIT */
/*
 * Suite dump/future: how weft_dump() reports futures.
 *
 * Each test makes futures wait in one way (time, descriptors, channels,
 * semaphores, connecting), or run, and looks for the line of the future in the
 * dump.
 */
#include "tests/support/dump_scene.h"

static void future_named(struct weft_scope *scope, const char *name,
			 weft_fn poll, const void *state, size_t bytes)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.name = name;
	opts.flags = WEFT_FUTURE;
	ck_assert_int_eq(weft_go_opts(scope, poll, state, bytes, &opts), 0);
}

/* Waits until a dump shows this line for the future. */
static void expect_line(const char *name, const char *says)
{
	char *text = dump_until(says), line[512];

	ck_assert_ptr_nonnull(line_with(text, name, line, sizeof(line)));
	ck_assert_msg(strstr(line, says), "%s", line);
	ck_assert_msg(strstr(line, " s old"), "%s", line);
	free(text);
}

static int64_t sleep_long(void *state)
{
	(void)state;
	return weft_await_sleep(WEFT_SEC(1000));
}

static int64_t wait_for_wake(void *state)
{
	(void)state;
	return weft_future_interrupted() < 0 ? -ECANCELED : WEFT_PENDING;
}

IO_TEST(time_is_told)
{
	WEFT_SUPERVISE(scope) {
		future_named(scope, "sleeper", sleep_long, NULL, 0);
		expect_line(" sleeper (", "waits for 9");
		weft_scope_cancel(scope);
	}
	return 0;
}

struct reader {
	int fd;
	char byte;
};

static int64_t receive(void *state)
{
	struct reader *r = state;

	return weft_await_recv(r->fd, &r->byte, 1, 0);
}

IO_TEST(descriptor_and_deadline_are_told)
{
	char says[64];
	int fds[2];

	socket_pair(fds);
	snprintf(says, sizeof(says), "descriptor %d", fds[0]);
	WEFT_WITHIN(WEFT_SEC(500)) {
		WEFT_SUPERVISE(scope) {
			struct reader r = { .fd = fds[0] };

			future_named(scope, "reader", receive, &r, sizeof(r));
			expect_line(" reader (", says);
			expect_line(" reader (", "(deadline in 4");
			weft_scope_cancel(scope);
		}
	}
	weft_close(fds[0]);
	weft_close(fds[1]);
	return 0;
}

struct taker {
	struct weft_chan *chan;
	int value;
};

static int64_t take(void *state)
{
	struct taker *t = state;

	return weft_await_chan_recv(t->chan, &t->value);
}

static int64_t put(void *state)
{
	struct taker *t = state;

	return weft_await_chan_send(t->chan, &t->value);
}

IO_TEST(channel_is_told)
{
	struct weft_chan in = WEFT_CHAN_DIRECT(int);
	struct weft_chan out = WEFT_CHAN_DIRECT(int);
	struct taker taker = { &in, 0 }, putter = { &out, 1 };
	char says[64];

	WEFT_SUPERVISE(scope) {
		future_named(scope, "taker", take, &taker, sizeof(taker));
		future_named(scope, "putter", put, &putter, sizeof(putter));
		snprintf(says, sizeof(says), "to receive from channel %p",
			 (void *)&in);
		expect_line(" taker (", says);
		snprintf(says, sizeof(says), "to send to channel %p",
			 (void *)&out);
		expect_line(" putter (", says);
		weft_chan_close(&in);
		weft_chan_close(&out);
	}
	return 0;
}

static int64_t take_connection(void *state)
{
	return weft_await_accept(*(int *)state, NULL);
}

IO_TEST(listener_is_told)
{
	int fd = weft_tcp_listen("127.0.0.1:0", NULL);
	char says[64];

	ck_assert_int_ge(fd, 0);
	snprintf(says, sizeof(says), "waits to accept from descriptor %d", fd);
	WEFT_SUPERVISE(scope) {
		future_named(scope, "server", take_connection, &fd,
			     sizeof(fd));
		expect_line(" server (", says);
		weft_scope_cancel(scope);
	}
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

static int64_t await_event(void *state)
{
	return weft_await_event(*(struct weft_event **)state);
}

static int64_t await_permit(void *state)
{
	return weft_await_sem_acquire(*(struct weft_sem **)state, 1);
}

IO_TEST(event_and_semaphore_are_told)
{
	struct weft_event event = WEFT_EVENT_INIT, *event_at = &event;
	struct weft_sem sem = WEFT_SEM_INIT(0), *sem_at = &sem;
	char says[64];

	WEFT_SUPERVISE(scope) {
		future_named(scope, "listener", await_event, &event_at,
			     sizeof(event_at));
		future_named(scope, "worker", await_permit, &sem_at,
			     sizeof(sem_at));
		snprintf(says, sizeof(says), "event %p", (void *)&event);
		expect_line(" listener (", says);
		snprintf(says, sizeof(says), "semaphore %p", (void *)&sem);
		expect_line(" worker (", says);
		weft_scope_cancel(scope);
	}
	return 0;
}

struct client {
	int fd;
	struct weft_addr addr;
};

static int64_t make_connection(void *state)
{
	struct client *c = state;

	return weft_await_connect(c->fd, &c->addr);
}

/* The listener's backlog is full: a connect on a blocking socket waits; one on
 * a non-blocking socket is tried again and again. */
IO_TEST(connecting_is_told)
{
	struct weft_socket_opts opts = WEFT_SOCKET_OPTS_INIT;
	struct client clients[2];
	int listener, taken[2];
	char says[64], name[64];

	opts.backlog = 1;
	snprintf(name, sizeof(name), "unix:@weft-dump-%d", (int)getpid());
	listener = weft_unix_listen(name, &opts);
	for (int i = 0; i < 2; i++) {
		taken[i] = weft_unix_connect(name, NULL);
		ck_assert_int_ge(taken[i], 0);
		clients[i].fd = socket(AF_UNIX,
				       SOCK_STREAM | SOCK_CLOEXEC |
					       (i ? SOCK_NONBLOCK : 0),
				       0);
		ck_assert_int_eq(weft_local_addr(listener, &clients[i].addr),
				 0);
	}
	for (int i = 0; i < 2; i++)
		WEFT_SUPERVISE(scope) {
			future_named(scope, "client", make_connection,
				     &clients[i], sizeof(clients[i]));
			snprintf(says, sizeof(says), "to connect descriptor %d",
				 clients[i].fd);
			expect_line(" client (", says);
			weft_scope_cancel(scope);
		}
	for (int i = 0; i < 2; i++)
		close_both((int[]){ taken[i], clients[i].fd });
	ck_assert_int_eq(weft_close(listener), 0);
	return 0;
}

IO_TEST(wake_of_its_own_is_told)
{
	WEFT_SUPERVISE(scope) {
		future_named(scope, "waiter", wait_for_wake, NULL, 0);
		expect_line(" waiter (", "waits to be woken");
		weft_scope_cancel(scope);
	}
	return 0;
}

/* Runs on a worker of its own until the flag is set. */
static int64_t compute(void *state)
{
	weft__atomic(int) *stop = *(weft__atomic(int) **)state;
	int r = -EPERM;

	while (r == -EPERM && !weft__load(stop, acquire))
		r = weft_dump(NULL, STDERR_FILENO);
	ck_assert_int_eq(r, -EPERM);
	return 0;
}

START_TEST(one_that_runs_is_told)
{
	/* The test has a runtime of its own, so that this thread can dump it
	 * from outside. */
	struct weft_task_opts task = WEFT_TASK_OPTS_INIT;
	struct weft_opts opts = WEFT_OPTS_INIT;
	weft__atomic(int) stop = 0, *at = &stop;
	struct weft_runtime *runtime;
	bool met = false;

	opts.workers = 1;
	task.name = "computer";
	task.flags = WEFT_FUTURE;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	ck_assert_int_eq(weft_submit(runtime, compute, &at, sizeof(at), &task),
			 0);
	while (!met) {
		char *text = dump_text(runtime), line[512];

		met = line_with(text, " computer (", line, sizeof(line)) &&
		      strstr(line, "runs on worker 0") &&
		      (!dump_has_backtraces(text) ||
		       strstr(text, "    compute"));
		free(text);
	}
	weft__store(&stop, 1, release);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dump/future");
	TCase *tc = tcase_create("future");

	tcase_set_timeout(tc, 60);
	io_add_test(tc, time_is_told);
	io_add_test(tc, descriptor_and_deadline_are_told);
	io_add_test(tc, channel_is_told);
	io_add_test(tc, event_and_semaphore_are_told);
	io_add_test(tc, listener_is_told);
	io_add_test(tc, connecting_is_told);
	io_add_test(tc, wake_of_its_own_is_told);
	tcase_add_test(tc, one_that_runs_is_told);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
