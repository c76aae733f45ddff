/* SPDX-License-Identifier: MIT */
/*
 * Signals that tasks wait for, and selects whose cases are signals,
 * descriptors, tasks and times.
 */
#include <pthread.h>
#include <signal.h>
#include <poll.h>
#include <sys/signalfd.h>

#include "tests/support/io_kit.h"

/* Blocks the signal before the runtime's threads are made, which inherit the
 * mask. */
static void block(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
}

static int open_signal(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	return weft_signal_open(&set);
}

/* ---- Signals ------------------------------------------------------------ */

static int64_t signal_later(void *arg)
{
	int number = *(int *)arg;

	ck_assert_int_eq(weft_sleep(WEFT_MS(5)), 0);
	ck_assert_int_eq(kill(getpid(), number), 0);
	return 0;
}

static int64_t wait_for_two(void *arg)
{
	int fd = open_signal(SIGUSR1), number = SIGUSR1;

	(void)arg;
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	for (int i = 0; i < 2; i++)
		WEFT_SCOPE(sender, NULL) {
			int got = 0;

			ck_assert_int_eq(WEFT_GO(sender, signal_later, number),
					 0);
			ck_assert_int_eq(weft_signal_wait(fd, &got), 0);
			ck_assert_int_eq(got, SIGUSR1);
		}
	return weft_close(fd);
}

START_TEST(task_waits_for_a_signal)
{
	block(SIGUSR1);
	ck_assert_int_eq(weft_run(wait_for_two, NULL, NULL), 0);
}
END_TEST

/* A signal that arrives later is there for the next wait. */
static int64_t give_up(void *arg)
{
	int fd = open_signal(SIGUSR1), got = 0, r = 0;

	(void)arg;
	WEFT_WITHIN(WEFT_MS(5))
		r = weft_signal_wait(fd, &got);
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
	ck_assert_int_eq(weft_signal_wait(fd, &got), 0);
	ck_assert_int_eq(got, SIGUSR1);
	return weft_close(fd);
}

START_TEST(wait_that_is_given_up_takes_no_signal)
{
	block(SIGUSR1);
	ck_assert_int_eq(weft_run(give_up, NULL, NULL), 0);
}
END_TEST

START_TEST(signal_that_is_not_blocked_is_refused)
{
	sigset_t none;

	sigemptyset(&none);
	ck_assert_int_eq(open_signal(SIGUSR2), -EINVAL);
	ck_assert_int_eq(weft_signal_open(&none), -EINVAL);
	ck_assert_int_eq(weft_signal_open(NULL), -EINVAL);
}
END_TEST

IO_TEST(wait_refuses_other_descriptors)
{
	char other[sizeof(struct signalfd_siginfo)];
	int fds[2], number = 0;

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(weft_write(fds[1], "x", 1), 1);
	ck_assert_int_eq(weft_signal_wait(fds[0], &number), -EINVAL);
	memset(other, 'x', sizeof(other));
	ck_assert_int_eq(weft_write_all(fds[1], other, sizeof(other), NULL), 0);
	ck_assert_int_eq(weft_signal_wait(fds[0], &number), -EINVAL);
	ck_assert_int_eq(weft_signal_wait(-1, &number), -EBADF);
	close_both(fds);
	return 0;
}

/* ---- Select -------------------------------------------------------------- */

static struct weft_task start(struct weft_scope *scope, weft_fn fn,
			      const void *arg, size_t bytes)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task = { 0 };

	opts.ret_task = &task;
	ck_assert_int_eq(weft_go_opts(scope, fn, arg, bytes, &opts), 0);
	return task;
}

static int64_t nap(void *arg)
{
	return weft_sleep(*(weft_nsec *)arg);
}

static struct weft_task start_nap(struct weft_scope *scope, weft_nsec length_ns)
{
	return start(scope, nap, &length_ns, sizeof(length_ns));
}

static int64_t wait_for(void *arg)
{
	return weft_event_wait(*(struct weft_event **)arg);
}

