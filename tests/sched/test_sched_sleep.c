/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/sleep: workers that go to sleep, on virtual time.
 *
 * One sleeper is the monitor: it looks up now and then while others compute.
 * The tests follow its place from worker to worker, a worker that is appointed
 * and does not come, and the turns that a worker takes before it sleeps.
 */
#include <weft/weft.h>

#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

/* ---- The monitor's place ------------------------------------------------ */

static bool done;

static int64_t note_run(void *arg)
{
	(void)arg;
	done = true;
	return 0;
}

static uint32_t monitor(void)
{
	/* relaxed: one thread. */
	return weft__load(&fake_runtime()->idle.monitor, relaxed);
}

static void submit_to_the_monitor(void *arg)
{
	uint32_t before = monitor();

	(void)arg;
	EXPECT(before != 0);
	EXPECT(weft_submit(fake_runtime(), note_run, NULL, 0, NULL) == 0);
	/* relaxed: one thread. */
	EXPECT(weft__load(&fake_runtime()->workers[before - 1]->park_word,
			  relaxed) == WEFT__PARK_NOTIFIED);
	EXPECT(monitor() == 0);
}

/* One worker computes; the other is woken, and then looks now and then. */
static int64_t compute_beside_the_monitor(void *arg)
{
	(void)arg;
	fake_foreign(WEFT_US(300), submit_to_the_monitor, NULL);
	fake_compute(WEFT_US(400));
	EXPECT(weft_sleep(WEFT_MS(10)) == 0);
	return 0;
}

/* A worker that goes to sleep after the monitor was woken takes the monitor's
 * place.  It is not woken for that. */
START_TEST(monitor_that_is_woken_has_left_its_place)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 2 };

	done = false;
	(void)must_run(&config, compute_beside_the_monitor, NULL);
	ck_assert(done);
}
END_TEST

/* A worker that wakes another to watch may sleep again before the other is
 * there.  It does not take the other's place, and so need not wake it each
 * time. */
static int64_t nap_at_once(void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000; i++)
		EXPECT(weft_sleep(1 + fake_random(WEFT_US(3))) == 0);
	return 0;
}

START_TEST(monitor_is_woken_once)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 2 + (unsigned)_i % 3,
	};
	struct fake_result result = must_run(&config, nap_at_once, NULL);

	ck_assert_uint_le(result.stats.total.wakes_sent, 5);
	ck_assert_uint_eq(result.stats.total.wakes_wasted, 0);
}
END_TEST

static void submit_one(void *arg)
{
	(void)arg;
	EXPECT(weft_submit(fake_runtime(), note_run, NULL, 0, NULL) == 0);
}

/* When it wakes, worker 0 has been the monitor, and worker 1 becomes it. */
static int64_t sleep_and_submit(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200; i++) {
		fake_foreign(WEFT_US(50), submit_one, NULL);
		EXPECT(weft_sleep(WEFT_US(100)) == 0);
	}
	return 0;
}

/* A task from outside is not given to the monitor, which would wake the other
 * worker to take its place. */
START_TEST(task_from_outside_wakes_one_of_two)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 2 };
	struct fake_result result = must_run(&config, sleep_and_submit, NULL);

	ck_assert_uint_le(result.stats.total.wakes_sent, 5);
	ck_assert_uint_le(result.stats.total.wakes_wasted, 5);
}
END_TEST

static uint64_t run_ns;
static bool over;

static int64_t compute_as_told(void *arg)
{
	(void)arg;
	fake_compute(run_ns);
	return 0;
}

static void submit_on(void *arg)
{
	if (over)
		return;
	EXPECT(weft_submit(fake_runtime(), compute_as_told, NULL, 0, NULL) ==
	       0);
	fake_foreign(run_ns + WEFT_US(300), submit_on, arg);
}

/* Returns how many timers are late. */
static int64_t sleep_beside_submits(void *arg)
{
	int64_t late = 0;

	(void)arg;
	over = false;
	fake_foreign(WEFT_US(50), submit_on, NULL);
	for (int i = 0; i < 1000; i++) {
		uint64_t due_ns = weft_now() + WEFT_US(300);

		EXPECT(weft_sleep_until(due_ns) == 0);
		late += weft_now() - due_ns > WEFT_US(500);
	}
	over = true;
	return late;
}

/* Long runs are given to the monitor, as the timers would wait for them. */
START_TEST(timers_are_in_time_beside_tasks_from_outside)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 2 };

	run_ns = _i % 2 ? WEFT_US(700) : WEFT_MS(3);
	ck_assert_int_le(must_run(&config, sleep_beside_submits, NULL).result,
			 50);
}
END_TEST

