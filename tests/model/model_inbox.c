/* SPDX-License-Identifier: MIT */
/*
 * Model of a worker's inbox (runtime/sched/dispatch.c) and of its park word
 * (runtime/sched/sched.c): a worker runs the pinned tasks that others make
 * ready for it, in the order in which they came, wherever in its park the wake
 * meets it.
 */
#include "tests/model/workers.h"

static uint32_t order, ran_as[TASKS];

static int64_t note_order(void *arg)
{
	size_t i = (size_t)((struct weft__task *)arg - tasks);

	model_assert(weft__worker_self() == &pool[0],
		     "a pinned task runs on its worker");
	ran_as[i] = ++order;
	return 0;
}

static void setup_n(uint32_t workers)
{
	workers_setup(workers);
	order = 0;
	memset(ran_as, 0, sizeof(ran_as));
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i].pin = 1;
		tasks[i].fn = note_order;
	}
	model_name(&pool[0].inbox, "inbox");
	model_name(&pool[0].park_word, "park_word");
}

static void setup(void *arg)
{
	(void)arg;
	setup_n(1);
}

static void setup_parked(void *arg)
{
	setup(arg);
	start_parked(0);
}

static void check_order(void *arg)
{
	workers_check(arg);
	model_assert(ran_as[0] < ran_as[1], "tasks run in the order they came");
}

THREAD(submit_0, submit(0); wait_for(0);)
THREAD(submit_1, submit(1); wait_for(1);)
THREAD(submit_0_then_1, submit(0); submit(1); wait_for(0); wait_for(1);)
THREAD(submit_one_after_another, submit(0); wait_for(0); submit(1);
       wait_for(1);)

MODEL(one_pushes, setup, check_order, OPTIONS(), work,
      submit_one_after_another)
MODEL(one_pushes_two, setup, check_order, OPTIONS(), work, submit_0_then_1)
MODEL(two_push, setup, workers_check, OPTIONS(.preemptions = 2, .weak = 2),
      work, submit_0, submit_1)
MODEL(two_push_to_a_sleeper, setup_parked, workers_check,
      OPTIONS(.preemptions = 2, .weak = 2), work, submit_0, submit_1)

/* A task of worker 1 makes a task ready that is pinned to worker 0. */
static int64_t push_pinned(void *arg)
{
	(void)arg;
	weft__push(weft__worker_self(), &tasks[0]);
	return 0;
}

static void setup_two_workers(void *arg)
{
	(void)arg;
	setup_n(2);
	tasks[1].pin = 0;
	tasks[1].fn = push_pinned;
	weft__runq_push(&pool[1].runq, &tasks[1]);
}

THREAD(wait_0, wait_for(0);)
MODEL(a_worker_pushes, setup_two_workers, workers_check,
      OPTIONS(.preemptions = 2, .weak = 1), work, work, wait_0)

int main(void)
{
	const TTest *const tests[] = {
		one_pushes, one_pushes_two,  two_push,
		two_push_to_a_sleeper, a_worker_pushes, NULL,
	};

	return kit_main("inbox", tests);
}
