/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/idle: which workers sleep, which are woken, and which one watches
 * for a worker that is late (ledger V35 to V49, L10 to L18, L25).
 *
 * The first tests use the map of sleepers alone, the others a fake run.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <string.h>

#include <weft/weft.h>

#include "runtime/sched/idle.h"
#include "runtime/sched/wait.h"
#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

/*
 * The map of sleepers, by itself.
 */

static const uint32_t sizes[] = { 1, 2, 63, 64, 65, 128, 200 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static struct weft__idle idle;

static void all_park(uint32_t workers)
{
	memset(&idle, 0, sizeof(idle));
	weft__idle_init(&idle, workers);
	for (uint32_t i = 0; i < workers; i++)
		/* No worker searches, so each must look once more. */
		EXPECT(weft__idle_park(&idle, i, false));
	EXPECT(weft__idle_parked(idle.counts) == workers);
	weft__idle_invariants(&idle);
}

/* V36: of a word the lowest one, and the words in turn. */
static void is_the_first(uint32_t index, const bool *seen, uint32_t turn)
{
	uint32_t word = index / 64;

	for (uint32_t i = word * 64; i < index; i++)
		EXPECT(i == 0 || seen[i]);
	EXPECT(turn >= idle.words || word == turn);
}

/* V43, L14: without a monitor, worker 0 is woken last: it keeps the timers. */
START_TEST(each_sleeper_is_claimed_once_and_worker_0_last)
{
	uint32_t workers = sizes[_i];
	bool seen[200] = { false };

	all_park(workers);
	for (uint32_t i = 0; i < workers; i++) {
		int index = weft__idle_claim(&idle);

		EXPECT(index >= 0 && (uint32_t)index < workers);
		EXPECT(!seen[index]);
		EXPECT((index == 0) == (i == workers - 1));
		is_the_first((uint32_t)index, seen, i);
		seen[index] = true;
		/* It counts as searching until it reports a find. */
		EXPECT(weft__idle_searching(idle.counts) == 1);
		EXPECT(weft__idle_claim(&idle) == -1);
		EXPECT(weft__idle_unpark(&idle, (uint32_t)index));
		EXPECT(weft__idle_found(&idle));
		weft__idle_invariants(&idle);
	}
	EXPECT(weft__idle_claim(&idle) == -1);
	EXPECT(idle.counts == 0);
}
END_TEST

/* Or two would wake for each push: when the monitor runs, it wakes another to
 * take its place. */
START_TEST(monitor_is_claimed_after_worker_0)
{
	uint32_t workers = sizes[_i];

	for (uint32_t monitor = 0; monitor < workers; monitor++) {
		all_park(workers);
		idle.monitor = monitor + 1;
		for (uint32_t left = workers; left > 0; left--) {
			int index = weft__idle_claim_any(&idle);

			EXPECT(index >= 0);
			EXPECT((index == (int)monitor) == (left == 1));
			EXPECT(!monitor ||
			       (index == 0) == (left == 2));
		}
		EXPECT(weft__idle_claim_any(&idle) == -1);
	}
}
END_TEST

/* V48, L10: a worker that wakes by itself is taken off the list, and does not
 * count as a searcher. */
START_TEST(sleeper_that_wakes_by_itself_is_off_the_list)
{
	uint32_t workers = sizes[_i];

	all_park(workers);
	for (uint32_t i = 0; i < workers; i++) {
		EXPECT(!weft__idle_unpark(&idle, i));
		EXPECT(weft__idle_parked(idle.counts) == workers - i - 1);
		EXPECT(weft__idle_searching(idle.counts) == 0);
	}
	EXPECT(weft__idle_claim(&idle) == -1);
}
END_TEST

/* V41: half of the workers may search. */
START_TEST(half_of_the_workers_may_search)
{
	uint32_t workers = sizes[_i], searching = 0;

	memset(&idle, 0, sizeof(idle));
	weft__idle_init(&idle, workers);
	while (searching <= workers && weft__idle_search(&idle))
		searching++;
	EXPECT(searching == (workers + 1) / 2);
	/* V40: only the last searcher to give up has to look once more. */
	for (uint32_t i = 0; i < searching; i++)
		EXPECT(weft__idle_park(&idle, i, true) == (i == searching - 1));
	EXPECT(weft__idle_searching(idle.counts) == 0);
}
END_TEST

/*
 * Waking.
 */

static uint64_t ran_at;
static bool done;

static int64_t note_run(void *arg)
{
	(void)arg;
	ran_at = weft_now();
	done = true;
	return 0;
}

/* V39: a worker is woken to search, but finds work of its own first.  It must
 * not count as a searcher while it runs that work: otherwise no other worker is
 * woken for the task that it was woken for. */
static uint64_t hog_id, pushed_at;

static int64_t hog_when_woken(void *arg)
{
	bool last = weft__worker_self()->index ==
		    fake_runtime()->workers_count - 1;

	(void)arg;
	if (!last || hog_id)
		return 0;
	hog_id = weft_self().id;
	while (pushed_at == 0)
		(void)weft__suspend(weft__worker_self(), 0);
	fake_compute(WEFT_MS(100));
	return 0;
}

static void push_and_wake(void *arg)
{
	(void)arg;
	pushed_at = weft_now();
	EXPECT(weft_submit(fake_runtime(), note_run, NULL, 0, NULL) == 0);
	EXPECT(weft__wake_next(fake_runtime(), NULL, hog_id));
}

static int64_t start_hogs(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	(void)arg;
	opts.flags = WEFT_PINNED;
	WEFT_SCOPE(all, NULL) {
		while (!hog_id) {
			EXPECT(weft_go_opts(all, hog_when_woken, NULL, 0,
					    &opts) == 0);
			EXPECT(weft_go_opts(all, hog_when_woken, NULL, 0,
					    &opts) == 0);
			fake_pass(WEFT_US(100));
			EXPECT(weft_yield() == 0);
		}
		fake_foreign(WEFT_SEC(1), push_and_wake, NULL);
	}
	return 0;
}

START_TEST(searcher_with_work_of_its_own_does_not_hide_others)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 2,
		.monitor_off = true,
	};

	hog_id = pushed_at = 0;
	(void)must_run(&config, start_hogs, NULL);
	ck_assert_uint_le(ran_at - pushed_at, WEFT_MS(1));
}
END_TEST

