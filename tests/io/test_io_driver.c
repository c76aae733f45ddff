/* SPDX-License-Identifier: MIT */
/*
 * The driver: wakes reach parked workers, helpers do the work of busy workers,
 * and an idle runtime uses no CPU time.
 */
#include <liburing.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "runtime/stack/fiber.h"
#include "tests/support/io_kit.h"
#include "tests/support/features.h"
#include "tests/support/needs.h"
#include "tests/support/stderr_capture.h"
#include "tests/support/wrap_enter.h"

static weft__atomic(unsigned) enters;

int __wrap_io_uring_enter2(unsigned fd, unsigned to_submit,
			   unsigned min_complete, unsigned flags, sigset_t *sig,
			   size_t sz)
{
	long r;

	weft__add(&enters, 1u, relaxed);
	r = syscall(SYS_io_uring_enter, fd, to_submit, min_complete, flags,
		    sig, sz);
	return (int)(r < 0 ? -errno : r);
}

/* ---- Waking ----------------------------------------------------------- */

static int64_t answer(void *arg)
{
	return *(int64_t *)arg + 1;
}

/* A thread outside the runtime wakes it through the eventfd while it is parked,
 * again and again. */
START_TEST(foreign_thread_wakes_a_parked_runtime)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;

	opts.workers = _i ? 2 : 1;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	for (int64_t i = 0; i < 2000; i++) {
		struct weft_task_opts task_opts = WEFT_TASK_OPTS_INIT;
		struct weft_task task;
		int64_t r = 0;

		task_opts.ret_task = &task;
		ck_assert_int_eq(weft_submit(runtime, answer, &i, sizeof(i),
					     &task_opts),
				 0);
		ck_assert_int_eq(weft_wait(runtime, task, &r), 0);
		ck_assert_int_eq(r, i + 1);
		/* Now and then pauses long enough for the workers to park. */
		if (i % 100 == 0)
			thread_pause_ns(3000000);
	}
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

struct volley {
	int fds[2];
	int64_t left;
};

/* One byte goes to and fro between two tasks on two workers.  Each waits in its
 * own ring, and there is no monitor that would make up for a lost wake. */
static int64_t volley_return(void *arg)
{
	int fd = *(int *)arg;
	char byte;

	while (weft_read(fd, &byte, 1) == 1)
		ck_assert_int_eq(weft_write(fd, &byte, 1), 1);
	return 0;
}

static int64_t volley_task(void *arg)
{
	weft_nsec end_ns = weft_now() + WEFT_SEC(5);
	char byte = 'x';
	int fds[2], count = 0;

	(void)arg;
	socket_pair(fds);
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, volley_return, fds[1]), 0);
		for (; count < 20000 && weft_now() < end_ns; count++) {
			ck_assert_int_eq(weft_write(fds[0], &byte, 1), 1);
			ck_assert_int_eq(weft_read(fds[0], &byte, 1), 1);
		}
		ck_assert_int_ge(count, 100);
		ck_assert_int_eq(weft_close(fds[0]), 0);
	}
	return weft_close(fds[1]);
}

START_TEST(volleys_without_a_monitor)
{
	setenv("WEFT_TEST_MONITOR", "off", 1);
	io_run(volley_task, NULL, _i ? 2 : 1);
}
END_TEST

/* The message to the peer's ring is refused: the eventfd is used instead. */
static int64_t spoil_message(void *arg)
{
	struct weft_runtime *runtime = weft_runtime_self();
	struct weft__worker *here = weft__worker_self();
	struct weft__shard *mine = weft__shard(here), *theirs;
	struct weft__worker *there = runtime->workers[!here->index];
	struct weft__request message = {
		.opcode = WEFT__OPCODE_MESSAGE,
		.flags = WEFT__REQUEST_SILENT,
	};
	uint64_t count = 0;

	(void)arg;
	theirs = weft__shard(there);
	weft__shard_lock(mine);
	/* The eventfd is not a ring, so the message fails. */
	message.fd = theirs->wake_fd;
	ck_assert(weft__ring_has_room(&mine->ring));
	weft__ring_prepare(&mine->ring, &message,
			   weft__user_data(WEFT__TAG_WAKE_SENT, 0,
					   there->index));
	weft__ring_publish(&mine->ring);
	weft__trylock_drop(&mine->lock);
	wait_until(read(theirs->wake_fd, &count, sizeof(count)) > 0);
	return 0;
}

START_TEST(refused_message_falls_back_to_the_eventfd)
{
	io_run(spoil_message, NULL, 2);
}
END_TEST

/* ---- Helping ---------------------------------------------------------- */

struct busy {
	weft__atomic(int) stage;
	uint32_t waits_at; /* the worker of the task that waits */
	int fd;
	int64_t took_ns;
};

