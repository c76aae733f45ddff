/* SPDX-License-Identifier: MIT */
/*
 * Suite io/stream/kernel: streams on a kernel that refuses some of what they
 * ask for, and at the end of a runtime.
 *
 * Wrappers of liburing and of system calls play the kernel that refuses.
 * Streams must work without the feature, and the kernel must not write to their
 * memory after the runtime has ended.
 */
#include <sys/syscall.h>

#include "io/ring/uring/probe.h"
#include "io/ring/uring/uring.h"
#include "tests/support/engine.h"
#include "tests/support/features.h"
#include "tests/support/needs.h"
#include "tests/support/stream_ways.h"
#include "tests/support/wrap_enter.h"

/* ---- A kernel that refuses ----------------------------------------------- */

static weft__atomic(int) buffers_error; /* of their registration; 0: none */
static weft__atomic(int) submit_error;	/* of an enter that only submits */
static weft__atomic(unsigned) refused;

__attribute__((used)) int
__wrap_io_uring_register_buf_ring(struct io_uring *ring,
				  struct io_uring_buf_reg *reg, unsigned flags);
int __wrap_io_uring_register_buf_ring(struct io_uring *ring,
				      struct io_uring_buf_reg *reg,
				      unsigned flags)
{
	int error = weft__load(&buffers_error, relaxed);
	long r;

	if (error) {
		weft__add(&refused, 1u, relaxed);
		return error;
	}
	EXPECT(flags == 0);
	r = syscall(SYS_io_uring_register, ring->ring_fd,
		    IORING_REGISTER_PBUF_RING, reg, 1);
	return (int)(r < 0 ? -errno : r);
}

/* For this runtime's sockets the kernel must not wait: older kernels do not
 * wait on non-blocking sockets. */
static weft__atomic(struct weft_runtime *) impatient;

static void ask_at_once(const struct weft__ring *ring)
{
	const struct io_uring_sq *sq = &weft__uring(ring)->uring.sq;
	uint32_t tail = io_uring_smp_load_acquire(sq->ktail);

	for (uint32_t i = io_uring_smp_load_acquire(sq->khead); i != tail;
	     i++) {
		struct io_uring_sqe *sqe = &sq->sqes[i & ring->mask];

		if (sqe->opcode != IORING_OP_SEND &&
		    !(sqe->flags & IOSQE_BUFFER_SELECT))
			continue;
		sqe->msg_flags |= MSG_DONTWAIT;
		weft__add(&refused, 1u, relaxed);
	}
}

/* fd: the ring's descriptor as io_uring_enter gets it. */
static void ask_at_once_in(struct weft_runtime *runtime, unsigned fd)
{
	for (unsigned i = 0; i < runtime->workers_count; i++) {
		struct weft__ring *ring =
			&weft__shard(runtime->workers[i])->ring;

		if ((unsigned)weft__uring(ring)->uring.enter_ring_fd == fd)
			ask_at_once(ring);
	}
}

int __wrap_io_uring_enter2(unsigned fd, unsigned to_submit,
			   unsigned min_complete, unsigned flags, sigset_t *sig,
			   size_t sz)
{
	int error = weft__load(&submit_error, relaxed);
	struct weft_runtime *runtime = weft__load(&impatient, acquire);
	long r;

	if (runtime)
		ask_at_once_in(runtime, fd);
	if (error && !(flags & ~IORING_ENTER_REGISTERED_RING)) {
		weft__add(&refused, 1u, relaxed);
		return error;
	}
	r = syscall(SYS_io_uring_enter, fd, to_submit, min_complete, flags, sig,
		    sz);
	return (int)(r < 0 ? -errno : r);
}

/* If set, the kernel does not report the end of a connection. */
static weft__atomic(bool) endless;

int shutdown(int fd, int how)
{
	if (weft__load(&endless, relaxed))
		return 0;
	return (int)syscall(SYS_shutdown, fd, how);
}

/* ---- Refused ------------------------------------------------------------- */

/* Without provided buffers in the kernel, each stream has a buffer of its
 * own. */