/* A burst on one worker is shared within a tick, by a chain of wakes (V39). */
static int64_t busy_for(void *arg)
{
	fake_compute(*(uint64_t *)arg);
	return 0;
}

static int64_t start_burst(void *arg)
{
	uint64_t length_ns = WEFT_MS(1);

	(void)arg;
	EXPECT(weft_sleep(WEFT_SEC(1)) == 0);
	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < 64; i++)
			EXPECT(WEFT_GO(all, busy_for, length_ns) == 0);
	return 0;
}

START_TEST(burst_is_shared_by_all_workers)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 8,
		.monitor_off = true,
	};
	struct fake_result result;

	result = must_run(&config, start_burst, NULL);
	for (int i = 0; i < 8; i++)
		ck_assert_uint_ge(result.worker[i].polls, 1);
	ck_assert_uint_ge(result.stats.total.stolen, 8);
}
END_TEST

/* 2000 tasks are handed over one by one, through sleeps and the injection
 * queue.  Parks have no timeout, so a lost wake-up is a deadlock. */
static unsigned handed;

static int64_t hand_on(void *arg)
{
	unsigned left = *(unsigned *)arg;

	handed++;
	if (left == 0)
		return 0;
	if (fake_random(4) == 0)
		EXPECT(weft_sleep(1 + fake_random(300000)) == 0);
	left--;
	WEFT_SCOPE(all, NULL) {
		for (uint64_t n = fake_random(3); n > 0; n--)
			EXPECT(weft_go(all, note_run, NULL, 0) == 0);
		EXPECT(weft_submit(fake_runtime(), hand_on, &left,
				   sizeof(left), NULL) == 0);
	}
	return 0;
}

START_TEST(no_wake_up_is_lost_without_a_monitor)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 6,
		.monitor_off = true,
		.budgets_vary = true,
	};
	unsigned left = 2000;

	handed = 0;
	(void)must_run(&config, hand_on, &left);
	ck_assert_uint_eq(handed, left + 1);
}
END_TEST

/* V66, "idle": no worker takes a step while there is nothing to do. */
static uint64_t steps_of_idling;

static void count_step(struct weft_runtime *runtime, void *arg)
{
	(void)runtime, (void)arg;
	steps_of_idling++;
}

static int64_t idle_for_an_hour(void *arg)
{
	(void)arg;
	/* The monitor retires after 100 ms. */
	EXPECT(weft_sleep(WEFT_SEC(1)) == 0);
	steps_of_idling = 0;
	EXPECT(weft_sleep(WEFT_SEC(3600)) == 0);
	/* Steps to sleep, to wake once or twice, and of the monitor. */
	EXPECT(steps_of_idling < 500);
	EXPECT(weft_sleep(WEFT_SEC(1)) == 0);
	return 0;
}

