/* SPDX-License-Identifier: MIT */
/*
 * Channel - a ring of values under a lock, with waiters for room and waiters
 * for a value.
 *
 * A value that meets a waiting receiver is copied to the receiver's
 * destination.  Room that is made while senders wait is filled with the oldest
 * sender's value.  Both happen under the lock.  So each value has an owner at
 * every moment, and an interrupted wait either is still queued or has its value
 * (WAIT1 in waiter.h).
 *
 * Invariants, whenever the lock is free
 *   CH1  If a receiver waits, the ring has no value and no sender waits.
 *   CH2  If a sender waits, the ring is full.
 *   CH3  No task waits at a closed channel.
 * (Waiters that are in several queues, and were granted in another, do not
 * count.)
 */
#ifndef WEFT_RUNTIME_SYNC_CHAN_H
#define WEFT_RUNTIME_SYNC_CHAN_H

#include <string.h>

#include <weft/chan.h>

#include "runtime/sched/waiter.h"

struct weft__chan {
	char *room;		   /* immutable */
	uint32_t item_bytes;	   /* immutable */
	uint32_t capacity;	   /* immutable */
	struct weft__lock lock;
	bool closed;		   /* this and all that follow: under lock */
	uint32_t count;		   /* values in the ring */
	uint32_t first;		   /* place of the oldest value */
	struct weft__waiters senders;	/* item: the value */
	struct weft__waiters receivers; /* item: the destination */
	uint64_t reserved[4];
} __attribute__((may_alias));

_Static_assert(sizeof(struct weft__chan) == sizeof(struct weft_chan),
	       "the public struct has room for it");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the initialiser puts capacity and item_bytes into one word");

static inline struct weft__chan *weft__chan(const struct weft_chan *chan)
{
	return (struct weft__chan *)(uintptr_t)chan;
}

/* The result of a call that cannot be done now. */
#define WEFT__CHAN_WAITS 1

/* The outcome of a granted wait. */
enum { WEFT__CHAN_DONE, WEFT__CHAN_CLOSED };

/* Sends or receives if that can be done now; otherwise returns -EPIPE or
 * WEFT__CHAN_WAITS.  Called under the lock.  *ret_worker is the waiter that now
 * has what it waited for: the caller grants it after it has dropped the
 * lock. */
int weft__chan_send_now(struct weft__chan *c, const void *item,
			struct weft__waiter **ret_worker);
int weft__chan_recv_now(struct weft__chan *c, void *item,
			struct weft__waiter **ret_worker);

#endif
