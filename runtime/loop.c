/* SPDX-License-Identifier: MIT */
/*
 * Loop - a runtime inside a foreign loop, one turn at a time.
 *
 *	           weft_turn()
 *	RESTS ------------------> AWAKE: steps of the worker
 *	  ^                         |            |
 *	  '---- nothing is left ----'            | 200 us are over
 *	                                         v
 *	AWAKE <----- weft_turn() ----- LEFT: the descriptor stays readable
 *
 * The only worker is the loop's thread, and between two turns it belongs to no
 * worker: calls of the loop's callbacks are those of any other thread, so they
 * wake the worker as other threads do.
 *
 * Invariants
 *   LOOP1  Between two turns the worker is asleep for all others, as in a park
 *       (RESTS), or the descriptor is readable (LEFT).
 *   LOOP2  A rest is a park: the worker announces it, looks once more, and sets
 *       its park word, [park.token].  From then on a wake writes the eventfd
 *       that the ring polls.  Only then is the ring looked at, and what is not
 *       seen there is shown by the descriptor (io/ring/uring/attach.c, SOFT5).
 *       So a task that is submitted at any moment is seen in the turn, ends the
 *       rest before it began, or makes the descriptor readable.
 *   LOOP3  The time of a turn does not depend on the time between turns: one
 *       that goes on looks at the clock first.
 *
 * One worker only.  Another worker could not help with the loop's ring, since
 * the loop is in no turn for as long as its callbacks take; and worker 0 keeps
 * the time of all.
 *
 * Rejected: the worker's loop on a stack of its own, left in the wait of its
 * ring.  Sanitizers and debuggers would have to know one more stack, and the
 * wait is in three places.
 */
#include "runtime/loop.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <weft/loop.h>

#include "runtime/base/thread_number.h"
#include "runtime/sched/exceptions.h"
#include "runtime/sched/sched.h"
#include "runtime/stack/overflow.h"

/* ---- The thread --------------------------------------------------------- */

/* 0, or the error of a call that is the loop's alone. */
static int loop_check(const struct weft_runtime *runtime)
{
	if (!runtime || !runtime->loop_thread)
		return -EINVAL;
	return weft__loop_is_here(runtime) ? 0 : -EPERM;
}

/* The thread is the worker's.  Returns the exceptions that it had. */
static struct weft__exceptions worker_enter(struct weft__worker *worker)
{
	weft__worker_set(worker);
	worker->exceptions = weft__exceptions_of_thread();
	weft__fiber_thread_init(&worker->own);
	return weft__exceptions_take(worker);
}

static void worker_leave(struct weft__worker *worker,
			 struct weft__exceptions exceptions)
{
	/* relaxed: compared with a clock; 0: it needs no help. */
	weft__store(&worker->seen_ns, (uint64_t)0, relaxed);
	weft__exceptions_give(worker, exceptions);
	weft__worker_set(NULL);
}

/* ---- Turns -------------------------------------------------------------- */

/* From RESTS or LEFT. */
static void awake(struct weft__worker *worker)
{
	if (worker->rest.rests)
		weft__worker_rouse(worker);
	else
		worker->tick.ended_ns = 0; /* LOOP3 */
}

static bool time_is_up(struct weft__worker *worker, uint64_t began_ns)
{
	/* A step that did not park in the end has no such time. */
	uint64_t now_ns = worker->tick.ended_ns ?
				  worker->tick.ended_ns :
				  worker->ops->now(worker->runtime);

	return now_ns - began_ns >= WEFT__TICK_NS;
}

static void turn(struct weft__worker *worker)
{
	uint64_t began_ns = worker->ops->now(worker->runtime);
	bool goes_on;

	awake(worker);
	do {
		goes_on = weft__worker_step(worker);
		weft__assert(goes_on, "a runtime ended inside its loop");
		if (worker->rest.rests)
			return;
	} while (!time_is_up(worker, began_ns));
	worker->ops->persist(worker);
}

/* When the next turn is due. */
static weft_nsec next_ns(const struct weft__worker *worker)
{
	if (!worker->rest.rests)
		return 0;
	return worker->rest.until_ns < WEFT_NEVER ? worker->rest.until_ns :
						    WEFT_NEVER;
}

int weft_turn(struct weft_runtime *runtime, weft_nsec *ret_next_ns)
{
	struct weft__exceptions exceptions;
	struct weft__worker *worker;
	int error = loop_check(runtime);

	if (error < 0)
		return error;
	if (weft__worker_self())
		return -EDEADLK;
	worker = runtime->workers[0];
	exceptions = worker_enter(worker);
	turn(worker);
	worker_leave(worker, exceptions);
	if (ret_next_ns)
		*ret_next_ns = next_ns(worker);
	return !worker->rest.rests;
}

int weft_loop_fd(struct weft_runtime *runtime)
{
	int error = loop_check(runtime);

	return error < 0 ? error : runtime->loop_fd;
}

/* ---- Beginning and ending ----------------------------------------------- */

int weft__loop_begin(struct weft_runtime *runtime)
{
	struct weft__worker *worker = runtime->workers[0];

	runtime->loop_fd = worker->ops->attach(worker);
	if (runtime->loop_fd < 0)
		return runtime->loop_fd;
	worker->ops->persist(worker); /* LEFT, LOOP1 */
	worker->rest.wanted = true;
	runtime->loop_thread = weft__thread_number();
	runtime->loop_altstack = weft__overflow_thread_init();
	/* relaxed: for a dump, which reads it while the thread works. */
	weft__store(&worker->thread, (uint32_t)syscall(SYS_gettid), relaxed);
	return 0;
}

int weft__loop_end(struct weft_runtime *runtime)
{
	struct weft__worker *worker = runtime->workers[0];
	struct weft__exceptions exceptions;
	int error = loop_check(runtime);

	if (error < 0)
		return error;
	if (weft__worker_self())
		return -EDEADLK;
	exceptions = worker_enter(worker);
	awake(worker);
	worker->rest.wanted = false;
	worker->ops->detach(worker);
	worker_leave(worker, exceptions);
	weft__overflow_thread_fini(runtime->loop_altstack);
	return 0;
}
