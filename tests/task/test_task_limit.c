/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/limit: how many tasks of a scope there are at a time, and which
 * starters wait for a place.  Every test runs over seeds and numbers of
 * workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <errno.h>

#include <weft/weft.h>

#include "tests/support/sched_scene.h"

static int alive, alive_max, ended;

static void begin_counting(void)
{
	alive = 0;
	alive_max = 0;
	ended = 0;
}

/* Counts itself while it runs. */
static int64_t live(void *arg)
{
	struct answer answer = *(struct answer *)arg;

	alive++;
	if (alive > alive_max)
		alive_max = alive;
	for (int i = 0; i < answer.yields; i++)
		(void)weft_yield();
	if (answer.sleep_ns)
		(void)weft_sleep(answer.sleep_ns);
	alive--;
	ended++;
	return answer.result;
}

static int go_live(struct weft_scope *scope, int64_t result, int yields,
		   uint64_t sleep_ns)
{
	struct answer answer = { result, yields, sleep_ns };

	return WEFT_GO(scope, live, answer);
}

/* All places are free: `count` tasks can be started, and no more. */
static void expect_places(struct weft_scope *scope, unsigned count)
{
	EXPECT(weft_scope_count(scope) == 0);
	for (unsigned i = 0; i < count; i++)
		EXPECT(go_live(scope, 0, 0, WEFT_MS(1)) == 0);
	WEFT_WITHIN(0)
		EXPECT(go_live(scope, 0, 0, 0) == -ETIMEDOUT);
}

static void wait_for_all(struct weft_scope *scope)
{
	while (weft_scope_count(scope))
		EXPECT(weft_sleep(WEFT_US(10)) == 0);
}

static int64_t start_many(void *arg)
{
	(void)arg;
	for (unsigned limit = 1; limit < 20; limit += 6) {
		begin_counting();
		WEFT_SUPERVISE(all) {
			EXPECT(weft_scope_limit(all, limit) == 0);
			for (int i = 0; i < 100; i++)
				EXPECT(go_live(all, i % 2 ? -EIO : 0, i % 5,
					       (uint64_t)i % 3 * 5000) == 0);
			wait_for_all(all);
			EXPECT(ended == 100);
			EXPECT(alive_max <= (int)limit);
			EXPECT(limit > 7 || alive_max == (int)limit);
			expect_places(all, limit);
		}
	}
	return 0;
}

START_TEST(no_more_than_the_limit_run_at_once)
{
	(void)run_main(_i, start_many);
}
END_TEST

static int64_t start_when_full(void *arg)
{
	uint64_t before_ns = weft_now();

	(void)arg;
	begin_counting();
	WEFT_SUPERVISE(all) {
		EXPECT(weft_scope_limit(all, 3) == 0);
		for (int i = 0; i < 3; i++)
			EXPECT(go_live(all, 0, 0, WEFT_MS(10)) == 0);
		/* No start has waited so far. */
		EXPECT(weft_now() - before_ns < WEFT_MS(1));
		EXPECT(go_live(all, 0, 0, 0) == 0);
		EXPECT(ended >= 1);
		EXPECT(weft_now() - before_ns >= WEFT_MS(10));
		EXPECT(weft_now() - before_ns < WEFT_MS(12));
	}
	EXPECT(ended == 4);
	return 0;
}

START_TEST(start_waits_only_when_full_and_until_one_ends)
{
	(void)run_main(_i, start_when_full);
}
END_TEST

/* Starters that are not the scope's owner, in a scope of their own. */

struct starter {
	struct weft_scope *scope;
	int number;
};

static int turn;
static uint64_t turn_ns;

static int64_t take_turn(void *arg)
{
	int number = *(int *)arg;

	/* Starters that get their places together run in any order. */
	EXPECT(number < 0 || turn == number);
	turn++;
	return weft_sleep(turn_ns);
}

static int64_t start_in_turn(void *arg)
{
	struct starter starter = *(struct starter *)arg;

	EXPECT(WEFT_GO(starter.scope, take_turn, starter.number) == 0);
	return 0;
}

static int64_t wait_in_turn(void *arg)
{
	(void)arg;
	turn = 0;
	turn_ns = WEFT_US(100);
	WEFT_SUPERVISE(all) {
		EXPECT(weft_scope_limit(all, 1) == 0);
		WEFT_SCOPE(starters, NULL) {
			for (int i = 0; i < 20; i++) {
				struct starter starter = { all, i };

				EXPECT(WEFT_GO(starters, start_in_turn,
					       starter) == 0);
				/* This starter must ask before the next one
				 * does. */
				EXPECT(weft_sleep(WEFT_US(20)) == 0);
			}
		}
	}
	EXPECT(turn == 20);
	return 0;
}

