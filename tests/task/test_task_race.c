/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/race: the first success wins, and no result of the other tasks is
 * lost.  Every test runs over seeds and numbers of workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <errno.h>
#include <string.h>

#include <weft/weft.h>

#include "tests/support/sched_scene.h"

static void go_give(struct weft_scope *scope, int64_t result, int yields,
		    uint64_t sleep_ns)
{
	struct answer answer = { result, yields, sleep_ns };

	EXPECT(WEFT_GO(scope, give, answer) == 0);
}

static int cancelled_count;

static int64_t sleep_long(void *arg)
{
	int error = weft_sleep(WEFT_SEC(100));

	(void)arg;
	cancelled_count += error == -ECANCELED;
	return error;
}

static int64_t one_is_first(void *arg)
{
	uint64_t before_ns = weft_now();
	int64_t result = -1;
	int error = 0;

	(void)arg;
	cancelled_count = 0;
	WEFT_RACE(race, &result) {
		for (int i = 0; i < 10; i++)
			EXPECT(weft_go(race, sleep_long, NULL, 0) == 0);
		go_give(race, 7, 3, WEFT_MS(1));
		for (int i = 0; i < 10; i++)
			EXPECT(weft_go(race, sleep_long, NULL, 0) == 0);
		EXPECT(weft_sleep(WEFT_MS(2)) == 0);
		error = weft_go(race, sleep_long, NULL, 0);
	}
	EXPECT(result == 7);
	EXPECT(error == -ECANCELED);
	EXPECT(cancelled_count == 20);
	EXPECT(weft_now() - before_ns < WEFT_MS(10));
	/* The owner is not part of the race. */
	EXPECT(weft_yield() == 0);
	return 0;
}

START_TEST(first_success_wins_and_cancels_the_rest)
{
	(void)run_main(_i, one_is_first);
}
END_TEST

static int64_t failures_lose(void *arg)
{
	int64_t result = -1;

	(void)arg;
	WEFT_RACE(race, &result) {
		go_give(race, -EIO, 0, 0);
		go_give(race, -EPIPE, 2, WEFT_MS(1));
		go_give(race, 0, 1, WEFT_MS(2));
		go_give(race, -ENOENT, 0, WEFT_MS(1));
	}
	EXPECT(result == 0);
	return 0;
}

START_TEST(failure_does_not_end_a_race)
{
	(void)run_main(_i, failures_lose);
}
END_TEST

static int64_t all_fail(void *arg)
{
	int64_t result = 1;

	(void)arg;
	WEFT_RACE(race, &result) {
		go_give(race, -EPIPE, 0, WEFT_MS(3));
		go_give(race, -EIO, 0, WEFT_MS(1));
		go_give(race, -ENOENT, 0, WEFT_MS(2));
	}
	EXPECT(result == -EIO);
	/* The same holds for -ECHILD, which also stands for a race without
	 * tasks. */
	WEFT_RACE(race, &result) {
		go_give(race, -ECHILD, 0, 0);
		go_give(race, 5, 0, WEFT_MS(1));
	}
	EXPECT(result == 5);
	return 0;
}

START_TEST(first_failure_is_the_result_if_all_fail)
{
	(void)run_main(_i, all_fail);
}
END_TEST

static int64_t nobody_runs(void *arg)
{
	int64_t result = 1;

	(void)arg;
	WEFT_RACE(race, &result)
		EXPECT(weft_scope_count(race) == 0);
	EXPECT(result == -ECHILD);
	WEFT_RACE(race, &result) {
		weft_scope_cancel(race);
		EXPECT(weft_go(race, sleep_long, NULL, 0) == -ECANCELED);
	}
	EXPECT(result == -ECHILD);
	return 0;
}

START_TEST(race_without_tasks_has_no_winner)
{
	(void)run_main(_i, nobody_runs);
}
END_TEST

/* Results that come too late. */

enum { RUNNERS = 40 };

/* How often each result won or was dropped. */
static int seen[RUNNERS];

static void see(int64_t result)
{
	EXPECT(result >= 0 && result < RUNNERS);
	seen[result]++;
}

/* Succeeds although it is cancelled, like a call that is complete at that
 * moment: the result must not be lost. */
static int64_t succeed(void *arg)
{
	int number = *(int *)arg;

	if (number % 3 == 1)
		(void)weft_yield();
	if (number % 3 == 2)
		(void)weft_sleep(WEFT_US(1) * (uint64_t)(number % 7));
	return number;
}

static int64_t all_succeed(void *arg)
{
	int64_t result = -1;
	int started = 0;

	(void)arg;
	memset(seen, 0, sizeof(seen));
	WEFT_RACE(race, &result) {
		EXPECT(weft_race_drop(race, see) == 0);
		while (started < RUNNERS &&
		       WEFT_GO(race, succeed, started) == 0)
			started++;
	}
	see(result);
	for (int i = 0; i < RUNNERS; i++)
		EXPECT(seen[i] == (i < started));
	return 0;
}

START_TEST(each_success_wins_or_is_dropped)
{
	(void)run_main(_i, all_succeed);
}
END_TEST

static int dropped;

