/* SPDX-License-Identifier: MIT */

/* Wheel - see the header for the model and the invariants W1 to W5. */

#include "timer/wheel.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 6u
#define DIGIT_MASK (WEFT__WHEEL_SLOTS - 1u)
#define SLOT_COUNT (WEFT__WHEEL_LEVELS * WEFT__WHEEL_SLOTS + 2u)

/* A cascade moves at most so many timers for each one that may be returned. */
#define MOVES_PER_EXPIRY 64u

/* It sits in each task that waits with a deadline, and in public structs. */
static_assert(sizeof(struct weft__timer) <= 32, "timer has grown");

static_assert(WEFT__WHEEL_SLOTS == 1u << DIGIT_BITS, "a digit names a slot");

/* The levels cover all ticks, but for 2^48, which is never. */
static_assert(WEFT__WHEEL_TICK_BITS + WEFT__WHEEL_LEVELS * DIGIT_BITS == 64,
	      "digits and ticks make a time");

/* --- where a timer belongs --- */

static inline uint64_t tick_of(uint64_t deadline_ns)
{
	uint64_t part = deadline_ns & ((1u << WEFT__WHEEL_TICK_BITS) - 1u);

	return (deadline_ns >> WEFT__WHEEL_TICK_BITS) + (part != 0);
}

/* The highest digit in which two ticks differ; 0 if they are the same. */
static inline unsigned level_of(uint64_t difference)
{
	unsigned bit = 63u - (unsigned)__builtin_clzll(difference | DIGIT_MASK);

	/* bit / 6 for all that occur (5 to 53), one cheap multiplication. */
	return bit * 43u >> 8;
}

static inline unsigned index_of(uint64_t tick, unsigned level)
{
	unsigned slot = (unsigned)(tick >> level * DIGIT_BITS) & DIGIT_MASK;

	return level * WEFT__WHEEL_SLOTS + slot;
}

/* The first tick of a slot that is not before the wheel's tick (W3). */
static inline uint64_t slot_start(const struct weft__wheel *wheel,
				  unsigned level, unsigned slot)
{
	unsigned shift = level * DIGIT_BITS;
	uint64_t above = wheel->tick >> shift & ~(uint64_t)DIGIT_MASK;

	return (above | slot) << shift;
}

/* The level of the first occupied slot (W3); all levels empty: their number. */
static inline unsigned first_level(const struct weft__wheel *wheel)
{
	unsigned level = 0;

	while (level < WEFT__WHEEL_LEVELS && wheel->occupied[level] == 0)
		level++;
	return level;
}

static inline void slot_vacate(struct weft__wheel *wheel, uint64_t index)
{
	uint64_t bit = (uint64_t)1 << (index & DIGIT_MASK);

	wheel->occupied[index / WEFT__WHEEL_SLOTS] &= ~bit;
}

/* Links a timer by its deadline; does not look at what it was before. */
static inline void slot_insert(struct weft__wheel *wheel,
			       struct weft__timer *timer)
{
	uint64_t tick = tick_of(timer->deadline_ns);
	struct weft__timer **head, *next;
	unsigned level, index;

	/* A deadline in the past belongs to the tick that expires next. */
	tick = tick < wheel->tick ? wheel->tick : tick;
	level = level_of(tick ^ wheel->tick);
	index = index_of(tick, level);

	head = &wheel->slots[index];
	next = *head;
	timer->next = next;
	timer->ahead = weft__recent_put(&wheel->recent, timer);
	timer->link = head;
	*head = timer;
	if (next != NULL)
		next->link = &timer->next;
	wheel->occupied[level] |= (uint64_t)1 << (index & DIGIT_MASK);
}

/* --- arm and cancel --- */

void weft__wheel_init(struct weft__wheel *wheel, uint64_t now_ns)
{
	memset(wheel, 0, sizeof(*wheel));
	wheel->tick = now_ns >> WEFT__WHEEL_TICK_BITS;
}

void weft__wheel_arm(struct weft__wheel *wheel, struct weft__timer *timer,
		     uint64_t deadline_ns)
{
	assert(!weft__timer_armed(timer));
	timer->deadline_ns = deadline_ns;
	slot_insert(wheel, timer);
}

bool weft__wheel_cancel(struct weft__wheel *wheel, struct weft__timer *timer)
{
	struct weft__timer **link = timer->link;
	struct weft__timer *next = timer->next;
	uintptr_t offset;

	if (link == NULL)
		return false;
	assert(*link == timer);
	*link = next;
	timer->link = NULL;
	if (next != NULL) {
		next->link = link;
		return true;
	}
	/* The last of its slot; if also the first, link is the slot itself. */
	offset = (uintptr_t)link - (uintptr_t)wheel->slots;
	if (offset < sizeof(wheel->slots))
		slot_vacate(wheel, offset / sizeof(wheel->slots[0]));
	return true;
}

/* --- time --- */

/*
 * Moves timers of the slot being cascaded to where they now belong, which is
 * always a lower level, until it is empty or no moves are left.  Arming and
 * cancelling in between is harmless: new timers go to lower levels, too.
 */
