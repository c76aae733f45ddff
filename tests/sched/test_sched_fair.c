/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/fair: each task that can run does so within a bounded number of
 * runs of other tasks (ledger Z10 to Z12, V22 to V24, V54).
 *
 * Tasks that spin, yield or hand over to each other try to keep a worker; the
 * tests count how many runs pass before the other tasks get their turn, on
 * virtual time.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <string.h>

#include <weft/weft.h>

#include "runtime/sched/wait.h"
#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

/*
 * The program that hung in Cats Effect: tasks that spin until a flag is set,
 * and a task somewhere behind them that sets it (Z10).  The tests vary the way
 * to spin, the way in which the setter becomes ready, and its place (Z11).
 */

enum spin {
	BY_YIELD,
	BY_JOIN,
	BY_HAND_OVER,
	BY_ZERO_SLEEP,
	BY_CHANNEL,
	SPINS,
};
enum deliver { BY_SPAWN, BY_TIMER, BY_FOREIGN, DELIVERIES };

enum { NOOPS_BEFORE = 200, NOOPS = 1200 };

struct program {
	unsigned spinners;
	int setter_at; /* number of no-ops started before it */
	enum spin spin;
	enum deliver deliver;
	bool flag;
	unsigned noops;
};

static struct program program;

static int64_t noop(void *arg)
{
	(void)arg;
	program.noops++;
	return 0;
}

static int64_t set_flag(void *arg)
{
	(void)arg;
	program.flag = true;
	return 0;
}

static int64_t set_flag_later(void *arg)
{
	(void)arg;
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	program.flag = true;
	return 0;
}

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* The child is in the hand-off slot and is switched to; its end switches
 * back. */
static void spin_by_join(void)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;

	opts.ret_task = &task;
	WEFT_SCOPE(all, NULL)
		while (!program.flag) {
			EXPECT(weft_go_opts(all, nothing, NULL, 0, &opts) == 0);
			EXPECT(weft_join(task, NULL) == 0);
		}
}

struct pair {
	uint64_t id[2];
};

/* Wakes the other task through the hand-off slot, then waits for its wake. */
static void hand_over(struct pair *pair, int me)
{
	struct weft__worker *worker = weft__worker_self();

	while (!program.flag) {
		(void)weft__wake_next(worker->runtime, worker,
				      pair->id[1 - me]);
		worker = weft__suspend(worker, WEFT__REASON_UNREPORTED);
	}
	(void)weft__wake_next(worker->runtime, worker, pair->id[1 - me]);
}

static int64_t second(void *arg)
{
	hand_over(*(struct pair **)arg, 1);
	return 0;
}

static void spin_by_hand_over(void)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task other;
	struct pair pair, *pointer = &pair;

	opts.ret_task = &other;
	pair.id[0] = weft_self().id;
	WEFT_SCOPE(all, NULL) {
		EXPECT(weft_go_opts(all, second, &pointer, sizeof(pointer),
				    &opts) == 0);
		pair.id[1] = other.id;
		hand_over(&pair, 0);
	}
}

struct ball {
	struct weft_chan there, back;
};

static int64_t throw_back(void *arg)
{
	struct ball *ball = *(struct ball **)arg;
	int v;

	while (weft_chan_recv(&ball->there, &v) == 0)
		EXPECT(weft_chan_send(&ball->back, &v) == 0);
	return 0;
}

static void spin_by_channel(void)
{
	struct ball here = { WEFT_CHAN_DIRECT(int), WEFT_CHAN_DIRECT(int) };
	struct ball *ball = &here;
	int v = 0;

	WEFT_SCOPE(all, NULL) {
		EXPECT(WEFT_GO(all, throw_back, ball) == 0);
		while (!program.flag) {
			EXPECT(weft_chan_send(&ball->there, &v) == 0);
			EXPECT(weft_chan_recv(&ball->back, &v) == 0);
		}
		weft_chan_close(&ball->there);
	}
}

static void spin(enum spin how)
{
	switch (how) {
	case BY_CHANNEL:
		spin_by_channel();
		return;
	case BY_JOIN:
		spin_by_join();
		return;
	case BY_HAND_OVER:
		spin_by_hand_over();
		return;
	case BY_ZERO_SLEEP:
		while (!program.flag)
			EXPECT(weft_sleep(0) == 0);
		return;
	default:
		while (!program.flag)
			EXPECT(weft_yield() == 0);
	}
}

