/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/runs: each task that is started runs exactly once, and the same
 * seed gives the same run.
 *
 * Covered: tasks from inside and from outside, full queues and overflow, pinned
 * tasks, and the limits of the calls that start tasks.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <errno.h>
#include <string.h>

#include <weft/weft.h>

#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

/*
 * Every task runs exactly once.
 */

#define TASKS 100000

static unsigned char ran[TASKS];
static uint64_t checksum;

static int64_t mark(void *arg)
{
	uint32_t i = *(uint32_t *)arg;

	ran[i]++;
	checksum += i;
	fake_note(i);
	return 0;
}

/* Yields and sleeps in between; how often depends on the number. */
static int64_t mark_slowly(void *arg)
{
	uint32_t i = *(uint32_t *)arg;

	for (uint32_t n = i % 4; n > 0; n--)
		EXPECT(weft_yield() == 0);
	if (i % 16 == 0)
		EXPECT(weft_sleep(i) == 0);
	return mark(arg);
}

static int64_t start_all(void *arg)
{
	weft_fn fn = *(weft_fn *)arg;
	int64_t result = -1;

	WEFT_SCOPE(all, &result)
		for (uint32_t i = 0; i < TASKS; i++)
			EXPECT(WEFT_GO(all, fn, i) == 0);
	EXPECT(result == 0);
	for (uint32_t i = 0; i < TASKS; i++)
		EXPECT(ran[i] == 1);
	return 0;
}

static struct fake_result run_all_once(int i, weft_fn fn)
{
	struct fake_config config = {
		.seed = seed_of(i),
		.workers = 1 + (unsigned)i % 4,
		.budgets_vary = i >= 4,
		.in_turn = i % 8 == 3,
	};
	struct fake_result result;

	memset(ran, 0, sizeof(ran));
	checksum = 0;
	result = must_run(&config, start_all, &fn);
	EXPECT(checksum == (uint64_t)TASKS * (TASKS - 1) / 2);
	EXPECT(result.stats.total.spawned == TASKS);
	/* No task started main, so it is not in `spawned`. */
	EXPECT(result.stats.total.ended == TASKS + 1);
	return result;
}

START_TEST(every_task_runs_exactly_once)
{
	struct fake_result result = run_all_once(_i, mark);

	/* Each task runs once without a pause, and main at least twice. */
	ck_assert_uint_ge(result.stats.total.polls, TASKS + 2);
	ck_assert_uint_le(result.stats.total.polls, TASKS + 300);
}
END_TEST

START_TEST(every_task_that_waits_runs_exactly_once)
{
	struct fake_result result = run_all_once(_i, mark_slowly);

	ck_assert_uint_eq(result.stats.total.timers_fired, TASKS / 16 - 1);
}
END_TEST

/* A worker without tasks takes half of another worker's tasks. */
START_TEST(idle_workers_take_their_share)
{
	struct fake_result result = run_all_once(_i * 4 + 3, mark_slowly);

	for (int i = 0; i < 4; i++)
		ck_assert_uint_ge(result.worker[i].polls, TASKS / 8);
}
END_TEST

/*
 * The same seed gives the same run.
 */

static int64_t wander(void *arg)
{
	uint32_t i = *(uint32_t *)arg;

	for (int n = 0; n < 8; n++) {
		fake_note(i);
		switch (fake_random(4)) {
		case 0:
			EXPECT(weft_sleep(fake_random(2000000)) == 0);
			break;
		case 1:
			fake_pass(fake_random(100000));
			break;
		default:
			EXPECT(weft_yield() == 0);
		}
	}
	return 0;
}

static int64_t start_wanderers(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL)
		for (uint32_t i = 0; i < 2000; i++)
			EXPECT(WEFT_GO(all, wander, i) == 0);
	return 0;
}

