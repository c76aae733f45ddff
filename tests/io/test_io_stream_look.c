/* SPDX-License-Identifier: MIT */
/*
 * Suite io/stream/look: the look at streams that have gone quiet.
 *
 * A kernel may lose a reset that comes with data.  Here it always does: the
 * request is made for another connection in the place of the stream's own, so
 * nothing of the stream's own wakes it.
 */
#include <pthread.h>
#include <sys/syscall.h>

#include "io/ring/uring/uring.h"
#include "tests/support/engine.h"
#include "tests/support/features.h"
#include "tests/support/needs.h"
#include "tests/support/stream_kit.h"
#include "tests/support/wrap_enter.h"

/* A look is to come soon, but not while a test prepares what it is to find. */
#define LOOK_NS 100000000

/* ---- The kernel ---------------------------------------------------------- */

static weft__atomic(struct weft_runtime *) deceived;
static weft__atomic(unsigned) enters;

/* Requests for `of` are made for `instead`, until they have been. */
static int of, instead;
static weft__atomic(unsigned) exchanged;

static void exchange_in(struct weft__ring *ring)
{
	const struct io_uring_sq *sq = &weft__uring(ring)->uring.sq;
	uint32_t tail = io_uring_smp_load_acquire(sq->ktail);

	for (uint32_t i = io_uring_smp_load_acquire(sq->khead); i != tail;
	     i++) {
		struct io_uring_sqe *sqe = &sq->sqes[i & ring->mask];

		if (sqe->opcode != IORING_OP_RECV || sqe->fd != of ||
		    weft__load(&exchanged, relaxed))
			continue;
		sqe->fd = instead;
		weft__store(&exchanged, 1u, relaxed);
	}
}

int __wrap_io_uring_enter2(unsigned fd, unsigned to_submit,
			   unsigned min_complete, unsigned flags, sigset_t *sig,
			   size_t sz)
{
	struct weft_runtime *runtime = weft__load(&deceived, acquire);
	long r;

	weft__add(&enters, 1u, relaxed);
	for (unsigned i = 0; runtime && i < runtime->workers_count; i++) {
		struct weft__ring *ring =
			&weft__shard(runtime->workers[i])->ring;

		if ((unsigned)weft__uring(ring)->uring.enter_ring_fd == fd)
			exchange_in(ring);
	}
	r = syscall(SYS_io_uring_enter, fd, to_submit, min_complete, flags, sig,
		    sz);
	return (int)(r < 0 ? -errno : r);
}

/* ---- Lost ---------------------------------------------------------------- */

static void reset(int fd)
{
	reset_when_closed(fd);
	EXPECT(weft_close(fd) == 0);
}

/* A stream has received, and then its connection is reset without the kernel's
 * knowledge. */
static void lose_reset(struct weft_stream *stream, int others[2])
{
	int fds[2];
	char byte;

	tcp_pair(fds);
	tcp_pair(others);
	weft_stream_init(stream, fds[0]);
	of = fds[0];
	instead = others[0];
	weft__store(&deceived, weft_runtime_self(), release);
	EXPECT(write(others[1], "x", 1) == 1);
	EXPECT(weft_stream_read(stream, &byte, 1) == 1);
	EXPECT(weft__load(&exchanged, relaxed) == 1);
	reset(fds[1]);
}

static int64_t expect_found(struct weft_stream *stream, const int others[2])
{
	ssize_t n = 0;
	char byte;

	WEFT_WITHIN(WEFT_SEC(30))
		n = weft_stream_read(stream, &byte, 1);
	ck_assert_int_eq(n, -ECONNRESET);
	ck_assert_int_eq(weft_stream_close(stream), 0);
	return weft_close(others[0]) + weft_close(others[1]);
}

STREAM_TEST(reset_that_the_kernel_loses_is_found)
{
	struct weft_stream stream;
	int others[2];

	lose_reset(&stream, others);
	return expect_found(&stream, others);
}

/* Waits until the worker with the stream's request has looked that often, or
 * has nothing more to look at. */
static void await_looks(struct weft_stream *stream, int times)
{
	struct weft__shard *shard = weft__shard(weft__stream(stream)->home);
	/* relaxed: a hint, as it is to its owner. */
	uint64_t seen = weft__load(&shard->look_ns, relaxed), now;

	while (times > 0 && seen != WEFT__LOOK_AT_NONE) {
		ck_assert_int_eq(weft_sleep(WEFT_MS(5)), 0);
		/* relaxed: as above. */
		now = weft__load(&shard->look_ns, relaxed);
		times -= now != seen;
		seen = now;
	}
}

/* poll(2) refuses more descriptors than the process may have. */
STREAM_TEST(look_that_fails_is_made_again)
{
	struct weft_stream stream;
	struct rlimit old;
	int others[2];

	lose_reset(&stream, others);
	old = limit_set(RLIMIT_NOFILE, 0);
	await_looks(&stream, 4);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	return expect_found(&stream, others);
}

