/* SPDX-License-Identifier: MIT */
#ifndef WEFT_RUNTIME_SCHED_SCHED_H
#define WEFT_RUNTIME_SCHED_SCHED_H

#include "runtime/sched/worker.h"

/* One turn of the loop: a tick, or a search, or a park.  False: the runtime is
 * over for this worker. */
bool weft__worker_step(struct weft__worker *worker);

/* Ends a worker's rest (worker->rest.rests), in which a step has left it. */
void weft__worker_rouse(struct weft__worker *worker);

#endif
