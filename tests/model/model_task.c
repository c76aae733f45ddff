/* SPDX-License-Identifier: MIT */
/*
 * Model of a task's state word (runtime/sched/task.h), and of the waiters for a
 * task (runtime/task/join.c).  No wake is lost, none runs a task twice, each
 * end is counted once, each record is freed once, and results are seen.
 */
#define TASKS_CLOCK
#include "tests/model/tasks.h"

/* relaxed: passed on by the interruption, as far as it is. */
static weft__atomic(uint64_t) clock_ns;

static uint64_t driver_now(struct weft_runtime *of)
{
	(void)of;
	return weft__load(&clock_ns, relaxed);
}

/* The news that a task waits for.  relaxed: passed on by the wake. */
static weft__atomic(uint32_t) news[3];

static bool has(unsigned i)
{
	return weft__load(&news[i], relaxed);
}

static void give(unsigned i)
{
	weft__store(&news[i], 1, relaxed);
}

/*
 * Parking and waking.
 */

static void setup_wait(void *arg)
{
	(void)arg;
	memset(news, 0, sizeof(news));
	clock_ns = 0;
	model_name(news, "news");
	model_name(&clock_ns, "clock");
	tasks_setup(3);
}

static void check_wait(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(!(records[0].state & WEFT__PARKED),
		     "it did not stay parked");
}

THREAD(wait_for_0, while (!has(0)) wait_for_news();)
THREAD(wait_for_0_1, while (!(has(0) && has(1))) wait_for_news();)
THREAD(wake_with_0, give(0); wake(0);)
THREAD(wake_with_1, give(1); wake(0);)
THREAD(wake_with_0_1, give(0); wake(0); give(1); wake(0);)
THREAD(wake_for_nothing, wake(0);)

MODEL(wake_meets_park, setup_wait, check_wait, OPTIONS(), wait_for_0,
      wake_with_0)
MODEL(two_wakes_meet_park, setup_wait, check_wait, OPTIONS(), wait_for_0_1,
      wake_with_0, wake_with_1)
MODEL(one_wakes_twice, setup_wait, check_wait, OPTIONS(.preemptions = 2),
      wait_for_0_1, wake_with_0_1, wake_for_nothing)

/* A waker from outside the runtime. */
static void setup_wait_foreign(void *arg)
{
	setup_wait(arg);
	foreign[1] = true;
}

THREAD(wake_next_with_0, give(0);
       weft__wake_next(&runtime, weft__worker_self(), handle_of(0).id);)
MODEL(foreign_wake_meets_park, setup_wait_foreign, check_wait, OPTIONS(),
      wait_for_0, wake_next_with_0, wake_for_nothing)

/*
 * Interrupting.
 */

static bool interrupted(void)
{
	return weft__interrupted(weft__worker_self(), task_self()) < 0;
}

/* A task that finds out that it was cancelled sees what the canceller wrote. */
THREAD(wait_for_cancel, while (!interrupted()) wait_for_news();
       model_assert(has(2), "a cancellation carries what came before it");)
THREAD(wait_for_both, while (!(has(0) && interrupted())) wait_for_news();)
THREAD(cancel_0, give(2); model_assert(weft_cancel(handle_of(0)) == 0,
				       "a task that runs can be cancelled");)

MODEL(cancel_meets_park, setup_wait, check_wait, OPTIONS(), wait_for_cancel,
      cancel_0)
MODEL(cancel_meets_wake_and_park, setup_wait, check_wait, OPTIONS(),
      wait_for_both, wake_with_0, cancel_0)
MODEL(cancel_meets_cancel, setup_wait, check_wait, OPTIONS(), wait_for_cancel,
      cancel_0, cancel_0)

/* An alarm goes off while the task deals with a deadline that means nothing
 * now. */
static struct weft_within within;

