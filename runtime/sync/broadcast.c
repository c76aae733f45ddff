/* SPDX-License-Identifier: MIT */
/*
 * Broadcast - the last values that were sent, each with a number, and
 * subscribers that know the number they want next.
 *
 * A waiter is woken to look again.  No value is handed over, so an interrupted
 * wait has nothing to give back.
 *
 * Invariants
 *   BC1  Value n lies in place n % capacity until n + capacity is sent; it is
 *       written and copied under the lock, so it is whole.
 *   BC2  A subscriber's `next` goes up by one for each value that it gets, or
 *       that a call reports as missed.
 *   BC3  A waiter has found, under the lock, that its next value was not sent
 *       yet. A send or a close takes all waiters out of the queue and wakes
 *       them.
 *
 * Modelled in tests/model/model_broadcast.c.
 */
#include <string.h>

#include <weft/broadcast.h>

#include "runtime/sched/waiter.h"

#define CAPACITY_MAX ((size_t)1 << 31)

struct broadcast {
	char *room;	     /* immutable */
	uint32_t item_bytes; /* immutable */
	uint32_t capacity;   /* immutable */
	struct weft__lock lock;
	bool closed;		      /* under lock */
	uint64_t sent;		      /* under lock: values so far */
	struct weft__waiters waiters; /* under lock */
	uint64_t reserved[2];
} __attribute__((may_alias));

_Static_assert(sizeof(struct broadcast) == sizeof(struct weft_broadcast),
	       "the public struct has room for it");

struct subscriber {
	struct broadcast *from;
	uint64_t next; /* the number of the next value */
	uint64_t reserved[2];
} __attribute__((may_alias));

_Static_assert(sizeof(struct subscriber) == sizeof(struct weft_subscriber),
	       "the public struct has room for it");

static struct broadcast *broadcast_of(struct weft_broadcast *broadcast)
{
	return (struct broadcast *)(void *)broadcast;
}

static struct subscriber *subscriber_of(struct weft_subscriber *subscriber)
{
	return (struct subscriber *)(void *)subscriber;
}

int weft_broadcast_init(struct weft_broadcast *broadcast, void *room,
			size_t capacity, size_t item_bytes)
{
	struct broadcast *b = broadcast_of(broadcast);

	if (item_bytes == 0 || item_bytes > WEFT__ITEM_BYTES_MAX ||
	    capacity == 0 || capacity > CAPACITY_MAX || !room)
		return -EINVAL;
	memset(b, 0, sizeof(*b));
	b->room = room;
	b->item_bytes = (uint32_t)item_bytes;
	b->capacity = (uint32_t)capacity;
	return 0;
}

void weft_subscribe(struct weft_broadcast *broadcast,
		    struct weft_subscriber *subscriber)
{
	struct broadcast *b = broadcast_of(broadcast);
	struct subscriber *s = subscriber_of(subscriber);

	weft__assert(b->capacity,
		     "a broadcast was used that is not initialised");
	memset(s, 0, sizeof(*s));
	s->from = b;
	weft__lock_take(&b->lock);
	s->next = b->sent;
	weft__lock_drop(&b->lock);
}

static char *place_of(struct broadcast *b, uint64_t number)
{
	return b->room + (size_t)(number % b->capacity) * b->item_bytes;
}

int weft_broadcast_send(struct weft_broadcast *broadcast, const void *item)
{
	struct broadcast *b = broadcast_of(broadcast);

	weft__lock_take(&b->lock);
	if (b->closed) { /* mutate: recheck=false */
		weft__lock_drop(&b->lock);
		return -EPIPE;
	}
	weft__assert(b->capacity,
		     "a broadcast was used that is not initialised");
	memcpy(place_of(b, b->sent++), item, b->item_bytes);
	weft__wake_in(&b->waiters, &b->lock);
	return 0;
}

/* Under the lock: the number of missed values, or -EPIPE, -EAGAIN. */
static int64_t recv_now(struct broadcast *b, struct subscriber *s,
			void *ret_item)
{
	uint64_t missed = 0;

	if (s->next == b->sent) /* mutate: recheck=false */
		return b->closed ? -EPIPE : -EAGAIN;
	if (b->sent - s->next > b->capacity) /* mutate: recheck=false */
		missed = b->sent - s->next - b->capacity;
	s->next += missed;
	memcpy(ret_item, place_of(b, s->next++), b->item_bytes);
	return (int64_t)missed;
}

static struct broadcast *from_of(struct subscriber *s)
{
	weft__assert(s->from, "a subscriber was used that subscribes to "
			      "nothing");
	return s->from;
}

int64_t weft_broadcast_recv(struct weft_subscriber *subscriber,
			    void *ret_item)
{
	struct subscriber *s = subscriber_of(subscriber);
	struct broadcast *b = from_of(s);
	struct weft__worker *worker;
	int error = weft__sync_enter(&worker);
	int64_t r;

	/* mutate: retry */
	while (error == 0) {
		weft__lock_take(&b->lock);
		r = recv_now(b, s, ret_item);
		if (r != -EAGAIN) {
			weft__lock_drop(&b->lock);
			return r;
		}
		error = weft__wait_in(&b->waiters, &b->lock, worker,
				      WEFT__ON_BROADCAST, b);
		worker = weft__sync_worker();
	}
	return error;
}

int64_t weft_broadcast_try_recv(struct weft_subscriber *subscriber,
				void *ret_item)
{
	struct subscriber *s = subscriber_of(subscriber);
	struct broadcast *b = from_of(s);
	int64_t r;

	weft__lock_take(&b->lock);
	r = recv_now(b, s, ret_item);
	weft__lock_drop(&b->lock);
	return r;
}

void weft_broadcast_close(struct weft_broadcast *broadcast)
{
	struct broadcast *b = broadcast_of(broadcast);

	weft__lock_take(&b->lock);
	b->closed = true;
	weft__wake_in(&b->waiters, &b->lock);
}