IO_TEST(select_takes_what_comes_first)
{
	struct weft_chan chan = WEFT_CHAN_DIRECT(int);
	struct weft_event ends = WEFT_EVENT_INIT, *event = &ends;
	int fds[2], v;

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	WEFT_SCOPE(all, NULL) {
		struct weft_task task = start(all, wait_for, &event,
					      sizeof(event));
		struct weft_case cases[] = {
			WEFT_RECV(&chan, &v),
			WEFT_JOINED(task),
			WEFT_READY(fds[0], POLLIN),
			WEFT_AT(weft_now() + WEFT_SEC(3600)),
		};

		ck_assert_int_eq(weft_try_select(cases, 4), -EAGAIN);
		cases[3].number = weft_now() + WEFT_MS(5);
		ck_assert_int_eq(weft_select(cases, 4), 3);
		ck_assert_int_eq(cases[3].result, 0);
		ck_assert_uint_ge(weft_now(), cases[3].number);
		cases[3].kind = WEFT_CASE_NONE;
		weft_event_set(&ends);
		ck_assert_int_eq(weft_select(cases, 4), 1);
		ck_assert_int_eq(cases[1].result, 0);
		/* The case stays ready until the task is joined. */
		ck_assert_int_eq(weft_try_select(cases, 4), 1);
		ck_assert_int_eq(weft_join(task, NULL), 0);
		ck_assert_int_eq(weft_select(cases, 4), 1);
		ck_assert_int_eq(cases[1].result, -ESRCH);
		cases[1].kind = WEFT_CASE_NONE;
		ck_assert_int_eq(weft_write(fds[1], "x", 1), 1);
		ck_assert_int_eq(weft_select(cases, 4), 2);
		ck_assert_int_eq(cases[2].result, POLLIN);
	}
	close_both(fds);
	return 0;
}

static int64_t write_later(void *arg)
{
	int fd = *(int *)arg;

	ck_assert_int_eq(weft_sleep(WEFT_MS(5)), 0);
	return weft_write(fd, "x", 1) == 1 ? 0 : -EIO;
}

/* One of two descriptors becomes ready while a select waits for both.  The
 * other one can be closed afterwards, because the select no longer waits for
 * it. */
