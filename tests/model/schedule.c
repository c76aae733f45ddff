/* SPDX-License-Identifier: MIT */
/*
 * Schedule - which thread performs its next operation.
 *
 * A thread stops before each atomic operation (a point), where the choice is to
 * let it go on, for nothing, or to run another thread, for one preemption.
 * Where it cannot go on, because it sleeps, spins or has finished, the choice
 * among the others costs nothing.  Preemption bounding finds most errors at two
 * or three, and keeps the tree polynomial in the number of operations.
 *
 * A thread that was chosen performs its next operation without another choice:
 * between the choice and that operation nothing happened that others see, so
 * another choice there is another choice before.
 *
 * Reduction.  A preempted thread sleeps until another thread does something
 * that conflicts with the operation before which it was preempted: uses the
 * same location, one of the two writing.  To run it sooner would be the same as
 * to let it perform that operation first and to preempt it before the next one,
 * which is another branch, with no more preemptions.  For the same reason a
 * load before which its thread was preempted returns only stores that came
 * since.  Accesses of a thread between two points are not part of this: memory
 * that the threads of a model share must be atomic, announced (data.c), or used
 * so that the order does not matter.  opts.unreduced turns this off, and
 * test_model_reduction.c compares the outcomes of random programs.
 */
#include "tests/model/engine.h"

unsigned model_self(void)
{
	return engine.current;
}

void model_daemon(void)
{
	thread_current()->daemon = true;
}

static bool thread_enabled(const struct thread *thread)
{
	if (thread->state == SPINNING)
		return thread_has_news(thread);
	return thread->state == READY && !thread->asleep;
}

static const char *state_text(enum state state)
{
	static const char *const texts[] = {
		[READY] = "ready",
		[SPINNING] = "spinning",
		[PARKED] = "parked on",
		[WAITING] = "waiting for",
		[LOCKING] = "locking",
		[DONE] = "done",
	};

	return texts[state];
}

/* No thread can run: the end, if only daemons are left, and they sleep. */
static _Noreturn void schedule_exhausted(void)
{
	for (unsigned i = 0; i < engine.threads_n; i++)
		if (engine.threads[i].asleep)
			engine_end(REDUNDANT);
	for (unsigned i = 0; i < engine.threads_n; i++) {
		const struct thread *thread = &engine.threads[i];
		bool asleep = thread->state == PARKED ||
			      thread->state == WAITING;

		if (thread->state == DONE || (thread->daemon && asleep))
			continue;
		engine_violation(thread->where, "deadlock: T%u is %s %s", i,
				 state_text(thread->state),
				 thread->state == SPINNING ?
					 "for ever" :
					 trace_name((uintptr_t)
							    thread->sleeps_on));
	}
	engine_end(FINISHED);
}

static void schedule_switch(unsigned next)
{
	struct thread *from = thread_current();
	struct thread *to = &engine.threads[next];

	to->state = READY;
	engine.chosen = true;
	engine.current = next;
	if (to != from)
		fiber_switch(&from->fiber, &to->fiber);
}

/* The threads that can run, other than except. */
static unsigned schedule_candidates(uint8_t candidates[LANES], unsigned except)
{
	unsigned n = 0;

	for (unsigned i = 0; i < engine.threads_n; i++)
		if (i != except && thread_enabled(&engine.threads[i]))
			candidates[n++] = (uint8_t)i;
	return n;
}

/*
 * Chooses the thread that runs until the next point, where the current thread
 * yields or cannot go on; so this is no preemption.
 */
void schedule_next(void)
{
	uint8_t candidates[LANES];
	unsigned n = schedule_candidates(candidates, LANES);

	if (n == 0)
		schedule_exhausted();
	schedule_switch(candidates[engine_choose(n)]);
}