static int64_t spinner(void *arg)
{
	(void)arg;
	spin(program.spin);
	return 0;
}

static void push_setter(void *arg)
{
	(void)arg;
	EXPECT(weft_submit(fake_runtime(), set_flag, NULL, 0, NULL) == 0);
}

static void deliver_setter(struct weft_scope *scope)
{
	switch (program.deliver) {
	case BY_TIMER:
		EXPECT(weft_go(scope, set_flag_later, NULL, 0) == 0);
		return;
	case BY_FOREIGN:
		fake_foreign(0, push_setter, NULL);
		return;
	default:
		EXPECT(weft_go(scope, set_flag, NULL, 0) == 0);
	}
}

static int64_t cats_effect(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL) {
		for (unsigned i = 0; i < program.spinners; i++)
			EXPECT(weft_go(all, spinner, NULL, 0) == 0);
		for (int i = 0; i <= NOOPS; i++) {
			if (i == program.setter_at)
				deliver_setter(all);
			if (i < NOOPS)
				EXPECT(weft_go(all, noop, NULL, 0) == 0);
		}
		while (!program.flag)
			EXPECT(weft_yield() == 0);
	}
	return 0;
}

static struct fake_result run_program(uint64_t seed, unsigned workers,
				      unsigned spinners)
{
	struct fake_config config = {
		.seed = seed,
		.workers = workers,
		.look_ns = 3000,
		.steps_max = 2000000,
	};
	struct fake_result result;

	program.flag = false;
	program.noops = 0;
	program.spinners = spinners;
	result = must_run(&config, cats_effect, NULL);
	EXPECT(program.noops == NOOPS);
	return result;
}

/* n - 1, n and 4n spinners for n workers. */
static unsigned spinners_of(int i, unsigned workers)
{
	return i % 3 == 0 ? workers - 1 : i % 3 == 1 ? workers : 4 * workers;
}

START_TEST(program_that_spins_until_a_later_task_sets_a_flag_ends)
{
	unsigned workers = 1 + (unsigned)_i / 3 % 4;
	unsigned spinners = spinners_of(_i, workers);
	struct fake_result result;

	program = (struct program){ .setter_at = NOOPS_BEFORE };
	result = run_program(seed_of(_i), workers, spinners);
	/* No task waits for more than 2 runs of each runnable task.  That
	 * counts twice for the setter, and once more for the task that must see
	 * the flag. */
	ck_assert_uint_le(result.stats.total.polls,
			  6 * (uint64_t)(NOOPS + spinners + 2));
}
END_TEST

START_TEST(setter_at_every_place_ends_the_spinning)
{
	uint64_t seed = seed_of(_i);

	for (int at = 0; at <= NOOPS; at += 1 + (int)(seed % 97)) {
		unsigned workers = 1 + (unsigned)at % 4;
		unsigned spinners = spinners_of((int)(seed + (uint64_t)at),
						workers);
		struct fake_result result;

		program = (struct program){
			.setter_at = at,
			.spin = (enum spin)(_i % SPINS),
			.deliver = (enum deliver)(_i / SPINS % DELIVERIES),
		};
		result = run_program(seed, workers, spinners);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		/* The tasks spin for the timer's millisecond, so there is no
		 * bound. */
		if (program.deliver == BY_TIMER)
			continue;
		/* A chain of direct switches goes on until the tick ends. */
		ck_assert_uint_le(result.stats.total.polls,
				  (program.spin == BY_JOIN ? 300u : 12u) *
					  (uint64_t)(NOOPS + spinners + 2));
	}
}
END_TEST

/* The longest wait of a runnable task, in runs of tasks on all workers. */

struct yielder {
	uint64_t since; /* the count when it became ready */
};

static struct {
	struct yielder yielder[10000];
	uint64_t runs, worst, max;
	unsigned count;
	bool warm;
} gap;

static int64_t yield_for_ever(void *arg)
{
	struct yielder *self = &gap.yielder[*(unsigned *)arg];

	do {
		uint64_t waited = gap.runs++ - self->since;

		if (waited > gap.worst)
			gap.worst = waited;
		self->since = gap.runs;
		EXPECT(weft_yield() == 0);
	} while (gap.runs < gap.max);
	return 0;
}