START_TEST(idle_runtime_does_nothing)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 5,
		.after_step = count_step,
	};
	struct fake_result result;

	result = must_run(&config, idle_for_an_hour, NULL);
	ck_assert_uint_eq(result.stats.total.helps, 0);
}
END_TEST

/* L25: a worker is late, as one of its tasks computes for a second. */

enum { HOG_MS = 1000 };
/* p99 and maximum, as the bars of hog_timer in bench/bars.json. */
#define LATE_P99_NS WEFT_MS(5)
#define LATE_MAX_NS WEFT_MS(15)

static uint64_t armed_ns, late_ns;
static unsigned naps, late_naps;

static int64_t nap(void *arg)
{
	uint64_t length_ns = *(uint64_t *)arg;

	while (!done) {
		uint64_t due_ns = weft_now() + length_ns;

		EXPECT(weft_sleep(length_ns) == 0);
		naps++;
		late_naps += weft_now() - due_ns > LATE_P99_NS;
		if (weft_now() - due_ns > late_ns)
			late_ns = weft_now() - due_ns;
	}
	return 0;
}

static int64_t hog(void *arg)
{
	(void)arg;
	fake_compute(WEFT_MS(HOG_MS));
	done = true;
	return 0;
}

static int64_t hog_everybodys_timers(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	uint64_t length_ns = WEFT_MS(5);

	(void)arg;
	opts.flags = WEFT_PINNED;
	WEFT_SCOPE(all, NULL) {
		for (int i = 0; i < 10; i++)
			EXPECT(WEFT_GO(all, nap, length_ns) == 0);
		EXPECT(weft_sleep(WEFT_MS(20)) == 0);
		/* The worker is 0 or another one, depending on the seed. */
		EXPECT(weft_go_opts(all, hog, NULL, 0, &opts) == 0);
	}
	return 0;
}

START_TEST(timers_go_on_while_a_task_computes)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 2 + (unsigned)_i % 3,
	};

	done = false;
	late_ns = naps = late_naps = 0;
	(void)must_run(&config, hog_everybodys_timers, NULL);
	ck_assert_uint_le(late_ns, LATE_MAX_NS);
	ck_assert_uint_le(late_naps, naps / 100);
}
END_TEST

/* The newest ready task lies in the hand-off slot, which is not stolen from. */
static int64_t hog_the_slot(void *arg)
{
	(void)arg;
	EXPECT(weft_sleep(WEFT_MS(20)) == 0);
	WEFT_SCOPE(all, NULL) {
		EXPECT(weft_go(all, note_run, NULL, 0) == 0);
		armed_ns = weft_now();
		fake_compute(WEFT_MS(HOG_MS));
	}
	return 0;
}

START_TEST(task_in_the_slot_starts_elsewhere)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 2 + (unsigned)_i % 3,
	};
	struct fake_result result;

	result = must_run(&config, hog_the_slot, NULL);
	ck_assert_uint_le(ran_at - armed_ns, LATE_P99_NS);
	ck_assert_uint_ge(result.stats.total.helps, 1);
}
END_TEST

/* L27: the helper has a full ring itself, and what it steals does not fit. */
enum { CROWD_FIRST = 230, CROWD_SECOND = 150 };

static struct {
	uint32_t crews, length[8], runs;
	uint64_t stolen[8], overfull;
} crowd;

/* After each step: did a worker take more than it had room for?  With most
 * seeds, one does. */
static void watch_thieves(struct weft_runtime *runtime, void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < runtime->workers_count; i++) {
		struct weft__worker *worker = runtime->workers[i];
		uint64_t stolen = worker->counts[WEFT__N_STOLEN];
		crowd.overfull += crowd.length[i] + stolen - crowd.stolen[i] >
				  WEFT__RUNQ_SHORT + 1;
		crowd.stolen[i] = stolen;
		crowd.length[i] = weft__runq_count(&worker->runq);
	}
}

static int64_t crowd_member(void *arg)
{
	(void)arg;
	while (!done)
		EXPECT(weft_yield() == 0);
	return crowd.runs++, 0;
}

