/* SPDX-License-Identifier: MIT */
/*
 * Listener: the object, its queue of tasks, its list of connections that no
 * task has taken yet, and its end.  The model and the invariants are in
 * listener.h; the request and its completions are in multishot_accept.c.
 *
 * All listeners of a runtime are in a list of the reactor, under
 * listeners_lock; that lock is taken before an entry's lock.
 */
#include "io/listen/listener.h"

#include <errno.h>
#include <stdlib.h>

#include "io/os/syscall.h"
#include "io/request/op.h"
#include "io/request/upcalls.h"
#include "runtime/sched/wait.h"

/* ---- Life ------------------------------------------------------------- */

static struct weft__listener *listener_new(struct weft__reactor *reactor,
					   int fd)
{
	struct weft__listener *listener = calloc(1, sizeof(*listener));

	if (!listener)
		return NULL;
	listener->fd = fd;
	/* relaxed: any number that is not in use will do. */
	listener->number = weft__add(&reactor->listeners_made, 1u, relaxed) &
			   WEFT__SEQUENCE_MASK;
	listener->waiting_end = &listener->waiting;
	weft__lock_take(&reactor->listeners_lock);
	listener->next = reactor->listeners;
	listener->link = &reactor->listeners;
	if (listener->next)
		listener->next->link = &listener->next;
	reactor->listeners = listener;
	weft__lock_drop(&reactor->listeners_lock);
	return listener;
}

bool weft__listener_is_idle(const struct weft__listener *listener)
{
	return listener->state == WEFT__LISTENER_IDLE;
}

void weft__listener_free(struct weft__reactor *reactor,
			 struct weft__listener *listener)
{
	weft__assert(!listener->waiting && !listener->accepted_count &&
			     listener->state == WEFT__LISTENER_IDLE,
		     "a listener is freed while it is in use");
	weft__lock_take(&reactor->listeners_lock);
	/* weft__listeners_feed() looks at it under this lock. */
	weft__listener_set_starved(reactor, listener, false);
	*listener->link = listener->next;
	if (listener->next)
		listener->next->link = listener->link;
	weft__lock_drop(&reactor->listeners_lock);
	free(listener);
}

int weft__listener_make(struct weft__reactor *reactor, struct weft__fd *entry,
			int fd)
{
	struct weft__listener *listener = listener_new(reactor, fd);
	bool used;
	int r = 0;

	if (!listener)
		return -ENOMEM;
	weft__lock_take(&entry->lock);
	used = !entry->closing && !entry->listener;
	/* The kernel is about to close the file that had the number (FD3): the
	 * request would outlive that close, and never end. */
	if (entry->going) /* mutate: recheck=false */
		used = false;
	/* Under the lock: a close that begins later finds the listener (ACC4).
	 * */
	if (used && !weft__syscall_is_open(fd)) { /* mutate: recheck=false */
		used = false;
		r = -EBADF;
	}
	if (entry->closing)
		r = -EBADF;
	if (used)
		entry->listener = listener;
	weft__lock_drop(&entry->lock);
	if (!used)
		weft__listener_free(reactor, listener);
	return r;
}

/* ---- Tasks and connections, under the entry's lock ---------------------- */

void weft__listener_add(struct weft__listener *listener,
			struct weft__task *task)
{
	weft__op_of(task)->fd_next = NULL;
	weft__op_of(task)->fd_link = listener->waiting_end;
	*listener->waiting_end = task;
	listener->waiting_end = &weft__op_of(task)->fd_next;
}

void weft__listener_remove(struct weft__listener *listener,
			   struct weft__task *task)
{
	*weft__op_of(task)->fd_link = weft__op_of(task)->fd_next;
	if (weft__op_of(task)->fd_next)
		weft__op_of(weft__op_of(task)->fd_next)->fd_link =
			weft__op_of(task)->fd_link;
	else
		listener->waiting_end = weft__op_of(task)->fd_link;
}

uint64_t weft__listener_give(struct weft__listener *listener, int32_t result)
{
	struct weft__task *task = listener->waiting;
	uint64_t id = weft__running_id(task);

	weft__listener_remove(listener, task);
	weft__op_end(task, result);
	return id;
}

/* The number belonged to another connection before, whose closer wrote the same
 * word.  The kernel orders the two, but only the lock shows that order to the
 * compiler and to tools. */
static void accepted_link(struct weft__fd *entry, int next)
{
	weft__lock_take(&entry->lock);
	entry->next_accepted = next;
	weft__lock_drop(&entry->lock);
}

