/* SPDX-License-Identifier: MIT */
/*
 * The calls of <weft/sync.h> that suspend, each with what makes it wait, what
 * lets it go on, and what is then left.
 */
#ifndef WEFT_TESTS_SUPPORT_SYNC_CALLS_H
#define WEFT_TESTS_SUPPORT_SYNC_CALLS_H

#include <string.h>

#include "tests/support/sync_scene.h"

/* One of each; main closes and opens them. */
static struct {
	struct weft_mutex mutex;
	struct weft_rwlock rwlock;
	struct weft_sem sem;
	struct weft_cond cond;
	struct weft_event event;
	struct weft_notify notify;
	struct weft_wait_group count;
	struct weft_barrier barrier;
	struct weft_once once;

	struct weft_scope *helpers;
	struct weft_event end_of_run; /* what is done once may return */
	bool running;
	int64_t first_result; /* of it */
} shared;

/* The task `victim` is cancelled in the same moment as it is let go on. */
static enum moment { NEVER, JUST_BEFORE, JUST_AFTER } cancels;
static struct weft_task victim;

static inline void moment(enum moment now)
{
	if (cancels == now)
		EXPECT(weft_cancel(victim) == 0);
}

static inline void mutex_close(void)
{
	EXPECT(weft_mutex_lock(&shared.mutex) == 0);
}

static inline int mutex_wait(void)
{
	return weft_mutex_lock(&shared.mutex);
}

static inline void mutex_leave(void)
{
	weft_mutex_unlock(&shared.mutex);
}

static inline void rwlock_close_by_reader(void)
{
	EXPECT(weft_rwlock_read(&shared.rwlock) == 0);
}

static inline void rwlock_close_by_writer(void)
{
	EXPECT(weft_rwlock_write(&shared.rwlock) == 0);
}

static inline int read_wait(void)
{
	return weft_rwlock_read(&shared.rwlock);
}

static inline int write_wait(void)
{
	return weft_rwlock_write(&shared.rwlock);
}

static inline void rwlock_leave(void)
{
	weft_rwlock_unlock(&shared.rwlock);
}

static inline int sem_wait_for_3(void)
{
	return weft_sem_acquire(&shared.sem, 3);
}

static inline void sem_open(void)
{
	weft_sem_release(&shared.sem, 3);
}

/* The mutex is held after each return: else the unlock ends the process. */
static inline int cond_wait(void)
{
	int r;

	WEFT_SHIELD
		EXPECT(weft_mutex_lock(&shared.mutex) == 0);
	r = weft_cond_wait(&shared.cond, &shared.mutex);
	weft_mutex_unlock(&shared.mutex);
	return r;
}

static inline void cond_open(void)
{
	weft_cond_signal(&shared.cond);
}

static inline void cond_open_wide(void)
{
	weft_cond_broadcast(&shared.cond);
}

static inline void event_close(void)
{
	weft_event_clear(&shared.event);
}

static inline int event_wait(void)
{
	return weft_event_wait(&shared.event);
}

static inline void event_open(void)
{
	weft_event_set(&shared.event);
}

static inline int notify_wait(void)
{
	return weft_notify_wait(&shared.notify);
}

static inline void notify_open(void)
{
	weft_notify_one(&shared.notify);
}

static inline void count_close(void)
{
	weft_wait_group_add(&shared.count, 1);
}

static inline int count_wait(void)
{
	return weft_wait_group_wait(&shared.count);
}

static inline void count_open(void)
{
	weft_wait_group_done(&shared.count);
}

static inline int barrier_wait(void)
{
	return weft_barrier_wait(&shared.barrier);
}

/* Of two: if no task waits, it waits itself until one comes. */
static inline int64_t barrier_come(void *arg)
{
	(void)arg;
	moment(JUST_BEFORE);
	EXPECT(weft_barrier_wait(&shared.barrier) >= 0);
	moment(JUST_AFTER);
	return 0;
}

static inline void barrier_open(void)
{
	EXPECT(weft_go(shared.helpers, barrier_come, NULL, 0) == 0);
}

