/* SPDX-License-Identifier: MIT */
/*
 * Wait reason - what a task that is PARKED waits for, in a word of its record.
 *
 *	63                          3 2    0
 *	[ an address, or a number    ][kind ]
 *
 * The caller passes the word to weft__suspend(), which stores it where the
 * record has its link: a task that is PARKED is in no queue, and the thread
 * that makes it ready overwrites the word.  So the word means nothing for a
 * task that is not PARKED, and costs one store a wait.
 *
 * The object at the address lies in a frame of the task, or is kept there by
 * the call that waits for it.  The address may be followed while the task is
 * held (task_hold.h), and not after.
 *
 * For a task in `joining` the word is the task that it joins, with no kind: if
 * it is parked after all, that is its reason as it stands.
 */
#ifndef WEFT_RUNTIME_SCHED_WAIT_REASON_H
#define WEFT_RUNTIME_SCHED_WAIT_REASON_H

#include <stdint.h>

enum weft__reason_kind {
	WEFT__REASON_JOIN,   /* struct weft__task: its end; 0: not given */
	WEFT__REASON_WAIT,   /* struct weft__wait, which has the details */
	WEFT__REASON_TIME,   /* uint64_t: a point in time */
	WEFT__REASON_SCOPE,  /* struct weft__scope: its end */
	WEFT__REASON_DRIVER, /* a number of the driver's, which describes it */
	WEFT__REASON_KINDS = 8,
};

#define WEFT__REASON_UNREPORTED ((uint64_t)0)

/* The word for an object whose address is a multiple of 8. */
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
