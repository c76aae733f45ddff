/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/worker_limit: the limit of running workers, where there are more
 * workers than processors; on virtual time.
 *
 * Background tasks wake all the time, as if through completions, so that
 * without a limit every worker would run.  The tests look at how many workers
 * run, who handles which completions, and when the limit rises again.
 */
#include <weft/weft.h>

#include "tests/fake/limit_kit.h"

enum { SEEDS = 10 };

static int64_t nap_on(void *arg)
{
	(void)arg;
	while (!over) {
		EXPECT(weft_sleep(1 + fake_random(WEFT_US(200))) == 0);
		/* While this task computes, other workers may take other ready
		 * tasks. */
		fake_compute(WEFT_US(2));
	}
	return 0;
}

static int64_t receive_on(void *arg)
{
	(void)arg;
	return receive_and_compute(WEFT_US(200), WEFT_US(2));
}

/* Wakes rarely, so that all workers sleep in between, through the ring of the
 * last worker. */
static int64_t receive_little(void *arg)
{
	(void)arg;
	while (!over) {
		unsigned ring = fake_runtime()->workers_count - 1;

		fake_receive(ring, WEFT_MS(1) + fake_random(WEFT_MS(1)));
	}
	return 0;
}

static int64_t yield_on(void *arg)
{
	(void)arg;
	while (!over)
		EXPECT(weft_yield() == 0);
	return 0;
}

static uint64_t polls_of(unsigned worker)
{
	struct weft_worker_stats stats;

	EXPECT(weft_stats_worker(fake_runtime(), worker, &stats) == 0);
	return stats.polls;
}

static uint64_t given_way(void)
{
	struct weft_stats stats;

	EXPECT(weft_stats_get(fake_runtime(), &stats) == 0);
	return stats.total.given_way;
}

/* Counts the runs on workers `first` and up during length_ns. */
static uint64_t polls_from(unsigned first, uint64_t length_ns)
{
	uint64_t before = 0, after = 0;

	for (unsigned i = first; i < fake_runtime()->workers_count; i++)
		before += polls_of(i);
	EXPECT(weft_sleep(length_ns) == 0);
	for (unsigned i = first; i < fake_runtime()->workers_count; i++)
		after += polls_of(i);
	return after - before;
}

static void run_limited(int i, unsigned workers, unsigned processors,
			weft_fn main_fn)
{
	struct fake_config config = limit_config(i, workers, processors);

	(void)must_run(&config, main_fn, NULL);
}

/* ---- As many as there are processors --------------------------------- */

AMONG(nap_on, few_run)
{
	EXPECT(weft_sleep(WEFT_MS(150)) == 0);
	EXPECT(most() == 1);
	/* Worker 0 does all the work, and no other worker wakes for it. */
	EXPECT(polls_from(0, WEFT_MS(20)) > 100);
	EXPECT(polls_from(1, WEFT_MS(20)) == 0);
}

START_TEST(fewer_run_where_processors_are_few)
{
	run_limited(_i, 2 + (unsigned)_i % 2, 1, few_run_main);
}
END_TEST

/* Worker 1 still wakes for its own completions; while worker 0 runs, it hands
 * the tasks over that they make ready. */
AMONG(receive_on, one_gives_way)
{
	uint64_t before;

	EXPECT(weft_sleep(WEFT_MS(150)) == 0);
	EXPECT(most() == 1);
	before = given_way();
	EXPECT(polls_from(0, WEFT_MS(20)) > 2000);
	EXPECT(given_way() - before > 300);
}

START_TEST(what_completes_elsewhere_is_handed_over)
{
	run_limited(_i, 2, 1, one_gives_way_main);
}
END_TEST

/* The limit stays even if worker 0 always has more to do than it can. */
AMONG(receive_much, one_serves)
{
	uint64_t all, others;

	EXPECT(weft_sleep(WEFT_MS(150)) == 0);
	EXPECT(most() == 1);
	all = polls_from(0, WEFT_MS(40));
	others = polls_from(1, WEFT_MS(40));
	EXPECT(all > 400);
	EXPECT(others < all / 3);
}

START_TEST(who_serves_is_limited_whatever_there_is_to_do)
{
	struct fake_config config = limit_config(_i, 2, 1);

	config.shares = true;
	(void)must_run(&config, one_serves_main, NULL);
}
END_TEST

/* All completions come through the ring of worker 1, which gives way: worker 0
 * has none, and yet it does not compute. */