static inline int64_t run_for_long(void *arg)
{
	(void)arg;
	shared.running = true;
	EXPECT(weft_event_wait(&shared.end_of_run) == 0);
	moment(JUST_BEFORE);
	return shared.first_result;
}

static inline int64_t once_run(void *arg)
{
	int64_t result = weft_once_run(&shared.once, run_for_long, NULL);

	(void)arg;
	EXPECT(result == shared.first_result);
	moment(JUST_AFTER);
	return 0;
}

static inline void once_close_with(int64_t result)
{
	shared.once = (struct weft_once)WEFT_ONCE_INIT;
	shared.running = false;
	shared.first_result = result;
	weft_event_clear(&shared.end_of_run);
	EXPECT(weft_go(shared.helpers, once_run, NULL, 0) == 0);
	while (!shared.running)
		EXPECT(weft_yield() == 0);
}

static inline void once_close(void)
{
	once_close_with(5);
}

static inline void once_close_to_fail(void)
{
	once_close_with(-EIO);
}

/* By who comes after one that failed, if any. */
static inline int64_t run_anew(void *arg)
{
	(void)arg;
	EXPECT(shared.first_result < 0);
	return 5;
}

static inline int once_wait(void)
{
	return (int)weft_once_run(&shared.once, run_anew, NULL);
}

static inline void once_open(void)
{
	weft_event_set(&shared.end_of_run);
}

static inline void nothing(void)
{
}

struct call {
	const char *name;
	void (*close)(void);
	int (*wait)(void);   /* waits when closed; negative: failed */
	void (*leave)(void); /* when it has not failed */
	void (*open)(void);  /* what was closed, for one or all */
	enum {
		STAYS_OPEN, /* until it is closed */
		FOR_ONE,    /* one task that waits, or comes */
		FOR_WAITERS,
	} kind;
	bool by_helper; /* open() has another task do it */
};

static const struct call calls[] = {
	{ "mutex lock", mutex_close, mutex_wait, mutex_leave, mutex_leave,
	  STAYS_OPEN, false },
	{ "rwlock read", rwlock_close_by_writer, read_wait, rwlock_leave,
	  rwlock_leave, STAYS_OPEN, false },
	{ "rwlock write, read by another", rwlock_close_by_reader, write_wait,
	  rwlock_leave, rwlock_leave, STAYS_OPEN, false },
	{ "rwlock write, written by another", rwlock_close_by_writer,
	  write_wait, rwlock_leave, rwlock_leave, STAYS_OPEN, false },
	{ "sem acquire", nothing, sem_wait_for_3, nothing, sem_open, FOR_ONE,
	  false },
	{ "cond wait, signal", nothing, cond_wait, nothing, cond_open,
	  FOR_WAITERS, false },
	{ "cond wait, broadcast", nothing, cond_wait, nothing, cond_open_wide,
	  FOR_WAITERS, false },
	{ "event wait", event_close, event_wait, nothing, event_open,
	  STAYS_OPEN, false },
	{ "notify wait", nothing, notify_wait, nothing, notify_open, FOR_ONE,
	  false },
	{ "count wait", count_close, count_wait, nothing, count_open,
	  STAYS_OPEN, false },
	{ "barrier wait", nothing, barrier_wait, nothing, barrier_open, FOR_ONE,
	  true },
	{ "once", once_close, once_wait, nothing, once_open, STAYS_OPEN, true },
	{ "once, after a failure", once_close_to_fail, once_wait, nothing,
	  once_open, STAYS_OPEN, true },
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static inline void calls_begin(struct weft_scope *helpers)
{
	memset(&shared, 0, sizeof(shared));
	shared.barrier = (struct weft_barrier)WEFT_BARRIER_INIT(2);
	shared.helpers = helpers;
}

/* Opens it, and cancels the victim in the same moment or never. */
static inline void call_open(const struct call *call, enum moment when)
{
	cancels = when;
	if (!call->by_helper)
		moment(JUST_BEFORE);
	call->open();
	if (!call->by_helper)
		moment(JUST_AFTER);
}

#endif
