/* SPDX-License-Identifier: MIT */
/*
 * Suite runtime/dump: what weft_dump() reports about tasks, and the call
 * itself.
 *
 * Covered: owners and states, names and backtraces, deadlines and counts,
 * cycles of waits that are found and cancelled, and the errors of the call.
 */
#include <pthread.h>

#include "tests/support/dump_scene.h"

static struct weft_mutex mutex;

static int64_t lock(void *arg)
{
	int r = weft_mutex_lock(&mutex);

	(void)arg;
	if (r == 0)
		weft_mutex_unlock(&mutex);
	return 0;
}

/* ---- The owner ----------------------------------------------------------- */

static int64_t hold_mutex(void *arg)
{
	ck_assert_int_eq(weft_mutex_lock(&mutex), 0);
	ck_assert_int_eq(weft_event_wait(arg), 0);
	weft_mutex_unlock(&mutex);
	return 0;
}

static int64_t hold_mutex_of(void *arg)
{
	return hold_mutex(*(void **)arg);
}

IO_TEST(owner_of_a_mutex_is_told)
{
	struct weft_event end = WEFT_EVENT_INIT;
	char line[512], *text;

	WEFT_SUPERVISE(all) {
		named(all, "holder", hold_mutex_of, &end);
		free(dump_until("for event"));
		named(all, "wanter", lock, NULL);
		text = dump_until("held by task ");
		ck_assert_ptr_nonnull(
			line_with(text, " wanter (", line, sizeof(line)));
		ck_assert_msg(strstr(line, " holder ("), "%s", line);
		free(text);
		weft_event_set(&end);
	}
	return 0;
}

static void *lock_and_wait(void *arg)
{
	ck_assert_int_eq(weft_mutex_lock(&mutex), 0);
	ck_assert_int_eq(weft_event_wait(arg), 0);
	weft_mutex_unlock(&mutex);
	return NULL;
}

static int64_t join_thread(void *arg)
{
	return pthread_join(*(pthread_t *)arg, NULL);
}

IO_TEST(owner_that_is_a_thread_is_told)
{
	struct weft_event end = WEFT_EVENT_INIT;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, lock_and_wait, &end),
			 0);
	wait_until(weft_mutex_try_lock(&mutex) < 0 ||
		   (weft_mutex_unlock(&mutex), false));
	WEFT_SUPERVISE(all) {
		named(all, "wanter", lock, NULL);
		free(dump_until("held by one outside of the runtime"));
		weft_scope_cancel(all);
	}
	weft_event_set(&end);
	ck_assert_int_eq(weft_blocking(join_thread, &thread), 0);
	return 0;
}

static struct weft_rwlock rwlock;

static int64_t write_shortly(void *arg)
{
	int r = weft_rwlock_write(&rwlock);

	(void)arg;
	if (r == 0)
		weft_rwlock_unlock(&rwlock);
	return 0;
}

IO_TEST(readers_are_counted)
{
	char *text;

	ck_assert_int_eq(weft_rwlock_read(&rwlock), 0);
	WEFT_SUPERVISE(all) {
		named(all, "writer", write_shortly, NULL);
		text = dump_until(" held by 1 reader\n");
		ck_assert_msg(strstr(text, ": waits to write-lock "), "%s",
			      text);
		free(text);
		weft_scope_cancel(all);
	}
	ck_assert_int_eq(weft_rwlock_read(&rwlock), 0);
	WEFT_SUPERVISE(all) {
		named(all, "writer", write_shortly, NULL);
		free(dump_until(" held by 2 readers\n"));
		weft_scope_cancel(all);
	}
	weft_rwlock_unlock(&rwlock);
	weft_rwlock_unlock(&rwlock);
	return 0;
}

/* ---- Names and calls ----------------------------------------------------- */

/* Not inlined, and its call is not in tail position: the function has a frame
 * of its own. */
static __attribute__((noinline)) int64_t deep(unsigned levels)
{
	int64_t r = levels ? deep(levels - 1) : weft_sleep(WEFT_SEC(1000));

	__asm__ volatile("" ::: "memory");
	return r;
}

static int64_t dive(void *arg)
{
	int64_t r = deep(3);

	(void)arg;
	__asm__ volatile("" ::: "memory");
	return r < 0 ? 0 : 1;
}