STREAM_TEST(kernel_may_have_no_such_buffers)
{
	int fds[2];

	weft__store(&buffers_error, -EINVAL, relaxed);
	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	kit_exchange(&stream, fds[1], 300);
	kit_pour(5000, kit_rounds(8) * 50000);
	kit_pour(100000, kit_rounds(8) * 50000);
	ck_assert_int_eq(peek_within(&stream, WEFT_MS(1)), -ETIMEDOUT);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	/* The registration is not tried again and again. */
	ck_assert_uint_ge(weft__load(&refused, relaxed), 1);
	ck_assert_uint_le(weft__load(&refused, relaxed),
			  WEFT__POOLS * weft_runtime_self()->workers_count);
	ck_assert_uint_eq(kit_taken(WEFT__POOL_SMALL), 0);
	weft__store(&buffers_error, 0, relaxed);
	return weft_close(fds[1]);
}

/* A request that the kernel refuses at the moment is submitted again when the
 * worker waits. */
STREAM_TEST(kernel_may_take_no_request_now)
{
	for (int round = 0; round < 4; round++) {
		int fds[2];

		tcp_pair(fds);
		struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

		weft__store(&submit_error, round % 2 ? -EBUSY : -EAGAIN,
			    relaxed);
		kit_exchange(&stream, fds[1], 50);
		kit_pour(3000, 100000);
		weft__store(&submit_error, 0, relaxed);
		kit_exchange(&stream, fds[1], 50);
		EXPECT(weft_stream_close(&stream) == 0);
		EXPECT(weft_close(fds[1]) == 0);
	}
	/* Without helpers, the request is submitted together with the
	 * others. */
	if (weft_runtime_self()->workers_count > 1)
		ck_assert_uint_gt(weft__load(&refused, relaxed), 0);
	return 0;
}

/* A probe that is refused counts as not supported, and leaves nothing
 * behind. */
START_TEST(kernel_is_tried)
{
	bool tells = weft__probe_try_ends();
	int before = fds_open();

	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(weft__probe_try_ends(), tells);
		weft__store(&buffers_error, -EINVAL, relaxed);
		ck_assert(!weft__probe_try_ends());
		weft__store(&buffers_error, 0, relaxed);
		weft__store(&endless, true, relaxed);
		ck_assert(!weft__probe_try_ends());
		weft__store(&endless, false, relaxed);
	}
	ck_assert_int_eq(fds_open(), before);
}
END_TEST

/* Receives `count` bytes one by one, and the end, which may come with the last
 * byte.  Returns the number of requests. */
static uint64_t requests_to_the_end(unsigned count, bool tcp)
{
	uint64_t before;
	int fds[2];
	char byte;

	kit_pair(fds, tcp);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	before = requests_made();
	for (unsigned i = 0; i < count; i++) {
		EXPECT(peek_within(&stream, WEFT_US(20)) == -ETIMEDOUT);
		EXPECT(send(fds[1], "x", 1, 0) == 1);
		if (i == count - 1)
			EXPECT(shutdown(fds[1], SHUT_WR) == 0);
		EXPECT(weft_stream_read(&stream, &byte, 1) == 1);
	}
	EXPECT(weft_stream_read(&stream, &byte, 1) == 0);
	before = requests_made() - before;
	EXPECT(weft_stream_close(&stream) == 0);
	EXPECT(weft_close(fds[1]) == 0);
	return before;
}

/* On such a kernel each receive is a request of its own, except on TCP
 * connections. */
STREAM_TEST(kernel_may_not_tell_of_ends)
{
	bool tells = weft__probe_reports_ends();

	for (unsigned i = 0; i < kit_rounds(200); i++) {
		unsigned count = 1 + i % 5;

		kit_set_reports_ends(false);
		ck_assert_uint_eq(requests_to_the_end(count, true), 1);
		ck_assert_uint_eq(requests_to_the_end(count, false), count + 1);
		kit_set_reports_ends(tells);
		ck_assert_uint_eq(requests_to_the_end(count, true), 1);
		ck_assert_uint_eq(requests_to_the_end(count, false),
				  tells ? 1 : count + 1);
	}
	return 0;
}

enum { ANSWER_BYTES = 1 << 20 };

static int64_t read_answer(void *arg)
{
	int fd = **(int **)arg;
	unsigned char *bytes = malloc(ANSWER_BYTES);

	EXPECT(bytes != NULL);
	EXPECT(weft_read_all(fd, bytes, ANSWER_BYTES, NULL) == 0);
	kit_check(bytes, ANSWER_BYTES, 0);
	free(bytes);
	return 0;
}

