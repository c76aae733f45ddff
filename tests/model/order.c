/* SPDX-License-Identifier: MIT */
/*
 * Order - the total order S of the seq_cst operations, as far as it is forced.
 *
 * S need not be the order of execution.  It must agree with happens-before,
 * with modification order, and with reads-before (a load comes before the
 * stores newer than the one that it returned); an execution in which these
 * three, between seq_cst operations, form a cycle is not allowed.  So each
 * operation keeps the set of those that must come before it, closed under
 * "before", and a place in a history is refused if it would put the operation
 * before one of that set.
 *
 *	T0: x = 1 seq_cst, y = 1 relaxed
 *	T1: y == 1 relaxed, x == 0 seq_cst
 *
 * is allowed, though T0 executes first: only the order of execution puts its
 * store before the load in S.  Processors do that.
 */
#include "tests/model/engine.h"

#define BIT(i) ((order_set)1 << (i))

/* Operations that happened before one that knows now; closed. */
static order_set order_known(clock16 now)
{
	order_set set = 0;

	for (unsigned i = 0; i < engine.order_n; i++)
		if (engine.order[i].time <= now[engine.order[i].thread])
			set |= BIT(i) | engine.order[i].before;
	return set;
}

static unsigned order_first(order_set set)
{
	uint64_t low = (uint64_t)set;

	return low ? (unsigned)__builtin_ctzll(low) :
		     64 + (unsigned)__builtin_ctzll((uint64_t)(set >> 64));
}

static order_set order_close(order_set set)
{
	order_set closed = set;

	for (; set; set &= set - 1)
		closed |= engine.order[order_first(set)].before;
	return closed;
}

/* Stores from place i on that are seq_cst. */
static order_set order_newer(const struct location *location, unsigned i)
{
	order_set set = 0;

	for (; i < location->stores_n; i++)
		if (location->stores[i].seq_cst)
			set |= BIT(location->stores[i].order);
	return set;
}

/* Stores below place i that are seq_cst, and seq_cst loads of any there. */
static order_set order_older(const struct location *location, unsigned i)
{
	order_set set = location->order_past;

	while (i-- > 0) {
		set |= location->stores[i].loads;
		if (location->stores[i].seq_cst)
			set |= BIT(location->stores[i].order);
	}
	return set;
}

/*
 * Whether a seq_cst operation of the current thread may go between place - 1
 * and place of the history: a load that returns the store at place - 1, or a
 * store there.  Message is the clock that it acquires.
 */
bool order_allows(const struct location *location, unsigned place,
		  clock16 message, bool stores)
{
	order_set after = order_newer(location, place), before;

	if (after == 0)
		return true;
	before = order_known(clock_join(thread_current()->now, message));
	if (stores)
		before |= order_close(order_older(location, place));
	return (before & after) == 0;
}

/* Enters such an operation, and returns its number; the thread has acquired. */
uint8_t order_enter(const struct location *location, unsigned place,
		    bool stores)
{
	const struct thread *thread = thread_current();
	order_set after = order_newer(location, place);
	order_set before = order_known(thread->now);
	unsigned n = engine.order_n;

	if (n == ORDER_MAX)
		engine_violation(thread->where, "more than %d seq_cst "
				 "operations", ORDER_MAX);
	if (stores)
		before |= order_close(order_older(location, place));
	engine.order[n] = (struct ordered){ before, thread->time,
					    (uint8_t)engine.current };
	engine.order_n++;
	for (unsigned i = 0; after && i < n; i++)
		if ((BIT(i) | engine.order[i].before) & after)
			engine.order[i].before |= before | BIT(n);
	return (uint8_t)n;
}

/* The number of places below i that are about to be forgotten. */
void order_forget(struct location *location, unsigned i)
{
	location->order_past = order_older(location, i);
}
