/* SPDX-License-Identifier: MIT */
/*
 * Shared by the parts of bench_liveness.
 *
 *	bench_liveness.c	the command line, figures, limits, the watch
 *	liveness_crew.c		a task on each worker
 *	liveness_keep.c		workers that are kept busy for a moment
 *	liveness_hog.c		hog_*: one task computes, others make progress
 *	liveness_gap.c		gap: no task is passed over
 *	liveness_fair.c		fairness: programs that must end
 *	liveness_outside.c	outside: tasks from other threads get their turn
 *	liveness_idle.c		idle: no work, no activity
 *	liveness_handover.c	handover: no wake-up is lost
 */
#ifndef BENCH_LIVENESS_H
#define BENCH_LIVENESS_H

#include "bench/bench.h"
#include "runtime/base/atomic.h"

enum { LIVE_WORKERS_MAX = 64 };

struct live_opts {
	unsigned workers;
	unsigned reps; /* 0: the case's own */
	double secs;   /* 0: the case's own */
};

/* Each case runs, emits its figures and checks them with live_limit(). */
void live_hog(const char *what, const struct live_opts *opts);
void live_gap(const char *what, const struct live_opts *opts);
void live_fairness(const char *what, const struct live_opts *opts);
void live_outside(const char *what, const struct live_opts *opts);
void live_idle(const char *what, const struct live_opts *opts);
void live_handover(const char *what, const struct live_opts *opts);

/* Emits the figure <what>_<figure>. */
void live_emit(const char *what, const char *figure, double value,
	       const char *unit);

/* If value exceeds max, reports it, and fails the run under --check. */
void live_limit(const char *what, const char *figure, double value,
		double max, const char *unit);

/* live_emit() and live_limit(). */
void live_figure(const char *what, const char *figure, double value,
		 double max, const char *unit);

/* If no other call of this function follows within secs, the process fails and
 * reports that `name` did not end.  NULL ends the watch. */
void live_watch(const char *name, double secs);

/* Checks that the monitor has made no rescues since the start. */
void live_rescues(const char *what);

/* The thread that runs the calling task; a system call each time. */
pid_t live_thread(void);

/* Ends the process with a message and status 1. */
_Noreturn void live_fail(const char *what, const char *sentence);

/* Runs fn as the first task of a runtime of --workers. */
void live_run(weft_fn fn, void *arg);

/*
 * Starts, in scope, one task on each worker, pinned there, and waits until each
 * worker has its task.  Only then do the tasks call body.  Worker 0 is the
 * thread that called weft_run(), here the first thread of the process.
 */
typedef int64_t (*live_body)(unsigned worker, void *arg);
void live_crew(struct weft_scope *scope, unsigned workers, live_body body,
	       void *arg);

/* Starts the keeper of this worker, whose number in the crew is `worker`. */
void live_keeper_start(struct weft_scope *scope, unsigned worker);

/*
 * Until live_let_others_go(), all workers but the caller's, which has the
 * number `self`, run their keepers: tasks that are started meanwhile run on
 * this one, and stay until they wait.  A keeper that was let go may be asked
 * again at once.
 */
void live_keep_others(unsigned workers, unsigned self);
void live_let_others_go(void);

/* The keepers of these workers return. */
void live_keepers_end(unsigned workers);

#endif
