/* SPDX-License-Identifier: MIT */
/*
 * Suite runtime/slot: the hand-off slot between real threads.
 *
 * The owner fills the slot, fills it again while it is full, and empties it,
 * while two helpers take from it.  Each item that was put in must come out
 * exactly once, on one side, with the contents that were written before.
 *
 * With WEFT_TEST_LONG in the environment it runs thirty times as often.
 */
#include <pthread.h>
#include <sched.h>

#include "runtime/sched/handoff_slot.h"
#include "tests/support/io_kit.h"

enum { HELPERS = 2, THINGS = 64, STOLEN = 2000, STOLEN_LONG = 60000 };

/* Stands in for a task. */
struct thing {
	_Alignas(16) uint64_t written; /* the owner's, then its taker's */
	weft__atomic(bool) in_use;
};

static struct thing things[THINGS];
static struct weft__handoff_slot slot;
static weft__atomic(uint64_t) stolen, wrong;
static weft__atomic(bool) over;
static bool fenced;

/* The thread that takes a thing has it alone, and sees the last write to it. */
static void have(struct weft__task *task, uint64_t *ret_sum)
{
	struct thing *thing = (void *)task;

	*ret_sum += thing->written;
	if (!thing->written)
		/* relaxed: read when the threads have ended. */
		weft__add(&wrong, (uint64_t)1, relaxed);
	thing->written = 0;
	/* pairs: new_thing() */
	weft__store(&thing->in_use, false, release);
}

static void *help(void *arg)
{
	/* Its address identifies the helper; nothing else is used. */
	const struct weft__worker *self = arg;
	struct weft__task *task;
	uint64_t sum = 0;

	/* relaxed: the helper sees the flag eventually; nothing depends on
	 * it. */
	while (!weft__load(&over, relaxed)) {
		task = weft__handoff_slot_steal(&slot, self, fenced);
		if (!task) {
			sched_yield();
			continue;
		}
		have(task, &sum);
		/* relaxed: a count. */
		weft__add(&stolen, (uint64_t)1, relaxed);
	}
	return (void *)(uintptr_t)sum;
}

static struct weft__task *new_thing(uint64_t n)
{
	struct thing *thing;

	/* The helpers hold at most two items, and the slot at most one. */
	do
		thing = &things[n++ % THINGS];
	/* pairs: have() */
	while (weft__load(&thing->in_use, acquire));
	/* relaxed: the item is the owner's. */
	weft__store(&thing->in_use, true, relaxed);
	return (void *)thing;
}

/* Spins for about as long as a heavy barrier takes: otherwise the owner would
 * take each item back before a helper gets it.  The helpers may also have no
 * processor of their own. */
static void dawdle(uint64_t n)
{
	weft_nsec until_ns = weft_now() + (weft_nsec)(n * 397 % 8192);

	while (weft_now() < until_ns)
		weft__spin_hint();
	if (n % 16 == 0)
		sched_yield();
}

static void empty(uint64_t *ret_sum)
{
	struct weft__task *task = weft__handoff_slot_take(&slot, fenced);

	if (task)
		have(task, ret_sum);
}

static void own(uint64_t *ret_given, uint64_t *ret_sum)
{
	uint64_t max = getenv("WEFT_TEST_LONG") ? STOLEN_LONG : STOLEN;
	struct weft__task *task;
	uint64_t n = 0;

	/* relaxed: a count. */
	while (weft__load(&stolen, relaxed) < max) {
		task = new_thing(++n);
		((struct thing *)(void *)task)->written = n;
		*ret_given += n;
		if (!weft__handoff_slot_has(&slot)) {
			weft__handoff_slot_put(&slot, task);
			dawdle(n);
			continue;
		}
		task = weft__handoff_slot_swap(&slot, task, fenced);
		if (task)
			have(task, ret_sum);
		if (n % 3 == 0)
			empty(ret_sum);
	}
}

static void race(void)
{
	static char names[HELPERS][2];
	pthread_t helpers[HELPERS];
	uint64_t given = 0, sum = 0;
	uint64_t errors, claim;
	void *part;

	/* relaxed: there is one thread. */
	weft__store(&over, false, relaxed);
	weft__store(&stolen, (uint64_t)0, relaxed);
	for (int i = 0; i < HELPERS; i++)
		ck_assert_int_eq(
			pthread_create(&helpers[i], NULL, help, names[i]), 0);
	own(&given, &sum);
	/* relaxed: joined below. */
	weft__store(&over, true, relaxed);
	for (int i = 0; i < HELPERS; i++) {
		ck_assert_int_eq(pthread_join(helpers[i], &part), 0);
		sum += (uintptr_t)part;
	}
	empty(&sum);
	/* relaxed: the helpers were joined. */
	errors = weft__load(&wrong, relaxed);
	ck_assert_uint_eq(errors, 0);
	ck_assert_uint_eq(sum, given);
	ck_assert_ptr_null(weft__handoff_slot_has(&slot));
	/* relaxed: the helpers were joined. */
	claim = weft__load(&slot.claim, relaxed);
	ck_assert_uint_eq(claim, 0);
}

START_TEST(each_comes_out_once)
{
	fenced = !weft__heavy_barrier_prepare();
	race();
}
END_TEST

START_TEST(each_comes_out_once_without_heavy_barriers)
{
	fenced = true;
	race();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched/handoff_slot");
	TCase *races = tcase_create("races");

	tcase_add_test(races, each_comes_out_once);
	tcase_add_test(races, each_comes_out_once_without_heavy_barriers);
	suite_add_tcase(suite, races);
	return io_tests_run(suite);
}
