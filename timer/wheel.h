/* SPDX-License-Identifier: MIT */
#ifndef WEFT_TIMER_WHEEL_H
#define WEFT_TIMER_WHEEL_H

/*
 * Wheel - a hierarchical timing wheel: arm and cancel in O(1), no allocation.
 *
 * A pure leaf: no clock, no threads, no locks.  Time comes in as an argument,
 * expired timers go out as a list, and nothing is ever called back.
 *
 * Time is cut into ticks of 2^16 ns (65.5 us), so a tick number has 48 bits:
 * eight digits of six bits.  Level L has one slot for each value of digit L:
 *
 *	level            0       1       2       3       4       5..7
 *	slot spans   65 us  4.2 ms  268 ms  17.2 s  18.3 min  19.5 h..9 y
 *
 * Slots are absolute: the slot of a timer is a digit of its own tick, never a
 * distance from now.  Its level is the highest digit in which its tick and the
 * wheel's differ.  When the wheel's tick reaches the first tick of a slot above
 * level 0, the slot cascades: its timers move to lower levels.
 *
 * A deadline is rounded up to a tick and so never fires early, and at most one
 * tick late.  A deadline that rounds up to the end of 64-bit time (UINT64_MAX
 * is "never") gets tick 2^48, whose highest digit differs from that of every
 * time: it lands in a slot above level 7 that is never looked at.
 *
 * Invariants
 *   W1  A bit of occupied[] is set if and only if its slot has a timer.
 *   W2  An armed timer is in the slot that weft__wheel_arm() would choose for
 *       it now, but for timers in the slot that is being cascaded.
 *   W3  Hence, of occupied slots, those of a lower level come before those of
 *       a higher one, within a level they are in order, and none wraps around:
 *       the first occupied slot is the first bit of the first bitmap not 0.
 *   W4  *timer->link == timer for every armed timer; link is NULL for others.
 *   W5  The tick never goes back, and never passes an occupied slot.
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
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/ahead.h"

#define WEFT__WHEEL_TICK_BITS 16u
#define WEFT__WHEEL_LEVELS 8u
#define WEFT__WHEEL_SLOTS 64u

/* Embedded in the caller's object; all zero is a timer that is not armed. */
struct weft__timer {
	/* The next in its slot, or in the list returned by advance. */
	struct weft__timer *next;
	struct weft__timer *ahead; /* see runtime/base/ahead.h */
	/* The pointer that points at us; NULL: not armed. */
	struct weft__timer **link;
	uint64_t deadline_ns;
};

struct weft__wheel {
	/* All before this tick has expired; it never goes back. */
	uint64_t tick;
	/* Index of the slot being cascaded; 0 (it is of level 0): none. */
	uint64_t cascading;
	struct weft__recent recent;
	/* A bit a slot; the last bitmap is for "never". */
	uint64_t occupied[WEFT__WHEEL_LEVELS + 1u];
	/* Slot s of level L is at 64 * L + s; "never" is slot 1 of level 8. */
	struct weft__timer *slots[WEFT__WHEEL_LEVELS * WEFT__WHEEL_SLOTS + 2u];
};

/* An empty wheel whose time is now_ns. */
void weft__wheel_init(struct weft__wheel *wheel, uint64_t now_ns);

/*
 * Arms a timer that must not be armed.  A deadline in the past expires at the
 * next advance.  The timer must stay where it is until it expires or is
 * cancelled.  Overwrites timer->next: whoever re-arms the timers of a returned
 * list reads next first.
 */
void weft__wheel_arm(struct weft__wheel *wheel, struct weft__timer *timer,
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
 * nothing: callers may have read their clocks in another order than they come.
 *
 * Work is bounded by max: a call also stops after 64 * max moves of a cascade,
 * even if it then returns fewer than max.  There is more to do if and only if
 * next_ns is at or before now_ns (and not UINT64_MAX).  So one who calls again
 * while max comes back, and then waits until next_ns, does not wait, comes
 * again, and leaves no timer behind; one who must have all asks next_ns.
 */
unsigned weft__wheel_advance(struct weft__wheel *wheel, uint64_t now_ns,
			     unsigned max, struct weft__timer **ret_list);

/*
 * The earliest time at which advance may have something to do: the first
 * deadline, rounded up to a tick, or an earlier time at which to cascade, but
 * not before the wheel's own time.  UINT64_MAX if there is none.
 */
uint64_t weft__wheel_next_ns(const struct weft__wheel *wheel);

/* Aborts, in every build, if W1 to W5 do not hold.  Visits every timer. */
void weft__wheel_check(const struct weft__wheel *wheel);

#endif
