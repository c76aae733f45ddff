/* SPDX-License-Identifier: MIT */
/*
 * Model of looking at a task that waits (runtime/sched/task_hold.h).  No wake
 * is lost, none runs a task twice, and no worker runs the task while it is
 * held.  The holder sees what the task wrote before it waited.
 */
#include "tests/model/tasks.h"

#include "runtime/sched/task_hold.h"

/* The news that the task waits for.  relaxed: passed on by the wake. */
static weft__atomic(uint32_t) news[2];

/* The stack of the task: only the task writes it, while it runs. */
static uint64_t frame;
static unsigned held;

static void setup_n(unsigned tasks)
{
	memset(news, 0, sizeof(news));
	frame = 0;
	held = 0;
	tasks_setup(tasks);
	model_name(news, "news");
	model_name(&frame, "frame");
}

static void setup(void *arg)
{
	(void)arg;
	setup_n(3);
	/* The threads that look are not workers. */
	foreign[1] = true;
	foreign[2] = true;
}

/* Likewise, and another task wakes. */
static void setup_task(void *arg)
{
	(void)arg;
	setup_n(3);
	foreign[1] = true;
}

static void check(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(!(records[0].state & WEFT__PARKED),
		     "it did not stay parked");
}

/* relaxed: passed on by the wake. */
static bool has(unsigned i)
{
	return weft__load(&news[i], relaxed);
}

static void frame_write(void)
{
	model_data_write(&frame);
	frame++;
}

/* The wait has a reason, as with every call that waits. */
static void wait_in_frame(void)
{
	frame_write();
	(void)weft__suspend(weft__worker_self(),
			    weft__reason(WEFT__REASON_TIME, &frame));
	frame_write();
}

static void look(void)
{
	uint64_t state;

	if (!weft__task_hold(&records[0], &state))
		return;
	held++;
	model_assert(state & WEFT__PARKED, "a task is held that waited");
	model_assert(weft__reason_object(records[0].reason) == &frame,
		     "the reason is that of the wait");
	model_data_read(&frame);
	model_assert(frame & 1, "nobody runs a task that is held");
	weft__task_release(&runtime, weft__worker_self(), &records[0]);
}

static void give(unsigned i)
{
	/* relaxed: passed on by the wake. */
	weft__store(&news[i], 1, relaxed);
	if (weft__worker_self())
		wake(0);
	else
		(void)weft__wake_next(&runtime, NULL, handle_of(0).id);
}

THREAD(wait_for_0, while (!has(0)) wait_in_frame();)
THREAD(wait_for_0_1, while (!(has(0) && has(1))) wait_in_frame();)
THREAD(wait_for_cancel,
       while (weft__interrupted(weft__worker_self(), task_self()) == 0)
	       wait_in_frame();)
THREAD(give_0, give(0);)
THREAD(give_0_1, give(0); give(1);)
THREAD(cancel_0, model_assert(weft_cancel(handle_of(0)) == 0,
			      "a task that runs can be cancelled");)
THREAD(look_once, look();)
THREAD(look_twice, look(); look();)

MODEL(hold_meets_wake, setup_task, check, OPTIONS(), wait_for_0, look_once,
      give_0)
MODEL(hold_meets_two_wakes, setup_task, check, OPTIONS(.preemptions = 2),
      wait_for_0_1, look_twice, give_0_1)
MODEL(hold_meets_cancel, setup_task, check, OPTIONS(), wait_for_cancel,
      look_once, cancel_0)

/* Two threads look, and one of them wakes. */
THREAD(look_and_give_0, look(); give(0);)
MODEL(hold_meets_hold, setup, check, OPTIONS(), wait_for_0, look_once,
      look_and_give_0)

/* A task that is held joins one that ends. */
static struct weft_scope scope;

static void setup_join(void *arg)
{
	(void)arg;
	setup_n(2);
	foreign[2] = true;
	open_scope(&scope, 0, WEFT__SCOPE_SUPERVISOR);
	start_in(&scope, 1, true);
	model_name(&scope, "scope");
}

static void check_join(void *arg)
{
	(void)arg;
	tasks_check();
	check_freed_once(1);
}

static void look_at_joiner(void *arg)
{
	uint64_t state;

	(void)arg;
	if (!weft__task_hold(&records[0], &state))
		return;
	model_assert(records[0].reason ==
				     weft__reason(WEFT__REASON_JOIN,
						  &records[1]) ||
			     records[0].reason ==
				     weft__reason(WEFT__REASON_SCOPE, &scope),
		     "it joins, or ends its scope");
	/* The objects it waits for are there. */
	model_assert(!(weft__load(&records[1].state, relaxed) & WEFT__FREE) ||
			     weft__reason_kind(records[0].reason) ==
				     WEFT__REASON_SCOPE,
		     "what is joined is not freed");
	weft__task_release(&runtime, NULL, &records[0]);
}

THREAD(join_1, int64_t result = 0;
       model_assert(weft_join(handle_of(1), &result) == 0 && result == 7,
		    "the join has the result");
       model_assert(weft_scope_end(&scope) == 0, "nobody failed");)
THREAD(end_scope, model_assert(weft_scope_end(&scope) == 0, "nobody failed");)
THREAD(child, end_with(7);)

MODEL(hold_meets_end_of_joined, setup_join, check_join, OPTIONS(), join_1,
      child, look_at_joiner)
MODEL(hold_meets_end_of_scope, setup_join, check_join, OPTIONS(), end_scope,
      child, look_at_joiner)

int main(void)
{
	const TTest *const tests[] = {
		hold_meets_wake,
		hold_meets_two_wakes,
		hold_meets_cancel,
		hold_meets_hold,
		hold_meets_end_of_joined,
		hold_meets_end_of_scope,
		NULL,
	};

	return kit_main("hold", tests);
}