START_TEST(those_that_wait_come_in_turn)
{
	(void)run_main(_i, wait_in_turn);
}
END_TEST

static int64_t start_inside(void *arg)
{
	struct weft_scope *scope = *(struct weft_scope **)arg;

	/* There is one more place. */
	EXPECT(go_live(scope, 0, 0, WEFT_MS(1)) == 0);
	EXPECT(go_live(scope, 0, 0, 0) == -EAGAIN);
	EXPECT(weft_scope_wait_room(scope) == -EAGAIN);
	return 0;
}

static int64_t start_below(void *arg)
{
	struct weft_scope *scope = *(struct weft_scope **)arg;

	WEFT_SUPERVISE(outer)
		WEFT_SCOPE(inner, NULL)
			EXPECT(weft_go(inner, start_inside, &scope,
				       sizeof(scope)) == 0);
	return 0;
}

static int64_t start_from_inside(void *arg)
{
	static const weft_fn insides[] = { start_inside, start_below };

	(void)arg;
	for (int i = 0; i < 2; i++)
		WEFT_SUPERVISE(all) {
			EXPECT(weft_scope_limit(all, 2) == 0);
			EXPECT(weft_go(all, insides[i], &all, sizeof(all)) ==
			       0);
			wait_for_all(all);
			expect_places(all, 2);
		}
	return 0;
}

START_TEST(task_does_not_wait_for_its_own_end)
{
	(void)run_main(_i, start_from_inside);
}
END_TEST

/*
 * Waits that are given up.
 */

static int64_t start_within(void *arg)
{
	uint64_t before_ns = weft_now();
	int error = 0;

	(void)arg;
	begin_counting();
	WEFT_SUPERVISE(all) {
		EXPECT(weft_scope_limit(all, 2) == 0);
		EXPECT(go_live(all, 0, 0, WEFT_MS(10)) == 0);
		EXPECT(go_live(all, 0, 0, WEFT_MS(10)) == 0);
		WEFT_WITHIN(WEFT_MS(2))
			error = go_live(all, 0, 0, 0);
		EXPECT(error == -ETIMEDOUT);
		EXPECT(weft_now() - before_ns < WEFT_MS(4));
		EXPECT(weft_scope_count(all) == 2);
		WEFT_WITHIN(WEFT_MS(2))
			error = weft_scope_wait_room(all);
		EXPECT(error == -ETIMEDOUT);
		wait_for_all(all);
		EXPECT(ended == 2);
		expect_places(all, 2);
	}
	return 0;
}

START_TEST(wait_for_a_place_obeys_deadlines)
{
	(void)run_main(_i, start_within);
}
END_TEST

static int64_t start_for_ever(void *arg)
{
	int error = 0;

	(void)arg;
	WEFT_SUPERVISE(all) {
		EXPECT(weft_scope_limit(all, 2) == 0);
		while (error == 0)
			error = go_live(all, 0, 0, WEFT_SEC(100));
	}
	return error;
}

static int64_t cancel_a_starter(void *arg)
{
	int64_t result = 0;

	(void)arg;
	begin_counting();
	WEFT_SUPERVISE(all) {
		struct weft_task task = start(all, start_for_ever, NULL, 0);

		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(weft_cancel(task) == 0);
		EXPECT(weft_join(task, &result) == 0);
		EXPECT(result == -ECANCELED);
		EXPECT(ended == 2);
	}
	return 0;
}

START_TEST(cancelled_starter_starts_nothing)
{
	(void)run_main(_i, cancel_a_starter);
}
END_TEST

