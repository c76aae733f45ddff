/* SPDX-License-Identifier: MIT */
/*
 * Lookout - a thread beside the workers, which dumps when it is asked to, by a
 * signal or by who connects to a socket, and speaks up by itself when a task
 * keeps its worker for too long, or when none can go on.
 *
 * It waits for the first two without a limit.  For the others it looks at the
 * workers' counters four times in the length that is too long, and touches no
 * task before one of them has stood still for that.
 *
 * Orderings
 *   [watchdog.end]  `ends` store release, then a write to the bell -> load
 *       acquire, after it has rung.
 */
#ifndef WEFT_RUNTIME_DUMP_WATCHDOG_H
#define WEFT_RUNTIME_DUMP_WATCHDOG_H

#include "runtime/sched/runtime.h"

/* If the options ask for one; before tasks run.  0; -EINVAL (no such signal),
 * -EBUSY (too many runtimes have a signal), -EADDRINUSE and what else socket(2)
 * and bind(2) say, -EAGAIN, -ENOMEM, -EMFILE. */
int weft__watchdog_start(struct weft_runtime *runtime,
			const struct weft_opts *opts);

/* When no task is left, or those that are were abandoned; the driver is open.
 * A dump that is under way is waited for. */
void weft__watchdog_stop(struct weft_runtime *runtime);

#endif
