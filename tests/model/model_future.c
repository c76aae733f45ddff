/* SPDX-License-Identifier: MIT */
/*
 * Model of futures (runtime/future/future.c, runtime/future/await.c).  One
 * thread at a time polls a future, and one polls it again after each wake.  The
 * end of a future is counted, and everything that the future had ends with it.
 */
#define TASKS_WAITS
#define TASKS_DRAIN
#define TASKS_PUSHED memory_look
static void memory_look(void);
#include "tests/model/futures.h"

#include "tests/model/ends.h"

/* The news that a future waits for.  relaxed: passed on by the wake. */
static weft__atomic(uint32_t) news[2];

static bool has(unsigned i)
{
	/* relaxed: as above. */
	return weft__load(&news[i], relaxed);
}

static void give(unsigned i)
{
	/* relaxed: as above. */
	weft__store(&news[i], 1, relaxed);
}

static bool interrupted(void)
{
	return weft__future_interrupted(weft__worker_self(), future_self()) < 0;
}

static void setup(future_step *step)
{
	memset(news, 0, sizeof(news));
	model_name(news, "news");
	tasks_setup(3);
	futures_clear();
	future_setup(0, step);
}

static void check(void *arg)
{
	(void)arg;
	futures_check();
	check_freed_once(0);
}

/*
 * Waking.
 */

static int64_t waits_for_0(void)
{
	return has(0) ? 0 : WEFT_PENDING;
}

static int64_t waits_for_both(void)
{
	return has(0) && has(1) ? 0 : WEFT_PENDING;
}

static int64_t waits_for_cancel(void)
{
	if (!interrupted())
		return WEFT_PENDING;
	model_assert(has(0), "a cancellation carries what came before it");
	return 0;
}

static int64_t waits_for_0_and_cancel(void)
{
	return has(0) && interrupted() ? 0 : WEFT_PENDING;
}

/* Two workers, and a thread from outside. */
static void setup_foreign(future_step *step)
{
	setup(step);
	foreign[2] = true;
}

static void setup_0(void *arg)
{
	(void)arg;
	setup_foreign(waits_for_0);
}

static void setup_both(void *arg)
{
	(void)arg;
	setup_foreign(waits_for_both);
}

static void setup_cancel(void *arg)
{
	(void)arg;
	setup(waits_for_cancel);
}

static void setup_0_and_cancel(void *arg)
{
	(void)arg;
	setup(waits_for_0_and_cancel);
}

/* An earlier wake may have ended it. */
static void wake_future(unsigned i)
{
	int r = weft_future_wake(&runtime, handle_of(i));

	model_assert(r == 0 || r == -ESRCH, "a future can be woken");
}

THREAD(polls, future_serve(0);)
THREAD(wakes_with_0, give(0); wake_future(0);)
THREAD(wakes_with_1, give(1); wake_future(0);)
THREAD(wakes_with_both, give(0); wake_future(0); give(1); wake_future(0);)
THREAD(cancels, give(0); (void)weft_cancel(handle_of(0));)
THREAD(cancels_only, (void)weft_cancel(handle_of(0));)

MODEL(wake_meets_poll, setup_0, check, OPTIONS(), polls, polls, wakes_with_0)
MODEL(two_wakes_meet_poll, setup_both, check, OPTIONS(), polls, wakes_with_1,
      wakes_with_0)
MODEL(two_wakes_meet_two_polls, setup_both, check,
      OPTIONS(.preemptions = 2, .weak = 1), polls, polls, wakes_with_1,
      wakes_with_0)
MODEL(one_wakes_twice, setup_both, check, OPTIONS(), polls, polls,
      wakes_with_both)
MODEL(cancel_meets_poll, setup_cancel, check, OPTIONS(), polls, polls, cancels)
MODEL(cancel_meets_wake_and_poll, setup_0_and_cancel, check,
      OPTIONS(.preemptions = 2, .weak = 1), polls, polls, wakes_with_0,
      cancels_only)

/*
 * A turn that the future asks for itself.
 */

static int64_t yields_then_waits(void)
{
	if (futures[0].polls <= 2 && weft_await_yield() == WEFT_PENDING)
		return WEFT_PENDING;
	return waits_for_0();
}

static void setup_yield(void *arg)
{
	(void)arg;
	setup_foreign(yields_then_waits);
}

static int64_t yields_until_cancelled(void)
{
	int r = weft_await_yield();

	model_assert(r == WEFT_PENDING || r == -ECANCELED || r == 0,
		     "a turn comes, or the future is cancelled");
	if (r == -ECANCELED)
		return 0;
	/* Bounds the number of polls. */
	return r == 0 && interrupted() ? 0 : WEFT_PENDING;
}

static void setup_yields(void *arg)
{
	(void)arg;
	setup(yields_until_cancelled);
}

static int64_t yields_once(void)
{
	return weft_await_yield();
}

static void setup_yields_once(void *arg)
{
	(void)arg;
	setup(yields_once);
}

MODEL(yield, setup_yields_once, check, OPTIONS(), polls, polls)
MODEL(yield_meets_wake, setup_yield, check, OPTIONS(), polls, polls,
      wakes_with_0)
