/* SPDX-License-Identifier: MIT */
/*
 * Wheel - see the header for the model and the invariants WH1 to WH6.
 *
 * The first part computes where a timer belongs: from its tick and the wheel's
 * tick the level and the slot.  Arming and cancelling link and unlink a timer,
 * and keep the bitmaps of slots and levels.  An advance moves the tick from one
 * slot with work to the next: it expires a slot of level 0, or cascades a slot
 * of a higher level; at its end it moves some timers of crowded slots ahead.
 */

#include "timer/wheel.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 6u
#define DIGIT_MASK ((1u << DIGIT_BITS) - 1u)
#define RING_MASK (WEFT__WHEEL_RING - 1u)
#define NEVER_INDEX (WEFT__WHEEL_LEVELS * WEFT__WHEEL_RING)
#define NEVER_TICK ((uint64_t)1 << WEFT__WHEEL_LEVELS * DIGIT_BITS)

/* An advance moves at most this number of timers for each timer that it may
 * return: of slots that must be emptied, and of slots that may. */
#define MUST_MOVES 64u
#define MAY_MOVES 4u

/* It is part of each task that waits with a deadline, and of public structs. */
static_assert(sizeof(struct weft__timer) <= 32, "timer has grown");

static_assert(WEFT__WHEEL_RING == 2u << DIGIT_BITS, "a ring has two laps");

/* The levels cover all ticks except 2^48, which means never. */
static_assert(WEFT__WHEEL_TICK_BITS + WEFT__WHEEL_LEVELS * DIGIT_BITS == 64,
	      "digits and ticks make a time");

/* ---- Where a timer belongs ----------------------------------------------- */

static inline uint64_t tick_of(uint64_t deadline_ns)
{
	uint64_t part = deadline_ns & ((1u << WEFT__WHEEL_TICK_BITS) - 1u);

	return (deadline_ns >> WEFT__WHEEL_TICK_BITS) + (part != 0);
}

static inline uint64_t ns_of(uint64_t tick)
{
	return tick == NEVER_TICK ? UINT64_MAX : tick << WEFT__WHEEL_TICK_BITS;
}

/* The distance of two ticks in slots of a level; `from` is the earlier one. */
static inline uint64_t slots_apart(uint64_t tick, uint64_t from, unsigned level)
{
	return (tick >> level * DIGIT_BITS) - (from >> level * DIGIT_BITS);
}

/* The highest digit in which two different ticks differ. */
static inline unsigned digit_of(uint64_t difference)
{
	unsigned bit = 63u - (unsigned)__builtin_clzll(difference);

	/* bit / 6 for all values that occur (up to 47), in one
	 * multiplication. */
	return bit * 43u >> 8;
}

/* The lowest level whose lap of `from`, or next lap, reaches the tick. */
static inline unsigned level_of(uint64_t tick, uint64_t from)
{
	unsigned level;

	if (slots_apart(tick, from, 1) <= 1)
		return 0;
	level = digit_of(tick ^ from);
	while (slots_apart(tick, from, level) <= 1)
		level--;
	return level;
}

static inline unsigned index_of(uint64_t tick, unsigned level)
{
	unsigned slot = (unsigned)(tick >> level * DIGIT_BITS) & RING_MASK;

	return level * WEFT__WHEEL_RING + slot;
}

/* The distance in slots from the wheel's tick to the first occupied slot of a
 * level; WEFT__WHEEL_RING: none is occupied. */
static inline unsigned first_slot(const struct weft__wheel *wheel,
				  unsigned level)
{
	const uint64_t *map = &wheel->occupied[level * 2u];
	unsigned at, bit, half;
	uint64_t here;

	if ((map[0] | map[1]) == 0)
		return WEFT__WHEEL_RING;
	at = (unsigned)(wheel->tick >> level * DIGIT_BITS) & RING_MASK;
	half = at >> DIGIT_BITS;
	bit = at & DIGIT_MASK;
	here = map[half] >> bit;
	if (here != 0)
		return (unsigned)__builtin_ctzll(here);
	/* WH3: not in the lap of now, so in the next. */
	return 64u - bit + (unsigned)__builtin_ctzll(map[1u - half]);
}

