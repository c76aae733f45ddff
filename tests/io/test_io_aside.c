/* SPDX-License-Identifier: MIT */
/*
 * A worker that computes gets more completions than its ring has room for: the
 * kernel keeps the others aside until a thread asks for them.
 */
#include <pthread.h>

#include "tests/support/io_kit.h"

enum { MANY = 60, ENTRIES = 2 };

struct many {
	weft__atomic(int) stage; /* 1: the other worker computes; 2: it need
				    not */
	int fds[MANY][2];
	weft__atomic(unsigned) began, ended;
};

static int64_t read_one(void *arg)
{
	struct many *many = *(struct many **)arg;
	/* relaxed: a number. */
	unsigned i = weft__add(&many->began, 1u, relaxed);
	char byte;

	ck_assert_int_eq(weft_read(many->fds[i][0], &byte, 1), 1);
	weft__add(&many->ended, 1u, release);
	return 0;
}

/* The readers must begin on one worker. */
static int64_t keep_worker_busy(void *arg)
{
	struct many *many = *(struct many **)arg;

	weft__store(&many->stage, 1, release);
	while (weft__load(&many->stage, acquire) < 2)
		weft__spin_hint();
	return 0;
}

static void *write_many(void *arg)
{
	struct many *many = arg;

	thread_pause_ns(5000000);
	for (unsigned i = 0; i < MANY; i++)
		if (write(many->fds[i][1], "x", 1) != 1)
			abort();
	return NULL;
}

static void compute_until_all_have_read(struct many *many)
{
	weft_nsec start = weft_now();
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, write_many, many), 0);
	while (weft__load(&many->ended, acquire) < MANY &&
	       weft_now() - start < WEFT_SEC(10))
		weft__spin_hint();
	pthread_join(thread, NULL);
	ck_assert_uint_eq(weft__load(&many->ended, acquire), MANY);
}

static int64_t many_task(void *arg)
{
	static struct many many;
	struct many *pointer = &many;

	(void)arg;
	for (unsigned i = 0; i < MANY; i++)
		socket_pair(many.fds[i]);
	WEFT_SUPERVISE (scope) {
		ck_assert_int_eq(WEFT_GO(scope, keep_worker_busy, pointer), 0);
		while (weft__load(&many.stage, acquire) < 1)
			weft_yield();
		for (unsigned i = 0; i < MANY; i++)
			ck_assert_int_eq(WEFT_GO(scope, read_one, pointer), 0);
		while (weft__load(&many.began, relaxed) < MANY)
			weft_yield();
		weft_yield();
		weft__store(&many.stage, 2, release);
		compute_until_all_have_read(&many);
	}
	for (unsigned i = 0; i < MANY; i++)
		close_both(many.fds[i]);
	return 0;
}

/* A helper makes the kernel post the completions that it kept aside. */
START_TEST(completions_beyond_the_ring_of_a_busy_worker_are_delivered)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 2;
	opts.ring_entries = ENTRIES;
	ck_assert_int_eq(io_run_opts(many_task, NULL, &opts), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/aside");
	TCase *helping = tcase_create("helping");

	tcase_set_timeout(helping, 60);
	tcase_set_tags(helping, "monitor");
	tcase_add_test(
		helping,
		completions_beyond_the_ring_of_a_busy_worker_are_delivered);
	suite_add_tcase(suite, helping);
	return io_tests_run(suite);
}
