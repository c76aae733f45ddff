/* SPDX-License-Identifier: MIT */
/*
 * Closing a descriptor: every call on it ends, the peer sees the end
 * immediately, and the number may be reused right away.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "tests/support/io_kit.h"

/* ---- Calls that wait ---------------------------------------------------- */

struct reader {
	int fd;
	int kind;
	weft__atomic(int) *waiting;
};

static int64_t wait_on(void *arg)
{
	struct reader *reader = arg;
	struct iovec iov[2];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	char buf[64];

	iov[0] = (struct iovec){ buf, 10 };
	iov[1] = (struct iovec){ buf + 10, 10 };
	weft__add(reader->waiting, 1, acq_rel);
	switch (reader->kind) {
	case 0:
		return weft_read(reader->fd, buf, sizeof(buf));
	case 1:
		return weft_recv(reader->fd, buf, sizeof(buf), 0);
	case 2:
		return weft_readv(reader->fd, iov, 2);
	case 3:
		return weft_recvmsg(reader->fd, &msg, 0);
	case 4:
		return weft_poll(reader->fd, POLLIN);
	default:
		return weft_read_all(reader->fd, buf, sizeof(buf), NULL);
	}
}

enum { KINDS = 6, READERS = 50 };

/* All readers have begun.  If `submitted`, all of them wait, most likely with
 * their requests in the kernel; otherwise some may be about to begin the
 * call. */
static void close_under(int count, bool submitted)
{
	weft__atomic(int) waiting = 0;
	struct weft_task tasks[READERS];
	struct pollfd end = { .events = POLLIN };
	char byte;
	int fds[2];

	socket_pair(fds);
	end.fd = fds[1];
	WEFT_SUPERVISE(scope) {
		for (int i = 0; i < count; i++) {
			struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
			struct reader reader = { fds[0], i % KINDS, &waiting };

			opts.ret_task = &tasks[i];
			ck_assert_int_eq(weft_go_opts(scope, wait_on, &reader,
						      sizeof(reader), &opts),
					 0);
		}
		while (weft__load(&waiting, acquire) < count)
			weft_yield();
		if (submitted) {
			wait_until(calls_waiting(fds[0]) == count);
			weft_sleep(WEFT_MS(2));
		} else {
			weft_yield();
		}
		ck_assert_int_eq(weft_close(fds[0]), 0);
		/* The end has arrived; but the thread that ended a call may be
		 * about to drop its reference to the file. */
		ck_assert_int_eq(poll(&end, 1, 20000), 1);
		ck_assert_int_eq(recv(fds[1], &byte, 1, MSG_DONTWAIT), 0);
		for (int i = 0; i < count; i++) {
			int64_t r = 0;

			ck_assert_int_eq(weft_join(tasks[i], &r), 0);
			/* A reader that had not begun finds the descriptor
			 * closing. */
			ck_assert_msg(r == -ECANCELED ||
					      (!submitted && r == -EBADF),
				      "%d: %ld", i, (long)r);
		}
	}
	ck_assert_int_eq(weft_close(fds[1]), 0);
}

IO_TEST(close_ends_a_call_that_waits)
{
	close_under(1, true);
	return 0;
}

IO_TEST(close_ends_a_call_that_was_not_submitted)
{
	for (int i = 0; i < 100; i++)
		close_under(1, false);
	return 0;
}

IO_TEST(close_ends_more_calls_than_it_cancels_at_once)
{
	close_under(READERS, true);
	close_under(READERS, false);
	return 0;
}

static void *wait_for_end(void *arg)
{
	int *fd = arg;
	char byte;

	*fd = (int)read(*fd, &byte, 1);
	return NULL;
}

/* If the receive were not cancelled, the kernel would keep the socket open, and
 * the peer would never see its end. */
IO_TEST(peer_that_waits_sees_the_end)
{
	for (int i = 0; i < 20; i++) {
		weft__atomic(int) waiting = 0;
		pthread_t thread;
		int fds[2], peer;

		socket_pair(fds);
		peer = fds[1];
		ck_assert_int_eq(
			pthread_create(&thread, NULL, wait_for_end, &peer), 0);
		WEFT_SUPERVISE(scope) {
			struct reader reader = { fds[0], 1, &waiting };

			ck_assert_int_eq(WEFT_GO(scope, wait_on, reader), 0);
			wait_until(calls_waiting(fds[0]) == 1);
			weft_sleep(WEFT_MS(1));
			ck_assert_int_eq(weft_close(fds[0]), 0);
		}
		pthread_join(thread, NULL);
		ck_assert_int_eq(peer, 0);
		ck_assert_int_eq(weft_close(fds[1]), 0);
	}
	return 0;
}

