/* SPDX-License-Identifier: MIT */
/*
 * Suite timer/sleep: sleeps, intervals and timers as include/weft/time.h
 * defines them, on virtual time.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <errno.h>
#include <string.h>

#include <weft/weft.h>

#include "runtime/sched/wait.h"
#include "tests/fake/fake_check.h"
#include "timer/wheel.h"

#define TICK_NS ((uint64_t)1 << WEFT__WHEEL_TICK_BITS)

enum { SEEDS = 24 };

/* Steps take almost no time, so all lateness comes from the wheel. */
static struct fake_config config_of(int i)
{
	return (struct fake_config){
		.seed = seed_of(i),
		.workers = 1 + (unsigned)i % 4,
		.step_ns = 1,
		.budgets_vary = i >= 8,
		.monitor_off = i % 2,
	};
}

static void run_main(int i, weft_fn main_fn)
{
	struct fake_config config = config_of(i);

	(void)must_run(&config, main_fn, NULL);
}

/*
 * Sleeps.
 */

static uint64_t last_due;
static unsigned slept;

static uint64_t due_of(uint64_t deadline_ns)
{
	return (deadline_ns + TICK_NS - 1) / TICK_NS * TICK_NS;
}

static int64_t sleep_once(void *arg)
{
	uint64_t length_ns = *(uint64_t *)arg;
	uint64_t deadline_ns = weft_now() + length_ns;
	uint64_t now_ns;

	EXPECT(weft_sleep_until(deadline_ns) == 0);
	now_ns = weft_now();
	EXPECT(now_ns >= deadline_ns);
	/* The end of the wheel's tick, plus the steps until the task ran: at
	 * most 128 tasks, on workers that may have been given one run each. */
	EXPECT(now_ns - due_of(deadline_ns) < 8000);
	/* One worker wakes sleepers in the order of ticks. */
	if (fake_runtime()->workers_count == 1) {
		EXPECT(due_of(deadline_ns) >= last_due);
		last_due = due_of(deadline_ns);
	}
	slept++;
	return 0;
}

static int64_t start_sleepers(void *arg)
{
	(void)arg;
	last_due = slept = 0;
	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < 1000; i++) {
			uint64_t max = UINT64_C(1) << fake_random(40);

			EXPECT(WEFT_GO(all, sleep_once,
				       1 + fake_random(max)) == 0);
		}
	EXPECT(slept == 1000);
	return 0;
}

START_TEST(sleeps_end_in_order_never_early_and_within_a_tick)
{
	run_main(_i, start_sleepers);
}
END_TEST

/* The clock starts just before a power of two: slots of all levels change. */
START_TEST(sleeps_across_powers_of_two_are_on_time)
{
	struct fake_config config = config_of(_i);

	config.start_ns = (UINT64_C(1) << (16 + _i)) -
			  (_i % 2 ? 1 : UINT64_C(1) << (10 + _i / 2));
	(void)must_run(&config, start_sleepers, NULL);
}
END_TEST

static unsigned others;

static int64_t count_other(void *arg)
{
	(void)arg;
	others++;
	return 0;
}

static int64_t sleep_zero(void *arg)
{
	uint64_t before_ns;

	(void)arg;
	others = 0;
	WEFT_SCOPE(all, NULL) {
		for (int i = 0; i < 3; i++)
			EXPECT(weft_go(all, count_other, NULL, 0) == 0);
		before_ns = weft_now();
		EXPECT(weft_sleep(0) == 0);
		if (fake_runtime()->workers_count == 1)
			EXPECT(others == 3);
		/* A point in the past does the same. */
		EXPECT(weft_go(all, count_other, NULL, 0) == 0);
		EXPECT(weft_sleep_until(before_ns) == 0);
		if (fake_runtime()->workers_count == 1)
			EXPECT(others == 4);
		EXPECT(weft_now() - before_ns < 2000);
	}
	return 0;
}

START_TEST(sleep_of_0_yields)
{
	run_main(_i, sleep_zero);
}
END_TEST

static int64_t sleep_long(void *arg)
{
	return weft_sleep(*(uint64_t *)arg);
}

