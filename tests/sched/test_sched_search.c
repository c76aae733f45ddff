/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/search: which worker looks for work elsewhere, when, where it
 * begins, and how much it takes (ledger V05, V27, V28, V38, V41, V42, Z05).
 *
 * All tests run on virtual time.  In the first ones no monitor looks up and
 * no worker helps, so tasks move by steals alone.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <string.h>

#include <weft/weft.h>

#include "runtime/sched/idle.h"
#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

enum { WORKERS = 4, CHILDREN = 64, THEFTS = 4000 };

static uint32_t here(void)
{
	return weft__worker_self()->index;
}

static uint64_t steals_tried(uint32_t index)
{
	/* relaxed: one thread. */
	return weft__load(
		&fake_runtime()->workers[index]->counts[WEFT__N_STEALS_TRIED],
		relaxed);
}

/*
 * All workers but the last have tasks of their own; so the last one steals.
 */

static struct {
	bool seated[WORKERS];
	unsigned seats, thefts;
	uint64_t stolen[WORKERS]; /* from each, by the last */
} scene;

static int64_t note_theft(void *arg)
{
	uint32_t home = *(uint32_t *)arg;

	if (scene.thefts == THEFTS)
		return 0;
	EXPECT(here() == home || here() == WORKERS - 1);
	scene.stolen[home] += here() != home;
	scene.thefts += here() != home;
	return 0;
}

static void keep_tasks(void)
{
	uint32_t home = here();
	uint64_t tried = steals_tried(home);

	WEFT_SCOPE(all, NULL) {
		while (scene.thefts < THEFTS) {
			if (weft__runq_count(&weft__worker_self()->runq) <
			    CHILDREN)
				for (int i = 0; i < CHILDREN; i++)
					EXPECT(WEFT_GO(all, note_theft,
						       home) == 0);
			EXPECT(weft_yield() == 0);
		}
		EXPECT(steals_tried(home) == tried);
	}
}

/* Stays on its worker. */
static int64_t sit(void *arg)
{
	uint32_t home = here();

	(void)arg;
	if (scene.seated[home])
		return 0;
	scene.seated[home] = true;
	scene.seats++;
	while (scene.seats < WORKERS)
		EXPECT(weft_yield() == 0);
	if (home < WORKERS - 1)
		keep_tasks();
	return 0;
}

static int64_t seat_all(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	(void)arg;
	opts.flags = WEFT_PINNED;
	WEFT_SCOPE(all, NULL)
		while (scene.seats < WORKERS) {
			EXPECT(weft_go_opts(all, sit, NULL, 0, &opts) == 0);
			EXPECT(weft_go_opts(all, sit, NULL, 0, &opts) == 0);
			fake_pass(WEFT_US(100));
			EXPECT(weft_yield() == 0);
		}
	return 0;
}

static void run_scene(int i, weft_fn main_fn)
{
	struct fake_config config = {
		.seed = seed_of(i),
		.workers = WORKERS,
		.monitor_off = true,
		.help_off = true,
	};

	memset(&scene, 0, sizeof(scene));
	(void)must_run(&config, main_fn, NULL);
}

/* Z05, in keep_tasks(): such a worker has not even tried. */
START_TEST(worker_with_tasks_of_its_own_steals_none)
{
	run_scene(_i, seat_all);
	ck_assert_uint_eq(scene.thefts, THEFTS);
}
END_TEST

/* V05: each victim has tasks whenever the thief looks. */
START_TEST(search_begins_at_any_worker)
{
	run_scene(_i, seat_all);
	for (int i = 0; i < WORKERS - 1; i++)
		ck_assert_uint_ge(scene.stolen[i], THEFTS / 10);
}
END_TEST

/*
 * V16, V17: of the tasks in a ring a thief takes the older half, rounded up,
 * and runs the oldest first.
 */

static struct {
	uint32_t home, count;
	uint64_t first; /* taken in the first theft */
	uint32_t order[128], ran; /* elsewhere */
} theft;

