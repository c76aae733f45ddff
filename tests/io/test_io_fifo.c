/* SPDX-License-Identifier: MIT */
/*
 * Opening a FIFO: one open meets the other end once, whichever end comes first,
 * and both ends stay open until they are closed.
 *
 * The other end is a thread that makes plain calls.  An end that was let
 * through and closed again would show as EPIPE, as lost bytes, or as an open
 * that never returns.
 */
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/stat.h>

#include "tests/support/io_kit.h"

enum { ROUNDS = 60 };

struct fifo {
	char path[64];
	char link[64];
	weft__atomic(int) thread; /* of the other end, once it is to open */
	ssize_t moved;		  /* by the other end: bytes, or -errno */
};

/* A new one for each round: the kernel may drop the file of a request, and so
 * an end, a moment after the close. */
static void fifo_make(struct fifo *fifo)
{
	snprintf(fifo->path, sizeof(fifo->path), "/tmp/weft-fifo3-%d",
		 (int)getpid());
	snprintf(fifo->link, sizeof(fifo->link), "/tmp/weft-fifo3-%d-link",
		 (int)getpid());
	unlink(fifo->path);
	unlink(fifo->link);
	ck_assert_int_eq(mkfifo(fifo->path, 0600), 0);
	ck_assert_int_eq(symlink(fifo->path, fifo->link), 0);
	/* A write to a closed end is to be an error, not the end of all. */
	signal(SIGPIPE, SIG_IGN);
}

static void fifo_drop(struct fifo *fifo)
{
	unlink(fifo->path);
	unlink(fifo->link);
}

/* ---- The other end ------------------------------------------------------- */

static ssize_t result(ssize_t r)
{
	return r < 0 ? -errno : r;
}

static void *write_hello(void *arg)
{
	struct fifo *fifo = arg;
	int fd;

	weft__store(&fifo->thread, (int)syscall(SYS_gettid), release);
	fd = open(fifo->path, O_WRONLY | O_CLOEXEC);
	fifo->moved = result(fd < 0 ? fd : write(fd, "hello", 5));
	if (fd >= 0)
		close(fd);
	return NULL;
}

static void *read_hello(void *arg)
{
	struct fifo *fifo = arg;
	char text[8];
	int fd;

	weft__store(&fifo->thread, (int)syscall(SYS_gettid), release);
	fd = open(fifo->path, O_RDONLY | O_CLOEXEC);
	fifo->moved = result(fd < 0 ? fd : read(fd, text, sizeof(text)));
	if (fd >= 0)
		close(fd);
	return NULL;
}

/* Does the thread sleep?  It does so in open(2), or is about to. */
static bool sleeps(int thread)
{
	char path[64], line[128] = "";
	const char *name_end;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, line, sizeof(line) - 1) < 0)
		line[0] = '\0';
	if (fd >= 0)
		close(fd);
	name_end = strrchr(line, ')');
	return name_end && !strncmp(name_end, ") S", 3);
}

static pthread_t other_end(struct fifo *fifo, void *(*fn)(void *))
{
	pthread_t thread;

	/* relaxed: the thread has not been started. */
	weft__store(&fifo->thread, 0, relaxed);
	ck_assert_int_eq(pthread_create(&thread, NULL, fn, fifo), 0);
	/* The harder case is the one in which it waits already. */
	wait_until(weft__load(&fifo->thread, acquire) &&
		   sleeps(weft__load(&fifo->thread, acquire)));
	return thread;
}

/* ---- Ways to open -------------------------------------------------------- */

static int by_open(const struct fifo *fifo, int flags)
{
	return weft_open(fifo->path, flags, 0);
}

/* The caller may have little time: the directory is not a part of it. */
static int by_openat(const struct fifo *fifo, int flags)
{
	int dir_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = weft_openat(dir_fd, strrchr(fifo->path, '/') + 1, flags, 0);

	ck_assert_int_eq(weft_close(dir_fd), 0);
	return fd;
}

static int by_openat2(const struct fifo *fifo, int flags)
{
	struct open_how how = {
		.flags = (unsigned)flags,
		.resolve = RESOLVE_NO_MAGICLINKS,
	};

	return weft_openat2(AT_FDCWD, fifo->path, &how, sizeof(how));
}

static int by_link(const struct fifo *fifo, int flags)
{
	return weft_open(fifo->link, flags, 0);
}

static int by_creating(const struct fifo *fifo, int flags)
{
	return weft_open(fifo->path, flags | O_CREAT, 0600);
}

static int by_truncating(const struct fifo *fifo, int flags)
{
	return weft_open(fifo->path, flags | O_TRUNC | O_NOFOLLOW, 0);
}