static int64_t receive_elsewhere(void *arg)
{
	(void)arg;
	while (!over) {
		fake_receive(1, 1 + fake_random(WEFT_US(10)));
		fake_compute(WEFT_US(20));
	}
	return 0;
}

AMONG(receive_elsewhere, handed_over)
{
	uint64_t all, others;

	EXPECT(weft_sleep(WEFT_MS(150)) == 0);
	EXPECT(most() == 1);
	all = polls_from(0, WEFT_MS(100));
	others = polls_from(1, WEFT_MS(100));
	EXPECT(others < all / 3);
}

START_TEST(who_serves_what_completed_elsewhere_is_limited)
{
	struct fake_config config = limit_config(_i, 2, 1);

	config.shares = true;
	(void)must_run(&config, handed_over_main, NULL);
}
END_TEST

START_TEST(sleepers_are_woken_from_the_lowest_on)
{
	enum { WORKERS = 130 };
	static struct weft__idle idle;

	weft__idle_init(&idle, WORKERS);
	for (uint32_t i = 0; i < WORKERS; i++)
		(void)weft__idle_park(&idle, i, false);
	for (int i = 0; i < WORKERS; i++) {
		EXPECT(weft__idle_claim_lowest(&idle) == i);
		EXPECT(weft__idle_searching(idle.counts) == 1);
		EXPECT(weft__idle_unpark(&idle, (uint32_t)i));
		EXPECT(weft__idle_found(&idle));
	}
	EXPECT(weft__idle_claim_lowest(&idle) == -1);
	EXPECT(idle.counts == 0);
}
END_TEST

/* A completion that comes while number 0 sleeps is handed over to it all the
 * same: else the tasks would stay where they are. */
static int64_t sleepers_serve(void *arg)
{
	uint64_t before;

	(void)arg;
	WEFT_SCOPE(many, NULL) {
		for (int i = 0; i < OTHERS; i++)
			EXPECT(weft_go(many, receive_on, NULL, 0) == 0);
		EXPECT(weft_sleep(WEFT_MS(150)) == 0);
		EXPECT(most() == 1);
		over = true;
	}
	over = false;
	WEFT_SCOPE(few, NULL) {
		for (int i = 0; i < 3; i++)
			EXPECT(weft_go(few, receive_little, NULL, 0) == 0);
		EXPECT(weft_sleep(WEFT_MS(10)) == 0);
		before = given_way();
		EXPECT(polls_from(1, WEFT_MS(40)) == 0);
		EXPECT(most() == 1);
		EXPECT(given_way() - before > 60);
		over = true;
	}
	return 0;
}

START_TEST(lowest_sleeper_is_woken_for_what_is_handed_over)
{
	run_limited(_i, 2 + (unsigned)_i % 3, 1, sleepers_serve);
}
END_TEST

/* The limit may fall below two at first.  Now and then a third worker is tried,
 * and the limit goes back to two. */
AMONG(nap_on, two_run)
{
	unsigned at_two = 0;

	EXPECT(weft_sleep(WEFT_MS(400)) == 0);
	for (int i = 0; i < 50; i++) {
		uint64_t others = 0, before = most();

		EXPECT(before >= 2);
		others = polls_from(2, WEFT_MS(10));
		if (before != 2 || most() != 2)
			continue;
		at_two++;
		EXPECT(others == 0);
	}
	EXPECT(at_two >= 35);
	EXPECT(polls_from(1, WEFT_MS(20)) > 0);
}

START_TEST(as_many_run_as_there_are_processors)
{
	run_limited(_i, 4, 2, two_run_main);
}
END_TEST

AMONG(nap_on, all_run)
{
	EXPECT(weft_sleep(WEFT_MS(150)) == 0);
	EXPECT(most() == 3);
	EXPECT(given_way() == 0);
	EXPECT(polls_from(2, WEFT_MS(20)) > 0);
}

START_TEST(all_run_where_processors_suffice)
{
	run_limited(_i, 3, 3, all_run_main);
}
END_TEST

/* Without a monitor no worker could help one that is late, so all run. */
START_TEST(all_run_without_a_monitor)
{
	struct fake_config config = limit_config(_i, 3, 1);

	config.monitor_off = true;
	(void)must_run(&config, all_run_main, NULL);
}
END_TEST

static uint64_t parks_of(unsigned worker)
{
	struct weft_worker_stats stats;

	EXPECT(weft_stats_worker(fake_runtime(), worker, &stats) == 0);
	return stats.parks;
}

/* Worker 1 looks whether worker 0 is late, at most as often as lateness
 * allows. */
