/* SPDX-License-Identifier: MIT */
/*
 * Model of the monitor (runtime/sched/monitor.c): while a worker computes and
 * the others sleep, one of them wakes up from time to time.  So it runs the
 * task that a computing worker keeps in its queue and waits for.
 *
 * Only the monitor's waits take time: each takes long enough to make others
 * late, and two of them are a quiet time.  While no worker computes, the
 * monitor stays in the first wait.
 */
#define WORKERS_PARK
#include "tests/model/workers.h"

enum { STEP_NS = 60000000 };

/* Under the lock. */
static struct model_mutex clock_lock;
static bool computes, computed;
static bool bounded[2]; /* it waits for the clock too */

MODEL_UNSEEN static void time_pass(void)
{
	time_ns += STEP_NS;
}

static void bounded_park(uint32_t index)
{
	bool runs;

	model_lock(&clock_lock);
	runs = computes && !computed;
	bounded[index] = !runs;
	model_unlock(&clock_lock);
	if (runs)
		(void)model_poll(&events[index]);
	else
		(void)model_wait(&events[index]);
	model_lock(&clock_lock);
	bounded[index] = false;
	model_unlock(&clock_lock);
	time_pass();
}

static void driver_park(struct weft__worker *worker, uint64_t wait_ns)
{
	model_assert(wait_ns <= weft__worker_limit_late_ns(&runtime) ||
			     wait_ns == UINT64_MAX,
		     "the monitor's wait, or for ever");
	if (wait_ns == UINT64_MAX)
		(void)model_wait(&events[worker->index]);
	else
		bounded_park(worker->index);
}

/* From now on time passes. */
static void compute(void)
{
	model_lock(&clock_lock);
	computes = true;
	for (uint32_t i = 0; i < 2; i++)
		if (bounded[i])
			model_post(&events[i]);
	model_unlock(&clock_lock);
	wait_for(1);
}

/* Starts task 1, and computes until task 1 has run. */
static int64_t computes_until_1(void *arg)
{
	(void)arg;
	weft__push(weft__worker_self(), &tasks[1]);
	compute();
	return 0;
}

/* The same with a task that was made ready to run next. */
static int64_t computes_until_1_in_slot(void *arg)
{
	(void)arg;
	weft__push_next(weft__worker_self(), &tasks[1]);
	compute();
	return 0;
}

static int64_t is_computed(void *arg)
{
	(void)arg;
	model_lock(&clock_lock);
	computed = true;
	model_unlock(&clock_lock);
	return 0;
}

/* At the end all sleep, and the worker that has the place is there. */
static void check(void *arg)
{
	uint32_t holder = weft__load(&runtime.idle.monitor, relaxed);

	workers_check(arg);
	model_assert(holder <= runtime.workers_count, "nobody is on its way");
	/* Others may watch too: workers that stood in for one on its way. */
	model_assert(!holder || pool[holder - 1].wake.watches,
		     "who has the place watches");
}

static void setup(void *arg)
{
	(void)arg;
	workers_setup(2);
	memset(&clock_lock, 0, sizeof(clock_lock));
	memset(bounded, 0, sizeof(bounded));
	computes = computed = false;
	time_ns = 4 * STEP_NS;
	for (uint32_t i = 0; i < 2; i++)
		pool[i].tick.looked_ns = time_ns;
	runtime.monitor_off = false;
	tasks[0].fn = computes_until_1;
	tasks[1].fn = is_computed;
	tasks[0].pin = 1; /* by worker 0, which wakes by itself for it */
	model_name(&clock_lock, "the clock");
}

/* Worker 0 sleeps; worker 1 watched, and is about to retire. */
static void setup_retires(void *arg)
{
	setup(arg);
	start_parked(0);
	runtime.idle.monitor = 2;
	pool[1].wake.watches = true;
}

static void setup_retires_in_slot(void *arg)
{
	setup_retires(arg);
	tasks[0].fn = computes_until_1_in_slot;
}

/* As worker 1 goes to sleep again, it is woken for the task that computes. */
static void setup_claimed(void *arg)
{
	setup_retires(arg);
	tasks[0].pin = 0;
}

/* Worker 0 has watched, and finds the task that computes as the other parks. */
static void setup_leaves(void *arg)
{
	setup(arg);
	runtime.idle.monitor = 1;
	pool[0].wake.watches = true;
	weft__chain_add(&pool[0].pinned, &tasks[0]);
}

/* Both sleep, and neither watches. */
static void setup_retired(void *arg)
{
	setup(arg);
	start_parked(0);
	start_parked(1);
}

/* Both sleep, neither watches, and each wakes by itself: the worker that the
 * other appoints may be awake. */
static void setup_both(void *arg)
{
	setup_retired(arg);
	tasks[0].fn = tasks[1].fn = do_nothing;
	tasks[1].pin = 2;
}

/* Worker 0 watches, and wakes by the clock.  Worker 1 gives way: it leaves its
 * task to worker 0, if that is awake, and sleeps. */
static void setup_gives_way(void *arg)
{
	setup(arg);
	start_parked(0);
	runtime.idle.monitor = 1;
	pool[0].wake.watches = true;
	runtime.worker_limit.max = 1;
	/* No window of the limit ends. */
	runtime.worker_limit.counted_ns = WEFT_NEVER;
	runtime.worker_limit.cpu_looked_ns = WEFT_NEVER;
	pool[1].limit.drained = true;
	tasks[0].fn = do_nothing;
	tasks[0].pin = 0;
	(void)weft__runq_push(&pool[1].runq, &tasks[0]);
}

static void wake_by_the_clock(void *arg)
{
	time_pass();
	park_end(weft__worker_self());
	work(arg);
}

/* The task was not left lying about: a worker was awake, or was woken. */
static void check_gives_way(void *arg)
{
	workers_check(arg);
	for (uint32_t i = 0; i < 2; i++)
		model_assert(weft__load(&pool[i].counts[WEFT__N_RESCUES],
					relaxed) == 0,
			     "nothing was overlooked");
}

THREAD(submit_0, submit(0); wait_for(0);)
THREAD(submit_both, submit(0); submit(1); wait_for(0); wait_for(1);)
THREAD(wait_0, wait_for(0);)

MODEL(retire_meets_wake, setup_retires, check,
      OPTIONS(.preemptions = 2, .weak = 1), work, work, submit_0)
MODEL(retire_meets_wake_in_slot, setup_retires_in_slot, check,
      OPTIONS(.preemptions = 1, .weak = 1), work, work, submit_0)
MODEL(leave_meets_park, setup_leaves, check,
      OPTIONS(.preemptions = 2, .weak = 1), work, work, wait_0)
MODEL(park_meets_claim, setup_claimed, check,
      OPTIONS(.preemptions = 2, .weak = 1), work, work, submit_0)
MODEL(a_wake_appoints, setup_retired, check,
      OPTIONS(.preemptions = 1, .weak = 1), work, work, submit_0)
MODEL(who_is_appointed_wakes_by_itself, setup_both, check,
      OPTIONS(.preemptions = 2, .weak = 1), work, work, submit_both)
MODEL(hand_over_meets_look, setup_gives_way, check_gives_way,
      OPTIONS(.preemptions = 2, .weak = 1), wake_by_the_clock, work, wait_0)

int main(void)
{
	const TTest *const tests[] = {
		retire_meets_wake,
		retire_meets_wake_in_slot,
		leave_meets_park,
		park_meets_claim,
		a_wake_appoints,
		who_is_appointed_wakes_by_itself,
		hand_over_meets_look,
		NULL,
	};

	return kit_main("monitor", tests);
}
