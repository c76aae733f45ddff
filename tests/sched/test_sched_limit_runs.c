/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/limit_runs: the limit of running workers follows the runs of
 * tasks a second; on virtual time, where the workers share processors.
 *
 * Reads of files get more done with two workers where two processors are free;
 * a server on the processor that is left beside its clients does not.
 */
#include "tests/fake/limit_kit.h"

enum { SEEDS = 10 };

/*
 * Files: what is read completes after a moment, through the ring of the worker
 * that asked.  Each task keeps a worker busy, so two workers do twice as much
 * where two processors are free.
 */
static int64_t read_files(void *arg)
{
	(void)arg;
	while (!over) {
		fake_receive(weft__worker_self()->index, 1 + fake_random(2000));
		fake_compute(WEFT_US(20));
	}
	return 0;
}

static struct fake_config sharing_config(int i, unsigned workers,
					 unsigned processors)
{
	struct fake_config config = limit_config(i, workers, processors);

	config.shares = true;
	config.all_busy = true;
	config.step_ns = 200;
	/* A tick of one worker is a part of a run of another. */
	config.tick_budget = 1;
	config.steps_max = 100000000;
	return config;
}

static void run_sharing(int i, unsigned workers, unsigned processors,
			weft_fn main_fn)
{
	struct fake_config config = sharing_config(i, workers, processors);

	(void)must_run(&config, main_fn, NULL);
}

/* Runs a second, in thousands. */
static double rate_during(uint64_t length_ns)
{
	uint64_t before = fake_polls();

	EXPECT(weft_sleep(length_ns) == 0);
	return (double)(fake_polls() - before) * 1e6 / (double)length_ns;
}

static double rate_of_one;

AMONG(read_files, one_reads)
{
	EXPECT(weft_sleep(WEFT_MS(50)) == 0);
	rate_of_one = rate_during(WEFT_MS(200));
}

/* Another program takes a processor for so long. */
static void disturb(uint64_t length_ns)
{
	fake_processors(1, 0);
	EXPECT(weft_sleep(length_ns) == 0);
	fake_processors(2, 0);
}

/* A worker that loses its processor once is no reason to do without it. */
AMONG(read_files, two_read)
{
	EXPECT(weft_sleep(WEFT_MS(100)) == 0);
	disturb(WEFT_MS(25));
	EXPECT(weft_sleep(WEFT_MS(80)) == 0);
	EXPECT(most() == 2);
	EXPECT(rate_during(WEFT_MS(200)) >= 1.7 * rate_of_one);
	EXPECT(most() == 2);
}

START_TEST(files_have_their_second_worker_back_after_80_ms)
{
	run_sharing(_i, 1, 2, one_reads_main);
	run_sharing(_i, 2, 2, two_read_main);
}
END_TEST

/* Another program takes a processor for a twelfth of the time, and a twenty-
 * fifth of what two can do.  The limit may cost a twentieth more. */
AMONG(read_files, two_are_disturbed)
{
	double rate, sum = 0;

	EXPECT(weft_sleep(WEFT_MS(100)) == 0);
	rate = rate_during(WEFT_MS(200));
	EXPECT(rate >= 1.7 * rate_of_one);
	for (int i = 0; i < 30; i++) {
		uint64_t before = fake_polls();

		disturb(WEFT_MS(8));
		EXPECT(weft_sleep(WEFT_MS(92)) == 0);
		sum += (double)(fake_polls() - before) / 100;
	}
	EXPECT(sum / 30 >= 0.9 * rate);
}

START_TEST(disturbances_cost_files_a_tenth_at_most)
{
	run_sharing(_i, 1, 2, one_reads_main);
	run_sharing(_i, 2, 2, two_are_disturbed_main);
}
END_TEST

/* Another program computes all the time.  Two workers then get two thirds of
 * two processors, and one gets a half: the wait is worth it. */
AMONG(read_files, two_of_three)
{
	unsigned at_two = 0;

	EXPECT(weft_sleep(WEFT_MS(100)) == 0);
	for (int i = 0; i < 300; i++) {
		EXPECT(weft_sleep(WEFT_MS(10)) == 0);
		at_two += most() == 2;
	}
	/* Each test of one worker takes up to 40 ms, the first after a quarter
	 * of a second, the others after twice the time. */
	EXPECT(at_two >= 285);
}

START_TEST(more_runs_are_worth_a_wait)
{
	struct fake_config config = sharing_config(_i, 2, 2);

	config.others = 1;
	(void)must_run(&config, two_of_three_main, NULL);
}
END_TEST

/* The load has changed.  From 400 ms later on the limit is that. */
static void expect_most(uint32_t max)
{
	uint64_t more_ns = fake_random(WEFT_MS(500));

	EXPECT(weft_sleep(WEFT_MS(400)) == 0);
	for (uint64_t i = 0; i <= more_ns; i += WEFT_MS(10)) {
		EXPECT(most() == max);
		EXPECT(weft_sleep(WEFT_MS(10)) == 0);
	}
}

static void serve_on(void)
{
	fake_processors(1, 0);
}

static void read_on(void)
{
	fake_processors(2, 900);
}

/* From sockets to files and back.  A first trial fails before. */
AMONG(read_files, load_changes)
{
	serve_on();
	EXPECT(weft_sleep(WEFT_MS(300)) == 0);
	EXPECT(most() == 1);
	EXPECT(weft_sleep(WEFT_MS(4500)) == 0);
	for (int i = 0; i < 6; i++) {
		/* A trial that gains, and then there is no more to gain. */
		read_on();
		EXPECT(weft_sleep(WEFT_MS(350)) == 0);
		serve_on();
		EXPECT(weft_sleep(WEFT_MS(100)) == 0);
		read_on();
		expect_most(2);
		serve_on();
		expect_most(1);
	}
}

START_TEST(change_of_load_is_followed_within_400_ms)
{
	run_sharing(_i, 2, 1, load_changes_main);
}
END_TEST

/* Two workers do no more than one.  Not more than a hundredth of the time goes
 * into trials, once it is seen. */
AMONG(receive_much, seldom_two)
{
	unsigned at_two = 0;

	EXPECT(weft_sleep(WEFT_MS(150)) == 0);
	for (int i = 0; i < 6000; i++) {
		EXPECT(weft_sleep(WEFT_MS(2)) == 0);
		at_two += most() == 2;
	}
	EXPECT(at_two <= 60);
}

START_TEST(trials_take_a_hundredth_of_the_time)
{
	run_sharing(_i, 2, 1, seldom_two_main);
}
END_TEST

static Suite *runs_suite(void)
{
	Suite *suite = suite_create("sched/limit_runs");
	TCase *tc = tcase_create("runs");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(
		tc, files_have_their_second_worker_back_after_80_ms, 0, SEEDS);
	tcase_add_loop_test(tc, disturbances_cost_files_a_tenth_at_most, 0,
			    SEEDS);
	tcase_add_loop_test(tc, more_runs_are_worth_a_wait, 0, SEEDS);
	tcase_add_loop_test(tc, change_of_load_is_followed_within_400_ms, 0,
			    SEEDS);
	tcase_add_loop_test(tc, trials_take_a_hundredth_of_the_time, 0, 3);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { runs_suite };

	return run_suites(make, 1);
}
