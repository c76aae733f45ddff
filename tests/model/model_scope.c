/* SPDX-License-Identifier: MIT */
/*
 * Model of scopes (runtime/task/scope.c).  The last end wakes the owner, which
 * sees what all tasks wrote.  No thread touches the scope after that.  A
 * cancellation finds every task that waits, or that is about to.
 */
#include "tests/model/tasks.h"

static struct weft_scope scope;
enum { TASKS = 4 };

static int64_t written[TASKS];

static void setup_kind(unsigned tasks, enum weft__scope_kind kind)
{
	tasks_setup(tasks);
	memset(written, 0, sizeof(written));
	open_scope(&scope, 0, kind);
	for (unsigned i = 1; i < tasks; i++)
		start_in(&scope, i, false);
	model_name(&weft__scope(&scope)->pending, "pending");
	model_name(&weft__scope(&scope)->flags, "flags");
	model_name(&weft__scope(&scope)->lock, "lock");
	model_name(&scope, "scope");
}

static void setup_2(void *arg)
{
	(void)arg;
	setup_kind(2, WEFT__SCOPE_SUPERVISOR);
}

static void setup_3(void *arg)
{
	(void)arg;
	setup_kind(3, WEFT__SCOPE_SUPERVISOR);
}

static void setup_group(void *arg)
{
	(void)arg;
	setup_kind(3, WEFT__SCOPE_GROUP);
}

static void check_end(void *arg)
{
	(void)arg;
	tasks_check();
	check_freed_once(1);
	model_assert(records[0].scopes == NULL, "the scope was left");
}

/* The scope is on the stack of its owner, which returns. */
static void end_scope(int64_t expected, bool second)
{
	model_assert(weft_scope_end(&scope) == expected,
		     "the scope's result is that of its tasks");
	model_assert(written[1] == 1 && (!second || written[2] == 1),
		     "what the tasks wrote is seen");
	memset(&scope, 0xff, sizeof(scope));
	model_free(&scope, sizeof(scope));
}

THREAD(end_1, end_scope(0, false);)
THREAD(end_2, end_scope(0, true);)
THREAD(end_failed, end_scope(-EIO, true);)
THREAD(end_cancelled, end_scope(1, false);)

static void child(void *arg)
{
	(void)arg;
	written[model_self()] = 1;
	end_with(0);
}

static void child_that_fails(void *arg)
{
	(void)arg;
	written[model_self()] = 1;
	end_with(-EIO);
}

/* The task waits for something that only a cancellation ends. */
static void child_that_waits(void *arg)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *self = worker->current;

	(void)arg;
	weft__wait_begin(worker, self);
	while (weft__interrupted(worker, self) == 0)
		wait_for_news();
	written[model_self()] = 1;
	end_with(-ECANCELED);
}

/* Task 1 starts another, task 2, in the scope that task 1 runs in. */
static int64_t ignored(void *arg)
{
	(void)arg;
	return 0;
}

static void child_that_starts(void *arg)
{
	struct weft__worker *worker = weft__worker_self();

	(void)arg;
	model_assert(weft_go(&scope, ignored, NULL, 0) == 0,
		     "a task can be started by another");
	task_ready(weft__lifo_take(worker));
	written[1] = 1;
	end_with(0);
}

static void started_child(void *arg)
{
	(void)model_wait(&runs[2]);
	weft__worker_self()->current = &records[2];
	records[2].stack = &stacks[2];
	child(arg);
}

static void setup_start(void *arg)
{
	setup_2(arg);
	pool[1].caches.tasks = &records[2];
	pool[1].caches.tasks_count = 1;
	records[2].stack = NULL;
}


/* A cancellation of the owner, or by the owner, reaches the children. */
THREAD(cancel_owner, (void)weft_cancel(handle_of(0));)
THREAD(cancel_and_end, weft_scope_cancel(&scope); end_scope(1, false);)
THREAD(wake_owner, wake(0);)

MODEL(one_ends, setup_2, check_end, OPTIONS(), end_1, child)
MODEL(two_end, setup_3, check_end, OPTIONS(), end_2, child, child)
MODEL(one_ends_meets_wake, setup_2, check_end, OPTIONS(), end_1, child,
      wake_owner)
