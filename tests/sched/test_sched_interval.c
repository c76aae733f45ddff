/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/interval: how often a worker looks at its other sources of work
 * (ledger V29 to V33, L8).
 *
 * The interval between two looks at the injection queue, counted in runs,
 * follows the measured time of a run.  All tests run on virtual time, so
 * times are exact.
 */
#include <string.h>

#include <weft/weft.h>

#include "runtime/sched/wait.h"
#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

static uint64_t run_ns;

static int64_t run_for(void *arg)
{
	int runs = *(int *)arg;

	for (int i = 0; i < runs; i++) {
		fake_pass(run_ns);
		EXPECT(weft_yield() == 0);
	}
	return weft__worker_self()->tick.inject_interval;
}

static int64_t interval_after(int runs)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	int64_t interval = 0;

	opts.ret_task = &task;
	WEFT_SCOPE(all, NULL) {
		EXPECT(weft_go_opts(all, run_for, &runs, sizeof(runs),
				    &opts) == 0);
		EXPECT(weft_join(task, &interval) == 0);
	}
	return interval;
}

static int64_t settle(void *arg)
{
	/* Between the limits, the average may lag behind a little. */
	static const struct {
		uint64_t ns;
		int64_t min, max;
	} known[] = {
		{ 1000, 255, 255 },    { 10000, 95, 100 },
		{ 50000, 19, 20 },     { 100000, 9, 10 },
		{ 1000000, 8, 8 },     { 10000000, 8, 8 },
		{ 10000, 95, 100 },    { 1000, 255, 255 },
	};

	(void)arg;
	EXPECT(weft__worker_self()->tick.inject_interval == 20);
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		int64_t interval;

		run_ns = known[i].ns;
		interval = interval_after(20000);
		ck_assert_msg(interval >= known[i].min &&
				      interval <= known[i].max,
			      "%" PRIu64 " ns a run: interval %" PRId64,
			      run_ns, interval);
	}
	/* V33: one outlier barely moves it. */
	run_ns = 50000;
	(void)interval_after(20000);
	run_ns = 1000000;
	EXPECT(interval_after(1) >= 12);
	return 0;
}

/* V29 to V33 */
START_TEST(interval_follows_the_time_of_a_run)
{
	struct fake_config config = { .workers = 1 };

	(void)must_run(&config, settle, NULL);
}
END_TEST

/* V33: the average follows a step within 10 to 20 samples.  A sample is a
 * tick of at least 16 runs; a tick with fewer runs counts as a fraction of a
 * sample. */
static struct {
	uint64_t from_ns, to_ns; /* length of a run, before and after */
	uint64_t polls;
	double samples;
	double left_1, left_10, left_20; /* of the step, after n samples */
} step;

static void note_average(struct weft_runtime *runtime, void *arg)
{
	struct weft__worker *worker = runtime->workers[0];
	/* relaxed: one thread. */
	uint64_t polls = weft__load(&worker->counts[WEFT__N_POLLS], relaxed);
	uint64_t runs = polls - step.polls;
	double left = ((double)worker->tick.average_ns - (double)step.to_ns) /
		      ((double)step.from_ns - (double)step.to_ns);

	(void)arg;
	step.polls = polls;
	if (run_ns != step.to_ns)
		return;
	step.samples += (double)(runs < 16 ? runs : 16) / 16;
	if (step.samples < 2)
		step.left_1 = left;
	if (step.samples <= 10)
		step.left_10 = left;
	if (step.samples <= 20)
		step.left_20 = left;
}

static int64_t take_a_step(void *arg)
{
	(void)arg;
	run_ns = step.from_ns;
	(void)interval_after(20000);
	run_ns = step.to_ns;
	(void)interval_after(20000);
	return 0;
}

