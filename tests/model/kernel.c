/* SPDX-License-Identifier: MIT */
/*
 * Kernel - the operating system's part: futex, eventfd, mutex, membarrier.
 *
 * A call that waits takes its thread out of the schedule until another thread
 * wakes it (schedule.c).  A park compares the futex word with a value that the
 * memory model allows, but never with one older than a store that was met
 * before the last unpark.  An eventfd and a mutex synchronise as the kernel's
 * locks do:
 * each carries the clocks of the threads that posted or unlocked it.
 */
#include "tests/model/engine.h"

#include <string.h>

static clock16 clock_get(const int16_t lanes[LANES])
{
	clock16 clock;

	memcpy(&clock, lanes, sizeof(clock));
	return clock;
}

static void clock_put(int16_t lanes[LANES], clock16 clock)
{
	memcpy(lanes, &clock, sizeof(clock));
}

/* Stores that were met before the last unpark have arrived. */
static unsigned park_floor(const struct location *location)
{
	unsigned floor = location_floor(location, thread_current(), false);
	unsigned i = location->stores_n - 1u;

	while (i > floor &&
	       !clock_reaches(location->woken, location->stores[i].met))
		i--;
	return i;
}

bool model_park_at(const volatile uint32_t *p, uint32_t expected,
		   const char *where)
{
	struct location *location;
	uint8_t candidates[STORES_MAX];
	struct store *store;
	unsigned floor, n = 0;

	if (!engine.live)
		engine_violation(where, "park outside of a thread");
	schedule_point(where, p, WRITES);
	location = memory_touch(p, sizeof(*p));
	floor = park_floor(location);
	for (unsigned i = location->stores_n; i-- > floor;)
		candidates[n++] = (uint8_t)i;
	store = &location->stores[operation_choose(candidates, n)];
	operation_load(location, store, MODEL_RELAXED);
	if (engine.tracing)
		trace_operation(store->value == expected ? "park" :
							   "no park",
				location, store, MODEL_RELAXED);
	if (store->value != expected)
		return false;
	schedule_sleep(PARKED, p);
	floor = park_floor(location);
	thread_meet(thread_current(), &location->stores[floor]);
	if (engine.tracing)
		trace_line("unparked");
	return true;
}

void model_unpark_at(const volatile uint32_t *p, unsigned n, const char *where)
{
	struct location *location;

	if (!engine.live)
		return;
	schedule_point(where, p, WRITES);
	location = memory_touch(p, sizeof(*p));
	location->woken = clock_join(location->woken, thread_current()->now);
	if (engine.tracing)
		trace_line("unpark    %s", trace_name((uintptr_t)p));
	while (n > 0 && schedule_wake(PARKED, p))
		n--;
}

void model_post_at(struct model_event *event, const char *where)
{
	if (!engine.live) {
		event->count++;
		return;
	}
	schedule_point(where, event, WRITES);
	if (engine.tracing)
		trace_line("post      %s", trace_name((uintptr_t)event));
	event->count++;
	clock_put(event->clock, clock_join(clock_get(event->clock),
					   thread_current()->now));
	schedule_wake(WAITING, event);
}

static uint64_t event_take(struct model_event *event)
{
	struct thread *thread = thread_current();
	uint64_t count = event->count;

	if (count > 0)
		thread->now = clock_join(thread->now, clock_get(event->clock));
	event->count = 0;
	return count;
}

uint64_t model_wait_at(struct model_event *event, const char *where)
{
	if (!engine.live)
		engine_violation(where, "wait outside of a thread");
	schedule_point(where, event, WRITES);
	if (engine.tracing)
		trace_line("wait      %s", trace_name((uintptr_t)event));
	/* Another waiter may have taken the count before this one runs. */
	while (event->count == 0)
		schedule_sleep(WAITING, event);
	return event_take(event);
}

uint64_t model_poll_at(struct model_event *event, const char *where)
{
	if (engine.live)
		schedule_point(where, event, WRITES);
	if (engine.tracing)
		trace_line("poll      %s", trace_name((uintptr_t)event));
	return event_take(event);
}

void model_lock_at(struct model_mutex *mutex, const char *where)
{
	struct thread *thread = thread_current();

	if (!engine.live)
		return;
	schedule_point(where, mutex, WRITES);
	if (engine.tracing)
		trace_line("lock      %s", trace_name((uintptr_t)mutex));
	if (mutex->owner == engine.current + 1)
		engine_violation(where, "T%u locks %s twice", engine.current,
				 trace_name((uintptr_t)mutex));
	while (mutex->owner != 0)
		schedule_sleep(LOCKING, mutex);
	mutex->owner = engine.current + 1;
	thread->now = clock_join(thread->now, clock_get(mutex->clock));
}

void model_unlock_at(struct model_mutex *mutex, const char *where)
{
	if (!engine.live)
		return;
	schedule_point(where, mutex, WRITES);
	if (engine.tracing)
		trace_line("unlock    %s", trace_name((uintptr_t)mutex));
	if (mutex->owner != engine.current + 1)
		engine_violation(where, "T%u unlocks %s of another",
				 engine.current, trace_name((uintptr_t)mutex));
	mutex->owner = 0;
	clock_put(mutex->clock, thread_current()->now);
	/* Wakes all of them: the next holder is a choice, not the first of a
	 * queue. */
	while (schedule_wake(LOCKING, mutex))
		;
}

/*
 * A seq_cst fence of one thread: it sees everything that was met before
 * earlier fences, and the newest seq_cst store of each location; what it has
 * met, later fences and seq_cst operations see.
 */
static void fence(struct thread *thread)
{
	schedule_tick(thread);
	thread->now = clock_join(thread->now, thread->acquire);
	for (unsigned i = 0; i < engine.locations_n; i++) {
		struct location *location = &engine.locations[i];
		unsigned j = location->stores_n;

		while (j-- > 1)
			if (location->stores[j].seq_cst) {
				thread_meet(thread, &location->stores[j]);
				break;
			}
	}
	thread->now = clock_join(thread->now, engine.fences);
	engine.fences = clock_join(engine.fences, thread->now);
	thread->release = thread->now;
}

void model_heavy_barrier_at(const char *where)
{
	if (!engine.live)
		return;
	schedule_point(where, NULL, EVERYTHING);
	if (engine.tracing)
		trace_line("barrier   begins");
	fence(thread_current());
	for (unsigned i = 0; i < engine.threads_n; i++) {
		if (i == engine.current)
			continue;
		/* The other threads take part in it one by one, not
		 * together. */
		if (engine.threads[i].state != DONE)
			schedule_point(where, NULL, EVERYTHING);
		fence(&engine.threads[i]);
		if (engine.tracing)
			trace_line("barrier   in T%u", i);
	}
	schedule_point(where, NULL, EVERYTHING);
	fence(thread_current());
	if (engine.tracing)
		trace_line("barrier   ends");
}
