/* SPDX-License-Identifier: MIT */
/*
 * Model of the hand-off slot `joining` (runtime/sched/switch.h).  A joiner that
 * has switched to the task it joins is taken out by the end of that task, by
 * its suspension, or by the helper of a late worker, which parks the joiner.
 * The joiner may be interrupted meanwhile.  It runs on once, and is never lost.
 */
#define TASKS_JOINING
#include "tests/model/tasks.h"

#include "runtime/sched/idle.c"
#include "runtime/sched/sched.c"
#include "runtime/sched/monitor.c"
#include "runtime/sched/steal.c"

static struct weft_scope scope;
static int64_t written_by_child;
/* relaxed: passed on by the wake. */
static weft__atomic(uint32_t) news;

/*
 * Stand-ins for the calls of the scheduler that the model does not need.
 */

bool weft__stacks_trim(struct weft__stacks *of)
{
	(void)of;
	return false;
}

bool weft__stop_step(struct weft__worker *worker)
{
	(void)worker;
	return true;
}

uint64_t weft__stop_wait_ns(struct weft__worker *worker, uint64_t wait_ns)
{
	(void)worker;
	return wait_ns;
}

static unsigned help_nothing(struct weft__worker *worker,
			     struct weft__worker *late, uint64_t now_ns)
{
	(void)worker, (void)late, (void)now_ns;
	return 0;
}

/* Task 0 joins task 1, which is in the hand-off slot of worker 0, and so runs
 * there. */
static void setup(void *arg)
{
	static struct weft__driver_ops ops;

	(void)arg;
	tasks_setup(2);
	written_by_child = 0;
	news = 0;
	ops = driver;
	ops.help = help_nothing;
	for (unsigned i = 0; i < MODEL_THREADS; i++)
		pool[i].ops = &ops;
	open_scope(&scope, 0, WEFT__SCOPE_SUPERVISOR);
	start_in(&scope, 1, true);
	pool[0].lifo.task = &records[1];
	model_name(&pool[0].joining, "joining");
	model_name(&pool[0].lifo, "lifo");
	model_name(&scope, "scope");
}

static void check_end(void *arg)
{
	(void)arg;
	tasks_check();
	check_freed_once(1);
	model_assert(!weft__handoff_slot_look(&pool[0].joining) &&
			     !weft__handoff_slot_look(&pool[0].lifo),
		     "nobody is left there");
	model_assert(!pool[0].joining.claim, "nobody claims the slot");
}

static void join_and_end(void *arg)
{
	int64_t result = 0;
	int error = weft_join(handle_of(1), &result);

	(void)arg;
	if (error == 0)
		model_assert(result == 7 && written_by_child == 5,
			     "the result is seen");
	else
		model_assert(error == -ECANCELED, "a join may be cancelled");
	model_assert(weft_scope_end(&scope) == 0, "nobody failed");
	model_assert(written_by_child == 5, "what a child wrote is seen");
	model_free(&scope, sizeof(scope));
}

/* Runs when the joiner switched to it, or when a thief has taken it. */
static void child_begin(void)
{
	model_assert(model_wait(&runs[1]) == 1, "a task was queued twice");
	weft__worker_self()->current = &records[1];
}

static void child(void *arg)
{
	(void)arg;
	child_begin();
	written_by_child = 5;
	end_with(7);
}

static void child_that_waits(void *arg)
{
	(void)arg;
	child_begin();
	while (!weft__load(&news, relaxed))
		wait_for_news();
	written_by_child = 5;
	end_with(7);
}

THREAD(helper, (void)help(weft__worker_self(), &pool[0], 1000);)
THREAD(cancel_0, (void)weft_cancel(handle_of(0));)
THREAD(wake_child, weft__store(&news, 1, relaxed); wake(1);)

MODEL(child_ends, setup, check_end, OPTIONS(), join_and_end, child)
MODEL(child_ends_meets_cancel, setup, check_end, OPTIONS(), join_and_end,
      child, cancel_0)
MODEL(child_waits, setup, check_end, OPTIONS(.preemptions = 2), join_and_end,
      child_that_waits, wake_child)
MODEL(child_waits_meets_cancel, setup, check_end,
      OPTIONS(.preemptions = 2, .weak = 1),
      join_and_end, child_that_waits, wake_child, cancel_0)

/* The helper may take the child itself out of its hand-off slot: then the child
 * runs on the helper's worker, and the joiner parks. */
MODEL(child_ends_meets_helper, setup, check_end, OPTIONS(),
      join_and_end, child, helper)
MODEL(child_ends_meets_helper_and_cancel, setup, check_end,
      OPTIONS(.preemptions = 2, .weak = 2), join_and_end, child, helper,
      cancel_0)
MODEL(child_waits_meets_helper, setup, check_end, OPTIONS(.preemptions = 2),
      join_and_end, child_that_waits, wake_child, helper)
MODEL(two_helpers, setup, check_end, OPTIONS(.preemptions = 2), join_and_end,
      child, helper, helper)

int main(void)
{
	const TTest *const tests[] = {
		child_ends,
		child_ends_meets_cancel,
		child_waits,
		child_waits_meets_cancel,
		child_ends_meets_helper,
		child_ends_meets_helper_and_cancel,
		child_waits_meets_helper,
		two_helpers,
		NULL,
	};

	return kit_main("joining", tests);
}
