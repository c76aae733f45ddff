/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/many: 64 and 256 workers, on virtual time.  What does a task
 * cost, in wakes of workers and in looks at other workers, and how long does it
 * wait?
 *
 * One thread steps all workers, so the clock advances with the sum of what they
 * do.  A run takes the time of a run divided by the number of workers: while
 * all of them are busy, that is the clock of a machine with a processor for
 * each.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <string.h>

#include <weft/weft.h>

#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

enum { SEEDS = 8 };
#define RUN_NS 2048u

/* The cost of a load's tasks. */
static struct {
	uint64_t tasks, wakes, visits, polls, began_ns;
} cost;

static uint64_t longest_ns;
static bool over;

static unsigned workers_now(void)
{
	return fake_runtime()->workers_count;
}

/* Looks at other workers so far. */
static uint64_t visits(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < workers_now(); i++)
		sum += fake_runtime()->workers[i]->visits;
	return sum;
}

/* A task that was ready since then runs now. */
static void ran(uint64_t since_ns)
{
	uint64_t wait_ns = weft_now() - since_ns;

	if (wait_ns > longest_ns)
		longest_ns = wait_ns;
	cost.tasks++;
	fake_pass(RUN_NS / workers_now());
}

static void cost_begin(void)
{
	cost.tasks = longest_ns = 0;
	cost.wakes = fake_wakes();
	cost.visits = visits();
	cost.polls = fake_polls();
	cost.began_ns = weft_now();
}

/* The monitor looks at all workers each millisecond, whatever the tasks do. */
static uint64_t monitors_visits(void)
{
	uint64_t passed_ns = weft_now() - cost.began_ns;

	return 2 * workers_now() * (passed_ns / WEFT__LATE_NS + 1);
}

static void cost_end(void)
{
	cost.wakes = fake_wakes() - cost.wakes;
	cost.visits = visits() - cost.visits;
	cost.polls = fake_polls() - cost.polls;
	if (!fake_runtime()->monitor_off)
		cost.visits -= cost.visits < monitors_visits() ?
				       cost.visits :
				       monitors_visits();
	/* A task is a run or more. */
	EXPECT(cost.polls >= cost.tasks);
	EXPECT(10 * cost.wakes <= 11 * cost.tasks);
}

static void run_many(int i, bool in_turn, weft_fn main_fn)
{
	struct fake_config config = {
		.seed = seed_of(i),
		.workers = i % 2 ? 256 : 64,
		.monitor_off = i / 2 % 2,
		.in_turn = in_turn,
	};

	config.step_ns = RUN_NS / config.workers;
	over = false;
	(void)must_run(&config, main_fn, NULL);
}

static int64_t short_task(void *arg)
{
	ran(*(uint64_t *)arg);
	return 0;
}

/* ---- Little to do ----------------------------------------------------- */

enum { SINGLES = 500 };
static unsigned left;

static void submit_some(void *arg)
{
	uint64_t now_ns = weft_now();

	(void)arg;
	EXPECT(weft_submit(fake_runtime(), short_task, &now_ns, sizeof(now_ns),
			   NULL) == 0);
	over = --left == 0;
	if (!over)
		fake_foreign(WEFT_US(50), submit_some, NULL);
}

static int64_t submit_singles(void *arg)
{
	(void)arg;
	/* All sleep, without a monitor. */
	EXPECT(weft_sleep(WEFT_MS(200)) == 0);
	cost_begin();
	left = SINGLES;
	fake_foreign(0, submit_some, NULL);
	EXPECT(weft_sleep(SINGLES * WEFT_US(51)) == 0);
	cost_end();
	EXPECT(cost.tasks == SINGLES);
	EXPECT(cost.visits <= 3 * cost.tasks);
	EXPECT(longest_ns <= WEFT_US(10));
	return 0;
}

/* All workers sleep when a task comes from outside.  It wakes one, which looks
 * at no other that sleeps. */
START_TEST(task_from_outside_costs_one_wake_and_no_scan)
{
	run_many(_i, _i / 4 % 2, submit_singles);
}
END_TEST

static int64_t nap_and_run(void *arg)
{
	(void)arg;
	for (int i = 0; i < 40; i++) {
		uint64_t length_ns = WEFT_US(100) + fake_random(WEFT_MS(1));
		uint64_t due_ns = weft_now() + length_ns;

		EXPECT(weft_sleep(length_ns) == 0);
		ran(due_ns);
	}
	return 0;
}

static int64_t start_naps(void *arg)
{
	(void)arg;
	cost_begin();
	WEFT_SCOPE(all, NULL)
		for (unsigned i = 0; i < 4 * workers_now(); i++)
			EXPECT(weft_go(all, nap_and_run, NULL, 0) == 0);
	cost_end();
	EXPECT(cost.visits <= 4 * cost.tasks);
	EXPECT(longest_ns <= WEFT_MS(1));
	return 0;
}

/* Alarms of all workers go off, each for one short run. */
START_TEST(tasks_that_sleep_cost_few_looks)
{
	run_many(_i, _i / 4 % 2, start_naps);
}
END_TEST

/* ---- Work that spreads ------------------------------------------------ */