static int64_t cancel_sleepers(void *arg)
{
	static const uint64_t lengths[] = {
		WEFT_NEVER, WEFT_NEVER - 1, WEFT_NEVER / 2, WEFT_SEC(100),
	};
	uint64_t before_ns = weft_now();
	int64_t result = 0;

	(void)arg;
	WEFT_SUPERVISE(all)
		for (int i = 0; i < 4; i++) {
			struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
			struct weft_task task;

			opts.ret_task = &task;
			EXPECT(weft_go_opts(all, sleep_long, &lengths[i],
					    sizeof(lengths[i]), &opts) == 0);
			EXPECT(weft_sleep(WEFT_MS(1)) == 0);
			EXPECT(weft_cancel(task) == 0);
			EXPECT(weft_join(task, &result) == 0);
			EXPECT(result == -ECANCELED);
		}
	EXPECT(weft_now() - before_ns < WEFT_MS(5));
	return 0;
}

START_TEST(long_sleeps_end_when_cancelled)
{
	run_main(_i, cancel_sleepers);
}
END_TEST

/* No task runs for 20 ms; then both have passed: the earlier one decides. */
static int64_t earlier_decides(void *arg)
{
	int error = 1;
	bool inner = *(bool *)arg;

	if (inner) {
		WEFT_WITHIN(WEFT_MS(5))
			error = weft_sleep(WEFT_MS(10));
		EXPECT(error == -ETIMEDOUT);
		WEFT_WITHIN(WEFT_MS(5))
			WEFT_WITHIN(WEFT_MS(50))
				error = weft_sleep(WEFT_MS(10));
		EXPECT(error == -ECANCELED);
	} else {
		WEFT_WITHIN(WEFT_MS(10)) {
			error = weft_sleep(WEFT_MS(5));
			EXPECT(error == 0);
			/* The next call returns the error. */
			if (weft_deadline_passed())
				EXPECT(weft_sleep(1) == -ETIMEDOUT);
		}
	}
	return 0;
}

static int64_t hold_all_up(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		fake_pass(fake_random(WEFT_MS(20)));
		EXPECT(weft_yield() == 0);
	}
	return 0;
}

static int64_t start_earlier_decides(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL) {
		for (int i = 0; i < 20; i++) {
			bool inner = i % 2;

			EXPECT(WEFT_GO(all, earlier_decides, inner) == 0);
		}
		EXPECT(weft_go(all, hold_all_up, NULL, 0) == 0);
	}
	return 0;
}

START_TEST(of_a_sleep_and_its_block_the_earlier_decides)
{
	run_main(_i, start_earlier_decides);
}
END_TEST

/* The clock decides, whether or not the alarm went off. */
static int64_t yield_late(void *arg)
{
	(void)arg;
	WEFT_WITHIN(0)
		EXPECT(weft_yield() == -ETIMEDOUT);
	WEFT_WITHIN(WEFT_US(100)) {
		EXPECT(weft_yield() == 0);
		fake_pass(WEFT_US(100));
		EXPECT(weft_yield() == -ETIMEDOUT);
		EXPECT(weft_sleep(0) == -ETIMEDOUT);
		EXPECT(weft_sleep_until(1) == -ETIMEDOUT);
		WEFT_WITHIN(WEFT_US(100))
			EXPECT(weft_yield() == -ECANCELED);
		WEFT_SHIELD
			EXPECT(weft_yield() == 0);
	}
	return 0;
}

START_TEST(yield_meets_a_deadline_that_has_just_passed)
{
	run_main(_i, yield_late);
}
END_TEST

/* L16: worker 0 sleeps for long, and another worker arms an earlier alarm. */
static int64_t arm_elsewhere(void *arg)
{
	uint64_t length_ns = *(uint64_t *)arg;

	/* The other workers come and take the other tasks. */
	fake_compute(WEFT_US(5));
	if (weft__worker_self()->index == 0)
		return 0;
	slept++;
	/* Waits until worker 0 has finished computing, and sleeps. */
	EXPECT(weft_sleep(WEFT_MS(2)) == 0);
	for (int i = 0; i < 20; i++) {
		uint64_t deadline_ns = weft_now() + length_ns;

		EXPECT(weft__worker_self()->index != 0);
		EXPECT(weft_sleep(length_ns) == 0);
		EXPECT(weft_now() - due_of(deadline_ns) < 100);
	}
	return 0;
}

