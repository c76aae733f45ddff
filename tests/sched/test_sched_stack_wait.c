/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/stack_wait: tasks that wait for a stack.
 *
 * When no stack can be mapped, a task that never ran waits until another task
 * ends and leaves its stack.  Meanwhile no worker spins.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <weft/weft.h>

#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

enum { TASKS = 100, STACKS = 3 };

static unsigned ran;

static void limit_stacks(uint64_t max)
{
	fake_runtime()->stacks.max = max;
}

static struct fake_config config_of(int i)
{
	return (struct fake_config){
		.seed = seed_of(i),
		.workers = 1 + (unsigned)i % 4,
		.budgets_vary = i >= 4,
	};
}

static int64_t count_slowly(void *arg)
{
	EXPECT(weft_sleep(WEFT_MS(*(int *)arg % 20)) == 0);
	ran++;
	return 0;
}

/* main has one of the stacks. */
static int64_t start_more_than_stacks(void *arg)
{
	(void)arg;
	ran = 0;
	limit_stacks(STACKS);
	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < TASKS; i++)
			EXPECT(WEFT_GO(all, count_slowly, i) == 0);
	EXPECT(ran == TASKS);
	return 0;
}

START_TEST(each_gets_a_stack_in_the_end)
{
	struct fake_config config = config_of(_i);
	struct fake_result result =
		must_run(&config, start_more_than_stacks, NULL);

	/* Two tasks at a time sleep, for 9.5 ms on average.  A free stack is
	 * taken immediately, or when a worker looks again. */
	EXPECT(result.end_ns - 1000000000u < TASKS * WEFT_MS(15) / 2);
}
END_TEST

enum { TURNS = 20, TURN_MS = 10 };

static int64_t sleep_a_turn(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_MS(TURN_MS));
}

static int64_t take_turns(void *arg)
{
	(void)arg;
	limit_stacks(2);
	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < TURNS; i++)
			EXPECT(weft_go(all, sleep_a_turn, NULL, 0) == 0);
	return 0;
}

/* The task's worker has nothing else to do; it must not sleep while a stack is
 * free. */
START_TEST(stack_that_was_left_is_taken_at_once)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 1 };
	struct fake_result result = must_run(&config, take_turns, NULL);

	EXPECT(result.end_ns - 1000000000u < WEFT_MS(TURNS * (TURN_MS + 1)));
}
END_TEST

static int64_t sleep_a_second(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_SEC(1));
}

static int64_t start_sleepers(void *arg)
{
	(void)arg;
	limit_stacks(STACKS);
	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < STACKS; i++)
			EXPECT(weft_go(all, sleep_a_second, NULL, 0) == 0);
	return 0;
}

START_TEST(nobody_spins_meanwhile)
{
	struct fake_config config = config_of(_i);
	struct fake_result result = must_run(&config, start_sleepers, NULL);

	/* Each worker looks every 5 ms, and may wake the others. */
	EXPECT(result.end_ns - 1000000000u >= WEFT_SEC(2));
	EXPECT(result.steps < 2000 * config.workers * config.workers);
}
END_TEST

static int64_t set_stacks(void *arg)
{
	EXPECT(weft_sleep(WEFT_MS(50)) == 0);
	limit_stacks(*(uint64_t *)arg);
	return weft_sleep(WEFT_SEC(1));
}

static int64_t start_before_there_is_memory(void *arg)
{
	uint64_t later = STACKS;
	int i = 0;

	(void)arg;
	ran = 0;
	WEFT_SCOPE(all, NULL) {
		EXPECT(WEFT_GO(all, set_stacks, later) == 0);
		EXPECT(weft_yield() == 0);
		limit_stacks(2);
		EXPECT(WEFT_GO(all, count_slowly, i) == 0);
		EXPECT(weft_sleep(WEFT_MS(40)) == 0);
		EXPECT(ran == 0);
		EXPECT(weft_sleep(WEFT_MS(30)) == 0);
		EXPECT(ran == 1);
	}
	return 0;
}

START_TEST(memory_is_asked_for_again)
{
	struct fake_config config = config_of(_i);

	(void)must_run(&config, start_before_there_is_memory, NULL);
}
END_TEST

/*
 * A task joins one that waits for a stack.  The end of another task on its
 * worker must not be taken for the end of the joined task.
 */

static int64_t wait_for_another(void *arg)
{
	(void)arg;
	WEFT_SCOPE(inner, NULL)
		EXPECT(weft_go(inner, sleep_a_turn, NULL, 0) == 0);
	ran++;
	return 0;
}

static int64_t seven(void *arg)
{
	(void)arg;
	ran++;
	return 7;
}

static int64_t join_who_starves(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task child;
	int64_t result = 0;

	(void)arg;
	ran = 0;
	opts.ret_task = &child;
	WEFT_SCOPE(all, NULL) {
		EXPECT(weft_go(all, wait_for_another, NULL, 0) == 0);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		limit_stacks(3);
		/* With short runs like these, join switches to the child
		 * directly. */
		for (int i = 0; i < 1000; i++)
			EXPECT(weft_yield() == 0);
		EXPECT(weft_go_opts(all, seven, NULL, 0, &opts) == 0);
		EXPECT(weft_join(child, &result) == 0);
		EXPECT(result == 7);
	}
	EXPECT(ran == 2);
	return 0;
}

START_TEST(joined_task_that_starves_is_waited_for)
{
	struct fake_config config = config_of(_i);

	(void)must_run(&config, join_who_starves, NULL);
}
END_TEST

static Suite *stack_wait_suite(void)
{
	Suite *suite = suite_create("sched/stack_wait");
	TCase *tc = tcase_create("stack wait");

	tcase_add_loop_test(tc, each_gets_a_stack_in_the_end, 0, seeds(40));
	tcase_add_loop_test(tc, stack_that_was_left_is_taken_at_once, 0,
			    seeds(20));
	tcase_add_loop_test(tc, nobody_spins_meanwhile, 0, seeds(40));
	tcase_add_loop_test(tc, memory_is_asked_for_again, 0, seeds(40));
	tcase_add_loop_test(tc, joined_task_that_starves_is_waited_for, 0,
			    seeds(40));
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const suites[])(void) = { stack_wait_suite };

	return run_suites(suites, 1);
}
