/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/local: functions deferred to the end of a block and of a task,
 * and task-local values.  Every test runs over seeds and numbers of workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <errno.h>
#include <string.h>

#include <weft/weft.h>

#include "tests/support/sched_scene.h"

/* The deferred calls in their order, one letter each. */
static char done[64];

static void note(void *arg)
{
	size_t length = strlen(done);

	EXPECT(length < sizeof(done) - 1);
	done[length] = *(char *)arg;
}

static bool is_done(const char *expected)
{
	bool same = strcmp(done, expected) == 0;

	memset(done, 0, sizeof(done));
	return same;
}

/*
 * Blocks.
 */

static int leave_by(int way)
{
	WEFT_DEFER(note, "a");
	WEFT_DEFER(note, "b");
	for (int i = 0; i < 2; i++) {
		WEFT_DEFER(note, "c");
		if (way == 0)
			return 0;
		if (way == 1)
			break;
		if (way == 2)
			goto out;
		if (way == 3)
			continue;
		note("d");
	}
	note("e");
out:
	return way;
}

static int64_t leave_every_way(void *arg)
{
	static const char *const expected[] = { "cba", "ceba", "cba", "cceba",
						"dcdceba" };

	(void)arg;
	for (int way = 0; way < 5; way++) {
		EXPECT(leave_by(way) == way);
		EXPECT(is_done(expected[way]));
	}
	return 0;
}

START_TEST(deferred_is_done_on_every_way_out)
{
	(void)run_main(_i, leave_every_way);
}
END_TEST

START_TEST(deferred_is_done_outside_of_tasks)
{
	(void)leave_every_way(NULL);
}
END_TEST

static void note_later(void *arg)
{
	/* Neither a cancellation nor a deadline ends these waits. */
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	EXPECT(weft_yield() == 0);
	note(arg);
}

static int64_t defer_and_wait(void *arg)
{
	int error = 0;

	(void)arg;
	WEFT_DEFER(note_later, "a");
	WEFT_WITHIN(WEFT_US(10)) {
		WEFT_DEFER(note_later, "b");
		error = weft_sleep(WEFT_NEVER);
	}
	EXPECT(error == -ETIMEDOUT || error == -ECANCELED);
	error = weft_sleep(WEFT_NEVER);
	EXPECT(error == -ECANCELED);
	return error;
}

static int64_t cancel_the_deferring(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE(all) {
		struct weft_task task = start(all, defer_and_wait, NULL, 0);
		int64_t result = 0;

		EXPECT(weft_sleep(WEFT_US(50)) == 0);
		EXPECT(weft_cancel(task) == 0);
		EXPECT(weft_join(task, &result) == 0);
		EXPECT(result == -ECANCELED);
	}
	EXPECT(is_done("ba"));
	return 0;
}

START_TEST(deferred_is_shielded)
{
	(void)run_main(_i, cancel_the_deferring);
}
END_TEST

static int64_t run_and_cancel(void *arg)
{
	(void)arg;
	{
		WEFT_DEFERRED(first, note, "a");
		WEFT_DEFERRED(second, note, "b");
		WEFT_DEFERRED(third, note, "c");

		weft_deferred_run(&first);
		weft_deferred_run(&first);
		weft_deferred_cancel(&second);
		EXPECT(is_done("a"));
	}
	EXPECT(is_done("c"));
	return 0;
}

START_TEST(named_can_be_done_before_or_not_at_all)
{
	(void)run_main(_i, run_and_cancel);
}
END_TEST

/*
 * Tasks.
 */

static void defer_more(void *arg)
{
	note(arg);
	EXPECT(weft_defer(note, "m") == 0);
	WEFT_SCOPE(inner, NULL)
		EXPECT(weft_go(inner, give, &(struct answer){ 0, 1, 1000 },
			       sizeof(struct answer)) == 0);
}