/* The levels above 0 that have a timer, without "never".  The next function
 * takes the lowest of them out. */
static inline uint64_t levels_above(const struct weft__wheel *wheel)
{
	return wheel->levels & (((uint64_t)1 << WEFT__WHEEL_LEVELS) - 2u);
}

static inline unsigned level_take(uint64_t *levels)
{
	unsigned level = (unsigned)__builtin_ctzll(*levels);

	*levels &= *levels - 1u;
	return level;
}

/* The first tick of the slot that is `distance` after the wheel's. */
static inline uint64_t slot_start(const struct weft__wheel *wheel,
				  unsigned level, unsigned distance)
{
	unsigned shift = level * DIGIT_BITS;

	return ((wheel->tick >> shift) + distance) << shift;
}

static bool is_crowded(const struct weft__wheel *wheel, unsigned index)
{
	return wheel->put[index] >= WEFT__WHEEL_CROWD;
}

/* The tick from which a crowded slot that starts at `start` may be emptied: one
 * slot before, or now. */
static inline uint64_t may_begin(const struct weft__wheel *wheel,
				 unsigned level, uint64_t start)
{
	uint64_t span = (uint64_t)1 << level * DIGIT_BITS;

	return start > wheel->tick + span ? start - span : wheel->tick;
}

static inline void slot_occupy(struct weft__wheel *wheel, unsigned index)
{
	wheel->occupied[index >> DIGIT_BITS] |= (uint64_t)1
						<< (index & DIGIT_MASK);
	wheel->levels |= (uint64_t)1 << index / WEFT__WHEEL_RING;
}

static inline void slot_vacate(struct weft__wheel *wheel, uint64_t index)
{
	uint64_t bit = (uint64_t)1 << (index & DIGIT_MASK);
	uint64_t level = index / WEFT__WHEEL_RING;
	const uint64_t *map = &wheel->occupied[level * 2u];

	wheel->put[index] = 0;
	wheel->occupied[index >> DIGIT_BITS] &= ~bit;
	if ((map[0] | map[1]) == 0)
		wheel->levels &= ~((uint64_t)1 << level);
}

/* Links a timer; ignores its former links. */
static inline void slot_insert(struct weft__wheel *wheel,
			       struct weft__timer *timer, unsigned index)
{
	struct weft__timer **head = &wheel->slots[index];
	struct weft__timer *next = *head;

	timer->next = next;
	timer->ahead = weft__recent_put(&wheel->recent, timer);
	timer->link = head;
	*head = timer;
	wheel->put[index]++;
	if (next != NULL)
		next->link = &timer->next;
	else
		slot_occupy(wheel, index);
}

/* ---- Arm and cancel ------------------------------------------------------ */

void weft__wheel_init(struct weft__wheel *wheel, uint64_t now_ns)
{
	memset(wheel, 0, sizeof(*wheel));
	wheel->tick = now_ns >> WEFT__WHEEL_TICK_BITS;
}

uint64_t weft__wheel_arm(struct weft__wheel *wheel, struct weft__timer *timer,
			 uint64_t deadline_ns)
{
	uint64_t deadline = tick_of(deadline_ns), tick = deadline;
	unsigned level = 0, shift, index = NEVER_INDEX;

	assert(!weft__timer_armed(timer));
	/* A deadline in the past belongs to the tick that expires next. */
	tick = tick < wheel->tick ? wheel->tick : tick;
	if (tick != NEVER_TICK) {
		level = level_of(tick, wheel->tick);
		index = index_of(tick, level);
	}
	timer->deadline_ns = deadline_ns;
	slot_insert(wheel, timer, index);
	if (level == 0 || wheel->put[index] != WEFT__WHEEL_CROWD)
		return ns_of(deadline);
	shift = level * DIGIT_BITS;
	return ns_of(may_begin(wheel, level, tick >> shift << shift));
}

