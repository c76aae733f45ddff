/* SPDX-License-Identifier: MIT */
/*
 * Sleep - the wait that sleeps, timers and intervals share.
 */
#ifndef WEFT_TIMER_SLEEP_H
#define WEFT_TIMER_SLEEP_H

#include "runtime/sched/wait.h"

/*
 * Suspends the running task until its alarm has fired.  The alarm of kind WAKE
 * is armed for deadline_ns, or not at all if that is WEFT_NEVER.  0; or
 * -ECANCELED or -ETIMEDOUT, if the wait was interrupted before.  The errors are
 * returned only if deadline_ns has not passed, or a deadline block around the
 * call ended even earlier.
 */
int weft__sleep_wait(struct weft__worker *worker, struct weft__task *task,
		     const struct weft__alarm *alarm, uint64_t deadline_ns);

#endif
