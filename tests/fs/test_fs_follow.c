/* SPDX-License-Identifier: MIT */
/*
 * Following a file by its name or by a descriptor: each byte that a writer
 * wrote comes once, and in order, whatever happens to the name meanwhile.
 */
#include <limits.h>
#include <pthread.h>

#include "fs/follow.h"
#include "tests/support/fs_names.h"
#include "tests/support/needs.h"
#include "tests/support/pool_kit.h"

static struct weft_follow *follow;
static unsigned news;
static char text[256];

static void start(const char *name, int64_t offset)
{
	ck_assert_int_eq(weft_follow_open(fs_path(name), offset, &follow), 0);
	ck_assert(!weft_follow_polls(follow));
}

static int64_t end(void)
{
	ck_assert_int_eq(weft_follow_close(follow), 0);
	fs_root_drop();
	return 0;
}

static void expect_read(unsigned which, const char *what)
{
	ssize_t n = -1;

	WEFT_WITHIN(WEFT_SEC(20))
		n = weft_follow_read(follow, text, sizeof(text) - 1, &news);
	ck_assert_int_ge(n, 0);
	text[n] = 0;
	ck_assert_str_eq(text, what);
	ck_assert_uint_eq(news, which);
}

static void expect_nothing(void)
{
	ssize_t n = 0;

	WEFT_WITHIN(WEFT_MS(2))
		n = weft_follow_read(follow, text, sizeof(text), &news);
	ck_assert_int_eq(n, -ETIMEDOUT);
}

/* Until the file that the name means by now is known. */
static void expect_nothing_but_a_file(void)
{
	do
		expect_nothing();
	while (follow->next_fd < 0);
}

static int64_t write_later(void *arg)
{
	(void)arg;
	ck_assert_int_eq(weft_sleep(WEFT_MS(2)), 0);
	fs_write("log", "later\n");
	return 0;
}

/* ---- One file ------------------------------------------------------------ */

IO_TEST(bytes_that_are_added_are_read_from_the_offset_on)
{
	fs_root_make();
	fs_write("log", "old\n");
	start("log", WEFT_FOLLOW_END);
	expect_nothing();
	fs_write("log", "new\n");
	expect_read(0, "new\n");
	WEFT_SCOPE(scope, NULL) {
		ck_assert_int_eq(weft_go(scope, write_later, NULL, 0), 0);
		expect_read(0, "later\n");
	}
	ck_assert_int_eq(weft_follow_close(follow), 0);
	start("log", 1);
	expect_read(0, "ld\nnew\nlater\n");
	ck_assert_int_ge(weft_follow_fd(follow), 0);
	ck_assert_int_eq(weft_follow_seek(follow, -1), -EINVAL);
	ck_assert_int_eq(weft_follow_seek(follow, 8), 0);
	/* No bytes are never waited for. */
	ck_assert_int_eq(weft_follow_read(follow, text, 0, &news), 0);
	expect_read(0, "later\n");
	ck_assert_int_eq(weft_follow_read(follow, text, 0, &news), 0);
	return end();
}

IO_TEST(file_that_is_cut_is_read_from_its_start)
{
	fs_root_make();
	fs_write("log", "a long line\n");
	start("log", 0);
	expect_read(0, "a long line\n");
	/* copytruncate */
	ck_assert_int_eq(truncate(fs_path("log"), 0), 0);
	expect_read(WEFT_FOLLOW_CUT, "");
	fs_write("log", "short\n");
	expect_read(0, "short\n");
	return end();
}

/* ---- The name ------------------------------------------------------------ */

