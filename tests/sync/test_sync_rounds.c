/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/rounds: counts, barriers, and what is done once.  Every test runs
 * over seeds and numbers of workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <weft/weft.h>

#include "tests/support/sync_scene.h"

/*
 * Counts.
 */

enum { TASKS = 6, ROUNDS = 20 };

static struct weft_wait_group count;
static unsigned under_way, ended;

static int64_t do_work(void *arg)
{
	(void)arg;
	dwell();
	under_way--;
	weft_wait_group_done(&count);
	return 0;
}

static int64_t wait_for_work(void *arg)
{
	(void)arg;
	EXPECT(weft_wait_group_wait(&count) == 0);
	EXPECT(under_way == 0);
	ended++;
	return 0;
}

static int64_t work_in_rounds(void *arg)
{
	(void)arg;
	count = (struct weft_wait_group)WEFT_WAIT_GROUP_INIT(0);
	under_way = 0;
	/* The count is 0, so there is nothing to wait for. */
	EXPECT(weft_wait_group_wait(&count) == 0);
	WEFT_SUPERVISE (all)
		for (int i = 0; i < ROUNDS; i++) {
			ended = 0;
			weft_wait_group_add(&count, TASKS);
			under_way = TASKS;
			for (int k = 0; k < TASKS; k++)
				EXPECT(weft_go(all, do_work, NULL, 0) == 0);
			WEFT_SUPERVISE (waiters) {
				for (int k = 0; k < 3; k++)
					EXPECT(weft_go(waiters, wait_for_work,
						       NULL, 0) == 0);
				EXPECT(weft_wait_group_wait(&count) == 0);
				EXPECT(under_way == 0);
			}
			EXPECT(ended == 3);
		}
	return 0;
}

START_TEST(count_lets_all_go_on_when_all_is_done)
{
	(void)run_main(_i, work_in_rounds);
}
END_TEST

static int64_t wait_for_latch(void *arg)
{
	(void)arg;
	EXPECT(weft_wait_group_wait(&count) == 0);
	ended++;
	return 0;
}

static int64_t open_latch(void *arg)
{
	(void)arg;
	count = (struct weft_wait_group)WEFT_WAIT_GROUP_INIT(3);
	ended = 0;
	WEFT_SUPERVISE (all) {
		for (int i = 0; i < TASKS; i++)
			EXPECT(weft_go(all, wait_for_latch, NULL, 0) == 0);
		for (int i = 0; i < 3; i++) {
			EXPECT(weft_sleep(WEFT_MS(1)) == 0);
			EXPECT(ended == 0);
			weft_wait_group_done(&count);
		}
		/* It stays open. */
		EXPECT(weft_wait_group_wait(&count) == 0);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(ended == TASKS);
	}
	return 0;
}

START_TEST(latch_stays_open)
{
	(void)run_main(_i, open_latch);
}
END_TEST

/*
 * Barriers.
 */

static struct weft_barrier barrier;
static unsigned arrived, last_ones;

/* No task enters the next round before all tasks have arrived at this one. */
static int64_t meet_often(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		int r;

		dwell();
		arrived++;
		r = weft_barrier_wait(&barrier);
		EXPECT(r == 0 || r == 1);
		last_ones += r == 1;
		EXPECT(arrived >= (i + 1) * TASKS);
		EXPECT(arrived < (i + 2) * TASKS);
	}
	return 0;
}

static int64_t meet_in_rounds(void *arg)
{
	(void)arg;
	barrier = (struct weft_barrier)WEFT_BARRIER_INIT(TASKS);
	arrived = last_ones = 0;
	WEFT_SUPERVISE (all)
		for (int i = 0; i < TASKS; i++)
			EXPECT(weft_go(all, meet_often, NULL, 0) == 0);
	EXPECT(arrived == TASKS * ROUNDS);
	EXPECT(last_ones == ROUNDS);
	return 0;
}

START_TEST(barrier_holds_round_by_round_and_has_one_last)
{
	(void)run_main(_i, meet_in_rounds);
}
END_TEST

static int64_t meet_alone(void *arg)
{
	(void)arg;
	barrier = (struct weft_barrier)WEFT_BARRIER_INIT(1);
	for (int i = 0; i < 3; i++)
		EXPECT(weft_barrier_wait(&barrier) == 1);
	return 0;
}

START_TEST(barrier_of_one_holds_nobody)
{
	(void)run_main(_i, meet_alone);
}
END_TEST

static int64_t meet_once(void *arg)
{
	(void)arg;
	last_ones += weft_barrier_wait(&barrier) == 1;
	arrived++;
	return 0;
}

static int64_t meet_in_vain(void *arg)
{
	(void)arg;
	WEFT_WITHIN (WEFT_MS(1))
		EXPECT(weft_barrier_wait(&barrier) == -ETIMEDOUT);
	return 0;
}

/* In each round, one task arrives first and gives up: the round needs another
 * task then. */
