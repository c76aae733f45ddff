/* SPDX-License-Identifier: MIT */
/*
 * Locks of files: they exclude each other as the kernel's do, those of weft and
 * of other processes; a wait takes no thread, ends when it is interrupted, and
 * leaves no lock behind.
 */
#include <sys/file.h>
#include <sys/wait.h>

#include "io/os/look.h"
#include "tests/support/blocking_scene.h"
#include "tests/support/expect.h"
#include "tests/support/needs.h"

static char path[64];

static int file_new(void)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/weft-lock-XXXXXX");
	fd = mkostemp(path, O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static int file_again(void)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static void files_end(int fd, int other)
{
	ck_assert_int_eq(weft_close(fd), 0);
	ck_assert_int_eq(weft_close(other), 0);
	unlink(path);
}

/* The two kinds of locks, by the same names. */
static bool of_records;

static struct flock whole(int type)
{
	return (struct flock){ .l_type = (short)type, .l_whence = SEEK_SET };
}

static int lock(int fd, int type, bool waits)
{
	struct flock all = whole(type);
	int operation = type == F_RDLCK ? LOCK_SH :
			type == F_WRLCK ? LOCK_EX :
					  LOCK_UN;

	if (of_records)
		return weft_fcntl_lock(fd, waits ? F_OFD_SETLKW : F_OFD_SETLK,
				       &all);
	return weft_flock(fd, waits ? operation : operation | LOCK_NB);
}

#define LOCK_TEST(name)                             \
	static void name##_of(void);                \
	IO_TEST(name)                               \
	{                                           \
		for (int i = 0; i < 2; i++) {       \
			of_records = i;             \
			name##_of();                \
		}                                   \
		return 0;                           \
	}                                           \
	static void name##_of(void)

LOCK_TEST(locks_exclude_each_other)
{
	int fd = file_new(), other = file_again();

	ck_assert_int_eq(lock(fd, F_RDLCK, true), 0);
	ck_assert_int_eq(lock(other, F_RDLCK, true), 0);
	ck_assert_int_eq(lock(fd, F_WRLCK, false), -EAGAIN);
	ck_assert_int_eq(lock(other, F_UNLCK, true), 0);
	ck_assert_int_eq(lock(fd, F_WRLCK, true), 0);
	ck_assert_int_eq(lock(other, F_RDLCK, false), -EAGAIN);
	/* The lock is the open file's. */
	ck_assert_int_eq(lock(fd, F_WRLCK, true), 0);
	ck_assert_int_eq(lock(fd, F_UNLCK, false), 0);
	ck_assert_int_eq(lock(other, F_WRLCK, false), 0);
	ck_assert_int_eq(weft_close(other), 0);
	other = file_again();
	ck_assert_int_eq(lock(fd, F_WRLCK, false), 0);
	files_end(fd, other);
}

struct counting {
	int fd;
	weft__atomic(int) *counter;
};

static int64_t count_locked(void *arg)
{
	const struct counting *counting = arg;

	for (int i = 0; i < 20; i++) {
		int seen;

		EXPECT(lock(counting->fd, F_WRLCK, true) == 0);
		/* relaxed: the lock orders them, unknown to ThreadSanitizer. */
		seen = weft__load(counting->counter, relaxed);
		EXPECT(weft_yield() == 0);
		weft__store(counting->counter, seen + 1, relaxed);
		EXPECT(lock(counting->fd, F_UNLCK, true) == 0);
	}
	return 0;
}

/* Each task has an open file of its own. */
LOCK_TEST(waiters_have_the_lock_in_turn)
{
	int fd = file_new(), others[4];
	weft__atomic(int) counter = 0;

	WEFT_SCOPE (scope, NULL)
		for (int i = 0; i < 4; i++) {
			struct counting counting = { others[i] = file_again(),
						     &counter };

			ck_assert_int_eq(WEFT_GO(scope, count_locked, counting),
					 0);
		}
	/* relaxed: all have been joined. */
	ck_assert_int_eq(weft__load(&counter, relaxed), 80);
	for (int i = 0; i < 4; i++)
		close(others[i]);
	files_end(fd, file_again());
}

struct waiter {
	int fd;
	int result;
	weft__atomic(bool) waits;
};

static int64_t wait_for_lock(void *arg)
{
	struct waiter *waiter = *(struct waiter **)arg;

	weft__store(&waiter->waits, true, release);
	waiter->result = lock(waiter->fd, F_WRLCK, true);
	return 0;
}

static struct weft_task waiter_start(struct weft_scope *scope,
				     struct waiter *waiter)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;

	opts.ret_task = &task;
	ck_assert_int_eq(weft_go_opts(scope, wait_for_lock, &waiter,
				      sizeof(waiter), &opts),
			 0);
	wait_until(weft__load(&waiter->waits, acquire));
	return task;
}

