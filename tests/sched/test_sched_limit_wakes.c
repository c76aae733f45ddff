/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/limit_wakes: the worker limit is 1.  Completions that arrive
 * while that worker sleeps must wake no other worker; this is counted on
 * virtual time.
 */
#include <weft/weft.h>

#include "runtime/sched/worker_limit.h"
#include "tests/fake/fake_check.h"

enum { MANY = 48, ROUNDS = 40, SEEDS = 10 };

static int64_t receive_with_all(void *arg)
{
	fake_receive(0, *(uint64_t *)arg - weft_now());
	return 0;
}

static uint64_t wakes_sent(void)
{
	struct weft_stats stats;

	EXPECT(weft_stats_get(fake_runtime(), &stats) == 0);
	return stats.total.wakes_sent;
}

/* All tasks wait through the ring of worker 0 for the same moment, long after
 * all workers went to sleep. */
static void wait_together(void)
{
	uint64_t until_ns = weft_now() + WEFT_MS(1);

	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < MANY; i++)
			EXPECT(WEFT_GO(all, receive_with_all, until_ns) == 0);
}

/* Sets the limit to 1, whatever the workers measure. */
static int64_t wait_together_often(void *arg)
{
	struct weft_runtime *runtime = fake_runtime();
	uint64_t before;

	(void)arg;
	/* relaxed: one thread. */
	weft__store(&runtime->worker_limit.max, 1u, relaxed);
	/* relaxed: one thread. */
	weft__store(&runtime->worker_limit.changed_ns, UINT64_MAX, relaxed);
	wait_together();
	before = wakes_sent();
	for (int i = 0; i < ROUNDS; i++)
		wait_together();
	EXPECT(wakes_sent() == before);
	return 0;
}

/* The previous tick ended long before the 32nd task is pushed, and worker 0
 * does not count as awake; but it runs the tasks immediately. */
START_TEST(completions_that_end_a_sleep_wake_no_peer)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 2,
	};

	(void)must_run(&config, wait_together_often, NULL);
}
END_TEST

static Suite *wakes_suite(void)
{
	Suite *suite = suite_create("sched/limit_wakes");
	TCase *tc = tcase_create("wakes");

	tcase_add_loop_test(tc, completions_that_end_a_sleep_wake_no_peer, 0,
			    SEEDS);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { wakes_suite };

	return run_suites(make, 1);
}
