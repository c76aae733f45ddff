/* SPDX-License-Identifier: MIT */
/*
 * Timer shards - the alarms of a runtime: one wheel per worker, all turned by
 * worker 0.
 *
 *	worker 0   worker 1   worker 2		arm: into the own shard
 *	   |          |          |
 *	[wheel 0]  [wheel 1]  [wheel 2]		each under the shard's lock
 *	   |          |          |
 *	next[0]    next[1]    next[2]		read before worker 0 sleeps
 *	    '---------+----------'
 *	              v
 *	  worker 0: turn() at each tick, sleeps until the least of them
 *
 * Arming and disarming take a lock that only the turning worker contends for.
 * Any worker may turn; a worker that finds worker 0 late does.
 *
 * An alarm lies on the stack of the task that it is for.  So turn() unlinks a
 * few alarms under the lock, copies out their tasks' ids, marks them as fired,
 * and wakes the tasks after it has dropped the lock.  Records of tasks are
 * never unmapped, and an id carries a generation: a wake that comes late is
 * dropped.
 *
 * Invariants
 *   TS1  When the lock of shard i is free, next[i] is not after the time at
 *       which the wheel must turn for its first alarm.  It may be too early,
 *       because of disarmed alarms: worker 0 then corrects it before it sleeps.
 *   TS2  Other workers touch an alarm only under its shard's lock, and not
 *       after its `fired` was set.  disarm() returns after it has held the lock
 *       or has seen `fired`, so the caller may then reuse the alarm.
 *   TS3  Worker 0 does not sleep past an alarm.  A task that arms an alarm due
 *       before all others in its shard publishes next[i] and then reads
 *       sleep_until; worker 0 publishes sleep_until and then reads every
 *       next[i].  At least one sees the other's store: worker 0 shortens its
 *       sleep, or is woken.  It never sleeps past the sleep_until that it has
 *       published, even if the alarm behind that has been disarmed by then: a
 *       task that arms another alarm relies on it.
 *   TS4  Alarms that a turn leaves because it has reached its limit stay due:
 *       next[i] is not after now.
 *
 * Orderings
 *   [timer_shard.sleep]  seq_cst: next[i] store, sleep_until load (arming)
 *       against sleep_until store, next[i] load (worker 0).  A store followed
 *       by a load of another location: acquire and release do not order that.
 *       turn() stores next[i] relaxed: it does so under the lock, so after each
 *       arming that it has seen in the wheel, whose store it may replace; the
 *       other armings store after it.
 *   [timer_shard.fired]  `fired` store release, after the last access to the
 *       alarm -> load acquire of disarm() or fired(): its memory may be used
 *       again.
 */
#ifndef WEFT_TIMER_TIMER_SHARD_H
#define WEFT_TIMER_TIMER_SHARD_H

#include "runtime/base/lock.h"
#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"
#include "timer/wheel.h"

struct weft__timer_shards;

struct weft__timer_shard {
	struct weft__lock lock WEFT__APART;
	/* An alarm was disarmed since next_ns was computed.  A hint. */
	weft__atomic(uint32_t) stale;
	uint64_t next_ns; /* equals next[]; written under lock */
	struct weft__timer_shards *all;  /* immutable */
	uint32_t index;		  /* immutable */
	struct weft__wheel wheel; /* under lock */
};

struct weft__timer_shards {
	/* Worker 0 sleeps until then; 0: it does not sleep.  See TS3. */
	weft__atomic(uint64_t) sleep_until WEFT__APART;
	/* Where the next turn begins, so that no shard is always the last. */
	weft__atomic(uint32_t) turn WEFT__APART;
	uint32_t count;		      /* immutable */
	struct weft__timer_shard *shards;      /* immutable */
	/* Together, not in their shards: every tick reads all of them, and they
	 * seldom change.  Written under the shard's lock. */
	weft__atomic(uint64_t) next[] WEFT__APART;
};

/* Makes shards for all workers, and sets worker->timer_shard.  0 or -ENOMEM. */
int weft__timer_shards_open(struct weft_runtime *runtime, uint64_t now_ns);
void weft__timer_shards_close(struct weft_runtime *runtime);

/* The alarm fires once, at deadline_ns or up to 66 us later.  It must not be
 * armed, and must stay in place until it is disarmed. */
void weft__timer_shards_arm(struct weft__worker *worker,
			    struct weft__alarm *alarm, uint64_t deadline_ns);

/* True if the alarm was armed and had not fired.  Afterwards nothing refers to
 * it.  Called on any worker, by the task. */
bool weft__timer_shards_disarm(struct weft_runtime *runtime,
			struct weft__alarm *alarm);

/* Whether the alarm is armed and has fired: its deadline has passed, and
 * nothing refers to it. */
static inline bool weft__timer_shards_fired(const struct weft__alarm *alarm)
{
	weft__atomic(uint8_t) *fired = (void *)(uintptr_t)&alarm->fired;

	/* pairs: [timer_shard.fired] */
	return alarm->armed && weft__load(fired, acquire);
}

/* Fires due alarms of all shards, as many as the ring of `here` has room for;
 * the rest fire at the next turn.  Returns how many fired. */
unsigned weft__timer_shards_turn(struct weft_runtime *runtime,
			  struct weft__worker *here, uint64_t now_ns);

/* The same for the shard of `here` alone: a running worker that finds its own
 * shard overdue does not wait for worker 0, and has those alarms in its
 * cache. */
unsigned weft__timer_shards_turn_own(struct weft__worker *here,
				     uint64_t now_ns);

/* Whether an alarm is due that `here` turns: of any shard (worker 0), or of its
 * own shard (the others). */
bool weft__timer_shards_due(struct weft__worker *here, uint64_t now_ns);

/* Worker 0 only: when the next turn is due; UINT64_MAX: nothing is armed. */
uint64_t weft__timer_shards_next(struct weft_runtime *runtime);

/* Worker 0 only, before it sleeps.  Returns the time until which it may sleep;
 * UINT64_MAX: no limit.  weft__timer_shards_wake(): when it no longer
 * sleeps. */
uint64_t weft__timer_shards_sleep(struct weft_runtime *runtime);
void weft__timer_shards_wake(struct weft_runtime *runtime);

#endif