/* ---- The descriptor ------------------------------------------------------ */

IO_TEST(closing_twice_is_ebadf)
{
	int fds[2];

	socket_pair(fds);
	close_both(fds);
	ck_assert_int_eq(weft_close(fds[0]), -EBADF);
	ck_assert_int_eq(weft_read(fds[0], &(char){ 0 }, 1), -EBADF);
	return 0;
}

static int64_t close_it(void *arg)
{
	return weft_close(*(int *)arg);
}

/* One of the two closers wins; neither closes a descriptor that was opened in
 * the meantime. */
IO_TEST(two_closers_close_once)
{
	for (int i = 0; i < 200; i++) {
		struct weft_task tasks[2];
		int64_t r[2];
		weft__atomic(int) waiting = 0;
		int fds[2];

		socket_pair(fds);
		WEFT_SUPERVISE(scope) {
			struct reader reader = { fds[0], 1, &waiting };

			ck_assert_int_eq(WEFT_GO(scope, wait_on, reader), 0);
			weft_yield();
			for (int k = 0; k < 2; k++) {
				struct weft_task_opts opts =
					WEFT_TASK_OPTS_INIT;

				opts.ret_task = &tasks[k];
				ck_assert_int_eq(
					weft_go_opts(scope, close_it, &fds[0],
						     sizeof(int), &opts),
					0);
			}
			for (int k = 0; k < 2; k++)
				ck_assert_int_eq(weft_join(tasks[k], &r[k]),
						 0);
		}
		ck_assert_int_eq(r[0] + r[1], -EBADF);
		ck_assert_int_eq(weft_close(fds[1]), 0);
	}
	return 0;
}

/*
 * A call that begins while the kernel closes the descriptor must end, too.  The
 * closer's worker is kept busy between the closer's request and the kernel's
 * look at it; the reader is on the other worker.
 */
struct late {
	int fds[2];
	weft__atomic(bool) closing;
	weft__atomic(bool) reading;
	unsigned met;
};

static int64_t read_late(void *arg)
{
	struct late *late = *(struct late **)arg;
	char byte;

	while (!weft__load(&late->closing, acquire))
		weft_yield();
	weft__store(&late->reading, true, release);
	return weft_read(late->fds[0], &byte, 1);
}

/* Runs on the closer's worker as soon as the closer waits. */
static int64_t keep_busy(void *arg)
{
	struct late *late = *(struct late **)arg;
	/* Valgrind decides when the other thread runs, so the wait has a
	 * limit. */
	weft_nsec by = weft_now() + WEFT_MS(20);

	weft__store(&late->closing, true, release);
	while (!weft__load(&late->reading, acquire) && weft_now() < by)
		;
	late->met += weft__load(&late->reading, acquire);
	/* Waits until the reader's request is in the kernel. */
	by = weft_now() + WEFT_US(200);
	while (weft_now() < by)
		;
	return 0;
}

static void close_while_reading_begins(struct late *late)
{
	int64_t r = 0;

	socket_pair(late->fds);
	weft__store(&late->closing, false, release);
	weft__store(&late->reading, false, release);
	WEFT_SUPERVISE(scope) {
		struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
		struct weft_task reader;

		opts.ret_task = &reader;
		ck_assert_int_eq(weft_go_opts(scope, read_late, &late,
					      sizeof(late), &opts),
				 0);
		/* Gives the other worker time to steal the reader. */
		weft_sleep(WEFT_US(100));
		ck_assert_int_eq(WEFT_GO(scope, keep_busy, late), 0);
		ck_assert_int_eq(weft_close(late->fds[0]), 0);
		ck_assert_int_eq(weft_join(reader, &r), 0);
	}
	ck_assert(r == -EBADF || r == -ECANCELED);
	ck_assert_int_eq(weft_close(late->fds[1]), 0);
}

static int64_t late_task(void *arg)
{
	struct late late = { .met = 0 };

	(void)arg;
	for (int i = 0; i < 500 && late.met < 50; i++)
		close_while_reading_begins(&late);
	ck_assert_uint_gt(late.met, 0);
	return 0;
}

START_TEST(call_that_begins_during_the_close_ends)
{
	io_run(late_task, NULL, 2);
}
END_TEST