static void setup_deadline(void *arg)
{
	setup_wait(arg);
	memset(&within, 0, sizeof(within));
	within_push(&within, &records[0], 1000, false);
	records[0].state |= WEFT__EXPIRED;
}

static void wait_for_deadline(void *arg)
{
	struct weft__worker *worker = weft__worker_self();
	int error;

	(void)arg;
	while ((error = weft__interrupted(worker, task_self())) == 0)
		wait_for_news();
	model_assert(error == -ETIMEDOUT, "the deadline has passed");
}

THREAD(alarm_rings, weft__store(&clock_ns, 1000, relaxed);
       if (weft__task_interrupt(&records[0], handle_of(0).id, WEFT__EXPIRED))
	       weft__push(weft__worker_self(), &records[0]);)

MODEL(alarm_meets_park, setup_deadline, check_wait, OPTIONS(),
      wait_for_deadline, alarm_rings)
MODEL(alarm_meets_wake_and_park, setup_deadline, check_wait, OPTIONS(),
      wait_for_deadline, alarm_rings, wake_with_0)

/*
 * Joining.
 */

static struct weft_scope scope;
static int64_t written_by_child;
static int32_t join_error;

static void setup_join(void *arg)
{
	tasks_setup(3);
	(void)arg;
	memset(news, 0, sizeof(news));
	written_by_child = 0;
	join_error = 0;
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

static void scope_end(void)
{
	model_assert(weft_scope_end(&scope) == 0, "nobody failed");
	model_assert(written_by_child == 5, "what a child wrote is seen");
	model_free(&scope, sizeof(scope));
}

static void join_and_end(void *arg)
{
	int64_t result = 0;

	(void)arg;
	join_error = weft_join(handle_of(1), &result);
	model_assert(join_error == 0 || join_error == -ECANCELED,
		     "a join ends, or is cancelled");
	if (join_error == 0)
		model_assert(result == 7 && written_by_child == 5,
			     "the result is seen");
	scope_end();
}

static void join_twice_and_end(void *arg)
{
	int64_t result = 0;

	(void)arg;
	join_error = weft_join(handle_of(1), &result);
	if (join_error < 0)
		join_error = weft_join(handle_of(1), &result);
	if (join_error == 0)
		model_assert(result == 7, "the result is seen");
	scope_end();
}

THREAD(child, written_by_child = 5; end_with(7);)
THREAD(end_only, scope_end();)

MODEL(join_meets_end, setup_join, check_join, OPTIONS(), join_and_end, child)
MODEL(join_meets_end_and_wake, setup_join, check_join, OPTIONS(), join_and_end,
      child, wake_for_nothing)
MODEL(join_meets_end_and_cancel, setup_join, check_join,
      OPTIONS(.preemptions = 3, .weak = 2), join_and_end, child, cancel_0)
MODEL(second_join_meets_end, setup_join, check_join,
      OPTIONS(.preemptions = 2, .weak = 2), join_twice_and_end, child,
      cancel_0)
MODEL(scope_ends_with_handle, setup_join, check_join, OPTIONS(), end_only,
      child)

/*
 * Threads that wait for a task, or drop its handle.
 */

static void setup_root(void *arg)
{
	setup_wait(arg);
	written_by_child = 0;
	records[1].flags |= WEFT__TASK_HANDLE;
	foreign[0] = foreign[2] = true;
}

static void wait_from_thread(void *arg)
{
	int64_t result = 0;

	(void)arg;
	model_assert(weft_wait(&runtime, handle_of(1), &result) == 0,
		     "a thread can wait");
	model_assert(result == 7 && written_by_child == 5,
		     "the result is seen");
}

/* A record that it frees may be used again. */
static void detach(void *arg)
{
	(void)arg;
	model_assert(weft_detach(&runtime, handle_of(1)) == 0,
		     "a handle can be dropped");
	if (runtime.tasks.free)
		runtime.tasks.free->result = 0;
}

/* The task itself waits before it ends. */
static void child_that_waits(void *arg)
{
	while (!has(0))
		wait_for_news();
	child(arg);
}

THREAD(wake_waiting_child, give(0);
       weft__wake_next(&runtime, weft__worker_self(), handle_of(1).id);)
THREAD(wake_child, wake(1);)

MODEL(thread_waits, setup_root, check_join, OPTIONS(), wait_from_thread, child)
MODEL(thread_waits_for_one_that_waits, setup_root, check_join,
      OPTIONS(.preemptions = 2), wait_from_thread, child_that_waits,
      wake_waiting_child)
MODEL(thread_detaches, setup_root, check_join, OPTIONS(), detach, child)

/* A thread that first waits for no time, and then for the end. */
static void look_and_wait(void *arg)
{
	int64_t result = 0;
	int r = weft_wait_until(&runtime, handle_of(1), 0, &result);

	(void)arg;
	if (r == -ETIMEDOUT)
		r = weft_wait(&runtime, handle_of(1), &result);
	model_assert(r == 0 && result == 7 && written_by_child == 5,
		     "who gave up a wait can wait again");
}

static void look_and_detach(void *arg)
{
	int r = weft_wait_until(&runtime, handle_of(1), 0, NULL);

	(void)arg;
	if (r == -ETIMEDOUT)
		r = weft_detach(&runtime, handle_of(1));
	model_assert(r == 0, "who gave up a wait can drop the handle");
	if (runtime.tasks.free)
		runtime.tasks.free->result = 0;
}

MODEL(thread_looks_and_waits, setup_root, check_join, OPTIONS(), look_and_wait,
      child)
MODEL(thread_looks_and_detaches, setup_root, check_join, OPTIONS(),
      look_and_detach, child)

/* Two threads: the result that the first has taken is no longer there for the
 * second, or the first has it. */
static void look_or_find_nothing(void *arg)
{
	int64_t result = 0;
	int r = weft_wait_until(&runtime, handle_of(1), 0, &result);

	(void)arg;
	model_assert(r == -ETIMEDOUT || r == -EBUSY || r == -ESRCH ||
			     (r == 0 && result == 7 && written_by_child == 5),
		     "a look has the result, or nothing");
	if (r == 0)
		/* relaxed: read when all have ended. */
		weft__add(&news[2], 1u, relaxed);
}

static void check_looked(void *arg)
{
	(void)arg;
	/* relaxed: all have ended. */
	model_assert(weft__load(&news[2], relaxed) <= 1,
		     "a result is given once");
	tasks_check();
}

MODEL(two_threads_look, setup_root, check_looked, OPTIONS(.preemptions = 2),
      look_or_find_nothing, child, look_or_find_nothing)

/* Two threads wait for one task, which ends when one of the two was refused. */
static void wait_or_let_end(void *arg)
{
	int r = weft_wait(&runtime, handle_of(1), NULL);

	(void)arg;
	model_assert(r == 0 || r == -EBUSY, "one waits, the other is told");
	if (r < 0) {
		give(0);
		weft__wake_next(&runtime, weft__worker_self(), handle_of(1).id);
	}
}

MODEL(two_threads_wait, setup_root, check_join, OPTIONS(.preemptions = 2),
      wait_or_let_end, child_that_waits, wait_or_let_end)

/* The runtime ends without the task, which waits until the thread was released;
 * or the task ends at that moment. */
static void wait_until_given_up(void *arg)
{
	(void)arg;
	model_assert(weft_wait(&runtime, handle_of(1), NULL) == -ETIMEDOUT,
		     "who waits for what is given up is let go");
	give(0);
	weft__wake_next(&runtime, weft__worker_self(), handle_of(1).id);
}

static void wait_or_be_let_go(void *arg)
{
	int64_t result = 0;
	int r = weft_wait(&runtime, handle_of(1), &result);

	(void)arg;
	model_assert(r == -ETIMEDOUT || (r == 0 && result == 7),
		     "a thread has the result, or is let go");
	if (r < 0)
		model_assert(weft_detach(&runtime, handle_of(1)) == 0,
			     "who is let go can drop the handle");
}

static void check_given_up(void *arg)
{
	(void)arg;
	tasks_check();
}

THREAD(give_up_all, weft__waits_give_up(&runtime);)

MODEL(thread_is_let_go, setup_root, check_given_up, OPTIONS(),
      wait_until_given_up, child_that_waits, give_up_all)
MODEL(thread_is_let_go_meets_end, setup_root, check_given_up, OPTIONS(),
      wait_or_be_let_go, child, give_up_all)

/*
 * Stale wakes.
 */

static void setup_stale(void *arg)
{
	setup_wait(arg);
	written_by_child = 0;
}

/* The record of task 1 has a second life; as task 1 of the same worker. */
static void child_and_another(void *arg)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *again;

	child(arg);
	again = go_new(&runtime, worker, &runtime.root, NULL, 0);
	model_assert(again == &records[1], "the record is used again");
	again->stack = &stacks[1];
	worker->current = again;
	while (!has(0))
		wait_for_news();
	model_assert(!interrupted(), "a late cancellation meets nobody");
}

