/* SPDX-License-Identifier: MIT */
/*
 * Opening a FIFO: one open meets the other end once, whichever end comes first,
 * and both ends stay open until they are closed.
 *
 * The other end is a thread that makes plain calls.  An end that was let
 * through and closed again would show as EPIPE, as lost bytes, or as an open
 * that never returns.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/stat.h>

#include "tests/support/engine.h"
#include "tests/support/fifo_kit.h"
#include "tests/support/threads.h"

enum { ROUNDS = 60 };

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

/* ---- Many ---------------------------------------------------------------- */

/* More than a kernel has threads for files, on most machines. */
enum { MANY = 72 };

static struct fifo many[MANY];
static weft__atomic(unsigned) many_begun;

struct end {
	unsigned index;
	int flags;
};

/* A byte goes from the one end to the other. */
static int64_t end_run(void *arg)
{
	const struct end *end = arg;
	char byte = 0;
	int fd;

	/* relaxed: a counter. */
	weft__add(&many_begun, 1u, relaxed);
	fd = ways[end->index % WAYS](&many[end->index], end->flags);
	ck_assert_msg(fd >= 0, "end %u: %d", end->index, fd);
	if (end->flags == O_WRONLY)
		ck_assert_int_eq(weft_write(fd, "b", 1), 1);
	else
		ck_assert_int_eq(weft_read(fd, &byte, 1), 1);
	return weft_close(fd);
}

static void ends_go(struct weft_scope *scope, int flags)
{
	for (unsigned i = 0; i < MANY; i++) {
		struct end end = { i, flags };

		ck_assert_int_eq(weft_go(scope, end_run, &end, sizeof(end)), 0);
	}
}

static void use_files(void)
{
	char path[64];
	struct stat status;
	int fd;

	snprintf(path, sizeof(path), "/tmp/weft-fifo3-%d-dir", (int)getpid());
	ck_assert_int_eq(weft_mkdir(path, 0700), 0);
	ck_assert_int_eq(weft_rmdir(path), 0);
	fd = weft_open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_write(fd, "text", 4), 4);
	ck_assert_int_eq(weft_fsync(fd), 0);
	ck_assert_int_eq(weft_close(fd), 0);
	ck_assert_int_eq(weft_stat(path, &status), 0);
	ck_assert_int_eq(weft_unlink(path), 0);
}

/* All of one side wait at once; meanwhile files are made and written, and then
 * the other side comes. */
static void meet_many(int first, int second)
{
	/* relaxed: no task counts. */
	weft__store(&many_begun, 0u, relaxed);
	for (unsigned i = 0; i < MANY; i++)
		fifo_make_nth(&many[i], i);
	WEFT_SUPERVISE(scope) {
		ends_go(scope, first);
		/* relaxed: a look. */
		wait_until(weft__load(&many_begun, relaxed) == MANY);
		WEFT_WITHIN(WEFT_SEC(20))
			use_files();
		ends_go(scope, second);
	}
	for (unsigned i = 0; i < MANY; i++)
		fifo_drop(&many[i]);
}

IO_TEST(opens_that_wait_hold_up_nothing)
{
	meet_many(O_RDONLY, O_WRONLY);
	meet_many(O_WRONLY, O_RDONLY);
	return 0;
}

/* ---- Signals ------------------------------------------------------------- */

static weft__atomic(unsigned) signals_taken;

static void on_signal(int number)
{
	(void)number;
	/* relaxed: a counter. */
	weft__add(&signals_taken, 1u, relaxed);
}

static void signal_thread(int thread, const char *name, void *arg)
{
	(void)arg;
	if (!strcmp(name, "weft-blocking\n"))
		(void)syscall(SYS_tgkill, getpid(), thread, SIGUSR1);
}

static int64_t open_to_read(void *arg)
{
	const struct fifo *fifo = *(struct fifo **)arg;

	return weft_open(fifo->path, O_RDONLY, 0);
}

/* An open that waits goes on after a signal of the program's, whose handler has
 * no SA_RESTART. */
IO_TEST(signals_of_the_program_end_no_open)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	struct fifo fifo, *it = &fifo;
	int64_t fd = -1;
	int end = -1;

	fifo_make(&fifo);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	opts.ret_task = &task;
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(weft_go_opts(scope, open_to_read, &it,
					      sizeof(it), &opts),
				 0);
		/* relaxed: a look. */
		do {
			threads_each(signal_thread, NULL);
			ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
		} while (weft__load(&signals_taken, relaxed) < 5);
		WEFT_WITHIN(WEFT_SEC(20))
			end = weft_open(fifo.path, O_WRONLY, 0);
		ck_assert_int_ge(end, 0);
		ck_assert_int_eq(weft_join(task, &fd), 0);
	}
	ck_assert_int_ge(fd, 0);
	close_both((int[]){ (int)fd, end });
	fifo_drop(&fifo);
	return 0;
}

