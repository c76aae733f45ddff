/* SPDX-License-Identifier: MIT */
/*
 * Channel - a ring of values under a lock, who waits for room, and who waits
 * for a value.
 *
 * A value that meets a waiting receiver is copied to where that wants it; room
 * that is made while senders wait is filled from where the oldest has its
 * value: all under the lock, so what is handed over is in nobody's hands for no
 * moment, and a wait that is interrupted either still has its turn to lose or
 * has it (W1 in waiter.h).
 *
 * Invariants, whenever the lock is free
 *   C1  Who waits to receive finds no values in the ring, and no sender that
 *       waits.
 *   C2  Who waits to send finds the ring full.
 *   C3  Nobody waits at a closed channel.
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
	bool closed;		   /* all that follow: under lock */
	uint32_t count;		   /* values in the ring */
	uint32_t first;		   /* where the oldest is */
	struct weft__waiters senders;	/* item: the value */
	struct weft__waiters receivers; /* item: where it goes */
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

/* What a call that cannot be done at once comes to. */
#define WEFT__CHAN_WAITS 1

/* What a granted wait comes to. */
enum { WEFT__CHAN_DONE, WEFT__CHAN_CLOSED };

/* Sends or receives if that can be done now, or says -EPIPE or
 * WEFT__CHAN_WAITS; under the lock.  *ret_worker is who waited and has what he
 * waited for: to be granted when the lock is free. */
int weft__chan_send_now(struct weft__chan *c, const void *item,
			struct weft__waiter **ret_worker);
int weft__chan_recv_now(struct weft__chan *c, void *item,
			struct weft__waiter **ret_worker);

#endif
