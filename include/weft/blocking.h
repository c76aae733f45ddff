/* SPDX-License-Identifier: MIT */
/*
 * Blocking work: functions that block their thread, run beside the workers.
 *
 * For what has no weft_ call: getaddrinfo, a compressor, a database's library.
 * It runs on a thread of the runtime's pool, while the task that called waits
 * and its worker runs others.
 *
 *	static struct weft_lane dns = WEFT_LANE_INIT("dns", 32);
 *
 *	r = weft_blocking_lane(&dns, look_up, &query);
 *
 * The pool has no thread until it is needed, and then one for each function
 * that may begin, blocking_threads_max of struct weft_opts at most.  One that
 * has been idle for blocking_idle_ns ends.  Beyond that jobs wait for their
 * turn: first come, first served within a lane; one of each lane in turn.
 *
 * What is slow because it waits for others belongs in a lane with a limit, lest
 * it take all threads; and what computes, in one of as many as there are
 * processors.
 */
#ifndef WEFT_BLOCKING_H
#define WEFT_BLOCKING_H

#include <stdint.h>

#include <weft/config.h>
#include <weft/runtime.h>
#include <weft/task.h>

WEFT_BEGIN_DECLS

/*
 * A lane: a limit for one kind of work, so that when all of it is slow the rest
 * of the pool's threads still serve the others.  It lives where you put it
 * until none of its jobs waits or runs, and serves one runtime at a time (else
 * the process ends with a message).  Zeroed it has no limit, and no name.
 */
struct weft_lane {
	const char *name;      /* for messages */
	unsigned jobs_max; /* jobs that run; 0: no limit but the pool's */
	unsigned reserved;
	uint64_t private_words[8];
};
#define WEFT_LANE_INIT(name, jobs_max) \
	{ (name), (jobs_max), 0, { 0 } }

/*
 * Runs fn(arg) on a thread of the pool and returns its result.  Suspends.  A
 * job that waits for its turn obeys deadlines and cancellation, and then fn is
 * not called.  One that has begun is waited for in full, since nothing can end
 * it and arg may lie on the caller's stack: its result is returned, and the
 * next call reports them.
 *
 * In fn no weft_ call suspends: it runs in no task, but on a thread as any
 * other, with 2 MiB of stack and all signals blocked but those of faults.  It
 * may lock a weft_mutex, send to a channel or call weft_submit(); it must
 * return, and not stop this runtime, which waits for it.  Thread-locals it
 * sets are met by others.
 *
 * fn's result, or without running it -ECANCELED, -ETIMEDOUT, -EAGAIN (there is
 * no thread, nor can one be made), -ENOMEM, -EINVAL (NULL fn), -EPERM (not in a
 * task).  While there are threads, a job that gets none of its own waits for
 * those; the first time, that is said on stderr.
 */
WEFT_API int64_t weft_blocking(weft_fn fn, void *arg) WEFT_WARN_UNUSED;

/* The same in a lane; NULL: in the one of weft_blocking(), which has no
 * limit. */
WEFT_API int64_t weft_blocking_lane(struct weft_lane *lane, weft_fn fn,
				    void *arg) WEFT_WARN_UNUSED;

struct weft_blocking_stats {
	unsigned threads;	  /* there are now, or are being made */
	unsigned running;	  /* jobs that run now */
	unsigned queued;	  /* jobs that wait for their turn */
	unsigned threads_refused; /* could not be made, so far */
	uint64_t done;		  /* jobs that ran, so far */
	uint64_t reserved[5];
};

/* Fills *ret_stats.  From any thread.  0 or -EINVAL. */
WEFT_API int weft_blocking_stats_get(struct weft_runtime *runtime,
				 struct weft_blocking_stats *ret_stats);

WEFT_END_DECLS

#endif
