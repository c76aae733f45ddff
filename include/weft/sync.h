/* SPDX-License-Identifier: MIT */
/*
 * What tasks share: mutexes, semaphores and their like.
 *
 * Each is a struct that you put where you like, on a stack or in your own
 * struct; zeroed, or set by its initialiser, it is ready, and there is nothing
 * to free.  No call allocates.  It must stay until nobody waits for it and no
 * call is under way; but who has a mutex, or the permits of a semaphore, need
 * not wait for the call that let go of them: if he is the last he may free it.
 *
 *	struct weft_mutex mutex = WEFT_MUTEX_INIT;
 *
 *	if (weft_mutex_lock(&mutex) == 0) {
 *		...				may suspend
 *		weft_mutex_unlock(&mutex);
 *	}
 *
 * Who waits is served in turn (but see the mutex); who asks for what is free
 * has it at once.  Tasks suspend, and their waits obey deadlines
 * and cancellation; what was got all the same is returned, and the next call
 * reports them.  Threads that run no task, tasks of several runtimes and tasks
 * may share one: a thread blocks, and has neither.  Calls that only let go
 * (unlock, release, set, notify, done) never suspend or fail.
 */
#ifndef WEFT_SYNC_H
#define WEFT_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>
#include <weft/task.h>

WEFT_BEGIN_DECLS

/*
 * A mutex: held by one at a time, across suspensions too.  For what is shared
 * with code that waits for I/O; a section that does not suspend may as well use
 * a pthread mutex.  Held across a suspension it goes to who has waited longest;
 * else others may be quicker than one that is woken for it, once.
 */
struct weft_mutex {
	uint64_t private_words[8];
};
#define WEFT_MUTEX_INIT { { 0 } }

/* Locks it, or waits until it can.  A task that locks a mutex it holds ends the
 * process with a message.  0, -ECANCELED, -ETIMEDOUT: then it is not held. */
WEFT_API int weft_mutex_lock(struct weft_mutex *mutex) WEFT_WARN_UNUSED;
/* The same without waiting: 0 or -EBUSY. */
WEFT_API int weft_mutex_try_lock(struct weft_mutex *mutex) WEFT_WARN_UNUSED;
/* By the one that holds it; else the process ends with a message. */
WEFT_API void weft_mutex_unlock(struct weft_mutex *mutex);

/*
 * A reader-writer lock: held by any number of readers, or by one writer.  Who
 * comes while others wait, waits behind them: neither side starves the other.
 * Who holds it must not ask for it again, or waits for itself, for ever.
 */
struct weft_rwlock {
	uint64_t private_words[8];
};
#define WEFT_RWLOCK_INIT { { 0 } }

/* 0, -ECANCELED, -ETIMEDOUT; the try_ forms do not wait: 0 or -EBUSY. */
WEFT_API int weft_rwlock_read(struct weft_rwlock *rwlock) WEFT_WARN_UNUSED;
WEFT_API int weft_rwlock_write(struct weft_rwlock *rwlock) WEFT_WARN_UNUSED;
WEFT_API int weft_rwlock_try_read(struct weft_rwlock *rwlock) WEFT_WARN_UNUSED;
WEFT_API int weft_rwlock_try_write(struct weft_rwlock *rwlock) WEFT_WARN_UNUSED;
/* Lets go of what the caller holds of it. */
WEFT_API void weft_rwlock_unlock(struct weft_rwlock *rwlock);

/*
 * A semaphore: permits, taken and given back, by whomever.  For a limit on how
 * much happens at once.
 */
struct weft_sem {
	uint64_t private_words[8];
};
#define WEFT_SEM_INIT(permits) { { 0, (uint64_t)(permits) } }

/* Takes n permits, all at once, or waits until there are so many; who comes
 * later waits behind, even for fewer.  0, -ECANCELED, -ETIMEDOUT: then none was
 * taken. */
WEFT_API int weft_sem_acquire(struct weft_sem *sem,
			      uint32_t n) WEFT_WARN_UNUSED;
/* The same without waiting: 0 or -EAGAIN. */
WEFT_API int weft_sem_try_acquire(struct weft_sem *sem,
				  uint32_t n) WEFT_WARN_UNUSED;
