/* SPDX-License-Identifier: MIT */
/*
 * Suite timer/past: times that have passed, and times that never come, in every
 * call of a task or a future that takes one, on virtual time.  For calls of
 * threads and for options see tests/sched/test_sched_past.c.
 */
#include <errno.h>

#include <weft/weft.h>

#include "tests/fake/fake_check.h"
#include "tests/support/future_scene.h"

/* Longer than any detour of a call that does not wait. */
#define AT_ONCE_NS WEFT_US(100)

enum { LENGTHS = 7 };

static weft_nsec passed[LENGTHS], never[LENGTHS];

static void lengths_set(weft_nsec now_ns)
{
	weft_nsec end_ns = now_ns - 1;
	const weft_nsec of_passed[LENGTHS] = {
		0,
		end_ns - now_ns, /* a nanosecond ago */
		WEFT_US(-1),
		WEFT_MS(-1),
		WEFT_SEC(-1000000000),
		WEFT_SEC(INT64_MIN),
		(weft_nsec)INT64_MIN,
	};
	const weft_nsec of_never[LENGTHS] = {
		WEFT_NEVER,
		WEFT_NEVER - now_ns,
		WEFT_NEVER + now_ns,
		INT64_MAX,
		WEFT_US(UINT64_MAX),
		WEFT_MS(INT64_MAX),
		WEFT_SEC(UINT64_MAX / 2),
	};

	for (int i = 0; i < LENGTHS; i++) {
		passed[i] = of_passed[i];
		never[i] = of_never[i];
	}
}

/* ---- Tasks --------------------------------------------------------------- */

static void expect_passed_length(weft_nsec length_ns)
{
	struct weft_interval interval;
	weft_nsec start_ns = weft_now();
	int error = 1;

	EXPECT(weft_sleep(length_ns) == 0);
	WEFT_WITHIN(length_ns) {
		EXPECT(weft_deadline_passed());
		error = weft_sleep(WEFT_SEC(1));
	}
	EXPECT(error == -ETIMEDOUT);
	EXPECT(weft_interval_init(&interval, length_ns, WEFT_MISSED_SKIP) ==
	       -EINVAL);
	EXPECT(weft_now() - start_ns < AT_ONCE_NS);
}

static void expect_passed_point(weft_nsec point_ns)
{
	struct weft_case cases[] = {
		WEFT_AT(point_ns),
		WEFT_AT(WEFT_NEVER),
	};
	struct weft_timer timer = { { 0 } };
	struct weft_within within;
	weft_nsec start_ns = weft_now();
	int error = 1;

	EXPECT(weft_sleep_until(point_ns) == 0);
	WEFT_WITHIN_UNTIL(point_ns)
		error = weft_sleep(WEFT_SEC(1));
	EXPECT(error == -ETIMEDOUT);
	EXPECT(weft_within_begin(&within, point_ns) == 0);
	EXPECT(weft_sleep(WEFT_SEC(1)) == -ETIMEDOUT);
	weft_within_end(&within);
	EXPECT(weft_timer_set(&timer, point_ns) == 0);
	EXPECT(weft_timer_wait(&timer) == 0);
	EXPECT(weft_try_select(cases, 2) == 0);
	EXPECT(weft_select(cases, 2) == 0);
	EXPECT(weft_now() - start_ns < AT_ONCE_NS);
}

static int64_t meet_the_past(void *arg)
{
	(void)arg;
	lengths_set(weft_now());
	for (int i = 0; i < LENGTHS; i++) {
		expect_passed_length(passed[i]);
		/* The sum may lie before the clock began. */
		expect_passed_point(weft_now() + passed[i]);
	}
	return 0;
}

static void expect_never_length(weft_nsec length_ns)
{
	struct weft_interval interval;

	WEFT_WITHIN(length_ns)
		EXPECT(weft_deadline() == WEFT_NEVER);
	EXPECT(weft_interval_init(&interval, length_ns, WEFT_MISSED_SKIP) == 0);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_interval_wait(&interval) == -ETIMEDOUT);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_sleep(length_ns) == -ETIMEDOUT);
}

static void expect_never_point(weft_nsec point_ns)
{
	struct weft_case at = WEFT_AT(point_ns);
	struct weft_timer timer = { { 0 } };

	WEFT_WITHIN_UNTIL(point_ns)
		EXPECT(weft_deadline() == WEFT_NEVER);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_sleep_until(point_ns) == -ETIMEDOUT);
	EXPECT(weft_timer_set(&timer, point_ns) == 0);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_timer_wait(&timer) == -ETIMEDOUT);
	EXPECT(weft_timer_clear(&timer));
	EXPECT(weft_try_select(&at, 1) == -EAGAIN);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_select(&at, 1) == -ETIMEDOUT);
}

