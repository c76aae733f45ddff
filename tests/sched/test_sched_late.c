/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/late: how a helper treats the tasks of a worker that is late.
 */
#include <string.h>

#include <weft/weft.h>

#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

/* A task computes.  A helper, which has a thousand tasks itself, takes the
 * oldest task that the late worker keeps waiting, and does not queue it behind
 * its own. */
static struct {
	bool computes;
	unsigned oldest;
	unsigned runs; /* runs of helpers since they began to help */
	unsigned ran;  /* the value of runs when the oldest task ran */
} late;

static int64_t yield_and_help(void *arg)
{
	while (!late.ran) {
		struct weft__worker *worker = weft__worker_self();

		late.runs += late.computes &&
			    weft__load(&worker->counts[WEFT__N_HELPS], relaxed);
		if (late.runs && *(unsigned *)arg == late.oldest)
			late.ran = late.runs;
		fake_pass(500);
		EXPECT(weft_yield() == 0);
	}
	return 0;
}

static int64_t compute_once(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++)
		EXPECT(weft_yield() == 0);
	late.oldest = *(unsigned *)(void *)weft__runq_peek(
			       &weft__worker_self()->runq)->arg;
	late.computes = true;
	fake_compute(WEFT_MS(20));
	EXPECT(late.ran);
	return 0;
}

static int64_t start_late(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL)
		for (unsigned i = 1; i <= 1000; i++)
			EXPECT(WEFT_GO(all, i == 100 ? compute_once :
						       yield_and_help,
				       i) == 0);
	return 0;
}

START_TEST(oldest_of_a_late_worker_keeps_its_turn)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 2 };

	memset(&late, 0, sizeof(late));
	(void)must_run(&config, start_late, NULL);
	ck_assert_uint_le(late.ran, WEFT__RUNQ_SHORT);
}
END_TEST

static Suite *late_suite(void)
{
	Suite *suite = suite_create("sched/late");
	TCase *tc = tcase_create("order");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, oldest_of_a_late_worker_keeps_its_turn, 0,
			    seeds(20));
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { late_suite };

	return run_suites(make, 1);
}