/* Gives n permits. */
WEFT_API void weft_sem_release(struct weft_sem *sem, uint32_t n);
/* Permits that are free; a moment's figure. */
WEFT_API uint64_t weft_sem_count(const struct weft_sem *sem);

/*
 * A condition: waits, with a mutex let go, until somebody says that what it
 * protects has changed.
 *
 *	while (r == 0 && !ready)
 *		r = weft_cond_wait(&cond, &mutex);
 */
struct weft_cond {
	uint64_t private_words[4];
};
#define WEFT_COND_INIT { { 0 } }

/* Unlocks the mutex, waits to be told, and locks it again, whatever happens
 * meanwhile: the caller holds it after every return.  0, -ECANCELED,
 * -ETIMEDOUT; a task that is to give up already is told so without an unlock,
 * so a loop must heed it. */
WEFT_API int weft_cond_wait(struct weft_cond *cond,
			    struct weft_mutex *mutex) WEFT_WARN_UNUSED;
/* Tells the one that has waited longest, if there is one; tells all. */
WEFT_API void weft_cond_signal(struct weft_cond *cond);
WEFT_API void weft_cond_broadcast(struct weft_cond *cond);

/*
 * An event: who waits goes on once it is set, and as long as it stays so.
 */
struct weft_event {
	uint64_t private_words[4];
};
#define WEFT_EVENT_INIT { { 0 } }

/* 0, -ECANCELED, -ETIMEDOUT. */
WEFT_API int weft_event_wait(struct weft_event *event) WEFT_WARN_UNUSED;
WEFT_API void weft_event_set(struct weft_event *event);
WEFT_API void weft_event_clear(struct weft_event *event);
WEFT_API bool weft_event_is_set(const struct weft_event *event);

/*
 * A notification: lets one waiter go on; if none waits, the next one to come,
 * which does not wait then.  Several such in a row count once.
 */
struct weft_notify {
	uint64_t private_words[4];
};
#define WEFT_NOTIFY_INIT { { 0 } }

/* 0, -ECANCELED, -ETIMEDOUT: then no notification was taken. */
WEFT_API int weft_notify_wait(struct weft_notify *notify) WEFT_WARN_UNUSED;
WEFT_API void weft_notify_one(struct weft_notify *notify);
/* All that wait now, and nobody to come. */
WEFT_API void weft_notify_all(struct weft_notify *notify);

/*
 * A count to wait for: of work that is under way (a wait group), or of what is
 * still to happen, set by WEFT_WAIT_GROUP_INIT(n) and only taken from (a latch).
 */
struct weft_wait_group {
	uint64_t private_words[6];
};
#define WEFT_WAIT_GROUP_INIT(n) { { 0, (uint64_t)(n) } }

/* Adds n: before what it counts begins. */
WEFT_API void weft_wait_group_add(struct weft_wait_group *group, uint32_t n);
/* One is done.  More than there are end the process with a message. */
WEFT_API void weft_wait_group_done(struct weft_wait_group *group);
/* Waits until none is left.  0, -ECANCELED, -ETIMEDOUT. */
WEFT_API int weft_wait_group_wait(struct weft_wait_group *group) WEFT_WARN_UNUSED;

/*
 * A barrier: the last of so many to come lets all of them go on, and it begins
 * anew.
 */
struct weft_barrier {
	uint64_t private_words[6];
};
#define WEFT_BARRIER_INIT(parties) { { 0, (uint64_t)(parties) } }

/* 1 in the one that came last, 0 in the others; or -ECANCELED, -ETIMEDOUT: then
 * the caller does not count as one that came. */
WEFT_API int weft_barrier_wait(struct weft_barrier *barrier) WEFT_WARN_UNUSED;

/*
 * What is to be done once, by whoever comes first, and whose result all get.
 */
struct weft_once {
	uint64_t private_words[6];
};
#define WEFT_ONCE_INIT { { 0 } }

/*
 * Runs fn(arg) unless that has been done, and returns its result; others that
 * come meanwhile wait for it.  A negative result is returned to the caller
 * alone, and the next one runs fn again.  Inside fn, a task's call for the same
 * `once` ends the process with a message; a thread's blocks for ever.  Also
 * -ECANCELED, -ETIMEDOUT: fn was not run, and its result is not known.
 */
WEFT_API int64_t weft_once_run(struct weft_once *once, weft_fn fn,
			       void *arg) WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
