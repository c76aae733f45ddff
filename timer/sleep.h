/* SPDX-License-Identifier: MIT */
/*
 * Sleep - what waits for time and nothing else is made of.
 */
#ifndef WEFT_TIMER_SLEEP_H
#define WEFT_TIMER_SLEEP_H

#include "runtime/sched/wait.h"

/*
 * The running task, for which the alarm of kind WAKE is armed for deadline_ns,
 * or not at all if that is WEFT_NEVER, suspends until it has gone off.  0; or
 * -ECANCELED, or -ETIMEDOUT, if it is to give up before; both only if
 * deadline_ns has not passed, or a deadline block that holds here ended even
 * earlier.
 */
int weft__sleep_wait(struct weft__worker *worker, struct weft__task *task,
		     const struct weft__alarm *alarm, uint64_t deadline_ns);

#endif