/*
 * A call has several steps, and the descriptor is closed between two of them.
 * The call must not go on with the descriptor that has the number then.  Its
 * worker is busy in the meantime.
 */
struct overtaken {
	int fds[2];
	weft__atomic(uint32_t) reader_at; /* worker + 1 */
	weft__atomic(bool) busy, over;
	bool together;
	size_t done;
	int r;
};

static int64_t read_two(void *arg)
{
	struct overtaken *o = *(struct overtaken **)arg;
	char two[2];

	weft__store(&o->reader_at, weft__worker_self()->index + 1, release);
	o->r = weft_read_all(o->fds[0], two, 2, &o->done);
	return 0;
}

static int64_t read_beside(void *arg)
{
	struct overtaken *o = *(struct overtaken **)arg;
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	weft_nsec by;

	opts.flags = WEFT_PINNED;
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(weft_go_opts(scope, read_two, &o, sizeof(o),
					      &opts),
				 0);
		while (!weft__load(&o->reader_at, acquire))
			weft_yield();
		o->together = weft__load(&o->reader_at, acquire) ==
			      weft__worker_self()->index + 1;
		weft_sleep(WEFT_MS(1)); /* until the kernel has the read */
		weft__store(&o->busy, true, release);
		/* The loop has a limit: without the monitor no worker helps. */
		by = weft_now() + WEFT_MS(200);
		while (o->together && !weft__load(&o->over, acquire) &&
		       weft_now() < by)
			;
	}
	return 0;
}

static bool overtake(struct overtaken *o)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int old, next[2];
	char byte = 0;

	memset(o, 0, sizeof(*o));
	opts.flags = WEFT_PINNED;
	socket_pair(o->fds);
	old = o->fds[0] = fd_far(o->fds[0]);
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(weft_go_opts(scope, read_beside, &o, sizeof(o),
					      &opts),
				 0);
		while (!weft__load(&o->busy, acquire))
			weft_sleep(WEFT_US(100));
		ck_assert_int_eq(write(o->fds[1], "x", 1), 1);
		/* Waits until another worker has helped the one that
		 * computes. */
		weft_sleep(WEFT_MS(5));
		ck_assert_int_eq(weft_close(old), 0);
		socket_pair(next);
		ck_assert_int_eq(dup2(next[0], old), old);
		close(next[0]);
		next[0] = old;
		ck_assert_int_eq(write(next[1], "y", 1), 1);
		weft__store(&o->over, true, release);
	}
	if (o->together)
		ck_assert_int_eq(recv(next[0], &byte, 1, MSG_DONTWAIT), 1);
	close_both(next);
	ck_assert_int_eq(weft_close(o->fds[1]), 0);
	return o->together;
}

static int64_t overtake_task(void *arg)
{
	struct overtaken o;
	bool met = false;

	(void)arg;
	if (weft_runtime_self()->monitor_off)
		return 0;
	for (int i = 0; i < 100 && !met; i++)
		met = overtake(&o) && o.done == 1;
	ck_assert(met);
	ck_assert_int_eq(o.r, -ECANCELED);
	return 0;
}

START_TEST(call_of_many_steps_keeps_to_its_descriptor)
{
	io_run(overtake_task, NULL, 2);
}
END_TEST

/* The number is reused immediately, and no state of the old descriptor is
 * left. */
IO_TEST(number_is_reused_at_once)
{
	for (int i = 0; i < 500; i++) {
		char byte = 0;
		int fds[2];

		if (i % 2) {
			ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
		} else {
			socket_pair(fds);
		}
		ck_assert_int_eq(weft_write(fds[1], "x", 1), 1);
		ck_assert_int_eq(weft_read(fds[0], &byte, 1), 1);
		ck_assert_int_eq(byte, 'x');
		close_both(fds);
	}
	return 0;
}

/* Two tasks open, use and close as fast as they can: numbers pass between them,
 * and neither task ever sees the other's data or an error. */
static int64_t churn(void *arg)
{
	char mine = *(char *)arg;

	for (int i = 0; i < 2000; i++) {
		char byte = 0;
		int fds[2];

		socket_pair(fds);
		ck_assert_int_eq(weft_write(fds[1], &mine, 1), 1);
		if (i % 3 == 0) {
			WEFT_WITHIN(WEFT_US(1))
				(void)!weft_recv(fds[1], &byte, 1, 0);
		}
		ck_assert_int_eq(weft_read(fds[0], &byte, 1), 1);
		ck_assert_int_eq(byte, mine);
		close_both(fds);
	}
	return 0;
}

