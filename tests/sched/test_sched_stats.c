/* SPDX-License-Identifier: MIT */
/*
 * Suite runtime/stats: the counters match what happened (ledger V56, V57).
 *
 * The driver counts parks and turns itself, and the tasks count where they were
 * started, ran and ended; the sums must agree with weft_stats.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <errno.h>
#include <string.h>

#include <weft/weft.h>

#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

/* Counts per worker, as the tasks saw them. */
static struct {
	uint64_t spawned[8], ended[8], moved[8];
} seen;

static uint32_t here(void)
{
	return weft__worker_self()->index;
}

struct branch {
	uint32_t depth, home;
};

static int64_t grow(void *arg)
{
	struct branch *self = arg;
	struct branch child = { self->depth - 1, 0 };

	if (fake_random(3) == 0)
		EXPECT(weft_yield() == 0);
	if (fake_random(5) == 0)
		EXPECT(weft_sleep(fake_random(400000)) == 0);
	WEFT_SCOPE(all, NULL)
		for (int i = 0; self->depth && i < 4; i++) {
			seen.spawned[here()]++;
			EXPECT(WEFT_GO(all, grow, child) == 0);
		}
	seen.ended[here()]++;
	return 0;
}

static int64_t start_tree(void *arg)
{
	struct branch root = { 5, 0 };

	(void)arg;
	seen.spawned[here()]++;
	WEFT_SCOPE(all, NULL)
		EXPECT(WEFT_GO(all, grow, root) == 0);
	seen.ended[here()]++;
	return 0;
}

static void add_up(struct weft_worker_stats *sum,
		   const struct weft_worker_stats *of)
{
	sum->polls += of->polls;
	sum->ticks += of->ticks;
	sum->spawned += of->spawned;
	sum->ended += of->ended;
	sum->lifo_hits += of->lifo_hits;
	sum->parks += of->parks;
	sum->steals_won += of->steals_won;
	sum->stolen += of->stolen;
	sum->injected += of->injected;
	sum->inject_batches += of->inject_batches;
	sum->overflowed += of->overflowed;
	sum->timers_fired += of->timers_fired;
}

START_TEST(each_worker_counts_what_it_did)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 8,
		.budgets_vary = true,
	};
	struct weft_worker_stats sum = { 0 };
	struct weft_stats *stats;
	struct fake_result result;

	memset(&seen, 0, sizeof(seen));
	result = must_run(&config, start_tree, NULL);
	stats = &result.stats;
	ck_assert_uint_eq(stats->workers, config.workers);
	for (unsigned i = 0; i < config.workers; i++) {
		struct weft_worker_stats *worker = &result.worker[i];

		ck_assert_uint_eq(worker->parks, result.parks[i]);
		ck_assert_uint_eq(worker->ticks, result.steps_of[i]);
		ck_assert_uint_eq(worker->spawned, seen.spawned[i]);
		ck_assert_uint_eq(worker->ended, seen.ended[i]);
		ck_assert_uint_le(worker->steals_won, worker->stolen);
		ck_assert_uint_le(worker->inject_batches, worker->injected);
		add_up(&sum, worker);
	}
	ck_assert_uint_gt(sum.parks, 0);
	ck_assert_uint_eq(sum.parks, stats->total.parks);
	ck_assert_uint_eq(sum.ticks, stats->total.ticks);
	ck_assert_uint_eq(sum.polls, stats->total.polls);
	ck_assert_uint_eq(sum.spawned, stats->total.spawned);
	ck_assert_uint_eq(sum.ended, stats->total.ended);
	ck_assert_uint_eq(sum.stolen, stats->total.stolen);
	ck_assert_uint_eq(sum.lifo_hits, stats->total.lifo_hits);
	ck_assert_uint_eq(sum.injected, stats->total.injected);
	ck_assert_uint_eq(sum.timers_fired, stats->total.timers_fired);
}
END_TEST

static struct weft_stats stats_now(void)
{
	struct weft_stats stats;

	EXPECT(weft_stats_get(weft_runtime_self(), &stats) == 0);
	return stats;
}

static int64_t doze(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_MS(1));
}

static void submit_some(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		EXPECT(weft_submit(fake_runtime(), doze, NULL, 0, NULL) == 0);
}

