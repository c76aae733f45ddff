/* SPDX-License-Identifier: MIT */
/*
 * Event and notification - a flag, and waiters for it.  An event's flag stays
 * set until it is cleared; a notification's is taken by one call that need not
 * wait.
 */
#include <weft/sync.h>

#include "runtime/sync/await_grant.h"

struct flag {
	struct weft__lock lock;
	bool set; /* under lock */
	struct weft__waiters waiters; /* under lock */
	uint64_t reserved;
} __attribute__((may_alias));

_Static_assert(sizeof(struct flag) == sizeof(struct weft_event) &&
		       sizeof(struct flag) == sizeof(struct weft_notify),
	       "the public structs have room for it");

static struct flag *event_of(const struct weft_event *event)
{
	return (struct flag *)(uintptr_t)event;
}

static struct flag *notify_of(struct weft_notify *notify)
{
	return (struct flag *)(void *)notify;
}

static int flag_wait(struct flag *f, bool stays)
{
	struct weft__worker *worker;
	int error = weft__sync_enter(&worker);

	if (weft__unlikely(error < 0))
		return error;
	weft__lock_take(&f->lock);
	if (f->set) {
		f->set = stays;
		weft__lock_drop(&f->lock);
		return 0;
	}
	return weft__wait_in(&f->waiters, &f->lock, worker,
			     stays ? WEFT__ON_EVENT : WEFT__ON_NOTIFICATION, f);
}

/* Releases all waiters, and sets the flag or leaves it as it is. */
static void flag_release(struct flag *f, bool set)
{
	weft__lock_take(&f->lock);
	f->set |= set; /* mutate: wake */
	weft__wake_in(&f->waiters, &f->lock);
}

int weft_event_wait(struct weft_event *event)
{
	return flag_wait(event_of(event), true);
}

int weft_await_event(struct weft_event *event)
{
	struct flag *f = event_of(event);
	struct weft__worker *worker;
	struct weft__task *task;
	int r = weft__await_enter(WEFT__AWAITS_GRANT, &f->waiters, 0, &worker,
				  &task);
	bool set;

	if (r < 0)
		return r;
	if (task->awaits == WEFT__AWAITS_GRANT)
		return weft__await_granted(worker, task, &f->waiters, &f->lock);
	r = weft__await_room(worker, task);
	if (r < 0)
		return r;
	weft__lock_take(&f->lock);
	set = f->set;
	if (!set)
		weft__await_in(worker, task, &f->waiters, WEFT__ON_EVENT, f);
	weft__lock_drop(&f->lock);
	return set ? weft__await_end(worker, task, 0) : WEFT_PENDING;
}

void weft_event_set(struct weft_event *event)
{
	flag_release(event_of(event), true);
}

void weft_event_clear(struct weft_event *event)
{
	struct flag *f = event_of(event);

	weft__lock_take(&f->lock);
	f->set = false;
	weft__lock_drop(&f->lock);
}

bool weft_event_is_set(const struct weft_event *event)
{
	struct flag *f = event_of(event);
	bool set;

	weft__lock_take(&f->lock);
	set = f->set;
	weft__lock_drop(&f->lock);
	return set;
}

int weft_notify_wait(struct weft_notify *notify)
{
	return flag_wait(notify_of(notify), false);
}

void weft_notify_one(struct weft_notify *notify)
{
	struct flag *f = notify_of(notify);
	struct weft__waiter *w;

	weft__lock_take(&f->lock);
	w = weft__waiters_take(&f->waiters);
	f->set |= !w; /* mutate: wake */
	weft__lock_drop(&f->lock);
	if (w)
		/* mutate: wake */
		weft__waiter_grant(weft__sync_worker(), w, 0);
}

void weft_notify_all(struct weft_notify *notify)
{
	flag_release(notify_of(notify), false);
}