/* The timer whose `next` the link points at. */
static inline struct weft__timer *timer_before(struct weft__timer **link)
{
	return (struct weft__timer *)((uintptr_t)link -
				      offsetof(struct weft__timer, next));
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
	offset = (uintptr_t)link - (uintptr_t)wheel->slots;
	if (offset >= sizeof(wheel->slots))
		/* Deadlines are often cancelled in the order in which they were
		 * armed: then the timer before is cancelled next. */
		__builtin_prefetch(timer_before(link)->link, 1);
	else if (next == NULL)
		slot_vacate(wheel, offset / sizeof(wheel->slots[0]));
	if (next != NULL)
		next->link = link;
	return true;
}

/* ---- Time ---------------------------------------------------------------- */

/* The first time at which a slot of a level above 0 must be empty; UINT64_MAX:
 * all are empty. */
static inline uint64_t first_must(const struct weft__wheel *wheel,
				  unsigned *ret_level)
{
	uint64_t first = UINT64_MAX, levels = levels_above(wheel);

	while (levels != 0) {
		unsigned level = level_take(&levels);
		uint64_t start = slot_start(wheel, level,
					    first_slot(wheel, level));

		if (start < first) {
			first = start;
			*ret_level = level;
		}
	}
	return first;
}

/*
 * Moves timers of a slot to where they now belong, which is always a lower
 * level, until it is empty or no moves are left.  Arming and cancelling in
 * between is harmless.  Returns how many moves are left.
 */
static uint64_t wheel_cascade(struct weft__wheel *wheel, unsigned index,
			      uint64_t moves)
{
	struct weft__timer **head = &wheel->slots[index];
	struct weft__timer *timer = *head;

	while (timer != NULL && moves > 0) {
		struct weft__timer *next = timer->next;
		uint64_t tick = tick_of(timer->deadline_ns);

		__builtin_prefetch(timer->ahead, 1);
		slot_insert(wheel, timer,
			    index_of(tick, level_of(tick, wheel->tick)));
		timer = next;
		moves--;
	}
	*head = timer;
	if (timer != NULL)
		timer->link = head;
	else
		slot_vacate(wheel, index);
	return moves;
}