IO_TEST(calls_are_told_with_file_and_line)
{
	char *text;
	const char *at;

	WEFT_SUPERVISE(all) {
		named(all, "diver", dive, NULL);
		text = dump_until("for 9");
		if (dump_has_backtraces(text)) {
			at = after(text, " diver (dive), ");
			for (int i = 0; i < 4; i++)
				at = after(at, "    deep  ");
			at = after(at, "test_dump_tasks.c:");
			at = after(at, "    dive  ");
			at = after(at, "test_dump_tasks.c:");
			/* This frame is the outermost one. */
			at = after(at, "\n");
			ck_assert_msg(strncmp(at, "    ", 4) != 0, "%s", text);
			ck_assert_msg(!strstr(text, "weft__task_main"), "%s",
				      text);
		}
		free(text);
		weft_scope_cancel(all);
	}
	return 0;
}

static int64_t plunge(void *arg)
{
	int64_t r = deep(200);

	(void)arg;
	__asm__ volatile("" ::: "memory");
	return r < 0 ? 0 : 1;
}

IO_TEST(calls_that_are_too_many_are_cut)
{
	char *text;
	const char *at;

	WEFT_SUPERVISE(all) {
		named(all, "plunger", plunge, NULL);
		text = dump_until("for 9");
		if (dump_has_backtraces(text)) {
			at = after(text, " plunger (plunge), ");
			at = after(at, "    deep  ");
			at = after(at, "\n    ...\n");
			ck_assert_msg(strncmp(at, "    ", 4) != 0, "%s", text);
		}
		free(text);
		weft_scope_cancel(all);
	}
	return 0;
}

IO_TEST(many_of_a_kind_are_told_together)
{
	char line[512], *text;

	WEFT_SUPERVISE(all) {
		for (int i = 0; i < 100; i++)
			ck_assert_int_eq(weft_go(all, dive, NULL, 0), 0);
		text = dump_until("more like these");
		while (!strstr(text, "101 wait")) {
			free(text);
			ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
			text = dump_until("more like these");
		}
		if (dump_has_backtraces(text)) {
			line_with(text, "more like these", line, sizeof(line));
			ck_assert_str_eq(line, "... and 90 more like these");
		}
		free(text);
		weft_scope_cancel(all);
	}
	return 0;
}

/* ---- Further contents ---------------------------------------------------- */

static int64_t sleep_within(void *arg)
{
	int64_t r = 0;

	(void)arg;
	WEFT_WITHIN(WEFT_SEC(900))
		r = weft_sleep(WEFT_SEC(1000));
	return r < 0 ? 0 : 1;
}

static int64_t sleep_shielded(void *arg)
{
	int64_t r = 0;

	WEFT_SHIELD
		r = weft_event_wait(*(void **)arg);
	return r;
}

IO_TEST(deadline_and_cancellation_are_told)
{
	struct weft_event end = WEFT_EVENT_INIT;
	char line[512], *text;

	WEFT_SUPERVISE(all) {
		named(all, "limited", sleep_within, NULL);
		text = dump_until("(deadline in 8");
		line_with(text, "(deadline in 8", line, sizeof(line));
		ck_assert_msg(strstr(line, " limited ("), "%s", line);
		free(text);
		named(all, "stubborn", sleep_shielded, &end);
		free(dump_until("for event"));
		weft_scope_cancel(all);
		text = dump_until(" old, cancelled: waits for event");
		free(text);
		weft_event_set(&end);
	}
	return 0;
}

/* ---- Cycles -------------------------------------------------------------- */

static struct weft_mutex first, second;
static weft__atomic(unsigned) have;

static int64_t lock_both(struct weft_mutex *a, struct weft_mutex *b)
{
	int r = weft_mutex_lock(a);

	ck_assert_int_eq(r, 0);
	weft__add(&have, 1u, acq_rel);
	wait_until(weft__load(&have, acquire) == 2);
	r = weft_mutex_lock(b);
	/* The task that is cancelled first lets the other one have the
	 * mutex. */
	if (r == 0)
		weft_mutex_unlock(b);
	else
		ck_assert_int_eq(r, -ECANCELED);
	weft_mutex_unlock(a);
	return 0;
}

static int64_t lock_first(void *arg)
{
	(void)arg;
	return lock_both(&first, &second);
}

static int64_t lock_second(void *arg)
{
	(void)arg;
	return lock_both(&second, &first);
}

