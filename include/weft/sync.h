/* SPDX-License-Identifier: MIT */
/*
 * Objects for synchronisation: mutexes, reader-writer locks, semaphores,
 * conditions, events, counts, barriers.
 *
 * Each is a struct that you place where you like, on a stack or in your own
 * struct.  Zeroed, or set by its initialiser, it is ready for use.  No call
 * allocates, and there is nothing to free.  The struct must stay in place while
 * a task waits for it or a call uses it.  One exception: after a lock of a
 * mutex, or an acquire of a semaphore, the last holder may free the object,
 * even if the unlock or release that granted it has not returned yet.
 *
 *	struct weft_mutex mutex = WEFT_MUTEX_INIT;
 *
 *	if (weft_mutex_lock(&mutex) == 0) {
 *		...				may suspend
 *		weft_mutex_unlock(&mutex);
 *	}
 *
 * Waiters are served in the order of their arrival (for the mutex see below); a
 * request that can be granted does not wait.
 *
 * Calls that wait suspend a task, and obey deadlines and cancellation: they
 * return 0 or a result, -ECANCELED or -ETIMEDOUT.  If the grant came all the
 * same, the call returns it, and the next call reports the interruption.  In a
 * future they return -EPERM; see <weft/future.h>.  Threads that run no task,
 * and tasks of several runtimes, may share an object; in such a thread the call
 * blocks, without deadline or cancellation.
 *
 * Calls that only let go (unlock, release, set, notify, done) never suspend or
 * fail, and all other calls that do not wait never suspend; all may be used in
 * tasks, futures and threads.
 */
#ifndef WEFT_SYNC_H
#define WEFT_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>
#include <weft/task.h>

WEFT_BEGIN_DECLS

/* A mutex: has one holder at a time, which may keep it across suspensions.  For
 * data that is shared with code that waits for I/O; for a section that does not
 * suspend a pthread mutex does as well.  If the holder was suspended while it
 * held the mutex, the unlock hands it to the oldest waiter.  Otherwise the
 * unlock wakes the oldest waiter, and another task may lock first; a waiter is
 * overtaken like this only once. */
struct weft_mutex {
	uint64_t private_words[8];
};
#define WEFT_MUTEX_INIT { { 0 } }

/* Locks the mutex, waiting until that is possible.  A task that locks a mutex
 * that it holds ends the process with a message; a thread that does so blocks
 * without end.  Returns 0, or, with the mutex not held, -ECANCELED or
 * -ETIMEDOUT. */
WEFT_API int weft_mutex_lock(struct weft_mutex *mutex) WEFT_WARN_UNUSED;
/* The same without waiting.  Returns 0, or -EBUSY (it is held). */
WEFT_API int weft_mutex_try_lock(struct weft_mutex *mutex) WEFT_WARN_UNUSED;
/* Only for the task that holds it, or for a thread if a thread holds it; any
 * other call ends the process with a message. */
WEFT_API void weft_mutex_unlock(struct weft_mutex *mutex);

/* A reader-writer lock: has any number of readers, or one writer.  A newcomer
 * waits behind those that already wait, so neither side starves the other.  A
 * holder must not ask for the lock again: it may wait for itself without
 * end. */
struct weft_rwlock {
	uint64_t private_words[8];
};
#define WEFT_RWLOCK_INIT { { 0 } }

/* Take the lock, for reading or for writing.  Return 0, -ECANCELED or
 * -ETIMEDOUT.  The try_ forms do not wait: they return 0 or -EBUSY. */
WEFT_API int weft_rwlock_read(struct weft_rwlock *rwlock) WEFT_WARN_UNUSED;
WEFT_API int weft_rwlock_write(struct weft_rwlock *rwlock) WEFT_WARN_UNUSED;
WEFT_API int weft_rwlock_try_read(struct weft_rwlock *rwlock) WEFT_WARN_UNUSED;
WEFT_API int weft_rwlock_try_write(struct weft_rwlock *rwlock) WEFT_WARN_UNUSED;
/* Gives up the caller's hold, of either kind.  If the lock is free, or another
 * task is its writer, the process ends with a message. */
WEFT_API void weft_rwlock_unlock(struct weft_rwlock *rwlock);

/* A semaphore: a number of permits, which are taken and given back.  A permit
 * has no owner: any task or thread may give it back.  Limits how much happens
 * at the same time. */
struct weft_sem {
	uint64_t private_words[8];
};
#define WEFT_SEM_INIT(permits) { { 0, WEFT__NUMBER(uint64_t, permits) } }

/* Takes n permits together, or waits until that many are free.  Later callers
 * wait behind, even for fewer.  Returns 0, or, with no permit taken, -ECANCELED
 * or -ETIMEDOUT. */
WEFT_API int weft_sem_acquire(struct weft_sem *sem,
			      uint32_t n) WEFT_WARN_UNUSED;
/* The same without waiting.  Returns 0, or -EAGAIN: too few are free, or others
 * wait for permits. */
WEFT_API int weft_sem_try_acquire(struct weft_sem *sem,
				  uint32_t n) WEFT_WARN_UNUSED;