static void wait_begins(struct busy *busy)
{
	busy->waits_at = weft__worker_self()->index;
	weft__store(&busy->stage, 1, release);
}

static int64_t wait_for_byte(void *arg)
{
	struct busy *busy = *(struct busy **)arg;
	ssize_t n;
	char byte;

	wait_begins(busy);
	n = weft_read(busy->fd, &byte, 1);
	if (n == -ECANCELED)
		return 0;
	ck_assert_int_eq(n, 1);
	weft__store(&busy->stage, 3, release);
	return 0;
}

static void compute_until_done(struct busy *busy)
{
	weft__store(&busy->stage, 2, release);
	while (weft__load(&busy->stage, acquire) < 3)
		weft__spin_hint();
}

/* Starts a task that waits, and then computes until that task is done.  A task
 * that waits at another worker needs no help: then another one is started. */
static void compute_beside(struct busy *busy, int64_t (*task)(void *))
{
	bool beside = false;

	while (!beside)
		WEFT_SUPERVISE(scope) {
			weft__store(&busy->stage, 0, release);
			ck_assert_int_eq(WEFT_GO(scope, task, busy), 0);
			while (weft__load(&busy->stage, acquire) < 1)
				weft_yield();
			beside = busy->waits_at == weft__worker_self()->index;
			if (!beside)
				weft_scope_cancel(scope);
			else
				compute_until_done(busy);
		}
}

static int64_t compute(void *arg)
{
	compute_beside(*(struct busy **)arg, wait_for_byte);
	return 0;
}

static void *write_byte(void *arg)
{
	struct busy *busy = arg;
	int fd = (int)busy->took_ns;
	weft_nsec start;

	while (weft__load(&busy->stage, acquire) < 2)
		thread_pause_ns(100000);
	thread_pause_ns(5000000);
	start = weft_now();
	if (write(fd, "x", 1) != 1)
		abort();
	while (weft__load(&busy->stage, acquire) < 3 &&
	       weft_now() - start < WEFT_SEC(20))
		thread_pause_ns(100000);
	busy->took_ns = (int64_t)(weft_now() - start);
	return NULL;
}

static int64_t spin_politely(void *arg)
{
	struct busy *busy = *(struct busy **)arg;

	while (weft__load(&busy->stage, acquire) < 3)
		weft_yield();
	return 0;
}

/* The other worker is parked (0), or busy with tasks that yield (1). */
static int64_t help_task(void *arg)
{
	struct busy busy = { .fd = -1 }, *pointer = &busy;
	pthread_t thread;
	int fds[2];

	socket_pair(fds);
	busy.fd = fds[0];
	busy.took_ns = fds[1];
	ck_assert_int_eq(pthread_create(&thread, NULL, write_byte, &busy), 0);
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, compute, pointer), 0);
		if (*(int *)arg)
			ck_assert_int_eq(WEFT_GO(scope, spin_politely, pointer),
					 0);
	}
	pthread_join(thread, NULL);
	ck_assert_msg(busy.took_ns < (int64_t)WEFT_SEC(10), "%ld us",
		      (long)busy.took_ns / 1000);
	close_both(fds);
	return 0;
}

START_TEST(completion_of_a_busy_worker_is_delivered_by_another)
{
	int i = _i;

	io_run(help_task, &i, 2);
}
END_TEST

/* The worker of a listener computes: others take its connections. */
static int64_t accept_for(void *arg)
{
	struct busy *busy = *(struct busy **)arg;
	int fd;

	wait_begins(busy);
	fd = weft_accept(busy->fd, NULL);
	if (fd == -ECANCELED)
		return 0;
	ck_assert_int_ge(fd, 0);
	weft__store(&busy->stage, 3, release);
	return weft_close(fd);
}

static int64_t compute_and_listen(void *arg)
{
	compute_beside(*(struct busy **)arg, accept_for);
	return 0;
}

static int64_t listen_task(void *arg)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	struct busy busy = { .fd = tcp_listener(text) }, *pointer = &busy;
	weft_nsec start;

	(void)arg;
	WEFT_SUPERVISE(scope) {
		int client;

		ck_assert_int_eq(WEFT_GO(scope, compute_and_listen, pointer),
				 0);
		wait_until(weft__load(&busy.stage, acquire) == 2);
		start = weft_now();
		client = weft_tcp_connect(text, NULL);
		ck_assert_int_ge(client, 0);
		wait_until(weft__load(&busy.stage, acquire) == 3);
		ck_assert(weft_now() - start < WEFT_SEC(10));
		ck_assert_int_eq(weft_close(client), 0);
	}
	return weft_close(busy.fd);
}