static void wheel_cascade(struct weft__wheel *wheel, uint64_t *moves)
{
	struct weft__timer **head = &wheel->slots[wheel->cascading];
	struct weft__timer *timer = *head;

	while (timer != NULL && *moves > 0) {
		struct weft__timer *next = timer->next;

		__builtin_prefetch(timer->ahead, 1);
		slot_insert(wheel, timer);
		timer = next;
		--*moves;
	}
	*head = timer;
	if (timer != NULL) {
		timer->link = head;
		return;
	}
	slot_vacate(wheel, wheel->cascading);
	wheel->cascading = 0;
}

/*
 * Unlinks at most max timers of a slot of level 0, and appends them to the
 * list whose end *tail is.  The order of the slot is the order of the list, so
 * the links between them stay.
 */
static unsigned wheel_expire(struct weft__wheel *wheel, unsigned slot,
			     unsigned max, struct weft__timer ***tail)
{
	struct weft__timer **head = &wheel->slots[slot];
	struct weft__timer *timer = *head;
	unsigned count = 0;

	**tail = timer;
	while (timer != NULL && count < max) {
		__builtin_prefetch(timer->ahead, 1);
		timer->link = NULL;
		*tail = &timer->next;
		timer = timer->next;
		count++;
	}
	**tail = NULL;
	*head = timer;
	if (timer != NULL)
		timer->link = head;
	else
		slot_vacate(wheel, slot);
	return count;
}

unsigned weft__wheel_advance(struct weft__wheel *wheel, uint64_t now_ns,
			     unsigned max, struct weft__timer **ret_list)
{
	uint64_t now = now_ns >> WEFT__WHEEL_TICK_BITS;
	uint64_t moves = (uint64_t)max * MOVES_PER_EXPIRY;
	struct weft__timer **tail = ret_list;
	unsigned count = 0;

	*ret_list = NULL;
	if (now < wheel->tick)
		return 0;
	while (count < max) {
		unsigned level, slot;
		uint64_t start;

		if (wheel->cascading != 0) {
			wheel_cascade(wheel, &moves);
			if (wheel->cascading != 0)
				break;
		}
		level = first_level(wheel);
		if (level == WEFT__WHEEL_LEVELS) {
			wheel->tick = now;
			break;
		}
		slot = (unsigned)__builtin_ctzll(wheel->occupied[level]);
		start = slot_start(wheel, level, slot);
		if (start > now) {
			wheel->tick = now;
			break;
		}
		/* W5: up to here nothing was passed over, and no further. */
		assert(start >= wheel->tick);
		wheel->tick = start;
		if (level == 0)
			count += wheel_expire(wheel, slot, max - count, &tail);
		else
			wheel->cascading = index_of(start, level);
	}
	return count;
}

uint64_t weft__wheel_next_ns(const struct weft__wheel *wheel)
{
	const struct weft__timer *first;
	unsigned level, slot;

	if (wheel->cascading != 0 && wheel->slots[wheel->cascading] != NULL)
		return wheel->tick << WEFT__WHEEL_TICK_BITS;
	level = first_level(wheel);
	if (level == WEFT__WHEEL_LEVELS)
		return UINT64_MAX;
	slot = (unsigned)__builtin_ctzll(wheel->occupied[level]);
	first = wheel->slots[level * WEFT__WHEEL_SLOTS + slot];
	/* One that is alone in its slot needs no wake-ups to cascade. */
	if (level > 0 && first->next == NULL)
		return tick_of(first->deadline_ns) << WEFT__WHEEL_TICK_BITS;
	return slot_start(wheel, level, slot) << WEFT__WHEEL_TICK_BITS;
}

/* --- invariants --- */

/* Not assert(): it works where NDEBUG is defined. */
static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "weft__wheel_check: %s\n", what);
	abort();
}

static void check_timer(const struct weft__wheel *wheel,
			const struct weft__timer *timer, unsigned index)
{
	uint64_t tick = tick_of(timer->deadline_ns);
	unsigned level = index / WEFT__WHEEL_SLOTS;
	uint64_t difference;

	tick = tick < wheel->tick ? wheel->tick : tick;
	difference = tick ^ wheel->tick;
	if (wheel->cascading != 0 && index == wheel->cascading) {
		require(difference >> level * DIGIT_BITS == 0,
			"W2: not of the slot being cascaded");
		return;
	}
	require(level_of(difference) == level, "W2: wrong level");
	require(index_of(tick, level) == index, "W2: wrong slot");
}

void weft__wheel_check(const struct weft__wheel *wheel)
{
	unsigned index;

	require(wheel->tick >> WEFT__WHEEL_LEVELS * DIGIT_BITS == 0,
		"W5: tick beyond time");
	if (wheel->cascading != 0) {
		unsigned level =
			(unsigned)wheel->cascading / WEFT__WHEEL_SLOTS;

		require(level > 0 && level < WEFT__WHEEL_LEVELS,
			"W2: no such level to cascade");
		require(index_of(wheel->tick, level) == wheel->cascading,
			"W5: cascading slot passed");
	}
	for (index = 0; index < SLOT_COUNT; index++) {
		struct weft__timer *const *link = &wheel->slots[index];
		uint64_t map = wheel->occupied[index / WEFT__WHEEL_SLOTS];
		bool marked = (map >> (index & DIGIT_MASK) & 1u) != 0;

		require(marked == (*link != NULL), "W1: bitmap and slot");
		for (; *link != NULL; link = &(*link)->next) {
			require((*link)->link == link, "W4: broken link");
			check_timer(wheel, *link, index);
		}
	}
}
