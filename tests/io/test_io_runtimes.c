/* SPDX-License-Identifier: MIT */
/*
 * Two runtimes that use the same descriptor: a close by one of them is refused
 * while the other waits on it.
 */
#include <sys/wait.h>

#include "tests/support/io_future.h"

static struct weft_runtime *other;

/* The work of a task of the other runtime, and its result once it has ended. */
struct job {
	int fd;
	weft_fn fn;
	weft__atomic(int64_t) result;
};

#define NONE_YET INT64_MIN

static int64_t job_run(void *arg)
{
	struct job *job = *(struct job **)arg;

	weft__store(&job->result, job->fn(&job->fd), release);
	return 0;
}

static void job_start(struct job *job, weft_fn fn, int fd)
{
	*job = (struct job){ .fd = fd, .fn = fn, .result = NONE_YET };
	ck_assert_int_eq(weft_submit(other, job_run, &job, sizeof(job), NULL),
			 0);
}

static int64_t job_end(struct job *job)
{
	wait_until(weft__load(&job->result, acquire) != NONE_YET);
	return job->result;
}

static struct weft__fd *entry_there(int fd)
{
	return weft__fd_find(&weft__reactor(other)->fds, fd);
}

static bool waits_there(int fd)
{
	struct weft__fd *entry = entry_there(fd);
	bool waits;

	if (!entry)
		return false;
	weft__lock_take(&entry->lock);
	waits = entry->waiting || entry->owned;
	weft__lock_drop(&entry->lock);
	return waits;
}

static int64_t read_one(void *arg)
{
	char byte;

	return weft_read(*(int *)arg, &byte, 1);
}

static int64_t pread_all(void *arg)
{
	char data[16];

	return weft_pread(*(int *)arg, data, sizeof(data), 0);
}

static void pipe_new(int fds[2])
{
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
}

/* Runs the task beside another runtime. */
static void run_beside(weft_fn fn, unsigned workers)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	int before = fds_open();

	opts.workers = workers;
	ck_assert_int_eq(weft_start(&opts, &other), 0);
	ck_assert_int_eq(weft_run(fn, NULL, &opts), 0);
	ck_assert_int_eq(weft_stop(other), 0);
	expect_fds(before);
}

