/* SPDX-License-Identifier: MIT */
/*
 * Follows of files whose server may not answer.  A system call on the worker's
 * thread would then hold up all of its tasks.
 */
#include <sys/syscall.h>

#include "tests/support/child_kit.h"
#include "tests/support/fs_names.h"
#include "tests/support/needs.h"
#include "tests/support/refuse_calls.h"

static int64_t do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* The pool's only thread is there before the filter, which is for the thread
 * of the worker alone. */
static void refuse_status(void)
{
	static const unsigned calls[] = {
		SYS_fstat,
#ifdef SYS_newfstatat
		SYS_newfstatat,
#endif
	};

	NEED(weft_blocking(do_nothing, NULL) == 0);
	NEED(refuse_calls(calls, sizeof(calls) / sizeof(calls[0]), EIO));
}

static void read_one(struct weft_follow *follow, const char *text)
{
	char buf[32];
	unsigned news = 99;
	ssize_t n = -1;

	fs_write("log", text);
	WEFT_WITHIN (WEFT_SEC(20))
		n = weft_follow_read(follow, buf, sizeof(buf), &news);
	NEED(n == (ssize_t)strlen(text));
	NEED(memcmp(buf, text, strlen(text)) == 0);
	NEED(news == 0);
	NEED(weft_follow_close(follow) == 0);
}

static int64_t open_at_the_end(void *arg)
{
	struct weft_follow *follow;
	int fd = open(fs_path("log"), O_RDONLY | O_CLOEXEC);

	(void)arg;
	NEED(fd >= 0);
	refuse_status();
	NEED(weft_follow_open(fs_path("log"), WEFT_FOLLOW_END, &follow) == 0);
	read_one(follow, "by its name\n");
	NEED(weft_follow_open_fd(fd, WEFT_FOLLOW_END, &follow) == 0);
	read_one(follow, "by a descriptor\n");
	return 0;
}

static void expect_read(struct weft_follow *follow, const char *text,
			unsigned expected)
{
	char buf[32];
	unsigned news = 99;
	ssize_t n = -1;

	WEFT_WITHIN(WEFT_SEC(20))
		n = weft_follow_read(follow, buf, sizeof(buf), &news);
	NEED(n == (ssize_t)strlen(text));
	NEED(memcmp(buf, text, strlen(text)) == 0);
	NEED(news == expected);
}

/* Nothing is there, the file is cut, and the name comes to mean another. */
static int64_t read_on(void *arg)
{
	struct weft_follow *follow;
	char buf[32];
	ssize_t n = -1;

	(void)arg;
	refuse_status();
	NEED(weft_follow_open(fs_path("log"), WEFT_FOLLOW_END, &follow) == 0);
	WEFT_WITHIN(WEFT_MS(5))
		n = weft_follow_read(follow, buf, sizeof(buf), NULL);
	NEED(n == -ETIMEDOUT);
	NEED(truncate(fs_path("log"), 0) == 0);
	fs_write("log", "x\n");
	expect_read(follow, "x\n", WEFT_FOLLOW_CUT);
	NEED(rename(fs_path("log"), fs_path("log.1")) == 0);
	fs_write("log", "new\n");
	expect_read(follow, "new\n", WEFT_FOLLOW_NEW);
	return weft_follow_close(follow);
}

static int64_t run_with_one_thread(void *arg)
{
	weft_fn fn = *(weft_fn *)arg;
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	opts.blocking_threads_max = 1;
	opts.blocking_idle_ns = WEFT_SEC(3600);
	return weft_run(fn, NULL, &opts);
}

START_TEST(size_at_the_open_is_not_asked_for_on_the_worker)
{
	static weft_fn fn = open_at_the_end;

	fs_root_make();
	fs_write("log", "old\n");
	child_run(run_with_one_thread, &fn);
	fs_root_drop();
}
END_TEST

START_TEST(size_is_not_asked_for_on_the_worker_by_a_read)
{
	static weft_fn fn = read_on;

	fs_root_make();
	fs_write("log", "old\n");
	child_run(run_with_one_thread, &fn);
	fs_root_drop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fs/follow_worker");
	TCase *tc = tcase_create("worker");

	if (test_needs(test_can(child_may_refuse), "test_fs_follow_worker",
		       NEEDS_REFUSED_CALLS)) {
		tcase_add_test(tc,
			       size_at_the_open_is_not_asked_for_on_the_worker);
		tcase_add_test(tc,
			       size_is_not_asked_for_on_the_worker_by_a_read);
	}
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