START_TEST(listener_of_a_busy_worker_is_served_by_another)
{
	io_run(listen_task, NULL, 2);
}
END_TEST

/* Worker 0 computes: timers go off nevertheless. */
static int64_t sleep_and_count(void *arg)
{
	struct busy *busy = *(struct busy **)arg;

	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	weft__store(&busy->stage, 3, release);
	return 0;
}

static int64_t spin_until_counted(void *arg)
{
	struct busy *busy = *(struct busy **)arg;

	while (weft__load(&busy->stage, acquire) < 3)
		weft__spin_hint();
	return 0;
}

static int64_t timers_task(void *arg)
{
	struct busy busy = { .fd = -1 }, *pointer = &busy;

	(void)arg;
	/* Whichever worker computes, the other one advances the timers. */
	for (int i = 0; i < 5; i++) {
		weft__store(&busy.stage, 0, release);
		WEFT_SUPERVISE(scope) {
			ck_assert_int_eq(WEFT_GO(scope, sleep_and_count,
						 pointer),
					 0);
			ck_assert_int_eq(weft_sleep(WEFT_US(100)), 0);
			ck_assert_int_eq(WEFT_GO(scope, spin_until_counted,
						 pointer),
					 0);
		}
	}
	return 0;
}

START_TEST(timers_go_off_while_a_worker_computes)
{
	io_run(timers_task, NULL, 2);
}
END_TEST

/* ---- Rest ------------------------------------------------------------- */

/* Observed from outside, because a task that looks would be work itself.  One
 * of a few windows begins when all are at rest. */
static void *watch(void *arg)
{
	unsigned before, entered = 1;

	thread_pause_ns(400000000);
	for (int i = 0; i < 5 && entered; i++) {
		before = weft__load(&enters, relaxed);
		thread_pause_ns(400000000);
		entered = weft__load(&enters, relaxed) - before;
	}
	if (write(*(int *)arg, &entered, sizeof(entered)) != sizeof(entered))
		abort();
	return NULL;
}

static int64_t rest_task(void *arg)
{
	unsigned entered = 99;
	pthread_t thread;
	int fds[2], told[2];

	(void)arg;
	socket_pair(fds);
	socket_pair(told);
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, volley_return, fds[1]), 0);
		ck_assert_int_eq(pthread_create(&thread, NULL, watch, &told[1]),
				 0);
		ck_assert_int_eq(weft_read(told[0], &entered, sizeof(entered)),
				 sizeof(entered));
		pthread_join(thread, NULL);
		ck_assert_uint_eq(entered, 0);
		ck_assert_int_eq(weft_close(fds[0]), 0);
	}
	close_both(told);
	return weft_close(fds[1]);
}

START_TEST(idle_runtime_makes_no_system_calls)
{
	io_run(rest_task, NULL, _i ? 2 : 1);
}
END_TEST

static int64_t yield_task(void *arg)
{
	unsigned before;

	(void)arg;
	weft_yield();
	before = weft__load(&enters, relaxed);
	for (int i = 0; i < 10000; i++)
		weft_yield();
	/* Nothing is queued or completes: a look at the ring suffices. */
	ck_assert_uint_le(weft__load(&enters, relaxed) - before, 3);
	return 0;
}

START_TEST(busy_runtime_without_io_makes_no_system_calls)
{
	io_run(yield_task, NULL, 1);
}
END_TEST

/* ---- Waiting for a processor -------------------------------------------- */

static weft__atomic(bool) crowd_over;

static void *spin(void *arg)
{
	(void)arg;
	while (!weft__load(&crowd_over, relaxed))
		weft__spin_hint();
	return NULL;
}

/* Another thread and this one compute on one processor. */
static int64_t crowd_task(void *arg)
{
	struct weft__worker *worker = weft__worker_self();
	uint64_t before = worker->ops->waited(worker), by_ns;
	pthread_t other;
	cpu_set_t one;

	(void)arg;
	CPU_ZERO(&one);
	CPU_SET((unsigned)sched_getcpu(), &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	ck_assert_int_eq(pthread_create(&other, NULL, spin, NULL), 0);
	by_ns = weft_now() + WEFT_SEC(20);
	while (worker->ops->waited(worker) - before < WEFT_MS(20))
		ck_assert_uint_lt(weft_now(), by_ns);
	weft__store(&crowd_over, true, relaxed);
	pthread_join(other, NULL);
	return 0;
}

START_TEST(worker_knows_how_long_it_waited_for_a_processor)
{
	io_run(crowd_task, NULL, 2);
}
END_TEST

/* ---- Life ------------------------------------------------------------- */

static int64_t nothing(void *arg)
{
	return (int64_t)(intptr_t)arg;
}

START_TEST(starting_and_stopping_leaks_nothing)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 2;
	for (int i = 0; i < 200; i++)
		ck_assert_int_eq(io_run_opts(nothing, NULL, &opts), 0);
}
END_TEST

