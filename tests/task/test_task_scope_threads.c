/* SPDX-License-Identifier: MIT */
/*
 * Suite runtime/scopes: races, limits, and deferred calls at a task's end, on
 * real threads.  The suites sched/race, sched/limit and sched/local test what
 * each of these does; here they happen at the same time.
 */
#include <errno.h>
#include <stdlib.h>

#include <check.h>
#include <weft/weft.h>

#include "runtime/base/assert.h"
#include "runtime/base/atomic.h"

enum { WORKERS = 4, ROUNDS = 300, RUNNERS = 12, PLACES = 3, STARTERS = 4 };
/* The highest number of rounds until tasks have ended on several workers. */
enum { BLOCKS_MAX = 200, ENDED_MIN = 2000 };

#define EXPECT(holds) weft__assert(holds, #holds)

/* relaxed everywhere: read when all have ended. */
static weft__atomic(int) won_or_dropped[RUNNERS];
static weft__atomic(int) alive, ended, cleaned;

static void count(weft__atomic(int) *counter)
{
	/* relaxed: see above. */
	weft__add(counter, 1, relaxed);
}

/* Computes long enough for other workers to be woken for waiting tasks. */
static void compute(void)
{
	static weft__atomic(int) sink;

	for (int i = 0; i < 300; i++)
		count(&sink);
}

static bool is_parallel(void)
{
	struct weft_worker_stats stats;
	unsigned workers = 0;

	for (unsigned i = 0; i < WORKERS; i++) {
		EXPECT(weft_stats_worker(weft_runtime_self(), i, &stats) == 0);
		workers += stats.ended > ENDED_MIN;
	}
	return workers > 1;
}

static void see(int64_t result)
{
	count(&won_or_dropped[result]);
}

static int64_t succeed(void *arg)
{
	int number = *(int *)arg;

	if (number % 2)
		(void)weft_yield();
	compute();
	return number;
}

static int64_t race_many(void *arg)
{
	(void)arg;
	for (int round = 0; round < ROUNDS * BLOCKS_MAX &&
			    (round % ROUNDS || !is_parallel()); round++) {
		int64_t result = -1;
		int started = 0;

		WEFT_RACE(race, &result) {
			EXPECT(weft_race_drop(race, see) == 0);
			while (started < RUNNERS &&
			       WEFT_GO(race, succeed, started) == 0)
				started++;
		}
		EXPECT(started > 0 && result >= 0 && result < started);
		see(result);
		for (int i = 0; i < RUNNERS; i++)
			EXPECT(weft__swap(&won_or_dropped[i], 0, relaxed) ==
			       (i < started));
	}
	return 0;
}

static int64_t run(weft_fn fn)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = WORKERS;
	return weft_run(fn, NULL, &opts);
}

START_TEST(each_success_wins_or_is_dropped)
{
	ck_assert_int_eq(run(race_many), 0);
}
END_TEST

static void leave(void *arg)
{
	count(arg);
	EXPECT(weft__sub(&alive, 1, relaxed) > 0);
}

static struct weft_task_local_key key = WEFT_TASK_LOCAL_KEY(free);

/* Stays allocated until the task has ended completely. */
static int64_t live(void *arg)
{
	(void)arg;
	EXPECT(weft__add(&alive, 1, relaxed) < PLACES);
	EXPECT(weft_defer(leave, &cleaned) == 0);
	EXPECT(weft_task_local_get(&key) == NULL);
	EXPECT(weft_task_local_set(&key, malloc(8)) == 0);
	(void)weft_yield();
	compute();
	count(&ended);
	return 0;
}

static int64_t start_some(void *arg)
{
	struct weft_scope *scope = *(struct weft_scope **)arg;
	int64_t started = 0;

	for (int i = 0; i < ROUNDS; i++) {
		int error = 0;

		WEFT_WITHIN(i % 3 ? WEFT_SEC(100) : WEFT_US(i % 50))
			error = weft_go(scope, live, NULL, 0);
		EXPECT(error == 0 || error == -ETIMEDOUT);
		started += error == 0;
	}
	return started;
}

static int64_t start_from_all_sides(void)
{
	int64_t started = 0;

	WEFT_SUPERVISE(all) {
		struct weft_task tasks[STARTERS];
		struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

		EXPECT(weft_scope_limit(all, PLACES) == 0);
		WEFT_SUPERVISE(starters)
			for (int i = 0; i < STARTERS; i++) {
				int64_t result = 0;

				opts.ret_task = &tasks[i];
				EXPECT(weft_go_opts(starters, start_some, &all,
						    sizeof(all), &opts) == 0);
				if (i < STARTERS - 1)
					continue;
				started += start_some(&all);
				for (int k = 0; k <= i; k++) {
					EXPECT(weft_join(tasks[k], &result) ==
					       0);
					started += result;
				}
			}
	}
	EXPECT(weft__swap(&ended, 0, relaxed) == started);
	EXPECT(weft__swap(&cleaned, 0, relaxed) == started);
	EXPECT(weft__load(&alive, relaxed) == 0);
	return started;
}

static int64_t start_many(void *arg)
{
	(void)arg;
	for (int block = 0; block < BLOCKS_MAX && !is_parallel(); block++)
		EXPECT(start_from_all_sides() > 0);
	return 0;
}

START_TEST(limit_holds_and_loses_nobody)
{
	ck_assert_int_eq(run(start_many), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("task/scope_threads");
	TCase *tc = tcase_create("scopes");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tc, each_success_wins_or_is_dropped);
	tcase_add_test(tc, limit_holds_and_loses_nobody);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
