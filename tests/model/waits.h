/* SPDX-License-Identifier: MIT */
/*
 * Waits - the real queues of runtime/sync as a model: tasks, and threads from
 * outside, that wait for what others have.
 *
 * A task that was suspended goes on with another worker: a use of the old
 * worker afterwards is wrong, and is found.  The stack of a call is overwritten
 * when the call has returned: a later access to a waiter there is found.
 */
#ifndef WEFT_TESTS_MODEL_WAITS_H
#define WEFT_TESTS_MODEL_WAITS_H

#define TASKS_WAITS
#include "tests/model/tasks.h"

/* Options: a lock that spins may see many old values.  One each time is enough
 * to tell the orders apart; the larger models leave them out. */
#define WAITS(max) OPTIONS(.preemptions = (max), .weak = 1)
#define WAITS_NEWEST(max) OPTIONS(.preemptions = (max), .weak = MODEL_NONE)

/* A call in a frame of its own, for call_over(). */
#define CALL(type, name, expression)                     \
	static __attribute__((noinline)) type name(void) \
	{                                                \
		type r = expression;                     \
                                                         \
		return r;                                \
	}

/* The stack that calls used is overwritten. */
static __attribute__((noinline)) void call_over(void)
{
	uint64_t words[64];

	model_data_write(&words);
}

/* The compiler does not announce a copy whose length is in a variable. */
static void *copy_announced(void *to, const void *from, size_t bytes)
{
	model_data_read_at(from, bytes, MODEL__WHERE);
	model_data_write_at(to, bytes, MODEL__WHERE);
	return memcpy(to, from, bytes);
}

/* The data that the holder has alone, or that is published. */
static int64_t guarded;
static bool inside;
/* Each thread's own: how often it got what it asked for. */
static unsigned had[MODEL_THREADS];

static void waits_setup(unsigned tasks)
{
	tasks_setup(tasks);
	guarded = 0;
	inside = false;
	memset(had, 0, sizeof(had));
	model_name(&guarded, "guarded");
	for (unsigned i = 0; i < MODEL_THREADS; i++)
		pool[i].ops_left = WEFT__OPS_BUDGET;
	/* The tasks have waited before. */
	for (unsigned i = 0; i < tasks; i++)
		weft__scope_link(&records[i]);
}

/* This thread runs no task. */
static void waits_foreign(unsigned i)
{
	foreign[i] = true;
}

/* The task of this thread belongs to another runtime. */
static struct weft_runtime other_runtime;

static void waits_elsewhere(unsigned i)
{
	other_runtime = runtime;
	pool[i].runtime = pool[i ^ 4].runtime = &other_runtime;
}

static bool queue_empty(const struct weft__waiters *queue)
{
	return !queue->head && !queue->tail;
}

static bool somebody_waits(const struct weft__waiters *queue,
			   struct weft__lock *lock)
{
	bool waits;

	weft__lock_take(lock);
	waits = queue->head;
	weft__lock_drop(lock);
	return waits;
}

static void cancel(unsigned i)
{
	model_assert(weft_cancel(handle_of(i)) == 0,
		     "a task that runs can be cancelled");
}

THREAD(cancel_0, cancel(0);)
THREAD(cancel_1, cancel(1);)

/* The running task is suspended, and goes on. */
static void suspend_shortly(void)
{
	struct weft__worker *worker = weft__worker_self();

	if (worker)
		(void)weft__give_way(worker);
}

/* Uses the guarded data alone. */
static void hold(bool suspends)
{
	model_assert(!inside, "one alone holds it");
	inside = true;
	guarded++;
	if (suspends)
		suspend_shortly();
	inside = false;
}

/* True: the call has done it. */
static bool done(int r)
{
	call_over();
	model_assert(r >= 0 || r == -ECANCELED, "a wait ends, or is cancelled");
	had[model_self()] += r >= 0;
	return r >= 0;
}

static unsigned had_all(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < MODEL_THREADS; i++)
		sum += had[i];
	return sum;
}

#endif