IO_TEST(old_file_is_read_on_until_the_new_one_has_bytes)
{
	int old;

	fs_root_make();
	fs_write("log", "1\n");
	old = open(fs_path("log"), O_WRONLY | O_APPEND | O_CLOEXEC);
	start("log", 0);
	expect_read(0, "1\n");
	fs_rename("log", "log.1");
	expect_read(WEFT_FOLLOW_MISSING, "");
	ck_assert_int_eq(write(old, "2\n", 2), 2);
	expect_read(0, "2\n");
	fs_make("log");
	expect_nothing();
	ck_assert_int_eq(write(old, "3\n", 2), 2);
	expect_read(0, "3\n");
	ck_assert_int_eq(write(old, "4\n", 2), 2);
	fs_write("log", "5\n");
	expect_read(0, "4\n");
	expect_read(WEFT_FOLLOW_NEW, "5\n");
	close(old);
	/* Replaced at once, as by a rename over it. */
	fs_write("other", "6\n");
	fs_rename("other", "log");
	expect_read(WEFT_FOLLOW_NEW, "6\n");
	ck_assert_int_eq(unlink(fs_path("log")), 0);
	expect_read(WEFT_FOLLOW_MISSING, "");
	return end();
}

IO_TEST(file_may_be_missing_at_first_with_its_directories)
{
	fs_root_make();
	start("a/b/log", WEFT_FOLLOW_END);
	ck_assert_int_eq(weft_follow_fd(follow), -1);
	ck_assert_int_eq(weft_follow_seek(follow, 0), -ENOENT);
	expect_read(WEFT_FOLLOW_MISSING, "");
	fs_mkdir("a");
	expect_nothing();
	fs_mkdir("a/b");
	expect_nothing();
	fs_mkdir("a/b/log");
	expect_nothing();
	ck_assert_int_eq(rmdir(fs_path("a/b/log")), 0);
	fs_write("a/b/log", "here\n");
	expect_read(WEFT_FOLLOW_NEW, "here\n");
	/* The directory gives way to another. */
	fs_rename("a", "old");
	expect_read(WEFT_FOLLOW_MISSING, "");
	fs_mkdir("a");
	fs_mkdir("a/b");
	fs_write("a/b/log", "again\n");
	expect_read(WEFT_FOLLOW_NEW, "again\n");
	return end();
}

IO_TEST(links_on_the_way_are_followed_as_they_change)
{
	fs_root_make();
	fs_mkdir("1");
	fs_mkdir("2");
	fs_write("1/log", "one\n");
	fs_write("2/log", "two\n");
	fs_write("2/other", "three\n");
	ck_assert_int_eq(symlink("1", fs_path("current")), 0);
	ck_assert_int_eq(symlink("current/log", fs_path("log")), 0);
	start("log", 0);
	expect_read(0, "one\n");
	fs_write("1/log", "more\n");
	expect_read(0, "more\n");
	ck_assert_int_eq(symlink("2", fs_path("next")), 0);
	fs_rename("next", "current");
	expect_read(WEFT_FOLLOW_NEW, "two\n");
	ck_assert_int_eq(symlink(fs_path("2/other"), fs_path("next")), 0);
	fs_rename("next", "log");
	expect_read(WEFT_FOLLOW_NEW, "three\n");
	/* In a circle. */
	ck_assert_int_eq(symlink("log", fs_path("next")), 0);
	fs_rename("next", "log");
	expect_read(WEFT_FOLLOW_MISSING, "");
	return end();
}

IO_TEST(path_that_no_file_can_have_is_missing)
{
	char name[NAME_MAX + 16];

	fs_root_make();
	fs_write("log", "1\n");
	start("log/", 0);
	ck_assert_int_eq(weft_follow_fd(follow), -1);
	expect_read(WEFT_FOLLOW_MISSING, "");
	ck_assert_int_eq(weft_follow_close(follow), 0);
	snprintf(name, sizeof(name), "log/%0*d", NAME_MAX + 1, 0);
	start(name, 0);
	ck_assert_int_eq(weft_follow_fd(follow), -1);
	expect_read(WEFT_FOLLOW_MISSING, "");
	ck_assert_int_eq(weft_follow_close(follow), 0);
	start("./log", 0);
	expect_read(0, "1\n");
	return end();
}

/* ---- The descriptor ------------------------------------------------------ */