static void watch_first_theft(struct weft_runtime *runtime, void *arg)
{
	struct weft__worker *thief = runtime->workers[!theft.home];

	(void)arg;
	/* relaxed: one thread. */
	if (theft.count && !theft.first)
		theft.first = weft__load(&thief->counts[WEFT__N_STOLEN],
					 relaxed);
}

static int64_t note_order(void *arg)
{
	if (here() != theft.home)
		theft.order[theft.ran++] = *(uint32_t *)arg;
	return 0;
}

/* All but the last are in the ring, in their order; that one is in the slot. */
static int64_t start_and_compute(void *arg)
{
	uint32_t count = *(uint32_t *)arg;
	struct weft__worker *thief;

	theft.home = here();
	thief = fake_runtime()->workers[!theft.home];
	fake_hold(thief->index, true);
	WEFT_SCOPE(all, NULL) {
		for (uint32_t i = 0; i <= count; i++)
			EXPECT(WEFT_GO(all, note_order, i) == 0);
		EXPECT(weft__runq_count(&weft__worker_self()->runq) == count);
		theft.count = count;
		fake_hold(thief->index, false);
		(void)weft__unpark(weft__worker_self(), thief);
		fake_compute(WEFT_MS(1));
		EXPECT(theft.ran == count);
	}
	return 0;
}

START_TEST(thief_takes_the_older_half_and_runs_the_oldest_first)
{
	static const uint32_t counts[] = { 1, 2, 3, 10, 101, 128 };
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 2,
		.monitor_off = true,
		.help_off = true,
		.after_step = watch_first_theft,
	};
	uint32_t count = counts[_i % 6];

	memset(&theft, 0, sizeof(theft));
	(void)must_run(&config, start_and_compute, &count);
	ck_assert_uint_eq(theft.first, (count + 1) / 2);
	for (uint32_t i = 0; i < count; i++)
		ck_assert_uint_eq(theft.order[i], i);
}
END_TEST

/*
 * V41: half of the workers are on their way to search, and have no processor
 * yet.  One more wakes by itself, and does not search.
 */

static uint64_t tried_before;

static void go_on_searching(void *arg)
{
	const int *claimed = arg;

	EXPECT(steals_tried(WORKERS - 1) == tried_before);
	for (int i = 0; i < WORKERS / 2; i++)
		fake_hold((unsigned)claimed[i], false);
}

static void wake_one_more(void *arg)
{
	struct weft_runtime *runtime = fake_runtime();
	int *claimed = arg;

	for (int i = 0; i < WORKERS / 2; i++) {
		claimed[i] = weft__idle_claim_any(&runtime->idle);
		EXPECT(claimed[i] >= 0 && claimed[i] < WORKERS - 1);
		fake_hold((unsigned)claimed[i], true);
		(void)weft__unpark(NULL, runtime->workers[claimed[i]]);
	}
	tried_before = steals_tried(WORKERS - 1);
	(void)weft__unpark(NULL, runtime->workers[WORKERS - 1]);
	fake_foreign(WEFT_MS(1), go_on_searching, arg);
}

static int64_t sleep_meanwhile(void *arg)
{
	int claimed[WORKERS / 2];

	(void)arg;
	fake_foreign(WEFT_SEC(1), wake_one_more, claimed);
	EXPECT(weft_sleep(WEFT_SEC(2)) == 0);
	return 0;
}

START_TEST(worker_beyond_half_does_not_search)
{
	run_scene(_i, sleep_meanwhile);
}
END_TEST

/*
 * V42: tasks that compute for long, as many as workers.  A thief finds one task
 * at a time, and has no other to offer; the chain of wakes reaches all workers
 * all the same.
 */

static uint64_t begun_ns, last_ns;

static int64_t compute_long(void *arg)
{
	(void)arg;
	last_ns = weft_now();
	fake_compute(WEFT_MS(10));
	return 0;
}

static int64_t start_long_tasks(void *arg)
{
	(void)arg;
	EXPECT(weft_sleep(WEFT_SEC(1)) == 0);
	begun_ns = weft_now();
	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < WORKERS; i++)
			EXPECT(weft_go(all, compute_long, NULL, 0) == 0);
	return 0;
}