static int64_t start_elsewhere(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	uint64_t length_ns = 300000;

	(void)arg;
	opts.flags = WEFT_PINNED;
	WEFT_SCOPE(all, NULL) {
		for (int i = 0; i < 8; i++)
			EXPECT(weft_go_opts(all, arm_elsewhere, &length_ns,
					    sizeof(length_ns), &opts) == 0);
		EXPECT(weft_sleep(WEFT_SEC(3600)) == 0);
	}
	EXPECT(slept > 0);
	return 0;
}

START_TEST(alarm_armed_elsewhere_wakes_worker_0)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 2 + (unsigned)_i % 3,
		.step_ns = 1,
		/* No other worker would find it. */
		.monitor_off = true,
		.help_off = true,
	};
	struct fake_result result;

	slept = 0;
	result = must_run(&config, start_elsewhere, NULL);
	ck_assert_uint_ge(result.stats.total.timers_fired, 21);
}
END_TEST

/* A hundred thousand sleepers expire together: the ring does not overflow. */
static int64_t sleep_to(void *arg)
{
	EXPECT(weft_sleep_until(*(uint64_t *)arg) == 0);
	slept++;
	return 0;
}

static int64_t start_many(void *arg)
{
	uint64_t deadline_ns = weft_now() + WEFT_SEC(1);
	struct weft_stats before, after;

	(void)arg;
	slept = 0;
	WEFT_SCOPE(all, NULL) {
		for (int i = 0; i < 100000; i++) {
			EXPECT(WEFT_GO(all, sleep_to, deadline_ns) == 0);
			if (i % 100 == 0)
				EXPECT(weft_yield() == 0);
		}
		EXPECT(weft_sleep_until(deadline_ns - WEFT_MS(1)) == 0);
		EXPECT(weft_stats_get(weft_runtime_self(), &before) == 0);
	}
	EXPECT(weft_stats_get(weft_runtime_self(), &after) == 0);
	EXPECT(slept == 100000);
	EXPECT(after.total.overflowed == before.total.overflowed);
	return 0;
}

START_TEST(hundred_thousand_due_at_once_do_not_overflow)
{
	struct fake_config config = config_of(_i);
	struct fake_result result;

	config.budgets_vary = false;
	config.stack_bytes = 16384;
	result = must_run(&config, start_many, NULL);
	ck_assert_uint_eq(result.stats.total.timers_fired, 100001);
}
END_TEST

/*
 * Intervals.
 */

static int64_t beat(void *arg)
{
	struct weft_interval interval;
	uint64_t start_ns = weft_now();

	(void)arg;
	EXPECT(weft_interval_init(NULL, 1, WEFT_MISSED_SKIP) == -EINVAL);
	EXPECT(weft_interval_init(&interval, 0, WEFT_MISSED_SKIP) == -EINVAL);
	EXPECT(weft_interval_init(&interval, 1, (enum weft_missed)3) ==
	       -EINVAL);
	for (int policy = 0; policy < 3; policy++) {
		start_ns = weft_now();
		EXPECT(weft_interval_init(&interval, WEFT_MS(10),
					  (enum weft_missed)policy) == 0);
		/* Ticks are on the beat, whatever the policy: lateness is not
		 * added up. */
		for (uint64_t i = 1; i <= 100; i++) {
			EXPECT(weft_interval_wait(&interval) == 1);
			EXPECT(weft_now() >= start_ns + i * WEFT_MS(10));
			EXPECT(weft_now() - start_ns - i * WEFT_MS(10) <
			       TICK_NS + 1000);
		}
	}
	return 0;
}

START_TEST(interval_keeps_its_beat)
{
	run_main(_i, beat);
}
END_TEST

