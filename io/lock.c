/* SPDX-License-Identifier: MIT */
/*
 * Locks of files.  The kernel has no way to wait for one but in a thread that
 * only a signal can get out.  So a task tries without waiting, and sleeps
 * before the next try:
 *
 *	try ---> the lock, or another error than -EAGAIN
 *	 ^ `---> sleep: 50 us, 100 us ... 50 ms; interrupted: no lock was taken
 *	 `----------'
 *
 * A try on a local file does not wait, and is made by this thread; on another
 * file it may wait for a server, and is made in the pool.  During the try the
 * task is linked to the descriptor, so that a close waits for it, and between
 * two tries it is not: then the count of closes tells that the number may be
 * another file's.
 *
 * Rejected
 *   F_OFD_SETLKW and flock() in the pool.  Each waiter would take a thread, and
 *   a signal that interrupts one has to be taken from the program, and sent
 *   again and again: it may come before the thread is in the call.
 */
#include <weft/file.h>

#include <errno.h>
#include <sys/file.h>

#include <weft/time.h>

#include "io/pooled.h"
#include "io/position.h"
#include "io/request/call.h"

#define PAUSE_MIN_NS WEFT_US(50)
#define PAUSE_MAX_NS WEFT_MS(50)

/* A try: of flock(), or with a lock of fcntl(). */
struct try {
	int fd;
	int how; /* LOCK_ flags, or F_OFD_ */
	struct flock *lock;
};

__attribute__((noinline)) static int64_t try_run(void *arg)
{
	const struct try *try = arg;
	int r;

	do
		r = try->lock ? fcntl(try->fd, try->how, try->lock) :
				flock(try->fd, try->how);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static int try_here(struct weft__fd *entry, struct try *try)
{
	int r = weft__position_enter(entry, try->fd);

	if (r < 0)
		return r;
	r = (int)try_run(try);
	weft__position_leave(entry);
	return (int)weft__call_ready(weft__worker_self(), r);
}

static int try_once(struct try *try)
{
	struct weft__worker *worker;
	struct weft__fd *entry;
	int kind, r = weft__call_begin_fd(try->fd, &worker, &entry);

	if (r < 0)
		return r;
	kind = weft__fd_kind(entry, try->fd);
	if (kind < 0)
		return kind;
	return weft__fd_is_local(kind) ?
		       try_here(entry, try) :
		       (int)weft__pooled_on(try->fd, try_run, try);
}

/* A close that comes between the look at the count and the try is the
 * program's mistake, as with POSIX; one that began before is not. */
static int lock_wait(struct try *try)
{
	uint32_t closes = weft__call_closes_long(try->fd);
	uint64_t pause_ns = PAUSE_MIN_NS;
	int r;

	while ((r = try_once(try)) == -EAGAIN) {
		r = weft_sleep(pause_ns);
		if (r < 0)
			return r;
		if (closes != weft__call_closes_long(try->fd))
			return -ECANCELED;
		if (pause_ns < PAUSE_MAX_NS)
			pause_ns *= 2;
		if (pause_ns > PAUSE_MAX_NS)
			pause_ns = PAUSE_MAX_NS;
	}
	return r;
}

int weft_flock(int fd, int operation)
{
	struct try try = { fd, operation | LOCK_NB, NULL };

	return operation & LOCK_NB ? try_once(&try) : lock_wait(&try);
}

int weft_fcntl_lock(int fd, int command, struct flock *lock)
{
	struct try try = { fd, command, lock };

	if (!lock)
		return weft__call_refused(-EFAULT);
	switch (command) {
	case F_OFD_GETLK:
	case F_OFD_SETLK:
		return try_once(&try);
	case F_OFD_SETLKW:
		try.how = F_OFD_SETLK;
		return lock_wait(&try);
	default:
		return weft__call_refused(-EINVAL);
	}
}
