/* SPDX-License-Identifier: MIT */
/*
 * Suite task/cancel: cancellation, shields and deadlines
 * (docs/decisions/0023 and 0024).
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
 * Cancelling.
 */

/* Cancelling a task cancels the tasks that it has started, and so on. */
static unsigned leaves;

static int64_t tree(void *arg)
{
	int depth = *(int *)arg, next = depth - 1;
	int64_t result = 0;

	if (depth == 0) {
		int error = weft_sleep(WEFT_SEC(1000));

		leaves += error == -ECANCELED;
		return error;
	}
	WEFT_SUPERVISE(all)
		for (int i = 0; i < 3; i++) {
			int error = weft_go(all, tree, &next, sizeof(next));

			EXPECT(error == 0 || error == -ECANCELED);
		}
	result = weft_yield();
	EXPECT(result == -ECANCELED);
	return result;
}

static int64_t cut_the_tree(void *arg)
{
	int depth = 5;

	(void)arg;
	leaves = 0;
	WEFT_SUPERVISE(all) {
		struct weft_task root =
			start(all, tree, &depth, sizeof(depth));

		EXPECT(weft_sleep(WEFT_MS(2)) == 0);
		EXPECT(weft_cancel(root) == 0);
	}
	EXPECT(leaves == 243);
	return 0;
}

START_TEST(cancelling_a_task_cancels_its_descendants)
{
	struct fake_result result = run_main(_i, cut_the_tree);

	ck_assert_uint_le(result.end_ns, UINT64_C(1000000000) + WEFT_MS(20));
}
END_TEST

/* The tree is cut while it still grows. */
static int64_t cut_the_growing_tree(void *arg)
{
	int depth = 6;

	(void)arg;
	WEFT_SUPERVISE(all) {
		struct weft_task root =
			start(all, tree, &depth, sizeof(depth));

		for (uint64_t n = fake_random(20); n > 0; n--)
			EXPECT(weft_yield() == 0);
		EXPECT(weft_cancel(root) == 0);
	}
	return 0;
}

START_TEST(growing_tree_is_cancelled_in_whole)
{
	struct fake_result result = run_main(_i, cut_the_growing_tree);

	ck_assert_uint_le(result.end_ns, UINT64_C(1000000000) + WEFT_MS(20));
}
END_TEST

/* Level-triggered: every suspending call fails, until the task ends. */
static int64_t insist(void *arg)
{
	struct weft_timer timer = { { 0 } };

	(void)arg;
	while (weft_yield() == 0)
		;
	for (int i = 0; i < 3; i++) {
		EXPECT(weft_yield() == -ECANCELED);
		EXPECT(weft_sleep(0) == -ECANCELED);
		EXPECT(weft_sleep(1000) == -ECANCELED);
		EXPECT(weft_sleep_until(WEFT_NEVER) == -ECANCELED);
		EXPECT(weft_timer_set(&timer, weft_now() + 1000) == 0);
		EXPECT(weft_timer_wait(&timer) == -ECANCELED);
		EXPECT(weft_timer_clear(&timer));
	}
	WEFT_SCOPE(refused, NULL)
		EXPECT(weft_go(refused, give, NULL, 0) == -ECANCELED);
	return 0;
}

static int64_t cancel_the_insistent(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL) {
		EXPECT(weft_go(all, insist, NULL, 0) == 0);
		for (int i = 0; i < 10; i++)
			EXPECT(weft_yield() == 0);
		/* The scope is cancelled.  The task never waited, so it finds
		 * out by itself. */
		weft_scope_cancel(all);
	}
	WEFT_SCOPE(one, NULL) {
		struct weft_task task = start(one, insist, NULL, 0);

		EXPECT(weft_yield() == 0);
		EXPECT(weft_cancel(task) == 0);
	}
	return 0;
}

START_TEST(cancelled_task_is_refused_every_wait)
{
	(void)run_main(_i, cancel_the_insistent);
}
END_TEST

static int64_t clean_up_shielded(void *arg)
{
	(void)arg;
	EXPECT(weft_sleep(WEFT_SEC(100)) == -ECANCELED);
	WEFT_SHIELD {
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		WEFT_SHIELD
			EXPECT(weft_yield() == 0);
		EXPECT(weft_yield() == 0);
		/* Blocks inside the shield have their own deadlines. */
		WEFT_WITHIN(WEFT_MS(1))
			EXPECT(weft_sleep(WEFT_MS(2)) == -ETIMEDOUT);
		WEFT_SCOPE(inner, NULL)
			(void)start_give(inner, 0, 3, 1000);
	}
	EXPECT(weft_yield() == -ECANCELED);
	WEFT_SHIELD
		EXPECT(weft_yield() == 0);
	return 0;
}

