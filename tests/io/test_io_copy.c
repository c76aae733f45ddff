/* SPDX-License-Identifier: MIT */
/*
 * weft_copy(): what arrives, what stays in the source, how it waits and ends.
 *
 * Most tests go through all pairs of a source and a destination, O_NONBLOCK or
 * not, with and without `ret_taken`.  The bytes are known by where they stand.
 */
#include <pty.h>
#include <signal.h>
#include <sys/mman.h>
#include <termios.h>

#include "tests/support/io_kit.h"

enum { BYTES = 150000, BIG_BYTES = 3 << 20 };

static char expected[BIG_BYTES], got[BIG_BYTES + 1];

/* ---- The ends ------------------------------------------------------------ */

enum kind { SMALL_FILE, PIPE, TCP, UNIX, TERMINAL, KINDS };

struct end {
	int ours;   /* given to weft_copy() */
	int theirs; /* fed or drained by the test; of a file: the same */
};

static int file_new(size_t bytes)
{
	int fd = memfd_create("copy", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, expected, bytes), (ssize_t)bytes);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* The second gets its small buffer with the connection, so that it is full
 * soon, however large buffers are here. */
static void tcp_pair(int fds[2])
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int listener = tcp_listener(text), small = 16384;

	ck_assert_int_eq(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small,
				    sizeof(small)),
			 0);
	fds[0] = weft_tcp_connect(text, NULL);
	ck_assert_int_ge(fds[0], 0);
	fds[1] = weft_accept(listener, NULL);
	ck_assert_int_ge(fds[1], 0);
	ck_assert_int_eq(weft_close(listener), 0);
}

/* O_NONBLOCK: io_uring writes to a terminal that is full by the thread that
 * submits, which waits. */
static void terminal_pair(int fds[2])
{
	struct termios mode;

	ck_assert_int_eq(openpty(&fds[1], &fds[0], NULL, NULL, NULL), 0);
	ck_assert_int_eq(tcgetattr(fds[0], &mode), 0);
	cfmakeraw(&mode);
	ck_assert_int_eq(tcsetattr(fds[0], TCSANOW, &mode), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(fcntl(fds[i], F_SETFL, O_RDWR | O_NONBLOCK),
				 0);
}

static size_t file_bytes = BYTES;

static void pair_new(enum kind kind, bool reads, int fds[2])
{
	switch (kind) {
	case SMALL_FILE:
		fds[0] = file_new(reads ? file_bytes : 0);
		fds[1] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
		break;
	case PIPE:
		ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
		if (!reads) {
			int fd = fds[0];

			fds[0] = fds[1];
			fds[1] = fd;
		}
		break;
	case TCP:
		tcp_pair(fds);
		break;
	case UNIX:
		socket_pair(fds);
		break;
	case TERMINAL:
	case KINDS:
		terminal_pair(fds);
		break;
	}
}

/* reads: it is to be a source. */
static struct end end_open(enum kind kind, bool reads, bool nonblock)
{
	int fds[2] = { -1, -1 }, small = 16384;

	pair_new(kind, reads, fds);
	for (int i = 0; i < 2; i++)
		setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &small,
			   sizeof(small));
	if (nonblock)
		ck_assert_int_eq(fcntl(fds[0], F_SETFL,
				       fcntl(fds[0], F_GETFL) | O_NONBLOCK),
				 0);
	return (struct end){ fds[0], fds[1] };
}

static void end_close(struct end *end)
{
	if (end->ours >= 0)
		ck_assert_int_eq(weft_close(end->ours), 0);
	if (end->theirs >= 0)
		ck_assert_int_eq(weft_close(end->theirs), 0);
	*end = (struct end){ -1, -1 };
}

/* All ways that a pair can be copied. */
struct way {
	unsigned number;
	enum kind from, to;
	bool nonblock, ahead;
};

#define FOR_EACH_WAY(way)        \
	for (struct way way = { 0 }; \
	     way_get(&way); way.number++)

