/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/budget: the limits of a tick and of a run, and how long tasks
 * from outside wait (ledger V34, V50, L7, L28).
 *
 * A tick runs at most 128 tasks and ends after a given time; a run ends after a
 * number of operations.  All tests run on virtual time, so times are exact.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <weft/weft.h>

#include "runtime/sched/wait.h"
#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

static uint64_t polls_before, longest_tick, full_ticks;

static void count_tick(struct weft_runtime *runtime, void *arg)
{
	/* relaxed: one thread. */
	uint64_t polls = weft__load(&runtime->workers[0]->counts[WEFT__N_POLLS],
				    relaxed);
	uint64_t runs = polls - polls_before;

	(void)arg;
	polls_before = polls;
	if (runs > longest_tick)
		longest_tick = runs;
	full_ticks += runs == 128;
}

static int64_t yield_often(void *arg)
{
	int left = *(int *)arg;

	while (left-- > 0)
		EXPECT(weft_yield() == 0);
	return 0;
}

static int64_t start_yielders(void *arg)
{
	unsigned count = *(unsigned *)arg;
	int each = 100000 / (int)count;

	WEFT_SCOPE(all, NULL)
		for (unsigned i = 0; i < count; i++)
			EXPECT(WEFT_GO(all, yield_often, each) == 0);
	return 0;
}

/* V50 */
START_TEST(tick_runs_128_tasks)
{
	struct fake_config config = {
		.workers = 1,
		.after_step = count_tick,
	};

	unsigned count = _i ? 1000 : 1;

	polls_before = longest_tick = full_ticks = 0;
	(void)must_run(&config, start_yielders, &count);
	ck_assert_uint_eq(longest_tick, 128);
	ck_assert_uint_ge(full_ticks, 300);
}
END_TEST

/* L28: a tick also ends after 200 us.  The worker reads the clock when about a
 * microsecond has passed, or after each run if a run takes longer. */
enum { TICK_NS = 200000, LOOK_NS = 1000 };

static uint64_t run_ns, tick_max_ns, ticks_in_full;

static void time_tick(struct weft_runtime *runtime, void *arg)
{
	struct weft__worker *worker = runtime->workers[0];
	uint64_t ns = worker->tick.ended_ns - worker->tick.began_ns;

	(void)arg;
	/* In its first ticks the worker does not know yet how long a run
	 * takes. */
	/* relaxed: one thread. */
	if (!worker->tick.ended_ns ||
	    weft__load(&worker->counts[WEFT__N_TICKS], relaxed) < 200)
		return;
	if (ns > tick_max_ns)
		tick_max_ns = ns;
	ticks_in_full += ns >= TICK_NS;
}

static int64_t yield_slowly(void *arg)
{
	int left = *(int *)arg;

	while (left-- > 0) {
		fake_pass(run_ns);
		EXPECT(weft_yield() == 0);
	}
	return 0;
}

static int64_t start_slow_yielders(void *arg)
{
	int each = 1000;

	(void)arg;
	WEFT_SCOPE(all, NULL)
		for (unsigned i = 0; i < 100; i++)
			EXPECT(WEFT_GO(all, yield_slowly, each) == 0);
	return 0;
}

START_TEST(tick_ends_after_200_us)
{
	/* Some with which no look at the clock comes just when a tick ends. */
	static const uint64_t ns[] = { 2000,  3000,  5000,  7000,
				       20000, 50000, 300000 };
	struct fake_config config = {
		.workers = 1,
		.after_step = time_tick,
	};

	run_ns = ns[_i];
	tick_max_ns = ticks_in_full = 0;
	(void)must_run(&config, start_slow_yielders, NULL);
	ck_assert_uint_ge(ticks_in_full, 300);
	ck_assert_uint_le(tick_max_ns, TICK_NS + LOOK_NS + run_ns);
}
END_TEST

/* L7: a task whose calls never have to wait yields after 128 operations. */
static unsigned others_ran;

static int64_t run_beside(void *arg)
{
	(void)arg;
	others_ran++;
	return 0;
}

static int64_t never_waits(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL) {
		EXPECT(weft_go(all, run_beside, NULL, 0) == 0);
		for (int i = 0; i < 127; i++)
			(void)weft__charge_ready(weft__worker_self());
		EXPECT(others_ran == 0);
		(void)weft__charge_ready(weft__worker_self());
		EXPECT(others_ran == 1);
	}
	return 0;
}

START_TEST(ready_operations_give_way_after_128)
{
	struct fake_config config = { .workers = 1 };
	struct fake_result result;

	others_ran = 0;
	result = must_run(&config, never_waits, NULL);
	ck_assert_uint_eq(result.stats.total.ready_yields, 1);
	ck_assert_uint_eq(result.stats.total.ops_ready, 128);
}
END_TEST

/* V34, V54: tasks that other threads push run within about a millisecond, even
 * if this worker's own tasks never end. */
static uint64_t submitted_ns, injected_ns;
static unsigned spinners;
static bool noted;

static int64_t note_injected(void *arg)
{
	(void)arg;
	injected_ns = weft_now();
	noted = true;
	return 0;
}