static int64_t fail_when_full(void *arg)
{
	uint64_t before_ns = weft_now();
	int64_t result = 0;
	int error = 0;

	(void)arg;
	begin_counting();
	WEFT_SCOPE(group, &result) {
		EXPECT(weft_scope_limit(group, 2) == 0);
		EXPECT(go_live(group, 0, 0, WEFT_SEC(100)) == 0);
		EXPECT(go_live(group, -EIO, 0, WEFT_MS(1)) == 0);
		/* The place of the failed task is free, but the scope is
		 * cancelled. */
		error = go_live(group, 0, 0, 0);
		EXPECT(weft_scope_wait_room(group) == -ECANCELED);
		/* The owner itself is not cancelled. */
		EXPECT(weft_yield() == 0);
	}
	EXPECT(result == -EIO && error == -ECANCELED && ended == 2);
	WEFT_RACE(race, &result) {
		EXPECT(weft_scope_limit(race, 2) == 0);
		EXPECT(go_live(race, 0, 0, WEFT_SEC(100)) == 0);
		EXPECT(go_live(race, 7, 0, WEFT_MS(1)) == 0);
		error = go_live(race, 0, 0, 0);
	}
	EXPECT(result == 7 && error == -ECANCELED && ended == 4);
	EXPECT(weft_now() - before_ns < WEFT_MS(10));
	return 0;
}

START_TEST(cancelled_scope_refuses_those_that_wait)
{
	(void)run_main(_i, fail_when_full);
}
END_TEST

/* A start that fails for another reason gives its place back. */
static int64_t start_too_many(void *arg)
{
	static char large[200];
	int more = 0;

	(void)arg;
	begin_counting();
	WEFT_SUPERVISE(all) {
		EXPECT(weft_scope_limit(all, 3) == 0);
		WEFT_SUPERVISE(crowd) {
			while (go_live(crowd, 0, 0, WEFT_MS(1)) == 0)
				more++;
			EXPECT(more > 0);
			for (int i = 0; i < 10; i++)
				EXPECT(weft_go(all, live, large,
					       sizeof(large)) == -EAGAIN);
		}
		EXPECT(weft_scope_count(all) == 0);
		expect_places(all, 3);
	}
	return 0;
}

START_TEST(failed_start_gives_its_place_back)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 4,
		.tasks_max = 16,
	};

	(void)must_run(&config, start_too_many, NULL);
}
END_TEST

/*
 * Setting.
 */

static int64_t raise_and_lower(void *arg)
{
	(void)arg;
	begin_counting();
	WEFT_SUPERVISE(all) {
		EXPECT(weft_scope_limit(all, 1) == 0);
		turn = 0;
		turn_ns = WEFT_MS(2);
		WEFT_SCOPE(starters, NULL) {
			for (int i = 0; i < 6; i++) {
				struct starter starter = { all, -1 };

				EXPECT(WEFT_GO(starters, start_in_turn,
					       starter) == 0);
				EXPECT(weft_sleep(WEFT_US(10)) == 0);
			}
			EXPECT(turn == 1);
			/* The waiting starters get the new places. */
			EXPECT(weft_scope_limit(all, 4) == 0);
			EXPECT(weft_sleep(WEFT_US(20)) == 0);
			EXPECT(turn == 4);
		}
		wait_for_all(all);
		expect_places(all, 4);
		/* Running tasks go on. */
		EXPECT(weft_scope_limit(all, 2) == 0);
		EXPECT(weft_scope_count(all) == 4);
		alive_max = 0;
		for (int i = 0; i < 8; i++)
			EXPECT(go_live(all, 0, i % 3, WEFT_MS(1)) == 0);
		wait_for_all(all);
		EXPECT(alive_max == 2);
		expect_places(all, 2);
	}
	return 0;
}

START_TEST(limit_can_be_changed)
{
	(void)run_main(_i, raise_and_lower);
}
END_TEST

static int64_t limit_of_another(void *arg)
{
	return weft_scope_limit(*(struct weft_scope **)arg, 1);
}

static int64_t set_wrongly(void *arg)
{
	int64_t result = 0;

	(void)arg;
	WEFT_SUPERVISE(all) {
		struct weft_task task;

		EXPECT(weft_scope_limit(all, 0) == -EINVAL);
		task = start(all, limit_of_another, &all, sizeof(all));
		EXPECT(weft_scope_limit(all, 1) == -EBUSY);
		EXPECT(weft_scope_wait_room(all) == 0);
		EXPECT(weft_join(task, &result) == 0);
		EXPECT(result == -EPERM);
		EXPECT(weft_scope_limit(all, 1) == 0);
		expect_places(all, 1);
	}
	return 0;
}

START_TEST(limit_is_set_by_the_owner_of_an_empty_scope)
{
	(void)run_main(_i, set_wrongly);
}
END_TEST