static void defer_deep_down(int depth)
{
	if (depth > 0) {
		defer_deep_down(depth - 1);
		return;
	}
	EXPECT(weft_defer(note, "a") == 0);
	EXPECT(weft_defer(note_later, "b") == 0);
	EXPECT(weft_defer(defer_more, "c") == 0);
}

static int64_t end_with_deferred(void *arg)
{
	int64_t result = *(int64_t *)arg;

	defer_deep_down(10);
	EXPECT(is_done(""));
	if (result == -ECANCELED)
		result = weft_sleep(WEFT_NEVER);
	return result;
}

static int64_t end_in_many_ways(void *arg)
{
	static const int64_t results[] = { 0, 5, -EIO, -ECANCELED };

	(void)arg;
	for (int i = 0; i < 4; i++)
		for (int inherits = 0; inherits < 2; inherits++) {
			struct weft_scope scope;
			struct weft_task task;
			int64_t result = 1;

			EXPECT(weft_supervisor_begin(&scope) == 0);
			WEFT_WITHIN(inherits ? WEFT_US(20) : WEFT_NEVER)
				task = start(&scope, end_with_deferred,
					     &results[i], sizeof(results[i]));
			EXPECT(weft_sleep(WEFT_US(10)) == 0);
			(void)weft_cancel(task);
			EXPECT(weft_join(task, &result) == 0);
			EXPECT(result == results[i]);
			EXPECT(is_done("cmba"));
			EXPECT(weft_scope_end(&scope) == 0 || result < 0);
		}
	return 0;
}

START_TEST(task_ends_with_what_was_deferred)
{
	(void)run_main(_i, end_in_many_ways);
}
END_TEST

/* The scope's end waits for the deferred calls; the place is free only after
 * them. */
static int64_t defer_in_a_limit(void *arg)
{
	int64_t zero = 0;

	(void)arg;
	WEFT_SUPERVISE(all) {
		EXPECT(weft_scope_limit(all, 1) == 0);
		for (int i = 0; i < 3; i++) {
			EXPECT(WEFT_GO(all, end_with_deferred, zero) == 0);
			EXPECT(is_done(i ? "cmba" : ""));
		}
	}
	EXPECT(is_done("cmba"));
	WEFT_SCOPE(group, NULL)
		EXPECT(WEFT_GO(group, end_with_deferred, zero) == 0);
	EXPECT(is_done("cmba"));
	return weft_defer(note, "z");
}

START_TEST(scope_waits_for_what_was_deferred)
{
	memset(done, 0, sizeof(done));
	(void)run_main(_i, defer_in_a_limit);
	/* The deferred calls of the first task run, too. */
	EXPECT(is_done("z"));
}
END_TEST

/*
 * Values.
 */

enum { KEYS = 5 };

static int destroyed[KEYS];

static void destroy(void *value)
{
	EXPECT(*(int *)value >= 0 && *(int *)value < KEYS);
	destroyed[*(int *)value]++;
	free(value);
}

static struct weft_task_local_key keys[KEYS] = {
	WEFT_TASK_LOCAL_KEY(destroy), WEFT_TASK_LOCAL_KEY(destroy),
	WEFT_TASK_LOCAL_KEY(destroy), WEFT_TASK_LOCAL_KEY(destroy),
	WEFT_TASK_LOCAL_KEY(NULL),
};

static int *number_new(int number)
{
	int *value = malloc(sizeof(*value));

	EXPECT(value != NULL);
	*value = number;
	return value;
}

