/* SPDX-License-Identifier: MIT */
/*
 * Model of a scope's limit (runtime/task/scope_limit.c).  A task that waits to
 * start another gets the place of a task that ends, or learns why not.  No wake
 * and no place is lost.
 */
#include "tests/model/tasks.h"

/*
 * Task 0 owns the scope, whose limit is one task; task 1 runs in it.  Task 2,
 * if there is one, is in the root scope and starts tasks in the scope too.  The
 * tasks that they start get the last two records.
 */
enum { OTHER = 2, NEW = 4, NEW_TOO = 5 };

static struct weft_scope scope;
static int64_t written[RECORDS];
static weft__atomic(uint32_t) other_is_done;

static struct weft__scope *limited(void)
{
	return weft__scope(&scope);
}

static void give_record(unsigned starter, unsigned i)
{
	records[i].stack = NULL;
	records[i].next = pool[starter].caches.tasks;
	pool[starter].caches.tasks = &records[i];
	pool[starter].caches.tasks_count++;
}

static void setup_starters(unsigned starters)
{
	tasks_setup(starters + 1);
	memset(written, 0, sizeof(written));
	other_is_done = 0;
	open_scope(&scope, 0, WEFT__SCOPE_GROUP);
	weft__scope_mark(limited(), WEFT__SCOPE_LIMITED);
	weft__limit(limited())->tasks_max = 1;
	weft__limit(limited())->tasks = 1;
	start_in(&scope, 1, false);
	records[1].flags |= WEFT__TASK_REPORTED;
	for (unsigned i = 0; i < MODEL_THREADS; i++)
		pool[i].ops_left = 1000;
	give_record(0, NEW);
	give_record(starters == 2 ? OTHER : 0, NEW_TOO);
	model_name(&limited()->pending, "pending");
	model_name(&limited()->flags, "flags");
	model_name(&limited()->lock, "lock");
	model_name(&scope, "scope");
}

static void setup_one(void *arg)
{
	(void)arg;
	setup_starters(1);
}

static void setup_two(void *arg)
{
	(void)arg;
	setup_starters(2);
}

static void check_end(void *arg)
{
	(void)arg;
	tasks_check();
	check_freed_once(1);
	model_assert(records[0].scopes == NULL, "the scope was left");
}

/* Runs the task that was made ready to run next here. */
static void run_next_here(void)
{
	struct weft__task *next = weft__lifo_take(weft__worker_self());

	if (next)
		task_ready(next);
}

static int64_t ignored(void *arg)
{
	(void)arg;
	return 0;
}

static int start_one(void)
{
	int error = weft_go(&scope, ignored, NULL, 0);

	if (error == 0)
		run_next_here();
	return error;
}

/* The last action of the owner. */
static void end_scope(int64_t expected)
{
	model_assert(weft_scope_end(&scope) == expected,
		     "the scope's result is that of its tasks");
	model_assert(written[1] == 1, "what the first wrote is seen");
	model_assert(!weft__limit(limited())->starters.head, "nobody waits");
	memset(&scope, 0xff, sizeof(scope));
	model_free(&scope, sizeof(scope));
}

static void must_start(void)
{
	model_assert(start_one() == 0, "a place comes free");
	model_assert(written[1] == 1, "a place comes with what was written by "
				      "whose it was");
}

THREAD(start_and_end, must_start(); end_scope(0);
       model_assert(written[NEW] + written[NEW_TOO] == 1, "it has run");)
/* On another part of the stack: within one execution, no waiter may lie where
 * another has been. */
static __attribute__((noinline)) void must_start_too(void)
{
	volatile char apart[512] = { 0 };

	must_start();
	(void)apart[0];
}

THREAD(start_two_and_end, must_start(); must_start_too(); end_scope(0);
       model_assert(written[NEW] + written[NEW_TOO] == 2, "both have run");)

static void start_or_not(void *arg)
{
	int error = start_one();

	(void)arg;
	model_assert(error == 0 || error == -ECANCELED,
		     "it starts, or is cancelled");
	end_scope(0);
	model_assert(written[NEW] + written[NEW_TOO] == (error == 0),
		     "what was started has run, and nothing else");
}

THREAD(start_in_failed, model_assert(start_one() == -ECANCELED,
				     "nothing starts in a failed group");
       end_scope(-EIO);)