START_TEST(each_of_few_long_tasks_gets_a_worker)
{
	run_scene(_i, start_long_tasks);
	ck_assert_uint_le(last_ns - begun_ns, WEFT_MS(1));
}
END_TEST

/*
 * One wakes one.
 */

static bool done;

static int64_t note_run(void *arg)
{
	(void)arg;
	done = true;
	return 0;
}

static unsigned on_their_way(void)
{
	struct weft_runtime *runtime = fake_runtime();
	unsigned count = 0;

	for (uint32_t i = 0; i < runtime->workers_count; i++)
		/* relaxed: one thread. */
		count += weft__load(&runtime->workers[i]->park_word,
				    relaxed) == WEFT__PARK_NOTIFIED;
	return count;
}

static void submit_one(void *arg)
{
	struct weft_runtime *runtime = fake_runtime();

	(void)arg;
	EXPECT(weft__idle_parked(runtime->idle.counts) ==
	       runtime->workers_count);
	EXPECT(on_their_way() == 0);
	EXPECT(weft_submit(runtime, note_run, NULL, 0, NULL) == 0);
	EXPECT(on_their_way() == 1);
	EXPECT(weft__idle_searching(runtime->idle.counts) == 1);
}

static int64_t sleep_for_long(void *arg)
{
	(void)arg;
	fake_foreign(WEFT_SEC(5), submit_one, NULL);
	EXPECT(weft_sleep(WEFT_SEC(10)) == 0);
	return 0;
}

/* V42: one task wakes one of 8 sleepers, which finds it.  As the last searcher
 * that worker would wake another one only if there were more tasks. */
START_TEST(one_task_wakes_one_of_eight_sleepers)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 8,
		.monitor_off = _i % 2,
	};
	struct fake_result result;

	done = false;
	result = must_run(&config, sleep_for_long, NULL);
	ck_assert(done);
	/* Each woken worker may appoint a monitor. */
	ck_assert_uint_le(result.stats.total.wakes_sent, _i % 2 ? 0 : 8);
}
END_TEST

/*
 * How much a worker takes of the injection queue.
 */

/* V27: the share is fair, and between 4 and 64. */
START_TEST(share_of_the_injection_queue_is_4_to_64)
{
	ck_assert_uint_eq(weft__inject_share(1, 1), 4);
	ck_assert_uint_eq(weft__inject_share(15, 4), 4);
	ck_assert_uint_eq(weft__inject_share(20, 4), 5);
	ck_assert_uint_eq(weft__inject_share(63, 1), 63);
	ck_assert_uint_eq(weft__inject_share(256, 4), 64);
	ck_assert_uint_eq(weft__inject_share(1000000, 4), 64);
	ck_assert_uint_eq(weft__inject_share(UINT32_MAX, 4096), 64);
}
END_TEST

static unsigned outside;

static int64_t count_outside(void *arg)
{
	(void)arg;
	outside++;
	return 0;
}

/* V27, V28: no worker takes more than its share at a time, however many tasks
 * it could run. */
static struct {
	unsigned length;
	uint64_t injected[8], batches[8], share, largest;
} fetch;

static void watch_shares(struct weft_runtime *runtime, void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < runtime->workers_count; i++) {
		/* relaxed: one thread. */
		uint64_t injected = weft__load(
			&runtime->workers[i]->counts[WEFT__N_INJECTED],
			relaxed);
		/* relaxed: one thread. */
		uint64_t batches = weft__load(
			&runtime->workers[i]->counts[WEFT__N_INJECT_BATCHES],
			relaxed);
		uint64_t taken = injected - fetch.injected[i];

		EXPECT(taken <= (batches - fetch.batches[i]) * fetch.share);
		if (taken > fetch.largest)
			fetch.largest = taken;
		fetch.injected[i] = injected;
		fetch.batches[i] = batches;
	}
}

static void submit_many(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < fetch.length; i++)
		EXPECT(weft_submit(fake_runtime(), count_outside, NULL, 0,
				   NULL) == 0);
}

