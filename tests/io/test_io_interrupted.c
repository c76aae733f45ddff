/* SPDX-License-Identifier: MIT */
/*
 * Requests that the kernel says were interrupted, for no reason of weft's: the
 * call goes on, and never returns -EINTR.
 *
 * io_uring_enter2() is replaced: on demand it changes the results of
 * completions before weft sees them.  The kernel has done the work all the
 * same, which is the harder case for a close and for connecting.
 */
#include <liburing.h>
#include <sys/syscall.h>

#include "io/request/shard.h"
#include "tests/support/engine.h"
#include "tests/support/io_future.h"
#include "tests/support/needs.h"
#include "tests/support/wrap_enter.h"

/* ---- The results --------------------------------------------------------- */

static struct {
	struct weft__ring *ring; /* NULL: nothing is changed */
	uint32_t looked;	 /* completions before this one were seen */
	int32_t result;
	unsigned left; /* so many results are to change */
	int closed, spare; /* dup2(spare, closed) meanwhile; -1: not */
} plan = { .closed = -1 };

static bool is_to_change(const struct weft__completion *completion)
{
	return plan.left > 0 &&
	       weft__tag_of(completion->user_data) == WEFT__TAG_OP;
}

static void change(const struct weft__completion *completion)
{
	((struct weft__completion *)(uintptr_t)completion)->result =
		plan.result;
	plan.left--;
	if (plan.closed >= 0)
		ck_assert_int_eq(dup2(plan.spare, plan.closed), plan.closed);
}

static void look(struct weft__ring *ring)
{
	/* relaxed: the test has one worker, which reaps. */
	uint32_t reaped = weft__load(ring->reaped, relaxed);
	/* pairs: [ring.completions] */
	uint32_t posted = weft__load(ring->posted, acquire);

	if ((int32_t)(plan.looked - reaped) < 0)
		plan.looked = reaped;
	for (; plan.looked != posted; plan.looked++) {
		const struct weft__completion *completion =
			&ring->completions[plan.looked &
					   ring->completions_mask];

		if (is_to_change(completion))
			change(completion);
	}
}

int __wrap_io_uring_enter2(unsigned fd, unsigned to_submit,
			   unsigned min_complete, unsigned flags, sigset_t *sig,
			   size_t sz)
{
	long r = syscall(SYS_io_uring_enter, fd, to_submit, min_complete,
			 flags, sig, sz);
	int error = errno;

	if (plan.ring)
		look(plan.ring);
	return (int)(r < 0 ? -error : r);
}

static void plan_begin(int32_t result, unsigned count)
{
	struct weft__ring *ring = &weft__shard(weft__worker_self())->ring;

	plan.ring = ring;
	/* relaxed: as above. */
	plan.looked = weft__load(ring->reaped, relaxed);
	plan.result = result;
	plan.left = count;
}

/* Were all results changed? */
static bool plan_end(void)
{
	plan.ring = NULL;
	return plan.left == 0;
}

static const int32_t results[] = {
	-EINTR, -ECANCELED, -512, -513, -514, -516,
};

enum { RESULTS = sizeof(results) / sizeof(results[0]) };

/* A completion may be reaped before it was seen here; then it is tried again.
 * Deferred completions, the usual ones, are all seen. */
enum { TRIES = 1000 };

/* ---- Calls --------------------------------------------------------------- */

static int pipe_of_test[2];

static int64_t poll_it(void)
{
	return weft_poll(pipe_of_test[1], POLLOUT);
}

/* Proc is not asked without a request. */
static int64_t stat_it(void)
{
	struct stat st;

	return weft_stat("/proc/self/status", &st);
}

/* Creating takes a request. */
static int64_t open_none(void)
{
	return weft_open("/tmp/weft-none/file", O_CREAT, 0600);
}

struct waiter {
	WEFT_FUTURE_STATE;
};

static int64_t await_it(void *state)
{
	struct waiter *w = state;
	int r;

	WEFT_FUTURE_BEGIN(w);
	WEFT_AWAIT_AS(w, r, weft_await_ready(pipe_of_test[1], POLLOUT));
	WEFT_FUTURE_END(w);
	return r;
}

static int64_t future_polls(void)
{
	struct waiter w = { 0 };
	int64_t r = -1;

	WEFT_SUPERVISE(scope)
		r = join(start_future(scope, await_it, &w, sizeof(w)));
	return r;
}

