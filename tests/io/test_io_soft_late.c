/* SPDX-License-Identifier: MIT */
/*
 * Suite io/soft/late: requests that begin while their number is being closed,
 * on the epoll engine (SOFT7 in io/ring/soft/soft.h).
 *
 * The linker puts functions of the test in the way of a close.  One runs when
 * the rings have forgotten the number, which is still the file's; the other
 * when the number is free, and the call has not returned, as with a socket
 * that lingers.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "io/os/syscall.h"
#include "io/ring/soft/serve.h"
#include "tests/support/errno_now.h"
#include "tests/support/loop_kit.h"
#include "tests/support/soft_kit.h"

/* ---- A close that is held up --------------------------------------------- */

enum weft__close __real_weft__syscall_close_kind(int fd);
enum weft__close __wrap_weft__syscall_close_kind(int fd);
int __real_weft__syscall_close(int fd);
int __wrap_weft__syscall_close(int fd);
uint64_t __real_weft__soft_retry_late(struct weft__soft *soft, uint64_t now_ns);
uint64_t __wrap_weft__soft_retry_late(struct weft__soft *soft, uint64_t now_ns);

static atomic_int held_fd = -1; /* whose close is held up */
static atomic_bool is_met;	/* before it, until a request waits */
static atomic_bool is_slow;	/* after it, until it may end */
static atomic_bool is_free, may_end;
static atomic_uint retries;
static struct weft_event forgotten;

static struct weft__soft *soft_of(struct weft_runtime *runtime, uint32_t i)
{
	return weft__soft(&weft__shard(runtime->workers[i])->ring);
}

/* The requests in all rings that wait for an edge, or are late. */
static unsigned waiting(struct weft_runtime *runtime)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < runtime->workers_count; i++) {
		struct weft__soft *soft = soft_of(runtime, i);

		weft__lock_take(&soft->lock);
		count += soft->waiting;
		weft__lock_drop(&soft->lock);
	}
	return count;
}

static bool waits_late(struct weft__soft *soft, bool asleep)
{
	bool waits;

	weft__lock_take(&soft->lock);
	waits = soft->late.head && (soft->sleeping || !asleep);
	weft__lock_drop(&soft->lock);
	return waits;
}

/* Is there a late request; asleep: of a worker that sleeps? */
static bool is_late(struct weft_runtime *runtime, bool asleep)
{
	bool is = false;

	for (uint32_t i = 0; i < runtime->workers_count; i++)
		is |= waits_late(soft_of(runtime, i), asleep);
	return is;
}

/* Is the file that has the number in a ring's epoll set? */
static bool is_in_a_set(struct weft_runtime *runtime, int fd)
{
	struct epoll_event none = { 0 };
	bool is = false;

	for (uint32_t i = 0; i < runtime->workers_count; i++) {
		int set = soft_of(runtime, i)->epoll_fd;

		if (epoll_ctl(set, EPOLL_CTL_DEL, fd, &none) == 0)
			is = true;
		else
			EXPECT(errno_now() == ENOENT);
	}
	return is;
}

enum weft__close __wrap_weft__syscall_close_kind(int fd)
{
	if (fd != held_fd)
		return __real_weft__syscall_close_kind(fd);
	if (is_met) {
		weft_event_set(&forgotten);
		wait_until(waiting(weft_runtime_self()) == 1);
	}
	/* Then a thread of the pool closes it. */
	return is_slow ? WEFT__CLOSE_LINGER : WEFT__CLOSE_SOCKET;
}

int __wrap_weft__syscall_close(int fd)
{
	int r = __real_weft__syscall_close(fd);

	if (fd != held_fd || !is_slow)
		return r;
	is_free = true;
	while (!may_end)
		thread_pause_ns(200000);
	return r;
}

uint64_t __wrap_weft__soft_retry_late(struct weft__soft *soft, uint64_t now_ns)
{
	retries++;
	return __real_weft__soft_retry_late(soft, now_ns);
}

static void hold(int fd, bool meets, bool slow)
{
	held_fd = fd;
	is_met = meets;
	is_slow = slow;
	is_free = may_end = false;
	weft_event_clear(&forgotten);
}

static int64_t close_one(void *arg)
{
	EXPECT(weft_close(*(int *)arg) == 0);
	return 0;
}

/* Puts a file at a number that is free, or another's. */
static void put_at(int file, int fd)
{
	EXPECT(dup2(file, fd) == fd && close(file) == 0);
}

