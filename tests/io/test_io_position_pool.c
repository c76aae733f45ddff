/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes of files in the blocking pool, where they may have to wait:
 * what ends them, what waits for them, and writes that wait for each other.
 */
#include "io/os/syscall.h"
#include "runtime/blocking/job_queue.h"
#include "tests/support/blocking_scene.h"
#include "tests/support/features.h"
#include "tests/support/refuse_threads.h"

/* A file of "0123456789" whose transfers go to the pool, as where the file
 * system cannot tell whether they would wait. */
static int file_of_kind(enum weft__fd_kind kind)
{
	char path[] = "/tmp/weft-position-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);
	struct weft__fd *entry;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(write(fd, "0123456789", 10), 10);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(weft__fd_get(&weft__reactor(weft_runtime_self())->fds,
				      fd, &entry),
			 0);
	weft__fd_set_kind(entry, (int)kind | WEFT__FD_NO_QUICK_READ |
					 WEFT__FD_NO_QUICK_WRITE);
	return fd;
}

static int file_for_pool(void)
{
	return file_of_kind(WEFT__FD_FILE);
}

static struct weft__fd *entry_of(int fd)
{
	return weft__fd_find(&weft__reactor(weft_runtime_self())->fds, fd);
}

/* A call by another task. */
struct call {
	int fd;
	char data[8];
	weft__atomic(int64_t) result; /* or NONE_YET */
};

#define NONE_YET INT64_MIN

static int64_t call_end(struct call *call, int64_t r)
{
	weft__store(&call->result, r, release);
	return 0;
}

static int64_t call_read(void *arg)
{
	struct call *call = *(struct call **)arg;

	return call_end(call, weft_read(call->fd, call->data, 4));
}

static int64_t call_write(void *arg)
{
	struct call *call = *(struct call **)arg;

	return call_end(call, weft_pwrite(call->fd, call->data, 1,
					  call->data[1] - '0'));
}

static int64_t call_close(void *arg)
{
	struct call *call = *(struct call **)arg;

	return call_end(call, weft_close(call->fd));
}

static bool has_ended(struct call *call)
{
	return weft__load(&call->result, acquire) != NONE_YET;
}

static struct weft_task call_start(struct weft_scope *scope, weft_fn fn,
				   struct call *call, int fd)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;

	call->fd = fd;
	weft__store(&call->result, NONE_YET, relaxed);
	opts.ret_task = &task;
	ck_assert_int_eq(weft_go_opts(scope, fn, &call, sizeof(call), &opts),
			 0);
	return task;
}

static bool is_closing(int fd)
{
	struct weft__fd *entry = entry_of(fd);
	bool closing;

	weft__lock_take(&entry->lock);
	closing = entry->closing;
	weft__lock_drop(&entry->lock);
	return closing;
}

/* The only thread of the pool stays at the gate until it opens. */
static void pool_busy(struct weft_scope *scope, struct gate *gate)
{
	pass_start(scope, gate, NULL, NULL);
	wait_until(weft__load(&gate->came, acquire) == 1);
}

