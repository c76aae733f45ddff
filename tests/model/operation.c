/* SPDX-License-Identifier: MIT */
/*
 * Operation - loads, stores and read-modify-writes of live threads.
 *
 * Each is a point of the schedule, then a choice among the places in the
 * history of its location (memory.c) that the rules allow.  Branch zero is
 * always the newest, what a machine without store buffers would do; the others
 * are counted against opts.weak.
 */
#include "tests/model/engine.h"

#include <string.h>

static bool order_acquires(int order)
{
	return order == MODEL_ACQUIRE || order >= MODEL_ACQ_REL;
}

static bool order_releases(int order)
{
	return order >= MODEL_RELEASE;
}

static uint64_t bits_of(uint64_t value, size_t size)
{
	return size == 8 ? value : value & (((uint64_t)1 << (8 * size)) - 1);
}

static uint64_t rmw_apply(enum model_rmw op, uint64_t old, uint64_t operand)
{
	switch (op) {
	case MODEL_ADD:
		return old + operand;
	case MODEL_SUB:
		return old - operand;
	case MODEL_OR:
		return old | operand;
	case MODEL_AND:
		return old & operand;
	case MODEL_SWAP:
	default:
		return operand;
	}
}

/*
 * Whether the load had to wait for this store.  If the thread was preempted
 * before the load, and the store was there, then another branch loads it first
 * and preempts the thread later.
 */
static bool load_is_new(const struct store *store)
{
	const struct thread *thread = thread_current();

	return !thread->preempted || store->serial > thread->preempted_at;
}

/* One of n places, the newest first. */
uint8_t operation_choose(const uint8_t candidates[STORES_MAX], unsigned n)
{
	unsigned taken;

	if (n == 0)
		engine_end(REDUNDANT);
	if (engine.weak == 0)
		return candidates[0];
	taken = engine_choose(n);
	if (taken != 0)
		engine.weak--;
	return candidates[taken];
}

/* The effect of a load of this store on the current thread. */
void operation_load(struct location *location, struct store *store, int order)
{
	struct thread *thread = thread_current();

	thread_meet(thread, store);
	thread_note(thread, location, store->value);
	if (order_acquires(order))
		thread->now = clock_join(thread->now, store->message);
	else
		thread->acquire = clock_join(thread->acquire, store->message);
}

/* Whether a seq_cst load, or RMW, may read store i. */
static bool order_reads(const struct location *location, unsigned i,
			bool stores)
{
	return order_allows(location, i + 1, location->stores[i].message,
			    stores);
}

uint64_t model_load(const volatile void *p, size_t size, int order,
		    const char *where)
{
	struct location *location;
	uint8_t candidates[STORES_MAX];
	unsigned floor, taken, n = 0;
	struct store *store;
	bool seq_cst;

	if (!engine.live)
		return memory_read(p, size);
	schedule_point(where, p, READS);
	location = memory_touch(p, size);
	seq_cst = order == MODEL_SEQ_CST;
	floor = location_floor(location, thread_current(), seq_cst);
	for (unsigned i = location->stores_n; i-- > floor;)
		if (load_is_new(&location->stores[i]) &&
		    (!seq_cst || order_reads(location, i, false)))
			candidates[n++] = (uint8_t)i;
	taken = operation_choose(candidates, n);
	store = &location->stores[taken];
	operation_load(location, store, order);
	if (seq_cst)
		store->loads |= (order_set)1
				<< order_enter(location, taken + 1u, false);
	if (engine.tracing)
		trace_operation("load", location, store, order);
	return store->value;
}

static struct store store_make(uint64_t value, int order)
{
	const struct thread *thread = thread_current();
	struct store store = { .value = value,
			       .seq_cst = order == MODEL_SEQ_CST };

	store.met = (clock16){ NEVER, NEVER, NEVER, NEVER,
			       NEVER, NEVER, NEVER, NEVER };
	store.met[engine.current] = thread->time;
	store.message = order_releases(order) ? thread->now : thread->release;
	return store;
}

void model_store(volatile void *p, size_t size, uint64_t value, int order,
		 const char *where)
{
	struct location *location;
	struct store store, *stored;
	uint8_t candidates[STORES_MAX];
	unsigned floor, taken, n = 0;

	value = bits_of(value, size);
	if (!engine.live) {
		memory_write(p, size, value);
		return;
	}
	schedule_point(where, p, WRITES);
	location = memory_touch(p, size);
	location_reserve(location);
	store = store_make(value, order);
	floor = location_floor(location, thread_current(), store.seq_cst);
	for (unsigned i = location->stores_n; i-- > floor;)
		if (location_open_after(location, i) &&
		    (!store.seq_cst ||
		     order_allows(location, i + 1, store.message, true)))
			candidates[n++] = (uint8_t)(i + 1);
	taken = operation_choose(candidates, n);
	if (store.seq_cst)
		store.order = order_enter(location, taken, true);
	stored = location_insert(location, taken, &store);
	thread_note(thread_current(), location, value);
	if (engine.tracing)
		trace_operation("store", location, stored, order);
}