static int64_t shield_against_deadline(void *arg)
{
	(void)arg;
	WEFT_WITHIN(WEFT_MS(2)) {
		WEFT_SHIELD {
			EXPECT(weft_sleep(WEFT_MS(5)) == 0);
			EXPECT(weft_deadline() == WEFT_NEVER);
		}
		EXPECT(weft_yield() == -ETIMEDOUT);
		EXPECT(weft_sleep(WEFT_MS(1)) == -ETIMEDOUT);
	}
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	return 0;
}

static int64_t cancel_the_shielded(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL) {
		struct weft_task task = start(all, clean_up_shielded, NULL, 0);

		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(weft_cancel(task) == 0);
		EXPECT(weft_go(all, shield_against_deadline, NULL, 0) == 0);
	}
	return 0;
}

START_TEST(shield_holds_off_cancellation_and_deadlines)
{
	(void)run_main(_i, cancel_the_shielded);
}
END_TEST

/*
 * Deadlines.
 */

static int64_t yield_for_ever(void *arg)
{
	int r;

	(void)arg;
	while ((r = weft_yield()) == 0)
		;
	return r;
}

static int64_t yield_to_deadlines(void *arg)
{
	struct weft_task task;
	int64_t result = 0;

	(void)arg;
	WEFT_WITHIN(WEFT_MS(2))
		EXPECT(yield_for_ever(NULL) == -ETIMEDOUT);
	WEFT_SUPERVISE(all) {
		WEFT_WITHIN(WEFT_MS(2))
			task = start(all, yield_for_ever, NULL, 0);
		/* Another task runs in the meantime. */
		WEFT_WITHIN(WEFT_MS(1))
			EXPECT(yield_for_ever(NULL) == -ETIMEDOUT);
		EXPECT(weft_join(task, &result) == 0);
		EXPECT(result == -ECANCELED);
	}
	return 0;
}

START_TEST(yielding_ends_at_deadlines)
{
	(void)run_main(_i, yield_to_deadlines);
}
END_TEST

static int64_t nested_deadlines(void *arg)
{
	(void)arg;
	WEFT_WITHIN(WEFT_MS(10)) {
		/* The deadline of the innermost block. */
		WEFT_WITHIN(WEFT_MS(2))
			EXPECT(weft_sleep(WEFT_MS(5)) == -ETIMEDOUT);
		EXPECT(!weft_deadline_passed());
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		/* The deadline of an enclosing block, as seen inside. */
		WEFT_WITHIN(WEFT_MS(100)) {
			EXPECT(weft_sleep(WEFT_MS(50)) == -ECANCELED);
			EXPECT(weft_deadline_passed());
			EXPECT(weft_sleep(WEFT_MS(50)) == -ECANCELED);
			EXPECT(weft_yield() == -ECANCELED);
		}
		/* The same deadline, in its own block. */
		EXPECT(weft_sleep(WEFT_MS(50)) == -ETIMEDOUT);
		EXPECT(weft_yield() == -ETIMEDOUT);
	}
	EXPECT(weft_deadline() == WEFT_NEVER);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	/* A loop that retries on -ETIMEDOUT ends with the outer block. */
	WEFT_WITHIN(WEFT_MS(10)) {
		int error = 0, tries = 0;

		do {
			WEFT_WITHIN(WEFT_MS(1))
				error = weft_sleep(WEFT_MS(5));
			tries++;
		} while (error == -ETIMEDOUT);
		EXPECT(error == -ECANCELED && tries > 5 && tries <= 11);
	}
	return 0;
}

START_TEST(innermost_deadline_is_etimedout_and_others_ecanceled)
{
	(void)run_main(_i, nested_deadlines);
}
END_TEST

static int64_t inherits(void *arg)
{
	uint64_t deadline_ns = *(uint64_t *)arg;

	EXPECT(weft_deadline() == deadline_ns);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	WEFT_WITHIN(WEFT_SEC(1))
		EXPECT(weft_sleep(WEFT_MS(100)) == -ECANCELED);
	EXPECT(weft_sleep(WEFT_MS(100)) == -ECANCELED);
	EXPECT(weft_deadline_passed());
	return 0;
}

static int64_t pass_deadline_on(void *arg)
{
	int64_t result = 0;

	(void)arg;
	WEFT_WITHIN(WEFT_MS(5)) {
		uint64_t deadline_ns = weft_deadline();

		WEFT_SCOPE(all, &result)
			for (int i = 0; i < 20; i++)
				EXPECT(WEFT_GO(all, inherits, deadline_ns) ==
				       0);
		EXPECT(result == 0);
		EXPECT(weft_yield() == -ETIMEDOUT);
	}
	return 0;
}