static void answer(void)
{
	unsigned char *bytes = malloc(ANSWER_BYTES);
	int fds[2];

	EXPECT(bytes != NULL);
	kit_fill(bytes, ANSWER_BYTES, 0);
	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	WEFT_SUPERVISE (scope) {
		kit_go(scope, read_answer, &fds[1]);
		EXPECT(weft_stream_write_all(&stream, bytes, ANSWER_BYTES,
					     NULL) == 0);
	}
	EXPECT(weft_stream_close(&stream) == 0);
	EXPECT(weft_close(fds[1]) == 0);
	free(bytes);
}

/* When the kernel does not wait, the receive is submitted again once the socket
 * is ready. */
STREAM_TEST(kernel_may_not_wait_for_a_socket)
{
	int fds[2];

	weft__store(&impatient, weft_runtime_self(), release);
	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	kit_exchange(&stream, fds[1], 200);
	kit_pour(5000, kit_rounds(8) * 50000);
	kit_pour(100000, kit_rounds(8) * 50000);
	answer();
	ck_assert_int_eq(peek_within(&stream, WEFT_MS(1)), -ETIMEDOUT);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	ck_assert_uint_gt(weft__load(&refused, relaxed), 0);
	weft__store(&impatient, (struct weft_runtime *)NULL, release);
	return weft_close(fds[1]);
}

