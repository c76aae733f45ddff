/* SPDX-License-Identifier: MIT */
/*
 * Reason - what a task that is PARKED waits for, in a word of its record.
 *
 *	63                          3 2    0
 *	[ an address, or a number    ][kind ]
 *
 * weft__suspend() is told it and stores it where the record has its link: a
 * task that is PARKED is in no queue, and whoever makes it ready writes over
 * it.  So the word says nothing of a task that is not PARKED, and costs a store
 * a wait.
 *
 * What the address leads to lies in a frame of the task, or is kept there by
 * the call that waits for it; it may be followed while the task is held
 * (task_hold.h), and not after.
 *
 * A task in `joining` has there what it joins, with no kind: when it is parked
 * after all, that is its reason as it stands.
 */
#ifndef WEFT_RUNTIME_SCHED_WAIT_REASON_H
#define WEFT_RUNTIME_SCHED_WAIT_REASON_H

#include <stdint.h>

enum weft__reason_kind {
	WEFT__REASON_JOIN,   /* struct weft__task: that one's end; 0: untold */
	WEFT__REASON_WAIT,   /* struct weft__wait, which tells more */
	WEFT__REASON_TIME,   /* uint64_t: a point in time */
	WEFT__REASON_SCOPE,  /* struct weft__scope: its end */
	WEFT__REASON_DRIVER, /* a number of the driver's, which describes it */
	WEFT__REASON_KINDS = 8,
};

#define WEFT__REASON_UNTOLD ((uint64_t)0)

/* Of an address that is a multiple of 8. */
static inline uint64_t weft__reason(enum weft__reason_kind kind,
				    const void *object)
{
	return (uint64_t)(uintptr_t)object | (uint64_t)kind;
}

static inline uint64_t weft__reason_number(uint64_t number)
{
	return number << 3 | WEFT__REASON_DRIVER;
}

static inline enum weft__reason_kind weft__reason_kind(uint64_t reason)
{
	return (enum weft__reason_kind)(reason & (WEFT__REASON_KINDS - 1));
}

static inline void *weft__reason_object(uint64_t reason)
{
	uint64_t kind = reason & (WEFT__REASON_KINDS - 1);

	return (void *)(uintptr_t)(reason - kind);
}

static inline uint64_t weft__reason_of(uint64_t reason)
{
	return reason >> 3;
}

#endif