START_TEST(same_seed_gives_the_same_trace)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 5,
		.look_ns = 500,
		.budgets_vary = true,
	};
	struct fake_result first = must_run(&config, start_wanderers, NULL);
	struct fake_result again = must_run(&config, start_wanderers, NULL);
	struct fake_result other;

	ck_assert_uint_eq(first.trace, again.trace);
	ck_assert_uint_eq(first.steps, again.steps);
	ck_assert_uint_eq(first.end_ns, again.end_ns);
	ck_assert_int_eq(memcmp(&first.stats, &again.stats,
				sizeof(first.stats)), 0);
	config.seed++;
	other = must_run(&config, start_wanderers, NULL);
	ck_assert_uint_ne(first.trace, other.trace);
}
END_TEST

/* At least one task runs in each tick, whatever the budget. */
START_TEST(smallest_budget_suffices)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 4,
		.steps_max = 1000000,
	};
	struct fake_result result;

	config.tick_budget = 1 + _i / 4;
	result = must_run(&config, start_wanderers, NULL);
	ck_assert_uint_ge(result.steps,
			  result.stats.total.polls /
				  (uint64_t)config.tick_budget);
}
END_TEST

/*
 * Full queues.
 */

static uint64_t overflowed(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < fake_runtime()->workers_count; i++)
		sum += fake_runtime()->workers[i]->counts[WEFT__N_OVERFLOWED];
	return sum;
}

static struct weft_sem gate;
static unsigned at_the_gate;

static int64_t mark_behind_the_gate(void *arg)
{
	at_the_gate++;
	EXPECT(weft_sem_acquire(&gate, 1) == 0);
	return mark(arg);
}

static int64_t overflow_step_by_step(void *arg)
{
	/* One task in the hand-off slot, the others in the ring and its
	 * overflow buffer. */
	uint32_t slots = 1 + 2 * *(uint32_t *)arg;
	unsigned other = !weft__worker_self()->index;

	gate = (struct weft_sem)WEFT_SEM_INIT(0);
	/* Another worker would take some of them. */
	fake_hold(other, true);
	WEFT_SCOPE(all, NULL) {
		for (uint32_t i = 0; i < 5000; i++)
			EXPECT(WEFT_GO(all, mark_behind_the_gate, i) == 0);
		EXPECT(weft__inject_length(&fake_runtime()->inject) == 0);
		while (at_the_gate < 5000)
			EXPECT(weft_yield() == 0);
		for (uint32_t i = 0; i < 5000; i++) {
			/* Each further 128 push out 128 together. */
			uint64_t beyond = i > slots ? i - slots : 0;

			EXPECT(overflowed() == (beyond + 127) / 128 * 128);
			/* O01: the others stay with their worker. */
			EXPECT(weft__inject_length(&fake_runtime()->inject) ==
			       overflowed());
			weft_sem_release(&gate, 1);
		}
		fake_hold(other, false);
	}
	return 0;
}

/* V14: the lock is taken once for 128 tasks.  V03: a ring has 256 slots, and
 * that of a worker which is alone 1024. */
START_TEST(full_queue_moves_128_at_once)
{
	struct fake_config config = {
		.workers = 1 + (unsigned)_i,
		.monitor_off = true,
	};
	uint32_t slots = _i ? 256 : 1024;

	at_the_gate = 0;
	memset(ran, 0, sizeof(ran));
	(void)must_run(&config, overflow_step_by_step, &slots);
	for (uint32_t i = 0; i < 5000; i++)
		EXPECT(ran[i] == 1);
}
END_TEST

/* Tasks that never ran are not part of the queue's order: the newest starts
 * first, so that few stacks are needed.  In breadth-first order 11,111 tasks
 * would wait at a time. */
static int64_t tree(void *arg)
{
	uint32_t depth = *(uint32_t *)arg, next = depth - 1;
	struct weft_stats stats;

	ran[depth] = 1;
	if (depth == 0)
		return 0;
	WEFT_SCOPE(all, NULL)
		for (uint32_t i = 0; i < 10; i++)
			EXPECT(WEFT_GO(all, tree, next) == 0);
	EXPECT(weft_stats_get(fake_runtime(), &stats) == 0);
	EXPECT(stats.stacks < 2500);
	return 0;
}

