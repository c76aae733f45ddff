/* SPDX-License-Identifier: MIT */
/*
 * Suite task/scope: joins, groups and supervisors (docs/decisions/0022).
 * Every test runs over seeds and numbers of workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <errno.h>
#include <string.h>

#include <weft/weft.h>

#include "runtime/sched/wait.h"
#include "tests/support/sched_scene.h"

/*
 * Joins.
 */

static int64_t join_results(void *arg)
{
	int64_t result = 0;

	(void)arg;
	WEFT_SUPERVISE(all) {
		struct weft_task one = start_give(all, 7, 0, 0);
		struct weft_task two = start_give(all, -9, 3, 0);
		struct weft_task three = start_give(all, 11, 0, 100000);
		struct weft_task four = start_give(all, 13, 0, 0);

		EXPECT(weft_join(one, &result) == 0 && result == 7);
		EXPECT(weft_join(three, &result) == 0 && result == 11);
		EXPECT(weft_join(two, &result) == 0 && result == -9);
		/* The task ended long ago. */
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(weft_join(four, NULL) == 0);
		/* The handles are used up. */
		EXPECT(weft_join(one, &result) == -ESRCH);
		EXPECT(weft_join(four, &result) == -ESRCH);
		EXPECT(result == -9);
		EXPECT(weft_join(weft_self(), NULL) == -EDEADLK);
		EXPECT(weft_join((struct weft_task){ 0 }, NULL) == -ESRCH);
		EXPECT(weft_join((struct weft_task){ UINT64_MAX }, NULL) ==
		       -ESRCH);
	}
	return 0;
}

START_TEST(join_gives_the_result_once)
{
	(void)run_main(_i, join_results);
}
END_TEST

static int64_t join_other(void *arg)
{
	return weft_join(*(struct weft_task *)arg, NULL);
}

static int64_t start_foreign_join(void *arg)
{
	int64_t result = 0;

	(void)arg;
	WEFT_SUPERVISE(all) {
		struct weft_task one = start_give(all, 7, 0, WEFT_MS(1));
		struct weft_task two =
			start(all, join_other, &one, sizeof(one));

		EXPECT(weft_join(two, &result) == 0 && result == -EPERM);
		EXPECT(weft_join(one, &result) == 0 && result == 7);
	}
	return 0;
}

START_TEST(only_the_owner_of_the_scope_joins)
{
	(void)run_main(_i, start_foreign_join);
}
END_TEST

static int64_t sleep_for_ever(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_NEVER);
}

static int64_t give_up_join(void *arg)
{
	int64_t result = 0;
	int error = 0;

	(void)arg;
	WEFT_SUPERVISE(all) {
		struct weft_task slow = start_give(all, 5, 0, WEFT_MS(10));

		WEFT_WITHIN(WEFT_MS(1))
			error = weft_join(slow, &result);
		EXPECT(error == -ETIMEDOUT);
		/* The child goes on, and can be joined. */
		EXPECT(weft_join(slow, &result) == 0 && result == 5);
	}
	return 0;
}

START_TEST(join_that_is_given_up_can_be_repeated)
{
	(void)run_main(_i, give_up_join);
}
END_TEST

static int64_t join_the_cancelled(void *arg)
{
	int64_t result = 0;

	(void)arg;
	WEFT_SUPERVISE(all) {
		struct weft_task task = start(all, sleep_for_ever, NULL, 0);
		struct weft_task fresh = start(all, sleep_for_ever, NULL, 0);

		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(weft_cancel(task) == 0);
		EXPECT(weft_join(task, &result) == 0);
		EXPECT(result == -ECANCELED);
		EXPECT(weft_cancel(task) == -ESRCH);
		/* Cancelling twice is the same as cancelling once. */
		EXPECT(weft_cancel(fresh) == 0);
		EXPECT(weft_cancel(fresh) == 0);
		EXPECT(weft_join(fresh, &result) == 0);
		EXPECT(result == -ECANCELED);
	}
	return 0;
}

START_TEST(cancelled_task_ends_with_ecanceled)
{
	(void)run_main(_i, join_the_cancelled);
}
END_TEST

/* The task is cancelled while it waits for a child: the join fails, the child
 * goes on, and the scope's end cancels the child and waits. */
static int64_t child_ended;

static int64_t cancelled_child(void *arg)
{
	(void)arg;
	EXPECT(weft_sleep(WEFT_NEVER) == -ECANCELED);
	child_ended++;
	return 0;
}