AMONG(nap_on, looks_seldom)
{
	uint64_t before;

	EXPECT(weft_sleep(WEFT_MS(150)) == 0);
	EXPECT(most() == 1);
	before = parks_of(1);
	EXPECT(weft_sleep(WEFT_MS(60)) == 0);
	EXPECT(parks_of(1) - before <=
	       60000000 / WEFT__WORKER_LIMIT_LATE_NS + 2);
	EXPECT(parks_of(1) - before >= 15);
}

START_TEST(who_watches_looks_seldom_in_a_crowd)
{
	run_limited(_i, 2, 1, looks_seldom_main);
}
END_TEST

/* ---- The limit rises again ------------------------------------------- */

AMONG(nap_on, one_more)
{
	EXPECT(weft_sleep(WEFT_MS(100)) == 0);
	EXPECT(most() == 1);
	fake_processors(0, 0);
	EXPECT(weft_sleep(2 * WEFT__WORKER_LIMIT_HOLD_NS) == 0);
	EXPECT(most() == 2);
	EXPECT(polls_from(1, WEFT_MS(20)) > 0);
}

START_TEST(another_one_runs_when_processors_are_free)
{
	run_limited(_i, 2, 1, one_more_main);
}
END_TEST

AMONG(nap_on, rarer_trials)
{
	EXPECT(weft_sleep(WEFT_MS(2100)) == 0);
	EXPECT(most() == 1);
	/* 250, 500, 1000 ms: three trials, and the next is far.
	 * relaxed: one thread. */
	EXPECT(weft__load(&fake_runtime()->worker_limit.hold_ns, relaxed) ==
	       8 * WEFT__WORKER_LIMIT_HOLD_NS);
}

START_TEST(one_that_is_not_wanted_is_tried_less_and_less_often)
{
	struct fake_config config = limit_config(_i, 2, 1);

	config.steps_max = 100000000;
	(void)must_run(&config, rarer_trials_main, NULL);
}
END_TEST

/* While other programs use all processors, another worker could only take time
 * from them, so no trial is made. */
AMONG(nap_on, no_trial)
{
	EXPECT(weft_sleep(WEFT_MS(150)) == 0);
	for (int i = 0; i < 180; i++) {
		EXPECT(most() == 1);
		EXPECT(weft_sleep(WEFT_MS(20)) == 0);
	}
	/* When processors are idle after 4 s, a trial is made. */
	fake_processors(0, 0);
	EXPECT(weft_sleep(WEFT_MS(400)) == 0);
	EXPECT(most() == 2);
}

START_TEST(none_is_tried_while_no_processor_is_idle)
{
	struct fake_config config = limit_config(_i, 2, 1);

	config.all_busy = true;
	config.steps_max = 200000000;
	(void)must_run(&config, no_trial_main, NULL);
}
END_TEST

/* ---- Work that the limit does not hold up ---------------------------- */

/* Worker 0 computes with a task in its ring: another worker takes that task. */
AMONG(nap_on, late_one)
{
	EXPECT(weft_sleep(WEFT_MS(150)) == 0);
	EXPECT(most() == 1);
	WEFT_SCOPE(inner, NULL)
		EXPECT(compute_beside_one(inner, WEFT_MS(20)) < WEFT_MS(3));
}

START_TEST(who_computes_is_helped_all_the_same)
{
	run_limited(_i, 2, 1, late_one_main);
}
END_TEST

static uint64_t ran_ns;

/* A task receives through the ring of worker `ring` after 5 ms. */
static int64_t receive_once(void *arg)
{
	unsigned ring = *(unsigned *)arg;

	fake_receive(ring, WEFT_MS(5));
	ran_ns = weft_now();
	return 0;
}

/* The limit is 1, worker 0 serves the rings, the other workers sleep, and this
 * task runs on worker 0. */
static void serve_for_a_while(void)
{
	WEFT_SCOPE(many, NULL) {
		for (int i = 0; i < OTHERS; i++)
			EXPECT(weft_go(many, receive_on, NULL, 0) == 0);
		EXPECT(weft_sleep(WEFT_MS(150)) == 0);
		over = true;
	}
	for (int i = 0; i < 30; i++)
		fake_receive(0, WEFT_MS(1));
	while (weft__worker_self()->index != 0)
		fake_receive(0, WEFT_US(50));
	EXPECT(most() == 1);
}

/* Worker 0 serves and then computes: tasks whose completions arrive elsewhere
 * run nevertheless. */