/* A server at its limit does not accept; the connections wait outside. */
static int64_t wait_for_room(void *arg)
{
	uint64_t before_ns;
	int accepted = 0;

	(void)arg;
	begin_counting();
	WEFT_SUPERVISE(peers) {
		EXPECT(weft_scope_limit(peers, 5) == 0);
		while (accepted < 50) {
			EXPECT(weft_scope_wait_room(peers) == 0);
			EXPECT(weft_scope_count(peers) < 5);
			accepted++;
			before_ns = weft_now();
			EXPECT(go_live(peers, 0, 0, WEFT_US(100)) == 0);
			EXPECT(weft_now() - before_ns < WEFT_US(1));
		}
	}
	EXPECT(ended == 50 && alive_max == 5);
	return 0;
}

START_TEST(room_can_be_waited_for)
{
	(void)run_main(_i, wait_for_room);
}
END_TEST

/* Joins, and ends of tasks with handles, free places, too. */
static int64_t join_for_room(void *arg)
{
	struct weft_task tasks[2];
	int64_t result = 0;

	(void)arg;
	WEFT_SUPERVISE(all) {
		EXPECT(weft_scope_limit(all, 2) == 0);
		for (int i = 0; i < 30; i++) {
			tasks[0] = start_give(all, i, i % 3, 0);
			tasks[1] = start_give(all, -i, 0, (uint64_t)i * 100);
			EXPECT(weft_join(tasks[1], &result) == 0);
			EXPECT(result == -i);
			EXPECT(weft_join(tasks[0], &result) == 0);
			EXPECT(result == i);
		}
		expect_places(all, 2);
	}
	return 0;
}

START_TEST(joined_tasks_leave_their_places)
{
	(void)run_main(_i, join_for_room);
}
END_TEST

/* All together: starters with deadlines are cancelled while tasks end. */

static int started, refused;

static int64_t start_at_random(void *arg)
{
	struct starter starter = *(struct starter *)arg;

	for (int i = 0; i < 30; i++) {
		int error = 0;

		WEFT_WITHIN(fake_random(4) ? WEFT_SEC(1) :
					     fake_random(20000))
			error = go_live(starter.scope, 0, (int)fake_random(3),
					fake_random(10000));
		started += error == 0;
		refused += error != 0;
		EXPECT(error == 0 || error == -ETIMEDOUT ||
		       error == -ECANCELED);
		if (error == -ECANCELED)
			break;
	}
	return 0;
}

static int64_t storm(void *arg)
{
	struct weft_task tasks[12];
	unsigned limit = 1 + (unsigned)fake_random(4);

	(void)arg;
	begin_counting();
	started = 0;
	refused = 0;
	WEFT_SUPERVISE(all) {
		EXPECT(weft_scope_limit(all, limit) == 0);
		WEFT_SUPERVISE(starters) {
			for (int i = 0; i < 12; i++) {
				struct starter starter = { all, i };

				tasks[i] = start(starters, start_at_random,
						 &starter, sizeof(starter));
			}
			for (int i = 0; i < 6; i++) {
				EXPECT(weft_sleep(fake_random(50000)) == 0);
				(void)weft_cancel(tasks[fake_random(12)]);
				EXPECT(go_live(all, 0, 1, 0) == 0);
			}
		}
		wait_for_all(all);
		EXPECT(ended == started + 6);
		EXPECT(alive_max <= (int)limit);
		expect_places(all, limit);
	}
	return 0;
}

START_TEST(no_place_is_lost_or_given_twice)
{
	(void)run_main(_i, storm);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static Suite *limit_suite(void)
{
	Suite *suite = suite_create("task/limit");
	TCase *tc = tcase_create("limit");

	tcase_set_timeout(tc, 30);
	ADD(tc, no_more_than_the_limit_run_at_once);
	ADD(tc, start_waits_only_when_full_and_until_one_ends);
	ADD(tc, those_that_wait_come_in_turn);
	ADD(tc, task_does_not_wait_for_its_own_end);
	ADD(tc, wait_for_a_place_obeys_deadlines);
	ADD(tc, cancelled_starter_starts_nothing);
	ADD(tc, cancelled_scope_refuses_those_that_wait);
	ADD(tc, failed_start_gives_its_place_back);
	ADD(tc, limit_can_be_changed);
	ADD(tc, limit_is_set_by_the_owner_of_an_empty_scope);
	ADD(tc, room_can_be_waited_for);
	ADD(tc, joined_tasks_leave_their_places);
	tcase_add_loop_test(tc, no_place_is_lost_or_given_twice, 0,
			    seeds(10 * SEEDS));
	suite_add_tcase(suite, tc);

	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { limit_suite };

	return run_suites(make, 1);
}