static bool way_get(struct way *way)
{
	unsigned number = way->number;

	way->from = (enum kind)(number / 4 % KINDS);
	way->to = (enum kind)(number / 4 / KINDS);
	way->nonblock = number & 1;
	way->ahead = number & 2;
	return number < KINDS * KINDS * 4;
}

static int copy(const struct way *way, int to, int from, uint64_t max,
		uint64_t *ret_done)
{
	uint64_t taken = 99;
	int r = weft_copy(to, from, max, ret_done, way->ahead ? &taken : NULL);

	if (r == 0 && way->ahead)
		ck_assert_uint_eq(taken, *ret_done);
	if (way->ahead)
		ck_assert_uint_ge(taken, *ret_done);
	return r;
}

/* ---- Feeding and draining ------------------------------------------------ */

/* Closes what it has written to, unless that is a terminal, whose reader would
 * get an error. */
static int64_t feed(void *arg)
{
	struct end *end = *(struct end **)arg;
	bool terminal = isatty(end->theirs);

	ck_assert_int_eq(weft_write_all(end->theirs, expected, BYTES, NULL),
			 0);
	if (!terminal) {
		ck_assert_int_eq(weft_close(end->theirs), 0);
		end->theirs = -1;
	}
	return 0;
}

static int64_t drain(void *arg)
{
	struct end *end = *(struct end **)arg;
	size_t at = 0;

	while (at < BYTES) {
		ssize_t n = weft_read(end->theirs, got + at, BYTES - at);

		ck_assert_int_gt(n, 0);
		at += (size_t)n;
	}
	return 0;
}

static void expect_file(int fd, const char *bytes, size_t count)
{
	ck_assert_int_eq(pread(fd, got, sizeof(got), 0), (ssize_t)count);
	ck_assert_mem_eq(got, bytes, count);
}

/* ---- Arriving ------------------------------------------------------------ */

static void copy_all(const struct way *way)
{
	struct end from = end_open(way->from, true, way->nonblock), *f = &from;
	struct end to = end_open(way->to, false, way->nonblock), *t = &to;
	uint64_t done = 99, max = way->from == TERMINAL ? BYTES : UINT64_MAX;

	memset(got, 0, BYTES);
	WEFT_SUPERVISE(scope) {
		if (way->from != SMALL_FILE)
			ck_assert_int_eq(WEFT_GO(scope, feed, f), 0);
		if (way->to != SMALL_FILE)
			ck_assert_int_eq(WEFT_GO(scope, drain, t), 0);
		ck_assert_int_eq(copy(way, to.ours, from.ours, max, &done), 0);
	}
	ck_assert_uint_eq(done, BYTES);
	if (way->to == SMALL_FILE)
		expect_file(to.ours, expected, BYTES);
	else
		ck_assert_mem_eq(got, expected, BYTES);
	end_close(&from);
	end_close(&to);
}

IO_TEST(all_arrives_whatever_the_ends_are)
{
	FOR_EACH_WAY(way)
		copy_all(&way);
	return 0;
}

/* The rest can be read. */
static void copy_few(const struct way *way)
{
	struct end from = end_open(way->from, true, way->nonblock);
	struct end to = end_open(way->to, false, way->nonblock);
	uint64_t done;

	if (way->from != SMALL_FILE)
		ck_assert_int_eq(write(from.theirs, expected, 1000), 1000);
	ck_assert_int_eq(copy(way, to.ours, from.ours, 0, &done), 0);
	ck_assert_uint_eq(done, 0);
	ck_assert_int_eq(copy(way, to.ours, from.ours, 300, &done), 0);
	ck_assert_uint_eq(done, 300);
	ck_assert_int_eq(copy(way, to.ours, from.ours, 1, &done), 0);
	ck_assert_uint_eq(done, 1);
	ck_assert_int_eq(weft_read_all(from.ours, got, 600, NULL), 0);
	ck_assert_mem_eq(got, expected + 301, 600);
	if (way->to == SMALL_FILE)
		ck_assert_int_eq(lseek(to.ours, 0, SEEK_SET), 0);
	ck_assert_int_eq(weft_read_all(to.theirs, got, 301, NULL), 0);
	ck_assert_mem_eq(got, expected, 301);
	end_close(&from);
	end_close(&to);
}

