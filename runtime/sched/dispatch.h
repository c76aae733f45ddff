/* SPDX-License-Identifier: MIT */
/*
 * Dispatch - the parts of a worker's path between two tasks (worker.h) that are
 * not hot, and the wakes of tasks and of sleeping workers.
 */
#ifndef WEFT_RUNTIME_SCHED_DISPATCH_H
#define WEFT_RUNTIME_SCHED_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

struct weft__task;
struct weft__worker;
struct weft_runtime;

struct weft__task *weft__look_around(struct weft__worker *worker);
struct weft__task *weft__refill(struct weft__worker *worker);
void weft__push_slow(struct weft__worker *worker, struct weft__task *task);
void weft__push_backlog(struct weft__worker *worker, struct weft__task *task);
void weft__push_spawned(struct weft__worker *worker, struct weft__task *task);
void weft__push_pinned(struct weft__worker *worker, struct weft__task *task);
void weft__notify_peers(struct weft__worker *worker);
void weft__notify_peers_late(struct weft__worker *worker);
void weft__notify_peers_fenced(struct weft__worker *worker);
void weft__fuse_set(struct weft__worker *worker);
bool weft__fuse_renew(struct weft__worker *worker);
void weft__note_longest(struct weft__worker *worker, uint64_t now_ns,
			int32_t runs);
void weft__inbox_drain(struct weft__worker *worker);
struct weft__task *weft__take_injected(struct weft__worker *worker);
/* The injection queue's turn, if it is that. */
struct weft__task *weft__turn_if_due(struct weft__worker *worker,
				     uint64_t now_ns);

/* Queues a ready task, from any thread, for any worker of the runtime.  `here`
 * is the calling worker, or NULL. */
void weft__enqueue(struct weft_runtime *runtime, struct weft__worker *here,
		   struct weft__task *task);

/* Wakes the task of that id, which runs next here: for hand-overs between
 * tasks.  Returns whether it waited. */
bool weft__wake_next(struct weft_runtime *runtime, struct weft__worker *here,
		     uint64_t id);

/* The full check after a push ([idle.push]); wakes one worker if one is needed.
 * `here` is the calling worker, or NULL. */
void weft__wake_one(struct weft_runtime *runtime, struct weft__worker *here);

/* Wakes the sleeper with the lowest number, even if another worker is on its
 * way. */
void weft__wake_lowest(struct weft_runtime *runtime, struct weft__worker *here);

/* Wakes a worker that was claimed, or one that must look at something.  True:
 * it slept.  False: it is awake, or another thread wakes it. */
bool weft__unpark(struct weft__worker *from, struct weft__worker *to);

#endif