/* As slow as a weft_close() may be. */
static void drop_slowly(int64_t result)
{
	EXPECT(result == 1);
	EXPECT(weft_sleep(WEFT_MS(3)) == 0);
	WEFT_SCOPE(inner, NULL)
		go_give(inner, 0, 1, WEFT_MS(1));
	dropped++;
}

static int64_t be_late(void *arg)
{
	(void)arg;
	EXPECT(weft_sleep(WEFT_SEC(100)) == -ECANCELED);
	return 1;
}

/* With all that a task may have at its end: an argument outside its record, a
 * deadline and a handle. */
static int64_t drop_with_all(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task late = { 0 };
	int64_t result = -1, own = -1;
	char large[200] = { 0 };

	(void)arg;
	dropped = 0;
	WEFT_RACE(race, &result) {
		EXPECT(weft_race_drop(race, drop_slowly) == 0);
		opts.ret_task = &late;
		WEFT_WITHIN(WEFT_SEC(1000))
			EXPECT(weft_go_opts(race, be_late, large, sizeof(large),
					    &opts) == 0);
		EXPECT(weft_go(race, be_late, large, sizeof(large)) == 0);
		go_give(race, 2, 0, WEFT_MS(1));
		EXPECT(weft_join(late, &own) == 0);
		EXPECT(own == 1 && dropped >= 1);
	}
	EXPECT(result == 2);
	EXPECT(dropped == 2);
	return 0;
}

START_TEST(drop_is_shielded_and_waited_for)
{
	(void)run_main(_i, drop_with_all);
}
END_TEST

static int64_t drop_of_another(void *arg)
{
	return weft_race_drop(*(struct weft_scope **)arg, see);
}

static int64_t drop_where_it_cannot(void *arg)
{
	int64_t result = 0;

	(void)arg;
	WEFT_SUPERVISE(group) {
		struct weft_task other;

		EXPECT(weft_race_drop(group, see) == -EINVAL);
		other = start(group, drop_of_another, &group, sizeof(group));
		EXPECT(weft_join(other, &result) == 0 && result == -EPERM);
	}
	return 0;
}

START_TEST(drop_is_for_races_and_their_owners)
{
	(void)run_main(_i, drop_where_it_cannot);
}
END_TEST

/* Races inside races. */

static int64_t race_for_ever(void *arg)
{
	int64_t result = 1;

	(void)arg;
	WEFT_RACE(race, &result)
		for (int i = 0; i < 5; i++)
			EXPECT(weft_go(race, sleep_long, NULL, 0) == 0);
	return result;
}

static int64_t race_of_races(void *arg)
{
	int64_t result = -1;

	(void)arg;
	cancelled_count = 0;
	WEFT_RACE(outer, &result) {
		for (int i = 0; i < 4; i++)
			EXPECT(weft_go(outer, race_for_ever, NULL, 0) == 0);
		go_give(outer, 3, 0, WEFT_MS(1));
	}
	EXPECT(result == 3);
	EXPECT(cancelled_count == 20);
	return 0;
}

START_TEST(loser_cancels_its_own_race)
{
	(void)run_main(_i, race_of_races);
}
END_TEST

static int64_t race_against_time(void *arg)
{
	uint64_t before_ns = weft_now();
	int64_t result = 1;

	(void)arg;
	WEFT_WITHIN(WEFT_MS(5))
		result = race_for_ever(NULL);
	EXPECT(result == -ECANCELED);
	EXPECT(weft_now() - before_ns < WEFT_MS(10));
	return 0;
}

START_TEST(deadline_around_a_race_ends_it)
{
	(void)run_main(_i, race_against_time);
}
END_TEST

static int64_t leave_by_return(int64_t *result)
{
	WEFT_RACE(race, result) {
		go_give(race, 9, 0, WEFT_MS(1));
		return 1;
	}
	return 2;
}

static int64_t leave_by_calls(void)
{
	struct weft_scope scope;

	EXPECT(weft_race_begin(&scope) == 0);
	go_give(&scope, -EIO, 0, 0);
	go_give(&scope, 8, 4, 0);
	return weft_scope_end(&scope);
}

static int64_t leave_every_way(void *arg)
{
	int64_t result = -1;

	(void)arg;
	EXPECT(leave_by_return(&result) == 1);
	EXPECT(result == 9);
	EXPECT(leave_by_calls() == 8);
	return 0;
}

START_TEST(race_is_joined_on_every_way_out)
{
	(void)run_main(_i, leave_every_way);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static Suite *race_suite(void)
{
	Suite *suite = suite_create("task/race");
	TCase *tc = tcase_create("race");

	tcase_set_timeout(tc, 30);
	ADD(tc, first_success_wins_and_cancels_the_rest);
	ADD(tc, failure_does_not_end_a_race);
	ADD(tc, first_failure_is_the_result_if_all_fail);
	ADD(tc, race_without_tasks_has_no_winner);
	ADD(tc, each_success_wins_or_is_dropped);
	ADD(tc, drop_is_shielded_and_waited_for);
	ADD(tc, drop_is_for_races_and_their_owners);
	ADD(tc, loser_cancels_its_own_race);
	ADD(tc, deadline_around_a_race_ends_it);
	ADD(tc, race_is_joined_on_every_way_out);
	suite_add_tcase(suite, tc);

	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { race_suite };

	return run_suites(make, 1);
}