START_TEST(children_inherit_the_deadline)
{
	(void)run_main(_i, pass_deadline_on);
}
END_TEST

/* The owner's block expires while the scope ends: the end still waits in
 * full. */
static int64_t expire_while_ending(void *arg)
{
	int64_t result = 0;

	(void)arg;
	WEFT_SCOPE(all, &result) {
		(void)start_give(all, 3, 0, WEFT_MS(4));
		WEFT_WITHIN(WEFT_MS(1)) {
			EXPECT(weft_sleep(WEFT_MS(2)) == -ETIMEDOUT);
			WEFT_SCOPE(inner, NULL)
				;
		}
		/* The block's deadline no longer applies. */
		(void)start_give(all, 4, 0, WEFT_MS(6));
	}
	EXPECT(result == 0);
	return 0;
}

START_TEST(deadline_ends_with_its_block)
{
	(void)run_main(_i, expire_while_ending);
}
END_TEST

/* Calls outside a task are refused. */
START_TEST(outside_of_a_task_is_eperm)
{
	struct weft_scope scope;
	struct weft_timer timer = { { 0 } };
	struct weft_within within;

	ck_assert_int_eq(weft_yield(), -EPERM);
	ck_assert_int_eq(weft_sleep(1), -EPERM);
	ck_assert_int_eq(weft_sleep_until(1), -EPERM);
	ck_assert_int_eq(weft_timer_set(&timer, 1), -EPERM);
	ck_assert_int_eq(weft_timer_wait(&timer), -EPERM);
	ck_assert(!weft_timer_clear(&timer));
	ck_assert_int_eq(weft_group_begin(&scope), -EPERM);
	ck_assert_int_eq(weft_supervisor_begin(&scope), -EPERM);
	ck_assert_int_eq(weft_race_begin(&scope), -EPERM);
	ck_assert_int_eq(weft_within_begin(&within, 1), -EPERM);
	ck_assert_int_eq(weft_join((struct weft_task){ 1 }, NULL), -EPERM);
	ck_assert_int_eq(weft_cancel((struct weft_task){ 1 }), -EPERM);
	ck_assert_uint_eq(weft_self().id, 0);
	ck_assert(!weft_task_name());
	ck_assert(!weft_runtime_self());
	ck_assert(!weft_deadline_passed());
	ck_assert_uint_eq(weft_deadline(), WEFT_NEVER);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

/* A deadline ends a block, but not tasks that were started outside it. */
static int64_t nap_in_peace(void *arg)
{
	(void)arg;
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	return 0;
}

static int64_t sleep_until_ended(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_SEC(1000));
}

static int64_t scope_around_deadlines(void *arg)
{
	int64_t result = 1, within = 0;

	(void)arg;
	WEFT_SCOPE(scope, &result) {
		EXPECT(weft_go(scope, nap_in_peace, NULL, 0) == 0);
		WEFT_WITHIN(WEFT_US(10))
			WEFT_WITHIN(WEFT_SEC(1)) {
				WEFT_SCOPE(inner, &within)
					EXPECT(weft_go(inner, sleep_until_ended,
						       NULL, 0) == 0);
				EXPECT(weft_sleep(1) == -ECANCELED);
			}
		EXPECT(weft_go(scope, nap_in_peace, NULL, 0) == 0);
	}
	EXPECT(result == 0);
	EXPECT(within == -ECANCELED);
	return 0;
}

START_TEST(outer_deadline_leaves_scopes_around_it_alone)
{
	(void)run_main(_i, scope_around_deadlines);
}
END_TEST

static Suite *cancel_suite(void)
{
	Suite *suite = suite_create("task/cancel");
	TCase *tc = tcase_create("cancel");

	tcase_set_timeout(tc, 30);
	ADD(tc, cancelling_a_task_cancels_its_descendants);
	ADD(tc, growing_tree_is_cancelled_in_whole);
	ADD(tc, cancelled_task_is_refused_every_wait);
	ADD(tc, shield_holds_off_cancellation_and_deadlines);
	suite_add_tcase(suite, tc);

	tc = tcase_create("deadline");
	ADD(tc, yielding_ends_at_deadlines);
	ADD(tc, innermost_deadline_is_etimedout_and_others_ecanceled);
	ADD(tc, children_inherit_the_deadline);
	ADD(tc, deadline_ends_with_its_block);
	ADD(tc, outer_deadline_leaves_scopes_around_it_alone);
	tcase_add_test(tc, outside_of_a_task_is_eperm);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { cancel_suite };

	return run_suites(make, 1);
}
