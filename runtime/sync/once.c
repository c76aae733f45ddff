/* SPDX-License-Identifier: MIT */
/*
 * Once - the first caller runs the function; callers that come meanwhile wait,
 * and look again.  After a failure one of them runs it.
 */
#include <weft/sync.h>

#include "runtime/sync/mutex.h"

enum { NOT_YET, RUNS, DONE };

struct once {
	struct weft__lock lock;
	uint32_t state; /* under lock */
	uint64_t owner; /* under lock: the task that runs it */
	int64_t result; /* under lock */
	struct weft__waiters waiters; /* under lock */
	uint64_t reserved;
} __attribute__((may_alias));

_Static_assert(sizeof(struct once) == sizeof(struct weft_once),
	       "the public struct has room for it");

static struct once *once_of(struct weft_once *once)
{
	return (struct once *)(void *)once;
}

uint64_t weft__once_owner(const void *once)
{
	struct once *o = (void *)(uintptr_t)once;
	uint64_t owner;

	weft__lock_take(&o->lock);
	owner = o->state == RUNS ? o->owner : 0;
	weft__lock_drop(&o->lock);
	return owner;
}

static int64_t once_run(struct once *o, weft_fn fn, void *arg)
{
	int64_t result = fn(arg);

	weft__lock_take(&o->lock);
	o->state = result < 0 ? NOT_YET : DONE;
	o->result = result;
	weft__wake_in(&o->waiters, &o->lock);
	return result;
}

int64_t weft_once_run(struct weft_once *once, weft_fn fn, void *arg)
{
	struct once *o = once_of(once);
	struct weft__worker *worker;
	int error = weft__sync_enter(&worker);
	int64_t result;

	/* mutate: retry */
	while (error == 0) {
		weft__lock_take(&o->lock);
		if (o->state != RUNS)
			break;
		weft__assert(!worker || o->owner != weft__owner_self(worker),
			     "a function to be run once asks for itself");
		error = weft__wait_in(&o->waiters, &o->lock, worker,
				      WEFT__ON_ONCE, o);
		worker = weft__sync_worker();
	}
	if (error < 0)
		return error;
	if (o->state == NOT_YET) {
		o->state = RUNS;
		o->owner = weft__owner_self(worker);
		weft__lock_drop(&o->lock);
		return once_run(o, fn, arg);
	}
	result = o->result;
	weft__lock_drop(&o->lock);
	return result;
}