IO_TEST(select_waits_for_descriptors)
{
	int a[2], b[2];

	ck_assert_int_eq(pipe2(a, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(b, O_CLOEXEC), 0);
	for (int i = 0; i < 2; i++)
		WEFT_SCOPE(all, NULL) {
			struct weft_case cases[] = {
				WEFT_READY(a[0], POLLIN),
				WEFT_READY(b[0], POLLIN),
			};
			int to = i ? a[1] : b[1], from = i ? a[0] : b[0];
			char c;

			ck_assert_int_eq(WEFT_GO(all, write_later, to), 0);
			ck_assert_int_eq(weft_select(cases, 2), !i);
			ck_assert_int_eq(cases[!i].result, POLLIN);
			ck_assert_int_eq(weft_read(from, &c, 1), 1);
		}
	close_both(a);
	close_both(b);
	return 0;
}

static int64_t select_for_ever(void *arg)
{
	int fd = *(int *)arg;
	struct weft_case cases[] = { WEFT_READY(fd, POLLIN) };

	return weft_select(cases, 1);
}

IO_TEST(select_is_cancelled)
{
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	WEFT_SUPERVISE(all) {
		struct weft_task task = start(all, select_for_ever, &fds[0],
					      sizeof(fds[0]));
		int64_t result = 0;

		wait_until(calls_waiting(fds[0]) == 1);
		ck_assert_int_eq(weft_cancel(task), 0);
		ck_assert_int_eq(weft_join(task, &result), 0);
		ck_assert_int_eq(result, -ECANCELED);
	}
	WEFT_WITHIN(WEFT_MS(5))
		ck_assert_int_eq(select_for_ever(&fds[0]), -ETIMEDOUT);
	close_both(fds);
	return 0;
}

/* The select waits by a task of its own, which may begin later. */
static int64_t close_under_call(void *arg)
{
	int fd = *(int *)arg;

	wait_until(calls_waiting(fd) == 1);
	return weft_close(fd);
}

IO_TEST(select_ends_when_the_descriptor_is_closed)
{
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	WEFT_SCOPE(all, NULL) {
		struct weft_case cases[] = { WEFT_READY(fds[0], POLLIN) };

		ck_assert_int_eq(WEFT_GO(all, close_under_call, fds[0]), 0);
		ck_assert_int_eq(weft_select(cases, 1), 0);
		ck_assert_int_eq(cases[0].result, -ECANCELED);
	}
	ck_assert_int_eq(weft_close(fds[1]), 0);
	return 0;
}

IO_TEST(select_tells_of_bad_descriptors_and_tasks)
{
	struct weft_case cases[] = {
		WEFT_READY(-1, POLLIN),
		WEFT_JOINED(((struct weft_task){ 12345 })),
		WEFT_JOINED(weft_self()),
	};

	ck_assert_int_eq(weft_select(cases, 1), 0);
	ck_assert_int_eq(cases[0].result, -EBADF);
	ck_assert_int_eq(weft_select(cases + 1, 1), 0);
	ck_assert_int_eq(cases[1].result, -ESRCH);
	ck_assert_int_eq(weft_select(cases + 2, 1), 0);
	ck_assert_int_eq(cases[2].result, -EDEADLK);
	return 0;
}

/* Many short tasks; each is selected for, joined, and left out of the next
 * select.  The scope's count of tasks stays correct. */
IO_TEST(selecting_for_tasks_and_joining_them_agree)
{
	WEFT_SCOPE(all, NULL)
		for (int round = 0; round < 50; round++) {
			struct weft_case cases[4];

			for (unsigned i = 0; i < 4; i++)
				cases[i] = (struct weft_case)WEFT_JOINED(
					start_nap(all, WEFT_US(i * 300)));
			for (int left = 4; left > 0; left--) {
				int k = weft_select(cases, 4);
				struct weft_task task;

				ck_assert_int_ge(k, 0);
				ck_assert_int_eq(cases[k].result, 0);
				task.id = cases[k].number;
				ck_assert_int_eq(weft_join(task, NULL), 0);
				cases[k].kind = WEFT_CASE_NONE;
			}
			/* The worker that ends a task lowers the count a moment
			 * later. */
			while (weft_scope_count(all) > 0)
				ck_assert_int_eq(weft_yield(), 0);
		}
	return 0;
}

START_TEST(threads_select_among_channels_and_times_alone)
{
	struct weft_case cases[] = {
		WEFT_READY(0, POLLIN),
		WEFT_JOINED((struct weft_task){ 1 }),
	};
	int number;

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(weft_select(&cases[i], 1), -EPERM);
		ck_assert_int_eq(weft_try_select(&cases[i], 1), -EPERM);
	}
	ck_assert_int_eq(weft_signal_wait(0, &number), -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/signal");
	TCase *signals = tcase_create("signals");
	TCase *selects = tcase_create("select");

	tcase_add_test(signals, task_waits_for_a_signal);
	tcase_add_test(signals, wait_that_is_given_up_takes_no_signal);
	tcase_add_test(signals, signal_that_is_not_blocked_is_refused);
	io_add_test(signals, wait_refuses_other_descriptors);
	suite_add_tcase(suite, signals);
	io_add_test(selects, select_takes_what_comes_first);
	io_add_test(selects, select_waits_for_descriptors);
	io_add_test(selects, select_is_cancelled);
	io_add_test(selects, select_ends_when_the_descriptor_is_closed);
	io_add_test(selects, select_tells_of_bad_descriptors_and_tasks);
	io_add_test(selects, selecting_for_tasks_and_joining_them_agree);
	tcase_add_test(selects, threads_select_among_channels_and_times_alone);
	suite_add_tcase(suite, selects);
	return io_tests_run(suite);
}