/* Begins, or continues, to empty crowded slots that may be emptied. */
static void wheel_go_ahead(struct weft__wheel *wheel, uint64_t moves)
{
	uint64_t levels = levels_above(wheel);

	while (levels != 0) {
		unsigned level = level_take(&levels);
		uint64_t start = slot_start(wheel, level,
					    first_slot(wheel, level));
		unsigned index = index_of(start, level);

		if (is_crowded(wheel, index) &&
		    may_begin(wheel, level, start) <= wheel->tick)
			moves = wheel_cascade(wheel, index, moves);
	}
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

/* Expires due timers, and empties the slots that must be empty.  Returns how
 * many timers have expired. */
static unsigned wheel_run(struct weft__wheel *wheel, uint64_t now, unsigned max,
			  struct weft__timer **tail)
{
	uint64_t moves = (uint64_t)max * MUST_MOVES;
	unsigned count = 0;

	for (;;) {
		unsigned distance = first_slot(wheel, 0), level = 0;
		uint64_t expires = wheel->tick + distance;
		uint64_t must = first_must(wheel, &level);

		if (distance == WEFT__WHEEL_RING)
			expires = UINT64_MAX;
		if (must > now && expires > now)
			break;
		if (count == max || moves == 0)
			return count;
		/* WH5: nothing before this tick was passed over. */
		assert(must >= wheel->tick);
		if (must <= expires) {
			wheel->tick = must;
			moves = wheel_cascade(wheel, index_of(must, level),
					      moves);
		} else {
			wheel->tick = expires;
			count += wheel_expire(wheel, index_of(expires, 0),
					      max - count, &tail);
		}
	}
	wheel->tick = now;
	return count;
}

unsigned weft__wheel_advance(struct weft__wheel *wheel, uint64_t now_ns,
			     unsigned max, struct weft__timer **ret_list)
{
	uint64_t now = now_ns >> WEFT__WHEEL_TICK_BITS;
	unsigned count;

	*ret_list = NULL;
	if (now < wheel->tick)
		return 0;
	count = wheel_run(wheel, now, max, ret_list);
	wheel_go_ahead(wheel, (uint64_t)max * MAY_MOVES);
	return count;
}

/* The earliest time at which a level above 0 that has a timer gives advance
 * some work. */
static uint64_t level_next(const struct weft__wheel *wheel, unsigned level)
{
	unsigned distance = first_slot(wheel, level);
	uint64_t start = slot_start(wheel, level, distance);
	uint64_t after = slot_start(wheel, level, distance + 1);
	unsigned index = index_of(start, level);

	/* A timer alone in its slot needs no wake-up to cascade; but after its
	 * slot begins, others may be ready to be moved ahead. */
	if (wheel->slots[index]->next == NULL &&
	    !is_crowded(wheel, index_of(after, level)))
		return ns_of(tick_of(wheel->slots[index]->deadline_ns));
	return ns_of(is_crowded(wheel, index) ? may_begin(wheel, level, start) :
						start);
}

uint64_t weft__wheel_next_ns(const struct weft__wheel *wheel)
{
	unsigned distance = first_slot(wheel, 0);
	uint64_t first_ns = UINT64_MAX, levels = levels_above(wheel);

	if (distance < WEFT__WHEEL_RING)
		first_ns = ns_of(wheel->tick + distance);
	while (levels != 0) {
		uint64_t next_ns = level_next(wheel, level_take(&levels));

		first_ns = next_ns < first_ns ? next_ns : first_ns;
	}
	return first_ns;
}

/* ---- Invariants ---------------------------------------------------------- */

/* Instead of assert(): works with NDEBUG too. */
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
	unsigned level = index / WEFT__WHEEL_RING;

	if (index == NEVER_INDEX) {
		require(tick == NEVER_TICK, "W2: never is now");
		return;
	}
	require(tick != NEVER_TICK, "W2: never is not never");
	tick = tick < wheel->tick ? wheel->tick : tick;
	require(index_of(tick, level) == index, "W2: wrong slot");
	require(slots_apart(tick, wheel->tick, level + 1) <= 1,
		"W3: beyond the next lap");
	require(level == level_of(tick, wheel->tick) ||
			(level > level_of(tick, wheel->tick) &&
			 slots_apart(tick, wheel->tick, level) <= 1),
		"W2: wrong level");
}

static void check_slot(const struct weft__wheel *wheel, unsigned index)
{
	struct weft__timer *const *link = &wheel->slots[index];
	uint64_t map = wheel->occupied[index >> DIGIT_BITS];

	require((map >> (index & DIGIT_MASK) & 1u) == (*link != NULL),
		"W1: bitmap and slot");
	for (; *link != NULL; link = &(*link)->next) {
		require((*link)->link == link, "W4: broken link");
		check_timer(wheel, *link, index);
	}
}

void weft__wheel_check(const struct weft__wheel *wheel)
{
	require(wheel->tick < NEVER_TICK, "W5: tick beyond time");
	for (unsigned index = 0; index <= NEVER_INDEX; index++)
		check_slot(wheel, index);
	for (unsigned level = 0; level <= WEFT__WHEEL_LEVELS; level++)
		require((wheel->levels >> level & 1u) ==
				((wheel->occupied[2u * level] |
				  wheel->occupied[2u * level + 1u]) != 0),
			"W6: levels and bitmap");
}
