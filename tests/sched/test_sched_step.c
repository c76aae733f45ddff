/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/step: the limits of a tick and of the wait in the injection queue
 * hold when runs suddenly take longer, too (ledger V31, L7, L28).
 *
 * A number of runs was set for the runs before the step.  So a worker also
 * reads the clock: about every 25 us, or after each run if a run takes longer.
 * All tests run on the fake driver, so times are exact.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <string.h>

#include <weft/weft.h>

#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

static uint64_t run_ns, slow_ns, submitted_ns, injected_ns, tick_max_ns;
static bool noted;

static int64_t note_injected(void *arg)
{
	(void)arg;
	injected_ns = weft_now();
	noted = true;
	return 0;
}

/* From here on a run takes longer, and a task waits outside. */
static void take_the_step(void *arg)
{
	(void)arg;
	run_ns = slow_ns;
	submitted_ns = weft_now();
	EXPECT(weft_submit(fake_runtime(), note_injected, NULL, 0, NULL) == 0);
}

static int64_t spin_until_noted(void *arg)
{
	(void)arg;
	while (!noted) {
		fake_pass(run_ns);
		EXPECT(weft_yield() == 0);
	}
	return 0;
}

static int64_t start_spinners(void *arg)
{
	fake_foreign(*(uint64_t *)arg, take_the_step, NULL);
	WEFT_SCOPE(all, NULL)
		for (unsigned i = 0; i < 100; i++)
			EXPECT(weft_go(all, spin_until_noted, NULL, 0) == 0);
	return 0;
}

static void time_tick(struct weft_runtime *runtime, void *arg)
{
	struct weft__worker *worker = runtime->workers[0];
	uint64_t ns = worker->tick.ended_ns - worker->tick.began_ns;

	(void)arg;
	if (run_ns == slow_ns && worker->tick.ended_ns && ns > tick_max_ns)
		tick_max_ns = ns;
}

/* So many runs of the former length pass between two looks at the clock. */
enum { FAST_NS = 500, LOOK_RUNS = 25000 / FAST_NS };

START_TEST(step_keeps_both_limits)
{
	static const uint64_t ns[] = { 500, 20000, 100000, 1000000, 10000000 };

	tick_max_ns = 0;
	slow_ns = ns[_i];
	for (unsigned i = 0; i < 40; i++) {
		struct fake_config config = {
			.seed = seed_of((int)i),
			.workers = 1,
			.after_step = time_tick,
		};
		uint64_t after_ns = WEFT_MS(50) + i * 7919;

		noted = false;
		run_ns = FAST_NS;
		(void)must_run(&config, start_spinners, &after_ns);
		ck_assert_uint_le(injected_ns - submitted_ns,
				  1000000 + WEFT__TICK_NS +
					  (LOOK_RUNS + 1) * slow_ns);
	}
	ck_assert_uint_le(tick_max_ns, WEFT__TICK_NS + LOOK_RUNS * slow_ns);
}
END_TEST

/* Runs of a millisecond, and twice as many come from outside as can run: local
 * tasks have half of the turns. */
enum { COMING = 100, EACH = 2 };
static unsigned local_runs, outside_runs, coming;

static int64_t run_outside(void *arg)
{
	(void)arg;
	outside_runs++;
	fake_pass(1000000);
	return 0;
}

static void come_from_outside(void *arg)
{
	(void)arg;
	if (--coming > 0)
		fake_foreign(WEFT_MS(1), come_from_outside, NULL);
	for (unsigned i = 0; i < EACH; i++)
		EXPECT(weft_submit(fake_runtime(), run_outside, NULL, 0,
				   NULL) == 0);
}

static int64_t run_locally(void *arg)
{
	(void)arg;
	while (coming > 0) {
		local_runs += outside_runs > 0;
		fake_pass(1000000);
		EXPECT(weft_yield() == 0);
	}
	return 0;
}

static int64_t start_local(void *arg)
{
	(void)arg;
	fake_foreign(WEFT_MS(50), come_from_outside, NULL);
	WEFT_SCOPE(all, NULL)
		for (unsigned i = 0; i < 100; i++)
			EXPECT(weft_go(all, run_locally, NULL, 0) == 0);
	return 0;
}

START_TEST(long_runs_leave_half_of_the_turns_to_local_tasks)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 1 };

	local_runs = outside_runs = 0;
	coming = COMING;
	(void)must_run(&config, start_local, NULL);
	ck_assert_uint_eq(outside_runs, COMING * EACH);
	ck_assert_uint_ge(local_runs, COMING * 2 / 5);
}
END_TEST

static Suite *step_suite(void)
{
	Suite *suite = suite_create("sched/step");
	TCase *limits = tcase_create("limits");

	tcase_set_timeout(limits, 60);
	tcase_add_loop_test(limits, step_keeps_both_limits, 0, 5);
	tcase_add_loop_test(limits,
			    long_runs_leave_half_of_the_turns_to_local_tasks, 0,
			    20);
	suite_add_tcase(suite, limits);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { step_suite };

	return run_suites(make, 1);
}
