/* SPDX-License-Identifier: MIT */
/*
 * Operations: each ends when it is done, when its deadline passes or when its
 * task is cancelled, and never before the kernel is done with its memory.
 */
#include <liburing.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "tests/support/io_scene.h"
#include "tests/support/needs.h"
#include "tests/support/wrap_enter.h"

/* ---- io_uring_enter fails on demand ------------------------------------- */

static weft__atomic(int) enter_error; /* of every third call; 0: none */
static weft__atomic(unsigned) enters;

int __wrap_io_uring_enter2(unsigned fd, unsigned to_submit,
			   unsigned min_complete, unsigned flags, sigset_t *sig,
			   size_t sz)
{
	unsigned n = weft__add(&enters, 1u, relaxed);
	int error = weft__load(&enter_error, relaxed);
	long r;

	if (error && n % 3 == 0)
		return error;
	r = syscall(SYS_io_uring_enter, fd, to_submit, min_complete, flags,
		    sig, sz);
	return (int)(r < 0 ? -errno : r);
}

/* ---- Interruption ------------------------------------------------------- */

IO_TEST(deadline_ends_every_call)
{
	struct scene scene;

	scene_open(&scene);
	for (size_t i = 0; i < CALLS; i++) {
		weft_nsec start = weft_now(), took;
		ssize_t r = 0;

		WEFT_WITHIN(WEFT_MS(5))
			r = calls[i].fn(&scene);
		took = weft_now() - start;
		ck_assert_msg(r == -ETIMEDOUT, "%s: %zd", calls[i].name, r);
		ck_assert_msg(took >= WEFT_MS(5) && took < WEFT_SEC(20),
			      "%s took %lu ns", calls[i].name, took);
	}
	scene_close(&scene);
	return 0;
}

IO_TEST(outer_deadline_is_a_cancellation)
{
	struct scene scene;

	scene_open(&scene);
	for (size_t i = 0; i < CALLS; i++) {
		ssize_t r = 0;

		WEFT_WITHIN(WEFT_MS(2))
			WEFT_WITHIN(WEFT_SEC(10))
				r = calls[i].fn(&scene);
		ck_assert_msg(r == -ECANCELED, "%s: %zd", calls[i].name, r);
	}
	scene_close(&scene);
	return 0;
}

IO_TEST(loop_of_ready_operations_meets_its_deadline)
{
	int fd = weft_open("/proc/self/exe", O_RDONLY, 0);
	weft_nsec start = weft_now();
	ssize_t n = 1;

	ck_assert_int_ge(fd, 0);
	WEFT_WITHIN(WEFT_MS(20))
		while (n > 0)
			n = weft_pread(fd, buffer, 100, 0);
	ck_assert_int_eq(n, -ETIMEDOUT);
	ck_assert(weft_now() - start < WEFT_SEC(20));
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

/* Reads or writes one megabyte again and again.  Returns how many calls began
 * after the deadline and still moved bytes. */
static int count_late(int fd, bool writes)
{
	static char megabyte[1 << 20];
	weft_nsec deadline = weft_now() + WEFT_MS(2);
	int late = -1;
	ssize_t n = 1;

	WEFT_WITHIN(WEFT_MS(2))
		while (n > 0) {
			late += weft_now() >= deadline + WEFT_US(100);
			n = writes ? weft_pwrite(fd, megabyte, 1 << 20, 0) :
				     weft_pread(fd, megabyte, 1 << 20, 0);
		}
	ck_assert_int_eq(n, -ETIMEDOUT);
	return late;
}

static int64_t read_and_write_long(void *arg)
{
	char name[] = "/var/tmp/weft-op-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	(void)arg;
	ck_assert_int_ge(fd, 0);
	unlink(name);
	/* The time of the first write may be over before it begins. */
	ck_assert_int_eq(ftruncate(fd, 1 << 20), 0);
	ck_assert_int_le(count_late(fd, true), 8);
	ck_assert_int_le(count_late(fd, false), 8);
	return weft_close(fd);
}

/* 128 runs in a row would take longer than the deadline allows. */
START_TEST(long_ready_operations_count_for_several)
{
	io_run(read_and_write_long, NULL, 1);
}
END_TEST

struct victim {
	struct scene *scene;
	call_fn fn;
	weft__atomic(int) *began;
};

static int64_t be_victim(void *arg)
{
	struct victim *victim = arg;
	ssize_t r;

	weft__store(victim->began, 1, release);
	r = victim->fn(victim->scene);
	/* Cancellation is level-triggered: the next call returns -ECANCELED,
	 * too. */
	ck_assert_int_eq(victim->fn(victim->scene), -ECANCELED);
	return r;
}

IO_TEST(cancelling_the_task_ends_every_call)
{
	struct scene scene;

	scene_open(&scene);
	for (size_t i = 0; i < CALLS; i++) {
		struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
		weft__atomic(int) began = 0;
		struct victim victim = { &scene, calls[i].fn, &began };
		struct weft_task task;
		int64_t r = 0;

		opts.ret_task = &task;
		WEFT_SUPERVISE(scope) {
			ck_assert_int_eq(weft_go_opts(scope, be_victim,
						      &victim, sizeof(victim),
						      &opts),
					 0);
			/* Cancels the task sometimes before and sometimes after
			 * it waits. */
			wait_until(weft__load(&began, acquire));
			if (i % 2)
				weft_sleep(WEFT_MS(1));
			ck_assert_int_eq(weft_cancel(task), 0);
			ck_assert_int_eq(weft_join(task, &r), 0);
		}
		ck_assert_msg(r == -ECANCELED, "%s: %ld", calls[i].name,
			      (long)r);
	}
	scene_close(&scene);
	return 0;
}

static int64_t clean_up(void *arg)
{
	int *fds = arg;
	ssize_t n = weft_read(fds[0], buffer, 1);

	ck_assert_int_eq(n, -ECANCELED);
	WEFT_SHIELD
		ck_assert_int_eq(weft_write(fds[1], "bye", 3), 3);
	ck_assert_int_eq(weft_shutdown(fds[1], SHUT_WR), 0);
	close_both(fds);
	return 0;
}

/* These calls must work in a cancelled task. */
IO_TEST(cancelled_task_can_say_goodbye_and_close)
{
	int fds[2];

	socket_pair(fds);
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(weft_go(scope, clean_up, fds, sizeof(fds)), 0);
		wait_until(calls_waiting(fds[0]) == 1);
		weft_scope_cancel(scope);
	}
	return 0;
}

