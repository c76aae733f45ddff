/* SPDX-License-Identifier: MIT */
/*
 * Futures - tasks without a stack as a model: record i is that of a future, and
 * a thread polls the future whenever it is queued.  Several threads may do so,
 * as workers that steal from each other.  A model includes this file after
 * tasks.h.
 *
 * The room of a future (struct future) is overwritten when the future has
 * ended, so that a later access to it is found.
 */
#ifndef WEFT_TESTS_MODEL_FUTURES_H
#define WEFT_TESTS_MODEL_FUTURES_H

#include "tests/model/tasks.h"

/* One step of a future, which returns WEFT_PENDING or a result. */
typedef int64_t future_step(void);

static struct future {
	future_step *step;
	struct weft__future_room room;
	unsigned polls;
	bool inside, ended;
} futures[RECORDS];

/* The future that is polled by this thread. */
static struct weft__task *future_self(void)
{
	return weft__worker_self()->polled;
}

/* The poll function of all futures; the state is the number of the future. */
static int64_t future_poll(void *state)
{
	struct future *f = &futures[*(const unsigned *)state];
	int64_t result;

	model_assert(!f->inside && !f->ended, "one at a time polls a future");
	f->inside = true;
	f->polls++;
	result = f->step();
	f->inside = false;
	if (result == WEFT_PENDING)
		return result;
	f->ended = true;
	memset(&f->room, 0xff, sizeof(f->room));
	model_free(&f->room, sizeof(f->room));
	return result;
}

static void futures_clear(void)
{
	memset(futures, 0, sizeof(futures));
	model_name(futures, "future");
}

/* The record becomes that of future i. */
static void future_make(struct weft__task *task, unsigned i, future_step *step)
{
	futures[i] = (struct future){ .step = step };
	futures[i].room.own_ns = WEFT_NEVER;
	futures[i].room.inherited_ns = WEFT_NEVER;
	task->stack = NULL;
	task->fn = future_poll;
	memcpy(task->arg, &i, sizeof(i));
	weft__future_init(task);
	task->room = &futures[i].room;
}

/* Puts a queued future in the place of task i, which thread i would run. */
static void future_setup(unsigned i, future_step *step)
{
	future_make(&records[i], i, step);
	pool[i].current = NULL;
	/* As if the future had awaited something before. */
	if (!(records[i].flags & WEFT__TASK_LINKED))
		weft__scope_link(&records[i]);
	runs[i].count = 1;
}

/* The task or future that its end has woken runs. */
static void future_run_next(struct weft__worker *worker)
{
	struct weft__task *next = weft__lifo_take(worker);

	if (next)
		task_ready(next);
}

static void future_turn(unsigned i)
{
	struct weft__worker *worker = weft__worker_self();

	model_assert(model_wait(&runs[i]) == 1, "a future was queued twice");
	/* relaxed: no other thread changes it while the future is queued. */
	model_assert(!(weft__load(&records[i].state, relaxed) & WEFT__PARKED),
		     "a future is polled that is parked");
	weft__future_poll(worker, &records[i]);
	future_run_next(worker);
}

/* A worker that polls the future whenever it is queued. */
static void future_serve(unsigned i)
{
	model_daemon();
	for (;;)
		future_turn(i);
}

/* All have ended, and nothing is queued. */
static void futures_check(void)
{
	tasks_check();
	for (unsigned i = 0; i < RECORDS; i++)
		model_assert(!futures[i].step || futures[i].ended,
			     "a future was left asleep");
}

#endif
