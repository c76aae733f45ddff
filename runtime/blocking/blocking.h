/* SPDX-License-Identifier: MIT */
/*
 * Blocking pool - threads that run functions which block a thread.
 *
 *	a task				a thread of the pool
 *	------				--------------------
 *	queues a job; calls the		takes the next job, runs it,
 *	thread that was idle last,	ends it, takes the next;
 *	or makes one			grants the task its wait
 *	  ... suspended ...		  ... or is idle until it is called,
 *	has the result			or its idle time ends, and it leaves
 *
 * The thread that became idle last is called first.  So threads that are not
 * needed stay idle and leave.  If threads were called in turn, as with a
 * condition variable, all of them would stay while there is any work.
 *
 * Invariants
 *   BLK1  For each job that may begin, a thread is on its way to take one: it
 *       was called, is being made, or is ending another job.  The exceptions:
 *       there are threads_max threads already, or no more could be made.  A
 *       thread on its way takes the next job, and becomes idle only if there is
 *       none.
 *   BLK2  While a job is queued there is a thread.  A caller that fails to make
 *       the first thread fails all jobs.
 *   BLK3  A thread that leaves joins the one that left before it.  So all but
 *       the last are joined at any time; the end of the pool joins the last.
 *       Once the runtime was abandoned, a leaving thread is detached instead.
 *
 * The pool ends after the last task and before the driver is closed: a thread
 * may still be waking a worker for a task that has already gone on.
 *
 * Orderings
 *   [blocking.made]  the pool, CAS release -> load acquire.
 */
#ifndef WEFT_RUNTIME_BLOCKING_BLOCKING_H
#define WEFT_RUNTIME_BLOCKING_BLOCKING_H

#include "runtime/blocking/job_queue.h"
#include "runtime/sched/runtime.h"

/* Ends the threads and frees the pool.  Called when no task is left. */
void weft__blocking_end(struct weft_runtime *runtime);

/*
 * As weft_blocking_lane(), for what may wait for ever.  If the task is
 * interrupted (why: -ECANCELED or -ETIMEDOUT) when the job has begun, leave()
 * makes fn(arg) return early, and waits for the wait as weft__wait() does until
 * it is granted.  -EAGAIN as well where the job would have to wait for a
 * thread, or half of the threads that the pool may have are in that lane.
 */
int64_t weft__blocking_leave(struct weft_lane *lane, weft_fn fn, void *arg,
			     int (*leave)(void *arg, struct weft__wait *wait,
					  int why));

/*
 * weft_blocking_lane() in steps, for jobs that would wait for each other in the
 * kernel: with one behind the other they take one thread.  The job is zero but
 * for `fn` and `arg`.  Begin: 0, or an error, and nothing is to be ended.
 * Follow: puts it behind `ahead`, for which begin() was called, whose task is
 * in finish() or on the way there, and which no other job is behind; if that is
 * over, the job goes its own way.  Finish: the result.  The caller charges the
 * task, if the job has not `waited`.
 */
int weft__blocking_begin(struct weft_lane *lane, struct weft__job *job);
enum weft__follows weft__blocking_follow(struct weft__job *ahead,
					 struct weft__job *job);
int64_t weft__blocking_finish(struct weft__job *job);

/*
 * Queues a job without a task, which is zero but for `fn` and `arg`, that a
 * thread of the pool runs, and `ended`, that the thread calls after it; the job
 * is the owner's again then.  lane: as of weft_blocking_lane().  From any
 * thread.  If there is no thread and none can be made, the caller's calls
 * `ended`; `refused` is true.  0, or -ENOMEM: nothing was queued.
 */
int weft__blocking_submit(struct weft_runtime *runtime, struct weft_lane *lane,
			  struct weft__job *job);

/* Takes such a job back, from any thread, also before it was queued.  True: it
 * was queued, and never begins; `ended` is not called. */
bool weft__blocking_withdraw(struct weft_runtime *runtime,
			     struct weft__job *job);

/* Prints the jobs that still run. */
void weft__blocking_name_survivors(struct weft_runtime *runtime);

#endif