/* Wakes worker 1 a few times. */
static int64_t receive_by_1(void *arg)
{
	(void)arg;
	for (int i = 0; i < 5; i++)
		fake_receive(1, WEFT_US(20));
	return 0;
}

/* All sleep then, and no worker watches. */
static void hold_number_2(void *arg)
{
	(void)arg;
	EXPECT(monitor() == 0);
	fake_hold(2, true);
}

/* Worker 2 is appointed monitor, but its thread gets no processor.  Worker 1
 * goes to sleep later, looks in its place, and finds what worker 0 has in its
 * ring while that one computes. */
static int64_t compute_beside_one_that_is_held(void *arg)
{
	(void)arg;
	fake_foreign(WEFT_MS(400), hold_number_2, NULL);
	EXPECT(weft_sleep(WEFT_MS(500)) == 0);
	EXPECT(monitor() == (WEFT__MONITOR_COMES | 3));
	WEFT_SCOPE (all, NULL) {
		EXPECT(weft_go(all, receive_by_1, NULL, 0) == 0);
		EXPECT(weft_sleep(WEFT_US(300)) == 0);
		EXPECT(monitor() == (WEFT__MONITOR_COMES | 3));
		EXPECT(compute_beside_one(all, WEFT_MS(20)) < WEFT_MS(5));
	}
	fake_hold(2, false);
	return 0;
}

START_TEST(monitor_that_does_not_come_is_stood_in_for)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 3 };

	(void)must_run(&config, compute_beside_one_that_is_held, NULL);
}
END_TEST

/* A task that gets into the shared queue, and no worker is woken for it. */
static struct weft__task *forgotten;

static void push_and_wake_nobody(void *arg)
{
	struct weft__chain chain = { 0 };

	(void)arg;
	weft__chain_add(&chain, forgotten);
	weft__inject_push(&fake_runtime()->inject, &chain);
}

static int64_t forget_one(void *arg)
{
	(void)arg;
	/* A worker looks up for a while after a worker has woken. */
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	WEFT_SCOPE (all, NULL) {
		EXPECT(weft_go(all, note_run, NULL, 0) == 0);
		forgotten = weft__lifo_take(weft__worker_self());
		EXPECT(forgotten != NULL);
		fake_foreign(WEFT_MS(5), push_and_wake_nobody, NULL);
		EXPECT(weft_sleep(WEFT_MS(20)) == 0);
		EXPECT(done);
	}
	return 0;
}

/* Shows that the counter works: other tests require it to be zero. */
START_TEST(task_that_nobody_was_woken_for_is_rescued_and_counted)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 3 };
	struct fake_result result;

	done = false;
	fake_run(&config, forget_one, NULL, &result);
	ck_assert_ptr_null(result.trouble);
	ck_assert_uint_eq(result.stats.total.rescues, 1);
}
END_TEST

/* ---- Turns --------------------------------------------------------------- */

enum { NAPS = 100 };

static int64_t nap_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < NAPS; i++)
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	return 0;
}

/* A worker that runs all there is in a tick goes to sleep in the same turn. */
START_TEST(worker_that_has_run_everything_sleeps_at_once)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 1 };
	struct fake_result result = must_run(&config, nap_often, NULL);

	ck_assert_uint_ge(result.parks[0], NAPS);
	ck_assert_uint_le(result.steps_of[0] - result.parks[0], 5);
}
END_TEST

static Suite *sleep_suite(void)
{
	Suite *suite = suite_create("sched/sleep");
	TCase *tc = tcase_create("monitor");

	tcase_set_tags(tc, "monitor");
	tcase_add_loop_test(tc, monitor_that_is_woken_has_left_its_place, 0,
			    20);
	tcase_add_loop_test(tc, monitor_is_woken_once, 0, 20);
	tcase_add_loop_test(tc, task_from_outside_wakes_one_of_two, 0, 20);
	tcase_add_loop_test(tc, timers_are_in_time_beside_tasks_from_outside, 0,
			    20);
	tcase_add_loop_test(tc, monitor_that_does_not_come_is_stood_in_for, 0,
			    20);
	tcase_add_loop_test(
		tc, task_that_nobody_was_woken_for_is_rescued_and_counted, 0,
		20);
	suite_add_tcase(suite, tc);
	tc = tcase_create("turns");
	tcase_add_loop_test(tc, worker_that_has_run_everything_sleeps_at_once,
			    0, 10);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { sleep_suite };

	return run_suites(make, 1);
}
