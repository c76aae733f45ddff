/* SPDX-License-Identifier: MIT */
/*
 * Blocking work: runs functions that block their thread beside the workers.
 *
 * For work that no weft_ call does: mount(), compression, a database
 * library.  The function runs on a thread of the runtime's pool; meanwhile the
 * calling task is suspended and its worker runs other tasks.
 *
 *	static struct weft_lane dns = WEFT_LANE_INIT("dns", 32);
 *
 *	r = weft_blocking_lane(&dns, look_up, &query);
 *
 * The pool starts without threads and makes one for each function that may
 * begin, up to blocking_threads_max of struct weft_opts.  A thread that has
 * been idle for blocking_idle_ns ends.  When all threads are busy, jobs wait:
 * in the order of arrival within a lane, and one job of each lane in turn.
 *
 * Put work that is slow because it waits for other systems into a lane with a
 * limit, so that it cannot take all threads; put computations into a lane with
 * as many jobs as there are processors.
 *
 * weft_read(), weft_pwrite() and the like use the pool as well, in a lane of
 * 64, where they have to wait for a file; weft_fsync(), and the calls of
 * <weft/fs.h> and its kin, do in another lane of 64.
 */
#ifndef WEFT_BLOCKING_H
#define WEFT_BLOCKING_H

#include <stdint.h>

#include <weft/config.h>
#include <weft/runtime.h>
#include <weft/task.h>

WEFT_BEGIN_DECLS

/* A lane: a limit for one kind of work, so that slow work of that kind leaves
 * threads of the pool for the rest.  It lives where you put it, and stays in
 * place until the calls with it have returned.  It serves one runtime at a
 * time: jobs of two at the same time end the process with a message.  Zeroed,
 * it has neither limit nor name. */
struct weft_lane {
	const char *name;      /* for messages; not copied */
	unsigned jobs_max; /* jobs that run; 0: no limit but the pool's */
	unsigned reserved;
	uint64_t private_words[8];
};
#define WEFT_LANE_INIT(name, jobs_max) \
	{ (name), (jobs_max), 0, { 0 } }

/*
 * Runs fn(arg) on a thread of the pool and returns its result.  Suspends.
 * While a job waits for a thread, deadlines and cancellation end the wait, and
 * fn is not called.  A job that has begun is waited for in full, since nothing
 * can stop fn, and arg may point to the caller's stack: the call returns fn's
 * result, and the next call reports the interruption.
 *
 * fn does not run in a task, but in an ordinary thread, with 2 MiB of stack and
 * the signal mask of the thread that started the runtime, which a child process
 * inherits.  Calls that need a task return -EPERM there.  fn may lock a
 * weft_mutex, send to a channel (which blocks the thread) or call
 * weft_submit().  It must return, and must not stop this runtime, which waits
 * for it.  Thread-locals that it sets remain for later jobs on the thread.
 *
 * Returns fn's result, or without running fn -ECANCELED, -ETIMEDOUT, -EAGAIN
 * (the pool has no thread and cannot make one), -ENOMEM, -EINVAL (NULL fn), or
 * -EPERM (not in a task).  If a thread cannot be made but others exist, the job
 * waits for those; the first time, a message is printed on stderr.
 */
WEFT_API int64_t weft_blocking(weft_fn fn, void *arg) WEFT_WARN_UNUSED;

/* The same in a lane.  NULL: the lane of weft_blocking(), which has no
 * limit. */
WEFT_API int64_t weft_blocking_lane(struct weft_lane *lane, weft_fn fn,
				    void *arg) WEFT_WARN_UNUSED;

struct weft_blocking_stats {
	unsigned threads;	  /* that exist, or are being made */
	unsigned running;	  /* jobs that run now */
	unsigned queued;	  /* jobs that have not begun */
	unsigned threads_refused; /* that could not be made, so far */
	uint64_t done;		  /* jobs that ran, so far */
	uint64_t reserved[5];
};

/* Fills *ret_stats.  From any thread while the runtime exists; does not
 * suspend.  Returns 0, or -EINVAL (a NULL pointer). */
WEFT_API int weft_blocking_stats_get(struct weft_runtime *runtime,
				 struct weft_blocking_stats *ret_stats);

WEFT_END_DECLS

#endif