static int64_t wait_alone(void *arg)
{
	struct fifo fifo;
	int fd = 0;

	(void)arg;
	fifo_make(&fifo);
	WEFT_WITHIN(WEFT_MS(2))
		fd = weft_open(fifo.path, O_RDONLY, 0);
	fifo_drop(&fifo);
	return fd;
}

/* weft's own has no handler any more once the runtime has ended. */
START_TEST(no_handler_stays)
{
	struct sigaction action;

	for (unsigned i = 0; i < 3; i++) {
		struct weft_opts opts = WEFT_OPTS_INIT;

		ck_assert_int_eq(io_run_opts(wait_alone, NULL, &opts),
				 -ETIMEDOUT);
		for (int n = SIGRTMIN; n <= SIGRTMAX; n++) {
			/* An emulator keeps some for itself. */
			if (sigaction(n, NULL, &action) == 0)
				ck_assert(action.sa_handler == SIG_DFL);
		}
	}
}
END_TEST

/* The open ends in time all the same. */
static void expect_end_on(unsigned engine)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.engine = engine;
	ck_assert_int_eq(io_run_opts(wait_alone, NULL, &opts), -ETIMEDOUT);
}

static void expect_end_without(void)
{
	expect_end_on(0);
}

START_TEST(open_ends_where_all_signals_are_blocked)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	expect_end_without();
}
END_TEST

/* signal(3) sets SA_RESTART with the default action, too. */
START_TEST(open_ends_where_signals_were_reset)
{
	for (int n = SIGRTMIN; n <= SIGRTMAX; n++)
		signal(n, SIG_DFL);
	expect_end_without();
	expect_end_on(WEFT_ENGINE_EPOLL);
}
END_TEST

START_TEST(open_ends_where_a_signal_is_taken_later)
{
	expect_end_without();
	for (int n = SIGRTMIN; n <= SIGRTMAX; n++) {
		signal(n, on_signal);
		expect_end_without();
	}
}
END_TEST

START_TEST(open_ends_where_no_signal_can_be_sent)
{
	struct rlimit old = limit_set(RLIMIT_SIGPENDING, 0);

	expect_end_without();
	limit_reset(RLIMIT_SIGPENDING, old);
}
END_TEST

/* ---- Few threads --------------------------------------------------------- */

static int64_t open_and_close(void *arg)
{
	int64_t fd = open_to_read(arg);

	ck_assert_int_ge(fd, 0);
	return weft_close((int)fd);
}

static int64_t write_in_pool(void *arg)
{
	return (int64_t)(intptr_t)write_hello(arg);
}

enum { FEW = 4 };

/* The other ends come by threads of the pool. */
static int64_t meet_in_pool(void *arg)
{
	struct fifo *it[FEW];

	(void)arg;
	WEFT_SUPERVISE(scope) {
		for (unsigned i = 0; i < FEW; i++) {
			it[i] = &many[i];
			fifo_make_nth(it[i], i);
			ck_assert_int_eq(weft_go(scope, open_and_close, &it[i],
						 sizeof(it[i])),
					 0);
		}
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
		for (unsigned i = 0; i < FEW; i++)
			WEFT_WITHIN(WEFT_SEC(20))
				ck_assert_int_eq(weft_blocking(write_in_pool,
							       it[i]),
						 0);
	}
	for (unsigned i = 0; i < FEW; i++)
		fifo_drop(it[i]);
	return 0;
}

START_TEST(open_leaves_threads_to_others)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	for (opts.blocking_threads_max = 1; opts.blocking_threads_max <= FEW;
	     opts.blocking_threads_max++)
		ck_assert_int_eq(io_run_opts(meet_in_pool, NULL, &opts), 0);
}
END_TEST

/* ---- Results ------------------------------------------------------------- */

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
	io_add_test(tc, opens_that_wait_hold_up_nothing);
	io_add_test(tc, signals_of_the_program_end_no_open);
	tcase_add_test(tc, no_handler_stays);
	tcase_add_test(tc, open_ends_where_signals_were_reset);
	/* Epoll has no other way to end an open early, and no other threads. */
	if (test_needs(test_has_uring(), "test_io_fifo: opens without a signal",
		       NEEDS_URING)) {
		tcase_add_test(tc, open_ends_where_all_signals_are_blocked);
		tcase_add_test(tc, open_ends_where_a_signal_is_taken_later);
		tcase_add_test(tc, open_ends_where_no_signal_can_be_sent);
		tcase_add_test(tc, open_leaves_threads_to_others);
	}
	io_add_test(tc, nonblocking_open_of_a_fifo_does_not_wait);
	io_add_test(tc, errors_are_those_of_open);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
