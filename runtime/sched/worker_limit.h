/* SPDX-License-Identifier: MIT */
/*
 * Worker limit - how many workers run when more threads want to run than there
 * are processors for them.
 *
 * A worker whose thread has lost its processor to another process waits for a
 * time slice, 3 to 4 ms as a rule.  So do the tasks whose completions come
 * through its ring: the kernel posts them in that thread.  No other worker can
 * help, since that thread itself has to run.  (Two workers and a client on two
 * processors: the slowest of a hundred requests took 4 ms; with one worker 0.8
 * ms, and that one worker served half as many again.)
 *
 * So when workers wait for processors, fewer of them run: those with the lowest
 * numbers.  A worker beyond the limit, when it had run all it had and
 * completions bring it more, hands those tasks over to the injection queue,
 * wakes a worker within the limit if too many of those sleep, and goes to
 * sleep; the tasks wait for their next completions in the rings of the workers
 * that run.  A worker beyond the limit takes nothing from the others, and looks
 * after them only when they are late by two milliseconds; it waits no longer
 * than that for one that was woken and does not come.  After a while one more
 * worker is tried, if processors were idle meanwhile, or after 4 s all the
 * same.  If that is one too many again, the next trial comes later.
 *
 * The wait asks, and the runs of all tasks a second answer.  A worker with
 * which there are more runs by a quarter stays, although it waits: reads of
 * files need no client that runs beside them, so two workers do twice as much.
 * If there were more by a quarter before the limit was lowered, it is restored
 * after the first whole window, and lowered again after a hold, which doubles
 * each time.  So a worker that once loses its processor to another program is
 * missed for some 40 ms, and trials that fail take a hundredth of the time.  A
 * change of the load is followed within 400 ms if processors become idle or
 * busy with it, else within 4 s.
 *
 * Workers that compute are not limited: for them a second thread gets more of
 * the processors, and no task waits for completions.  So other workers are
 * woken, and run, beside a worker that has had something to run for longer than
 * a time slice, unless it serves: most of its runs are short, and due to
 * completions.
 *
 * What would fool it.  A load that changes in the moment of a trial, or runs
 * whose length does.  With more than four workers one more brings less than a
 * quarter, and the wait alone decides.  Short waits are no sign: each wake
 * costs a wait of a few microseconds; at a thousand wakes a second that is
 * much, but not a tenth of the time.  One worker's wait stands for all: if only
 * the thread of worker 0 is bound to a processor that it shares, others sleep
 * beside processors that are free.  A listener's connections come through the
 * ring of the worker that was first to accept there, which wakes for each of
 * them.
 *
 * All of this is advice: each word is written and read relaxed, and a value
 * that is read too late costs a wake or a hand-over too many.  The one
 * requirement is that no task is forgotten, and park() in sched.c sees to that.
 */
#ifndef WEFT_RUNTIME_SCHED_WORKER_LIMIT_H
#define WEFT_RUNTIME_SCHED_WORKER_LIMIT_H

#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"

/* The time that is judged as one. */
#define WEFT__WORKER_LIMIT_WINDOW_NS 20000000u
/* Until one worker more or less is tried, at first. */
#define WEFT__WORKER_LIMIT_HOLD_NS 250000000u
/* The cost of a lost processor. */
#define WEFT__WORKER_LIMIT_SLICE_NS 4000000u
/* A worker that was not seen for that time is late. */
#define WEFT__WORKER_LIMIT_LATE_NS 2000000u

void weft__worker_limit_init(struct weft_runtime *runtime);
void weft__worker_limit_judge(struct weft__worker *worker, uint64_t now_ns);
bool weft__worker_limit_has_enough(struct weft__worker *worker);
bool weft__worker_limit_is_beyond(struct weft__worker *worker, uint64_t now_ns);

/* Hands all tasks of the worker over to the others, except pinned ones, and
 * wakes a worker that may run. */
void weft__worker_limit_hand_over(struct weft__worker *worker, uint64_t now_ns);

static inline bool weft__worker_limit_limits(struct weft_runtime *runtime)
{
	/* relaxed: advice. */
	return weft__unlikely(weft__load(&runtime->worker_limit.max, relaxed) <
			      runtime->workers_count);
}

/* A worker that has not been seen for that long is helped.  Under a worker
 * limit it may have no processor, or be in one long call, and its tasks should
 * stay with it. */
static inline uint64_t weft__worker_limit_late_ns(struct weft_runtime *runtime)
{
	return weft__worker_limit_limits(runtime) ? WEFT__WORKER_LIMIT_LATE_NS :
						    WEFT__LATE_NS;
}

/* At the end of a tick. */
static inline void weft__worker_limit_look(struct weft__worker *worker,
				    uint64_t now_ns)
{
	if (weft__unlikely(now_ns - worker->limit.looked_ns >=
			   WEFT__WORKER_LIMIT_WINDOW_NS))
		weft__worker_limit_judge(worker, now_ns);
}

/* Do enough workers run, given what this one can offer to another? */
static inline bool weft__worker_limit_suffices(struct weft__worker *worker)
{
	return weft__worker_limit_limits(worker->runtime) &&
	       weft__worker_limit_has_enough(worker);
}

/* The worker was claimed as it slept, and is about to be woken. */
static inline void weft__worker_limit_claimed(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;

	if (weft__unlikely(weft__worker_limit_limits(runtime)))
		/* relaxed: advice. */
		weft__store(&worker->woken_ns, runtime->ops->now(runtime),
			    relaxed);
}

/* Is this worker one too many?  At the start of a tick. */
static inline bool weft__worker_limit_gives_way(struct weft__worker *worker,
					 uint64_t now_ns)
{
	return weft__worker_limit_limits(worker->runtime) &&
	       weft__worker_limit_is_beyond(worker, now_ns);
}

#endif