/* Each worker runs one, which starts many tasks; then one of them computes. */
static int64_t crowd_leader(void *arg)
{
	struct weft_scope *all = *(struct weft_scope **)arg;
	uint32_t turn = crowd.crews++;

	if (turn >= 2)
		return 0;
	/* Waits until the second worker has stolen some tasks. */
	for (int i = 0; i < (turn ? CROWD_SECOND : CROWD_FIRST); i++)
		EXPECT(weft_go(all, crowd_member, NULL, 0) == 0);
	while (crowd.crews < 2)
		fake_compute(WEFT_US(10));
	/* Waits until the tasks that never ran are in the rings, too. */
	EXPECT(weft_sleep(WEFT_MS(5)) == 0);
	if (turn == 0)
		fake_compute(WEFT_MS(20));
	done |= turn == 0;
	return 0;
}

static int64_t lead_crowds(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	(void)arg;
	opts.flags = WEFT_PINNED;
	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < 2; i++)
			EXPECT(weft_go_opts(all, crowd_leader, &all,
					    sizeof(all), &opts) == 0);
	return 0;
}

START_TEST(theft_into_a_full_ring_loses_nothing)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 2,
		.look_ns = 500,
		.after_step = watch_thieves,
	};
	struct fake_result result;

	done = false;
	memset(&crowd, 0, sizeof(crowd));
	result = must_run(&config, lead_crowds, NULL);
	ck_assert_uint_eq(crowd.runs, CROWD_FIRST + CROWD_SECOND);
	ck_assert(result.stats.total.helps && result.stats.total.stolen);
}
END_TEST

/* Timers go off while all other workers are busy with tasks that yield. */
static int64_t yield_until_done(void *arg)
{
	(void)arg;
	while (!done) {
		fake_pass(2000);
		EXPECT(weft_yield() == 0);
	}
	return 0;
}

static int64_t hog_beside_busy(void *arg)
{
	uint64_t length_ns = WEFT_MS(5);

	WEFT_SCOPE(all, NULL) {
		for (int i = 0; i < 40; i++)
			EXPECT(weft_go(all, yield_until_done, NULL, 0) == 0);
		for (int i = 0; i < 10; i++)
			EXPECT(WEFT_GO(all, nap, length_ns) == 0);
		EXPECT(weft_sleep(WEFT_MS(20)) == 0);
		EXPECT(weft_go(all, hog, NULL, 0) == 0);
		EXPECT(weft_sleep(WEFT_MS(20)) == 0);
	}
	(void)arg;
	return 0;
}

START_TEST(timers_go_on_while_the_other_workers_are_busy)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 2 + (unsigned)_i % 3,
	};

	done = false;
	late_ns = naps = late_naps = 0;
	(void)must_run(&config, hog_beside_busy, NULL);
	ck_assert_uint_le(late_ns, LATE_MAX_NS);
	ck_assert_uint_le(late_naps, naps / 100);
}
END_TEST

static Suite *idle_suite(void)
{
	Suite *suite = suite_create("sched/idle");
	TCase *tc = tcase_create("sleepers");

	tcase_add_loop_test(
		tc, each_sleeper_is_claimed_once_and_worker_0_last, 0, SIZES);
	tcase_add_loop_test(tc, monitor_is_claimed_after_worker_0, 0, SIZES);
	tcase_add_loop_test(tc, sleeper_that_wakes_by_itself_is_off_the_list,
			    0, SIZES);
	tcase_add_loop_test(tc, half_of_the_workers_may_search, 0, SIZES);
	suite_add_tcase(suite, tc);

	tc = tcase_create("waking");
	tcase_set_timeout(tc, 30);
	tcase_add_loop_test(
		tc, searcher_with_work_of_its_own_does_not_hide_others, 0, 20);
	tcase_add_loop_test(tc, burst_is_shared_by_all_workers, 0, 20);
	tcase_add_loop_test(tc, no_wake_up_is_lost_without_a_monitor, 0, 60);
	tcase_add_loop_test(tc, idle_runtime_does_nothing, 0, 10);
	suite_add_tcase(suite, tc);

	tc = tcase_create("late");
	tcase_set_tags(tc, "monitor");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, task_in_the_slot_starts_elsewhere, 0, 20);
	tcase_add_loop_test(tc, theft_into_a_full_ring_loses_nothing, 0, 20);
	suite_add_tcase(suite, tc);

	tc = tcase_create("late timers");
	tcase_set_tags(tc, "monitor");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, timers_go_on_while_a_task_computes, 0, 20);
	tcase_add_loop_test(tc, timers_go_on_while_the_other_workers_are_busy,
			    0, 20);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { idle_suite };

	return run_suites(make, 1);
}
