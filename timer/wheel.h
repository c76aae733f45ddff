/* SPDX-License-Identifier: MIT */
/*
 * Wheel - a hierarchical timing wheel: arm and cancel in O(1), no allocation.
 *
 * A pure leaf: no clock, no threads, no locks.  Time comes in as an argument,
 * expired timers go out as a list, and nothing is ever called back.
 *
 * Time is cut into ticks of 2^16 ns (65.5 us), so a tick number has 48 bits:
 * eight digits of six bits.  A slot of level L spans 64^L ticks, and a level
 * has a ring of 128 of them, two laps of its digit:
 *
 *	level            0       1       2       3       4       5..7
 *	slot spans   65 us  4.2 ms  268 ms  17.2 s  18.3 min  19.5 h..9 y
 *
 * Slots are absolute: a timer's slot is the digit of its tick that counts the
 * slots of the level, never a distance from now.  Its level is the lowest one
 * whose current or next lap has that slot.  So above level 0 a timer is armed
 * at least two slots away: a timer that is armed and cancelled repeatedly does
 * not enter a slot that is being emptied.
 *
 * Slot k of a level above 0 is emptied into lower levels: it cascades.  It must
 * be empty before time reaches it:
 *
 *	... now ][ slot k - 1 . . . . ][ slot k
 *	          ^ may                 ^ must
 *
 * A crowded slot may be emptied from the start of the slot before it, a little
 * at each advance, after the expired timers.  Otherwise all timers due in it
 * would wait until its last timer was moved (46,000 timers: 0.9 ms).  The
 * second lap exists for this.
 *
 * A deadline is rounded up to a tick and so never fires early, and at most one
 * tick late.  A deadline that rounds up to the end of 64-bit time (UINT64_MAX
 * is "never") gets tick 2^48: it is in a list that no advance reads.
 *
 * Invariants
 *   WH1  A bit of occupied[] is set if and only if its slot has a timer.
 *   WH2  An armed timer is in the slot that weft__wheel_arm() would choose for
 *       it now, or in one of a higher level whose preceding slot has begun.
 *   WH3  A ring holds nothing beyond the lap of now and the next: the first
 *       occupied slot of a level is the first bit of its bitmap from now on.
 *   WH4  *timer->link == timer for every armed timer; link is NULL for others.
 *   WH5  The tick never goes back, nor past an occupied slot's first tick.
 *   WH6  A bit of levels is set if and only if its level has a timer.
 *
 * Concurrency: none.  The caller owns the wheel and its timers, or locks.
 *
 * After G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels"
 * (SOSP 1987), scheme 7; the level by exclusive or is known from Tokio.
 *
 * Rejected
 *   - Slots relative to now: read a lap late or early after a late poll (L24).
 *   - No cascade, coarser slots for far timers (Linux since 4.8): late by up
 *     to an eighth of the timeout.
 *   - A heap: O(log n), and n cache misses where most timers are cancelled.
 *   - A level and slot stored in the timer: the last timer of a slot is the
 *     one whose link points into slots[], which names the slot as well.
 *   - A cascade in one piece: at a million timers it is a stall of many ms.
 *   - A cascade in pieces when time reaches the slot: no stall for the caller,
 *     but one for all timers of the slot.
 */
#ifndef WEFT_TIMER_WHEEL_H
#define WEFT_TIMER_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/ahead.h"

#define WEFT__WHEEL_TICK_BITS 16u
#define WEFT__WHEEL_LEVELS 8u
#define WEFT__WHEEL_RING 128u

/* A slot is crowded if this many timers were put there since it was empty. */
#define WEFT__WHEEL_CROWD 256u

/* Embedded in the caller's object; all zero is a timer that is not armed. */
struct weft__timer {
	/* The next in its slot, or in the list returned by advance. */
	struct weft__timer *next;
	struct weft__timer *ahead; /* see runtime/base/ahead.h */
	/* The pointer that points at this timer; NULL: not armed. */
	struct weft__timer **link;
	uint64_t deadline_ns;
};

struct weft__wheel {
	/* All before this tick has expired; it never goes back. */
	uint64_t tick;
	struct weft__recent recent;
	/* A bit a level; the last is for "never". */
	uint64_t levels;
	/* A bit a slot, two words a level. */
	uint64_t occupied[2u * (WEFT__WHEEL_LEVELS + 1u)];
	/* Slot s of level L is at 128 * L + s; the last is "never". */
	struct weft__timer *slots[WEFT__WHEEL_RING * WEFT__WHEEL_LEVELS + 1u];
	/* Timers put there since the slot was empty. */
	uint32_t put[WEFT__WHEEL_RING * WEFT__WHEEL_LEVELS + 1u];
};

/* An empty wheel whose time is now_ns. */
void weft__wheel_init(struct weft__wheel *wheel, uint64_t now_ns);

/*
 * Arms a timer that must not be armed.  A deadline in the past expires at the
 * next advance.  The timer must stay where it is until it expires or is
 * cancelled.  Overwrites timer->next: to re-arm the timers of a returned list,
 * read next first.
 *
 * Returns a time before which this timer gives advance nothing to do: the
 * rounded deadline, or, if the timer makes its slot crowded, the time from
 * which the slot may be emptied.
 */
uint64_t weft__wheel_arm(struct weft__wheel *wheel, struct weft__timer *timer,
			 uint64_t deadline_ns);

/*
 * True if the timer was armed and now will not expire.  False if it was not
 * armed, which includes expired timers that advance has returned.
 */
bool weft__wheel_cancel(struct weft__wheel *wheel, struct weft__timer *timer);

static inline bool weft__timer_armed(const struct weft__timer *timer)
{
	return timer->link != NULL;
}

/*
 * Moves time to now_ns and unlinks at most max expired timers, in the order of
 * their ticks (any order within a tick), into the list *ret_list, which ends
 * with NULL.  Returns how many.  A now_ns before the wheel's time expires
 * nothing: callers may arrive in another order than they read their clocks.
 *
 * Work is bounded by max: a call also stops after 64 * max moves of cascades
 * that must happen, even if it then returns fewer than max, and after 4 * max
 * moves of cascades that may.  There is more to do if and only if next_ns is at
 * or before now_ns (and not UINT64_MAX).  A caller that repeats the call while
 * it returns max, and then waits until next_ns, leaves no timer behind: next_ns
 * has passed if there is more.  A caller that needs all timers now checks
 * next_ns.
 */
unsigned weft__wheel_advance(struct weft__wheel *wheel, uint64_t now_ns,
			     unsigned max, struct weft__timer **ret_list);

/*
 * The earliest time at which advance may have something to do: the first
 * deadline, rounded up to a tick, or an earlier time at which to cascade, but
 * not before the wheel's own time.  UINT64_MAX if there is none.
 */
uint64_t weft__wheel_next_ns(const struct weft__wheel *wheel);

/* Aborts, in every build, if WH1 to WH6 do not hold.  Visits every timer. */
void weft__wheel_check(const struct weft__wheel *wheel);

#endif