static int64_t sleep_through(void *arg)
{
	(void)arg;
	fake_foreign(WEFT_SEC(1), submit_many, NULL);
	EXPECT(weft_sleep(WEFT_SEC(2)) == 0);
	EXPECT(outside == fetch.length);
	return 0;
}

START_TEST(worker_takes_its_share_at_a_time)
{
	static const struct {
		unsigned workers, length, share;
	} known[] = {
		{ 1, 50, 50 },	{ 1, 1000, 64 }, { 2, 100, 50 },
		{ 4, 40, 10 },	{ 4, 12, 4 },	 { 4, 1000, 64 },
		{ 8, 160, 20 },
	};
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = known[_i % 7].workers,
		.after_step = watch_shares,
		.monitor_off = true,
	};

	memset(&fetch, 0, sizeof(fetch));
	fetch.length = known[_i % 7].length;
	fetch.share = known[_i % 7].share;
	outside = 0;
	(void)must_run(&config, sleep_through, NULL);
	ck_assert_uint_ge(fetch.largest, fetch.share);
}
END_TEST

/* V04: what it takes brings its ring to 192 tasks at most; but it takes 4 in
 * any case. */
static uint32_t ring_length;

static void watch_ring(struct weft_runtime *runtime, void *arg)
{
	uint64_t had = fetch.injected[0], batches = fetch.batches[0];
	/* The task that runs is not in the ring. */
	uint64_t room = ring_length < 189 ? 193 - ring_length : 0;

	watch_shares(runtime, arg);
	batches = fetch.batches[0] - batches;
	EXPECT(fetch.injected[0] - had <= room + 4 * batches);
	ring_length = weft__runq_count(&runtime->workers[0]->runq);
}

static int64_t yield_until_all_came(void *arg)
{
	(void)arg;
	outside++;
	while (outside < fetch.length)
		EXPECT(weft_yield() == 0);
	return 0;
}

static void submit_yielders(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 200; i++)
		EXPECT(weft_submit(fake_runtime(), yield_until_all_came, NULL,
				   0, NULL) == 0);
}

static int64_t start_local_yielders(void *arg)
{
	uint32_t local = *(uint32_t *)arg;

	fake_foreign(WEFT_MS(10), submit_yielders, NULL);
	WEFT_SCOPE(all, NULL)
		for (uint32_t i = 0; i < local; i++)
			EXPECT(weft_go(all, yield_until_all_came, NULL, 0) ==
			       0);
	return 0;
}

START_TEST(injected_tasks_bring_the_ring_to_192)
{
	static const uint32_t known[] = { 10, 100, 150, 180, 250 };
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1,
		.after_step = watch_ring,
	};
	uint32_t local = known[_i % 5];

	memset(&fetch, 0, sizeof(fetch));
	fetch.length = local + 200;
	fetch.share = 64;
	outside = ring_length = 0;
	(void)must_run(&config, start_local_yielders, &local);
	ck_assert_uint_eq(outside, fetch.length);
}
END_TEST

static Suite *search_suite(void)
{
	Suite *suite = suite_create("sched/search");
	TCase *tc = tcase_create("stealing");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, worker_with_tasks_of_its_own_steals_none, 0,
			    8);
	tcase_add_loop_test(tc, search_begins_at_any_worker, 0, 8);
	tcase_add_loop_test(
		tc, thief_takes_the_older_half_and_runs_the_oldest_first, 0,
		6 * 2);
	suite_add_tcase(suite, tc);

	tc = tcase_create("waking");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, worker_beyond_half_does_not_search, 0, 8);
	tcase_add_loop_test(tc, each_of_few_long_tasks_gets_a_worker, 0, 20);
	tcase_add_loop_test(tc, one_task_wakes_one_of_eight_sleepers, 0, 40);
	suite_add_tcase(suite, tc);

	tc = tcase_create("shares");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, share_of_the_injection_queue_is_4_to_64);
	tcase_add_loop_test(tc, worker_takes_its_share_at_a_time, 0, 7 * 4);
	tcase_add_loop_test(tc, injected_tasks_bring_the_ring_to_192, 0, 5);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { search_suite };

	return run_suites(make, 1);
}
