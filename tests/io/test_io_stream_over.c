/* SPDX-License-Identifier: MIT */
/*
 * Suite io/stream/over: streams over pipes and files, which are found to be no
 * sockets by their first request, and streams without a descriptor, over a
 * table of operations.
 */
#include <fcntl.h>
#include <poll.h>

#include "tests/support/errno_now.h"
#include "tests/support/stream_kit.h"

static void make_pipe(int fds[2])
{
	EXPECT(pipe2(fds, O_CLOEXEC) == 0);
}

/* ---- Reading ------------------------------------------------------------- */

enum { MANY = 300000 };

static int64_t read_many(void *arg)
{
	struct weft_stream *stream = *(struct weft_stream **)arg;
	uint64_t at = 0;
	const void *data;
	ssize_t n;

	while ((n = weft_stream_peek(stream, &data)) > 0) {
		size_t some = n > 1000 ? (size_t)n - 7 : (size_t)n;

		kit_check(data, some, at);
		weft_stream_skip(stream, some);
		at += some;
	}
	EXPECT(n == 0 && at == MANY);
	EXPECT(weft_stream_peek(stream, &data) == 0);
	return 0;
}

static int64_t send_and_close(void *arg)
{
	struct kit_sender *sender = *(struct kit_sender **)arg;

	(void)kit_send(arg);
	return weft_close(sender->fd);
}

IO_TEST(pipe_is_read_to_its_end)
{
	struct kit_sender sender = { .bytes = MANY, .chunk_max = 9000 };
	struct weft_stream stream;
	int fds[2];

	make_pipe(fds);
	fds[0] = fd_far(fds[0]);
	sender.fd = fds[1];
	weft_stream_init(&stream, fds[0]);
	EXPECT(weft_stream_fd(&stream) == fds[0]);
	WEFT_SCOPE (scope, NULL) {
		kit_go(scope, send_and_close, &sender);
		kit_go(scope, read_many, &stream);
	}
	EXPECT(weft_stream_close(&stream) == 0);
	EXPECT(fcntl(fds[0], F_GETFD) < 0 && errno_now() == EBADF);
	return 0;
}

static int scratch(void)
{
	return weft_open("/tmp", O_TMPFILE | O_RDWR, 0600);
}

/* From its position on. */
IO_TEST(file_is_read_and_written_at_its_position)
{
	unsigned char bytes[5000];
	struct weft_stream stream;
	int fd = scratch(), copy = dup(fd);

	EXPECT(fd >= 0 && copy >= 0);
	kit_fill(bytes, sizeof(bytes), 0);
	weft_stream_init(&stream, fd);
	EXPECT(weft_stream_put(&stream, bytes, 100) == 0);
	EXPECT(weft_stream_put(&stream, bytes + 100, 1900) == 0);
	EXPECT(weft_stream_flush(&stream) == 0);
	EXPECT(weft_stream_write_all(&stream, bytes + 2000, 3000, NULL) == 0);
	EXPECT(weft_stream_close(&stream) == 0);
	EXPECT(lseek(copy, 1000, SEEK_SET) == 1000);
	weft_stream_init(&stream, copy);
	EXPECT(weft_stream_read_all(&stream, bytes, 4000, NULL) == 0);
	kit_check(bytes, 4000, 1000);
	EXPECT(weft_stream_read(&stream, bytes, 1) == 0);
	return weft_stream_close(&stream);
}

/* A descriptor that nobody has. */
IO_TEST(closed_descriptor_is_an_error)
{
	struct weft_stream stream;
	const void *data;
	int fds[2];

	make_pipe(fds);
	EXPECT(close(fds[0]) == 0 && close(fds[1]) == 0);
	weft_stream_init(&stream, fds[0]);
	EXPECT(weft_stream_peek(&stream, &data) == -EBADF);
	EXPECT(weft_stream_write_all(&stream, "x", 1, NULL) == -EBADF);
	EXPECT(weft_stream_close(&stream) == -EBADF);
	weft_stream_init(&stream, -1);
	EXPECT(weft_stream_peek(&stream, &data) == -EBADF);
	EXPECT(weft_stream_close(&stream) == -EBADF);
	return 0;
}