MODEL(another_is_started, setup_start, check_end, OPTIONS(), end_2,
      child_that_starts, started_child)
MODEL(failure_cancels_the_other, setup_group, check_end,
      OPTIONS(.preemptions = 2), end_failed, child_that_fails,
      child_that_waits)
MODEL(cancel_meets_link, setup_2, check_end, OPTIONS(), cancel_and_end,
      child_that_waits)
MODEL(cancel_reaches_the_children, setup_2, check_end,
      OPTIONS(.preemptions = 2), end_cancelled, child_that_waits,
      cancel_owner)

/*
 * Races: one winner, however many succeed; the results of the others are
 * dropped.
 */

static int dropped[TASKS];
/* The result that each task has to offer. */
static int64_t offer[TASKS];

static void drop_offer(int64_t result)
{
	dropped[model_self()]++;
	model_assert(result == offer[model_self()],
		     "a task drops what it has returned");
}

static void setup_race(unsigned tasks, int64_t first, int64_t second,
		       int64_t third)
{
	setup_kind(tasks, WEFT__SCOPE_RACE);
	memset(dropped, 0, sizeof(dropped));
	offer[1] = first;
	offer[2] = second;
	offer[3] = third;
	race_prepare(weft__scope(&scope));
	weft__scope(&scope)->drop = drop_offer;
	for (unsigned i = 1; i < tasks; i++)
		records[i].flags |= WEFT__TASK_REPORTED;
	model_name(&weft__scope(&scope)->error, "best");
}

static void setup_race_2(void *arg)
{
	(void)arg;
	setup_race(3, 7, 0, 0);
}

static void setup_race_3(void *arg)
{
	(void)arg;
	setup_race(4, 7, 0, -EIO);
}

static void setup_race_lost(void *arg)
{
	(void)arg;
	setup_race(3, -EIO, -EPIPE, 0);
}

static void setup_race_cancels(void *arg)
{
	(void)arg;
	setup_race(3, 7, -ECANCELED, 0);
}

static void end_race(void *arg)
{
	int64_t result = weft_scope_end(&scope);
	int winners = 0;

	(void)arg;
	for (unsigned i = 1; i < TASKS; i++)
		if (offer[i] >= 0 && written[i]) {
			winners += !dropped[i];
			model_assert(dropped[i] || result == offer[i],
				     "who is not dropped has won");
			model_assert(dropped[i] <= 1, "dropped once");
		}
	model_assert(winners == 1, "there is one winner");
	memset(&scope, 0xff, sizeof(scope));
	model_free(&scope, sizeof(scope));
}

static void end_race_lost(void *arg)
{
	int64_t result = weft_scope_end(&scope);

	(void)arg;
	model_assert(result == -EIO || result == -EPIPE,
		     "if all fail a failure is the result");
}

static void runner(void *arg)
{
	(void)arg;
	written[model_self()] = 1;
	end_with(offer[model_self()]);
}

MODEL(race_of_two, setup_race_2, check_end, OPTIONS(), end_race, runner,
      runner)
MODEL(race_of_three, setup_race_3, check_end, OPTIONS(.preemptions = 2),
      end_race, runner, runner, runner)
MODEL(race_all_fail, setup_race_lost, check_end, OPTIONS(), end_race_lost,
      runner, runner)
MODEL(race_cancels_the_other, setup_race_cancels, check_end,
      OPTIONS(.preemptions = 2), end_race, runner, child_that_waits)

/* Tasks of the root scope without a handle. */
static void setup_root(void *arg)
{
	(void)arg;
	tasks_setup(2);
}

static void check_root(void *arg)
{
	(void)arg;
	check_freed_once(0);
	check_freed_once(1);
	model_assert(weft__scope(&runtime.root)->pending == 0,
		     "all were counted");
}

MODEL(root_tasks_end, setup_root, check_root, OPTIONS(), child, child)

int main(void)
{
	const TTest *const tests[] = {
		one_ends,
		two_end,
		one_ends_meets_wake,
		another_is_started,
		failure_cancels_the_other,
		cancel_meets_link,
		cancel_reaches_the_children,
		race_of_two,
		race_of_three,
		race_all_fail,
		race_cancels_the_other,
		root_tasks_end,
		NULL,
	};

	return kit_main("scope", tests);
}