THREAD(cancel_child, (void)weft_cancel(handle_of(1));)

static void check_stale(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(!(records[1].state & WEFT__CANCELLED) &&
			     records[1].state >> 32 == 2,
		     "the second life was not disturbed");
}

static void setup_stale_given(void *arg)
{
	setup_stale(arg);
	news[0] = 1;
}

static void check_untouched(void *arg)
{
	check_stale(arg);
	model_assert(records[1].state == 2 * WEFT__GENERATION,
		     "a late wake meets nobody");
}

MODEL(late_wake, setup_stale_given, check_untouched, OPTIONS(), wake_child,
      child_and_another)
MODEL(late_cancel, setup_stale_given, check_untouched, OPTIONS(), cancel_child,
      child_and_another)

/*
 * Records that are new, and ids that were made up.
 */

static void setup_new(void *arg)
{
	setup_stale(arg);
	for (unsigned i = 0; i < RECORDS; i++)
		memset(&records[i], 0, sizeof(records[i]));
	runtime.tasks.used = 0;
	chunks[0] = NULL;
	pool[0].current = NULL;
}

static void make_record(void *arg)
{
	struct weft__task *task = weft__task_new(&runtime, &pool[0]);

	(void)arg;
	model_assert(task == &records[0], "there is a record");
}