/* ---- Writing ------------------------------------------------------------- */

struct reader {
	int fd;
	uint64_t bytes;
};

static int64_t check_all(void *arg)
{
	struct reader *reader = *(struct reader **)arg;
	unsigned char bytes[4096];
	uint64_t at = 0;
	ssize_t n;

	while ((n = weft_read(reader->fd, bytes, sizeof(bytes))) > 0) {
		kit_check(bytes, (size_t)n, at);
		at += (uint64_t)n;
	}
	EXPECT(n == 0 && at == reader->bytes);
	return 0;
}

/* Puts and writes pieces of all lengths. */
static void put_many(struct weft_stream *stream, uint64_t total)
{
	static const unsigned lengths[] = {
		1, 4000, 90, 4096, 5000, 700, 70000
	};
	unsigned char *bytes = malloc(70000);
	uint64_t at = 0;

	EXPECT(bytes);
	for (unsigned i = 0; at < total; i++) {
		size_t some = lengths[i % 7];

		if (some > total - at)
			some = (size_t)(total - at);
		kit_fill(bytes, some, at);
		if (i % 3 == 2)
			EXPECT(weft_stream_write_all(stream, bytes, some,
						     NULL) == 0);
		else
			EXPECT(weft_stream_put(stream, bytes, some) == 0);
		at += some;
	}
	free(bytes);
}

IO_TEST(pipe_gets_what_is_put_in_order)
{
	struct weft_stream stream;
	struct reader reader = { .bytes = MANY };
	int fds[2];

	make_pipe(fds);
	reader.fd = fds[0];
	weft_stream_init(&stream, fds[1]);
	WEFT_SCOPE (scope, NULL) {
		kit_go(scope, check_all, &reader);
		put_many(&stream, MANY);
		EXPECT(weft_stream_close(&stream) == 0);
	}
	return weft_close(fds[0]);
}

/* Whether a byte more would go into the pipe at once. */
static bool has_room(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

	return poll(&poll_fd, 1, 0) == 1;
}

/* Puts until the stream and the pipe are full.  A put may end before that: on
 * a slow machine its deadline has passed when it begins.  Returns the bytes
 * that were taken. */
static uint64_t put_until_full(struct weft_stream *stream, int fd)
{
	unsigned char bytes[1000];
	uint64_t at = 0;
	int r = 0;

	while (r == 0 || (r == -ETIMEDOUT && has_room(fd))) {
		kit_fill(bytes, sizeof(bytes), at);
		WEFT_WITHIN (WEFT_MS(1))
			r = weft_stream_put(stream, bytes, sizeof(bytes));
		if (r == 0)
			at += sizeof(bytes);
	}
	EXPECT(r == -ETIMEDOUT);
	return at;
}

IO_TEST(interrupted_flush_of_a_pipe_may_be_repeated)
{
	struct weft_stream stream;
	struct reader reader;
	int fds[2];

	make_pipe(fds);
	weft_stream_init(&stream, fds[1]);
	reader.fd = fds[0];
	reader.bytes = put_until_full(&stream, fds[1]);
	for (int i = 0; i < 3; i++)
		WEFT_WITHIN (WEFT_MS(1))
			EXPECT(weft_stream_flush(&stream) == -ETIMEDOUT);
	WEFT_SCOPE (scope, NULL) {
		kit_go(scope, check_all, &reader);
		EXPECT(weft_stream_flush(&stream) == 0);
		EXPECT(weft_stream_close(&stream) == 0);
	}
	return weft_close(fds[0]);
}

