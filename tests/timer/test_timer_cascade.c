/* SPDX-License-Identifier: MIT */

/*
 * Suite timer/cascade: the timers of a far slot of the wheel are moved to
 * nearer slots.  All of them are moved, a few at a time, and no expiry waits
 * for that.
 */

#include "timer/wheel.h"

#include <check.h>
#include <stdlib.h>

#define TICK ((uint64_t)1 << WEFT__WHEEL_TICK_BITS)

/*
 * A cascade stops where it would delay its caller.  Timers that are armed or
 * cancelled while it is stopped are treated like all others.
 */
START_TEST(large_slot_cascades_in_pieces)
{
	enum { MANY = 5000 };
	static struct weft__timer timers[MANY], late;
	static struct weft__wheel wheel;
	uint64_t now_ns = TICK << 13;
	unsigned calls = 0, count = 0;
	struct weft__timer *list;

	weft__wheel_init(&wheel, 0);
	for (int i = 0; i < MANY; i++)
		weft__wheel_arm(&wheel, &timers[i],
				now_ns - TICK * (uint64_t)(1 + i % 60));
	while (weft__wheel_next_ns(&wheel) <= now_ns) {
		unsigned n = weft__wheel_advance(&wheel, now_ns, 1, &list);

		ck_assert(n == 0 || !weft__timer_armed(list));
		count += n;
		if (calls++ == 3) {
			ck_assert_uint_eq(count, 0);
			for (int i = 0; i < MANY; i += 2)
				weft__wheel_cancel(&wheel, &timers[i]);
			weft__wheel_arm(&wheel, &late, now_ns);
		}
		weft__wheel_check(&wheel);
	}
	ck_assert_uint_eq(count, MANY / 2 + 1);
	ck_assert_uint_le(calls, count + 2 * MANY / 64 + 8);
}
END_TEST

/* If the rest of a slot is cancelled in the middle of a cascade, nothing of the
 * cascade remains. */
START_TEST(cascade_may_be_cancelled_halfway)
{
	static struct weft__timer timers[200];
	static struct weft__wheel wheel;
	struct weft__timer *list;

	weft__wheel_init(&wheel, 0);
	for (int i = 0; i < 200; i++)
		weft__wheel_arm(&wheel, &timers[i], 200 * TICK);
	weft__wheel_advance(&wheel, 200 * TICK, 1, &list);
	ck_assert(weft__wheel_next_ns(&wheel) == 192 * TICK);
	for (int i = 0; i < 200; i++)
		ck_assert(weft__wheel_cancel(&wheel, &timers[i]));
	weft__wheel_check(&wheel);
	ck_assert(weft__wheel_next_ns(&wheel) == UINT64_MAX);
	weft__wheel_advance(&wheel, 5000 * TICK, 1, &list);
	weft__wheel_arm(&wheel, &timers[0], 5200 * TICK);
	ck_assert(weft__wheel_next_ns(&wheel) == 5200 * TICK);
}
END_TEST

/* Arms `count` timers in the slot of ticks 192 to 255.  Returns the earliest
 * time at which one of the calls returned that there is work to do. */
static uint64_t crowd_arm(struct weft__wheel *wheel, struct weft__timer *timers,
			  unsigned count)
{
	uint64_t first_ns = UINT64_MAX;

	for (unsigned i = 0; i < count; i++) {
		uint64_t ns = weft__wheel_arm(wheel, &timers[i],
					      TICK * (200 + i % 8));

		first_ns = ns < first_ns ? ns : first_ns;
	}
	return first_ns;
}

enum { CROWD = 4 * WEFT__WHEEL_CROWD };

/* Timers that are due at the beginning of a full slot do not wait for the rest
 * of the slot, which was moved during the time of the previous slot. */
START_TEST(crowd_is_moved_ahead_of_its_time)
{
	static struct weft__timer timers[CROWD];
	static struct weft__wheel wheel;
	struct weft__timer *list;
	unsigned calls = 0;

	weft__wheel_init(&wheel, 0);
	ck_assert_uint_eq(crowd_arm(&wheel, timers, CROWD), 128 * TICK);
	ck_assert_uint_eq(weft__wheel_next_ns(&wheel), 128 * TICK);
	weft__wheel_advance(&wheel, 127 * TICK, 16, &list);
	ck_assert_uint_eq(weft__wheel_next_ns(&wheel), 128 * TICK);
	while (weft__wheel_next_ns(&wheel) <= 128 * TICK) {
		ck_assert_uint_eq(weft__wheel_advance(&wheel, 128 * TICK, 16,
						      &list),
				  0);
		weft__wheel_check(&wheel);
		calls++;
	}
	/* No call moved more than 4 timers for each one that it could have
	 * returned. */
	ck_assert_uint_eq(calls, CROWD / 64);
	ck_assert_uint_eq(weft__wheel_next_ns(&wheel), 200 * TICK);
	ck_assert_uint_eq(weft__wheel_advance(&wheel, 200 * TICK, 16, &list),
			  16);
}
END_TEST