IO_TEST(tasks_that_wait_for_each_other_are_named)
{
	char *text;
	const char *at;

	weft__store(&have, 0u, relaxed);
	WEFT_SUPERVISE(all) {
		named(all, "left", lock_first, NULL);
		named(all, "right", lock_second, NULL);
		text = dump_until("deadlock: 2 tasks wait for each other\n");
		at = after(text, "deadlock: ");
		at = after(at, " left (");
		at = after(at, " waits to lock mutex ");
		at = after(at, " held by task ");
		at = after(at, " right (");
		at = after(at, " right (");
		at = after(at, " held by task ");
		ck_assert_msg(strstr(at, " left ("), "%s", text);
		ck_assert_ptr_null(strstr(at, "deadlock"));
		free(text);
		weft_scope_cancel(all);
	}
	return 0;
}

static int64_t write_then_lock(void *arg)
{
	int r;

	(void)arg;
	ck_assert_int_eq(weft_rwlock_write(&rwlock), 0);
	weft__add(&have, 1u, acq_rel);
	wait_until(weft__load(&have, acquire) == 2);
	r = weft_mutex_lock(&first);
	if (r == 0)
		weft_mutex_unlock(&first);
	weft_rwlock_unlock(&rwlock);
	return 0;
}

static int64_t lock_then_read(void *arg)
{
	int r;

	(void)arg;
	ck_assert_int_eq(weft_mutex_lock(&first), 0);
	weft__add(&have, 1u, acq_rel);
	wait_until(weft__load(&have, acquire) == 2);
	r = weft_rwlock_read(&rwlock);
	if (r == 0)
		weft_rwlock_unlock(&rwlock);
	weft_mutex_unlock(&first);
	return 0;
}

IO_TEST(writer_is_part_of_a_cycle)
{
	const char *at;
	char *text;

	weft__store(&have, 0u, relaxed);
	WEFT_SUPERVISE(all) {
		named(all, "writer", write_then_lock, NULL);
		named(all, "reader", lock_then_read, NULL);
		text = dump_until("deadlock: 2 tasks wait for each other\n");
		at = after(text, "deadlock: ");
		at = after(at, " writer (");
		at = after(at, " waits to lock mutex ");
		at = after(at, " reader (");
		at = after(at, " reader (");
		at = after(at, " waits to read-lock ");
		at = after(at, " held by task ");
		ck_assert_msg(strstr(at, " writer ("), "%s", text);
		free(text);
		weft_scope_cancel(all);
	}
	return 0;
}

static int64_t lock_outer(void *arg)
{
	(void)arg;
	ck_assert_int_eq(weft_mutex_lock(&first), -ECANCELED);
	return 0;
}

/* Waits for a task of its scope, which wants the mutex that this task holds. */
static int64_t hold_and_end(void *arg)
{
	(void)arg;
	ck_assert_int_eq(weft_mutex_lock(&first), 0);
	WEFT_SUPERVISE(all) {
		named(all, "inner", lock_outer, NULL);
		named(all, "other", dive, NULL);
	}
	weft_mutex_unlock(&first);
	return 0;
}

IO_TEST(scope_that_waits_for_its_owner_is_a_cycle)
{
	char *text;
	const char *at;

	WEFT_SUPERVISE(all) {
		named(all, "owner", hold_and_end, NULL);
		text = dump_until("deadlock: 2 tasks wait for each other\n");
		at = after(text, "deadlock: ");
		at = after(at, " owner (");
		at = after(at, "of its scope to end, of them task ");
		at = after(at, " inner (");
		free(text);
		weft_scope_cancel(all);
	}
	return 0;
}

/* ---- The call ------------------------------------------------------------ */

IO_TEST(wrong_arguments_are_refused)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int devices = open("/dev/full", O_WRONLY | O_CLOEXEC);

	ck_assert_int_eq(weft_dump(NULL, -1), -EBADF);
	ck_assert_int_eq(weft_dump(NULL, 1 << 20), -EBADF);
	ck_assert_int_eq(weft_dump(NULL, fd), -EBADF);
	ck_assert_int_eq(weft_dump(NULL, devices), -ENOSPC);
	close(fd);
	close(devices);
	return 0;
}

START_TEST(no_runtime_is_refused)
{
	ck_assert_int_eq(weft_dump(NULL, 1), -EPERM);
}
END_TEST

static weft__atomic(int) urgent;

static void on_urgent(int number)
{
	(void)number;
	weft__add(&urgent, 1, relaxed);
}