START_TEST(tree_of_tasks_needs_few_stacks)
{
	struct fake_config config = { .workers = 1 };
	uint32_t depth = 5;

	memset(ran, 0, sizeof(ran));
	ck_assert_int_eq(must_run(&config, tree, &depth).result, 0);
	EXPECT(ran[0] == 1);
}
END_TEST

/*
 * Tasks from outside.
 */

static unsigned outside;

static int64_t count_outside(void *arg)
{
	(void)arg;
	outside++;
	return 0;
}

static void submit_some(void *arg)
{
	(void)arg;
	for (int i = 0; i < 300; i++)
		EXPECT(weft_submit(fake_runtime(), count_outside, NULL, 0,
				   NULL) == 0);
}

static int64_t wait_outside(void *arg)
{
	(void)arg;
	fake_foreign(1000, submit_some, NULL);
	fake_foreign(5000000, submit_some, NULL);
	while (outside < 600)
		EXPECT(weft_yield() == 0);
	return 0;
}

static int64_t leave_early(void *arg)
{
	(void)arg;
	fake_foreign(5000000, submit_some, NULL);
	return 0;
}

START_TEST(tasks_from_other_threads_run)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 4,
		.budgets_vary = true,
	};
	struct fake_result result;

	outside = 0;
	result = must_run(&config, wait_outside, NULL);
	ck_assert_uint_eq(outside, 600);
	ck_assert_uint_ge(result.stats.total.injected, 600);
	ck_assert_uint_ge(result.stats.total.inject_batches, 1);
	outside = 0;
	(void)must_run(&config, leave_early, NULL);
	ck_assert_uint_eq(outside, 300);
}
END_TEST

/*
 * Pinned tasks.
 */

static int64_t stay(void *arg)
{
	uint32_t home = weft__worker_self()->index;

	(void)arg;
	for (int i = 0; i < 50; i++) {
		if (fake_random(3) == 0)
			EXPECT(weft_sleep(fake_random(300000)) == 0);
		else
			EXPECT(weft_yield() == 0);
		EXPECT(weft__worker_self()->index == home);
	}
	return home;
}

static int64_t start_pinned(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	(void)arg;
	opts.flags = WEFT_PINNED;
	WEFT_SCOPE(all, NULL)
		for (uint32_t i = 0; i < 200; i++) {
			EXPECT(weft_go_opts(all, stay, NULL, 0, &opts) == 0);
			EXPECT(WEFT_GO(all, wander, i) == 0);
		}
	return 0;
}

START_TEST(pinned_task_stays_on_its_worker)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 2 + (unsigned)_i % 3,
		.budgets_vary = true,
	};

	(void)must_run(&config, start_pinned, NULL);
}
END_TEST

/*
 * Limits and mistakes.
 */

static int64_t reach_the_limit(void *arg)
{
	unsigned max = *(unsigned *)arg;

	/* The records are those of the round before, whichever workers ran
	 * it. */
	for (int round = 0; round < 3; round++) {
		unsigned started = 0;
		int error = 0;

		WEFT_SCOPE(all, NULL) {
			while (error == 0) {
				error = weft_go(all, count_outside, NULL, 0);
				started += error == 0;
			}
			EXPECT(error == -EAGAIN);
			EXPECT(weft_go_future(all, count_outside, NULL, 0) ==
			       -EAGAIN);
			EXPECT(weft_submit(weft_runtime_self(), count_outside,
					   NULL, 0, NULL) == -EAGAIN);
			/* main is the other task. */
			EXPECT(started == max - 1);
		}
	}
	return 0;
}

START_TEST(limit_of_tasks_gives_eagain)
{
	unsigned max = 500;
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 4,
		.tasks_max = max,
	};

	(void)must_run(&config, reach_the_limit, &max);
}
END_TEST