IO_TEST(numbers_go_back_and_forth_between_tasks)
{
	int64_t r = -1;

	WEFT_SCOPE(scope, &r)
		for (char c = 'a'; c < 'e'; c++)
			ck_assert_int_eq(WEFT_GO(scope, churn, c), 0);
	ck_assert_int_eq(r, 0);
	return 0;
}

/* Cancelled or out of time, a close is carried out in full. */
IO_TEST(close_is_done_in_full_whatever_happens)
{
	int fds[2];

	socket_pair(fds);
	WEFT_WITHIN(0) {
		weft_sleep(WEFT_MS(1));
		ck_assert(weft_deadline_passed());
		close_both(fds);
	}
	return 0;
}

static int64_t read_and_write(void *arg)
{
	const int *fds = arg;
	char byte;

	if (weft_read(fds[0], &byte, 1) != 1)
		return -1;
	return weft_write(fds[1], "x", 1);
}

/* A close ends the calls on its own descriptor.  Calls on other descriptors of
 * the same file go on. */
IO_TEST(duplicates_are_not_closed)
{
	int fds[2], copy;

	socket_pair(fds);
	copy = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	ck_assert_int_ge(copy, 0);
	WEFT_SUPERVISE(scope) {
		int both[2] = { copy, copy };

		ck_assert_int_eq(weft_go(scope, read_and_write, both,
					 sizeof(both)),
				 0);
		wait_until(calls_waiting(copy) == 1);
		ck_assert_int_eq(weft_close(fds[0]), 0);
		ck_assert_int_eq(weft_write(fds[1], "y", 1), 1);
		ck_assert_int_eq(weft_read(fds[1], &(char){ 0 }, 1), 1);
	}
	close_both((int[]){ copy, fds[1] });
	return 0;
}

/* ---- A disk read that cannot be cancelled ------------------------------- */

static int64_t read_disk(void *arg)
{
	struct reader *reader = arg;
	char *buf = aligned_alloc(4096, 1 << 20);
	ssize_t n;

	weft__store(reader->waiting, 1, release);
	n = weft_pread(reader->fd, buf, 1 << 20, 0);
	free(buf);
	/* The read was complete, was cancelled, or began too late. */
	ck_assert_msg(n == 1 << 20 || n == -ECANCELED || n == -EBADF, "%zd",
		      n);
	return 0;
}

IO_TEST(close_waits_for_what_it_cannot_cancel)
{
	char name[] = "/var/tmp/weft-close-XXXXXX";
	char *zeros = calloc(1, 1 << 20);
	weft__atomic(int) waiting = 0;
	int fd = mkstemp(name);

	ck_assert_int_ge(fd, 0);
	unlink(name);
	ck_assert_int_eq(write(fd, zeros, 1 << 20), 1 << 20);
	free(zeros);
	fsync(fd);
	fcntl(fd, F_SETFL, O_DIRECT);
	WEFT_SUPERVISE(scope) {
		struct reader reader = { fd, 0, &waiting };

		ck_assert_int_eq(WEFT_GO(scope, read_disk, reader), 0);
		while (!weft__load(&waiting, acquire))
			weft_yield();
		ck_assert_int_eq(weft_close(fd), 0);
		ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	}
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/close");
	TCase *waiting = tcase_create("waiting");
	TCase *numbers = tcase_create("numbers");

	tcase_set_timeout(waiting, 30);
	tcase_set_timeout(numbers, 30);
	io_add_test(waiting, close_ends_a_call_that_waits);
	io_add_test(waiting, close_ends_a_call_that_was_not_submitted);
	io_add_test(waiting, close_ends_more_calls_than_it_cancels_at_once);
	io_add_test(waiting, peer_that_waits_sees_the_end);
	io_add_test(waiting, close_waits_for_what_it_cannot_cancel);
	io_add_test(numbers, closing_twice_is_ebadf);
	io_add_test(numbers, two_closers_close_once);
	tcase_add_test(numbers, call_that_begins_during_the_close_ends);
	tcase_add_test(numbers, call_of_many_steps_keeps_to_its_descriptor);
	io_add_test(numbers, number_is_reused_at_once);
	io_add_test(numbers, numbers_go_back_and_forth_between_tasks);
	io_add_test(numbers, close_is_done_in_full_whatever_happens);
	io_add_test(numbers, duplicates_are_not_closed);
	suite_add_tcase(suite, waiting);
	suite_add_tcase(suite, numbers);
	return io_tests_run(suite);
}