/*
 * A task waits in the ring of a worker that computes, and another task cancels
 * it.  The owner of the ring does not look at it, and the kernel holds the
 * request's completion back until the owner's thread enters the kernel.
 */
struct hog {
	int fd;
	weft__atomic(int) waits;
	weft__atomic(int) stop;
	struct weft_scope *scope;
	struct weft_task reader;
	bool flush;
};

static int64_t hog_reader(void *arg)
{
	struct hog *hog = *(struct hog **)arg;

	weft__store(&hog->waits, 1, release);
	return weft_read(hog->fd, buffer, 10);
}

static int64_t hog_body(void *arg)
{
	struct hog *hog = *(struct hog **)arg;
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int64_t r;

	opts.ret_task = &hog->reader;
	opts.flags = 0;
	WEFT_SUPERVISE(inner) {
		ck_assert_int_eq(weft_go_opts(inner, hog_reader, &hog,
					      sizeof(hog), &opts),
				 0);
		while (!weft__load(&hog->waits, acquire))
			weft_yield();
		/* With flush, the request goes to the kernel; otherwise it
		 * stays in the ring. */
		if (hog->flush)
			weft_sleep(WEFT_MS(1));
		weft__store(&hog->waits, 2, release);
		while (!weft__load(&hog->stop, acquire))
			weft__spin_hint();
		ck_assert_int_eq(weft_join(hog->reader, &r), 0);
		ck_assert_int_eq(r, -ECANCELED);
	}
	return 0;
}

static void hog_cancelled(bool flush)
{
	struct hog hog = { .flush = flush }, *pointer = &hog;
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	hog.fd = fds[0];
	WEFT_SUPERVISE(scope) {
		weft_nsec start;
		struct weft__task *task;

		ck_assert_int_eq(WEFT_GO(scope, hog_body, pointer), 0);
		wait_until(weft__load(&hog.waits, acquire) == 2);
		task = weft__task_at(weft_runtime_self(), hog.reader.id);
		start = weft_now();
		ck_assert_int_eq(weft_cancel(hog.reader), 0);
		/* The task must be DONE while its worker still computes. */
		while (!(weft__load(&task->state, acquire) & WEFT__DONE)) {
			ck_assert(weft_now() - start < WEFT_SEC(20));
			weft_yield();
		}
		weft__store(&hog.stop, 1, release);
	}
	close_both(fds);
}

static int64_t hog_task(void *arg)
{
	(void)arg;
	hog_cancelled(true);
	hog_cancelled(false);
	return 0;
}

START_TEST(operation_of_a_busy_worker_is_cancelled_from_another)
{
	io_run(hog_task, NULL, 2);
}
END_TEST

/* ---- Success wins; nothing is lost -------------------------------------- */

enum { BYTES = 1000 };

static weft__atomic(unsigned) drips_read;