IO_TEST(limit_is_kept_and_the_rest_stays)
{
	FOR_EACH_WAY(way)
		copy_few(&way);
	return 0;
}

/* Beyond what one step moves, from and to positions that are not 0. */
IO_TEST(large_file_is_copied_and_positions_move)
{
	static const int flags[] = { 0, O_APPEND };

	for (int i = 0; i < 2; i++) {
		int from = file_new(BIG_BYTES), to = file_new(10);
		uint64_t done;

		ck_assert_int_eq(fcntl(to, F_SETFL, flags[i]), 0);
		ck_assert_int_eq(lseek(from, 5, SEEK_SET), 5);
		ck_assert_int_eq(lseek(to, 10, SEEK_SET), 10);
		ck_assert_int_eq(weft_copy(to, from, BIG_BYTES - 100, &done,
					   NULL),
				 0);
		ck_assert_uint_eq(done, BIG_BYTES - 100);
		ck_assert_int_eq(lseek(from, 0, SEEK_CUR), BIG_BYTES - 95);
		ck_assert_int_eq(lseek(to, 0, SEEK_CUR), BIG_BYTES - 90);
		ck_assert_int_eq(weft_copy(to, from, UINT64_MAX, &done, NULL),
				 0);
		ck_assert_uint_eq(done, 95);
		ck_assert_int_eq(pread(to, got, BIG_BYTES, 10), BIG_BYTES - 5);
		ck_assert_mem_eq(got, expected + 5, BIG_BYTES - 5);
		close_both((int[]){ from, to });
	}
	return 0;
}

IO_TEST(devices_and_files_of_the_kernel_are_copied)
{
	int null = weft_open("/dev/null", O_RDWR, 0), to = file_new(0);
	int zero = weft_open("/dev/zero", O_RDONLY, 0);
	int status = weft_open("/proc/self/stat", O_RDONLY, 0);
	uint64_t done;

	ck_assert_int_eq(weft_copy(null, zero, 100000, &done, NULL), 0);
	ck_assert_uint_eq(done, 100000);
	ck_assert_int_eq(weft_copy(to, null, UINT64_MAX, &done, NULL), 0);
	ck_assert_uint_eq(done, 0);
	ck_assert_int_eq(weft_copy(to, status, UINT64_MAX, &done, NULL), 0);
	ck_assert_uint_gt(done, 10);
	ck_assert_int_eq(pread(to, got, 100, 0), done < 100 ? (int)done : 100);
	ck_assert_int_eq(atoi(got), (int)getpid());
	close_both((int[]){ null, to });
	close_both((int[]){ zero, status });
	return 0;
}

/* A connection to itself echoes. */
IO_TEST(descriptor_can_be_both)
{
	for (int nonblock = 0; nonblock < 2; nonblock++) {
		struct end end = end_open(TCP, true, nonblock);
		uint64_t done;

		ck_assert_int_eq(write(end.theirs, expected, 100), 100);
		ck_assert_int_eq(weft_copy(end.ours, end.ours, 100, &done,
					   NULL),
				 0);
		ck_assert_uint_eq(done, 100);
		ck_assert_int_eq(weft_read_all(end.theirs, got, 100, NULL), 0);
		ck_assert_mem_eq(got, expected, 100);
		end_close(&end);
	}
	return 0;
}

/* ---- How it ends --------------------------------------------------------- */

/* Bytes that did not arrive are in the source still. */
static void expect_whole(const struct way *way, size_t done,
			 const struct end *from, const struct end *to)
{
	ck_assert_uint_lt(done, BIG_BYTES - 1000);
	ck_assert_int_eq(weft_read_all(to->theirs, got, done, NULL), 0);
	ck_assert_int_eq(weft_shutdown(to->ours, SHUT_WR),
			 way->to == PIPE ? -ENOTSOCK : 0);
	if (way->to != PIPE)
		ck_assert_int_eq(weft_read(to->theirs, got + done, 1), 0);
	ck_assert_int_eq(weft_read_all(from->ours, got + done, 1000, NULL), 0);
	ck_assert_mem_eq(got, expected, done + 1000);
}