/* Begins a close that does not end until it may, and a pair of which the first
 * has the number; ret_pair[2] is the peer of the file that goes.  before: waits
 * for that file, once the rings have forgotten it; or NULL. */
static void close_slowly(struct weft_scope *scope, weft_fn before,
			 int ret_pair[3])
{
	int fds[2];

	socket_pair(fds);
	fds[0] = fd_far(fds[0]);
	hold(fds[0], before, true);
	if (before)
		EXPECT(WEFT_GO(scope, before, fds[0]) == 0);
	EXPECT(WEFT_GO(scope, close_one, fds[0]) == 0);
	wait_until(is_free);
	socket_pair(ret_pair);
	put_at(ret_pair[0], fds[0]);
	ret_pair[0] = fds[0];
	ret_pair[2] = fds[1];
}

static void close_three(const int pair[3])
{
	hold(-1, false, false);
	for (int i = 0; i < 3; i++)
		EXPECT(weft_close(pair[i]) == 0);
}

static int64_t receive(void *arg)
{
	char byte;

	return weft_recv(*(int *)arg, &byte, 1, 0);
}

/* ---- The file that goes -------------------------------------------------- */

static int64_t receive_from_it(void *arg)
{
	EXPECT(weft_event_wait(&forgotten) == 0);
	EXPECT(receive(arg) == -EBADF);
	return 0;
}

/* The task learns that it is closed.  A copy keeps the file open, and would
 * keep it in the set: with its number back it would be found there. */
SOFT_TEST(copy_of_a_file_that_was_waited_for_in_its_close_is_in_no_set)
{
	struct weft_runtime *runtime = weft_runtime_self();
	int fds[2], copy;

	socket_pair(fds);
	fds[0] = fd_far(fds[0]);
	copy = dup(fds[0]);
	EXPECT(copy >= 0);
	hold(fds[0], true, false);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, receive_from_it, fds[0]) == 0);
		EXPECT(weft_close(fds[0]) == 0);
	}
	EXPECT(waiting(runtime) == 0);
	EXPECT(dup2(copy, fds[0]) == fds[0]);
	EXPECT(!is_in_a_set(runtime, fds[0]));
	hold(-1, false, false);
	EXPECT(close(copy) == 0 && weft_close(fds[0]) == 0);
	return weft_close(fds[1]);
}

/* ---- The next file of the number ----------------------------------------- */

/* Between the two the number is free. */
static int64_t receive_from_either(void *arg)
{
	int64_t r;

	EXPECT(weft_event_wait(&forgotten) == 0);
	r = receive(arg);
	EXPECT(r == 1 || r == -EBADF);
	return 0;
}

static int64_t put_two_later(void *arg)
{
	EXPECT(put_later(arg) == 0);
	put(*(int *)arg);
	return 0;
}

static weft_nsec next_file_ns(weft_fn before)
{
	weft_nsec began_ns, took_ns = 0;
	bool served = false;
	int pair[3];

	WEFT_SCOPE (scope, NULL) {
		close_slowly(scope, before, pair);
		EXPECT(WEFT_GO(scope, put_two_later, pair[1]) == 0);
		began_ns = weft_now();
		WEFT_WITHIN (WEFT_SEC(1))
			served = weft_poll(pair[0], POLLIN) == POLLIN &&
				 receive(&pair[0]) == 1;
		took_ns = weft_now() - began_ns;
		may_end = true;
	}
	close_three(pair);
	return served ? took_ns : WEFT_SEC(1);
}

/* Does the best of a few take less than the age at which descriptors are set
 * anew? */
static bool is_served_in_time(weft_fn before)
{
	for (int i = 0; i < 10; i++)
		if (next_file_ns(before) < WEFT_MS(100))
			return true;
	return false;
}

SOFT_TEST(next_file_does_not_wait_for_the_end_of_the_close)
{
	EXPECT(is_served_in_time(NULL));
	EXPECT(is_served_in_time(receive_from_either));
	return 0;
}

ssize_t __real_weft__request_call(const struct weft__request *request);
ssize_t __wrap_weft__request_call(const struct weft__request *request);

static atomic_int uncached_fd = -1;

ssize_t __wrap_weft__request_call(const struct weft__request *request)
{
	return request->fd == uncached_fd ? -EAGAIN :
					    __real_weft__request_call(request);
}

