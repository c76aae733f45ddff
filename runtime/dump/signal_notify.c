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

enum { ENTRIES = 16, NO_FD = -1 };

static struct entry {
	weft__atomic(int) fd; /* NO_FD or 0: free; written under the lock */
	weft__atomic(int) number;
	struct sigaction before; /* before the first with that number */
} entries[ENTRIES];

static weft__atomic(int) handlers; /* running now */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void on_signal(int number)
{
	static const uint64_t one = 1;
	int error = errno;

	/* pairs: [signal_notify.run] */
	weft__add(&handlers, 1, seq_cst);
	for (int i = 0; i < ENTRIES; i++) {
		/* pairs: [signal_notify.run] */
		int fd = weft__load(&entries[i].fd, seq_cst);

		/* relaxed: written before fd, whose load acquires. */
		if (fd > 0 && weft__load(&entries[i].number, relaxed) == number)
			/* If the eventfd is full, it is readable already. */
			(void)!write(fd, &one, sizeof(one));
	}
	/* pairs: [signal_notify.run] */
	weft__sub(&handlers, 1, seq_cst);
	errno = error;
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
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_RESTART | SA_ONSTACK };
	struct entry *entry = find_free(), *other = find(number, NULL);

	if (!entry)
		return -EBUSY;
	/* relaxed: published by fd. */
	weft__store(&entry->number, number, relaxed);
	/* pairs: [signal_notify.run] */
	weft__store(&entry->fd, fd, seq_cst);
	if (other) {
		entry->before = other->before;
		return 0;
	}
	sigemptyset(&action.sa_mask);
	if (sigaction(number, &action, &entry->before) == 0)
		return 0;
	/* pairs: [signal_notify.run] */
	weft__store(&entry->fd, NO_FD, seq_cst);
	return -errno;
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
			sigaction(number, &entry->before, NULL);
		/* pairs: [signal_notify.run] */
		weft__store(&entry->fd, NO_FD, seq_cst);
	}
	/* pairs: [signal_notify.run] */
	while (weft__load(&handlers, seq_cst) != 0)
		sched_yield();
	pthread_mutex_unlock(&lock);
}
