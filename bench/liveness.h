/* SPDX-License-Identifier: MIT */
/*
 * What the parts of bench_liveness share.
 *
 *	bench_liveness.c	the command line, figures, limits, the watch
 *	liveness_crew.c		a task on each worker
 *	liveness_hog.c		hog_*: one task computes, the others go on
 *	liveness_gap.c		gap: no task is passed over
 *	liveness_fair.c		fairness: programs that must come to an end
 *	liveness_outside.c	outside: tasks from other threads have a turn
 *	liveness_idle.c		idle: nothing to do, nothing done
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

/* The cases: run, give the figures, judge them by live_limit(). */
void live_hog(const char *what, const struct live_opts *opts);
void live_gap(const char *what, const struct live_opts *opts);
void live_fairness(const char *what, const struct live_opts *opts);
void live_outside(const char *what, const struct live_opts *opts);
void live_idle(const char *what, const struct live_opts *opts);
void live_handover(const char *what, const struct live_opts *opts);

/* Gives the figure <what>_<figure>. */
void live_emit(const char *what, const char *figure, double value,
	       const char *unit);

/* Says so, and fails the run under --check, if value is not within most. */
void live_limit(const char *what, const char *figure, double value,
		double most, const char *unit);

/* live_emit() and live_limit() at once. */
void live_figure(const char *what, const char *figure, double value,
		 double most, const char *unit);

/* From now on the process fails, saying that `name` did not end, when secs have
 * gone by without the next call.  NULL ends it. */
void live_watch(const char *name, double secs);

/* The sentinel's rescues since the start, which should be none. */
void live_rescues(const char *what);

/* The thread that runs the calling task; asked of the kernel each time. */
pid_t live_thread(void);

/* Fails the process with a sentence. */
_Noreturn void live_fail(const char *what, const char *sentence);

/* Runs fn as the first task of a runtime of --workers. */
void live_run(weft_fn fn, void *arg);

/*
 * Starts, in scope, one task on each worker that stays there; waits until all
 * are in their places, and only then do they go on into body.  Worker 0 is the
 * thread that called weft_run(), here the process's first.
 */
typedef int64_t (*live_body)(unsigned worker, void *arg);
void live_crew(struct weft_scope *scope, unsigned workers, live_body body,
	       void *arg);

#endif
