/* SPDX-License-Identifier: MIT */
/*
 * Suite runtime/misuse: a program that breaks a rule ends with a message that
 * names the rule.
 */
#include <pthread.h>

#include "tests/support/io_kit.h"
#include "tests/support/misuse_kit.h"

/* ---- Scopes ----------------------------------------------------------- */

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int64_t leave_scope_open(void *arg)
{
	struct weft_scope scope;

	(void)arg;
	return weft_group_begin(&scope);
}

/* Starts a task that gets a pointer to the scope. */
static int64_t tell_of_scope(weft_fn fn)
{
	struct weft_scope *scope;

	WEFT_SUPERVISE(all) {
		scope = all;
		ck_assert_int_eq(WEFT_GO(all, fn, scope), 0);
	}
	return 0;
}

static int64_t end_scope(void *arg)
{
	return weft_scope_end(*(struct weft_scope **)arg);
}

static int64_t end_scope_of_another(void *arg)
{
	(void)arg;
	return tell_of_scope(end_scope);
}

static int64_t count_scope(void *arg)
{
	return (int64_t)weft_scope_count(*(struct weft_scope **)arg);
}

static int64_t count_scope_of_another(void *arg)
{
	(void)arg;
	return tell_of_scope(count_scope);
}

static int64_t end_outer_scope_first(void *arg)
{
	struct weft_scope outer, inner;

	(void)arg;
	weft_group_begin(&outer);
	weft_group_begin(&inner);
	return weft_scope_end(&outer);
}

static int64_t end_scope_twice(void *arg)
{
	struct weft_scope scope;

	(void)arg;
	weft_group_begin(&scope);
	weft_scope_end(&scope);
	return weft_scope_end(&scope);
}

/* A cancelled task goes through its scopes. */
static int64_t begin_scope_twice(void *arg)
{
	struct weft_scope scope, inner;

	(void)arg;
	ck_assert_int_eq(weft_cancel(weft_self()), 0);
	weft_group_begin(&scope);
	weft_group_begin(&inner);
	weft_group_begin(&scope);
	return weft_scope_end(&scope);
}

static int64_t start_in_ended_scope(void *arg)
{
	struct weft_scope scope;

	(void)arg;
	weft_group_begin(&scope);
	weft_scope_end(&scope);
	return weft_go(&scope, nothing, NULL, 0);
}

static int64_t cancel_scope_never_begun(void *arg)
{
	struct weft_scope scope = { 0 };

	(void)arg;
	weft_scope_cancel(&scope);
	return 0;
}

/* ---- Deadlines and shields -------------------------------------------- */

static int64_t leave_deadline_open(void *arg)
{
	struct weft_within within;

	(void)arg;
	return weft_within_begin(&within, weft_now() + WEFT_SEC(1));
}

static int64_t end_outer_deadline_first(void *arg)
{
	struct weft_within outer, inner;

	(void)arg;
	weft_within_begin(&outer, weft_now() + WEFT_SEC(1));
	weft_within_begin(&inner, weft_now() + WEFT_SEC(1));
	weft_within_end(&outer);
	return 0;
}

static int64_t leave_shield_with_deadline(void *arg)
{
	struct weft_within within;

	(void)arg;
	WEFT_SHIELD
		weft_within_begin(&within, weft_now() + WEFT_SEC(1));
	return 0;
}

/* ---- Time ------------------------------------------------------------- */

static int64_t await_blank_interval(void *arg)
{
	struct weft_interval interval = { 0 };

	(void)arg;
	return weft_interval_wait(&interval);
}

static void *clear_timer(void *timer)
{
	weft_timer_clear(timer);
	return NULL;
}

static int64_t clear_timer_elsewhere(void *arg)
{
	struct weft_timer timer = { 0 };
	pthread_t thread;

	(void)arg;
	weft_timer_set(&timer, weft_now() + WEFT_SEC(1));
	pthread_create(&thread, NULL, clear_timer, &timer);
	pthread_join(thread, NULL);
	return 0;
}

/* ---- All of them ------------------------------------------------------ */

static const struct misuse in_tasks[] = {
	{ leave_scope_open, "a task returned with a scope still open" },
	{ end_scope_of_another,
	  "a scope was ended by a task that did not begin it" },
	{ count_scope_of_another,
	  "a scope was counted by a task that did not begin it" },
	{ end_outer_scope_first,
	  "a scope was ended before one that was begun inside it" },
	{ begin_scope_twice, "a scope was begun that is open" },
	{ end_scope_twice, "not an open scope: begun, and not yet ended?" },
	{ start_in_ended_scope,
	  "a task was started in a scope that is not open" },
	{ cancel_scope_never_begun,
	  "not an open scope: begun, and not yet ended?" },
	{ leave_deadline_open,
	  "a task returned with a deadline block still open" },
	{ end_outer_deadline_first,
	  "deadline blocks end in their task, inner ones first" },
	{ leave_shield_with_deadline,
	  "a deadline block inside a shield outlives it" },
	{ await_blank_interval,
	  "an interval was awaited that was not initialised" },
	{ clear_timer_elsewhere, "a timer was cleared outside of a task" },
	{ return_in_forked_child,
	  "a child of fork() returned from its task" },
};

enum { IN_TASKS = sizeof(in_tasks) / sizeof(in_tasks[0]) };

START_TEST(misuse_in_a_task_is_told_in_a_sentence)
{
	struct misuse misuse = in_tasks[_i];

	expect_sentence(run_in_task, &misuse, misuse.sentence);
}
END_TEST

static int64_t end_before_it_has_come(void *state)
{
	(void)state;
	return weft_await_sleep(WEFT_SEC(1)) == WEFT_PENDING ? 0 : 1;
}

/* Many tasks run the same function: the message names the right one. */
static int64_t start_named(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	weft_fn fn = leave_scope_open;

	opts.name = "the-culprit";
	opts.flags = *(unsigned *)arg;
	if (opts.flags)
		fn = end_before_it_has_come;
	WEFT_SUPERVISE(all)
		ck_assert_int_eq(weft_go_opts(all, fn, NULL, 0, &opts), 0);
	return 0;
}

static void run_named(void *arg)
{
	run_one_worker(start_named, arg);
}

START_TEST(message_names_the_task)
{
	unsigned flags = _i ? WEFT_FUTURE : 0;

	expect_sentence(run_named, &flags, "in task 'the-culprit' (");
}
END_TEST

static void open_scope(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE(all)
		ck_assert_int_eq(weft_go(all, nothing, NULL, 0), 0);
}

static void open_deadline(void *arg)
{
	(void)arg;
	WEFT_WITHIN(WEFT_SEC(1))
		weft_sleep(1);
}

static void open_shield(void *arg)
{
	(void)arg;
	WEFT_SHIELD
		weft_sleep(1);
}

START_TEST(block_outside_of_a_task_is_told_in_a_sentence)
{
	expect_sentence(open_scope, NULL, "a scope block outside of a task");
	expect_sentence(open_deadline, NULL,
			"a deadline block outside of a task");
	expect_sentence(open_shield, NULL, "a shield outside of a task");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("task/misuse");
	TCase *tc = tcase_create("sentences");

	tcase_add_loop_test(tc, misuse_in_a_task_is_told_in_a_sentence, 0,
			    IN_TASKS);
	tcase_add_loop_test(tc, message_names_the_task, 0, 2);
	tcase_add_test(tc, block_outside_of_a_task_is_told_in_a_sentence);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