LOCK_TEST(interrupted_wait_takes_no_lock)
{
	int fd = file_new(), other = file_again(), r = 1;
	struct waiter waiter = { .fd = other, .result = 1 };

	ck_assert_int_eq(lock(fd, F_WRLCK, true), 0);
	WEFT_WITHIN (WEFT_MS(3))
		r = lock(other, F_WRLCK, true);
	ck_assert_int_eq(r, -ETIMEDOUT);
	WEFT_SUPERVISE (scope) {
		struct weft_task task = waiter_start(scope, &waiter);

		weft_cancel(task);
	}
	ck_assert_int_eq(waiter.result, -ECANCELED);
	ck_assert_int_eq(lock(fd, F_UNLCK, true), 0);
	ck_assert_int_eq(lock(fd, F_WRLCK, false), 0);
	files_end(fd, other);
}

static bool is_local(int fd)
{
	struct statx status;

	return weft__look_fd(fd, STATX_TYPE, &status) == 0 &&
	       weft__look_is_local_file(&status);
}

/* However many wait: the pool is not used. */
LOCK_TEST(wait_takes_no_thread)
{
	struct waiter waiters[10];
	int fd = file_new();
	uint64_t before = pool_stats().done;

	if (!test_needs(is_local(fd), __func__,
			"a local file system (tmpfs: Linux 6.0)")) {
		files_end(fd, file_again());
		return;
	}
	ck_assert_int_eq(lock(fd, F_WRLCK, true), 0);
	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < 10; i++) {
			waiters[i] = (struct waiter){ .fd = file_again() };
			waiter_start(scope, &waiters[i]);
		}
		ck_assert_int_eq(weft_sleep(WEFT_MS(2)), 0);
		ck_assert_uint_eq(pool_stats().done, before);
		ck_assert_uint_eq(pool_stats().running, 0);
		weft_scope_cancel(scope);
	}
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(waiters[i].result, -ECANCELED);
		close(waiters[i].fd);
	}
	files_end(fd, file_again());
}

/* A wait between two tries lasts while it is held. */
static weft__atomic(bool) holds, is_held;

int __real_weft_sleep(weft_nsec ns);
int __wrap_weft_sleep(weft_nsec ns);

int __wrap_weft_sleep(weft_nsec ns)
{
	/* relaxed: nothing else is shared. */
	while (weft__load(&holds, relaxed)) {
		weft__store(&is_held, true, relaxed);
		ck_assert_int_eq(__real_weft_sleep(WEFT_US(200)), 0);
	}
	return __real_weft_sleep(ns);
}

/* The number belongs to another file by then, which is not locked. */
LOCK_TEST(close_ends_the_wait)
{
	int fd = file_new(), other = file_again(), third = -1, again;
	struct waiter waiter = { .fd = other, .result = 1 };

	ck_assert_int_eq(lock(fd, F_WRLCK, true), 0);
	WEFT_SUPERVISE (scope) {
		waiter_start(scope, &waiter);
		/* relaxed: nothing else is shared. */
		weft__store(&is_held, false, relaxed);
		weft__store(&holds, true, relaxed);
		while (!weft__load(&is_held, relaxed))
			ck_assert_int_eq(__real_weft_sleep(WEFT_US(200)), 0);
		ck_assert_int_eq(weft_close(other), 0);
		third = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		ck_assert_int_eq(third, other);
		ck_assert_int_eq(lock(fd, F_UNLCK, true), 0);
		weft__store(&holds, false, relaxed);
	}
	ck_assert_int_eq(waiter.result, -ECANCELED);
	again = file_again();
	ck_assert_int_eq(lock(again, F_WRLCK, false), 0);
	ck_assert_int_eq(weft_close(again), 0);
	files_end(fd, third);
}