IO_TEST(pipe_without_a_reader_is_an_error)
{
	struct weft_stream stream;
	int fds[2];

	make_pipe(fds);
	EXPECT(weft_close(fds[0]) == 0);
	weft_stream_init(&stream, fds[1]);
	EXPECT(weft_stream_put(&stream, "x", 1) == 0);
	EXPECT(weft_stream_flush(&stream) == -EPIPE);
	EXPECT(weft_stream_put(&stream, "x", 1) == -EPIPE);
	EXPECT(weft_stream_write_all(&stream, "x", 1, NULL) == -EPIPE);
	EXPECT(weft_stream_close(&stream) == -EPIPE);
	return 0;
}

/* ---- Over operations ----------------------------------------------------- */

/* Turns each bit, over another stream, in pieces of `piece` bytes at most. */
struct turned {
	struct weft_stream below;
	size_t piece;
	unsigned closed;
};

static void turn(unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (unsigned char)~bytes[i];
}

static ssize_t turned_read(void *arg, void *buf, size_t bytes)
{
	struct turned *turned = arg;
	ssize_t n =
		weft_stream_read(&turned->below, buf,
				 bytes < turned->piece ? bytes : turned->piece);

	if (n > 0)
		turn(buf, (size_t)n);
	return n;
}

static int turned_write_all(void *arg, const void *buf, size_t bytes,
			    size_t *ret_done)
{
	struct turned *turned = arg;
	unsigned char copy[100];
	size_t done = 0, some;
	int r = 0;

	while (r == 0 && done < bytes) {
		size_t most = bytes - done;

		if (most > sizeof(copy))
			most = sizeof(copy);
		memcpy(copy, (const char *)buf + done, most);
		turn(copy, most);
		r = weft_stream_write_all(&turned->below, copy, most, &some);
		done += some;
	}
	*ret_done = done;
	return r;
}

static int turned_close(void *arg)
{
	struct turned *turned = arg;

	turned->closed++;
	return weft_stream_close(&turned->below);
}

static const struct weft_stream_ops turned_ops = {
	.read = turned_read,
	.write_all = turned_write_all,
	.close = turned_close,
};

/* Two streams turn each byte twice. */
IO_TEST(stream_runs_over_another)
{
	struct turned one = { .piece = 1000 }, two = { .piece = 333 };
	struct weft_stream out, in;
	int fds[2];

	tcp_pair(fds);
	weft_stream_init(&one.below, fds[0]);
	weft_stream_init(&two.below, fds[1]);
	weft_stream_init_over(&out, &turned_ops, &one);
	weft_stream_init_over(&in, &turned_ops, &two);
	EXPECT(weft_stream_fd(&in) == -1);
	EXPECT(peek_within(&in, WEFT_US(100)) == -ETIMEDOUT);
	WEFT_SCOPE (scope, NULL) {
		kit_go(scope, read_many, &in);
		put_many(&out, MANY);
		EXPECT(weft_stream_close(&out) == 0);
	}
	EXPECT(weft_stream_close(&in) == 0);
	EXPECT(one.closed == 1 && two.closed == 1);
	return 0;
}

static weft__atomic(bool) has_put;

static int64_t close_cancelled(void *arg)
{
	struct weft_stream *stream = *(struct weft_stream **)arg;

	EXPECT(weft_stream_put(stream, "lost", 4) == 0);
	weft__store(&has_put, true, release);
	EXPECT(weft_sleep(WEFT_SEC(20)) == -ECANCELED);
	EXPECT(weft_stream_close(stream) == -ECANCELED);
	return 0;
}

IO_TEST(close_is_called_once_even_if_cancelled)
{
	struct turned turned = { .piece = 10 };
	struct weft_stream stream;
	int fds[2];

	/* relaxed: no task yet. */
	weft__store(&has_put, false, relaxed);
	socket_pair(fds);
	weft_stream_init(&turned.below, fds[0]);
	weft_stream_init_over(&stream, &turned_ops, &turned);
	WEFT_SUPERVISE (scope) {
		kit_go(scope, close_cancelled, &stream);
		wait_until(weft__load(&has_put, acquire));
		weft_scope_cancel(scope);
	}
	EXPECT(turned.closed == 1);
	return weft_close(fds[1]);
}