static int64_t meet_no_end(void *arg)
{
	(void)arg;
	lengths_set(weft_now());
	for (int i = 0; i < LENGTHS; i++) {
		expect_never_length(never[i]);
		/* As a point, and added to the time now. */
		if (never[i] >= WEFT_NEVER)
			expect_never_point(never[i]);
		if ((int64_t)(weft_now() + never[i]) > 0)
			expect_never_point(weft_now() + never[i]);
	}
	return 0;
}

/* ---- Futures ------------------------------------------------------------- */

struct awaiter {
	WEFT_FUTURE_STATE;
	int i;
};

static int64_t await_the_past(void *state)
{
	struct awaiter *s = state;
	int r;

	WEFT_FUTURE_BEGIN(s);
	WEFT_AWAIT_AS(s, r, weft_await_sleep(passed[s->i]));
	EXPECT(r == 0);
	WEFT_AWAIT_AS(s, r, weft_await_sleep_until(weft_now() + passed[s->i]));
	EXPECT(r == 0);
	EXPECT(weft_future_within(passed[s->i]) == 0);
	EXPECT(weft_deadline_passed());
	WEFT_AWAIT_AS(s, r, weft_await_sleep(WEFT_SEC(1)));
	EXPECT(r == -ETIMEDOUT);
	WEFT_FUTURE_END(s);
	return 0;
}

static int64_t await_no_end(void *state)
{
	struct awaiter *s = state;
	int r;

	WEFT_FUTURE_BEGIN(s);
	EXPECT(weft_future_within(never[s->i]) == 0);
	EXPECT(weft_deadline() == WEFT_NEVER);
	EXPECT(weft_future_within(WEFT_MS(1)) == 0);
	WEFT_AWAIT_AS(s, r, weft_await_sleep(never[s->i]));
	EXPECT(r == -ETIMEDOUT);
	WEFT_FUTURE_END(s);
	return 0;
}

static int64_t futures_meet_both(void *arg)
{
	weft_nsec start_ns = weft_now();

	(void)arg;
	lengths_set(start_ns);
	for (int i = 0; i < LENGTHS; i++) {
		WEFT_SCOPE(all, NULL) {
			struct awaiter awaiter = { 0, i };

			EXPECT(WEFT_GO_FUTURE(all, await_the_past, awaiter) ==
			       0);
		}
	}
	/* Timers are up to a tick late. */
	EXPECT(weft_now() - start_ns < WEFT_MS(100));
	for (int i = 0; i < LENGTHS; i++) {
		WEFT_SCOPE(all, NULL) {
			struct awaiter awaiter = { 0, i };

			EXPECT(WEFT_GO_FUTURE(all, await_no_end, awaiter) == 0);
		}
	}
	return 0;
}

/* ---- Suite --------------------------------------------------------------- */

static void run_past(int i, weft_fn main_fn)
{
	struct fake_config config = {
		.seed = seed_of(i),
		.workers = 1 + (unsigned)i,
		.step_ns = 1,
	};

	(void)must_run(&config, main_fn, NULL);
}

START_TEST(time_that_has_passed_is_over_immediately)
{
	run_past(_i, meet_the_past);
}
END_TEST

START_TEST(time_that_is_too_long_never_comes)
{
	run_past(_i, meet_no_end);
}
END_TEST

START_TEST(futures_do_the_same)
{
	run_past(_i, futures_meet_both);
}
END_TEST

START_TEST(lengths_saturate_and_keep_their_sign)
{
	static const weft_nsec constant = WEFT_MS(-3);
	int n = 5;

	ck_assert_int_eq((int64_t)constant, -3000000);
	ck_assert_uint_eq(WEFT_SEC(n++), UINT64_C(5000000000));
	ck_assert_int_eq(n, 6);
	n = -n;
	ck_assert_int_eq((int64_t)WEFT_MS(n), -6000000);
	ck_assert_uint_eq(WEFT_SEC(INT64_MAX), WEFT_NEVER);
	ck_assert_uint_eq(WEFT_US(UINT64_MAX), WEFT_NEVER);
	ck_assert_int_eq((int64_t)WEFT_SEC(INT64_MIN), -(int64_t)WEFT_NEVER);
}
END_TEST

static Suite *past_suite(void)
{
	Suite *suite = suite_create("timer/past");
	TCase *tc = tcase_create("past");

	tcase_add_loop_test(tc, time_that_has_passed_is_over_immediately, 0, 3);
	tcase_add_loop_test(tc, time_that_is_too_long_never_comes, 0, 3);
	tcase_add_loop_test(tc, futures_do_the_same, 0, 3);
	tcase_add_test(tc, lengths_saturate_and_keep_their_sign);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { past_suite };

	return run_suites(make, 1);
}