MODEL(yield_meets_cancel, setup_yields, check, OPTIONS(), polls, polls,
      cancels_only)

/*
 * The tasks that wait for it: task 1 in its scope.
 */

static struct weft_scope scope;
static int64_t written;

static int64_t writes_and_ends(void)
{
	written = 5;
	return 7;
}

static void setup_joined(bool handle, future_step *step)
{
	setup(step);
	written = 0;
	open_scope(&scope, 1, WEFT__SCOPE_SUPERVISOR);
	/* It is linked in its own scope. */
	weft__scope_unlink(&records[0]);
	records[0].flags &= (uint8_t)~WEFT__TASK_LINKED;
	start_in(&scope, 0, handle);
	model_name(&scope, "scope");
}

static void setup_child(void *arg)
{
	(void)arg;
	setup_joined(false, writes_and_ends);
}

static void setup_handle(void *arg)
{
	(void)arg;
	setup_joined(true, writes_and_ends);
}

/* It waits for something that never comes; its scope learns of it by the first
 * await. */
static int64_t waits_in_vain(void)
{
	int r = futures[0].polls > 2 ? 0 : weft_await_yield();

	if (r != WEFT_PENDING && interrupted())
		return writes_and_ends();
	return WEFT_PENDING;
}

static void setup_vain(void *arg)
{
	(void)arg;
	setup_joined(false, waits_in_vain);
}

static void scope_end(void)
{
	model_assert(weft_scope_end(&scope) == 0, "nobody failed");
	model_assert(written == 5, "what a child wrote is seen");
	model_free(&scope, sizeof(scope));
}

static void joins(void *arg)
{
	int64_t result = 0;

	(void)arg;
	model_assert(weft_join(handle_of(0), &result) == 0 && result == 7 &&
			     written == 5,
		     "the result is seen");
	scope_end();
}

THREAD(ends_scope, scope_end();)
THREAD(cancels_scope, weft_scope_cancel(&scope); scope_end();)

MODEL(scope_meets_end, setup_child, check, OPTIONS(), polls, ends_scope)
MODEL(join_meets_end, setup_handle, check, OPTIONS(), polls, joins)
MODEL(join_meets_end_and_wake, setup_handle, check, OPTIONS(), polls, joins,
      wakes_with_0)
MODEL(scope_cancelled_meets_poll, setup_vain, check, OPTIONS(), polls,
      cancels_scope)

/*
 * A wake that comes late.
 */

/* The record has a second life immediately, on the same worker. */
static void polls_and_starts_another(void *arg)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *again;

	(void)arg;
	do
		future_turn(0);
	while (!futures[0].ended);
	again = go_new(&runtime, worker, &runtime.root, future_poll, 0);
	model_assert(again == &records[0], "the record is used again");
	future_make(again, 1, waits_for_0);
	weft__future_poll(worker, again);
}

static int64_t ends(void)
{
	return 0;
}

static void setup_late(void *arg)
{
	(void)arg;
	setup_foreign(ends);
}

static void check_late(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(records[0].state ==
			     (2 * WEFT__GENERATION | WEFT__FUTURE |
			      WEFT__PARKED) &&
			     futures[1].polls == 1,
		     "the second life was not disturbed");
}

THREAD(wakes_late, wake_future(0);)
MODEL(late_wake, setup_late, check_late, OPTIONS(), polls_and_starts_another,
      wakes_late, wakes_late)

/*
 * A wake by a thread, and the end of the runtime.
 */

/* The word that a thread that pushes a task still looks at. */
static void memory_look(void)
{
	model_data_read(&runtime.inject);
}

static int64_t waits_for_a_wake(void)
{
	return futures[0].polls > 1 ? 0 : WEFT_PENDING;
}

static void setup_last(void *arg)
{
	(void)arg;
	setup_foreign(waits_for_a_wake);
}

/* The thread is that of worker 0, and main. */
static void polls_and_ends_runtime(void *arg)
{
	(void)arg;
	do
		future_turn(0);
	while (!futures[0].ended);
	refs_wait(&runtime);
	model_free(records, sizeof(records));
	model_free(&runtime, sizeof(runtime));
}

static void check_last(void *arg)
{
	(void)arg;
	futures_check();
}

bool weft__worker_step(struct weft__worker *worker)
{
	(void)worker;
	return false;
}

THREAD(nothing, ;)
MODEL(wake_at_the_end, setup_last, check_last, OPTIONS(),
      polls_and_ends_runtime, nothing, wakes_late)

int main(void)
{
	const TTest *const tests[] = {
		wake_meets_poll,
		two_wakes_meet_poll,
		two_wakes_meet_two_polls,
		one_wakes_twice,
		cancel_meets_poll,
		cancel_meets_wake_and_poll,
		yield,
		yield_meets_wake,
		yield_meets_cancel,
		scope_meets_end,
		join_meets_end,
		join_meets_end_and_wake,
		scope_cancelled_meets_poll,
		late_wake,
		wake_at_the_end,
		NULL,
	};

	return kit_main("future", tests);
}