THREAD(start_in_cancelled, model_assert(start_one() == -ECANCELED,
					"nothing starts in a cancelled scope");
       end_scope(0);)

static void end_here(int64_t result)
{
	written[model_self()] = 1;
	end_with(result);
	run_next_here();
}

THREAD(first, end_here(0);)
THREAD(first_fails, end_here(-EIO);)
THREAD(first_cancels, weft_scope_cancel(&scope); end_here(0);)

/* Runs the new task, if it was started. */
static void run_new(unsigned i)
{
	model_daemon();
	model_assert(model_wait(&runs[i]) == 1, "a task was queued twice");
	weft__worker_self()->current = &records[i];
	records[i].stack = &stacks[i];
	model_assert(weft__limit(limited())->tasks_max > 1 || written[1],
		     "no more than one at once");
	written[i] = 1;
	end_with(0);
	run_next_here();
}

THREAD(new, run_new(NEW);)
THREAD(new_too, run_new(NEW_TOO);)
THREAD(wake_owner, wake(0);)
THREAD(cancel_owner, (void)weft_cancel(handle_of(0));)

MODEL(place_is_passed_on, setup_one, check_end, OPTIONS(.weak = 2),
      start_and_end, first, new, new_too)
MODEL(place_is_passed_on_twice, setup_one, check_end,
      OPTIONS(.preemptions = 1), start_two_and_end, first, new, new_too)
MODEL(place_meets_wake, setup_one, check_end,
      OPTIONS(.preemptions = 1, .weak = 1),
      start_and_end, first, new, new_too, wake_owner)
MODEL(place_meets_cancel, setup_one, check_end,
      OPTIONS(.preemptions = 1, .weak = 1),
      start_or_not, first, new, new_too, cancel_owner)
MODEL(failure_refuses, setup_one, check_end, OPTIONS(), start_in_failed,
      first_fails)
MODEL(cancellation_refuses, setup_one, check_end, OPTIONS(),
      start_in_cancelled, first_cancels)

/*
 * Two starters.  The owner waits for the other before it ends the scope.
 */

static void wait_for_other(void)
{
	while (!weft__load(&other_is_done, acquire))
		wait_for_news();
}

static void other_done(void)
{
	weft__store(&other_is_done, 1, release);
	wake(0);
}

THREAD(start_beside, must_start(); wait_for_other(); end_scope(0);
       model_assert(written[NEW] == 1, "it has run");)
THREAD(other, must_start(); other_done();)

static void other_or_not(void *arg)
{
	int error = start_one();

	(void)arg;
	model_assert(error == 0 || error == -ECANCELED,
		     "it starts, or is cancelled");
	other_done();
}

/* The place that the other task got, or did not get, is free again. */
THREAD(start_after, wait_for_other(); must_start(); end_scope(0);
       model_assert(written[NEW] == 1, "it has run");)
THREAD(cancel_other, (void)weft_cancel(handle_of(OTHER));)

MODEL(two_starters, setup_two, check_end,
      OPTIONS(.preemptions = 1, .weak = MODEL_NONE),
      start_beside, first, other, new, new_too)
MODEL(two_starters_meet_cancel, setup_two, check_end,
      OPTIONS(.preemptions = 1, .weak = MODEL_NONE), start_after, first,
      other_or_not, new, new_too, cancel_other)

/* Task 1 ends only when the other task has started, so there must be another
 * place. */
THREAD(raise_limit, model_assert(weft_scope_limit(&scope, 2) == 0,
			   "the owner may raise the limit");
       wait_for_other(); wake(1); end_scope(0);)
THREAD(first_is_long, while (!weft__load(&other_is_done, acquire))
	       wait_for_news();
       end_here(0);)
THREAD(other_beside_first, model_assert(start_one() == 0,
					"there is a place more");
       other_done();)

MODEL(place_is_added, setup_two, check_end,
      OPTIONS(.preemptions = 1, .weak = 1), raise_limit, first_is_long,
      other_beside_first, new_too)

int main(void)
{
	const TTest *const tests[] = {
		place_is_passed_on,
		place_is_passed_on_twice,
		place_meets_wake,
		place_meets_cancel,
		failure_refuses,
		cancellation_refuses,
		two_starters,
		two_starters_meet_cancel,
		place_is_added,
		NULL,
	};

	return kit_main("limit", tests);
}
