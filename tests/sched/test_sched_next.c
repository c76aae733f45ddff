/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/next: a task that is started runs before all others that can run,
 * and tasks that timers wake run one behind the other (ledger V21, V61).
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <weft/weft.h>

#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

enum { BESIDE = 5 };
static unsigned runs_beside;
static bool all_noted;

static int64_t yield_beside(void *arg)
{
	(void)arg;
	while (!all_noted) {
		runs_beside++;
		fake_pass(WEFT_US(1));
		EXPECT(weft_yield() == 0);
	}
	return 0;
}

static int64_t note_runs_beside(void *arg)
{
	**(unsigned **)arg = runs_beside;
	return 0;
}

static int64_t start_one_beside(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL) {
		for (int i = 0; i < BESIDE; i++)
			EXPECT(weft_go(all, yield_beside, NULL, 0) == 0);
		for (int i = 0; i < 100; i++) {
			unsigned noted = 0, *pointer = &noted, before;

			EXPECT(weft_yield() == 0);
			before = runs_beside;
			EXPECT(WEFT_GO(all, note_runs_beside, pointer) == 0);
			EXPECT(weft_sleep(WEFT_US(100)) == 0);
			EXPECT(noted == before);
		}
		all_noted = true;
	}
	return 0;
}

START_TEST(task_that_is_started_runs_before_all_others)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 1 };

	runs_beside = 0;
	all_noted = false;
	(void)must_run(&config, start_one_beside, NULL);
}
END_TEST

/* Several alarms have gone off when the worker looks. */
enum { SLEEPERS = 10 };
static unsigned woken[SLEEPERS], woken_count;

static int64_t sleep_and_note(void *arg)
{
	unsigned i = *(unsigned *)arg;

	EXPECT(weft_sleep(WEFT_MS(10 + i)) == 0);
	woken[woken_count++] = i;
	return 0;
}

static int64_t start_sleepers(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL)
		for (unsigned i = 0; i < SLEEPERS; i++)
			EXPECT(WEFT_GO(all, sleep_and_note, i) == 0);
	return 0;
}

START_TEST(tasks_that_timers_wake_run_in_the_order_of_their_alarms)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1,
		.step_ns = WEFT_MS(20),
	};

	woken_count = 0;
	(void)must_run(&config, start_sleepers, NULL);
	ck_assert_uint_eq(woken_count, SLEEPERS);
	for (unsigned i = 0; i < SLEEPERS; i++)
		ck_assert_uint_eq(woken[i], i);
}
END_TEST

static Suite *next_suite(void)
{
	Suite *suite = suite_create("sched/next");
	TCase *tc = tcase_create("next");

	tcase_add_loop_test(tc, task_that_is_started_runs_before_all_others, 0,
			    8);
	tcase_add_loop_test(
		tc, tasks_that_timers_wake_run_in_the_order_of_their_alarms, 0,
		8);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { next_suite };

	return run_suites(make, 1);
}
