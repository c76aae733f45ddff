/* SPDX-License-Identifier: MIT */
/*
 * Watch - a value and the number of its changes.  A waiter is woken to look
 * again.
 *
 * Invariants
 *   WATCH1  The value and its version change together, under the lock: a copy
 *       is whole, and belongs to the version returned with it.
 *   WATCH2  A waiter has found, under the lock, that its version is the last
 *       one. A change or a close takes all waiters out of the queue and wakes
 *       them.
 *
 * Modelled in tests/model/model_broadcast.c.
 */
#include <string.h>

#include <weft/broadcast.h>

#include "runtime/sched/waiter.h"

struct watch {
	char *value;	     /* immutable; its bytes: under lock */
	uint32_t item_bytes; /* immutable */
	uint32_t reserved;
	struct weft__lock lock;
	bool closed;		      /* under lock */
	uint64_t changes;	      /* under lock: its version - 1 */
	struct weft__waiters waiters; /* under lock */
	uint64_t reserved2[2];
} __attribute__((may_alias));

_Static_assert(sizeof(struct watch) == sizeof(struct weft_watch),
	       "the public struct has room for it");

static struct watch *watch_of(struct weft_watch *watch)
{
	struct watch *w = (struct watch *)(void *)watch;

	weft__assert(w->value, "a watch was used that is not initialised");
	return w;
}

int weft_watch_set(struct weft_watch *watch, const void *item)
{
	struct watch *w = watch_of(watch);

	weft__lock_take(&w->lock);
	if (w->closed) { /* mutate: recheck=false */
		weft__lock_drop(&w->lock);
		return -EPIPE;
	}
	memcpy(w->value, item, w->item_bytes);
	w->changes++;
	weft__wake_in(&w->waiters, &w->lock);
	return 0;
}

uint64_t weft_watch_get(struct weft_watch *watch, void *ret_item)
{
	struct watch *w = watch_of(watch);
	uint64_t version;

	weft__lock_take(&w->lock);
	memcpy(ret_item, w->value, w->item_bytes);
	version = w->changes + 1;
	weft__lock_drop(&w->lock);
	return version;
}

/* Under the lock: 0, -EPIPE, -EAGAIN. */
static int look_now(struct watch *w, uint64_t *version, void *ret_item)
{
	if (*version == w->changes + 1) /* mutate: recheck=false */
		return w->closed ? -EPIPE : -EAGAIN;
	memcpy(ret_item, w->value, w->item_bytes);
	*version = w->changes + 1;
	return 0;
}

int weft_watch_wait(struct weft_watch *watch, uint64_t *version,
		    void *ret_item)
{
	struct watch *w = watch_of(watch);
	struct weft__worker *worker;
	int error = weft__sync_enter(&worker), r;

	/* mutate: retry */
	while (error == 0) {
		weft__lock_take(&w->lock);
		r = look_now(w, version, ret_item);
		if (r != -EAGAIN) {
			weft__lock_drop(&w->lock);
			return r;
		}
		error = weft__wait_in(&w->waiters, &w->lock, worker,
				      WEFT__ON_WATCH, w);
		worker = weft__sync_worker();
	}
	return error;
}

void weft_watch_close(struct weft_watch *watch)
{
	struct watch *w = watch_of(watch);

	weft__lock_take(&w->lock);
	w->closed = true;
	weft__wake_in(&w->waiters, &w->lock);
}