static int64_t count_alive(void *arg)
{
	(void)arg;
	EXPECT(stats_now().tasks == 1); /* this task */
	WEFT_SUPERVISE(all)
		for (unsigned i = 1; i <= 5; i++) {
			EXPECT(weft_go(all, doze, NULL, 0) == 0);
			EXPECT(stats_now().tasks == 1 + i);
		}
	EXPECT(stats_now().tasks == 1);
	fake_foreign(0, submit_some, NULL);
	EXPECT(weft_sleep(WEFT_US(500)) == 0);
	EXPECT(stats_now().tasks == 4);
	EXPECT(weft_sleep(WEFT_MS(2)) == 0);
	EXPECT(stats_now().tasks == 1);
	return 0;
}

START_TEST(tasks_that_are_alive_are_counted)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 4,
	};

	(void)must_run(&config, count_alive, NULL);
}
END_TEST

/* A task that runs on another worker than the one that started it was stolen by
 * that worker.  A thief may lose some of its tasks again. */
static int64_t note_place(void *arg)
{
	if (here() != *(uint32_t *)arg)
		seen.moved[here()]++;
	fake_compute(WEFT_US(50));
	return 0;
}

static int64_t start_places(void *arg)
{
	uint32_t home = here();

	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < 100; i++)
			EXPECT(WEFT_GO(all, note_place, home) == 0);
	*(uint32_t *)arg = home;
	return 0;
}

START_TEST(what_ran_elsewhere_was_stolen)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 2,
		.help_off = true,
		.monitor_off = true,
	};
	struct fake_result result;
	uint32_t home = 0;

	memset(&seen, 0, sizeof(seen));
	result = must_run(&config, start_places, &home);
	ck_assert_uint_gt(seen.moved[!home], 0);
	ck_assert_uint_eq(seen.moved[!home] + result.worker[home].stolen,
			  result.worker[!home].stolen);
}
END_TEST

/*
 * Stacks.
 */

static int64_t sleep_a_while(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_SEC(1));
}

/* Each task, including main, has a stack from its first run to its end. */
static int64_t count_stacks(void *arg)
{
	static const size_t bytes[] = { 0, 16 << 10, 1 << 20 };
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	(void)arg;
	EXPECT(stats_now().stacks == 1);
	for (unsigned count = 1; count <= 1000; count *= 10) {
		WEFT_SCOPE(all, NULL) {
			for (unsigned i = 0; i < count; i++) {
				opts.stack_bytes = bytes[i % 3];
				EXPECT(weft_go_opts(all, sleep_a_while, NULL,
						    0, &opts) == 0);
			}
			EXPECT(stats_now().stacks == 1);
			EXPECT(weft_sleep(WEFT_MS(500)) == 0);
			EXPECT(stats_now().stacks == count + 1);
		}
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(stats_now().stacks == 1);
	}
	return 0;
}

START_TEST(stacks_that_tasks_have_are_counted)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 4,
	};

	(void)must_run(&config, count_stacks, NULL);
}
END_TEST

static int64_t ask_wrongly(void *arg)
{
	struct weft_worker_stats worker;
	struct weft_stats stats;

	(void)arg;
	EXPECT(weft_stats_get(NULL, &stats) == -EINVAL);
	EXPECT(weft_stats_get(weft_runtime_self(), NULL) == -EINVAL);
	EXPECT(weft_stats_worker(NULL, 0, &worker) == -EINVAL);
	EXPECT(weft_stats_worker(weft_runtime_self(), 0, NULL) == -EINVAL);
	EXPECT(weft_stats_worker(weft_runtime_self(), 3, &worker) == -EINVAL);
	EXPECT(weft_stats_worker(weft_runtime_self(), 2, &worker) == 0);
	return 0;
}

START_TEST(worker_that_is_not_there_is_einval)
{
	struct fake_config config = { .workers = 3 };

	(void)must_run(&config, ask_wrongly, NULL);
}
END_TEST

static Suite *stats_suite(void)
{
	Suite *suite = suite_create("sched/stats");
	TCase *tc = tcase_create("stats");

	tcase_set_timeout(tc, 30);
	tcase_add_loop_test(tc, each_worker_counts_what_it_did, 0, 32);
	tcase_add_loop_test(tc, tasks_that_are_alive_are_counted, 0, 16);
	tcase_add_loop_test(tc, what_ran_elsewhere_was_stolen, 0, 20);
	tcase_add_loop_test(tc, stacks_that_tasks_have_are_counted, 0, 8);
	tcase_add_test(tc, worker_that_is_not_there_is_einval);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { stats_suite };

	return run_suites(make, 1);
}