static int64_t start_yielders(void *arg)
{
	/* Settles until the injection queue's turns are as rare as they get. */
	for (unsigned i = 0; i < *(unsigned *)arg; i++)
		EXPECT(weft_yield() == 0);
	WEFT_SCOPE(all, NULL)
		for (unsigned i = 0; i < gap.count; i++) {
			gap.yielder[i].since = gap.runs;
			EXPECT(WEFT_GO(all, yield_for_ever, i) == 0);
		}
	return 0;
}

/* A task comes from outside between two turns of the injection queue. */
static void submit_one(struct weft_runtime *runtime, void *arg)
{
	(void)arg;
	if (gap.runs && gap.runs < gap.max)
		EXPECT(weft_submit(runtime, nothing, NULL, 0, NULL) == 0);
}

static const unsigned crowds[] = { 200, 400, 1000, 1500, 10000 };
enum { CROWDS = sizeof(crowds) / sizeof(crowds[0]) };

/* The bound is twice the number of tasks.  One case takes longer: a task that
 * never ran, and finds the ring full of tasks that yield for ever, gets in when
 * it is the injection queue's turn, and these turns may be rare
 * (docs/decisions/0008). */
START_TEST(longest_wait_is_twice_the_number_of_runnable_tasks)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 2,
		.in_turn = true,
		.look_ns = (uint64_t)_i / (2 * CROWDS) % 3 * 1000,
		.after_step = _i < 3 * 2 * CROWDS ? NULL : submit_one,
	};
	unsigned slack = 0, settle = config.after_step ? 3000 : 0;
	unsigned max = settle ? 12 : 2;

	memset(&gap, 0, sizeof(gap));
	gap.count = crowds[_i / 2 % CROWDS];
	gap.max = 30 * gap.count;
	(void)must_run(&config, start_yielders, &settle);
	/* While one worker takes a step, which is a tick, the other stands
	 * still. */
	if (config.workers > 1)
		slack = 2 * WEFT__TICK_BUDGET;
	if (getenv("WEFT_TEST_VERBOSE"))
		printf("%u tasks, %u workers: %" PRIu64 "\n", gap.count,
		       config.workers, gap.worst);
	ck_assert_msg(gap.worst <= max * gap.count + slack,
		      "%u tasks, %u workers: %" PRIu64 " runs", gap.count,
		      config.workers, gap.worst);
}
END_TEST

/* Z12: a task that yields goes behind all that can run. */
static unsigned order[1000], ordered;

static int64_t note_order(void *arg)
{
	for (int i = 0; i < 4; i++) {
		order[ordered++] = *(unsigned *)arg;
		EXPECT(weft_yield() == 0);
	}
	return 0;
}

static int64_t start_ordered(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL)
		for (unsigned i = 0; i < 100; i++)
			EXPECT(WEFT_GO(all, note_order, i) == 0);
	return 0;
}

START_TEST(yield_goes_behind_all_that_can_run)
{
	struct fake_config config = { .workers = 1 };

	ordered = 0;
	(void)must_run(&config, start_ordered, NULL);
	ck_assert_uint_eq(ordered, 400);
	for (unsigned i = 100; i < 400; i++)
		EXPECT(order[i] == order[i - 100]);
}
END_TEST

/* The hand-off slot, for the newest task. */

static unsigned in_a_row, longest_row, after_the_other;

static int64_t yield_beside(void *arg)
{
	(void)arg;
	while (!program.flag) {
		in_a_row = 0;
		EXPECT(weft_yield() == 0);
	}
	return 0;
}

static void hand_over_counted(struct pair *pair, int me)
{
	struct weft__worker *worker = weft__worker_self();

	for (int i = 0; i < 2000; i++) {
		if (++in_a_row > longest_row)
			longest_row = in_a_row;
		after_the_other += in_a_row > 1;
		(void)weft__wake_next(worker->runtime, worker,
				      pair->id[1 - me]);
		worker = weft__suspend(worker, WEFT__REASON_UNREPORTED);
	}
	program.flag = true;
	(void)weft__wake_next(worker->runtime, worker, pair->id[1 - me]);
}

