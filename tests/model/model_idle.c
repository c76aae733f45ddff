/* SPDX-License-Identifier: MIT */
/*
 * Model of runtime/sched/idle.[ch] as the scheduler uses it: no push is
 * missed.  All parks are for ever, so a lost wake-up is a deadlock.
 */
#define WORKERS_STEAL
#include "tests/model/workers.h"

/* A task that comes from outside during the next look at a victim. */
static struct weft__task *comes;

struct weft__task *weft__steal(struct weft__worker *worker,
			       struct weft__worker *victim, uint32_t max)
{
	struct weft__task *task = steal_as_usual(worker, victim, max);
	struct weft__chain chain = { 0 };

	if (comes) {
		weft__chain_add(&chain, comes);
		weft__inject_push(&runtime.inject, &chain);
		comes = NULL;
	}
	return task;
}

/*
 * Tasks from other threads.
 */

static void setup_1(void *arg)
{
	(void)arg;
	workers_setup(1);
}

static void setup_2(void *arg)
{
	(void)arg;
	workers_setup(2);
}

THREAD(submit_0, submit(0); wait_for(0);)
THREAD(wait_0_2, wait_for(0); wait_for(2);)
THREAD(wait_0_1, wait_for(0); wait_for(1);)
THREAD(submit_1, submit(1); wait_for(1);)
THREAD(submit_0_1, submit(0); wait_for(0); submit(1); wait_for(1);)

MODEL(one_worker_and_a_foreign_thread, setup_1, workers_check,
      OPTIONS(.weak = 2),
      work, submit_0_1)
MODEL(one_worker_and_two_foreign_threads, setup_1, workers_check,
      OPTIONS(.preemptions = 2, .weak = 1), work, submit_0, submit_1)
MODEL(two_workers_and_a_foreign_thread, setup_2, workers_check,
      OPTIONS(.preemptions = 2, .weak = 1), work, work, submit_0)

/* Task 0 needs task 1 to run meanwhile, on the other worker. */
static int64_t needs_1(void *arg)
{
	(void)arg;
	wait_for(1);
	return 0;
}

static int64_t needs_2(void *arg)
{
	(void)arg;
	wait_for(2);
	return 0;
}

static void setup_chain(void *arg)
{
	setup_2(arg);
	tasks[0].fn = needs_1;
}

static void setup_chain_parked(void *arg)
{
	setup_chain(arg);
	start_parked(0);
	start_parked(1);
}

THREAD(submit_both, submit(0); submit(1); wait_for(0);)
MODEL(the_last_searcher_wakes_the_next, setup_chain, workers_check,
      OPTIONS(.preemptions = 1, .weak = 2), work, work, submit_both)
MODEL(the_last_searcher_wakes_a_sleeper, setup_chain_parked, workers_check,
      OPTIONS(.preemptions = 2, .weak = 2), work, work, submit_both)

/* Worker 1 wakes by itself, for example for a completion, while it is
 * claimed. */
static void setup_parked(void *arg)
{
	setup_2(arg);
	start_parked(1);
}

THREAD(complete_1, model_post(&events[1]);)
MODEL(a_sleeper_wakes_by_itself, setup_parked, workers_check,
      OPTIONS(.preemptions = 1, .weak = 1), work, work, complete_1, submit_0)

/*
 * The look after a steal that failed: with it, a worker does not even begin to
 * park while there is a task.  The victim computes meanwhile, and has nothing.
 */

static struct weft__driver_ops watched;
static struct model_event computed;

static void park_begin_watched(struct weft__worker *worker)
{
	(void)worker;
	model_assert(weft__inject_length(&runtime.inject) == 0,
		     "a worker parks past a task that came during its search");
}

static void setup_coming(void *arg)
{
	setup_2(arg);
	memset(&computed, 0, sizeof(computed));
	watched = driver;
	watched.park_begin = park_begin_watched;
	pool[0].ops = &watched;
	comes = &tasks[0];
}

THREAD(compute_and_work, (void)model_wait(&computed); work(arg);)
THREAD(wait_0, wait_for(0); model_post(&computed);)
MODEL(search_ends_with_what_came_meanwhile, setup_coming, workers_check,
      OPTIONS(), work, compute_and_work, wait_0)

/*
 * A claim alone.  The engine never lets a relaxed addition be overtaken: so
 * this checks writes before the claim, which the same order passes on.
 */

static uint32_t before_claim;

static void setup_claim(void *arg)
{
	setup_parked(arg);
	before_claim = 0;
}

static void claim(void *arg)
{
	(void)arg;
	before_claim = 1;
	(void)weft__idle_claim_any(&runtime.idle);
}

/* It wakes by itself: it met no park word. */
static void unpark_1(void *arg)
{
	(void)arg;
	if (!weft__idle_unpark(&runtime.idle, 1))
		return;
	model_assert(before_claim == 1, "a claim is seen with its bit");
	(void)weft__idle_found(&runtime.idle);
}

static void check_claim(void *arg)
{
	(void)arg;
	model_assert(runtime.idle.counts == 0, "nobody parks or searches");
	model_assert(runtime.idle.bits[0] == 0, "nobody can be found");
}

MODEL(who_is_claimed_sees_the_claim, setup_claim, check_claim, OPTIONS(), claim,
      unpark_1)