/*
 * Replaces store i of the history: reads it, and goes right after it.  The
 * release sequences that the old store is in go on through the new one.
 */
static void operation_replace(struct location *location, unsigned i,
			      uint64_t value, int order)
{
	struct store store;

	operation_load(location, &location->stores[i], order);
	store = store_make(value, order);
	store.rmw = true;
	store.message = clock_join(store.message, location->stores[i].message);
	if (store.seq_cst)
		store.order = order_enter(location, i + 1, true);
	location_insert(location, i + 1, &store);
	thread_note(thread_current(), location, value);
}

uint64_t model_rmw(enum model_rmw op, volatile void *p, size_t size,
		   uint64_t operand, int order, const char *where)
{
	struct location *location;
	uint8_t candidates[STORES_MAX];
	unsigned floor, taken, n = 0;
	uint64_t old;

	if (!engine.live) {
		old = memory_read(p, size);
		memory_write(p, size, bits_of(rmw_apply(op, old, operand),
					      size));
		return old;
	}
	schedule_point(where, p, WRITES);
	location = memory_touch(p, size);
	location_reserve(location);
	floor = location_floor(location, thread_current(),
			       order == MODEL_SEQ_CST);
	for (unsigned i = location->stores_n; i-- > floor;)
		if (location_open_after(location, i) &&
		    (order != MODEL_SEQ_CST || order_reads(location, i, true)))
			candidates[n++] = (uint8_t)i;
	taken = operation_choose(candidates, n);
	old = location->stores[taken].value;
	operation_replace(location, taken,
			  bits_of(rmw_apply(op, old, operand), size), order);
	if (engine.tracing)
		trace_operation("rmw", location, &location->stores[taken + 1],
				order);
	return old;
}

/*
 * The stores that a compare-and-swap may read: one that holds the expected
 * value, if the new value can go right after it; any other, by failing, for
 * which the order of success does not count.
 */
static unsigned cas_candidates(const struct location *location,
			       uint64_t expected, struct model_cas_kind kind,
			       uint8_t candidates[STORES_MAX])
{
	const struct thread *thread = thread_current();
	bool seq_cst = kind.success == MODEL_SEQ_CST;
	unsigned floor = location_floor(location, thread, false);
	unsigned success_floor = location_floor(location, thread, seq_cst);
	unsigned n = 0;

	for (unsigned i = location->stores_n; i-- > floor;) {
		const struct store *store = &location->stores[i];

		bool allowed = load_is_new(store);

		if (store->value == expected)
			allowed = i >= success_floor &&
				  location_open_after(location, i) &&
				  (!seq_cst || order_reads(location, i, true));
		if (allowed)
			candidates[n++] = (uint8_t)i;
	}
	return n;
}

static bool cas_direct(volatile void *p, void *expected, uint64_t desired,
		       size_t size)
{
	uint64_t old = memory_read(p, size);
	bool success = old == memory_read(expected, size);

	if (success)
		memory_write(p, size, desired);
	else
		memory_write(expected, size, old);
	return success;
}

bool model_cas(volatile void *p, void *expected, uint64_t desired,
	       struct model_cas_kind kind, const char *where)
{
	uint64_t value = memory_read(expected, kind.size);
	struct location *location;
	uint8_t candidates[STORES_MAX];
	struct store *store;
	unsigned taken, n;

	desired = bits_of(desired, kind.size);
	if (!engine.live)
		return cas_direct(p, expected, desired, kind.size);
	schedule_point(where, p, WRITES);
	location = memory_touch(p, kind.size);
	location_reserve(location);
	n = cas_candidates(location, value, kind, candidates);
	taken = operation_choose(candidates, n);
	store = &location->stores[taken];
	if (store->value == value) {
		operation_replace(location, taken, desired, kind.success);
		if (engine.tracing)
			trace_operation("cas", location, store + 1,
					kind.success);
		return true;
	}
	operation_load(location, store, kind.failure);
	memory_write(expected, kind.size, store->value);
	if (engine.tracing)
		trace_operation("cas fails", location, store, kind.failure);
	return false;
}