static int64_t second_counted(void *arg)
{
	hand_over_counted(*(struct pair **)arg, 1);
	return 0;
}

/* Starts the pair beside the tasks that yield. */
static int64_t start_pair(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task other;
	struct pair pair, *pointer = &pair;

	opts.ret_task = &other;
	pair.id[0] = weft_self().id;
	WEFT_SCOPE(all, NULL) {
		for (int i = 0; i < *(int *)arg; i++)
			EXPECT(weft_go(all, yield_beside, NULL, 0) == 0);
		EXPECT(weft_go_opts(all, second_counted, &pointer,
				    sizeof(pointer), &opts) == 0);
		pair.id[1] = other.id;
		/* The other task begins: only a task that waits can be
		 * woken. */
		(void)weft__suspend(weft__worker_self(),
				    WEFT__REASON_UNREPORTED);
		hand_over_counted(&pair, 0);
	}
	return 0;
}

/* V22 to V24: after three runs from the hand-off slot the queue has its
 * turn. */
START_TEST(two_tasks_that_wake_each_other_starve_nobody)
{
	struct fake_config config = { .workers = 1, .look_ns = 100 };
	struct fake_result result;
	int beside = 3;

	program.flag = false;
	in_a_row = longest_row = after_the_other = 0;
	result = must_run(&config, start_pair, &beside);
	/* One run from the queue, then three from the hand-off slot. */
	ck_assert_uint_eq(longest_row, 4);
	/* Each run of one directly after the other's is a hit; the first runs
	 * of the tasks may be hits, too. */
	ck_assert_uint_ge(after_the_other, 1000);
	ck_assert_uint_ge(result.stats.total.lifo_hits, after_the_other);
	ck_assert_uint_le(result.stats.total.lifo_hits, after_the_other + 5);
}
END_TEST

/* No other task could be delayed, so all of the pair's 4000 runs but the first
 * ones come from the hand-off slot. */
START_TEST(two_tasks_that_are_alone_keep_to_the_slot)
{
	struct fake_config config = { .workers = 1, .look_ns = 100 };
	struct fake_result result;
	int beside = 0;

	program.flag = false;
	result = must_run(&config, start_pair, &beside);
	ck_assert_uint_ge(result.stats.total.lifo_hits, 3990);
}
END_TEST

/* The same holds for a task that was just started, even when the slot has used
 * up its runs in a row, the tick ends, or the injection queue has its turn.
 * The clock moves at each look, so that all of these cases occur. */
static int64_t run_flagged(void *arg)
{
	**(bool **)arg = true;
	return 0;
}

static int64_t start_and_yield(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < 3000; i++) {
			bool ran = false, *pointer = &ran;

			EXPECT(weft_go(all, run_flagged, &pointer,
				       sizeof(pointer)) == 0);
			EXPECT(weft_yield() == 0);
			EXPECT(ran);
		}
	return 0;
}

START_TEST(yield_lets_whom_it_started_run_first)
{
	struct fake_config config = { .workers = 1,
				      .look_ns = _i ? 40000 : 100 };

	must_run(&config, start_and_yield, NULL);
}
END_TEST

static Suite *fair_suite(void)
{
	Suite *suite = suite_create("sched/fair");
	TCase *tc = tcase_create("liveness");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(
		tc, program_that_spins_until_a_later_task_sets_a_flag_ends, 0,
		seeds(120));
	tcase_add_loop_test(tc, setter_at_every_place_ends_the_spinning, 0,
			    SPINS * DELIVERIES * seeds(4));
	suite_add_tcase(suite, tc);

	tc = tcase_create("order");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(
		tc, longest_wait_is_twice_the_number_of_runnable_tasks, 0,
		2 * 3 * 2 * CROWDS);
	tcase_add_test(tc, yield_goes_behind_all_that_can_run);
	tcase_add_loop_test(tc, yield_lets_whom_it_started_run_first, 0, 2);
	tcase_add_test(tc, two_tasks_that_wake_each_other_starve_nobody);
	tcase_add_test(tc, two_tasks_that_are_alone_keep_to_the_slot);
	suite_add_tcase(suite, tc);

	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { fair_suite };

	return run_suites(make, 1);
}