IO_TEST(operation_that_is_not_there_is_an_error)
{
	static const struct weft_stream_ops none;
	struct weft_stream stream;
	const void *data;
	size_t done = 1;

	weft_stream_init_over(&stream, &none, NULL);
	EXPECT(weft_stream_peek(&stream, &data) == -EBADF);
	EXPECT(weft_stream_write_all(&stream, "x", 1, &done) == -EBADF);
	EXPECT(done == 0);
	return weft_stream_close(&stream);
}

/* They never wait. */
static ssize_t read_at_once(void *arg, void *buf, size_t bytes)
{
	(void)arg;
	memset(buf, 'x', bytes);
	return (ssize_t)bytes;
}

static int write_at_once(void *arg, const void *buf, size_t bytes,
			 size_t *ret_done)
{
	(void)arg, (void)buf;
	*ret_done = bytes;
	return 0;
}

static const struct weft_stream_ops at_once = {
	.read = read_at_once,
	.write_all = write_at_once,
};

static int64_t note_a_turn(void *arg)
{
	weft__store(*(weft__atomic(bool) **)arg, true, release);
	return 0;
}

static ssize_t take_all(struct weft_stream *stream)
{
	const void *data;
	ssize_t n = weft_stream_peek(stream, &data);

	if (n > 0)
		weft_stream_skip(stream, (size_t)n);
	return n;
}

static ssize_t move_one(struct weft_stream *stream, bool writes)
{
	if (writes)
		return weft_stream_write_all(stream, "x", 1, NULL);
	return take_all(stream);
}

/* A loop of calls that never wait ends at its deadline, and lets others run. */
IO_TEST(operations_that_do_not_wait_are_waits)
{
	weft__atomic(bool) had_a_turn = false;
	struct weft_stream stream;
	weft_nsec end_ns;
	ssize_t n;

	weft_stream_init_over(&stream, &at_once, NULL);
	for (int writes = 0; writes < 2; writes++) {
		end_ns = weft_now() + WEFT_SEC(20);
		n = 0;
		weft__store(&had_a_turn, false, release);
		WEFT_SCOPE (scope, NULL) {
			kit_go(scope, note_a_turn, &had_a_turn);
			while (n >= 0 && !weft__load(&had_a_turn, acquire) &&
			       weft_now() < end_ns)
				n = move_one(&stream, writes);
			EXPECT(weft__load(&had_a_turn, acquire));
		}
		WEFT_WITHIN (WEFT_MS(2))
			while (n >= 0 && weft_now() < end_ns)
				n = move_one(&stream, writes);
		EXPECT(n == -ETIMEDOUT);
	}
	return weft_stream_close(&stream);
}

START_TEST(operations_need_a_task)
{
	struct weft_stream stream;
	const void *data;
	size_t done = 1;

	weft_stream_init_over(&stream, &at_once, NULL);
	ck_assert_int_eq(weft_stream_peek(&stream, &data), -EPERM);
	ck_assert_int_eq(weft_stream_write_all(&stream, "x", 1, &done), -EPERM);
	ck_assert_uint_eq(done, 0);
}
END_TEST

static ssize_t read_a_part(void *arg, void *buf, size_t bytes)
{
	int *left = arg;

	(void)bytes;
	if (!(*left)--)
		return -ENODATA; /* of a record that was cut */
	memcpy(buf, "part", 4);
	return 4;
}