static int64_t serve_and_compute(void *arg)
{
	unsigned ring = fake_runtime()->workers_count - 1;
	uint64_t due_ns;

	(void)arg;
	serve_for_a_while();
	WEFT_SCOPE(one, NULL) {
		EXPECT(weft_go(one, receive_once, &ring, sizeof(ring)) == 0);
		fake_receive(0, WEFT_MS(1));
		EXPECT(weft__worker_self()->index == 0);
		ran_ns = 0;
		due_ns = weft_now() + WEFT_MS(4);
		fake_compute(WEFT_MS(60));
		EXPECT(ran_ns != 0);
		EXPECT(ran_ns < due_ns + WEFT_MS(4));
	}
	return 0;
}

START_TEST(who_served_and_computes_holds_up_nobody)
{
	run_limited(_i, 2 + (unsigned)_i % 4, 1, serve_and_compute);
}
END_TEST

static void hold_number_0(void *arg)
{
	fake_hold(0, arg != NULL);
}

/* Worker 0 is woken for completions elsewhere, but does not come. */
static int64_t serve_and_be_held(void *arg)
{
	unsigned ring = 1;
	uint64_t due_ns;

	(void)arg;
	serve_for_a_while();
	due_ns = weft_now() + WEFT_MS(5);
	WEFT_SCOPE(one, NULL) {
		fake_foreign(WEFT_MS(4), hold_number_0, &over);
		fake_foreign(WEFT_MS(50), hold_number_0, NULL);
		EXPECT(weft_go(one, receive_once, &ring, sizeof(ring)) == 0);
	}
	EXPECT(ran_ns < due_ns + WEFT_MS(5));
	return 0;
}

START_TEST(who_is_woken_and_has_no_processor_holds_up_nobody)
{
	run_limited(_i, 2 + (unsigned)_i % 3, 1, serve_and_be_held);
}
END_TEST

/* Tasks that compute get more of the processors with two threads than with
 * one. */
static int64_t compute_together(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL) {
		for (int i = 0; i < OTHERS; i++)
			EXPECT(weft_go(all, yield_on, NULL, 0) == 0);
		EXPECT(weft_sleep(WEFT_MS(150)) == 0);
		EXPECT(most() == 1);
		EXPECT(polls_from(1, WEFT_MS(20)) > 0);
		over = true;
	}
	return 0;
}

START_TEST(who_computes_is_not_limited)
{
	run_limited(_i, 2, 1, compute_together);
}
END_TEST

static Suite *worker_limit_suite(void)
{
	Suite *suite = suite_create("sched/worker_limit");
	TCase *tc = tcase_create("limit");

	tcase_add_loop_test(tc, fewer_run_where_processors_are_few, 0, SEEDS);
	tcase_add_loop_test(tc, what_completes_elsewhere_is_handed_over, 0,
			    SEEDS);
	tcase_add_loop_test(tc, who_serves_is_limited_whatever_there_is_to_do,
			    0, SEEDS);
	tcase_add_loop_test(tc, who_serves_what_completed_elsewhere_is_limited,
			    0, SEEDS);
	tcase_add_loop_test(tc, lowest_sleeper_is_woken_for_what_is_handed_over,
			    0, SEEDS);
	tcase_add_loop_test(tc, who_watches_looks_seldom_in_a_crowd, 0, SEEDS);
	tcase_add_test(tc, sleepers_are_woken_from_the_lowest_on);
	tcase_add_loop_test(tc, as_many_run_as_there_are_processors, 0, SEEDS);
	tcase_add_loop_test(tc, all_run_where_processors_suffice, 0, SEEDS);
	tcase_add_loop_test(tc, all_run_without_a_monitor, 0, SEEDS);
	suite_add_tcase(suite, tc);
	tc = tcase_create("trials");
	tcase_add_loop_test(tc, another_one_runs_when_processors_are_free, 0,
			    SEEDS);
	tcase_add_loop_test(
		tc, one_that_is_not_wanted_is_tried_less_and_less_often, 0, 3);
	tcase_add_loop_test(tc, none_is_tried_while_no_processor_is_idle, 0, 3);
	suite_add_tcase(suite, tc);
	tc = tcase_create("no harm");
	tcase_add_loop_test(tc, who_computes_is_helped_all_the_same, 0, SEEDS);
	tcase_add_loop_test(tc, who_served_and_computes_holds_up_nobody, 0,
			    2 * SEEDS);
	tcase_add_loop_test(tc,
			    who_is_woken_and_has_no_processor_holds_up_nobody,
			    0, 2 * SEEDS);
	tcase_add_loop_test(tc, who_computes_is_not_limited, 0, SEEDS);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { worker_limit_suite };

	return run_suites(make, 1);
}