static void *drip(void *arg)
{
	int fd = *(int *)arg;
	unsigned seed = 1;

	for (int i = 0; i < BYTES; i++) {
		unsigned char byte = (unsigned char)i;

		/* The reader must wait for each byte, however slow it is. */
		while (weft__load(&drips_read, relaxed) < (unsigned)i)
			thread_pause_ns(1000);
		thread_pause_ns(rand_r(&seed) % 60000);
		if (write(fd, &byte, 1) != 1)
			abort();
	}
	return NULL;
}

/* Deadlines pass at random moments of a read; none may cost a byte. */
static void count_drips(int kind)
{
	unsigned got = 0, timeouts = 0;
	pthread_t thread;
	int fds[2];

	if (kind == 0)
		ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	else
		socket_pair(fds);
	weft__store(&drips_read, 0u, relaxed);
	ck_assert_int_eq(pthread_create(&thread, NULL, drip, &fds[1]), 0);
	while (got < BYTES) {
		unsigned char byte = 0;
		ssize_t n = 0;

		WEFT_WITHIN(WEFT_US(60))
			n = weft_read(fds[0], &byte, 1);
		if (n == -ETIMEDOUT) {
			timeouts++;
			continue;
		}
		ck_assert_int_eq(n, 1);
		ck_assert_uint_eq(byte, (unsigned char)got);
		got++;
		weft__store(&drips_read, got, relaxed);
	}
	pthread_join(thread, NULL);
	ck_assert_uint_gt(timeouts, 0);
	close_both(fds);
}

IO_TEST(no_byte_is_lost_to_deadlines)
{
	count_drips(0);
	count_drips(1);
	return 0;
}

/* After a call has returned, nothing writes to its buffer. */
IO_TEST(buffer_is_the_callers_again_after_a_deadline)
{
	int fds[2];

	socket_pair(fds);
	for (int i = 0; i < 300; i++) {
		char buf[64];
		ssize_t n = 0;

		memset(buf, 'a', sizeof(buf));
		WEFT_WITHIN(WEFT_US(1 + i % 50))
			n = weft_recv(fds[0], buf, sizeof(buf), 0);
		ck_assert_int_eq(n, -ETIMEDOUT);
		ck_assert_int_eq(weft_write(fds[1], "1234567", 7), 7);
		ck_assert_int_eq(weft_sleep(WEFT_US(20)), 0);
		for (size_t k = 0; k < sizeof(buf); k++)
			ck_assert_int_eq(buf[k], 'a');
		ck_assert_int_eq(weft_read(fds[0], buf, 7), 7);
	}
	close_both(fds);
	return 0;
}

IO_TEST(all_calls_tell_how_far_they_came)
{
	size_t done = 0;
	int fds[2], r = 0;

	socket_pair(fds);
	ck_assert_int_eq(weft_write(fds[1], "12345", 5), 5);
	/* A deadline that has passed at the beginning leaves none. */
	for (weft_nsec ns = WEFT_MS(2); !done; ns *= 2) {
		done = 99;
		WEFT_WITHIN(ns)
			r = weft_read_all(fds[0], buffer, 10, &done);
		ck_assert_int_eq(r, -ETIMEDOUT);
	}
	ck_assert_uint_eq(done, 5);
	ck_assert_int_eq(weft_shutdown(fds[1], SHUT_WR), 0);
	ck_assert_int_eq(weft_read_all(fds[0], buffer, 10, &done), -ENODATA);
	ck_assert_uint_eq(done, 0);
	WEFT_WITHIN(WEFT_MS(10))
		r = weft_write_all(fds[0], buffer, sizeof(buffer), &done);
	while (r == 0)
		WEFT_WITHIN(WEFT_MS(10))
			r = weft_send_all(fds[0], buffer, sizeof(buffer), 0,
					  &done);
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_uint_lt(done, sizeof(buffer));
	close_both(fds);
	return 0;
}

/* ---- Many operations, few entries --------------------------------------- */

enum { PAIRS = 100, ROUNDS = 20 };

static int64_t pair_echo(void *arg)
{
	int fd = *(int *)arg;
	ssize_t n;
	char buf[64];

	while ((n = weft_read(fd, buf, sizeof(buf))) > 0)
		ck_assert_int_eq(weft_write_all(fd, buf, (size_t)n, NULL), 0);
	ck_assert_int_eq(n, 0);
	return weft_close(fd);
}

