/* SPDX-License-Identifier: MIT */

/*
 * Suite timer/wheel: the wheel is compared with an oracle that scans a plain
 * array, and the claims of its header are tested one by one.
 *
 * WEFT_TEST_SEED=n changes the seed of the random tests; the seed is printed.
 */

#include "timer/wheel.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/expect.h"

#define TICK ((uint64_t)1 << WEFT__WHEEL_TICK_BITS)
#define CENTURY_NS UINT64_C(3155760000000000000)

/* --- the oracle --- */

#define TIMERS 192
#define RUNS 10
#define OPS_PER_RUN 100000

struct subject {
	struct weft__timer timer;
	uint64_t deadline_ns;
	/* The tick at which it expires, and its order among the others. */
	uint64_t tick;
	bool armed;
};

struct world {
	struct weft__wheel wheel;
	struct subject subjects[TIMERS];
	uint64_t now_ns;
	uint64_t random;
};

static struct world world;

static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint64_t seed_of(int run)
{
	const char *text = getenv("WEFT_TEST_SEED");
	uint64_t base = text != NULL ? strtoull(text, NULL, 0) : 1;

	return base * 1000 + (uint64_t)run;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* A value of any magnitude: each number of bits is equally likely. */
static uint64_t draw_magnitude(uint64_t *state)
{
	unsigned shift = (unsigned)(draw(state) & 63u);

	return draw(state) >> shift;
}

/* The number of the tick at which a deadline expires; 2^48 is never. */
static uint64_t tick_after(uint64_t ns)
{
	return ns / TICK + (ns % TICK != 0);
}

/* The first ns at which it may have expired; UINT64_MAX is never. */
static uint64_t round_up(uint64_t ns)
{
	uint64_t tick = tick_after(ns);

	return tick > UINT64_MAX / TICK ? UINT64_MAX : tick * TICK;
}

/* A time close to where a slot of some level begins, some time after now. */
static uint64_t draw_edge(struct world *w)
{
	unsigned bits = 6u * (unsigned)(1 + draw(&w->random) % 8);
	uint64_t tick = w->now_ns / TICK;
	uint64_t laps = draw(&w->random) % 3;
	uint64_t edge;

	tick |= ((uint64_t)1 << bits) - 1;
	tick = add(tick, 1 + (laps << bits));
	if (tick > UINT64_MAX / TICK)
		return UINT64_MAX - draw(&w->random) % (3 * TICK);
	edge = tick * TICK + (draw(&w->random) % 3) * TICK;
	return edge + draw(&w->random) % 3 - 1;
}

static uint64_t draw_deadline(struct world *w)
{
	uint64_t r = draw(&w->random);

	switch (draw(&w->random) % 8) {
	case 0:
		return w->now_ns - r % (w->now_ns / 2 + 1);
	case 1:
		return add(w->now_ns, draw_magnitude(&w->random));
	case 2:
		return add(w->now_ns, r % (TICK << 12));
	case 3:
		return draw_edge(w);
	case 4:
		return r % 64 == 0 ? UINT64_MAX - r / 64 % 3 : w->now_ns;
	default:
		return add(w->now_ns, r % (100 * TICK));
	}
}

static void world_start(struct world *w, uint64_t now_ns)
{
	uint64_t random = w->random;

	memset(w, 0, sizeof(*w));
	w->random = random;
	w->now_ns = now_ns;
	weft__wheel_init(&w->wheel, now_ns);
	EXPECT(w->wheel.tick == now_ns / TICK);
}

static void subject_arm(struct world *w, struct subject *s, uint64_t ns)
{
	s->deadline_ns = ns;
	s->tick = tick_after(ns);
	if (s->tick < w->wheel.tick)
		s->tick = w->wheel.tick;
	s->armed = true;
	weft__wheel_arm(&w->wheel, &s->timer, ns);
}

/* The upper bound of next_ns: the first deadline that will ever be reached. */
static uint64_t oracle_next_ns(const struct world *w)
{
	uint64_t first = UINT64_MAX;

	for (int i = 0; i < TIMERS; i++) {
		const struct subject *s = &w->subjects[i];
		uint64_t ns = round_up(s->deadline_ns);

		if (s->armed && ns < first)
			first = ns;
	}
	/* For a deadline in the past, the bound is the time of the wheel's
	 * tick. */
	return first < w->wheel.tick * TICK ? w->wheel.tick * TICK : first;
}

static void world_verify(const struct world *w)
{
	uint64_t next_ns = weft__wheel_next_ns(&w->wheel);
	uint64_t first_ns = oracle_next_ns(w);

	for (int i = 0; i < TIMERS; i++)
		EXPECT(w->subjects[i].armed ==
		       weft__timer_armed(&w->subjects[i].timer));
	EXPECT(next_ns <= first_ns && next_ns >= w->wheel.tick * TICK);
	EXPECT((next_ns == UINT64_MAX) == (first_ns == UINT64_MAX));
}

/* Takes a returned list; returns the last tick in it, or *last if it is
 * empty. */
static unsigned world_take(struct world *w, struct weft__timer *list,
			   uint64_t *last)
{
	unsigned count;

	for (count = 0; list != NULL; count++) {
		struct subject *s = (struct subject *)(void *)list;

		list = list->next;
		EXPECT(s->armed);
		EXPECT(!weft__timer_armed(&s->timer));
		EXPECT(s->deadline_ns <= w->now_ns);
		EXPECT(s->tick >= *last);
		*last = s->tick;
		s->armed = false;
	}
	return count;
}

/* Advances once; returns true if there is more to do. */
static bool world_advance(struct world *w, unsigned max)
{
	struct weft__timer *list;
	uint64_t last = 0;
	unsigned count;
	bool more;

	count = weft__wheel_advance(&w->wheel, w->now_ns, max, &list);
	EXPECT(count <= max);
	EXPECT(world_take(w, list, &last) == count);
	more = weft__wheel_next_ns(&w->wheel) <= w->now_ns &&
	       weft__wheel_next_ns(&w->wheel) != UINT64_MAX;
	/* No timer is moved more often than there are levels. */
	if (count < max && 64 * max >= WEFT__WHEEL_LEVELS * TIMERS)
		EXPECT(w->wheel.tick == w->now_ns / TICK);
	for (int i = 0; i < TIMERS; i++) {
		const struct subject *s = &w->subjects[i];

		if (s->armed && round_up(s->deadline_ns) <= w->now_ns) {
			EXPECT(more || round_up(s->deadline_ns) == UINT64_MAX);
			EXPECT(s->tick >= last);
		}
	}
	return more;
}

static void world_step(struct world *w)
{
	uint64_t r = draw(&w->random);
	uint64_t next_ns = weft__wheel_next_ns(&w->wheel);

	if (r % 512 == 0)
		w->now_ns = add(w->now_ns, draw_magnitude(&w->random));
	else if (r % 4 == 0 && next_ns > w->now_ns && next_ns < UINT64_MAX)
		w->now_ns = next_ns - r / 512 % 2;
	else if (r % 16 == 1)
		w->now_ns = add(w->now_ns, r / 512 % (TICK << 13));
	else
		w->now_ns = add(w->now_ns, r / 512 % (3 * TICK));
}

/* There are too few timers here to make a slot crowded: marks the used slots as
 * crowded. */
static void world_crowd(struct world *w)
{
	for (unsigned i = 0; i < sizeof(w->wheel.put) / sizeof(*w->wheel.put);
	     i++)
		if (w->wheel.slots[i])
			w->wheel.put[i] = WEFT__WHEEL_CROWD;
}

static void world_operate(struct world *w)
{
	uint64_t r = draw(&w->random);
	struct subject *s = &w->subjects[r / 1024 % TIMERS];

	switch (r % 8) {
	case 0:
	case 1:
		world_step(w);
		if (r & 512)
			world_advance(w, (unsigned)(r / 32 % 4));
		else
			while (world_advance(w, 1 + (unsigned)(r / 1024 % 32)))
				;
		break;
	case 2:
	case 3:
		EXPECT(weft__wheel_cancel(&w->wheel, &s->timer) == s->armed);
		s->armed = false;
		break;
	default:
		if (!s->armed)
			subject_arm(w, s, draw_deadline(w));
		if (r / 8 % 32 == 0)
			world_crowd(w);
		break;
	}
}

/*
 * A million operations of each kind, on wheels that begin at any time and end
 * near the end of time or after 4000 operations.
 */
START_TEST(wheel_agrees_with_a_scan_of_all_timers)
{
	struct world *w = &world;

	w->random = seed_of(_i);
	printf("timer/wheel: seed %" PRIu64 "\n", w->random);
	for (int i = 0; i < OPS_PER_RUN; i++) {
		if (i % 4000 == 0 || w->now_ns > UINT64_MAX - 2 * TICK)
			world_start(w, draw_magnitude(&w->random));
		world_operate(w);
		world_verify(w);
		if (i % 16 == 0)
			weft__wheel_check(&w->wheel);
	}
}
END_TEST

/* --- where time begins, and where it ends --- */

/* Parks until next_ns, again and again; returns the number of wake-ups. */
static unsigned world_park(struct world *w)
{
	uint64_t next_ns, start_ns = w->now_ns;
	unsigned wakeups = 0;

	while ((next_ns = weft__wheel_next_ns(&w->wheel)) != UINT64_MAX) {
		struct weft__timer *list;
		uint64_t last = 0;

		if (next_ns > w->now_ns)
			w->now_ns = next_ns;
		weft__wheel_advance(&w->wheel, w->now_ns, 4, &list);
		for (struct weft__timer *t = list; t != NULL; t = t->next)
			EXPECT(round_up(t->deadline_ns) == w->now_ns ||
			       t->deadline_ns <= start_ns);
		world_take(w, list, &last);
		weft__wheel_check(&w->wheel);
		wakeups++;
		EXPECT(wakeups < WEFT__WHEEL_LEVELS * TIMERS);
	}
	return wakeups;
}

/* The uptime must not matter: tokio's wheel once failed after 12 days. */
START_TEST(clock_may_start_at_any_power_of_two)
{
	struct world *w = &world;
	uint64_t start = ((uint64_t)1 << _i) - 1;

	w->random = seed_of(_i);
	for (int minus = 0; minus < 2; minus++, start++) {
		world_start(w, start);
		for (int i = 0; i < TIMERS; i++)
			subject_arm(w, &w->subjects[i], draw_deadline(w));
		weft__wheel_check(&w->wheel);
		world_park(w);
		world_verify(w);
	}
}
END_TEST

/* The carry into each digit, with one tick before it and one tick after it. */
START_TEST(deadline_across_a_power_of_two_is_met_on_its_tick)
{
	struct world *w = &world;
	uint64_t edge = (uint64_t)1 << _i;

	for (int before = 1; before < 66; before += 16) {
		for (int after = 0; after < 66; after += 13) {
			uint64_t ns = edge + (uint64_t)after * TICK;

			world_start(w, edge > (uint64_t)before * TICK ?
				    edge - (uint64_t)before * TICK : 0);
			subject_arm(w, &w->subjects[0], ns);
			w->now_ns = round_up(ns) - 1;
			ck_assert(!world_advance(w, 9));
			ck_assert(w->subjects[0].armed);
			w->now_ns++;
			world_advance(w, 9);
			ck_assert(!w->subjects[0].armed);
		}
	}
}
END_TEST

/* If the wheel walked over all ticks of a century, Check would time out. */
START_TEST(century_jump_is_bounded_work)
{
	struct world *w = &world;
	uint64_t last = 0;
	struct weft__timer *list;

	world_start(w, 12345);
	ck_assert(weft__wheel_advance(&w->wheel, CENTURY_NS, 1, &list) == 0);
	world_start(w, 1);
	for (int i = 0; i < TIMERS; i++)
		subject_arm(w, &w->subjects[i],
			    CENTURY_NS / TIMERS * (uint64_t)(TIMERS - i));
	w->now_ns = CENTURY_NS + TICK;
	weft__wheel_advance(&w->wheel, w->now_ns, 999, &list);
	ck_assert(world_take(w, list, &last) == TIMERS);
	ck_assert(weft__wheel_next_ns(&w->wheel) == UINT64_MAX);
}
END_TEST

START_TEST(never_is_never)
{
	struct world *w = &world;

	world_start(w, 0);
	subject_arm(w, &w->subjects[0], UINT64_MAX);
	subject_arm(w, &w->subjects[1], UINT64_MAX - 1);
	subject_arm(w, &w->subjects[2], UINT64_MAX - TICK + 1);
	ck_assert(weft__wheel_next_ns(&w->wheel) == UINT64_MAX - TICK + 1);
	w->now_ns = UINT64_MAX - TICK;
	ck_assert(!world_advance(w, 9));
	ck_assert(w->subjects[2].armed);
	w->now_ns = UINT64_MAX;
	world_advance(w, 9);
	ck_assert(!w->subjects[2].armed);
	ck_assert(w->subjects[0].armed && w->subjects[1].armed);
	ck_assert(weft__wheel_next_ns(&w->wheel) == UINT64_MAX);
	weft__wheel_check(&w->wheel);
}
END_TEST

/* --- cancel, re-arm, and waking --- */

START_TEST(deadline_is_never_met_early)
{
	struct world *w = &world;
	struct weft__timer *list;

	world_start(w, 7 * TICK);
	subject_arm(w, &w->subjects[0], 9 * TICK + 1);
	ck_assert(weft__wheel_next_ns(&w->wheel) == 10 * TICK);
	ck_assert(weft__wheel_advance(&w->wheel, 10 * TICK - 1, 9, &list) == 0);
	ck_assert(weft__wheel_advance(&w->wheel, 10 * TICK, 9, &list) == 1);
}
END_TEST

START_TEST(past_deadline_is_met_at_the_next_advance)
{
	struct world *w = &world;
	struct weft__timer *list;
	uint64_t now_ns = 4096 * TICK + 17;

	world_start(w, now_ns);
	subject_arm(w, &w->subjects[0], 0);
	subject_arm(w, &w->subjects[1], 4096 * TICK);
	ck_assert(weft__wheel_next_ns(&w->wheel) <= now_ns);
	ck_assert(weft__wheel_advance(&w->wheel, now_ns, 9, &list) == 2);
	/* Reading the clock before the wheel's last advance does no harm. */
	subject_arm(w, &w->subjects[0], 4096 * TICK);
	ck_assert(weft__wheel_advance(&w->wheel, now_ns - TICK, 9, &list) == 0);
	ck_assert(weft__wheel_next_ns(&w->wheel) == 4096 * TICK);
	ck_assert(weft__wheel_advance(&w->wheel, now_ns, 9, &list) == 1);
}
END_TEST

/* Many timers are cancelled on the very tick at which the others expire. */
START_TEST(cancelled_timer_never_fires)
{
	struct world *w = &world;
	uint64_t deadline_ns = (TICK << (2 * _i)) + 3;
	uint64_t last = 0;
	struct weft__timer *list;

	world_start(w, 1);
	for (int i = 0; i < TIMERS; i++)
		subject_arm(w, &w->subjects[i], deadline_ns);
	w->now_ns = round_up(deadline_ns);
	weft__wheel_advance(&w->wheel, w->now_ns, 5, &list);
	ck_assert(world_take(w, list, &last) == 5);
	for (int i = 0; i < TIMERS; i++) {
		struct subject *s = &w->subjects[i];

		ck_assert(weft__wheel_cancel(&w->wheel, &s->timer) == s->armed);
		ck_assert(!weft__wheel_cancel(&w->wheel, &s->timer));
		s->armed = false;
		weft__wheel_check(&w->wheel);
	}
	ck_assert(weft__wheel_next_ns(&w->wheel) == UINT64_MAX);
}
END_TEST

/* A periodic timer is armed again while the list that holds it is walked. */
START_TEST(returned_timer_can_be_armed_before_the_list_ends)
{
	struct world *w = &world;
	struct weft__timer *list;
	unsigned fired = 0;

	world_start(w, 0);
	for (int i = 0; i < TIMERS; i++)
		subject_arm(w, &w->subjects[i], TICK * (uint64_t)(i % 7));
	for (uint64_t now_ns = 10 * TICK; fired < 10 * TIMERS;) {
		while (weft__wheel_advance(&w->wheel, now_ns, 50, &list) > 0) {
			while (list != NULL) {
				struct weft__timer *timer = list;

				list = list->next;
				ck_assert(!weft__timer_armed(timer));
				weft__wheel_arm(&w->wheel, timer,
						now_ns + TICK);
				fired++;
			}
			weft__wheel_check(&w->wheel);
		}
		ck_assert_uint_eq(fired % TIMERS, 0);
		now_ns += 10 * TICK;
	}
}
END_TEST

/* One sleeper's wait costs one wake-up, however far away it is. */
START_TEST(lone_timer_wakes_once)
{
	struct world *w = &world;

	world_start(w, 987654321);
	for (uint64_t ns = 1; ns < CENTURY_NS; ns *= 3) {
		subject_arm(w, &w->subjects[0], add(w->now_ns, ns));
		ck_assert_uint_eq(world_park(w), 1);
		ck_assert(!w->subjects[0].armed);
	}
}
END_TEST

static Suite *wheel_suite(void)
{
	Suite *suite = suite_create("timer/wheel");
	TCase *tc = tcase_create("oracle");

	tcase_set_timeout(tc, 20);
	tcase_add_loop_test(tc, wheel_agrees_with_a_scan_of_all_timers,
			    0, RUNS);
	suite_add_tcase(suite, tc);

	tc = tcase_create("extent");
	tcase_add_loop_test(tc, clock_may_start_at_any_power_of_two, 0, 64);
	tcase_add_loop_test(tc,
			    deadline_across_a_power_of_two_is_met_on_its_tick,
			    0, 63);
	tcase_add_test(tc, century_jump_is_bounded_work);
	tcase_add_test(tc, never_is_never);
	suite_add_tcase(suite, tc);

	tc = tcase_create("cancel and wake");
	tcase_add_test(tc, deadline_is_never_met_early);
	tcase_add_test(tc, past_deadline_is_met_at_the_next_advance);
	tcase_add_loop_test(tc, cancelled_timer_never_fires, 0, 22);
	tcase_add_test(tc, returned_timer_can_be_armed_before_the_list_ends);
	tcase_add_test(tc, lone_timer_wakes_once);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(wheel_suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
