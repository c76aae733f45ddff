/* SPDX-License-Identifier: MIT */
/*
 * Reactors of the process.  Several runtimes may use a descriptor.  A close by
 * one of them cannot end the calls of another, so it looks there before.
 *
 * A thread that closes holds the lock of the list, then that of the entry in
 * the other reactor; it holds no lock of its own reactor.  So two runtimes that
 * look at each other do not wait for each other, and a reactor that is in the
 * list exists.
 */
#include "io/request/reactor.h"

weft__atomic(uint32_t) weft__reactors_count;

static struct weft__lock lock;
static struct weft__reactor *reactors; /* under lock */

void weft__reactor_join(struct weft__reactor *reactor)
{
	weft__lock_take(&lock);
	reactor->next = reactors;
	reactors = reactor;
	/* relaxed: see weft__reactor_is_elsewhere(). */
	weft__add(&weft__reactors_count, 1u, relaxed);
	weft__lock_drop(&lock);
}

void weft__reactor_leave(struct weft__reactor *reactor)
{
	struct weft__reactor **link;

	weft__lock_take(&lock);
	for (link = &reactors; *link && *link != reactor; link = &(*link)->next)
		;
	if (*link) {
		*link = reactor->next;
		/* relaxed: see weft__reactor_is_elsewhere(). */
		weft__sub(&weft__reactors_count, 1u, relaxed);
	}
	weft__lock_drop(&lock);
}

/* The threads that ran the runtimes are not in the child, nor is a holder of
 * the lock. */
void weft__reactors_forget(void)
{
	reactors = NULL;
	/* relaxed: no other thread is here. */
	weft__store(&weft__reactors_count, 0u, relaxed);
	lock = (struct weft__lock){ 0 };
}

static bool entry_in_use(struct weft__fd *entry)
{
	bool in_use;

	weft__lock_take(&entry->lock);
	in_use = entry->waiting || entry->owned;
	weft__lock_drop(&entry->lock);
	return in_use;
}

bool weft__reactor_is_elsewhere_slow(const struct weft__reactor *reactor,
				     int fd)
{
	struct weft__reactor *other;
	bool in_use = false;

	weft__lock_take(&lock);
	for (other = reactors; other && !in_use; other = other->next) {
		struct weft__fd *entry =
			other == reactor ? NULL :
					   weft__fd_find(&other->fds, fd);

		in_use = entry && entry_in_use(entry);
	}
	weft__lock_drop(&lock);
	return in_use;
}