static int64_t join_for_ever(void *arg)
{
	int error = 0;

	(void)arg;
	WEFT_SUPERVISE(all) {
		struct weft_task child = start(all, cancelled_child, NULL, 0);

		error = weft_join(child, NULL);
	}
	EXPECT(child_ended == 1);
	return error;
}

static int64_t cancel_a_joiner(void *arg)
{
	int64_t result = 0;

	(void)arg;
	child_ended = 0;
	WEFT_SUPERVISE(all) {
		struct weft_task task = start(all, join_for_ever, NULL, 0);

		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(weft_cancel(task) == 0);
		EXPECT(weft_join(task, &result) == 0);
	}
	EXPECT(child_ended == 1);
	/* The child may have ended before the joiner saw its cancellation. */
	EXPECT(result == -ECANCELED || result == 0);
	return 0;
}

START_TEST(cancelled_joiner_cancels_its_children_and_waits)
{
	(void)run_main(_i, cancel_a_joiner);
}
END_TEST

/* An endless chain of joins does not nest on a stack (L19). */
static int64_t descend(void *arg)
{
	int depth = *(int *)arg, next = depth - 1;
	int64_t below = 0;

	if (depth == 0)
		return 0;
	WEFT_SCOPE(all, NULL) {
		struct weft_task task =
			start(all, descend, &next, sizeof(next));

		EXPECT(weft_join(task, &below) == 0);
	}
	return below + 1;
}

static int64_t descend_deeply(void *arg)
{
	int depth = 5000;

	(void)arg;
	EXPECT(descend(&depth) == depth);
	return 0;
}

START_TEST(deep_joins_do_not_nest)
{
	(void)run_main(_i, descend_deeply);
}
END_TEST

/*
 * Groups and supervisors.
 */

static unsigned cancelled_count;

static int64_t count_cancelled(void *arg)
{
	int error = weft_sleep(WEFT_SEC(100));

	(void)arg;
	cancelled_count += error == -ECANCELED;
	return error;
}

static int64_t fail_in_a_group(void *arg)
{
	int64_t result = 0;
	uint64_t before_ns = weft_now();

	(void)arg;
	cancelled_count = 0;
	WEFT_SCOPE(group, &result) {
		for (int i = 0; i < 50; i++)
			EXPECT(weft_go(group, count_cancelled, NULL, 0) == 0);
		(void)start_give(group, -EIO, 2, WEFT_MS(1));
		for (int i = 0; i < 50; i++)
			EXPECT(weft_go(group, count_cancelled, NULL, 0) == 0);
	}
	EXPECT(result == -EIO);
	EXPECT(cancelled_count == 100);
	EXPECT(weft_now() - before_ns < WEFT_MS(5));
	/* No other task is cancelled. */
	EXPECT(weft_yield() == 0);
	WEFT_SCOPE(next, &result)
		(void)start_give(next, 5, 0, 0);
	EXPECT(result == 0);
	return 0;
}

START_TEST(first_failure_cancels_the_rest_of_a_group)
{
	(void)run_main(_i, fail_in_a_group);
}
END_TEST

/* As if one of the tasks could not be started. */
static int64_t fail_from_outside(void *arg)
{
	int64_t group_result = 0, failures = 0;

	(void)arg;
	cancelled_count = 0;
	WEFT_SCOPE(group, &group_result) {
		EXPECT(weft_go(group, count_cancelled, NULL, 0) == 0);
		weft_scope_fail(group, -EAGAIN);
		weft_scope_fail(group, -ENOMEM);
		EXPECT(weft_go(group, count_cancelled, NULL, 0) == -ECANCELED);
	}
	EXPECT(group_result == -EAGAIN);
	WEFT_SUPERVISE(some) {
		EXPECT(weft_go(some, count_cancelled, NULL, 0) == 0);
		weft_scope_fail(some, -EAGAIN);
	}
	EXPECT(cancelled_count == 2);
	WEFT_RACE(none, &failures)
		weft_scope_fail(none, -EAGAIN);
	EXPECT(failures == -EAGAIN);
	return 0;
}

START_TEST(scope_fails_for_what_could_not_be_started)
{
	(void)run_main(_i, fail_from_outside);
}
END_TEST

