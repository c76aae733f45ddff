/* SPDX-License-Identifier: MIT */
/*
 * Model of the hand-off slot `lifo` (runtime/sched/handoff_slot.h): its owner
 * fills and empties it, and a helper of a late worker takes from it too.  A
 * task comes out once, on one side, with everything that was written before it
 * was made ready.
 */
#include "tests/model/workers.h"

enum { HELPERS_MAX = 2 };

static void setup(void *arg)
{
	(void)arg;
	workers_setup(1 + HELPERS_MAX);
	for (uint32_t i = 0; i < 1 + HELPERS_MAX; i++)
		model_name(&pool[i].lifo, "slot");
}

/* Task 0 is in the hand-off slot. */
static void setup_full(void *arg)
{
	setup(arg);
	tasks[0].result = 7;
	pool[0].lifo.task = &tasks[0];
}

/* Where the kernel has no heavy barriers. */
static void setup_fenced(void *arg)
{
	setup(arg);
	for (uint32_t i = 0; i < 1 + HELPERS_MAX; i++)
		pool[i].fenced = true;
}

MODEL_UNSEEN static void run_one(struct weft__task *task)
{
	model_assert(task_runs[task - tasks]++ == 0, "a task was run twice");
}

/* Runs all tasks of the worker. */
static void run_all(void)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task;

	while ((task = weft__lifo_take(worker)) ||
	       (task = weft__runq_pop(&worker->runq))) {
		run_one(task);
		model_assert(task->result == 7, "what came before is seen");
	}
}

static void make_ready(uint32_t i)
{
	tasks[i].result = 7;
	weft__push_next(weft__worker_self(), &tasks[i]);
}

static void help_owner(void *arg)
{
	(void)arg;
	(void)help(weft__worker_self(), &pool[0], time_ns);
	run_all();
}

/* No other worker takes it the first time. */
static void help_owner_twice(void *arg)
{
	help_owner(arg);
	model_assert(task_runs[0] == 1, "it was there");
	task_runs[0] = 0;
	model_post(&task_ran[0]);
	help_owner(arg);
}

/* The owner has not learnt yet that the task is gone. */
static void make_again(void *arg)
{
	(void)arg;
	(void)model_wait(&task_ran[0]);
	make_ready(0);
	run_all();
}

static void check_ran(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		model_assert(task_runs[i] == 1, "each task was run");
	for (uint32_t i = 0; i < runtime.workers_count; i++)
		model_assert(weft__alone(&pool[i]) && !pool[i].lifo.claim,
			     "nothing is left");
}

THREAD(check_1, check_ran(1);)
THREAD(check_2, check_ran(2);)
THREAD(make_1, make_ready(0); run_all();)
THREAD(make_2, make_ready(0); make_ready(1); run_all();)
THREAD(make_another, make_ready(1); run_all();)
THREAD(make_1_and_1, make_ready(0); run_all(); make_ready(1); run_all();)

MODEL(slot_meets_helper, setup, check_1, OPTIONS(), make_1, help_owner)
MODEL(slot_meets_two_helpers, setup, check_1, OPTIONS(), make_1, help_owner,
      help_owner)
MODEL(full_slot_meets_helper, setup, check_2, OPTIONS(), make_2, help_owner)
MODEL(slot_filled_anew_meets_helper, setup, check_2, OPTIONS(), make_1_and_1,
      help_owner)
MODEL(slot_filled_over_meets_helper, setup_full, check_2, OPTIONS(),
      make_another, help_owner)
MODEL(same_task_meets_helper_again, setup_full, check_1, OPTIONS(), make_again,
      help_owner_twice)
MODEL(full_slot_meets_two_helpers, setup, check_2, OPTIONS(.preemptions = 2),
      make_2, help_owner, help_owner)
MODEL(fenced_slot_meets_helper, setup_fenced, check_1, OPTIONS(), make_1,
      help_owner)
MODEL(fenced_full_slot_meets_helper, setup_fenced, check_2, OPTIONS(), make_2,
      help_owner)
MODEL(fenced_slot_meets_two_helpers, setup_fenced, check_1, OPTIONS(), make_1,
      help_owner, help_owner)

int main(void)
{
	const TTest *const tests[] = {
		slot_meets_helper,
		slot_meets_two_helpers,
		full_slot_meets_helper,
		slot_filled_anew_meets_helper,
		slot_filled_over_meets_helper,
		same_task_meets_helper_again,
		full_slot_meets_two_helpers,
		fenced_slot_meets_helper,
		fenced_full_slot_meets_helper,
		fenced_slot_meets_two_helpers,
		NULL,
	};

	return kit_main("lifo", tests);
}
