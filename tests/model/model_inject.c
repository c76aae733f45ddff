/* SPDX-License-Identifier: MIT */
/*
 * Model of runtime/sched/inject.c and of its lock, runtime/base/lock.[ch].
 * Each task is taken once, in the order of pushes.  The lock excludes, passes
 * on the data that was written under it, and is free in the end.
 */
#include "tests/model/kit.h"

#include "runtime/base/lock.c"
#include "runtime/sched/inject.c"

/* There is no worker to wake. */
int weft__idle_claim(struct weft__idle *idle)
{
	(void)idle;
	return -1;
}

static struct weft__inject inject;
static struct weft__task tasks[4];
static uint32_t written[4], taken[4];
static struct weft__lock lock;
static uint32_t under_lock;

static void setup(void *arg)
{
	(void)arg;
	memset(&inject, 0, sizeof(inject));
	memset(tasks, 0, sizeof(tasks));
	memset(written, 0, sizeof(written));
	memset(taken, 0, sizeof(taken));
	memset(&lock, 0, sizeof(lock));
	under_lock = 0;
	model_name(&inject.lock, "lock");
	model_name(&inject.length, "length");
	model_name(&lock, "lock");
}

static void push(unsigned first, unsigned count)
{
	struct weft__chain chain = { 0 };

	for (unsigned i = first; i < first + count; i++) {
		written[i] = i + 1;
		weft__chain_add(&chain, &tasks[i]);
	}
	weft__inject_push(&inject, &chain);
}

static unsigned take(uint32_t max)
{
	struct weft__chain chain;
	struct weft__task *task;
	unsigned count = 0;
	size_t before = 0;

	weft__inject_take(&inject, max, &chain);
	model_assert(chain.count <= max, "no more than was asked for");
	while ((task = weft__chain_take(&chain))) {
		size_t i = (size_t)(task - tasks);

		model_assert(written[i] == i + 1, "what was pushed is seen");
		model_assert(taken[i]++ == 0, "a task was taken twice");
		model_assert(!count || i / 2 != before / 2 || i == before + 1,
			     "tasks come in the order of their pushes");
		before = i;
		count++;
	}
	return count;
}

static void check_end(void *arg)
{
	(void)arg;
	while (take(1))
		;
	for (unsigned i = 0; i < 4; i++)
		model_assert(taken[i] == (written[i] != 0), "a task was lost");
	model_assert(inject.length == 0 && inject.chain.count == 0,
		     "the length is that of the list");
	model_assert(!inject.lock.held, "the lock is free");
}

THREAD(push_2, push(0, 2);)
THREAD(push_other_2, push(2, 1); push(3, 1);)
THREAD(take_some, (void)take(2); (void)take(3);)
THREAD(take_one, (void)take(1);)

MODEL(push_and_take, setup, check_end, OPTIONS(), push_2, take_some)
MODEL(two_push_one_takes, setup, check_end, OPTIONS(.preemptions = 2), push_2,
      push_other_2, take_some)
MODEL(one_pushes_two_take, setup, check_end, OPTIONS(.preemptions = 2), push_2,
      take_one, take_one)

/* A thread that sees the length finds the tasks. */
THREAD(wait_for_length, while (!weft__inject_length(&inject)) weft__spin_hint();
       model_assert(take(2) > 0, "a length is of tasks that are there");)
MODEL(length_tells, setup, check_end, OPTIONS(), push_2, wait_for_length)

/*
 * The lock alone.
 */

THREAD(lock_once, weft__lock_take(&lock); under_lock++;
       weft__lock_drop(&lock);)
THREAD(lock_twice, lock_once(arg); lock_once(arg);)
THREAD(lock_if_free, if (weft__lock_try(&lock)) {
	under_lock++;
	weft__lock_drop(&lock);
})

static void check_free(void *arg)
{
	(void)arg;
	model_assert(!lock.held, "the lock is free");
}

MODEL(two_lock, setup, check_free, OPTIONS(), lock_twice, lock_twice)
MODEL(three_lock, setup, check_free, OPTIONS(), lock_once, lock_once,
      lock_once)
MODEL(lock_and_try, setup, check_free, OPTIONS(), lock_twice, lock_once,
      lock_if_free)

int main(void)
{
	const TTest *const tests[] = {
		push_and_take,
		two_push_one_takes,
		one_pushes_two_take,
		length_tells,
		two_lock,
		three_lock,
		lock_and_try,
		NULL,
	};

	return kit_main("inject", tests);
}