/* As schedule_next(), for a thread that could go on: that is branch zero. */
static void schedule_preempt(const volatile void *p, enum effect effect)
{
	struct thread *thread = thread_current();
	uint8_t candidates[LANES];
	unsigned n, taken;

	n = schedule_candidates(candidates, engine.current);
	taken = engine_choose(n + 1);
	if (taken == 0)
		return;
	engine.preemptions--;
	thread->preempted = !engine.opts->unreduced;
	thread->preempted_at = engine.stores;
	thread->asleep = thread->preempted && effect != EVERYTHING;
	thread->pending = p;
	thread->effect = effect;
	schedule_switch(candidates[taken - 1]);
}

void schedule_tick(struct thread *thread)
{
	unsigned index = (unsigned)(thread - engine.threads);

	if (thread->time == NEVER - 1)
		engine_violation(thread->where, "too many steps");
	thread->now[index] = ++thread->time;
}

static void schedule_count(const char *where)
{
	thread_current()->where = where;
	if (engine.steps-- > 0)
		return;
	if (engine.opts->prune)
		engine_end(PRUNED);
	engine_violation(where, "livelock: T%u is still running after %d "
			 "operations", engine.current, engine.steps_max);
}

/* Wakes the threads that were preempted before an operation that conflicts with
 * this one. */
void schedule_touch(const volatile void *p, enum effect effect)
{
	for (unsigned i = 0; i < engine.threads_n; i++) {
		struct thread *thread = &engine.threads[i];

		if (!thread->asleep)
			continue;
		if (effect == EVERYTHING ||
		    (thread->pending == p &&
		     (effect == WRITES || thread->effect == WRITES)))
			thread->asleep = false;
	}
}

/* Every atomic operation of a live thread begins here. */
void schedule_point(const char *where, const volatile void *p,
		    enum effect effect)
{
	schedule_count(where);
	thread_current()->preempted = false;
	if (!engine.chosen && engine.preemptions > 0)
		schedule_preempt(p, effect);
	engine.chosen = false;
	schedule_touch(p, effect);
	if (engine.depth >= engine.prefix)
		engine.result->states++;
	schedule_tick(thread_current());
}

/* Sleeps until schedule_wake(). */
void schedule_sleep(enum state state, const volatile void *on)
{
	static uint64_t order;
	struct thread *thread = thread_current();

	thread->state = state;
	thread->sleeps_on = on;
	thread->slept_at = order++;
	schedule_next();
}

/* Makes the thread ready that slept first; false if none sleeps so. */
bool schedule_wake(enum state state, const volatile void *on)
{
	struct thread *first = NULL;

	for (unsigned i = 0; i < engine.threads_n; i++) {
		struct thread *thread = &engine.threads[i];

		if (thread->state == state && thread->sleeps_on == on &&
		    (!first || thread->slept_at < first->slept_at))
			first = thread;
	}
	if (first)
		first->state = READY;
	return first != NULL;
}

void model_spin(const char *where)
{
	struct thread *thread = thread_current();

	if (!engine.live)
		return;
	schedule_count(where);
	if (engine.tracing)
		trace_line("spin");
	thread->state = SPINNING;
	thread->spun_at = engine.stores;
	schedule_next();
	thread_meet_news(thread);
}

static void thread_main(void)
{
	unsigned self = engine.current;

	engine.functions[self](engine.opts->arg);
	if (engine.tracing)
		trace_line("finished");
	engine.threads[self].state = DONE;
	schedule_next();
}

static void thread_reset(struct thread *thread)
{
	thread->now = (clock16){ 0 };
	thread->acquire = thread->now;
	thread->release = thread->now;
	thread->time = 0;
	thread->state = READY;
	thread->daemon = false;
	thread->asleep = false;
	thread->reads_n = 0;
	thread->reads_many = false;
	thread->where = "start";
	fiber_reset(&thread->fiber, thread_main);
}

/* Starts the threads, with a choice of the first one. */
void schedule_begin(void)
{
	for (unsigned i = 0; i < engine.threads_n; i++)
		thread_reset(&engine.threads[i]);
	schedule_next();
}
