/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/storm: programs by chance.  Tasks start others in groups and
 * under supervisors, join, cancel, wait and compute, with deadlines and
 * shields, on several workers with and without a monitor; other threads push
 * tasks.  A program must end, every task must end once, and none may outlive
 * its scope.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <errno.h>
#include <string.h>

#include <weft/weft.h>

#include "runtime/sched/wait.h"
#include "tests/fake/fake_check.h"

enum { STEPS_MAX = 12, CHILDREN_MAX = 6, DEPTH_MAX = 5, TASKS_MAX = 3000 };

static unsigned started, ended;

struct plan {
	int depth;
	unsigned *alive; /* in the scope that it belongs to */
};

static int64_t act_task(void *arg);

static bool proper(int64_t error)
{
	return error == 0 || error == -ECANCELED || error == -ETIMEDOUT;
}

static bool start_one(struct weft_scope *scope, int depth, unsigned *alive,
		      struct weft_task *ret_task)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct plan plan = { depth, alive };
	int error;

	opts.flags = fake_random(8) == 0 ? WEFT_PINNED : 0;
	opts.ret_task = ret_task;
	if (fake_random(16) == 0)
		opts.stack_bytes = (size_t)32 << 10;
	(*alive)++;
	started++;
	error = weft_go_opts(scope, act_task, &plan, sizeof(plan), &opts);
	if (error == 0)
		return true;
	EXPECT(error == -ECANCELED);
	(*alive)--;
	started--;
	return false;
}

static void act_scope(int depth)
{
	unsigned alive = 0;
	struct weft_scope scope;
	struct weft_task task = { 0 };
	int64_t result;
	bool group = fake_random(2);

	EXPECT((group ? weft_group_begin(&scope) :
			weft_supervisor_begin(&scope)) == 0);
	for (uint64_t n = fake_random(CHILDREN_MAX); n > 0; n--) {
		if (started >= TASKS_MAX)
			break;
		if (!start_one(&scope, depth - 1, &alive,
			       fake_random(2) ? &task : NULL))
			break;
		if (fake_random(4) == 0)
			EXPECT(proper(weft_yield()));
	}
	if (fake_random(8) == 0)
		weft_scope_cancel(&scope);
	if (task.id && fake_random(4) == 0)
		EXPECT(weft_cancel(task) == 0 || ended > 0);
	if (task.id && fake_random(2)) {
		int error = weft_join(task, &result);

		EXPECT(proper(error));
		EXPECT(error || proper(result) || result == -EIO);
	}
	result = weft_scope_end(&scope);
	EXPECT(group ? proper(result) || result == -EIO :
		       result >= 0 && result <= CHILDREN_MAX);
	EXPECT(alive == 0);
}

static void act_timer(void)
{
	struct weft_timer timer = { { 0 } };
	int error;

	EXPECT(weft_timer_set(&timer, weft_now() + fake_random(500000)) == 0);
	if (fake_random(2))
		EXPECT(proper(weft_yield()));
	error = fake_random(2) ? weft_timer_wait(&timer) : 0;
	EXPECT(proper(error));
	(void)weft_timer_clear(&timer);
}

static int64_t pushed(void *arg)
{
	struct plan plan = *(struct plan *)arg;

	if (plan.depth > 0 && fake_random(2))
		act_scope(plan.depth);
	ended++;
	return 0;
}

static void push(void *arg)
{
	struct plan plan = { 1, NULL };

	(void)arg;
	started++;
	EXPECT(weft_submit(fake_runtime(), pushed, &plan, sizeof(plan), NULL) ==
	       0);
}

static void act(int depth)
{
	switch (fake_random(11)) {
	case 0:
		EXPECT(proper(weft_sleep(fake_random(3000000))));
		return;
	case 1:
		fake_compute(fake_random(300000));
		return;
	case 2:
		act_timer();
		return;
	case 3:
		WEFT_WITHIN(fake_random(1000000))
			if (depth > 0)
				act(depth - 1);
		return;
	case 4:
		WEFT_SHIELD
			EXPECT(weft_sleep(fake_random(100000)) == 0);
		return;
	case 5:
		if (fake_random(8) == 0)
			fake_foreign(fake_random(1000000), push, NULL);
		return;
	case 6:
	case 7:
	case 8:
		if (depth > 0)
			act_scope(depth);
		return;
	default:
		EXPECT(proper(weft_yield()));
	}
}

static int64_t act_task(void *arg)
{
	struct plan plan = *(struct plan *)arg;

	for (uint64_t n = fake_random(STEPS_MAX); n > 0; n--)
		act(plan.depth);
	fake_note(ended);
	ended++;
	(*plan.alive)--;
	return fake_random(20) == 0 ? -EIO : 0;
}

static int64_t storm(void *arg)
{
	unsigned alive = 0;

	(void)arg;
	for (int round = 0; round < 20; round++) {
		WEFT_SUPERVISE(all)
			for (int i = 0; i < 4; i++)
				(void)start_one(all, DEPTH_MAX, &alive, NULL);
		EXPECT(alive == 0);
	}
	return 0;
}

START_TEST(storm_abates)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 6,
		.look_ns = _i % 5 == 0 ? 1000 : 0,
		.step_ns = _i % 7 == 0 ? 20000 : 0,
		.budgets_vary = _i % 2,
		.monitor_off = _i % 3 == 0,
		.in_turn = _i % 4 == 0,
		.steps_max = 5000000,
	};
	struct fake_result result;

	started = ended = 0;
	result = must_run(&config, storm, NULL);
	ck_assert_uint_eq(started, ended);
	/* Tasks that other threads pushed, and main, are counted only at their
	 * end. */
	ck_assert_uint_ge(result.stats.total.ended, started + 1);
}
END_TEST

static Suite *storm_suite(void)
{
	Suite *suite = suite_create("sched/storm");
	TCase *tc = tcase_create("storm");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, storm_abates, 0, seeds(200));
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { storm_suite };

	return run_suites(make, 1);
}