static const struct {
	const char *name;
	int64_t (*fn)(void);
	int64_t result;
} calls[] = {
	{ "weft_poll", poll_it, POLLOUT },
	{ "weft_stat", stat_it, 0 },
	{ "weft_open", open_none, -ENOENT },
	{ "weft_await_ready", future_polls, POLLOUT },
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static int64_t interrupt_calls(void *arg)
{
	(void)arg;
	ck_assert_int_eq(pipe2(pipe_of_test, O_CLOEXEC), 0);
	for (size_t i = 0; i < CALLS * RESULTS; i++) {
		int32_t result = results[i % RESULTS];
		int64_t r = 0;

		plan_begin(result, 3);
		for (int t = 0; t < TRIES && plan.left > 0; t++) {
			r = calls[i / RESULTS].fn();
			ck_assert_msg(r == calls[i / RESULTS].result,
				      "%s after %d: %lld",
				      calls[i / RESULTS].name, result,
				      (long long)r);
		}
		ck_assert(plan_end());
	}
	close_both(pipe_of_test);
	return 0;
}

START_TEST(interrupted_calls_go_on)
{
	io_run(interrupt_calls, NULL, 1);
}
END_TEST

/* A call that is interrupted again and again still ends at its deadline. */
static int64_t interrupt_for_ever(void *arg)
{
	int64_t r = 0;

	(void)arg;
	ck_assert_int_eq(pipe2(pipe_of_test, O_CLOEXEC), 0);
	plan_begin(-EINTR, UINT32_MAX);
	WEFT_WITHIN(WEFT_MS(20))
		r = poll_it();
	(void)plan_end();
	ck_assert_int_eq(r, -ETIMEDOUT);
	close_both(pipe_of_test);
	return 0;
}

START_TEST(deadline_ends_a_call_that_is_always_interrupted)
{
	io_run(interrupt_for_ever, NULL, 1);
}
END_TEST

/* ---- Closing ------------------------------------------------------------- */

struct closer {
	WEFT_FUTURE_STATE;
	int fd;
};

static int64_t close_it(void *state)
{
	struct closer *c = state;
	int r;

	WEFT_FUTURE_BEGIN(c);
	WEFT_AWAIT_AS(c, r, weft_await_close(c->fd));
	WEFT_FUTURE_END(c);
	return r;
}

static int64_t close_by(bool future, int fd)
{
	struct closer c = { .fd = fd };
	int64_t r = -1;

	if (!future)
		return weft_close(fd);
	WEFT_SUPERVISE(scope)
		r = join(start_future(scope, close_it, &c, sizeof(c)));
	return r;
}

/* The number is in use again when weft learns of the interruption. */
static void interrupt_close(bool future, int32_t result)
{
	for (int t = 0; t < TRIES; t++) {
		int fd = fd_far(dup(plan.spare));

		plan.closed = fd;
		plan_begin(result, 1);
		ck_assert_int_eq(close_by(future, fd), 0);
		plan.closed = -1;
		if (!plan_end())
			continue;
		ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
		ck_assert_int_eq(weft_close(fd), 0);
		return;
	}
	ck_abort_msg("no completion of a close was seen");
}

static int64_t interrupt_closes(void *arg)
{
	(void)arg;
	plan.spare = weft_open("/", O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_ge(plan.spare, 0);
	for (int i = 0; i < 2 * RESULTS; i++)
		interrupt_close(i % 2, results[i / 2]);
	return weft_close(plan.spare);
}

static bool closes_by_ring(void)
{
#ifdef WEFT__TSAN
	return false;
#else
	return true;
#endif
}

START_TEST(interrupted_close_is_done_and_not_made_again)
{
	if (test_needs(closes_by_ring(),
		       "interrupted_close_is_done_and_not_made_again",
		       "closes that go through the ring"))
		io_run(interrupt_closes, NULL, 1);
}
END_TEST

/* ---- Connecting ---------------------------------------------------------- */

struct client {
	WEFT_FUTURE_STATE;
	int fd;
	struct weft_addr addr;
};

static int64_t connect_it(void *state)
{
	struct client *c = state;
	int r;

	WEFT_FUTURE_BEGIN(c);
	WEFT_AWAIT_AS(c, r, weft_await_connect(c->fd, &c->addr));
	WEFT_FUTURE_END(c);
	return r;
}

static int64_t connect_by(bool future, int fd, const struct weft_addr *addr)
{
	struct client c = { .fd = fd, .addr = *addr };
	int64_t r = -1;

	if (!future)
		return weft_connect(fd, addr);
	WEFT_SUPERVISE(scope)
		r = join(start_future(scope, connect_it, &c, sizeof(c)));
	return r;
}

/* The kernel has connected the socket when it says that it was interrupted. */
static void interrupt_connect(bool future, int32_t result, int listener,
			      const struct weft_addr *addr)
{
	bool changed = false;

	for (int t = 0; t < TRIES && !changed; t++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		ck_assert_int_ge(fd, 0);
		plan_begin(result, 1);
		ck_assert_int_eq(connect_by(future, fd, addr), 0);
		changed = plan_end();
		ck_assert_int_eq(connect_by(future, fd, addr), -EISCONN);
		close_both((int[]){ weft_accept(listener, NULL), fd });
	}
	ck_assert(changed);
}

static int64_t interrupt_connects(void *arg)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int listener = tcp_listener(text);
	struct weft_addr addr;

	(void)arg;
	ck_assert_int_eq(weft_addr_parse(text, &addr), 0);
	for (int i = 0; i < 2 * RESULTS; i++)
		interrupt_connect(i % 2, results[i / 2], listener, &addr);
	return weft_close(listener);
}

START_TEST(interrupted_connect_is_made_once)
{
	io_run(interrupt_connects, NULL, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/interrupted");
	TCase *tc = tcase_create("interrupted");

	if (!test_needs(test_has_uring(), "io/interrupted", NEEDS_URING))
		return 77;
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, interrupted_calls_go_on);
	tcase_add_test(tc, deadline_ends_a_call_that_is_always_interrupted);
	tcase_add_test(tc, interrupted_close_is_done_and_not_made_again);
	tcase_add_test(tc, interrupted_connect_is_made_once);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