/*
 * Tasks from a task.
 */

/* Task 0 starts 1 and 2, of which 2 waits for 1. */
static int64_t starts_two(void *arg)
{
	(void)arg;
	struct weft__worker *worker = weft__worker_self();

	weft__push(worker, &tasks[1]);
	weft__push(worker, &tasks[2]);
	/* It took long, and its worker's tick is over. */
	worker->tick_over = true;
	return 0;
}

static void setup_push(void *arg)
{
	(void)arg;
	workers_setup(2);
	tasks[0].fn = starts_two;
	tasks[1].fn = do_nothing;
	tasks[2].fn = needs_1;
	weft__runq_push(&pool[0].runq, &tasks[0]);
}

/* The task that waits comes first. */
static void setup_push_turned(void *arg)
{
	setup_push(arg);
	tasks[1].fn = needs_2;
	tasks[2].fn = do_nothing;
}

MODEL(an_own_push_wakes_a_peer, setup_push, workers_check,
      OPTIONS(.preemptions = 2, .weak = 1), work, work, wait_0_2)
MODEL(an_own_push_is_told_before_the_next_task, setup_push_turned,
      workers_check, OPTIONS(.preemptions = 2, .weak = 1), work, work, wait_0_1)

/*
 * One worker over the limit: worker 1 leaves its task to worker 0, which may be
 * about to sleep.
 */

static void setup_worker_limit(void *arg)
{
	setup_2(arg);
	runtime.worker_limit.max = 1;
	pool[0].seen_ns = time_ns;
	pool[1].limit.drained = true;
	weft__runq_push(&pool[0].runq, &tasks[0]);
	weft__runq_push(&pool[1].runq, &tasks[1]);
}

MODEL(who_gives_way_leaves_nothing_behind, setup_worker_limit, workers_check,
      OPTIONS(.preemptions = 2, .weak = 1), work, work, wait_0_1)

/*
 * Three workers, of which two may search.
 *
 * The states in which two search are set up, since from rest there are too many
 * executions on the way there.
 */

static void setup_two_search(void *arg)
{
	(void)arg;
	workers_setup(3);
	start_searching(0);
	start_searching(1);
}

/* The third sleeps while the two look a last time. */
static void setup_two_give_up(void *arg)
{
	setup_two_search(arg);
	start_parked(2);
}

MODEL(one_of_two_searchers_looks_again, setup_two_give_up, workers_check,
      OPTIONS(.preemptions = 2, .weak = 1), work, work, work, submit_0)

/* All three are needed, each for the next: a searcher that finds a task wakes
 * the third for the task that it leaves. */
static void setup_three_needed(void *arg)
{
	struct weft__chain chain = { 0 };

	setup_two_give_up(arg);
	tasks[0].fn = needs_1;
	tasks[1].fn = needs_2;
	for (uint32_t i = 0; i < 3; i++)
		weft__chain_add(&chain, &tasks[i]);
	weft__inject_push(&runtime.inject, &chain);
}

/* With two preemptions it takes 80 seconds, with --long. */
THREAD(wait_0_last, wait_for(0);)
MODEL(the_last_of_two_searchers_wakes_the_third, setup_three_needed,
      workers_check, OPTIONS(.preemptions = 1, .weak = 1), work, work, work,
      wait_0_last)

/*
 * The third worker meets two that search: it leaves the task to them.  They do
 * not go on before it sleeps, so the limit is exact.
 */

static struct model_event third_sleeps;

static void let_search(struct weft__worker *worker)
{
	if (worker->index == 2)
		model_post(&third_sleeps);
}

static int64_t runs_on_a_searcher(void *arg)
{
	(void)arg;
	model_assert(weft__worker_self()->index < 2,
		     "half of the workers search, and no other one");
	return 0;
}

static void setup_third_comes(void *arg)
{
	struct weft__chain chain = { 0 };

	setup_two_search(arg);
	memset(&third_sleeps, 0, sizeof(third_sleeps));
	before_sleep = let_search;
	tasks[0].fn = runs_on_a_searcher;
	weft__chain_add(&chain, &tasks[0]);
	weft__inject_push(&runtime.inject, &chain);
}

static void work_when_the_third_sleeps(void *arg)
{
	(void)model_wait(&third_sleeps);
	model_post(&third_sleeps);
	work(arg);
}

MODEL(the_third_leaves_the_search_to_two, setup_third_comes, workers_check,
      OPTIONS(.preemptions = 2, .weak = 1), work_when_the_third_sleeps,
      work_when_the_third_sleeps, work, wait_0_last)

int main(void)
{
	const TTest *const tests[] = {
		one_worker_and_a_foreign_thread,
		one_worker_and_two_foreign_threads,
		two_workers_and_a_foreign_thread,
		the_last_searcher_wakes_the_next,
		the_last_searcher_wakes_a_sleeper,
		a_sleeper_wakes_by_itself,
		search_ends_with_what_came_meanwhile,
		who_is_claimed_sees_the_claim,
		an_own_push_wakes_a_peer,
		an_own_push_is_told_before_the_next_task,
		who_gives_way_leaves_nothing_behind,
		one_of_two_searchers_looks_again,
		the_last_of_two_searchers_wakes_the_third,
		the_third_leaves_the_search_to_two,
		NULL,
	};

	return kit_main("idle", tests);
}