/* ---- Rest ---------------------------------------------------------------- */

/* No stream is to be looked at; from any thread. */
static bool all_are_left_alone(struct weft_runtime *runtime)
{
	for (unsigned i = 0; i < runtime->workers_count; i++)
		/* relaxed: a hint, as it is to its owner. */
		if (weft__load(&weft__shard(runtime->workers[i])->look_ns,
			       relaxed) != WEFT__LOOK_AT_NONE)
			return false;
	return true;
}

static int64_t read_one(void *arg)
{
	struct weft_stream *stream = *(struct weft_stream **)arg;
	char byte;
	ssize_t n;

	EXPECT(weft_stream_read(stream, &byte, 1) == 1);
	n = weft_stream_read(stream, &byte, 1);
	EXPECT(n == 0);
	return 0;
}

/* More than are asked with one call. */
enum { STREAMS = 80 };

static struct {
	struct weft_runtime *runtime;
	int told;
} watched;

/* Observed from outside, because a task that looks would be work itself.
 * Writes whether the kernel was not entered for longer than a look takes to
 * come. */
static void *watch(void *arg)
{
	unsigned before;
	bool rested = false;

	(void)arg;

	for (int i = 0; i < 30000 && !all_are_left_alone(watched.runtime); i++)
		thread_pause_ns(1000000);
	for (int i = 0; i < 5 && !rested; i++) {
		before = weft__load(&enters, relaxed);
		thread_pause_ns(5 * LOOK_NS);
		rested = weft__load(&enters, relaxed) == before;
	}
	EXPECT(write(watched.told, &rested, sizeof(rested)) == sizeof(rested));
	return NULL;
}

/* Each is asked once, and then the workers sleep. */
STREAM_TEST(streams_that_are_quiet_are_left_alone)
{
	static struct weft_stream streams[STREAMS];
	static int fds[STREAMS][2];
	bool rested = false;
	pthread_t thread;
	int told[2];

	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < STREAMS; i++) {
			tcp_pair(fds[i]);
			weft_stream_init(&streams[i], fds[i][0]);
			EXPECT(WEFT_GO(scope, read_one, &streams[i]) == 0);
		}
		for (int i = 0; i < STREAMS; i++)
			EXPECT(write(fds[i][1], "x", 1) == 1);
		EXPECT(pipe2(told, O_CLOEXEC) == 0);
		watched.runtime = weft_runtime_self();
		watched.told = told[1];
		EXPECT(pthread_create(&thread, NULL, watch, NULL) == 0);
		EXPECT(weft_read(told[0], &rested, sizeof(rested)) ==
		       sizeof(rested));
		EXPECT(pthread_join(thread, NULL) == 0);
		ck_assert(rested);
		for (int i = 0; i < STREAMS; i++)
			EXPECT(weft_close(fds[i][1]) == 0);
	}
	for (int i = 0; i < STREAMS; i++)
		EXPECT(weft_stream_close(&streams[i]) == 0);
	return weft_close(told[0]) + weft_close(told[1]);
}

/* Its memory may be used for something else. */
STREAM_TEST(closed_stream_is_not_looked_at)
{
	struct weft_stream streams[2];
	int fds[2][2];
	char byte;

	for (int i = 0; i < 2; i++) {
		tcp_pair(fds[i]);
		weft_stream_init(&streams[i], fds[i][0]);
		kit_exchange(&streams[i], fds[i][1], 3);
	}
	ck_assert_int_eq(weft_stream_close(&streams[0]), 0);
	memset(&streams[0], 0xff, sizeof(streams[0]));
	for (int i = 0; i < 30; i++) {
		EXPECT(write(fds[1][1], "x", 1) == 1);
		EXPECT(weft_stream_read(&streams[1], &byte, 1) == 1);
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	}
	while (!all_are_left_alone(weft_runtime_self()))
		ck_assert_int_eq(weft_sleep(WEFT_MS(10)), 0);
	ck_assert_int_eq(weft_stream_close(&streams[1]), 0);
	return weft_close(fds[0][1]) + weft_close(fds[1][1]);
}

int main(void)
{
	Suite *suite = suite_create("io/stream_look");
	TCase *lost = tcase_create("lost");
	TCase *rest = tcase_create("rest");

	if (!test_needs(test_has_uring(), "io/stream_look", NEEDS_URING))
		return 77;
	weft__stream_look_every_ns = LOOK_NS;
	tcase_set_timeout(lost, 120);
	tcase_set_timeout(rest, 120);
	stream_add_test(lost, reset_that_the_kernel_loses_is_found);
	stream_add_test(lost, look_that_fails_is_made_again);
	stream_add_test(rest, streams_that_are_quiet_are_left_alone);
	stream_add_test(rest, closed_stream_is_not_looked_at);
	suite_add_tcase(suite, lost);
	suite_add_tcase(suite, rest);
	return io_tests_run(suite);
}