static int64_t miss_ticks(void *arg)
{
	struct weft_interval interval;
	uint64_t start_ns, now_ns;

	(void)arg;
	start_ns = weft_now();
	EXPECT(weft_interval_init(&interval, WEFT_MS(10),
				  WEFT_MISSED_BURST) == 0);
	fake_pass(WEFT_MS(35));
	for (int i = 0; i < 3; i++) {
		EXPECT(weft_interval_wait(&interval) == 1);
		EXPECT(weft_now() - start_ns < WEFT_MS(36));
	}
	EXPECT(weft_interval_wait(&interval) == 1);
	EXPECT(weft_now() - start_ns - WEFT_MS(40) < WEFT_MS(1));

	start_ns = weft_now();
	EXPECT(weft_interval_init(&interval, WEFT_MS(10),
				  WEFT_MISSED_SKIP) == 0);
	fake_pass(WEFT_MS(35));
	EXPECT(weft_interval_wait(&interval) == 3);
	EXPECT(weft_interval_wait(&interval) == 1);
	EXPECT(weft_now() - start_ns - WEFT_MS(40) < WEFT_MS(1));

	start_ns = weft_now();
	EXPECT(weft_interval_init(&interval, WEFT_MS(10),
				  WEFT_MISSED_DELAY) == 0);
	fake_pass(WEFT_MS(35));
	EXPECT(weft_interval_wait(&interval) == 1);
	now_ns = weft_now();
	EXPECT(weft_interval_wait(&interval) == 1);
	EXPECT(weft_now() - now_ns >= WEFT_MS(9));
	EXPECT(weft_now() - start_ns - WEFT_MS(45) < WEFT_MS(1));

	/* The interval goes on after a wait that was given up. */
	start_ns = weft_now();
	EXPECT(weft_interval_init(&interval, WEFT_MS(10),
				  WEFT_MISSED_SKIP) == 0);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_interval_wait(&interval) == -ETIMEDOUT);
	EXPECT(weft_interval_wait(&interval) == 1);
	EXPECT(weft_now() - start_ns - WEFT_MS(10) < WEFT_MS(1));

	/* An interval with an endless period. */
	EXPECT(weft_interval_init(&interval, WEFT_NEVER,
				  WEFT_MISSED_SKIP) == 0);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_interval_wait(&interval) == -ETIMEDOUT);
	return 0;
}

START_TEST(missed_ticks_are_met_by_the_policy)
{
	run_main(_i, miss_ticks);
}
END_TEST

/*
 * Timers.
 */

static int64_t use_timer(void *arg)
{
	struct weft_timer timer = { { 0 } };
	uint64_t now_ns = weft_now();

	(void)arg;
	EXPECT(weft_timer_wait(&timer) == -EINVAL);
	EXPECT(!weft_timer_clear(&timer));
	/* The timer is set, waited for, and used up. */
	EXPECT(weft_timer_set(&timer, now_ns + WEFT_MS(2)) == 0);
	EXPECT(weft_timer_wait(&timer) == 0);
	EXPECT(weft_now() - now_ns - WEFT_MS(2) < TICK_NS + 1000);
	EXPECT(weft_timer_wait(&timer) == -EINVAL);
	EXPECT(!weft_timer_clear(&timer));
	/* Set again: to a later time, then to an earlier one. */
	now_ns = weft_now();
	EXPECT(weft_timer_set(&timer, now_ns + WEFT_MS(2)) == 0);
	EXPECT(weft_timer_set(&timer, now_ns + WEFT_MS(9)) == 0);
	EXPECT(weft_timer_set(&timer, now_ns + WEFT_MS(4)) == 0);
	EXPECT(weft_timer_wait(&timer) == 0);
	EXPECT(weft_now() - now_ns - WEFT_MS(4) < TICK_NS + 1000);
	/* Cleared. */
	EXPECT(weft_timer_set(&timer, weft_now() + WEFT_MS(2)) == 0);
	EXPECT(weft_timer_clear(&timer));
	EXPECT(!weft_timer_clear(&timer));
	EXPECT(weft_timer_wait(&timer) == -EINVAL);
	/* The timer goes off while the task does something else. */
	EXPECT(weft_timer_set(&timer, weft_now() + WEFT_MS(2)) == 0);
	EXPECT(weft_sleep(WEFT_MS(5)) == 0);
	now_ns = weft_now();
	EXPECT(weft_timer_wait(&timer) == 0);
	EXPECT(weft_now() - now_ns < 1000);
	EXPECT(weft_timer_set(&timer, weft_now() + WEFT_MS(2)) == 0);
	EXPECT(weft_sleep(WEFT_MS(5)) == 0);
	EXPECT(!weft_timer_clear(&timer));
	/* A wait that is given up leaves the timer set. */
	now_ns = weft_now();
	EXPECT(weft_timer_set(&timer, now_ns + WEFT_MS(5)) == 0);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_timer_wait(&timer) == -ETIMEDOUT);
	EXPECT(weft_timer_wait(&timer) == 0);
	EXPECT(weft_now() - now_ns - WEFT_MS(5) < TICK_NS + 1000);
	/* A time in the past, and WEFT_NEVER. */
	EXPECT(weft_timer_set(&timer, 1) == 0);
	EXPECT(weft_timer_wait(&timer) == 0);
	EXPECT(weft_timer_set(&timer, WEFT_NEVER) == 0);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_timer_wait(&timer) == -ETIMEDOUT);
	EXPECT(weft_timer_clear(&timer));
	return 0;
}