START_TEST(step_settles_in_20_samples)
{
	static const uint64_t ns[][2] = {
		{ 50000, 10000 }, { 10000, 50000 }, { 50000, 500000 },
		{ 4000, 100000 }, { 100000, 4000 },
	};
	struct fake_config config = {
		.workers = 1,
		.after_step = note_average,
	};

	memset(&step, 0, sizeof(step));
	step.from_ns = ns[_i][0];
	step.to_ns = ns[_i][1];
	(void)must_run(&config, take_a_step, NULL);
	ck_assert_double_ge(step.left_1, 0.8);
	ck_assert_double_le(step.left_10, 0.45);
	ck_assert_double_le(step.left_20, 0.15);
}
END_TEST

static int64_t look_at_average(void *arg)
{
	struct weft__worker *worker = weft__worker_self();
	uint64_t average_ns;

	(void)arg;
	run_ns = 100000;
	(void)interval_after(5000);
	average_ns = worker->tick.average_ns;
	/* Tasks sleep between runs that take no time: ticks in which nothing
	 * runs do not count as samples, and neither does the time asleep. */
	EXPECT(average_ns > 95000 && average_ns < 101000);
	EXPECT(weft_sleep(WEFT_SEC(1)) == 0);
	EXPECT(worker->tick.average_ns <= average_ns);
	EXPECT(worker->tick.average_ns >= average_ns * 98 / 100);
	return 0;
}

START_TEST(tick_that_runs_nothing_is_no_sample)
{
	struct fake_config config = { .workers = 1 };

	(void)must_run(&config, look_at_average, NULL);
}
END_TEST

/* The same when it is woken for nothing again and again. */
enum { EMPTY_TICKS = 200 };

static void wake_for_nothing(void *arg)
{
	unsigned *left = arg;

	if (--*left > 0)
		fake_foreign(WEFT_MS(1), wake_for_nothing, left);
	(void)weft__unpark(NULL, fake_runtime()->workers[0]);
}

static int64_t look_at_empty_ticks(void *arg)
{
	struct weft__worker *worker = weft__worker_self();
	unsigned left = EMPTY_TICKS;
	uint64_t average_ns, ticks;

	(void)arg;
	run_ns = 100000;
	(void)interval_after(5000);
	average_ns = worker->tick.average_ns;
	/* relaxed: one thread. */
	ticks = weft__load(&worker->counts[WEFT__N_TICKS], relaxed);
	fake_foreign(WEFT_MS(1), wake_for_nothing, &left);
	EXPECT(weft_sleep(WEFT_SEC(1)) == 0);
	EXPECT(left == 0);
	/* relaxed: one thread. */
	EXPECT(weft__load(&worker->counts[WEFT__N_TICKS], relaxed) - ticks >=
	       EMPTY_TICKS);
	EXPECT(worker->tick.average_ns <= average_ns);
	EXPECT(worker->tick.average_ns >= average_ns * 98 / 100);
	return 0;
}

START_TEST(empty_ticks_are_no_samples)
{
	struct fake_config config = { .workers = 1 };

	(void)must_run(&config, look_at_empty_ticks, NULL);
}
END_TEST

/* V30: what passes between two ticks, as polling does, is not part of it. */
static int64_t look_at_busy_average(void *arg)
{
	(void)arg;
	run_ns = 10000;
	(void)interval_after(20000);
	return (int64_t)weft__worker_self()->tick.average_ns;
}

START_TEST(sample_has_the_runs_alone)
{
	struct fake_config config = {
		.workers = 1,
		/* A hundred times a run. */
		.step_ns = 1000000,
	};
	int64_t average_ns = must_run(&config, look_at_busy_average, NULL)
				     .result;

	ck_assert_int_ge(average_ns, 9500);
	ck_assert_int_le(average_ns, 10500);
}
END_TEST

static Suite *interval_suite(void)
{
	Suite *suite = suite_create("sched/interval");
	TCase *tc = tcase_create("interval");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, interval_follows_the_time_of_a_run);
	tcase_add_loop_test(tc, step_settles_in_20_samples, 0, 5);
	tcase_add_test(tc, tick_that_runs_nothing_is_no_sample);
	tcase_add_test(tc, empty_ticks_are_no_samples);
	tcase_add_test(tc, sample_has_the_runs_alone);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { interval_suite };

	return run_suites(make, 1);
}