/* The same for sending what was put. */
static void put_answer(void)
{
	unsigned char bytes[3000];
	int fds[2], *peer = &fds[1];

	tcp_pair(fds);
	kit_make_small(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	WEFT_SUPERVISE (scope) {
		uint64_t at = 0;

		kit_go(scope, read_answer, peer);
		while (at < ANSWER_BYTES) {
			size_t n = ANSWER_BYTES - at < sizeof(bytes) ?
					   (size_t)(ANSWER_BYTES - at) :
					   sizeof(bytes);

			kit_fill(bytes, n, at);
			EXPECT(weft_stream_put(&stream, bytes, n) == 0);
			at += n;
		}
		EXPECT(weft_stream_flush(&stream) == 0);
	}
	EXPECT(weft_stream_close(&stream) == 0);
	EXPECT(weft_close(fds[1]) == 0);
}

STREAM_TEST(kernel_may_not_wait_to_send)
{
	weft__store(&impatient, weft_runtime_self(), release);
	put_answer();
	weft__store(&impatient, (struct weft_runtime *)NULL, release);
	return 0;
}

STREAM_TEST(reader_waits_for_room_and_input)
{
	weft__store(&impatient, weft_runtime_self(), release);
	go_all_ways(ask_first);
	weft__store(&impatient, (struct weft_runtime *)NULL, release);
	return 0;
}

STREAM_TEST(reader_sends_the_rest)
{
	weft__store(&impatient, weft_runtime_self(), release);
	go_all_ways(answer_bit_by_bit);
	weft__store(&impatient, (struct weft_runtime *)NULL, release);
	return 0;
}

/* ---- Memory -------------------------------------------------------------- */

/* Memory checkers have an allocator of their own. */
#if !defined(WEFT__ASAN) && !defined(WEFT__TSAN) && !defined(WEFT_VALGRIND)

static weft__atomic(bool) no_outs;
static weft__atomic(unsigned) outs_refused;

void *__real_malloc(size_t bytes);
__attribute__((used)) void *__wrap_malloc(size_t bytes);

/* Fails for the buffers of weft_stream_put(), while no_outs is set. */
void *__wrap_malloc(size_t bytes)
{
	/* relaxed: a switch, which orders nothing. */
	if (bytes == sizeof(struct weft__send_buffer) &&
	    weft__load(&no_outs, relaxed)) {
		weft__add(&outs_refused, 1u, relaxed);
		errno = ENOMEM;
		return NULL;
	}
	return __real_malloc(bytes);
}

/* The bytes are sent immediately then, after those that were put before. */
STREAM_TEST(there_may_be_no_memory_for_what_is_put)
{
	unsigned char bytes[100], back[200];
	int fds[2];

	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	for (unsigned i = 0; i < 20; i++) {
		weft__store(&no_outs, i % 2 == 0, relaxed);
		kit_fill(bytes, sizeof(bytes), i);
		EXPECT(weft_stream_put(&stream, bytes, 50) == 0);
		weft__store(&no_outs, true, relaxed);
		EXPECT(weft_stream_put(&stream, bytes + 50, 50) == 0);
		EXPECT(weft_stream_flush(&stream) == 0);
		EXPECT(recv(fds[1], back, sizeof(back), MSG_DONTWAIT) == 100);
		kit_check(back, 100, i);
	}
	weft__store(&no_outs, false, relaxed);
	ck_assert_uint_gt(weft__load(&outs_refused, relaxed), 0);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return weft_close(fds[1]);
}

#endif

/* ---- Left open ----------------------------------------------------------- */

enum left { ARMED, USED, UNREAD, NOT_BLOCKING, OWN, LEFTS };

enum { LEFT_OPEN = 10 };

static struct weft_stream left_streams[LEFT_OPEN];
static int left_fds[LEFT_OPEN][2];

void __real_io_uring_queue_exit(struct io_uring *ring);
__attribute__((used)) void
__wrap_io_uring_queue_exit(struct io_uring *ring);

/* The last moment at which bytes could be received: sends some now. */
void __wrap_io_uring_queue_exit(struct io_uring *ring)
{
	for (int i = 0; i < LEFT_OPEN; i++) {
		struct weft__worker *home =
			weft__stream(&left_streams[i])->home;

		if (home && weft__shard(home) &&
		    ring == &weft__uring(&weft__shard(home)->ring)->uring)
			EXPECT(write(left_fds[i][1], "y", 1) == 1);
	}
	(void)syscall(SYS_io_uring_enter, ring->ring_fd, 0, 0,
		      IORING_ENTER_GETEVENTS, NULL, 0);
	__real_io_uring_queue_exit(ring);
}

static void leave_open(enum left left, struct weft_stream *stream,
		       const int fds[2])
{
	weft_stream_init(stream, fds[0]);
	if (left == NOT_BLOCKING)
		EXPECT(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
	if (left != ARMED)
		kit_exchange(stream, fds[1], 10);
	EXPECT(peek_within(stream, WEFT_US(10)) == -ETIMEDOUT);
	if (left == UNREAD)
		EXPECT(write(fds[1], "x", 1) == 1);
}

static int64_t leave_all_open(void *arg)
{
	enum left left = *(enum left *)arg;

	if (left == OWN)
		weft__store(&buffers_error, -ENOMEM, relaxed);
	for (int i = 0; i < LEFT_OPEN; i++) {
		tcp_pair(left_fds[i]);
		leave_open(left, &left_streams[i], left_fds[i]);
	}
	return left == UNREAD ? weft_sleep(WEFT_MS(1)) : 0;
}

static void expect_left_alone(struct weft_stream *stream, const int fds[2])
{
	char bytes[2] = { 0 };

	ck_assert_int_eq(recv(fds[0], bytes, 2, MSG_DONTWAIT), 1);
	ck_assert_int_eq(bytes[0], 'y');
	free(weft__stream(stream)->own);
	ck_assert_int_eq(close(fds[0]), 0);
	ck_assert_int_eq(close(fds[1]), 0);
}

/* After the end of the runtime, nothing is received into its memory. */
START_TEST(stream_may_be_left_open)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	enum left left = (enum left)(_i / 2);

	opts.workers = 1 + (unsigned)_i % 2;
	ck_assert_int_eq(weft_run(leave_all_open, &left, &opts), 0);
	for (int i = 0; i < LEFT_OPEN; i++)
		expect_left_alone(&left_streams[i], left_fds[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/stream_kernel");
	TCase *without = tcase_create("without");
	TCase *left = tcase_create("left open");

	if (!test_needs(test_has_uring(), "io/stream_kernel", NEEDS_URING))
		return 77;
	if (test_needs(test_has_ring_buffers(),
		       "kernel_may_have_no_such_buffers", NEEDS_BUFFERS))
		stream_add_test(without, kernel_may_have_no_such_buffers);
	stream_add_test(without, kernel_may_take_no_request_now);
	tcase_add_test(without, kernel_is_tried);
	if (test_needs(test_has_ring_buffers(),
		       "kernel_may_not_tell_of_ends", NEEDS_BUFFERS))
		stream_add_test(without, kernel_may_not_tell_of_ends);
	stream_add_test(without, kernel_may_not_wait_for_a_socket);
	stream_add_test(without, kernel_may_not_wait_to_send);
	stream_add_test(without, reader_waits_for_room_and_input);
	stream_add_test(without, reader_sends_the_rest);
#if !defined(WEFT__ASAN) && !defined(WEFT__TSAN) && !defined(WEFT_VALGRIND)
	stream_add_test(without, there_may_be_no_memory_for_what_is_put);
#endif
	tcase_add_loop_test(left, stream_may_be_left_open, 0, 2 * LEFTS);
	suite_add_tcase(suite, without);
	suite_add_tcase(suite, left);
	return io_tests_run(suite);
}