static int64_t pair_ask(void *arg)
{
	int fd = *(int *)arg;

	for (int i = 0; i < ROUNDS; i++) {
		char out[32], in[32];

		memset(out, i + fd, sizeof(out));
		ck_assert_int_eq(weft_write_all(fd, out, sizeof(out), NULL),
				 0);
		ck_assert_int_eq(weft_read_all(fd, in, sizeof(in), NULL), 0);
		ck_assert_mem_eq(in, out, sizeof(in));
	}
	return weft_close(fd);
}

static int64_t pairs_task(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE(scope)
		for (int i = 0; i < PAIRS; i++) {
			int fds[2];

			socket_pair(fds);
			ck_assert_int_eq(WEFT_GO(scope, pair_echo, fds[0]), 0);
			ck_assert_int_eq(WEFT_GO(scope, pair_ask, fds[1]), 0);
		}
	return 0;
}

START_TEST(ring_of_two_entries_serves_hundreds_of_tasks)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = _i ? 2 : 1;
	opts.ring_entries = 2;
	ck_assert_int_eq(io_run_opts(pairs_task, NULL, &opts), 0);
}
END_TEST

START_TEST(errors_of_enter_are_survived)
{
	static const int errors[] = { EINTR, EAGAIN, EBUSY };
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = _i % 2 ? 2 : 1;
	opts.ring_entries = 16;
	weft__store(&enter_error, -errors[_i / 2], relaxed);
	ck_assert_int_eq(io_run_opts(pairs_task, NULL, &opts), 0);
}
END_TEST

static int64_t accept_one(void *arg)
{
	int fd = weft_accept(*(int *)arg, NULL);

	ck_assert_int_ge(fd, 0);
	return weft_close(fd);
}

/* A listener whose request is refused submits it again. */
static int64_t listeners_task(void *arg)
{
	char text[WEFT_ADDR_TEXT_BYTES];

	(void)arg;
	for (int i = 0; i < 12; i++) {
		int client = -1, listener = tcp_listener(text);

		WEFT_SUPERVISE(scope) {
			ck_assert_int_eq(WEFT_GO(scope, accept_one, listener),
					 0);
			client = weft_tcp_connect(text, NULL);
			ck_assert_int_ge(client, 0);
		}
		ck_assert_int_eq(weft_close(client), 0);
		ck_assert_int_eq(weft_close(listener), 0);
	}
	return 0;
}

START_TEST(errors_of_enter_are_survived_by_listeners)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = _i ? 2 : 1;
	weft__store(&enter_error, -EAGAIN, relaxed);
	ck_assert_int_eq(io_run_opts(listeners_task, NULL, &opts), 0);
}
END_TEST

/* ---- Two runtimes ------------------------------------------------------- */

static void *second_runtime(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)weft_run(pairs_task, NULL, NULL);
}

START_TEST(two_runtimes_do_not_meet)
{
	pthread_t thread;
	void *r;

	ck_assert_int_eq(pthread_create(&thread, NULL, second_runtime, NULL),
			 0);
	ck_assert_int_eq(weft_run(pairs_task, NULL, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, &r), 0);
	ck_assert_ptr_null(r);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/op");
	TCase *interrupt = tcase_create("interruption");
	TCase *many = tcase_create("many");
	TCase *helping = tcase_create("helping");

	tcase_set_timeout(interrupt, 60);
	tcase_set_timeout(many, 60);
	tcase_set_timeout(helping, 60);
	tcase_set_tags(helping, "monitor");
	io_add_test(interrupt, deadline_ends_every_call);
	io_add_test(interrupt, outer_deadline_is_a_cancellation);
	io_add_test(interrupt, loop_of_ready_operations_meets_its_deadline);
	tcase_add_test(interrupt, long_ready_operations_count_for_several);
	io_add_test(interrupt, cancelling_the_task_ends_every_call);
	io_add_test(interrupt, cancelled_task_can_say_goodbye_and_close);
	io_add_test(interrupt, no_byte_is_lost_to_deadlines);
	io_add_test(interrupt, buffer_is_the_callers_again_after_a_deadline);
	io_add_test(interrupt, all_calls_tell_how_far_they_came);
	tcase_add_loop_test(many, ring_of_two_entries_serves_hundreds_of_tasks,
			    0, 2);
	tcase_add_loop_test(many, errors_of_enter_are_survived, 0, 6);
	tcase_add_loop_test(many, errors_of_enter_are_survived_by_listeners, 0,
			    2);
	if (test_needs(test_has_descriptors(500), "two_runtimes_do_not_meet",
		       "500 descriptors"))
		tcase_add_test(many, two_runtimes_do_not_meet);
	suite_add_tcase(suite, interrupt);
	tcase_add_test(helping,
		       operation_of_a_busy_worker_is_cancelled_from_another);
	suite_add_tcase(suite, many);
	suite_add_tcase(suite, helping);
	return io_tests_run(suite);
}