static void submit_note(void *arg)
{
	(void)arg;
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

static void spin_all(void)
{
	noted = false;
	WEFT_SCOPE(all, NULL)
		for (unsigned i = 0; i < spinners; i++)
			EXPECT(weft_go(all, spin_until_noted, NULL, 0) == 0);
}

static int64_t spin_beside_a_note(void *arg)
{
	fake_foreign(*(uint64_t *)arg, submit_note, NULL);
	spin_all();
	return 0;
}

START_TEST(task_from_outside_runs_within_a_millisecond)
{
	static const uint64_t ns[] = { 500, 5000, 20000, 100000 };
	struct fake_config config = { .seed = seed_of(_i), .workers = 1 };
	uint64_t max_ns = 1300000;

	run_ns = ns[_i % 4];
	/* 200 tasks fit into the ring.  500 do not: tasks that overflowed are
	 * in the injection queue before the pushed task, so they run first. */
	spinners = _i / 4 % 2 ? 500 : 200;
	if (spinners == 500 && 500 * run_ns > max_ns)
		max_ns = 500 * run_ns;
	/* At several moments between two turns of the injection queue. */
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t after_ns = WEFT_MS(50) + i * 179019;

		(void)must_run(&config, spin_beside_a_note, &after_ns);
		ck_assert_uint_le(injected_ns - submitted_ns, max_ns);
	}
}
END_TEST

/* Runs become longer at a step.  The numbers of runs were set for those before;
 * so both limits hold by the clock, too, but for the runs of one look at it and
 * the time that a step of a fake run takes. */
static uint64_t slow_ns;

enum { FAST_NS = 500, LOOK_RUNS = LOOK_NS / FAST_NS, STEP_NS = 2000 };

static void take_the_step(void *arg)
{
	run_ns = slow_ns;
	tick_max_ns = 0;
	submit_note(arg);
}

static int64_t spin_over_a_step(void *arg)
{
	fake_foreign(*(uint64_t *)arg, take_the_step, NULL);
	spin_all();
	return 0;
}

START_TEST(step_keeps_both_limits)
{
	static const uint64_t ns[] = { 500, 20000, 100000, 1000000, 10000000 };

	slow_ns = ns[_i];
	spinners = 100;
	for (unsigned i = 0; i < 40; i++) {
		struct fake_config config = {
			.seed = seed_of((int)i),
			.workers = 1,
			.after_step = time_tick,
		};
		uint64_t after_ns = WEFT_MS(50) + i * 7919;

		run_ns = FAST_NS;
		(void)must_run(&config, spin_over_a_step, &after_ns);
		ck_assert_uint_le(injected_ns - submitted_ns,
				  1000000 + STEP_NS + LOOK_RUNS * slow_ns);
		ck_assert_uint_le(tick_max_ns,
				  TICK_NS + LOOK_RUNS * slow_ns);
	}
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

/* A task that computes for long is reported, whether it is alone between two
 * sleeps or among others with short runs. */
#define LONG_RUN_NS 5000000u
#define SHORT_RUN_NS 3000u

static uint64_t longest_run_ns(void)
{
	struct weft_stats stats;

	EXPECT(weft_stats_get(weft_runtime_self(), &stats) == 0);
	return stats.total.longest_poll_ns;
}

static int64_t compute_once(void *arg)
{
	unsigned others = *(unsigned *)arg;

	for (unsigned i = 0; i < 10 + others / 2; i++)
		EXPECT(weft_yield() == 0);
	if (!others)
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	fake_pass(LONG_RUN_NS);
	return 0;
}

static int64_t compute_among(void *arg)
{
	unsigned others = *(unsigned *)arg;
	int runs = 1000;

	run_ns = SHORT_RUN_NS;
	WEFT_SCOPE(before, NULL)
		EXPECT(WEFT_GO(before, yield_slowly, runs) == 0);
	EXPECT(longest_run_ns() < WEFT_US(100));
	WEFT_SCOPE(all, NULL) {
		for (unsigned i = 0; i < others; i++)
			EXPECT(WEFT_GO(all, yield_slowly, runs) == 0);
		EXPECT(WEFT_GO(all, compute_once, others) == 0);
	}
	/* The end of its tick ends the run as well. */
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	return (int64_t)longest_run_ns();
}

START_TEST(longest_run_is_told)
{
	static const unsigned others[] = { 0, 1, 7, 100, 1000 };
	struct fake_config config = { .workers = 1 };
	unsigned count = others[_i];
	int64_t reported_ns = must_run(&config, compute_among, &count).result;

	ck_assert_int_ge(reported_ns, LONG_RUN_NS - WEFT_US(50));
	ck_assert_int_le(reported_ns, LONG_RUN_NS + WEFT_US(50));
}
END_TEST

static Suite *budget_suite(void)
{
	Suite *suite = suite_create("sched/budget");
	TCase *tc = tcase_create("budget");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, tick_runs_128_tasks, 0, 2);
	tcase_add_loop_test(tc, tick_ends_after_200_us, 0, 7);
	tcase_add_test(tc, ready_operations_give_way_after_128);
	tcase_add_loop_test(tc, task_from_outside_runs_within_a_millisecond, 0,
			    8);
	tcase_add_loop_test(tc, step_keeps_both_limits, 0, 5);
	tcase_add_loop_test(tc,
			    long_runs_leave_half_of_the_turns_to_local_tasks, 0,
			    20);
	tcase_add_loop_test(tc, longest_run_is_told, 0, 5);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { budget_suite };

	return run_suites(make, 1);
}