static int64_t feed_on(void *arg)
{
	struct end *end = *(struct end **)arg;

	(void)!weft_write_all(end->theirs, expected, BIG_BYTES, NULL);
	return 0;
}

/* The destination is full before all is copied. */
static void copy_until(const struct way *way, weft_nsec limit_ns)
{
	struct end from = end_open(way->from, true, way->nonblock), *f = &from;
	struct end to = end_open(way->to, false, way->nonblock);
	uint64_t done = 0, taken = 0;
	int r = 0;

	WEFT_SUPERVISE(scope) {
		if (way->from != SMALL_FILE)
			ck_assert_int_eq(WEFT_GO(scope, feed_on, f), 0);
		WEFT_WITHIN(limit_ns)
			r = weft_copy(to.ours, from.ours, UINT64_MAX, &done,
				      way->ahead ? &taken : NULL);
		ck_assert_int_eq(r, -ETIMEDOUT);
		if (way->ahead)
			ck_assert_uint_ge(taken, done);
		if (!way->ahead || taken == done)
			expect_whole(way, done, &from, &to);
		weft_scope_cancel(scope);
	}
	end_close(&from);
	end_close(&to);
}

IO_TEST(deadline_loses_nothing)
{
	file_bytes = BIG_BYTES;
	FOR_EACH_WAY(way) {
		if (way.from == TERMINAL || way.to == TERMINAL ||
		    way.to == SMALL_FILE)
			continue;
		copy_until(&way, WEFT_MS(1));
		copy_until(&way, WEFT_MS(20));
	}
	file_bytes = BYTES;
	return 0;
}

struct idle {
	struct way way;
	struct end from, to;
	uint64_t done;
	weft__atomic(bool) begun;
};

static int64_t copy_idle(void *arg)
{
	struct idle *idle = *(struct idle **)arg;

	weft__store(&idle->begun, true, release);
	return copy(&idle->way, idle->to.ours, idle->from.ours, UINT64_MAX,
		    &idle->done);
}

static int stuck_in(int fd)
{
	struct weft__fd_table *table =
		&weft__reactor(weft_runtime_self())->fds;
	struct weft__fd *entry = weft__fd_find(table, fd);
	bool waits;

	if (!entry)
		return false;
	weft__lock_take(&entry->lock);
	waits = entry->waiting != NULL;
	weft__lock_drop(&entry->lock);
	return waits;
}

enum how { CLOSE, CANCEL, PEER_GONE, CLOSE_OTHER, HOWS };

static void wait_end(struct idle *idle, struct weft_task task, enum how how)
{
	switch (how) {
	case CLOSE:
		ck_assert_int_eq(weft_close(idle->from.ours), 0);
		idle->from.ours = -1;
		break;
	case CANCEL:
		weft_cancel(task);
		break;
	case PEER_GONE:
		ck_assert_int_eq(weft_close(idle->from.theirs), 0);
		idle->from.theirs = -1;
		break;
	case CLOSE_OTHER:
	case HOWS:
		/* It is noticed with the next byte. */
		ck_assert_int_eq(weft_close(idle->to.ours), 0);
		idle->to.ours = -1;
		ck_assert_int_eq(write(idle->from.theirs, "d", 1), 1);
	}
}

/* Some bytes pass, then it waits for input: ends by a close of the source, by
 * cancellation, because the source's peer is gone, or by a close of the
 * destination. */