#define BESIDE_TEST(name)                               \
	static int64_t name##_task(void *arg);          \
	START_TEST(name)                                \
	{                                               \
		run_beside(name##_task, _i ? 2 : 1);    \
	}                                               \
	END_TEST                                        \
	static int64_t name##_task(void *arg __attribute__((unused)))

BESIDE_TEST(close_is_refused_while_another_runtime_waits)
{
	struct job job;
	int fds[2];

	pipe_new(fds);
	job_start(&job, read_one, fds[0]);
	wait_until(waits_there(fds[0]));
	ck_assert_int_eq(weft_close(fds[0]), -EBUSY);
	ck_assert_int_eq(weft_write(fds[1], "x", 1), 1);
	ck_assert_int_eq(job_end(&job), 1);
	close_both(fds);
	ck_assert_int_eq(weft_close(fds[0]), -EBADF);
	return 0;
}

static int64_t await_close(void *arg)
{
	return weft_await_close(*(int *)arg);
}

BESIDE_TEST(close_by_a_future_is_refused_too)
{
	struct job job;
	int fds[2];
	int64_t r;

	pipe_new(fds);
	job_start(&job, read_one, fds[0]);
	wait_until(waits_there(fds[0]));
	WEFT_SCOPE(s, &r)
		ck_assert_int_eq(join(start_future(s, await_close, &fds[0],
						   sizeof(fds[0]))),
				 -EBUSY);
	ck_assert_int_eq(weft_write(fds[1], "x", 1), 1);
	ck_assert_int_eq(job_end(&job), 1);
	close_both(fds);
	return 0;
}

static weft__atomic(bool) may_end;

/* Owns its descriptor from the first read to the close. */
static int64_t stream_there(void *arg)
{
	struct weft_stream stream = WEFT_STREAM_INIT(*(int *)arg);
	const void *data;

	ck_assert_int_eq(weft_stream_peek(&stream, &data), 1);
	while (!weft__load(&may_end, acquire))
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	return weft_stream_close(&stream);
}

BESIDE_TEST(close_is_refused_while_a_stream_elsewhere_owns_it)
{
	struct job job;
	int fds[2];

	weft__store(&may_end, false, relaxed);
	socket_pair(fds);
	ck_assert_int_eq(weft_write(fds[1], "x", 1), 1);
	job_start(&job, stream_there, fds[0]);
	wait_until(waits_there(fds[0]));
	ck_assert_int_eq(weft_close(fds[0]), -EBUSY);
	weft__store(&may_end, true, release);
	ck_assert_int_eq(job_end(&job), 0);
	ck_assert_int_eq(weft_close(fds[0]), -EBADF);
	ck_assert_int_eq(weft_close(fds[1]), 0);
	return 0;
}

static int64_t poll_there(void *arg)
{
	return weft_poll(*(int *)arg, POLLIN);
}

/* And the stream goes on. */
BESIDE_TEST(stream_is_not_closed_while_another_runtime_waits)
{
	struct weft_stream stream;
	const void *data;
	struct job job;
	int fds[2];

	socket_pair(fds);
	job_start(&job, poll_there, fds[0]);
	wait_until(waits_there(fds[0]));
	weft_stream_init(&stream, fds[0]);
	ck_assert_int_eq(weft_stream_close(&stream), -EBUSY);
	ck_assert_int_eq(weft_write(fds[1], "x", 1), 1);
	ck_assert_int_eq(job_end(&job), POLLIN);
	ck_assert_int_eq(weft_stream_peek(&stream, &data), 1);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	ck_assert_int_eq(weft_close(fds[1]), 0);
	return 0;
}

/* The other runtime still knows the kind of the file that was closed. */
BESIDE_TEST(number_that_another_runtime_closed_is_used_again)
{
	char path[] = "/tmp/weft-runtimes-XXXXXX";
	struct job job;
	int fds[2], fd;

	pipe_new(fds);
	ck_assert_int_eq(weft_write(fds[1], "x", 1), 1);
	job_start(&job, read_one, fds[0]);
	ck_assert_int_eq(job_end(&job), 1);
	close_both(fds);
	fd = mkostemp(path, O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	unlink(path);
	if (fd != fds[0]) {
		ck_assert_int_eq(dup3(fd, fds[0], O_CLOEXEC), fds[0]);
		ck_assert_int_eq(weft_close(fd), 0);
	}
	ck_assert_int_eq(weft_write(fds[0], "contents", 8), 8);
	job_start(&job, pread_all, fds[0]);
	ck_assert_int_eq(job_end(&job), 8);
	ck_assert_int_eq(weft_close(fds[0]), 0);
	return 0;
}

#ifndef WEFT__TSAN /* TSan lets a forked child start no threads */
static int64_t close_it(void *arg)
{
	return weft_close(*(int *)arg);
}

/* Beside a second runtime, as a single one would not look at others. */
static int close_in_child(int fd)
{
	struct weft_runtime *second;
	int64_t r;

	if (weft_start(NULL, &second) < 0)
		return 2;
	r = weft_run(close_it, &fd, NULL);
	return r == 0 && weft_stop(second) == 0 ? 9 : 1;
}

/* No task of the parent's runtimes runs there. */
BESIDE_TEST(forked_child_closes_what_its_parent_waits_on)
{
	struct job job;
	int fds[2], status;
	pid_t child;

	pipe_new(fds);
	job_start(&job, read_one, fds[0]);
	wait_until(waits_there(fds[0]));
	child = fork();
	if (child == 0)
		_exit(close_in_child(fds[0]));
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 9);
	ck_assert_int_eq(weft_write(fds[1], "x", 1), 1);
	ck_assert_int_eq(job_end(&job), 1);
	close_both(fds);
	return 0;
}
#endif

int main(void)
{
	Suite *suite = suite_create("io/runtimes");
	TCase *tcase = tcase_create("two");

	tcase_set_timeout(tcase, 60);
	io_add_test(tcase, close_is_refused_while_another_runtime_waits);
	io_add_test(tcase, close_by_a_future_is_refused_too);
	io_add_test(tcase, close_is_refused_while_a_stream_elsewhere_owns_it);
	io_add_test(tcase, stream_is_not_closed_while_another_runtime_waits);
	io_add_test(tcase, number_that_another_runtime_closed_is_used_again);
#ifndef WEFT__TSAN
	io_add_test(tcase, forked_child_closes_what_its_parent_waits_on);
#endif
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}