/* Reading what is not in memory is for a thread of the pool, as ever. */
SOFT_TEST(next_file_may_be_one_that_epoll_refuses)
{
	char name[] = "/tmp/weft-late-XXXXXX", bytes[3];
	int pair[3], fd;

	WEFT_SCOPE (scope, NULL) {
		close_slowly(scope, NULL, pair);
		fd = mkstemp(name);
		EXPECT(fd >= 0 && unlink(name) == 0);
		put_at(fd, pair[0]);
		fd = pair[0];
		WEFT_WITHIN (LONG_NS)
			EXPECT(weft_pwrite(fd, "abc", 3, 0) == 3);
		uncached_fd = fd;
		WEFT_WITHIN (LONG_NS) {
			EXPECT(weft_poll(fd, POLLIN) > 0);
			EXPECT(weft_pread(fd, bytes, 3, 0) == 3);
			EXPECT(weft_recv(fd, bytes, 3, 0) == -ENOTSOCK);
		}
		uncached_fd = -1;
		may_end = true;
	}
	close_three(pair);
	return 0;
}

/* ---- Taking nothing ------------------------------------------------------ */

/* Other threads may open a file for a moment. */
static bool is_nobodys(int fd)
{
	int r = 0;

	WEFT_WITHIN (WEFT_MS(1))
		r = weft_poll(fd, POLLIN);
	return r == -EBADF;
}

/* So a number that the program has given up is nobody's, and a task that waits
 * for it learns that. */
SOFT_TEST(late_request_takes_no_descriptor)
{
	int pair[3], given_up, before;

	WEFT_SCOPE (scope, NULL) {
		close_slowly(scope, NULL, pair);
		given_up = dup(pair[1]);
		EXPECT(given_up >= 0 && weft_close(given_up) == 0);
		before = fds_open();
		EXPECT(WEFT_GO(scope, receive, pair[0]) == 0);
		wait_until(is_late(weft_runtime_self(), false));
		wait_until(fds_open() <= before);
		wait_until(is_nobodys(given_up));
		put(pair[1]);
		wait_until(!is_late(weft_runtime_self(), false));
		may_end = true;
	}
	close_three(pair);
	return 0;
}

SOFT_TEST(nothing_is_tried_again_without_a_late_request)
{
	struct weft_runtime *runtime = weft_runtime_self();
	unsigned before = retries;
	int pair[3];

	WEFT_SCOPE (scope, NULL) {
		close_slowly(scope, NULL, pair);
		EXPECT(retries == before);
		EXPECT(WEFT_GO(scope, receive, pair[0]) == 0);
		wait_until(retries > before + 2);
		put(pair[1]);
		wait_until(!is_late(runtime, false));
		before = retries;
		EXPECT(weft_sleep(WEFT_MS(20)) == 0);
		EXPECT(retries == before);
		may_end = true;
	}
	close_three(pair);
	return 0;
}

/* ---- Waking -------------------------------------------------------------- */

struct writer {
	struct weft_runtime *runtime;
	int fd;
};

static void *put_when_it_sleeps(void *arg)
{
	const struct writer *writer = arg;

	while (!is_late(writer->runtime, true))
		thread_pause_ns(100000);
	put(writer->fd);
	return NULL;
}

/* No event wakes it, and nothing else is to be done. */
SOFT_TEST(worker_that_sleeps_serves_a_late_request)
{
	struct writer writer = { .runtime = weft_runtime_self() };
	pthread_t thread;
	int pair[3];

	WEFT_SCOPE (scope, NULL) {
		close_slowly(scope, NULL, pair);
		writer.fd = pair[1];
		EXPECT(pthread_create(&thread, NULL, put_when_it_sleeps,
				      &writer) == 0);
		WEFT_WITHIN (LONG_NS)
			EXPECT(receive(&pair[0]) == 1);
		may_end = true;
	}
	EXPECT(pthread_join(thread, NULL) == 0);
	close_three(pair);
	return 0;
}

static atomic_int peer_fd;
static atomic_bool has_received, is_over;

static int64_t receive_in_a_loop(void *arg)
{
	int pair[3];

	(void)arg;
	WEFT_SCOPE (scope, NULL) {
		close_slowly(scope, NULL, pair);
		peer_fd = pair[1];
		EXPECT(receive(&pair[0]) == 1);
		has_received = true;
		may_end = true;
	}
	close_three(pair);
	is_over = true;
	return 0;
}

START_TEST(foreign_loop_serves_a_late_request)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	int before = fds_open();

	opts.engine = WEFT_ENGINE_EPOLL;
	ck_assert_int_eq(weft_attach(&opts, &runtime), 0);
	loop_submit(runtime, receive_in_a_loop, NULL);
	loop_until(runtime, is_late(runtime, true));
	put(peer_fd);
	loop_until(runtime, has_received);
	loop_until(runtime, is_over);
	ck_assert_int_eq(weft_stop(runtime), 0);
	expect_fds(before);
}
END_TEST

