/* SPDX-License-Identifier: MIT */
/*
 * Upcalls - the functions that the scheduler calls in the rooms above it.  Each
 * comment names the file that defines the function.
 */
#ifndef WEFT_RUNTIME_SCHED_UPCALLS_H
#define WEFT_RUNTIME_SCHED_UPCALLS_H

#include <stdbool.h>
#include <stdint.h>

struct weft__task;
struct weft__worker;
struct weft_runtime;

/* Runs a future on the scheduler's own stack; runtime/future/future.c. */
void weft__future_poll(struct weft__worker *worker, struct weft__task *task);

/* The slow parts of weft__interrupted() and weft__deadline_arm();
 * runtime/task/within.c. */
int weft__interrupted_slow(struct weft__worker *worker,
			   struct weft__task *task);
void weft__deadline_arm_slow(struct weft__worker *worker,
			     struct weft__task *task);

/* For a task in a deadline block: if the deadline has passed,
 * weft__interrupted() reports it, whether or not the alarm has gone off;
 * runtime/task/within.c. */
void weft__within_look(struct weft__worker *worker, struct weft__task *task);

/* Called when a task first waits, or opens a scope: links it to its scope, so
 * that a cancellation can find it; runtime/task/scope.c. */
void weft__scope_link(struct weft__task *task);

/* A worker's part in ending the runtime; runtime/runtime.c. */
bool weft__stop_step(struct weft__worker *worker);
uint64_t weft__stop_wait_ns(struct weft__worker *worker, uint64_t wait_ns);

/* The first task of weft_run() is cancelled, and so ends for good, or its
 * outermost scope is: from now on shutdown_ns runs; runtime/runtime.c. */
void weft__runtime_ends(struct weft_runtime *runtime, bool for_good);

/* That scope has ended; runtime/runtime.c. */
void weft__runtime_goes_on(struct weft_runtime *runtime);

/* The root scope has become empty while draining; runtime/runtime.c. */
void weft__runtime_drained(struct weft_runtime *runtime);

#endif