/* Adds n permits.  More than 2^63 - 1 end the process with a message. */
WEFT_API void weft_sem_release(struct weft_sem *sem, uint32_t n);
/* The number of free permits at this moment. */
WEFT_API uint64_t weft_sem_count(const struct weft_sem *sem);

/*
 * A condition: a task gives up a mutex and waits until another task signals
 * that the data under the mutex has changed.
 *
 *	while (r == 0 && !ready)
 *		r = weft_cond_wait(&cond, &mutex);
 */
struct weft_cond {
	uint64_t private_words[4];
};
#define WEFT_COND_INIT { { 0 } }

/* Unlocks the mutex, waits for a signal, and locks the mutex again.  The caller
 * holds the mutex before the call and after every return.  Returns 0,
 * -ECANCELED or -ETIMEDOUT.  If the task is already cancelled or its deadline
 * has passed, the call fails without unlocking; check the result in the
 * loop. */
WEFT_API int weft_cond_wait(struct weft_cond *cond,
			    struct weft_mutex *mutex) WEFT_WARN_UNUSED;
/* Wake the oldest waiter, if there is one, or all waiters.  The caller need not
 * hold the mutex. */
WEFT_API void weft_cond_signal(struct weft_cond *cond);
WEFT_API void weft_cond_broadcast(struct weft_cond *cond);

/* An event: a flag.  Waiters go on once it is set, and while it is set no call
 * waits. */
struct weft_event {
	uint64_t private_words[4];
};
#define WEFT_EVENT_INIT { { 0 } }

/* Waits until the event is set.  Returns 0, -ECANCELED or -ETIMEDOUT. */
WEFT_API int weft_event_wait(struct weft_event *event) WEFT_WARN_UNUSED;
/* Sets the event, which lets all waiters go on; clears it; or returns whether
 * it is set at this moment. */
WEFT_API void weft_event_set(struct weft_event *event);
WEFT_API void weft_event_clear(struct weft_event *event);
WEFT_API bool weft_event_is_set(const struct weft_event *event);

/* A notification: lets one waiter go on.  If no task waits, it is kept for the
 * next one, which then does not wait.  Several kept notifications count as
 * one. */
struct weft_notify {
	uint64_t private_words[4];
};
#define WEFT_NOTIFY_INIT { { 0 } }

/* Returns 0, or, with no notification taken, -ECANCELED or -ETIMEDOUT. */
WEFT_API int weft_notify_wait(struct weft_notify *notify) WEFT_WARN_UNUSED;
/* Lets the oldest waiter go on; if none waits, keeps the notification. */
WEFT_API void weft_notify_one(struct weft_notify *notify);
/* Lets all present waiters go on; keeps nothing for later ones. */
WEFT_API void weft_notify_all(struct weft_notify *notify);

/* A count that reaches zero: of work that is under way (a wait group), or of
 * steps that are still to come, set by WEFT_WAIT_GROUP_INIT(n) and only counted
 * down (a latch). */
struct weft_wait_group {
	uint64_t private_words[6];
};
#define WEFT_WAIT_GROUP_INIT(n) { { 0, WEFT__NUMBER(uint64_t, n) } }

/* Adds n.  Call it before the work begins. */
WEFT_API void weft_wait_group_add(struct weft_wait_group *count, uint32_t n);
/* Counts down by one.  If the count is 0 already, the process ends with a
 * message. */
WEFT_API void weft_wait_group_done(struct weft_wait_group *count);
/* Waits until the count is 0.  Returns 0, -ECANCELED or -ETIMEDOUT. */
WEFT_API int
weft_wait_group_wait(struct weft_wait_group *count) WEFT_WARN_UNUSED;

/* A barrier: each task waits until the given number of parties, 1 or more, has
 * arrived.  Then all go on, and the barrier can be used again. */
struct weft_barrier {
	uint64_t private_words[6];
};
#define WEFT_BARRIER_INIT(parties) { { 0, WEFT__NUMBER(uint64_t, parties) } }

/* Returns 1 to the last task to arrive and 0 to the others; or -ECANCELED or
 * -ETIMEDOUT, and then the caller does not count as arrived. */
WEFT_API int weft_barrier_wait(struct weft_barrier *barrier) WEFT_WARN_UNUSED;

/* Work to be done once, by the first caller; every caller receives its
 * result. */
struct weft_once {
	uint64_t private_words[6];
};
#define WEFT_ONCE_INIT { { 0 } }

/*
 * Runs fn(arg), unless that has succeeded before, and returns its result.
 * Callers that come meanwhile wait for it.  A negative result goes to the
 * caller that ran fn alone, and the next caller runs fn again.  Inside fn, a
 * call for the same `once` ends the process with a message in a task, and
 * blocks without end in a thread.  Also returns -ECANCELED or -ETIMEDOUT, if
 * the call was interrupted before or during the wait: it has not run fn, and
 * fn's result is unknown.
 */
WEFT_API int64_t weft_once_run(struct weft_once *once, weft_fn fn,
			       void *arg) WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