static int64_t go_into_a_cancelled_group(void *arg)
{
	int64_t result = 0;
	int error = 0;

	(void)arg;
	WEFT_SCOPE(group, &result) {
		weft_scope_cancel(group);
		error = weft_go(group, sleep_for_ever, NULL, 0);
		/* The owner itself is not cancelled. */
		EXPECT(weft_yield() == 0);
	}
	EXPECT(error == -ECANCELED && result == 0);
	return 0;
}

START_TEST(nothing_is_started_in_a_cancelled_scope)
{
	(void)run_main(_i, go_into_a_cancelled_group);
}
END_TEST

static int64_t fail_under_a_supervisor(void *arg)
{
	struct weft_scope scope;
	int64_t result;

	(void)arg;
	EXPECT(weft_supervisor_begin(&scope) == 0);
	for (int i = 0; i < 100; i++)
		(void)start_give(&scope, i % 3 == 0 ? -EIO : i, i % 5,
				 (uint64_t)i % 7 * 10000);
	EXPECT(weft_scope_count(&scope) <= 100);
	result = weft_scope_end(&scope);
	EXPECT(result == 34);
	return 0;
}

START_TEST(supervisor_goes_on_and_counts)
{
	(void)run_main(_i, fail_under_a_supervisor);
}
END_TEST

/* The scope's end waits in full, whatever happens to the task that waits. */
static int waited_for;

static int64_t end_slowly(void *arg)
{
	(void)arg;
	/* The task is cancelled, and then cleans up. */
	(void)weft_sleep(WEFT_SEC(100));
	WEFT_SHIELD
		EXPECT(weft_sleep(WEFT_MS(3)) == 0);
	waited_for++;
	return 0;
}

static int64_t hold_slow_children(void *arg)
{
	(void)arg;
	WEFT_SCOPE(group, NULL)
		for (int i = 0; i < 10; i++)
			EXPECT(weft_go(group, end_slowly, NULL, 0) == 0);
	EXPECT(waited_for == 10);
	return weft_yield();
}

static int64_t cancel_the_waiting(void *arg)
{
	int64_t result = 0;

	(void)arg;
	waited_for = 0;
	WEFT_SUPERVISE(all) {
		struct weft_task task = start(all, hold_slow_children, NULL, 0);

		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(weft_cancel(task) == 0);
		EXPECT(weft_join(task, &result) == 0);
		EXPECT(result == -ECANCELED);
		EXPECT(waited_for == 10);
	}
	return 0;
}

START_TEST(end_of_a_scope_waits_in_full)
{
	(void)run_main(_i, cancel_the_waiting);
}
END_TEST

/* Every way out of the block joins the scope. */
static int64_t leave_by(int way)
{
	WEFT_SCOPE(group, NULL) {
		EXPECT(weft_go(group, end_slowly, NULL, 0) == 0);
		weft_scope_cancel(group);
		if (way == 0)
			return 1;
		if (way == 1)
			break;
		if (way == 2)
			goto out;
	}
	return 2;
out:
	return 3;
}

static int64_t leave_every_way(void *arg)
{
	static const int64_t expected[] = { 1, 2, 3, 2 };

	(void)arg;
	for (int way = 0; way < 4; way++) {
		waited_for = 0;
		EXPECT(leave_by(way) == expected[way]);
		EXPECT(waited_for == 1);
	}
	return 0;
}

START_TEST(scope_is_joined_on_every_way_out)
{
	(void)run_main(_i, leave_every_way);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static Suite *scope_suite(void)
{
	Suite *suite = suite_create("task/scope");
	TCase *tc = tcase_create("join");

	tcase_set_timeout(tc, 30);
	ADD(tc, join_gives_the_result_once);
	ADD(tc, only_the_owner_of_the_scope_joins);
	ADD(tc, join_that_is_given_up_can_be_repeated);
	ADD(tc, cancelled_task_ends_with_ecanceled);
	ADD(tc, cancelled_joiner_cancels_its_children_and_waits);
	ADD(tc, deep_joins_do_not_nest);
	suite_add_tcase(suite, tc);

	tc = tcase_create("scope");
	ADD(tc, first_failure_cancels_the_rest_of_a_group);
	ADD(tc, scope_fails_for_what_could_not_be_started);
	ADD(tc, nothing_is_started_in_a_cancelled_scope);
	ADD(tc, supervisor_goes_on_and_counts);
	ADD(tc, end_of_a_scope_waits_in_full);
	ADD(tc, scope_is_joined_on_every_way_out);
	suite_add_tcase(suite, tc);

	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { scope_suite };

	return run_suites(make, 1);
}
