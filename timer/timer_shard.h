/* SPDX-License-Identifier: MIT */
/*
 * Lanes - the alarms of a runtime: one wheel a worker, all turned by worker 0.
 *
 *	worker 0   worker 1   worker 2		arm: into one's own lane
 *	   |          |          |
 *	[wheel 0]  [wheel 1]  [wheel 2]		each under the lane's lock
 *	   |          |          |
 *	next[0]    next[1]    next[2]		read before worker 0 sleeps
 *	    '---------+----------'
 *	              v
 *	  worker 0: turn() at each tick, sleeps until the least of them
 *
 * Arming and disarming take a lock that only the turning worker contends for.
 * Any worker may turn: one that finds worker 0 late does.
 *
 * An alarm lies on the stack of the task that it is for, so turn() unlinks a
 * few under the lock, copies out whom they are for, marks them as fired, and
 * wakes after it has dropped the lock.  Records of tasks are never unmapped,
 * and an id carries a generation: a wake that comes late is dropped.
 *
 * Invariants
 *   A1  When lane i's lock is free, next[i] is not after the time at which the
 *       wheel must turn for the first alarm in it.  It may be too early, by
 *       alarms that were disarmed: worker 0 then corrects it before it sleeps.
 *   A2  An alarm is touched by others only under its lane's lock, and not after
 *       its `fired` was set; disarm() returns when either can be relied upon.
 *   A3  Worker 0 does not sleep past an alarm.  Who arms one that is due before
 *       all others in its lane publishes next[i] and then reads sleep_until;
 *       worker 0 publishes sleep_until and then reads every next[i].  At least
 *       one sees the other: worker 0 does not sleep so long, or is woken.  It
 *       never sleeps longer than it says, even if the alarm that it meant has
 *       been disarmed by then: who arms another believes what it says.
 *   A4  What a turn leaves because it has done enough stays due: next[i] is not
 *       after now.
 *
 * Orderings
 *   [lanes.sleep]  seq_cst: next[i] store, sleep_until load (arming) against
 *       sleep_until store, next[i] load (worker 0).  A store followed by a load
 *       of another location: acquire and release do not order that.  turn()
 *       stores next[i] relaxed: under the lock, so after each arming that it
 *       has seen in the wheel, and then it is as good; the others come later.
 *   [lanes.fired]  `fired` store release, after the last look at the alarm ->
 *       load acquire of disarm() or fired(): its memory may be used anew.
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
	/* An alarm was disarmed since next_ns was worked out.  A hint. */
	weft__atomic(uint32_t) stale;
	uint64_t next_ns; /* what next[] says; written under lock */
	struct weft__timer_shards *all;  /* immutable */
	uint32_t index;		  /* immutable */
	struct weft__wheel wheel; /* under lock */
};

struct weft__timer_shards {
	/* Until when worker 0 sleeps; 0: it does not.  See A3. */
	weft__atomic(uint64_t) sleep_until WEFT__APART;
	/* Where the next turn begins, so that no lane is always the last. */
	weft__atomic(uint32_t) turn WEFT__APART;
	uint32_t count;		      /* immutable */
	struct weft__timer_shard *shards;      /* immutable */
	/* Together, not in their lanes: every tick looks at all of them, and
	 * they change seldom.  Written under the lane's lock. */
	weft__atomic(uint64_t) next[] WEFT__APART;
};

/* Lanes for all workers, and worker->lane.  0 or -ENOMEM. */
int weft__timer_shards_open(struct weft_runtime *runtime, uint64_t now_ns);
void weft__timer_shards_close(struct weft_runtime *runtime);

/* The alarm goes off at deadline_ns or up to 66 us later, once.  It must not be
 * armed, and stays where it is until disarmed. */
void weft__timer_shards_arm(struct weft__worker *worker,
			    struct weft__alarm *alarm, uint64_t deadline_ns);

/* True if the alarm was armed and had not gone off.  Afterwards nothing refers
 * to it.  From any worker that runs the task. */
bool weft__timer_shards_disarm(struct weft_runtime *runtime,
			struct weft__alarm *alarm);

/* Whether it is armed and has gone off: its deadline has passed, and nothing
 * refers to it. */
static inline bool weft__timer_shards_fired(const struct weft__alarm *alarm)
{
	weft__atomic(uint8_t) *fired = (void *)(uintptr_t)&alarm->fired;

	/* pairs: [lanes.fired] */
	return alarm->armed && weft__load(fired, acquire);
}

/* Fires what is due in all lanes, as much as here's ring has room for; the rest
 * at the next turn.  Returns how many. */
unsigned weft__timer_shards_turn(struct weft_runtime *runtime,
			  struct weft__worker *here, uint64_t now_ns);

/* The same for the lane of `here` alone: a worker that runs and finds its own
 * lane overdue does not wait for worker 0, and has what it armed in its cache.
 */
unsigned weft__timer_shards_turn_own(struct weft__worker *here,
				     uint64_t now_ns);

/* Has either of these something to do?  (Worker 0: the first.) */
bool weft__timer_shards_due(struct weft__worker *here, uint64_t now_ns);

/* Worker 0 only: when the next turn is due; UINT64_MAX: nothing is armed. */
uint64_t weft__timer_shards_next(struct weft_runtime *runtime);

/* Worker 0 only: before it sleeps; returns until when it may, UINT64_MAX: for
 * ever.  And when it no longer does. */
uint64_t weft__timer_shards_sleep(struct weft_runtime *runtime);
void weft__timer_shards_wake(struct weft_runtime *runtime);

#endif