static int64_t sum_bytes(void *arg)
{
	const unsigned char *bytes = arg;
	int64_t sum = 0;

	EXPECT(weft_yield() == 0);
	for (size_t i = 0; i < WEFT_ARG_BYTES_MAX; i++)
		sum += bytes[i];
	return sum;
}

static int64_t pass_arguments(void *arg)
{
	unsigned char bytes[WEFT_ARG_BYTES_MAX];
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	int64_t sum;

	(void)arg;
	opts.ret_task = &task;
	memset(bytes, 3, sizeof(bytes));
	WEFT_SCOPE(all, NULL) {
		EXPECT(weft_go_opts(all, sum_bytes, bytes, sizeof(bytes),
				    &opts) == 0);
		memset(bytes, 0, sizeof(bytes));
		EXPECT(weft_join(task, &sum) == 0);
		EXPECT(sum == 3 * (int64_t)WEFT_ARG_BYTES_MAX);
		EXPECT(weft_go(all, sum_bytes, bytes, sizeof(bytes) + 1) ==
		       -EINVAL);
		EXPECT(weft_go(all, NULL, NULL, 0) == -EINVAL);
		EXPECT(weft_go(NULL, sum_bytes, NULL, 0) == -EINVAL);
		EXPECT(weft_go(all, sum_bytes, NULL, 8) == -EINVAL);
		opts.stack_bytes = 1;
		EXPECT(weft_go_opts(all, sum_bytes, NULL, 0, &opts) ==
		       -EINVAL);
		opts.stack_bytes = 0;
		opts.flags = 1u << 7;
		EXPECT(weft_go_opts(all, sum_bytes, NULL, 0, &opts) ==
		       -EINVAL);
	}
	return 0;
}

static int64_t take_text(void *arg)
{
	const char *text = *(const char *const *)arg;

	EXPECT(strcmp(text, "text") == 0);
	return 0;
}

static int64_t pass_texts(void *arg)
{
	char array[] = "text";

	(void)arg;
	WEFT_SCOPE(scope, NULL) {
		EXPECT(WEFT_GO(scope, take_text, &array[0]) == 0);
		EXPECT(WEFT_GO(scope, take_text, "text") == 0);
	}
	return 0;
}

START_TEST(literal_is_passed_by_its_address)
{
	struct fake_config config = { .workers = 1 };

	(void)must_run(&config, pass_texts, NULL);
}
END_TEST

START_TEST(argument_is_copied)
{
	struct fake_config config = { .workers = 2, .seed = seed_of(_i) };

	(void)must_run(&config, pass_arguments, NULL);
}
END_TEST

static Suite *runs_suite(void)
{
	Suite *suite = suite_create("sched/runs");
	TCase *tc = tcase_create("every task");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, every_task_runs_exactly_once, 0,
			    seeds(16));
	tcase_add_loop_test(tc, every_task_that_waits_runs_exactly_once, 0,
			    seeds(16));
	tcase_add_loop_test(tc, idle_workers_take_their_share, 0,
			    seeds(4));
	tcase_add_loop_test(tc, tasks_from_other_threads_run, 0, 40);
	tcase_add_loop_test(tc, pinned_task_stays_on_its_worker, 0, 40);
	suite_add_tcase(suite, tc);

	tc = tcase_create("trace");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, same_seed_gives_the_same_trace, 0,
			    seeds(20));
	tcase_add_loop_test(tc, smallest_budget_suffices, 0, 16);
	suite_add_tcase(suite, tc);

	tc = tcase_create("queues");
	tcase_add_loop_test(tc, full_queue_moves_128_at_once, 0, 2);
	tcase_add_test(tc, tree_of_tasks_needs_few_stacks);
	suite_add_tcase(suite, tc);

	tc = tcase_create("limits");
	tcase_add_loop_test(tc, limit_of_tasks_gives_eagain, 0,
			    seeds(16));
	tcase_add_loop_test(tc, argument_is_copied, 0, 4);
	tcase_add_test(tc, literal_is_passed_by_its_address);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { runs_suite };

	return run_suites(make, 1);
}