/* ---- Ending -------------------------------------------------------------- */

static int64_t receive_until_cancelled(void *arg)
{
	EXPECT(receive(arg) == -ECANCELED);
	return 0;
}

SOFT_TEST(late_request_ends_by_its_deadline_and_by_a_cancellation)
{
	struct weft_runtime *runtime = weft_runtime_self();
	int pair[3];

	WEFT_SCOPE (scope, NULL) {
		close_slowly(scope, NULL, pair);
		WEFT_WITHIN (WEFT_MS(2))
			EXPECT(receive(&pair[0]) == -ETIMEDOUT);
		WEFT_WITHIN (WEFT_MS(2))
			EXPECT(weft_poll(pair[0], POLLIN) == -ETIMEDOUT);
		WEFT_SUPERVISE (inner) {
			EXPECT(WEFT_GO(inner, receive_until_cancelled,
				       pair[0]) == 0);
			wait_until(is_late(runtime, false));
			weft_scope_cancel(inner);
		}
		EXPECT(waiting(runtime) == 0);
		may_end = true;
	}
	close_three(pair);
	return 0;
}

/* Another close of the number, before the first has ended. */
SOFT_TEST(late_request_ends_by_a_close)
{
	int pair[3];

	WEFT_SCOPE (scope, NULL) {
		close_slowly(scope, NULL, pair);
		EXPECT(WEFT_GO(scope, receive_until_cancelled, pair[0]) == 0);
		wait_until(is_late(weft_runtime_self(), false));
		is_slow = false;
		EXPECT(weft_close(pair[0]) == 0);
		EXPECT(!is_late(weft_runtime_self(), false));
		may_end = true;
	}
	hold(-1, false, false);
	EXPECT(weft_close(pair[1]) == 0);
	return weft_close(pair[2]);
}

/* When the close has ended it waits as any other. */
SOFT_TEST(late_request_is_none_after_the_close)
{
	struct weft_runtime *runtime = weft_runtime_self();
	int pair[3];

	WEFT_SCOPE (scope, NULL) {
		WEFT_SCOPE (inner, NULL) {
			close_slowly(inner, NULL, pair);
			EXPECT(WEFT_GO(scope, receive, pair[0]) == 0);
			wait_until(is_late(runtime, false));
			may_end = true;
		}
		wait_until(waiting(runtime) == 1);
		EXPECT(!is_late(runtime, false));
		put(pair[1]);
	}
	EXPECT(is_in_a_set(runtime, pair[0]));
	close_three(pair);
	return 0;
}

static int64_t receive_until_the_end(void *arg)
{
	int pair[3];

	(void)arg;
	WEFT_SCOPE (scope, NULL) {
		close_slowly(scope, NULL, pair);
		EXPECT(receive(&pair[0]) == -ECANCELED);
		may_end = true;
	}
	close_three(pair);
	return 0;
}

START_TEST(runtime_ends_with_a_late_request)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	int before = fds_open();

	opts.engine = WEFT_ENGINE_EPOLL;
	opts.workers = 1 + (unsigned)_i;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	ck_assert_int_eq(
		weft_submit(runtime, receive_until_the_end, NULL, 0, NULL), 0);
	while (!is_late(runtime, false))
		thread_pause_ns(200000);
	ck_assert_int_eq(weft_stop(runtime), 0);
	expect_fds(before);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/soft/late");
	TCase *late = tcase_create("late");

	/* The tests choose the engine themselves. */
	unsetenv("WEFT_ENGINE");
	tcase_set_timeout(late, 60);
	io_add_test(
		late,
		copy_of_a_file_that_was_waited_for_in_its_close_is_in_no_set);
	io_add_test(late, next_file_does_not_wait_for_the_end_of_the_close);
	io_add_test(late, next_file_may_be_one_that_epoll_refuses);
	io_add_test(late, late_request_takes_no_descriptor);
	io_add_test(late, nothing_is_tried_again_without_a_late_request);
	io_add_test(late, worker_that_sleeps_serves_a_late_request);
	tcase_add_test(late, foreign_loop_serves_a_late_request);
	io_add_test(late,
		    late_request_ends_by_its_deadline_and_by_a_cancellation);
	io_add_test(late, late_request_ends_by_a_close);
	io_add_test(late, late_request_is_none_after_the_close);
	io_add_test(late, runtime_ends_with_a_late_request);
	suite_add_tcase(suite, late);
	return io_tests_run(suite);
}
