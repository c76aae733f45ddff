/* SPDX-License-Identifier: MIT */
/*
 * Job queue - blocking jobs that wait or run, in lanes, and the next lane in
 * turn.
 *
 *	lane "dns", limit 2	[job] [job] | [job] [job] ...	not in turn
 *	lane "zip", no limit	[job]       | [job]		in turn, first
 *	the default lane	[job]<-[job]| [job] [job]<-[job] in turn
 *				  running       queued
 *
 * A job behind another (<-) is queued when that one is over.
 *
 * Everything here is under the pool's lock.
 *
 * Invariants
 *   JOB1  A lane is in turn if and only if it may begin a job: a job is queued,
 *       and fewer jobs run than the lane's limit.  A lane that has had its turn
 *       goes behind the others.
 *   JOB2  A lane that has jobs is bound to the pool that the jobs are in.
 *   JOB3  A job is queued until one thread takes it, or its task takes it back.
 *       Which of the two happens is decided under the lock.  The thread that
 *       took a job ends it, then grants the task its wait; after that the
 *       thread touches neither the job nor its lane.
 *   JOB4  A job behind another is in the pool, but not queued, until that one
 *       has ended, or was taken back.  No thread is called for it: the thread
 *       that ends the other, or that was called for it, takes this one.  It has
 *       its own place in the lane: before jobs that arrived after it, unless
 *       some of those are behind an older one.
 *
 * Orderings
 *   [lane.bind]  a pool's last job in the lane, store release -> the CAS
 *       acquire of the next pool: the words of the lane.
 *
 * Modelled in tests/model/model_blocking.c.
 */
#ifndef WEFT_RUNTIME_BLOCKING_JOB_QUEUE_H
#define WEFT_RUNTIME_BLOCKING_JOB_QUEUE_H

#include <weft/blocking.h>

#include "runtime/sched/waiter.h"

/*
 * A type that overlays a public struct may alias it.  Before such a struct is
 * complete, no pointer to a pointer to it may be named: gcc 12 with -flto ends
 * in an internal error.  So the list of lanes uses next and prev.
 */
struct weft__job_lane {
	const char *name;
	uint32_t max; /* 0: no limit */
	uint32_t reserved;
	weft__atomic(struct weft__job_queue *) jobs; /* JOB2; or NULL */
	struct weft__waiters waiters; /* of the queued jobs */
	struct weft__job_lane *next;  /* in turn */
	struct weft__job_lane *prev;
	uint32_t queued;
	uint32_t running;
	bool in_turn;
	struct weft__spin spin; /* of tasks with jobs in it */
	uint64_t reserved2;
} __attribute__((may_alias));

_Static_assert(sizeof(struct weft__job_lane) == sizeof(struct weft_lane),
	       "the public struct has room for it");

/* Lies on the stack of the task that waits for it, or belongs to the owner of a
 * job without a task (blocking.h). */
struct weft__job {
	struct weft__waiter waiter; /* in its lane, then in `running` */
	struct weft__wait wait;
	struct weft__job_lane *lane;
	struct weft__job *ahead;  /* that this one is behind; or NULL */
	struct weft__job *behind; /* that is behind this one; or NULL */
	weft_fn fn;
	void *arg;
	int64_t result;
	uint64_t arrival; /* its place among all jobs */
	bool begun;
	bool over;    /* ended, or taken back */
	bool follows; /* the task's: it was put behind another */
	bool waited;  /* the task's: it was suspended */
	bool refused; /* no thread could be made for it */
	bool at_once; /* it waits for no thread: -EAGAIN */
	bool alone;   /* its worker has nothing else to run */
	int (*leave)(void *arg, struct weft__wait *wait, int why); /* or NULL */
	/* Of a job without a task, instead of the wait. */
	void (*ended)(struct weft__job *job);
};

/* The jobs of a pool.  A zeroed one has none. */
struct weft__job_queue {
	struct weft__job_lane *turn; /* the first lane in turn */
	struct weft__job_lane *turn_last;
	struct weft__waiters running;
	uint32_t queued_count;
	uint32_t running_count;
	uint64_t arrivals;
};

/* Queues a job.  True: the job may begin now, or as soon as the jobs queued
 * before it have begun; the caller then calls or makes a thread. */
bool weft__job_queue_add(struct weft__job_queue *jobs, struct weft__job *job);

enum weft__follows { WEFT__FOLLOWS, WEFT__FOLLOWS_ENDED, WEFT__FOLLOWS_TAKEN };

/* Puts the job, of the same lane, behind `ahead`, which no other is behind
 * (JOB4).  ENDED, TAKEN: that has ended, or was taken back, and nothing was
 * done. */
enum weft__follows weft__job_queue_follow(struct weft__job_queue *jobs,
			    struct weft__job *ahead, struct weft__job *job);

/* Takes back a job that has not begun. */
void weft__job_queue_remove(struct weft__job_queue *jobs,
			    struct weft__job *job);

/* The next job, which begins now; or NULL. */
struct weft__job *weft__job_queue_take(struct weft__job_queue *jobs);

/* Ends a job.  Its lane may be gone once its task has been granted its wait. */
void weft__job_queue_end(struct weft__job_queue *jobs, struct weft__job *job);

#endif