static int64_t start_timers(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < 50; i++)
			EXPECT(weft_go(all, use_timer, NULL, 0) == 0);
	return 0;
}

START_TEST(timer_does_what_its_comments_say)
{
	struct fake_config config = config_of(_i);

	config.budgets_vary = false;
	(void)must_run(&config, use_timer, NULL);
	config.step_ns = 10;
	(void)must_run(&config, start_timers, NULL);
}
END_TEST

static int64_t wait_for_anothers(void *arg)
{
	struct weft_timer *timer = *(struct weft_timer **)arg;

	EXPECT(weft_timer_wait(timer) == 0);
	return 0;
}

static int64_t hand_timer_on(void *arg)
{
	struct weft_timer timer = { { 0 } }, *pointer = &timer;
	uint64_t now_ns = weft_now();

	(void)arg;
	EXPECT(weft_timer_set(&timer, now_ns + WEFT_MS(3)) == 0);
	WEFT_SCOPE(all, NULL)
		EXPECT(WEFT_GO(all, wait_for_anothers, pointer) == 0);
	EXPECT(weft_now() - now_ns - WEFT_MS(3) < TICK_NS + 2000);
	EXPECT(!weft_timer_clear(&timer));
	return 0;
}

START_TEST(timer_set_by_one_task_wakes_the_one_that_waits)
{
	run_main(_i, hand_timer_on);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, SEEDS)

static Suite *sleep_suite(void)
{
	Suite *suite = suite_create("timer/sleep");
	TCase *tc = tcase_create("sleep");

	tcase_set_timeout(tc, 60);
	ADD(tc, sleeps_end_in_order_never_early_and_within_a_tick);
	tcase_add_loop_test(tc, sleeps_across_powers_of_two_are_on_time, 0,
			    44);
	ADD(tc, sleep_of_0_yields);
	ADD(tc, long_sleeps_end_when_cancelled);
	ADD(tc, of_a_sleep_and_its_block_the_earlier_decides);
	ADD(tc, yield_meets_a_deadline_that_has_just_passed);
	tcase_add_loop_test(tc, hundred_thousand_due_at_once_do_not_overflow,
			    0, 3);
	suite_add_tcase(suite, tc);

	tc = tcase_create("hand-over");
	ADD(tc, alarm_armed_elsewhere_wakes_worker_0);
	suite_add_tcase(suite, tc);

	tc = tcase_create("interval");
	ADD(tc, interval_keeps_its_beat);
	ADD(tc, missed_ticks_are_met_by_the_policy);
	suite_add_tcase(suite, tc);

	tc = tcase_create("timer");
	ADD(tc, timer_does_what_its_comments_say);
	ADD(tc, timer_set_by_one_task_wakes_the_one_that_waits);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { sleep_suite };

	return run_suites(make, 1);
}
