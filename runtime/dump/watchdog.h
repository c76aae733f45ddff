/* SPDX-License-Identifier: MIT */
/*
 * Watchdog - a thread beside the workers, which dumps on a signal or for a
 * client of the dump socket, and reports when a task keeps its worker for too
 * long, or when no task can go on.
 *
 * It waits for the signal and the client without a limit.  To find stalls it
 * reads the workers' counters four times per stall length.  It touches no task
 * before a worker has stood still for the whole length.
 *
 * Orderings
 *   [watchdog.end]  `ends` store release, then a write to the eventfd -> load
 *       acquire, after the eventfd was read.
 */
#ifndef WEFT_RUNTIME_DUMP_WATCHDOG_H
#define WEFT_RUNTIME_DUMP_WATCHDOG_H

#include "runtime/sched/runtime.h"

/* Starts the watchdog, if the options ask for one.  Called before tasks run.
 * 0; -EINVAL (no such signal), -EBUSY (too many runtimes have a signal),
 * -EADDRINUSE and the other errors of socket(2) and bind(2), -EAGAIN, -ENOMEM,
 * -EMFILE. */
int weft__watchdog_start(struct weft_runtime *runtime,
			const struct weft_opts *opts);

/* Called while the driver is open, when no task is left, or when those that are
 * left were abandoned.  Waits for a dump that is under way; from by_ns on not
 * for a client that does not read. */
void weft__watchdog_stop(struct weft_runtime *runtime, uint64_t by_ns);

#endif