static int open_to_read(const char *name)
{
	int fd = open(fs_path(name), O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* A new file of the name is another file; the old one goes on without a
 * name. */
IO_TEST(file_of_a_descriptor_is_followed_whatever_its_name)
{
	int fd;

	fs_root_make();
	fs_write("log", "1\n2\n");
	fd = open_to_read("log");
	ck_assert_int_eq(weft_follow_open_fd(fd, 2, &follow), 0);
	ck_assert(!weft_follow_polls(follow));
	ck_assert_int_eq(weft_follow_fd(follow), fd);
	expect_read(0, "2\n");
	fs_rename("log", "log.1");
	fs_write("log", "other\n");
	expect_nothing();
	fs_write("log.1", "3\n");
	expect_read(0, "3\n");
	fs_write("log", "other\n");
	expect_nothing();
	fd = open(fs_path("log.1"), O_WRONLY | O_APPEND | O_CLOEXEC);
	ck_assert_int_eq(unlink(fs_path("log.1")), 0);
	expect_nothing();
	ck_assert_int_eq(write(fd, "4\n", 2), 2);
	expect_read(0, "4\n");
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	expect_read(WEFT_FOLLOW_CUT, "");
	ck_assert_int_eq(write(fd, "5\n", 2), 2);
	expect_read(0, "5\n");
	close(fd);
	fs_rename("log", "log.1");
	expect_nothing();
	return end();
}

IO_TEST(descriptor_is_followed_from_its_end_by_a_stream)
{
	struct weft_stream stream;
	char line[32];

	fs_root_make();
	fs_write("log", "old\n");
	ck_assert_int_eq(weft_follow_open_fd(open_to_read("log"),
					     WEFT_FOLLOW_END, &follow),
			 0);
	weft_follow_stream(follow, &stream);
	WEFT_SCOPE(scope, NULL) {
		ck_assert_int_eq(weft_go(scope, write_later, NULL, 0), 0);
		ck_assert_int_eq(weft_stream_line(&stream, line, sizeof(line)),
				 6);
	}
	ck_assert_str_eq(line, "later\n");
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return end();
}

/* The descriptor stays the caller's. */
IO_TEST(descriptor_of_no_readable_file_is_refused)
{
	int fds[2], fd;

	fs_root_make();
	fs_write("log", "1\n");
	ck_assert_int_eq(weft_follow_open_fd(-1, 0, &follow), -EBADF);
	fd = open(fs_path("log"), O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(weft_follow_open_fd(fd, 0, &follow), -EBADF);
	ck_assert_int_eq(close(fd), 0);
	fd = open(fs_path("log"), O_PATH | O_CLOEXEC);
	ck_assert_int_eq(weft_follow_open_fd(fd, 0, &follow), -EBADF);
	ck_assert_int_eq(close(fd), 0);
	fd = open_to_read("log");
	ck_assert_int_eq(weft_follow_open_fd(fd, -2, &follow), -EINVAL);
	ck_assert_int_eq(close(fd), 0);
	fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(weft_follow_open_fd(fd, 0, &follow), -EINVAL);
	ck_assert_int_eq(close(fd), 0);
	fd = open(fs_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(weft_follow_open_fd(fd, 0, &follow), -EINVAL);
	ck_assert_int_eq(close(fd), 0);
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(weft_follow_open_fd(fds[0], 0, &follow), -EINVAL);
	close(fds[0]);
	close(fds[1]);
	fs_root_drop();
	return 0;
}

/* ---- A writer that rotates ----------------------------------------------- */

enum { LINES = 4000, LINES_A_FILE = 50 };

/* Rotations that the reader misses lose a whole file, as with any tail; so the
 * writer waits for the reader now and then. */
static weft__atomic(int) lines_read;

static void *rotate_in_step(void *arg)
{
	int fd = -1;

	(void)arg;
	for (int i = 0; i < LINES; i++) {
		if (i % LINES_A_FILE == 0 && fd >= 0) {
			/* pairs: [test.lines] */
			while (weft__load(&lines_read, acquire) <
			       i - LINES_A_FILE + 10)
				thread_pause_ns(50000);
			fs_rename("log", "log.1");
		}
		if (fd < 0 || i % LINES_A_FILE == 7) {
			if (fd >= 0)
				close(fd);
			fd = open(fs_path("log"),
				  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
				  0600);
		}
		if (fd < 0 || dprintf(fd, "%d\n", i) < 0)
			return &lines_read;
	}
	close(fd);
	return NULL;
}

IO_TEST(no_line_of_a_rotating_writer_is_lost)
{
	struct weft_stream stream;
	pthread_t thread;
	void *failed;

	fs_root_make();
	/* relaxed: before the thread is made. */
	weft__store(&lines_read, 0, relaxed);
	start("log", 0);
	weft_follow_stream(follow, &stream);
	ck_assert_int_eq(pthread_create(&thread, NULL, rotate_in_step, NULL),
			 0);
	for (int i = 0; i < LINES; i++) {
		char line[32];
		ssize_t n = -1;

		WEFT_WITHIN(WEFT_SEC(20))
			n = weft_stream_line(&stream, line, sizeof(line));
		ck_assert_int_gt(n, 0);
		ck_assert_int_eq(atoi(line), i);
		/* pairs: [test.lines] */
		weft__store(&lines_read, i + 1, release);
	}
	ck_assert_int_eq(pthread_join(thread, &failed), 0);
	ck_assert_ptr_null(failed);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return end();
}

/* The writer is faster: between two looks of the reader there is more than one
 * rotation, but the new file was known by then. */
IO_TEST(known_file_is_read_before_the_name_is_followed)
{
	int fd;

	fs_root_make();
	fs_write("log", "1\n");
	start("log", 0);
	expect_read(0, "1\n");
	fs_rename("log", "log.2");
	expect_read(WEFT_FOLLOW_MISSING, "");
	fs_make("log");
	expect_nothing_but_a_file();
	fd = open(fs_path("log"), O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(write(fd, "2\n", 2), 2);
	close(fd);
	fs_rename("log", "log.1");
	fs_write("log", "3\n");
	expect_read(WEFT_FOLLOW_NEW, "2\n");
	expect_read(WEFT_FOLLOW_NEW, "3\n");
	fs_rename("log", "log.0");
	expect_read(WEFT_FOLLOW_MISSING, "");
	fs_make("log");
	expect_nothing_but_a_file();
	fs_write("log", "4\n");
	ck_assert_int_eq(unlink(fs_path("log")), 0);
	expect_read(WEFT_FOLLOW_NEW, "4\n");
	expect_read(WEFT_FOLLOW_MISSING, "");
	return end();
}

IO_TEST(name_is_looked_at_again_after_an_overflow)
{
	int max = fs_queued_max();

	if (!test_needs(max > 0 && max <= 1 << 16,
			"name_is_looked_at_again_after_an_overflow",
			"a max_queued_events of at most 65536"))
		return 0;
	fs_root_make();
	fs_write("log", "1\n");
	fs_make("a");
	start("log", 0);
	expect_read(0, "1\n");
	for (int i = 0; i < max / 4 + 2; i++) {
		fs_rename("a", "b");
		fs_rename("b", "a");
	}
	/* The kernel does not tell of it. */
	fs_rename("log", "old");
	fs_write("log", "2\n");
	expect_read(WEFT_FOLLOW_NEW, "2\n");
	return end();
}

static int64_t read_in_vain(void *arg)
{
	char buf[16];

	(void)arg;
	return weft_follow_read(follow, buf, sizeof(buf), NULL);
}

/* The path is resolved on a thread of the pool. */
static int64_t interrupt_in_the_queue(void *arg)
{
	(void)arg;
	fs_root_make();
	fs_write("log", "1\n");
	start("log", 0);
	expect_read(0, "1\n");
	fs_rename("log", "log.1");
	fs_write("log", "2\n");
	WEFT_SUPERVISE(scope) {
		pool_take(scope);
		pool_interrupt(read_in_vain);
		pool_free();
	}
	expect_read(WEFT_FOLLOW_NEW, "2\n");
	return end();
}

START_TEST(interrupted_read_loses_no_change_of_the_name)
{
	pool_run(interrupt_in_the_queue, 1 + (unsigned)_i);
}
END_TEST

static int64_t open_in_vain(void *arg)
{
	(void)arg;
	return weft_follow_open(fs_path("log"), 0, &follow);
}

static int64_t interrupt_an_open(void *arg)
{
	(void)arg;
	fs_root_make();
	fs_write("log", "1\n");
	WEFT_SUPERVISE(scope) {
		pool_take(scope);
		pool_interrupt(open_in_vain);
		pool_free();
	}
	fs_root_drop();
	return 0;
}

/* io_run_opts() looks whether the descriptors are closed. */
START_TEST(interrupted_open_leaves_nothing)
{
	pool_run(interrupt_an_open, 1 + (unsigned)_i);
}
END_TEST

/* ---- Where inotify cannot work ------------------------------------------- */

static int64_t follow_by_looks(void *arg)
{
	(void)arg;
	fs_root_make();
	fs_write("log", "1\n");
	ck_assert_int_eq(weft_follow_open(fs_path("log"), 0, &follow), 0);
	ck_assert(weft_follow_polls(follow));
	expect_read(0, "1\n");
	fs_write("log", "2\n");
	fs_rename("log", "old");
	fs_write("log", "3\n");
	expect_read(0, "2\n");
	expect_read(WEFT_FOLLOW_NEW, "3\n");
	ck_assert_int_eq(weft_follow_close(follow), 0);
	ck_assert_int_eq(weft_follow_open_fd(open_to_read("log"), 0, &follow),
			 0);
	ck_assert(weft_follow_polls(follow));
	expect_read(0, "3\n");
	fs_rename("log", "older");
	expect_nothing();
	fs_write("older", "4\n");
	expect_read(0, "4\n");
	return end();
}

/* A user's limits, in a user namespace. */
static bool limit_inotify(void)
{
	return fs_limit("max_inotify_instances", 0);
}

START_TEST(without_inotify_the_name_is_looked_at_every_second)
{
	if (test_needs(limit_inotify(),
		       "without_inotify_the_name_is_looked_at_every_second",
		       "a user namespace with limits"))
		io_run(follow_by_looks, NULL, 1);
}
END_TEST

IO_TEST(mistakes_are_refused)
{
	static char path[PATH_MAX + 2];

	memset(path, 'x', PATH_MAX);
	ck_assert_int_eq(weft_follow_open(NULL, 0, &follow), -EFAULT);
	ck_assert_int_eq(weft_follow_open("", 0, &follow), -EINVAL);
	ck_assert_int_eq(weft_follow_open("x", -2, &follow), -EINVAL);
	ck_assert_int_eq(weft_follow_open(path, 0, &follow), -ENAMETOOLONG);
	ck_assert_int_eq(weft_follow_close(NULL), 0);
	return 0;
}

START_TEST(calls_need_a_task)
{
	ck_assert_int_eq(weft_follow_open("x", 0, &follow), -EPERM);
	ck_assert_int_eq(weft_follow_open_fd(0, 0, &follow), -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fs/follow");
	TCase *tc = tcase_create("follow");

	tcase_set_timeout(tc, 60);
	io_add_test(tc, bytes_that_are_added_are_read_from_the_offset_on);
	io_add_test(tc, file_that_is_cut_is_read_from_its_start);
	io_add_test(tc, old_file_is_read_on_until_the_new_one_has_bytes);
	io_add_test(tc, file_may_be_missing_at_first_with_its_directories);
	io_add_test(tc, links_on_the_way_are_followed_as_they_change);
	/* With one worker: the reader must come after all of it. */
	tcase_add_loop_test(tc, known_file_is_read_before_the_name_is_followed,
			    0, 1);
	io_add_test(tc, name_is_looked_at_again_after_an_overflow);
	io_add_test(tc, path_that_no_file_can_have_is_missing);
	io_add_test(tc, interrupted_read_loses_no_change_of_the_name);
	io_add_test(tc, interrupted_open_leaves_nothing);
	io_add_test(tc, file_of_a_descriptor_is_followed_whatever_its_name);
	io_add_test(tc, descriptor_is_followed_from_its_end_by_a_stream);
	io_add_test(tc, descriptor_of_no_readable_file_is_refused);
	io_add_test(tc, no_line_of_a_rotating_writer_is_lost);
	tcase_add_test(tc, without_inotify_the_name_is_looked_at_every_second);
	io_add_test(tc, mistakes_are_refused);
	tcase_add_test(tc, calls_need_a_task);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