/* Ends when the process that has the lock ends. */
LOCK_TEST(lock_of_another_process_is_waited_for)
{
	int fd = file_new(), pipes[2], status;
	char c;
	pid_t child;

	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		struct flock all = whole(F_WRLCK);
		int own = open(path, O_RDWR);

		if (of_records ? fcntl(own, F_OFD_SETLK, &all) :
				 flock(own, LOCK_EX))
			_exit(1);
		if (write(pipes[1], "x", 1) != 1)
			_exit(1);
		close(pipes[1]);
		thread_pause_ns(3000000);
		_exit(0);
	}
	ck_assert_int_eq(weft_read(pipes[0], &c, 1), 1);
	ck_assert_int_eq(lock(fd, F_WRLCK, true), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	close_both(pipes);
	files_end(fd, file_again());
}

IO_TEST(wrong_arguments_are_refused)
{
	int fd = file_new(), other = file_again(), read_only;
	struct flock all = whole(F_WRLCK);

	ck_assert_int_eq(weft_flock(fd, 0), -EINVAL);
	ck_assert_int_eq(weft_flock(-1, LOCK_EX), -EBADF);
	ck_assert_int_eq(weft_fcntl_lock(fd, F_SETLK, &all), -EINVAL);
	ck_assert_int_eq(weft_fcntl_lock(fd, F_SETLKW, &all), -EINVAL);
	ck_assert_int_eq(weft_fcntl_lock(fd, F_OFD_SETLK, NULL), -EFAULT);
	ck_assert_int_eq(weft_fcntl_lock(-1, F_OFD_SETLKW, &all), -EBADF);
	all.l_pid = 1;
	ck_assert_int_eq(weft_fcntl_lock(fd, F_OFD_SETLK, &all), -EINVAL);
	all = whole(F_WRLCK);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(weft_fcntl_lock(read_only, F_OFD_SETLKW, &all),
			 -EBADF);
	close(read_only);
	/* Who has it? */
	all.l_start = 5;
	all.l_len = 3;
	ck_assert_int_eq(weft_fcntl_lock(other, F_OFD_SETLK, &all), 0);
	all = whole(F_WRLCK);
	ck_assert_int_eq(weft_fcntl_lock(fd, F_OFD_GETLK, &all), 0);
	ck_assert_int_eq(all.l_type, F_WRLCK);
	ck_assert_int_eq(all.l_start, 5);
	ck_assert_int_eq(all.l_len, 3);
	files_end(fd, other);
	return 0;
}

/* A file that is not local is tried in the pool. */
IO_TEST(other_files_are_locked_too)
{
	int fd = weft_open("/proc/self/status", O_RDONLY, 0);
	uint64_t before = pool_stats().done;

	ck_assert_int_eq(weft_flock(fd, LOCK_EX), 0);
	ck_assert_uint_eq(pool_stats().done, before + 1);
	ck_assert_int_eq(weft_flock(fd, LOCK_UN), 0);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

START_TEST(outside_of_a_task_is_eperm)
{
	struct flock all = whole(F_WRLCK);

	ck_assert_int_eq(weft_flock(0, LOCK_EX), -EPERM);
	ck_assert_int_eq(weft_fcntl_lock(0, F_OFD_SETLKW, &all), -EPERM);
	ck_assert_int_eq(weft_fcntl_lock(0, F_OFD_SETLKW, NULL), -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/lock");
	TCase *locks = tcase_create("locks");

	tcase_set_timeout(locks, 60);
	io_add_test(locks, locks_exclude_each_other);
	io_add_test(locks, waiters_have_the_lock_in_turn);
	io_add_test(locks, interrupted_wait_takes_no_lock);
	io_add_test(locks, wait_takes_no_thread);
	io_add_test(locks, close_ends_the_wait);
	io_add_test(locks, lock_of_another_process_is_waited_for);
	io_add_test(locks, wrong_arguments_are_refused);
	io_add_test(locks, other_files_are_locked_too);
	tcase_add_test(locks, outside_of_a_task_is_eperm);
	suite_add_tcase(suite, locks);
	return io_tests_run(suite);
}
