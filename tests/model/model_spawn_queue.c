/* SPDX-License-Identifier: MIT */
/*
 * Model of runtime/sched/spawn_queue.[ch].  Each task that never ran is taken
 * once, by the owner or a thief, with everything that was written before it was
 * pushed.  The count of the list is right whenever the lock is free.  No worker
 * parks past a task in the list.
 */
#define WORKERS_SPAWN_QUEUE
#include "tests/model/workers.h"

enum { ALL = TASKS };

/* The number of pushed tasks; the owner's. */
static uint32_t pushed;

static void setup_list(void *arg)
{
	(void)arg;
	workers_setup(3);
	pushed = 0;
	for (uint32_t i = 0; i < TASKS; i++)
		tasks[i].stack = NULL;
	/* The turn of the oldest is due. */
	pool[0].spawn_queue.turns = WEFT__SPAWN_TURNS - 1;
	pool[0].tick.clock_ns = time_ns;
	model_name(&pool[0].spawn_queue.count, "count");
	model_name(&pool[0].spawn_queue.lock, "lock");
}

static void push_n(uint32_t n)
{
	for (; n > 0; n--) {
		tasks[pushed].result = 7;
		weft__spawn_queue_push(&pool[0], &tasks[pushed++]);
	}
}

static void setup_2(void *arg)
{
	setup_list(arg);
	push_n(2);
}

static void setup_3(void *arg)
{
	setup_list(arg);
	push_n(3);
}

static void setup_alone(void *arg)
{
	setup_list(arg);
	runtime.workers_count = 1;
	pool[0].alone = true;
}

MODEL_UNSEEN static void run_one(struct weft__task *task)
{
	model_assert(task_runs[task - tasks]++ == 0, "a task was had twice");
}

/* Runs the first of some tasks, and the others, which are in the ring.  They
 * are neighbours in the list; each is `younger` places younger than the one
 * before.  Returns how many. */
static uint32_t run_some(struct weft__task *task, int younger)
{
	struct weft__task *before = NULL;
	uint32_t n = 0;

	for (; task; n++) {
		run_one(task);
		model_assert(task->result == 7, "what came before is seen");
		model_assert(!before || task == before + younger,
			     "they come in the order of their ages");
		before = task;
		task = weft__runq_pop(&weft__worker_self()->runq);
	}
	return n;
}

static void take(void)
{
	(void)run_some(weft__spawn_queue_take(&pool[0]), -1);
}

static void turn(void)
{
	(void)run_some(weft__spawn_queue_turn(&pool[0], ALL), 1);
}

/* Appends the list to a chain that is not empty. */
static void empty(void)
{
	struct weft__chain chain = { 0 };
	struct weft__task first = { 0 }, *task, *before = NULL;

	weft__chain_add(&chain, &first);
	weft__spawn_queue_empty(&pool[0], &chain);
	model_assert(!chain.tail->next, "the end of a chain is its end");
	model_assert(weft__chain_take(&chain) == &first,
		     "what was in a chain stays the first");
	while ((task = weft__chain_take(&chain))) {
		run_one(task);
		model_assert(task->result == 7, "what came before is seen");
		model_assert(!before || task == before + 1,
			     "the oldest come first");
		before = task;
	}
	model_assert(chain.count == 0, "a chain is as long as it says");
}

static void steal(uint32_t max)
{
	struct weft__worker *self = weft__worker_self();
	uint32_t n = run_some(weft__spawn_queue_steal(self, &pool[0], max), 1);

	model_assert(n <= max, "no more than was asked for");
}

static void check_list(void *arg)
{
	struct weft__spawn_queue *queue = &pool[0].spawn_queue;
	uint32_t n = 0;

	(void)arg;
	for (struct weft__task *t = queue->newest; t; t = t->older, n++)
		run_one(t);
	/* relaxed: all threads have ended. */
	model_assert(weft__load(&queue->count, relaxed) == n,
		     "the count is that of the list");
	model_assert(!queue->lock.held, "the lock is free");
	for (uint32_t i = 0; i < TASKS; i++)
		model_assert(task_runs[i] == (i < pushed), "a task was lost");
}

