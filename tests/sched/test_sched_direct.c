/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/direct: a task switches directly to the next one, however long
 * the runs are (ledger L28).
 *
 * A worker reads the clock after each run where a run takes a microsecond or
 * more.  That look is no reason to leave the running task for the scheduler.
 * All tests run on virtual time, so times are exact; its counters tell how a
 * task was switched to.
 */
#include <weft/weft.h>

#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

enum { ROUNDS = 10000 };

static const uint64_t run_times_ns[] = { 1, 600, 1000, 3000, 20000 };
enum { RUN_TIMES = sizeof(run_times_ns) / sizeof(run_times_ns[0]) };

static uint64_t run_ns;

/* Counted after the first ticks, in which the worker does not know yet how long
 * a run takes. */
static struct weft_worker_stats counted(void)
{
	struct weft_stats stats;

	EXPECT(weft_stats_get(weft_runtime_self(), &stats) == 0);
	return stats.total;
}

/* As many ticks as the budget and the clock of a tick ask for, and some. */
static uint64_t ticks_max(uint64_t runs)
{
	uint64_t by_clock = runs * (run_ns + 10) / WEFT__TICK_NS;
	uint64_t by_count = runs / WEFT__TICK_BUDGET;

	return 3 * (by_clock > by_count ? by_clock : by_count);
}

static int64_t take_time(void *arg)
{
	(void)arg;
	fake_pass(run_ns);
	return 0;
}

/* The scheduler sets tick.ran when it runs a task. */
static uint64_t scheduled;

static void yield_alone(void)
{
	struct weft__worker *worker = weft__worker_self();

	fake_pass(run_ns);
	worker->tick.ran = false;
	EXPECT(weft_yield() == 0);
	scheduled += worker->tick.ran;
	worker->tick.ran = true;
}

static void spawn_and_join(void)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;

	opts.ret_task = &task;
	WEFT_SCOPE (all, NULL) {
		EXPECT(weft_go_opts(all, take_time, NULL, 0, &opts) == 0);
		EXPECT(weft_join(task, NULL) == 0);
	}
}

static void wait_for_a_scope(void)
{
	WEFT_SCOPE (all, NULL)
		EXPECT(weft_go(all, take_time, NULL, 0) == 0);
}

static struct weft_worker_stats before, after;

static int64_t repeat(void *arg)
{
	void (*turn)(void) = *(void (**)(void))arg;

	for (int i = 0; i < ROUNDS; i++)
		turn();
	before = counted();
	for (int i = 0; i < ROUNDS; i++)
		turn();
	after = counted();
	return 0;
}

static void count(void (*turn)(void), int i)
{
	struct fake_config config = { .workers = 1 };

	run_ns = run_times_ns[i];
	(void)must_run(&config, repeat, &turn);
}

START_TEST(lone_task_that_yields_keeps_its_turn)
{
	scheduled = 0;
	count(yield_alone, _i);
	ck_assert_uint_eq(after.polls - before.polls, ROUNDS);
	ck_assert_uint_le(scheduled, 2 * ticks_max(ROUNDS));
}
END_TEST

/* A task that is picked out of the hand-off slot counts as a hit; one that is
 * switched to directly does not.  The end of a tick makes two hits. */
START_TEST(joiner_switches_to_what_it_joins)
{
	count(spawn_and_join, _i);
	ck_assert_uint_le(after.ticks - before.ticks, ticks_max(2 * ROUNDS));
	ck_assert_uint_le(after.lifo_hits - before.lifo_hits,
			  2 * (after.ticks - before.ticks));
}
END_TEST

/* The owner suspends, so the task is a hit; the owner, woken, is none. */
START_TEST(task_that_ends_switches_to_its_owner)
{
	count(wait_for_a_scope, _i);
	ck_assert_uint_le(after.ticks - before.ticks, ticks_max(2 * ROUNDS));
	ck_assert_uint_le(after.lifo_hits - before.lifo_hits,
			  ROUNDS + 2 * (after.ticks - before.ticks));
}
END_TEST

static Suite *direct_suite(void)
{
	Suite *suite = suite_create("sched/direct");
	TCase *tc = tcase_create("direct");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, lone_task_that_yields_keeps_its_turn, 0,
			    RUN_TIMES);
	tcase_add_loop_test(tc, joiner_switches_to_what_it_joins, 0, RUN_TIMES);
	tcase_add_loop_test(tc, task_that_ends_switches_to_its_owner, 0,
			    RUN_TIMES);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { direct_suite };

	return run_suites(make, 1);
}