static int64_t leave_a_barrier(void *arg)
{
	(void)arg;
	barrier = (struct weft_barrier)WEFT_BARRIER_INIT(3);
	last_ones = 0;
	for (int i = 0; i < 3; i++) {
		arrived = 0;
		WEFT_SUPERVISE (all) {
			EXPECT(weft_go(all, meet_in_vain, NULL, 0) == 0);
			EXPECT(weft_yield() == 0);
			EXPECT(weft_go(all, meet_once, NULL, 0) == 0);
			EXPECT(weft_sleep(WEFT_MS(2)) == 0);
			EXPECT(weft_go(all, meet_once, NULL, 0) == 0);
			EXPECT(weft_sleep(WEFT_MS(2)) == 0);
			EXPECT(arrived == 0);
			EXPECT(weft_barrier_wait(&barrier) == 1);
		}
		EXPECT(arrived == 2);
	}
	EXPECT(last_ones == 0);
	return 0;
}

START_TEST(who_leaves_a_barrier_does_not_count)
{
	(void)run_main(_i, leave_a_barrier);
}
END_TEST

/*
 * Once.
 */

static struct weft_once once;
static unsigned runs, results;

static int64_t make_it(void *arg)
{
	runs++;
	dwell();
	if (fake_random(2))
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	return *(int *)arg;
}

static int64_t ask_for_it(void *arg)
{
	int wanted = 42;

	(void)arg;
	dwell();
	EXPECT(weft_once_run(&once, make_it, &wanted) == 42);
	EXPECT(runs == 1);
	results++;
	return 0;
}

static int64_t ask_once(void *arg)
{
	(void)arg;
	once = (struct weft_once)WEFT_ONCE_INIT;
	runs = results = 0;
	WEFT_SUPERVISE (all)
		for (int i = 0; i < TASKS; i++)
			EXPECT(weft_go(all, ask_for_it, NULL, 0) == 0);
	EXPECT(results == TASKS && runs == 1);
	/* A second function is not run either. */
	EXPECT(weft_once_run(&once, ask_for_it, NULL) == 42);
	return 0;
}

START_TEST(once_runs_once_and_all_get_its_result)
{
	(void)run_main(_i, ask_once);
}
END_TEST

/* Fails three times.  Each failure is returned to one task only. */
static unsigned running, failures;

static int64_t fail_thrice(void *arg)
{
	(void)arg;
	EXPECT(running++ == 0);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	running--;
	return runs++ < 3 ? -EIO : 7;
}

static int64_t ask_and_perhaps_fail(void *arg)
{
	int64_t r = weft_once_run(&once, fail_thrice, NULL);

	(void)arg;
	EXPECT(r == 7 || r == -EIO);
	*(r == 7 ? &results : &failures) += 1;
	return 0;
}

static int64_t fail_before_it_is_done(void *arg)
{
	(void)arg;
	once = (struct weft_once)WEFT_ONCE_INIT;
	runs = results = failures = running = 0;
	WEFT_SUPERVISE (all)
		for (int i = 0; i < TASKS; i++)
			EXPECT(weft_go(all, ask_and_perhaps_fail, NULL, 0) ==
			       0);
	EXPECT(failures == 3 && results == TASKS - 3);
	EXPECT(runs == 4);
	EXPECT(weft_once_run(&once, fail_thrice, NULL) == 7);
	EXPECT(runs == 4);
	return 0;
}

START_TEST(failure_is_for_one_and_lets_the_next_one_try)
{
	(void)run_main(_i, fail_before_it_is_done);
}
END_TEST

/* The function that runs may use another weft_once; the two are independent. */
static struct weft_once inner;

static int64_t ask_inside(void *arg)
{
	(void)arg;
	runs++;
	return weft_once_run(&inner, make_it, &(int){ 3 }) + 1;
}

static int64_t ask_nested(void *arg)
{
	(void)arg;
	once = inner = (struct weft_once)WEFT_ONCE_INIT;
	runs = 0;
	EXPECT(weft_once_run(&once, ask_inside, NULL) == 4);
	EXPECT(weft_once_run(&inner, make_it, NULL) == 3);
	EXPECT(runs == 2);
	return 0;
}

START_TEST(once_inside_another_is_done)
{
	(void)run_main(_i, ask_nested);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static TCase *count_tests(void)
{
	TCase *tc = tcase_create("count");

	ADD(tc, count_lets_all_go_on_when_all_is_done);
	ADD(tc, latch_stays_open);
	return tc;
}

static TCase *barrier_tests(void)
{
	TCase *tc = tcase_create("barrier");

	ADD(tc, barrier_holds_round_by_round_and_has_one_last);
	ADD(tc, barrier_of_one_holds_nobody);
	ADD(tc, who_leaves_a_barrier_does_not_count);
	return tc;
}

static TCase *once_tests(void)
{
	TCase *tc = tcase_create("once");

	ADD(tc, once_runs_once_and_all_get_its_result);
	ADD(tc, failure_is_for_one_and_lets_the_next_one_try);
	ADD(tc, once_inside_another_is_done);
	return tc;
}

static Suite *rounds_suite(void)
{
	Suite *suite = suite_create("sync/rounds");

	suite_add_tcase(suite, count_tests());
	suite_add_tcase(suite, barrier_tests());
	suite_add_tcase(suite, once_tests());
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { rounds_suite };

	return run_suites(make, 1);
}