THREAD(steals_all, steal(ALL);)
THREAD(steals_1, steal(1);)
THREAD(steals_twice, steal(1); steal(ALL);)
THREAD(pushes_and_takes, push_n(1); take(); push_n(1); take();)
THREAD(takes_and_pushes, take(); push_n(1);)
THREAD(takes_its_turn, turn(); push_n(1); take();)
THREAD(empties, push_n(1); empty(); push_n(1);)
THREAD(does_all, push_n(3); turn(); push_n(1); take(); empty();)

#define SPAWN_QUEUE(max) OPTIONS(.preemptions = (max), .weak = 1)

MODEL(push_and_take_meet_thief, setup_list, check_list, SPAWN_QUEUE(3),
      pushes_and_takes, steals_twice)
MODEL(take_meets_thief, setup_3, check_list, SPAWN_QUEUE(3), takes_and_pushes,
      steals_twice)
MODEL(take_meets_two_thieves, setup_3, check_list, SPAWN_QUEUE(2),
      takes_and_pushes, steals_1, steals_all)
MODEL(turn_meets_thief, setup_3, check_list, SPAWN_QUEUE(3), takes_its_turn,
      steals_twice)
MODEL(emptying_meets_thief, setup_2, check_list, SPAWN_QUEUE(3), empties,
      steals_twice)
MODEL(emptying_meets_two_thieves, setup_2, check_list, SPAWN_QUEUE(2), empties,
      steals_1, steals_all)
MODEL(alone_without_a_lock, setup_alone, check_list, SPAWN_QUEUE(3), does_all)

/*
 * In the scheduler.  Its parks are for ever: so a worker that parks past a task
 * that another task waits for is found as a deadlock.
 */

static int64_t needs_1(void *arg)
{
	(void)arg;
	(void)model_wait(&task_ran[1]);
	return 0;
}

static int64_t needs_2(void *arg)
{
	(void)arg;
	(void)model_wait(&task_ran[2]);
	return 0;
}

/* Starts 1 and 2, of which 1, the oldest, waits for 2. */
static int64_t starts_two(void *arg)
{
	struct weft__worker *worker = weft__worker_self();

	(void)arg;
	weft__push_spawned(worker, &tasks[1]);
	weft__push_spawned(worker, &tasks[2]);
	/* It took long, and its worker's tick is over. */
	worker->tick_over = true;
	return 0;
}

/* Starts 1, and 2, which runs next here and waits for 1. */
static int64_t starts_one(void *arg)
{
	struct weft__worker *worker = weft__worker_self();

	(void)arg;
	weft__push_next(worker, &tasks[2]);
	weft__push_spawned(worker, &tasks[1]);
	worker->tick_over = true;
	return 0;
}

static void setup_sched(weft_fn fn)
{
	workers_setup(2);
	tasks[0].fn = fn;
	weft__runq_push(&pool[0].runq, &tasks[0]);
}

static void setup_two(void *arg)
{
	(void)arg;
	setup_sched(starts_two);
	tasks[1].fn = needs_2;
}

static void setup_one(void *arg)
{
	(void)arg;
	setup_sched(starts_one);
	tasks[2].fn = needs_1;
}

static void setup_one_parked(void *arg)
{
	setup_one(arg);
	start_parked(1);
}

THREAD(wait_for_1, (void)model_wait(&task_ran[1]);)
THREAD(wait_for_2, (void)model_wait(&task_ran[2]);)

MODEL(a_fresh_task_wakes_a_peer, setup_one_parked, workers_check,
      SPAWN_QUEUE(1), work, work, wait_for_2)
MODEL(a_fresh_task_meets_a_park, setup_one, workers_check, SPAWN_QUEUE(1), work,
      work, wait_for_2)
MODEL(fresh_tasks_are_stolen, setup_two, workers_check, SPAWN_QUEUE(1), work,
      work, wait_for_1)

int main(void)
{
	const TTest *const tests[] = {
		push_and_take_meet_thief,
		take_meets_thief,
		take_meets_two_thieves,
		turn_meets_thief,
		emptying_meets_thief,
		emptying_meets_two_thieves,
		alone_without_a_lock,
		a_fresh_task_wakes_a_peer,
		a_fresh_task_meets_a_park,
		fresh_tasks_are_stolen,
		NULL,
	};

	return kit_main("spawn_queue", tests);
}