static int (*const ways[])(const struct fifo *fifo, int flags) = {
	by_open, by_openat, by_openat2, by_link, by_creating, by_truncating,
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* ---- Tests --------------------------------------------------------------- */

/* Opens the FIFO in one of the ways, while a thread waits at the other end. */
static int meet(struct fifo *fifo, unsigned way, int flags,
		void *(*other)(void *), pthread_t *ret_thread)
{
	int fd = -1;

	fifo_make(fifo);
	*ret_thread = other_end(fifo, other);
	WEFT_WITHIN(WEFT_SEC(20))
		fd = ways[way](fifo, flags);
	ck_assert_msg(fd >= 0, "way %u: %d", way, fd);
	return fd;
}

/* The other end has moved all of it. */
static void part(struct fifo *fifo, int fd, pthread_t thread)
{
	ck_assert_int_eq(weft_close(fd), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(fifo->moved, 5);
	fifo_drop(fifo);
}

IO_TEST(waiting_writer_meets_its_reader_once)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		struct fifo fifo;
		char text[8];
		int fd = meet(&fifo, i % WAYS, O_RDONLY, write_hello, &thread);

		ck_assert_int_eq(weft_read(fd, text, sizeof(text)), 5);
		ck_assert_int_eq(weft_read(fd, text, sizeof(text)), 0);
		part(&fifo, fd, thread);
	}
	return 0;
}

IO_TEST(waiting_reader_meets_its_writer_once)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		struct fifo fifo;
		int fd = meet(&fifo, i % WAYS, O_WRONLY, read_hello, &thread);

		ck_assert_int_eq(weft_write(fd, "hello", 5), 5);
		part(&fifo, fd, thread);
	}
	return 0;
}

/* Names in the kernel's cache must not lead to an open that does not wait. */
IO_TEST(end_that_is_alone_waits)
{
	static const int flags[] = { O_RDONLY, O_WRONLY };

	for (unsigned i = 0; i < 2 * WAYS; i++) {
		struct fifo fifo;
		struct stat status;
		int fd = 0;

		fifo_make(&fifo);
		ck_assert_int_eq(stat(fifo.link, &status), 0);
		WEFT_WITHIN(WEFT_MS(2))
			fd = ways[i % WAYS](&fifo, flags[i / WAYS]);
		ck_assert_msg(fd == -ETIMEDOUT, "way %u: %d", i, fd);
		fifo_drop(&fifo);
	}
	return 0;
}

/* With O_NONBLOCK the call returns what open(2) returns. */
IO_TEST(nonblocking_open_of_a_fifo_does_not_wait)
{
	/* The name is in the cache, and that is enough. */
	struct open_how cached = { .flags = O_PATH,
				   .resolve = RESOLVE_CACHED };
	struct fifo fifo;
	int fds[2];

	fifo_make(&fifo);
	ck_assert_int_eq(by_open(&fifo, O_WRONLY | O_NONBLOCK), -ENXIO);
	ck_assert_int_eq(by_openat2(&fifo, O_WRONLY | O_NONBLOCK), -ENXIO);
	fds[0] = by_open(&fifo, O_RDONLY | O_NONBLOCK);
	ck_assert_int_ge(fds[0], 0);
	fds[1] = by_openat2(&fifo, O_RDONLY | O_NONBLOCK);
	ck_assert_int_ge(fds[1], 0);
	close_both(fds);
	fds[0] = by_open(&fifo, O_PATH);
	ck_assert_int_ge(fds[0], 0);
	ck_assert_int_eq(weft_close(fds[0]), 0);
	fds[0] = weft_openat2(AT_FDCWD, fifo.path, &cached, sizeof(cached));
	ck_assert_int_ge(fds[0], 0);
	/* On Linux such an end waits for none. */
	fds[1] = by_open(&fifo, O_RDWR);
	ck_assert_int_ge(fds[1], 0);
	close_both(fds);
	fifo_drop(&fifo);
	return 0;
}

/* The look at the type must not change which error the caller gets. */
IO_TEST(errors_are_those_of_open)
{
	static const struct {
		const char *path;
		int flags, error;
	} tries[] = {
		{ "/tmp/weft-none", O_RDONLY, -ENOENT },
		{ "/proc/self/exe/x", O_RDONLY, -ENOTDIR },
		{ "/proc/self/exe", O_RDONLY | O_DIRECTORY, -ENOTDIR },
		{ "/proc/self/exe", O_RDONLY | O_NOFOLLOW, -ELOOP },
		{ "/tmp", O_WRONLY, -EISDIR },
		{ "/tmp", O_WRONLY | O_CREAT, -EISDIR },
		{ "", O_RDONLY, -ENOENT },
	};
	struct open_how how = { .flags = O_RDONLY,
				.resolve = RESOLVE_BENEATH };

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		int r = weft_open(tries[i].path, tries[i].flags, 0600);

		ck_assert_msg(r == tries[i].error, "try %zu: %d", i, r);
	}
	ck_assert_int_eq(weft_openat2(AT_FDCWD, "/tmp", &how, sizeof(how)),
			 -EXDEV);
	how.resolve = RESOLVE_NO_SYMLINKS;
	ck_assert_int_eq(weft_openat2(AT_FDCWD, "/proc/self/exe", &how,
				      sizeof(how)),
			 -ELOOP);
	ck_assert_int_eq(weft_openat(-1, "x", O_RDONLY, 0), -EBADF);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/fifo");
	TCase *tc = tcase_create("opening");

	tcase_set_timeout(tc, 60);
	io_add_test(tc, waiting_writer_meets_its_reader_once);
	io_add_test(tc, waiting_reader_meets_its_writer_once);
	io_add_test(tc, end_that_is_alone_waits);
	io_add_test(tc, nonblocking_open_of_a_fifo_does_not_wait);
	io_add_test(tc, errors_are_those_of_open);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