static int64_t keep_values(void *arg)
{
	static int last = 4;
	int *value[KEYS];

	(void)arg;
	for (int i = 0; i < KEYS; i++) {
		/* A new task has neither its parent's values nor those of the
		 * previous task on this stack. */
		EXPECT(weft_task_local_get(&keys[i]) == NULL);
		value[i] = i == 4 ? &last : number_new(i);
		EXPECT(weft_task_local_set(&keys[i], value[i]) == 0);
	}
	for (int i = 0; i < KEYS; i++) {
		EXPECT(weft_yield() == 0);
		EXPECT(weft_task_local_get(&keys[i]) == value[i]);
	}
	/* Sets another value, and removes one. */
	free(weft_task_local_get(&keys[1]));
	EXPECT(weft_task_local_set(&keys[1], number_new(0)) == 0);
	free(weft_task_local_get(&keys[2]));
	EXPECT(weft_task_local_set(&keys[2], NULL) == 0);
	EXPECT(weft_task_local_get(&keys[2]) == NULL);
	EXPECT(weft_task_local_get(&keys[3]) == value[3]);
	return 0;
}

static int64_t have_no_values(void *arg)
{
	(void)arg;
	for (int i = 0; i < KEYS; i++)
		EXPECT(weft_task_local_get(&keys[i]) == NULL);
	return 0;
}

static int64_t keep_many_values(void *arg)
{
	(void)arg;
	memset(destroyed, 0, sizeof(destroyed));
	WEFT_SCOPE(all, NULL) {
		for (int i = 0; i < 20; i++) {
			EXPECT(weft_go(all, keep_values, NULL, 0) == 0);
			EXPECT(weft_go(all, have_no_values, NULL, 0) == 0);
		}
		/* The other tasks do not see the owner's values. */
		EXPECT(weft_task_local_set(&keys[0], number_new(3)) == 0);
	}
	EXPECT(destroyed[0] == 40 && destroyed[1] == 0 && destroyed[2] == 0);
	EXPECT(destroyed[3] == 20 && destroyed[4] == 0);
	return 0;
}

START_TEST(each_task_has_its_own_values)
{
	(void)run_main(_i, keep_many_values);
	EXPECT(destroyed[3] == 21);
}
END_TEST

/* While the values are destroyed, the others can still be read; the one that is
 * being destroyed cannot. */
static struct weft_task_local_key early_key, late_key;

static void look_around(void *value)
{
	EXPECT(weft_task_local_get(&late_key) == NULL);
	EXPECT(weft_task_local_get(&early_key) == value);
	note("l");
}

static struct weft_task_local_key late_key = WEFT_TASK_LOCAL_KEY(look_around);
static struct weft_task_local_key early_key = WEFT_TASK_LOCAL_KEY(note);

static int64_t destroy_in_turn(void *arg)
{
	(void)arg;
	EXPECT(weft_task_local_set(&early_key, "e") == 0);
	EXPECT(weft_task_local_set(&late_key, "e") == 0);
	EXPECT(weft_task_local_set(NULL, "e") == -EINVAL);
	EXPECT(weft_defer(NULL, "e") == -EINVAL);
	return 0;
}

START_TEST(newest_value_goes_first)
{
	memset(done, 0, sizeof(done));
	(void)run_main(_i, destroy_in_turn);
	EXPECT(is_done("le"));
	/* There is no task here. */
	EXPECT(weft_task_local_set(&early_key, "e") == -EPERM);
	EXPECT(weft_task_local_get(&early_key) == NULL);
	EXPECT(weft_defer(note, "e") == -EPERM);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static Suite *local_suite(void)
{
	Suite *suite = suite_create("task/local");
	TCase *tc = tcase_create("defer");

	tcase_set_timeout(tc, 30);
	ADD(tc, deferred_is_done_on_every_way_out);
	tcase_add_test(tc, deferred_is_done_outside_of_tasks);
	ADD(tc, deferred_is_shielded);
	ADD(tc, named_can_be_done_before_or_not_at_all);
	ADD(tc, task_ends_with_what_was_deferred);
	ADD(tc, scope_waits_for_what_was_deferred);
	suite_add_tcase(suite, tc);

	tc = tcase_create("values");
	ADD(tc, each_task_has_its_own_values);
	ADD(tc, newest_value_goes_first);
	suite_add_tcase(suite, tc);

	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { local_suite };

	return run_suites(make, 1);
}
