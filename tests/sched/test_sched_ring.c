/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/ring: what the driver (io/driver.c) does with a worker's ring in
 * each tick, for a worker that is late, and around each sleep, on virtual time
 * (ledger V47, V51, L20, L26, L29).  test_timer_sleep does the same for alarms.
 */
#include <weft/weft.h>

#include <errno.h>
#include <string.h>

#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

enum { SEEDS = 20 };

static uint64_t ticks_now(void)
{
	/* relaxed: the worker's own. */
	return weft__load(&weft__worker_self()->counts[WEFT__N_TICKS],
			  relaxed);
}

static struct {
	uint64_t due_ns, ran_ns, ticks;
} request;

static int64_t receive_one(void *arg)
{
	unsigned ring = *(unsigned *)arg;

	EXPECT(fake_receive(ring, request.due_ns - weft_now()) > 0);
	request.ran_ns = weft_now();
	request.ticks = ticks_now();
	return 0;
}

/* Starts a task for which something completes through that ring. */
static void receive_in(struct weft_scope *scope, unsigned ring,
		       uint64_t after_ns, unsigned flags)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	request.due_ns = weft_now() + after_ns;
	request.ran_ns = 0;
	opts.flags = flags;
	EXPECT(weft_go_opts(scope, receive_one, &ring, sizeof(ring), &opts) ==
	       0);
}

/* V51. */
static int64_t yield_until_it_came(void *arg)
{
	uint64_t ticks = 0;

	(void)arg;
	for (int i = 0; i < 20; i++) {
		WEFT_SCOPE(scope, NULL) {
			receive_in(scope, 0, WEFT_US(700), 0);
			while (weft_now() < request.due_ns) {
				EXPECT(weft_yield() == 0);
				fake_pass(WEFT_US(1));
			}
			ticks = ticks_now();
			while (!request.ran_ns)
				EXPECT(weft_yield() == 0);
		}
		EXPECT(request.ticks - ticks <= 1);
	}
	return 0;
}

START_TEST(completion_is_taken_in_the_next_tick)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 1 };

	(void)must_run(&config, yield_until_it_came, NULL);
}
END_TEST

/* V47. */
static int64_t wait_for_what_came(void *arg)
{
	uint64_t parks;

	(void)arg;
	parks = weft__load(&weft__worker_self()->counts[WEFT__N_PARKS],
			   relaxed);
	for (int i = 0; i < 20; i++) {
		WEFT_SCOPE(scope, NULL) {
			receive_in(scope, 0, WEFT_US(10), 0);
			for (int turn = 0; turn < 500; turn++)
				EXPECT(weft_yield() == 0);
			/* Nothing is left to run, and it has come. */
			fake_pass(WEFT_US(20));
		}
	}
	EXPECT(weft__load(&weft__worker_self()->counts[WEFT__N_PARKS],
			  relaxed) == parks);
	return 0;
}

START_TEST(worker_does_not_sleep_on_what_has_completed)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1,
		/* The request is submitted, and has not come. */
		.step_ns = 1,
	};

	(void)must_run(&config, wait_for_what_came, NULL);
}
END_TEST

static struct {
	bool naps, yields, computes, done;
} beside;

static void let_others_run(void)
{
	EXPECT(weft_yield() == 0);
	fake_pass(WEFT_US(1));
}

/* Of the tasks that worker 1 has taken, one sleeps, and the others keep it
 * busy. */
static int64_t nap_or_yield(void *arg)
{
	(void)arg;
	if (weft__worker_self()->index == 0)
		return 0;
	if (beside.naps) {
		beside.yields = true;
		while (!beside.done)
			let_others_run();
		return 0;
	}
	beside.naps = true;
	while (!beside.computes)
		let_others_run();
	for (int i = 0; i < 10; i++) {
		uint64_t due_ns = weft_now() + WEFT_US(300);

		EXPECT(weft_sleep_until(due_ns) == 0);
		EXPECT(weft_now() < due_ns + WEFT_US(500));
		EXPECT(beside.computes);
	}
	beside.done = true;
	return 0;
}

static int64_t compute_on_worker_0(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	(void)arg;
	opts.flags = WEFT_PINNED;
	memset(&beside, 0, sizeof(beside));
	WEFT_SCOPE(scope, NULL) {
		for (unsigned i = 0; !beside.yields; i++) {
			EXPECT(weft_go_opts(scope, nap_or_yield, NULL, 0,
					    &opts) == 0);
			EXPECT(fake_receive(i % 2, WEFT_US(50)) > 0);
		}
		while (weft__worker_self()->index != 0)
			EXPECT(fake_receive(0, WEFT_US(50)) > 0);
		beside.computes = true;
		fake_compute(WEFT_MS(20));
		beside.computes = false;
		EXPECT(beside.done);
	}
	return 0;
}