START_TEST(limit_of_descriptors_is_an_error)
{
	struct rlimit limit = { 0, 64 };
	int opened = 0;

	/* Starts with each number of free descriptors, until it works. */
	for (limit.rlim_cur = (rlim_t)fds_open() + 1; limit.rlim_cur < 64;
	     limit.rlim_cur++) {
		struct weft_opts opts = WEFT_OPTS_INIT;
		int64_t r;

		opts.workers = 2;
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		r = weft_run(nothing, NULL, &opts);
		ck_assert(r == 0 || r == -EMFILE);
		opened += r == 0;
	}
	ck_assert_int_gt(opened, 0);
}
END_TEST

#ifndef WEFT__TSAN /* TSan lets a forked child start no threads */
/* A forked child may start its own runtime; the parent's goes on. */
static int64_t fork_task(void *arg)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(weft_run(volley_task, NULL, NULL) == 0 ? 9 : 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 9);
	return volley_task(arg);
}

START_TEST(forked_child_may_start_its_own_runtime)
{
	io_run(fork_task, NULL, 2);
}
END_TEST
#endif

/* ---- The table of descriptors ------------------------------------------- */

START_TEST(table_finds_what_it_made)
{
	static const int numbers[] = { 0, 1, 4095, 4096, 8191, 12345 };
	struct weft__fd_table fds = { .chunks = NULL };
	struct weft__fd *entry, *again;
	int any = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(any, 0);
	ck_assert_int_eq(weft__fd_table_init(&fds, NULL), 0);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		ck_assert_int_ge(dup2(any, numbers[i]), 0);
		ck_assert_int_eq(weft__fd_get(&fds, numbers[i], &entry), 0);
		ck_assert_ptr_eq(weft__fd_find(&fds, numbers[i]), entry);
		ck_assert_int_eq(weft__fd_get(&fds, numbers[i], &again), 0);
		ck_assert_ptr_eq(entry, again);
		ck_assert_ptr_null(entry->waiting);
	}
	ck_assert_ptr_ne(weft__fd_find(&fds, 4095), weft__fd_find(&fds, 4096));
	/* Numbers beyond any descriptor cost no memory. */
	ck_assert_int_eq(weft__fd_get(&fds, 200000, &entry), -EBADF);
	ck_assert_int_eq(weft__fd_get(&fds, INT32_MAX, &entry), -EBADF);
	ck_assert_int_eq(weft__fd_get(&fds, -1, &entry), -EBADF);
	ck_assert_ptr_null(weft__fd_find(&fds, 200000));
	ck_assert_ptr_null(weft__fd_find(&fds, -1));
	weft__fd_table_fini(&fds);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/driver");
	TCase *waking = tcase_create("waking");
	TCase *helping = tcase_create("helping");
	TCase *life = tcase_create("life");

	tcase_set_timeout(waking, 60);
	tcase_set_timeout(helping, 60);
	tcase_set_tags(helping, "monitor");
	tcase_set_timeout(life, 30);
	tcase_add_loop_test(waking, foreign_thread_wakes_a_parked_runtime, 0,
			    2);
	tcase_add_loop_test(waking, volleys_without_a_monitor, 0, 2);
	tcase_add_test(waking, refused_message_falls_back_to_the_eventfd);
	tcase_add_loop_test(helping,
			    completion_of_a_busy_worker_is_delivered_by_another,
			    0, 2);
	tcase_add_test(helping,
		       listener_of_a_busy_worker_is_served_by_another);
	tcase_add_test(helping, timers_go_off_while_a_worker_computes);
	tcase_add_loop_test(life, idle_runtime_makes_no_system_calls, 0, 2);
	tcase_add_test(life, busy_runtime_without_io_makes_no_system_calls);
	tcase_add_test(life, worker_knows_how_long_it_waited_for_a_processor);
	tcase_add_test(life, starting_and_stopping_leaks_nothing);
	tcase_add_test(life, limit_of_descriptors_is_an_error);
#ifndef WEFT__TSAN
	if (test_needs(test_has_ring_buffers(),
		       "forked_child_may_start_its_own_runtime", NEEDS_BUFFERS))
		tcase_add_test(life, forked_child_may_start_its_own_runtime);
#endif
	if (test_needs(test_has_descriptors(12346), "table_finds_what_it_made",
		       "12346 descriptors"))
		tcase_add_test(life, table_finds_what_it_made);
	suite_add_tcase(suite, waking);
	suite_add_tcase(suite, helping);
	suite_add_tcase(suite, life);
	return io_tests_run(suite);
}