static int64_t start_bursts(void *arg)
{
	(void)arg;
	cost_begin();
	for (int i = 0; i < 10; i++) {
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		WEFT_SCOPE(all, NULL)
			for (unsigned n = 0; n < 20 * workers_now(); n++) {
				uint64_t now_ns = weft_now();

				EXPECT(WEFT_GO(all, short_task, now_ns) == 0);
			}
	}
	cost_end();
	EXPECT(cost.visits <= 6 * cost.tasks);
	EXPECT(longest_ns <= WEFT_MS(1));
	return 0;
}

START_TEST(burst_costs_few_wakes_and_few_looks)
{
	run_many(_i, _i / 4 % 2, start_bursts);
}
END_TEST

static int64_t compute(void *arg)
{
	ran(*(uint64_t *)arg);
	fake_compute(WEFT_MS(1));
	return 0;
}

static int64_t start_computing(void *arg)
{
	uint64_t began_ns, now_ns;

	(void)arg;
	EXPECT(weft_sleep(WEFT_MS(200)) == 0);
	cost_begin();
	began_ns = now_ns = weft_now();
	WEFT_SCOPE(all, NULL)
		for (unsigned i = 0; i < workers_now(); i++)
			EXPECT(WEFT_GO(all, compute, now_ns) == 0);
	cost_end();
	EXPECT(weft_now() - began_ns <= WEFT_MS(1) + WEFT_US(100));
	EXPECT(longest_ns <= WEFT_US(100));
	EXPECT(cost.visits <= 2 * workers_now() * cost.tasks);
	return 0;
}

/* As many tasks as workers compute: each worker runs one.  A worker that ends
 * its task, or comes for one, looks at all that compute: the one cost that
 * grows with the workers that run. */
START_TEST(tasks_that_compute_reach_all_workers)
{
	run_many(_i, _i / 4 % 2, start_computing);
}
END_TEST

static int64_t fork_and_nap(void *arg)
{
	(void)arg;
	for (int i = 0; i < 50; i++) {
		WEFT_SCOPE(all, NULL)
			for (int n = 0; n < 3; n++) {
				uint64_t now_ns = weft_now();

				EXPECT(WEFT_GO(all, short_task, now_ns) == 0);
			}
		EXPECT(weft_sleep(WEFT_US(100)) == 0);
	}
	return 0;
}

static int64_t start_forks(void *arg)
{
	(void)arg;
	cost_begin();
	WEFT_SCOPE(all, NULL)
		for (unsigned i = 0; i < workers_now() / 2; i++)
			EXPECT(weft_go(all, fork_and_nap, NULL, 0) == 0);
	cost_end();
	EXPECT(cost.visits <= 10 * cost.tasks);
	EXPECT(longest_ns <= WEFT_MS(1));
	return 0;
}

/* Groups of three tasks, on half as many workers. */
START_TEST(small_groups_cost_few_wakes_and_few_looks)
{
	run_many(_i, _i / 4 % 2, start_forks);
}
END_TEST

/* ---- All workers are busy --------------------------------------------- */

static int64_t yield_on(void *arg)
{
	(void)arg;
	while (!over) {
		uint64_t since_ns = weft_now();

		EXPECT(weft_yield() == 0);
		ran(since_ns);
	}
	return 0;
}

static int64_t nap_on(void *arg)
{
	(void)arg;
	while (!over) {
		uint64_t due_ns = weft_now() + WEFT_US(500);

		EXPECT(weft_sleep(WEFT_US(500)) == 0);
		ran(due_ns);
	}
	return 0;
}

static int64_t keep_all_busy(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL) {
		for (unsigned i = 0; i < 8 * workers_now(); i++)
			EXPECT(weft_go(all, yield_on, NULL, 0) == 0);
		for (unsigned i = 0; i < workers_now() / 4; i++)
			EXPECT(weft_go(all, nap_on, NULL, 0) == 0);
		/* The tasks that worker 0 has started are shared by then. */
		EXPECT(weft_sleep(WEFT_MS(4)) == 0);
		cost_begin();
		left = 100;
		fake_foreign(0, submit_some, NULL);
		while (!over)
			EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		cost_end();
	}
	EXPECT(4 * cost.visits <= cost.tasks);
	EXPECT(longest_ns <= WEFT_MS(1));
	return 0;
}

START_TEST(no_task_waits_long_while_all_workers_are_busy)
{
	run_many(_i, true, keep_all_busy);
}
END_TEST

static Suite *many_suite(void)
{
	Suite *suite = suite_create("sched/many");
	TCase *tc = tcase_create("many");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, task_from_outside_costs_one_wake_and_no_scan, 0,
			    seeds(SEEDS));
	tcase_add_loop_test(tc, tasks_that_sleep_cost_few_looks, 0,
			    seeds(SEEDS));
	tcase_add_loop_test(tc, burst_costs_few_wakes_and_few_looks, 0,
			    seeds(SEEDS));
	tcase_add_loop_test(tc, tasks_that_compute_reach_all_workers, 0,
			    seeds(SEEDS));
	tcase_add_loop_test(tc, small_groups_cost_few_wakes_and_few_looks, 0,
			    seeds(SEEDS));
	tcase_add_loop_test(tc, no_task_waits_long_while_all_workers_are_busy,
			    0,
			    seeds(SEEDS));
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { many_suite };

	return run_suites(make, 1);
}