IO_TEST(error_of_an_operation_is_no_end)
{
	static const struct weft_stream_ops ops = { .read = read_a_part };
	struct weft_stream stream;
	char line[80];
	int left = 2;

	weft_stream_init_over(&stream, &ops, &left);
	EXPECT(weft_stream_line(&stream, line, sizeof(line)) == -ENODATA);
	EXPECT(weft_stream_read_all(&stream, line, 8, NULL) == 0);
	EXPECT(memcmp(line, "partpart", 8) == 0);
	return weft_stream_close(&stream);
}

/* Reads with a wait of its own, whose first answer is too early. */
struct waiting {
	struct weft_stream stream;
	struct weft_stream below;
	unsigned waits;
	unsigned reads;
	bool is_early;
};

static int wait_without_buffer(void *arg)
{
	struct waiting *waiting = arg;
	const void *data;
	ssize_t n = 0;

	EXPECT(!weft__stream(&waiting->stream)->own);
	waiting->waits++;
	waiting->is_early = !waiting->is_early;
	if (!waiting->is_early)
		n = weft_stream_peek(&waiting->below, &data);
	return n < 0 ? (int)n : 0;
}

static ssize_t read_after_wait(void *arg, void *buf, size_t bytes)
{
	struct waiting *waiting = arg;

	waiting->reads++;
	if (waiting->is_early)
		return -EAGAIN;
	return weft_stream_read(&waiting->below, buf, bytes);
}

static int waiting_close(void *arg)
{
	struct waiting *waiting = arg;

	return weft_stream_close(&waiting->below);
}

static const struct weft_stream_ops waiting_ops = {
	.read = read_after_wait,
	.close = waiting_close,
	.wait = wait_without_buffer,
};

/* A connection that is idle needs no memory. */
IO_TEST(stream_holds_no_buffer_while_it_waits)
{
	struct waiting waiting = { .is_early = false };
	struct weft_stream *stream = &waiting.stream;
	char buf[8];
	int fds[2];

	socket_pair(fds);
	weft_stream_init(&waiting.below, fds[0]);
	weft_stream_init_over(stream, &waiting_ops, &waiting);
	for (int i = 0; i < 3; i++) {
		EXPECT(peek_within(stream, WEFT_US(100)) == -ETIMEDOUT);
		EXPECT(!weft__stream(stream)->own);
		EXPECT(weft_write_all(fds[1], "12345", 5, NULL) == 0);
		EXPECT(weft_stream_read_all(stream, buf, 5, NULL) == 0);
		EXPECT(memcmp(buf, "12345", 5) == 0);
	}
	EXPECT(waiting.reads >= 6 && waiting.waits >= waiting.reads);
	EXPECT(weft_close(fds[1]) == 0);
	EXPECT(peek_within(stream, WEFT_SEC(20)) == 0);
	return weft_stream_close(stream);
}

int main(void)
{
	Suite *suite = suite_create("io/stream/over");
	TCase *descriptors = tcase_create("descriptors");
	TCase *operations = tcase_create("operations");

	tcase_set_timeout(descriptors, 60);
	tcase_set_timeout(operations, 60);
	io_add_test(descriptors, pipe_is_read_to_its_end);
	io_add_test(descriptors, file_is_read_and_written_at_its_position);
	io_add_test(descriptors, closed_descriptor_is_an_error);
	io_add_test(descriptors, pipe_gets_what_is_put_in_order);
	io_add_test(descriptors, interrupted_flush_of_a_pipe_may_be_repeated);
	io_add_test(descriptors, pipe_without_a_reader_is_an_error);
	io_add_test(operations, stream_runs_over_another);
	io_add_test(operations, close_is_called_once_even_if_cancelled);
	io_add_test(operations, operation_that_is_not_there_is_an_error);
	io_add_test(operations, operations_that_do_not_wait_are_waits);
	tcase_add_test(operations, operations_need_a_task);
	io_add_test(operations, error_of_an_operation_is_no_end);
	io_add_test(operations, stream_holds_no_buffer_while_it_waits);
	suite_add_tcase(suite, descriptors);
	suite_add_tcase(suite, operations);
	return io_tests_run(suite);
}