/* From here on the connection belongs to the task that takes it. */
static int accepted_unlink(struct weft__fd *entry)
{
	int next;

	weft__lock_take(&entry->lock);
	next = entry->next_accepted;
	entry->closer = 0; /* the same word */
	weft__lock_drop(&entry->lock);
	return next;
}

bool weft__listener_keep(struct weft__reactor *reactor,
			 struct weft__listener *listener, int fd)
{
	struct weft__fd *entry;

	if (weft__fd_get(&reactor->fds, fd, &entry) < 0)
		return false;
	accepted_link(entry, -1);
	if (listener->accepted_count++ == 0)
		listener->accepted_first = fd;
	else
		accepted_link(weft__fd_find(&reactor->fds,
					    listener->accepted_last),
			      fd);
	listener->accepted_last = fd;
	return true;
}

int weft__listener_take(struct weft__reactor *reactor,
			struct weft__listener *listener)
{
	int fd = listener->accepted_first;

	listener->accepted_first =
		accepted_unlink(weft__fd_find(&reactor->fds, fd));
	listener->accepted_count--;
	return fd;
}

void weft__listener_set_starved(struct weft__reactor *reactor,
				struct weft__listener *listener, bool starved)
{
	if (listener->starved == starved)
		return;
	listener->starved = starved;
	/* relaxed: a hint to closers; the task that waits keeps the time,
	 * too. */
	weft__add(&reactor->starved, starved ? 1u : (uint32_t)-1, relaxed);
}

/* ---- Ending ----------------------------------------------------------- */

/* Closes the connections that no task took, from `fd` on. */
static void accepted_close(struct weft__reactor *reactor, int fd)
{
	while (fd >= 0) {
		int next = accepted_unlink(weft__fd_find(&reactor->fds, fd));

		weft__fd_discard(&reactor->fds, fd);
		fd = next;
	}
}

/* Removes one waiting task and all connections.  Returns the task, or 0. */
static uint64_t listener_empty(struct weft__reactor *reactor,
			       struct weft__fd *entry)
{
	struct weft__listener *listener = entry->listener;
	uint64_t id = 0;
	int accepted = -1;

	weft__lock_take(&entry->lock);
	if (listener->accepted_count)
		accepted = listener->accepted_first;
	listener->accepted_count = 0;
	if (listener->waiting)
		id = weft__listener_give(listener, -ECANCELED);
	weft__lock_drop(&entry->lock);
	accepted_close(reactor, accepted);
	return id;
}

bool weft__listener_end(struct weft__worker *worker, struct weft__fd *entry)
{
	struct weft__reactor *reactor = weft__reactor(worker->runtime);
	struct weft__listener *listener = entry->listener;
	struct weft__shard *shard;
	uint64_t id;
	bool idle;

	while ((id = listener_empty(reactor, entry)))
		weft__wake(worker, weft__task_at(worker->runtime, id), id);
	weft__lock_take(&entry->lock);
	idle = listener->state == WEFT__LISTENER_IDLE;
	shard = weft__shard(worker->runtime->workers[listener->shard]);
	weft__lock_drop(&entry->lock);
	return idle ||
	       weft__shard_cancel(shard, weft__multishot_accept_user_data(
						       listener->number,
						       listener->fd)) == 0;
}

void weft__listeners_feed(struct weft__worker *worker)
{
	struct weft__reactor *reactor = weft__reactor(worker->runtime);
	enum { WAKES_MAX = 16 };
	uint64_t wakes[WAKES_MAX];
	unsigned count = 0;

	/* relaxed: a hint, see weft__listener_set_starved. */
	if (weft__likely(!weft__load(&reactor->starved, relaxed)))
		return;
	weft__lock_take(&reactor->listeners_lock);
	for (struct weft__listener *listener = reactor->listeners;
	     listener && count < WAKES_MAX; listener = listener->next) {
		struct weft__fd *entry =
			weft__fd_find(&reactor->fds, listener->fd);

		weft__lock_take(&entry->lock);
		if (listener->starved && listener->waiting)
			wakes[count++] = weft__running_id(listener->waiting);
		weft__lock_drop(&entry->lock);
	}
	weft__lock_drop(&reactor->listeners_lock);
	while (count--)
		weft__wake(worker,
			   weft__task_at(worker->runtime, wakes[count]),
			   wakes[count]);
}

void weft__listeners_close(struct weft__reactor *reactor)
{
	while (reactor->listeners) {
		struct weft__listener *listener = reactor->listeners;

		if (listener->accepted_count)
			accepted_close(reactor, listener->accepted_first);
		reactor->listeners = listener->next;
		free(listener);
	}
}