static void look_for_record(void *arg)
{
	struct weft__task *task = weft__task_at(&runtime, 2);

	(void)arg;
	if (!task)
		return;
	model_assert(task == &records[2] && task->index == 2,
		     "a record that was made is complete");
	model_assert(weft_cancel(handle_of(2)) == -ESRCH, "and it is free");
}

MODEL(made_up_id, setup_new, NULL, OPTIONS(), make_record,
      look_for_record)

int main(void)
{
	const TTest *const tests[] = {
		wake_meets_park,
		two_wakes_meet_park,
		one_wakes_twice,
		foreign_wake_meets_park,
		cancel_meets_park,
		cancel_meets_wake_and_park,
		cancel_meets_cancel,
		alarm_meets_park,
		alarm_meets_wake_and_park,
		join_meets_end,
		join_meets_end_and_wake,
		join_meets_end_and_cancel,
		second_join_meets_end,
		scope_ends_with_handle,
		thread_waits,
		thread_waits_for_one_that_waits,
		thread_detaches,
		two_threads_wait,
		thread_looks_and_waits,
		thread_looks_and_detaches,
		two_threads_look,
		thread_is_let_go,
		thread_is_let_go_meets_end,
		late_wake,
		late_cancel,
		made_up_id,
		NULL,
	};

	return kit_main("task", tests);
}