static void copy_ends(const struct way *way, enum how how)
{
	static const int results[HOWS] = {
		-ECANCELED, -ECANCELED, 0, -ECANCELED
	};
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct idle idle = { .way = *way }, *it = &idle;
	struct weft_task task;
	int64_t r = 1;

	idle.from = end_open(way->from, true, way->nonblock);
	idle.to = end_open(way->to, false, way->nonblock);
	opts.ret_task = &task;
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(weft_go_opts(scope, copy_idle, &it,
					      sizeof(it), &opts),
				 0);
		ck_assert_int_eq(write(idle.from.theirs, "abc", 3), 3);
		ck_assert_int_eq(weft_read_all(idle.to.theirs, got, 3, NULL),
				 0);
		wait_until(stuck_in(idle.from.ours));
		wait_end(&idle, task, how);
		ck_assert_int_eq(weft_join(task, &r), 0);
	}
	/* A terminal that is hung up has ended, or gives an error. */
	if (how != PEER_GONE || way->from != TERMINAL || r != -EIO)
		ck_assert_int_eq(r, results[how]);
	ck_assert_uint_eq(idle.done, 3);
	if (how == CLOSE_OTHER && way->from != TERMINAL) {
		ck_assert_int_eq(weft_read(idle.from.ours, got, 9), 1);
		ck_assert_int_eq(got[0], 'd');
	}
	end_close(&idle.from);
	end_close(&idle.to);
}

IO_TEST(wait_ends_by_close_cancellation_and_end)
{
	FOR_EACH_WAY(way)
		if (way.from != SMALL_FILE && way.to != SMALL_FILE)
			for (int how = 0; how < HOWS; how++)
				copy_ends(&way, (enum how)how);
	return 0;
}

/* Neither a byte nor a signal. */
IO_TEST(destination_that_is_gone_is_an_error)
{
	signal(SIGPIPE, SIG_DFL);
	FOR_EACH_WAY(way) {
		struct end from = end_open(way.from, true, way.nonblock);
		struct end to = end_open(way.to, false, way.nonblock);
		uint64_t done = 99;
		int r;

		if (way.to == PIPE || way.to == UNIX) {
			ck_assert_int_eq(weft_close(to.theirs), 0);
			to.theirs = -1;
			if (way.from != SMALL_FILE)
				ck_assert_int_eq(write(from.theirs, expected,
						       1000),
						 1000);
			r = copy(&way, to.ours, from.ours, 1000, &done);
			ck_assert_int_eq(r, -EPIPE);
			ck_assert_uint_eq(done, 0);
			if (!way.ahead)
				ck_assert(way.from == TERMINAL ||
					  weft_read(from.ours, got, 1000) ==
						  1000);
		}
		end_close(&from);
		end_close(&to);
	}
	return 0;
}

static uint64_t requests_made(void)
{
	struct weft_stats stats;

	ck_assert_int_eq(weft_stats_get(weft_runtime_self(), &stats), 0);
	return stats.total.ops;
}

/* A wait is one request, whose cancellation may be another. */
IO_TEST(waiting_does_not_spin)
{
	FOR_EACH_WAY(way) {
		struct end from, to;
		uint64_t before;
		int r = 0;

		if (way.from == SMALL_FILE || way.to == SMALL_FILE)
			continue;
		from = end_open(way.from, true, way.nonblock);
		to = end_open(way.to, false, way.nonblock);
		before = requests_made();
		WEFT_WITHIN(WEFT_MS(10))
			r = weft_copy(to.ours, from.ours, 1, NULL, NULL);
		ck_assert_int_eq(r, -ETIMEDOUT);
		ck_assert_uint_le(requests_made() - before, 4);
		end_close(&from);
		end_close(&to);
	}
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/copy");
	TCase *arriving = tcase_create("arriving");
	TCase *ending = tcase_create("ending");

	for (size_t i = 0; i < sizeof(expected); i++)
		expected[i] = (char)(i * 7 + i / 4096);
	io_add_test(arriving, all_arrives_whatever_the_ends_are);
	io_add_test(arriving, limit_is_kept_and_the_rest_stays);
	io_add_test(arriving, large_file_is_copied_and_positions_move);
	io_add_test(arriving, devices_and_files_of_the_kernel_are_copied);
	io_add_test(arriving, descriptor_can_be_both);
	io_add_test(ending, deadline_loses_nothing);
	io_add_test(ending, wait_ends_by_close_cancellation_and_end);
	io_add_test(ending, destination_that_is_gone_is_an_error);
	io_add_test(ending, waiting_does_not_spin);
	tcase_set_timeout(arriving, 120);
	tcase_set_timeout(ending, 120);
	suite_add_tcase(suite, arriving);
	suite_add_tcase(suite, ending);
	return io_tests_run(suite);
}