/* V51. */
START_TEST(worker_turns_its_alarms_when_worker_0_does_not)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 2,
		/* No other worker would help. */
		.monitor_off = true,
		.help_off = true,
	};

	(void)must_run(&config, compute_on_worker_0, NULL);
}
END_TEST

/* L26: the worker has not entered its ring since the request was made, and does
 * not do so when it completes. */
static int64_t compute_meanwhile(void *arg)
{
	(void)arg;
	for (int i = 0; i < 5; i++) {
		WEFT_SCOPE(scope, NULL) {
			receive_in(scope, weft__worker_self()->index,
				   WEFT_MS(4), 0);
			EXPECT(weft_yield() == 0);
			fake_compute(WEFT_MS(40));
			EXPECT(request.ran_ns != 0);
			EXPECT(request.ran_ns < request.due_ns + WEFT_MS(2));
		}
	}
	return 0;
}

START_TEST(ring_of_a_worker_that_computes_is_served)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 2 + (unsigned)_i % 3,
	};

	(void)must_run(&config, compute_meanwhile, NULL);
}
END_TEST

/* L29: the completions of a task that is pinned to a worker that sleeps come
 * through the ring of another, which then has to wake that worker.  It uses its
 * own ring for that, so the run reports if that is still locked. */
static int64_t wake_from_the_other_ring(void *arg)
{
	bool sleeps = *(bool *)arg;

	for (int i = 0; i < 40; i++) {
		WEFT_SCOPE(scope, NULL) {
			unsigned other = !weft__worker_self()->index;

			receive_in(scope, other, WEFT_US(50), WEFT_PINNED);
			receive_in(scope, !other, WEFT_US(50), WEFT_PINNED);
			while (!sleeps && !request.ran_ns) {
				EXPECT(weft_yield() == 0);
				fake_pass(WEFT_US(1));
			}
		}
	}
	return 0;
}

START_TEST(tick_makes_ready_after_the_lock)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 2 };
	bool sleeps = false;

	(void)must_run(&config, wake_from_the_other_ring, &sleeps);
}
END_TEST

START_TEST(sleeper_makes_ready_after_the_lock)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 2 };
	bool sleeps = true;

	(void)must_run(&config, wake_from_the_other_ring, &sleeps);
}
END_TEST

/* A worker that sleeps has its ring locked, so another one that cancels its
 * requests does so without the lock. */
static int64_t give_up(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		uint64_t began_ns = weft_now(), length_ns;
		int r = 0;

		WEFT_WITHIN(WEFT_US(300) + fake_random(WEFT_MS(1)))
			r = fake_receive((unsigned)fake_random(3), WEFT_SEC(1));
		length_ns = weft_now() - began_ns;
		EXPECT(r == -ETIMEDOUT);
		EXPECT(length_ns >= WEFT_US(300) && length_ns < WEFT_MS(2));
	}
	return 0;
}

START_TEST(request_ends_with_its_time_though_its_worker_sleeps)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 3 };
	struct fake_result result;

	result = must_run(&config, give_up, NULL);
	ck_assert_uint_lt(result.end_ns, 1000000000u + WEFT_MS(200));
}
END_TEST

static Suite *ring_suite(void)
{
	Suite *suite = suite_create("sched/ring");
	TCase *tc = tcase_create("ring");

	tcase_add_loop_test(tc, completion_is_taken_in_the_next_tick, 0,
			    seeds(SEEDS));
	tcase_add_loop_test(tc, worker_does_not_sleep_on_what_has_completed, 0,
			    seeds(SEEDS));
	tcase_add_loop_test(tc, worker_turns_its_alarms_when_worker_0_does_not,
			    0, seeds(SEEDS));
	tcase_add_loop_test(tc, ring_of_a_worker_that_computes_is_served, 0,
			    seeds(SEEDS));
	tcase_add_loop_test(tc, tick_makes_ready_after_the_lock, 0,
			    seeds(SEEDS));
	tcase_add_loop_test(tc, sleeper_makes_ready_after_the_lock, 0,
			    seeds(SEEDS));
	tcase_add_loop_test(tc,
			    request_ends_with_its_time_though_its_worker_sleeps,
			    0, seeds(SEEDS));
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	static Suite *(*const make[])(void) = { ring_suite };

	return run_suites(make, 1);
}