/* Timers that are due earlier do not wait either. */
START_TEST(crowd_is_moved_after_what_is_due)
{
	static struct weft__timer timers[CROWD], due[64];
	static struct weft__wheel wheel;
	struct weft__timer *list;

	weft__wheel_init(&wheel, 0);
	crowd_arm(&wheel, timers, CROWD);
	for (unsigned i = 0; i < 64; i++)
		weft__wheel_arm(&wheel, &due[i], 130 * TICK);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_uint_eq(weft__wheel_advance(&wheel, 131 * TICK, 16,
						      &list),
				  16);
		weft__wheel_check(&wheel);
	}
	/* The cascade has gone on in the meantime. */
	for (unsigned i = 0; i < CROWD / 64 - 4; i++) {
		ck_assert_uint_le(weft__wheel_next_ns(&wheel), 131 * TICK);
		weft__wheel_advance(&wheel, 131 * TICK, 16, &list);
	}
	ck_assert_uint_eq(weft__wheel_next_ns(&wheel), 200 * TICK);
}
END_TEST

/* A few timers are moved when they must be: no worker is woken for them
 * before. */
START_TEST(few_are_moved_when_their_time_has_come)
{
	static struct weft__timer timers[2];
	static struct weft__wheel wheel;

	weft__wheel_init(&wheel, 0);
	ck_assert_uint_eq(crowd_arm(&wheel, timers, 2), 200 * TICK);
	ck_assert_uint_eq(weft__wheel_next_ns(&wheel), 192 * TICK);
}
END_TEST

/* A single timer needs no cascade, but the many behind it do. */
START_TEST(crowd_behind_a_lone_timer_is_moved_ahead)
{
	static struct weft__timer timers[CROWD], lone;
	static struct weft__wheel wheel;

	weft__wheel_init(&wheel, 0);
	weft__wheel_arm(&wheel, &lone, 190 * TICK);
	crowd_arm(&wheel, timers, CROWD);
	ck_assert_uint_eq(weft__wheel_next_ns(&wheel), 128 * TICK);
}
END_TEST

/* Most deadlines of calls are cancelled, at any distance: they cause no
 * work. */
START_TEST(what_is_cancelled_before_it_is_due_is_not_moved)
{
	static const uint64_t length_ms[] = { 100, 300, 5000, 20000, 30000 };
	enum { FLYING = 1000, ARMED = 400000, STEP_NS = 5000 };
	static struct weft__timer timers[FLYING];
	static struct weft__wheel wheel;
	struct weft__timer *list;
	unsigned turns = 0;

	weft__wheel_init(&wheel, 0);
	for (uint64_t i = 0; i < ARMED; i++) {
		struct weft__timer *timer = &timers[i % FLYING];
		uint64_t now_ns = i * STEP_NS;
		uint64_t ns = length_ms[_i] * 1000000;

		weft__wheel_cancel(&wheel, timer);
		if (weft__wheel_arm(&wheel, timer, now_ns + ns) > now_ns)
			continue;
		turns++;
		ck_assert_uint_eq(weft__wheel_advance(&wheel, now_ns, 16,
						      &list),
				  0);
	}
	/* About once each lap. */
	ck_assert_uint_le(turns, ARMED / 10000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("timer/cascade");
	TCase *tc = tcase_create("cascade");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tc, large_slot_cascades_in_pieces);
	tcase_add_test(tc, cascade_may_be_cancelled_halfway);
	tcase_add_test(tc, crowd_is_moved_ahead_of_its_time);
	tcase_add_test(tc, crowd_is_moved_after_what_is_due);
	tcase_add_test(tc, few_are_moved_when_their_time_has_come);
	tcase_add_test(tc, crowd_behind_a_lone_timer_is_moved_ahead);
	tcase_add_loop_test(tc, what_is_cancelled_before_it_is_due_is_not_moved,
			    0, 5);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
