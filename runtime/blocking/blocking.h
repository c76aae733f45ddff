/* SPDX-License-Identifier: MIT */
/*
 * Blocking - the pool of threads that run what blocks a thread.
 *
 *	a task				a thread of the pool
 *	------				--------------------
 *	queues a job; calls the		takes the next job, runs it,
 *	thread that was idle last,	ends it, takes the next;
 *	or makes one			grants the task its wait
 *	  ... suspended ...		  ... or is idle, until it is called
 *	has the result			or the time is up, and leaves ...
 *
 * The one that was idle last is called first, so that those that are not needed
 * stay idle, and leave: called in turn, as by a condition variable, all of them
 * would stay for as long as there is any work.
 *
 * Invariants
 *   B1  For each job that may begin a thread is on its way to take one: it was
 *       called, or is being made, or ends another job; unless there are
 *       threads_max, or no more could be made.  Whoever is on its way takes
 *       what is next, and is idle only if there is nothing.
 *   B2  While a job is queued there is a thread; or the one who fails to make
 *       the first fails all jobs.
 *   B3  A thread that leaves joins the one that left before it, so all but the
 *       last are joined at any time; who ends the pool joins that.  Once the
 *       runtime was abandoned nobody does, and it detaches itself.
 *
 * The pool ends after the last task and before the driver is closed, since a
 * thread may still be waking a worker for a task that has gone on already.
 *
 * Orderings
 *   [blocking.made]  the pool, CAS release -> load acquire.
 */
#ifndef WEFT_RUNTIME_BLOCKING_BLOCKING_H
#define WEFT_RUNTIME_BLOCKING_BLOCKING_H

#include "runtime/sched/runtime.h"

/* When no task is left: ends the threads, and frees the pool. */
void weft__blocking_end(struct weft_runtime *runtime);

/* Prints the jobs that run. */
void weft__blocking_name_survivors(struct weft_runtime *runtime);

#endif