IO_TEST(handler_of_the_program_is_left_as_it_was)
{
	struct sigaction action = { .sa_handler = on_urgent }, now;

	ck_assert_int_eq(sigaction(SIGURG, &action, NULL), 0);
	free(dump_text(NULL));
	ck_assert_int_eq(sigaction(SIGURG, NULL, &now), 0);
	ck_assert(now.sa_handler == on_urgent);
	ck_assert_int_eq(weft__load(&urgent, relaxed), 0);
	ck_assert_int_eq(raise(SIGURG), 0);
	ck_assert_int_eq(weft__load(&urgent, relaxed), 1);
	weft__store(&urgent, 0, relaxed);
	signal(SIGURG, SIG_DFL);
	return 0;
}

static weft__atomic(bool) raised_enough;

static void *raise_again(void *ret_count)
{
	int count = 0;

	for (; !weft__load(&raised_enough, acquire); count++)
		raise(SIGURG);
	*(int *)ret_count = count;
	return NULL;
}

/* Also while dumps use the signal. */
IO_TEST(handler_of_the_program_gets_every_signal_of_the_program)
{
	pthread_t thread;
	int count;

	weft__store(&raised_enough, false, relaxed);
	signal(SIGURG, on_urgent);
	ck_assert_int_eq(pthread_create(&thread, NULL, raise_again, &count), 0);
	for (int i = 0; i < 10; i++)
		free(dump_text(NULL));
	weft__store(&raised_enough, true, release);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(weft__load(&urgent, relaxed), count);
	weft__store(&urgent, 0, relaxed);
	signal(SIGURG, SIG_DFL);
	return 0;
}

/* The dump is larger than the capacity of a non-blocking pipe: no byte of it is
 * lost. */
static int64_t pipe_read_all(void *arg)
{
	int fd = *(int *)arg;
	int64_t bytes = 0;
	char buf[1000];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		bytes += n;
	return bytes;
}

struct reading {
	int fd;
	int64_t bytes;
};

static int64_t read_piped(void *arg)
{
	struct reading *reading = *(struct reading **)arg;

	reading->bytes = weft_blocking(pipe_read_all, &reading->fd);
	return 0;
}

IO_TEST(dump_waits_for_who_reads_it)
{
	struct reading reading, *pointer = &reading;
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_ge(fcntl(fds[1], F_SETPIPE_SZ, 4096), 0);
	ck_assert_int_eq(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	reading.fd = fds[0];
	WEFT_SUPERVISE(all) {
		for (int i = 0; i < 20; i++)
			named(all, "a task with a name that is long", dive,
			      NULL);
		ck_assert_int_eq(WEFT_GO(all, read_piped, pointer), 0);
		for (int i = 0; i < 8; i++)
			ck_assert_int_eq(weft_dump(NULL, fds[1]), 0);
		close(fds[1]);
		weft_scope_cancel(all);
	}
	close(fds[0]);
	ck_assert_int_gt(reading.bytes, 8 * 1000);
	return 0;
}

static TCase *telling(void)
{
	TCase *tcase = tcase_create("telling");

	tcase_set_timeout(tcase, 60);
	io_add_test(tcase, owner_of_a_mutex_is_told);
	io_add_test(tcase, owner_that_is_a_thread_is_told);
	io_add_test(tcase, readers_are_counted);
	io_add_test(tcase, calls_are_told_with_file_and_line);
	io_add_test(tcase, calls_that_are_too_many_are_cut);
	io_add_test(tcase, many_of_a_kind_are_told_together);
	io_add_test(tcase, deadline_and_cancellation_are_told);
	io_add_test(tcase, tasks_that_wait_for_each_other_are_named);
	io_add_test(tcase, writer_is_part_of_a_cycle);
	io_add_test(tcase, scope_that_waits_for_its_owner_is_a_cycle);
	return tcase;
}

static TCase *calling(void)
{
	TCase *tcase = tcase_create("calling");

	tcase_set_timeout(tcase, 60);
	io_add_test(tcase, wrong_arguments_are_refused);
	tcase_add_test(tcase, no_runtime_is_refused);
	io_add_test(tcase, handler_of_the_program_is_left_as_it_was);
	io_add_test(tcase,
		    handler_of_the_program_gets_every_signal_of_the_program);
	io_add_test(tcase, dump_waits_for_who_reads_it);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("dump/tasks");

	suite_add_tcase(suite, telling());
	suite_add_tcase(suite, calling());
	return io_tests_run(suite);
}
