/* SPDX-License-Identifier: MIT */
/*
 * Signal notify - the table of (signal, eventfd) pairs, and the handler that
 * reads it.  The header has the invariant and the ordering.
 */
#include "runtime/dump/signal_notify.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "runtime/base/atomic.h"
#include "runtime/base/handler.h"

enum { ENTRIES = 16, NO_FD = -1 };

static struct entry {
	weft__atomic(int) fd; /* NO_FD or 0: free; written under the lock */
	weft__atomic(int) number;
} entries[ENTRIES];

static struct weft__handler actions[NSIG]; /* by number; under the lock */
static weft__atomic(int) handlers; /* running now */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void on_signal(int number, siginfo_t *info, void *context)
{
	static const uint64_t one = 1;
	int error = errno;
	bool found = false;

	/* pairs: [signal_notify.run] */
	weft__add(&handlers, 1, seq_cst);
	for (int i = 0; i < ENTRIES; i++) {
		/* pairs: [signal_notify.run] */
		int fd = weft__load(&entries[i].fd, seq_cst);

		/* relaxed: written before fd, whose load acquires. */
		if (fd <= 0 ||
		    weft__load(&entries[i].number, relaxed) != number)
			continue;
		/* If the eventfd is full, it is readable already. */
		(void)!write(fd, &one, sizeof(one));
		found = true;
	}
	/* pairs: [signal_notify.run] */
	weft__sub(&handlers, 1, seq_cst);
	errno = error;
	/* Another library's handler passes the signal on.
	 * relaxed: a look; a signal that meets its end is lost. */
	if (!found && weft__load(&actions[number].set, relaxed))
		weft__handler_pass(&actions[number], number, info, context);
}

/* An entry with that number other than `other`; or NULL. */
static struct entry *find(int number, const struct entry *other)
{
	for (int i = 0; i < ENTRIES; i++)
		/* relaxed: written under the lock. */
		if (&entries[i] != other &&
		    weft__load(&entries[i].fd, relaxed) > 0 &&
		    weft__load(&entries[i].number, relaxed) == number)
			return &entries[i];
	return NULL;
}

static struct entry *find_free(void)
{
	for (int i = 0; i < ENTRIES; i++)
		/* relaxed: written under the lock. */
		if (weft__load(&entries[i].fd, relaxed) <= 0)
			return &entries[i];
	return NULL;
}

static int hang(int number, int fd)
{
	struct entry *entry = find_free();
	int error;

	if (!entry)
		return -EBUSY;
	if (number < 1 || number >= NSIG)
		return -EINVAL;
	/* relaxed: published by fd. */
	weft__store(&entry->number, number, relaxed);
	/* pairs: [signal_notify.run] */
	weft__store(&entry->fd, fd, seq_cst);
	actions[number].fn = on_signal;
	actions[number].flags = SA_RESTART;
	error = weft__handler_set(&actions[number], number);
	if (error < 0)
		/* pairs: [signal_notify.run] */
		weft__store(&entry->fd, NO_FD, seq_cst);
	return error;
}

int weft__signal_notify_start(int number, int fd)
{
	int error;

	pthread_mutex_lock(&lock);
	error = hang(number, fd);
	pthread_mutex_unlock(&lock);
	return error;
}

void weft__signal_notify_stop(int number, int fd)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < ENTRIES; i++) {
		struct entry *entry = &entries[i];

		/* relaxed: written under the lock. */
		if (weft__load(&entry->fd, relaxed) != fd)
			continue;
		if (!find(number, entry))
			weft__handler_reset(&actions[number], number);
		/* pairs: [signal_notify.run] */
		weft__store(&entry->fd, NO_FD, seq_cst);
	}
	/* pairs: [signal_notify.run] */
	while (weft__load(&handlers, seq_cst) != 0)
		sched_yield();
	pthread_mutex_unlock(&lock);
}

/* Another thread may have held the lock at the fork, or run a handler. */
void weft__signal_notify_forget(void)
{
	for (int i = 0; i < ENTRIES; i++) {
		/* relaxed: no other thread is here. */
		int number = weft__load(&entries[i].number, relaxed);

		if (number)
			weft__handler_reset(&actions[number], number);
		/* relaxed: likewise, no other thread is here. */
		weft__store(&entries[i].fd, NO_FD, relaxed);
	}
	/* relaxed: no other thread is here. */
	weft__store(&handlers, 0, relaxed);
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