/* The number may not belong to another file before the read has ended. */
POOL_TEST(close_waits_for_a_transfer_in_the_pool, 1, 0)
{
	struct call reader, closer;
	struct gate gate = { 0 };
	int fd = file_for_pool();
	int64_t r;

	WEFT_SCOPE(s, &r) {
		pool_busy(s, &gate);
		call_start(s, call_read, &reader, fd);
		wait_until(pool_stats().queued == 1);
		call_start(s, call_close, &closer, fd);
		wait_until(is_closing(fd));
		ck_assert_int_eq(weft_read(fd, reader.data, 1), -EBADF);
		ck_assert_int_eq(weft_yield(), 0);
		ck_assert(!has_ended(&reader) && !has_ended(&closer));
		ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
		gate_open(&gate);
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(weft__load(&reader.result, acquire), 4);
	ck_assert_mem_eq(reader.data, "0123", 4);
	ck_assert_int_eq(weft__load(&closer.result, acquire), 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	return 0;
}

static int64_t close_three(int a, int b, int c)
{
	ck_assert_int_eq(weft_close(a), 0);
	ck_assert_int_eq(weft_close(b), 0);
	return weft_close(c);
}

static void set_going(int fd, bool going)
{
	struct weft__fd *entry = entry_of(fd);

	weft__lock_take(&entry->lock);
	entry->going = going;
	weft__lock_drop(&entry->lock);
}

/* A close is in the kernel: the number may be that of the file which goes.  In
 * the pool a write would meet that which has it later. */
POOL_TEST(number_that_a_close_gives_up_is_waited_for, 4, 0)
{
	int fd = file_for_pool(), kept = dup(fd), other = file_for_pool();
	struct call call = { .data = "z0" };
	int64_t r;

	/* With one, nothing runs while this task does. */
	if (weft_runtime_self()->workers_count > 1)
		return close_three(fd, kept, other);
	set_going(fd, true);
	WEFT_SCOPE(s, &r) {
		call_start(s, call_write, &call, fd);
		ck_assert_int_eq(weft_yield(), 0);
		ck_assert(!has_ended(&call));
		ck_assert_int_eq(dup2(other, fd), fd);
		set_going(fd, false);
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(call.result, -EBADF);
	/* The same file; then the kernel lingers, which is not waited for. */
	for (int lingers = 0; lingers < 2; lingers++) {
		set_going(fd, true);
		WEFT_SCOPE(s, &r) {
			call_start(s, call_write, &call, fd);
			ck_assert_int_eq(weft_yield(), 0);
			ck_assert(!has_ended(&call));
			set_going(fd, lingers);
		}
		ck_assert_int_eq(r, 0);
		ck_assert_int_eq(call.result, 1);
	}
	set_going(fd, false);
	ck_assert_int_eq(weft_pread(kept, call.data, 1, 0), 1);
	ck_assert_int_eq(call.data[0], '0');
	ck_assert_int_eq(weft_pread(other, call.data, 1, 0), 1);
	ck_assert_int_eq(call.data[0], 'z');
	return close_three(fd, kept, other);
}

/* No thread has begun it, so the position stays. */
POOL_TEST(transfer_that_has_not_begun_can_be_cancelled, 1, 0)
{
	struct gate gate = { 0 };
	int fd = file_for_pool();
	struct call reader;
	char data[4];
	int64_t r;

	WEFT_SCOPE(s, &r) {
		struct weft_task task;

		pool_busy(s, &gate);
		task = call_start(s, call_read, &reader, fd);
		wait_until(pool_stats().queued == 1);
		ck_assert_int_eq(weft_cancel(task), 0);
		wait_until(has_ended(&reader));
		ck_assert_int_eq(reader.result, -ECANCELED);
		WEFT_WITHIN(WEFT_MS(1))
			ck_assert_int_eq(weft_read(fd, data, 4), -ETIMEDOUT);
		ck_assert_ptr_null(entry_of(fd)->waiting);
		ck_assert(!weft__fd_pooled(entry_of(fd)));
		ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 0);
		gate_open(&gate);
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

/* Does a read of the file end where it is made?  tmpfs cannot tell before
 * Linux 6.0. */
static bool reads_quickly(int fd)
{
	char data;
	struct iovec vec = { &data, 1 };

	return test_is_unmasked(WEFT__FEATURE_RWF_NOWAIT) &&
	       weft__syscall_readv(fd, &vec, 1, 0, RWF_NOWAIT) == 1;
}

/* It would hold up the worker at the lock of the position, for as long as the
 * transfer takes.  A read at an offset does not need that lock. */
POOL_TEST(others_at_the_position_go_to_the_pool_too, 1, 0)
{
	struct gate gate = { 0 };
	int fd = file_for_pool();
	struct call first, second;
	char data[4];
	int64_t r;

	WEFT_SCOPE(s, &r) {
		pool_busy(s, &gate);
		call_start(s, call_read, &first, fd);
		wait_until(pool_stats().queued == 1);
		/* From now on the file system can tell. */
		weft__and(&entry_of(fd)->kind,
			  (uint8_t)~(WEFT__FD_NO_QUICK_READ |
				     WEFT__FD_NO_QUICK_WRITE),
			  relaxed);
		call_start(s, call_read, &second, fd);
		wait_until(pool_stats().queued == 2);
		if (reads_quickly(fd)) {
			ck_assert_int_eq(weft_pread(fd, data, 4, 6), 4);
			ck_assert_mem_eq(data, "6789", 4);
		}
		ck_assert(!has_ended(&first) && !has_ended(&second));
		gate_open(&gate);
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(first.result, 4);
	ck_assert_int_eq(second.result, 4);
	ck_assert_mem_eq(first.data, "0123", 4);
	ck_assert_mem_eq(second.data, "4567", 4);
	ck_assert(!weft__fd_pooled(entry_of(fd)));
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

/* Then the worker's thread waits for the disk. */
POOL_TEST(transfer_that_gets_no_thread_is_made_all_the_same, 0, 0)
{
	int fd = file_for_pool();
	char data[8];

	refuse_threads();
	ck_assert_int_eq(weft_read(fd, data, 4), 4);
	ck_assert_mem_eq(data, "0123", 4);
	ck_assert_int_eq(weft_write(fd, "ab", 2), 2);
	ck_assert_int_eq(weft_read(fd, data, 8), 4);
	ck_assert_mem_eq(data, "6789", 4);
	ck_assert_uint_gt(pool_stats().threads_refused, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

/* ---- Writes that wait for each other ------------------------------------- */

enum { WRITERS = 6, STORM_TASKS = 24, STORM_WRITES = 60 };

/* Writes a letter, 'a' for 0 and so on, at an offset. */
static struct weft_task write_start(struct weft_scope *scope,
				    struct call *call, int fd, int offset)
{
	call->data[0] = (char)('a' + offset);
	call->data[1] = (char)('0' + offset);
	return call_start(scope, call_write, call, fd);
}

static const struct weft__job_lane *lane_of_files(void)
{
	return (const void *)&weft__reactor(weft_runtime_self())->files;
}

/* Of the transfers in the pool those that would have a thread now. */
static unsigned queued_in_lane(void)
{
	return lane_of_files()->queued;
}

/* The next one, and those behind it.  None has begun. */
static unsigned line_length(void)
{
	const struct weft__job *job = lane_of_files()->waiters.head->item;
	unsigned length = 0;

	for (; job; job = job->behind)
		length++;
	return length;
}

static void expect_bytes(int fd, const char *bytes)
{
	char data[10];

	ck_assert_int_eq(pread(fd, data, sizeof(data), 0), sizeof(data));
	ck_assert_mem_eq(data, bytes, sizeof(data));
	ck_assert_ptr_null(entry_of(fd)->waiting);
	ck_assert_ptr_null(entry_of(fd)->last_write);
	ck_assert_int_eq(weft_close(fd), 0);
}

/* One after the other, in one line. */
static void writers_start(struct weft_scope *scope, struct weft_task *ret_tasks,
			  struct call *calls, int fd)
{
	for (int i = 0; i < WRITERS; i++) {
		ret_tasks[i] = write_start(scope, &calls[i], fd, i);
		wait_until(pool_stats().queued == (unsigned)i + 1);
		ck_assert_uint_eq(queued_in_lane(), 1);
	}
}

POOL_TEST(writes_of_one_file_take_one_thread, 1, 0)
{
	struct weft_task tasks[WRITERS];
	struct call calls[WRITERS];
	struct gate gate = { 0 };
	int fd = file_of_kind(WEFT__FD_LOCAL);
	int64_t r;

	WEFT_SCOPE(s, &r) {
		pool_busy(s, &gate);
		writers_start(s, tasks, calls, fd);
		gate_open(&gate);
	}
	ck_assert_int_eq(r, 0);
	for (int i = 0; i < WRITERS; i++)
		ck_assert_int_eq(calls[i].result, 1);
	expect_bytes(fd, "abcdef6789");
	return 0;
}

/* A file of a server, whose writes may be carried out side by side; another
 * file; and a read, which another lock may hold up. */
POOL_TEST(what_does_not_wait_for_each_other_has_threads, 1, 0)
{
	struct call calls[5];
	struct gate gate = { 0 };
	int served = file_of_kind(WEFT__FD_FILE);
	int first = file_of_kind(WEFT__FD_LOCAL);
	int second = file_of_kind(WEFT__FD_LOCAL);
	int64_t r;

	WEFT_SCOPE(s, &r) {
		pool_busy(s, &gate);
		write_start(s, &calls[0], served, 0);
		write_start(s, &calls[1], served, 1);
		write_start(s, &calls[2], first, 2);
		write_start(s, &calls[3], second, 3);
		call_start(s, call_read, &calls[4], first);
		wait_until(pool_stats().queued == 5);
		ck_assert_uint_eq(queued_in_lane(), 5);
		gate_open(&gate);
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(calls[4].result, 4);
	expect_bytes(served, "ab23456789");
	expect_bytes(first, "01c3456789");
	expect_bytes(second, "012d456789");
	return 0;
}

static void write_cancel(struct weft_task task, struct call *call,
			 unsigned queued)
{
	ck_assert_int_eq(weft_cancel(task), 0);
	wait_until(has_ended(call));
	ck_assert_int_eq(call->result, -ECANCELED);
	ck_assert_uint_eq(pool_stats().queued, queued);
}

/* The first, one in the middle, the last, and the first again. */
POOL_TEST(write_that_is_taken_back_holds_up_no_other, 1, 0)
{
	struct weft_task tasks[WRITERS];
	struct call calls[WRITERS], late;
	struct gate gate = { 0 };
	int fd = file_of_kind(WEFT__FD_LOCAL);
	int64_t r;

	WEFT_SCOPE(s, &r) {
		pool_busy(s, &gate);
		writers_start(s, tasks, calls, fd);
		write_cancel(tasks[0], &calls[0], 5);
		write_cancel(tasks[3], &calls[3], 4);
		ck_assert_uint_eq(line_length(), 4);
		write_cancel(tasks[5], &calls[5], 3);
		write_cancel(tasks[1], &calls[1], 2);
		ck_assert_uint_eq(queued_in_lane(), 1);
		write_start(s, &late, fd, 7);
		wait_until(pool_stats().queued == 3);
		ck_assert_uint_eq(queued_in_lane(), 1);
		ck_assert_uint_eq(line_length(), 3);
		gate_open(&gate);
	}
	ck_assert_int_eq(r, 0);
	expect_bytes(fd, "01c3e56h89");
	return 0;
}

/* A write that has waited behind another came before what is queued since. */
POOL_TEST(write_keeps_its_place_among_all, 1, 0)
{
	struct weft_task task;
	struct call calls[4];
	struct gate gate = { 0 };
	int served = file_of_kind(WEFT__FD_FILE);
	int fd = file_of_kind(WEFT__FD_LOCAL);
	int64_t r;

	WEFT_SCOPE(s, &r) {
		pool_busy(s, &gate);
		task = write_start(s, &calls[0], fd, 0);
		wait_until(pool_stats().queued == 1);
		write_start(s, &calls[1], fd, 1);
		wait_until(pool_stats().queued == 2);
		write_start(s, &calls[2], served, 2);
		wait_until(pool_stats().queued == 3);
		write_start(s, &calls[3], fd, 3);
		wait_until(pool_stats().queued == 4);
		ck_assert_uint_eq(line_length(), 3);
		write_cancel(task, &calls[0], 3);
		ck_assert_uint_eq(queued_in_lane(), 2);
		ck_assert_uint_eq(line_length(), 2);
		gate_open(&gate);
	}
	ck_assert_int_eq(r, 0);
	expect_bytes(served, "01c3456789");
	expect_bytes(fd, "0b2d456789");
	return 0;
}

POOL_TEST(close_waits_for_writes_in_the_pool, 1, 0)
{
	struct call calls[WRITERS], closer;
	struct gate gate = { 0 };
	int fd = file_of_kind(WEFT__FD_LOCAL), same = dup(fd);
	int64_t r;

	ck_assert_int_ge(same, 0);
	WEFT_SCOPE(s, &r) {
		pool_busy(s, &gate);
		for (int i = 0; i < WRITERS; i++)
			write_start(s, &calls[i], fd, i);
		wait_until(pool_stats().queued == WRITERS);
		call_start(s, call_close, &closer, fd);
		wait_until(is_closing(fd));
		/* Or a loop of such calls would hold up the close. */
		weft__worker_self()->ops_left = WEFT__OPS_BUDGET - 10;
		ck_assert_int_eq(weft_pwrite(fd, "z", 1, 9), -EBADF);
		ck_assert_int_eq(weft__worker_self()->ops_left,
				 WEFT__OPS_BUDGET - 11);
		ck_assert(!has_ended(&closer));
		gate_open(&gate);
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(closer.result, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	ck_assert_ptr_null(entry_of(fd)->last_write);
	expect_bytes(same, "abcdef6789");
	return 0;
}

/* The last that a task of the storm wrote at its offset. */
static uint32_t storm_last[STORM_TASKS];

static int64_t storm_write(void *arg)
{
	const struct call *call = arg;
	unsigned self = (unsigned)call->data[0];
	uint32_t value;

	for (unsigned i = 1; i <= STORM_WRITES; i++) {
		ssize_t r;

		value = self << 16 | i;
		/* 0: it gives up unless it is first. */
		WEFT_WITHIN(i % 5 == self % 5 ? 0 : WEFT_SEC(60))
			r = weft_pwrite(call->fd, &value, sizeof(value),
					self * (off_t)sizeof(value));
		if (r != -ETIMEDOUT)
			ck_assert_int_eq(r, sizeof(value));
		if (r > 0)
			storm_last[self] = value;
	}
	return 0;
}

/* Threads come and go, tasks give up, and a number of tasks writes on. */
POOL_TEST(each_write_of_a_storm_is_in_the_file, 3, 1)
{
	uint32_t data[STORM_TASKS];
	int fd = file_of_kind(WEFT__FD_LOCAL);
	int64_t r;

	memset(storm_last, 0, sizeof(storm_last));
	WEFT_SCOPE(s, &r)
		for (int i = 0; i < STORM_TASKS; i++) {
			struct call call = { .fd = fd, .data = { (char)i } };

			ck_assert_int_eq(weft_go(s, storm_write, &call,
						 sizeof(call)),
					 0);
		}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(pread(fd, data, sizeof(data), 0), sizeof(data));
	ck_assert_mem_eq(data, storm_last, sizeof(data));
	ck_assert_ptr_null(entry_of(fd)->waiting);
	ck_assert_ptr_null(entry_of(fd)->last_write);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

static TCase *refused(void)
{
	TCase *tcase = tcase_create("refused");

	io_add_test(tcase, transfer_that_gets_no_thread_is_made_all_the_same);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("io/position_pool");
	TCase *in_pool = tcase_create("in the pool");
	TCase *in_line = tcase_create("in line");

	io_add_test(in_pool, close_waits_for_a_transfer_in_the_pool);
	io_add_test(in_pool, number_that_a_close_gives_up_is_waited_for);
	io_add_test(in_pool, transfer_that_has_not_begun_can_be_cancelled);
	io_add_test(in_pool, others_at_the_position_go_to_the_pool_too);
	io_add_test(in_line, writes_of_one_file_take_one_thread);
	io_add_test(in_line, what_does_not_wait_for_each_other_has_threads);
	io_add_test(in_line, write_that_is_taken_back_holds_up_no_other);
	io_add_test(in_line, write_keeps_its_place_among_all);
	io_add_test(in_line, close_waits_for_writes_in_the_pool);
	io_add_test(in_line, each_write_of_a_storm_is_in_the_file);
	suite_add_tcase(suite, in_pool);
	suite_add_tcase(suite, in_line);
	if (HAS_FILTERS)
		suite_add_tcase(suite, refused());
	return io_tests_run(suite);
}
