/* SPDX-License-Identifier: MIT */
/*
 * Memory - the history of each location, and the part that a thread may see.
 *
 *	oldest                                            newest
 *	[ initial ] [ T0: 1 ] [ T1: 2, rmw ] [ T0: 3 ] [ T2: 4, seq_cst ]
 *	                ^ floor of T1
 *
 * The floor of a thread is the newest store that any thread met before, in
 * happens-before, the thread's current operation.  Loads return the floor or
 * anything newer; stores go after the floor, but never between an RMW and the
 * store that it replaced.  For seq_cst operations the floor is also not below a
 * store that was met before the last fence, and order.c may refuse a place.
 */
#include "tests/model/engine.h"

#include <string.h>

uint64_t memory_read(const volatile void *p, size_t size)
{
	switch (size) {
	case 1:
		return *(const volatile uint8_t *)p;
	case 2:
		return *(const volatile uint16_t *)p;
	case 4:
		return *(const volatile uint32_t *)p;
	default:
		return *(const volatile uint64_t *)p;
	}
}

void memory_write(volatile void *p, size_t size, uint64_t value)
{
	switch (size) {
	case 1:
		*(volatile uint8_t *)p = (uint8_t)value;
		break;
	case 2:
		*(volatile uint16_t *)p = (uint16_t)value;
		break;
	case 4:
		*(volatile uint32_t *)p = (uint32_t)value;
		break;
	default:
		*(volatile uint64_t *)p = value;
		break;
	}
}

/* Forgets the past of the location, which begins with its plain value then. */
void location_renew(struct location *location)
{
	location->stores_n = 0;
	location->order_past = 0;
	location->used = (clock16){ 0 };
	location->woken = location->used;
}

/* The entry of p, made if there is none; its history may still be empty. */
struct location *memory_find(const volatile void *p)
{
	uintptr_t address = (uintptr_t)p;
	size_t slot = (address * 0x9e3779b97f4a7c15u) >> (64 - TABLE_SHIFT);
	struct location *location;

	while (engine.table[slot].generation == engine.generation) {
		location = &engine.locations[engine.table[slot].index];
		if (location->address == address)
			return location;
		slot = (slot + 1) % (1u << TABLE_SHIFT);
	}
	if (engine.locations_n == LOCATIONS_MAX)
		engine_violation(NULL, "more than %d locations", LOCATIONS_MAX);
	engine.table[slot].generation = engine.generation;
	engine.table[slot].index = (uint16_t)engine.locations_n;
	engine.addresses[engine.locations_n] = address;
	location = &engine.locations[engine.locations_n++];
	location->address = address;
	location_renew(location);
	return location;
}

struct store *location_newest(struct location *location)
{
	return &location->stores[location->stores_n - 1];
}

/* The location of an atomic operation, with at least one store. */
struct location *memory_touch(const volatile void *p, size_t size)
{
	struct location *location = memory_find(p);
	uint64_t value = memory_read(p, size);
	const char *where = thread_current()->where;

	data_check_alive(location->address);
	data_check_atomic(location->address);
	location->used[engine.current] = thread_current()->time;
	if (location->stores_n == 0) {
		location->size = (uint8_t)size;
		location->stores_n = 1;
		location->stores[0] = (struct store){ .value = value };
		return location;
	}
	if (location->size != size)
		engine_violation(where, "%s: operations of different sizes",
				 trace_name(location->address));
	if (location_newest(location)->value != value)
		engine_violation(where, "%s: changed by a plain store; "
				 "see model_renew()",
				 trace_name(location->address));
	return location;
}

/* The oldest store that the thread may still see. */
unsigned location_floor(const struct location *location,
			const struct thread *thread, bool seq_cst)
{
	unsigned i = location->stores_n - 1u;

	for (; i > 0; i--) {
		const struct store *store = &location->stores[i];

		if (clock_reaches(thread->now, store->met))
			break;
		if (seq_cst && clock_reaches(engine.fences, store->met))
			break;
	}
	return i;
}

/* Whether a store may go right after this one. */
bool location_open_after(const struct location *location, unsigned i)
{
	return i + 1u == location->stores_n || !location->stores[i + 1].rmw;
}

/*
 * Makes room for a store: forgets the stores below the floor of every thread,
 * which no thread can see any more.
 */
void location_reserve(struct location *location)
{
	unsigned floor = location->stores_n;

	if (location->stores_n < STORES_MAX)
		return;
	for (unsigned i = 0; i < engine.threads_n; i++) {
		unsigned own = location_floor(location, &engine.threads[i],
					      false);

		if (engine.threads[i].state != DONE && own < floor)
			floor = own;
	}
	if (floor == 0)
		engine_violation(thread_current()->where,
				 "%s: history of more than %d stores",
				 trace_name(location->address),
				 STORES_MAX);
	order_forget(location, floor);
	location->stores_n = (uint8_t)(location->stores_n - floor);
	memmove(location->stores, location->stores + floor,
		location->stores_n * sizeof(struct store));
}

/* Puts a store at place i of the history. */
struct store *location_insert(struct location *location, unsigned i,
			      const struct store *value)
{
	struct store *store = &location->stores[i];
	unsigned after = location->stores_n - i;

	memmove(store + 1, store, after * sizeof(*store));
	*store = *value;
	store->serial = ++engine.stores;
	location->stores_n++;
	if (after == 0)
		memory_write((volatile void *)location->address, location->size,
			    value->value);
	return store;
}

/* Makes the thread meet a store: from then on it sees nothing older. */
void thread_meet(const struct thread *thread, struct store *store)
{
	size_t index = (size_t)(thread - engine.threads);

	if (store->met[index] > thread->time)
		store->met[index] = thread->time;
}

/* Remembers what the thread knows, for its next spin hint. */
void thread_note(struct thread *thread, struct location *location,
		 uint64_t value)
{
	unsigned i = 0;

	while (i < thread->reads_n && thread->reads[i].location != location)
		i++;
	if (i == READS_MAX) {
		thread->reads_many = true;
		return;
	}
	if (i == thread->reads_n)
		thread->reads_n++;
	thread->reads[i] = (struct read){ location, value };
}

/* Whether a spinning thread would find anything new. */
bool thread_has_news(const struct thread *thread)
{
	if (thread->reads_many)
		return true;
	for (unsigned i = 0; i < thread->reads_n; i++) {
		const struct read *read = &thread->reads[i];

		if (read->location->stores_n == 0 ||
		    location_newest(read->location)->value != read->value)
			return true;
	}
	return thread->reads_n == 0 && engine.stores != thread->spun_at;
}

/* Stores arrive in finite time: those that the thread spun on have arrived. */
void thread_meet_news(struct thread *thread)
{
	for (unsigned i = 0; i < thread->reads_n; i++) {
		struct location *location = thread->reads[i].location;

		schedule_touch((void *)location->address, READS);
		if (location->stores_n > 0)
			thread_meet(thread, location_newest(location));
	}
	thread->reads_n = 0;
	thread->reads_many = false;
}
