/* SPDX-License-Identifier: MIT */
/*
 * Model of timer/timer_shard.c.  Worker 0 does not sleep past an alarm that
 * another worker arms.  A thread that disarms an alarm owns the alarm's memory
 * alone.  Each alarm goes off once or is disarmed, however many workers turn.
 */
#include "tests/model/kit.h"

#include "runtime/sched/runq.h"

struct weft__task;
static void task_ready(struct weft__task *task);
#define weft__runq_push(queue, task) (task_ready(task), true)
#define weft__runq_room(queue) (16u)

#include "runtime/sched/task_pool.h"

static struct weft__task tasks[2]; /* the tasks of `soon` and of `far_off` */
#define weft__record_at(runtime, id) (&tasks[(uint32_t)(id)])

#include "runtime/base/lock.c"
#include "timer/wheel.c"

#include "timer/timer_shard.c"

enum { WORKERS = 3, SOON_NS = 1 << 20, LATE_NS = 1 << 30 };

static struct weft_runtime runtime;
static struct weft__worker pool[WORKERS];
static struct weft__worker *pool_pointers[WORKERS];
static struct weft__timer_shard shard_pool[WORKERS];
static _Alignas(struct weft__timer_shards) unsigned char shards_bytes
	[sizeof(struct weft__timer_shards) + WORKERS * sizeof(uint64_t)];
static struct weft__timer_shards *const shards = (void *)shards_bytes;
static struct weft__alarm soon, far_off;
static struct model_event woken, ready[2];
static uint32_t fired[2], disarmed;

bool weft__unpark(struct weft__worker *from, struct weft__worker *to)
{
	(void)from;
	model_assert(to == &pool[0], "worker 0 owns the time");
	model_post(&woken);
	return true;
}

void weft__push_slow(struct weft__worker *worker, struct weft__task *task)
{
	(void)worker, (void)task;
}

void weft__notify_peers_late(struct weft__worker *worker)
{
	(void)worker;
}

MODEL_UNSEEN static void task_ready(struct weft__task *task)
{
	size_t i = (size_t)(task - tasks);

	fired[i]++;
	model_post(&ready[i]);
}

/* At the address of `shards`, whose last member has no room of its own. */
static void setup(void *arg)
{
	(void)arg;
	memset(&runtime, 0, sizeof(runtime));
	memset(pool, 0, sizeof(pool));
	memset(shard_pool, 0, sizeof(shard_pool));
	memset(shards_bytes, 0, sizeof(shards_bytes));
	memset(tasks, 0, sizeof(tasks));
	memset(&soon, 0, sizeof(soon));
	memset(&far_off, 0, sizeof(far_off));
	memset(&woken, 0, sizeof(woken));
	memset(ready, 0, sizeof(ready));
	memset(fired, 0, sizeof(fired));
	disarmed = 0;
	runtime.workers = pool_pointers;
	runtime.workers_count = 2;
	shards->count = 2;
	shards->shards = shard_pool;
	for (uint32_t i = 0; i < WORKERS; i++) {
		pool_pointers[i] = &pool[i];
		pool[i].runtime = &runtime;
		pool[i].index = i;
		pool[i].timer_shard = &shard_pool[i % 2];
		shard_pool[i].all = shards;
		shard_pool[i].index = i;
		shard_pool[i].next_ns = UINT64_MAX;
		shards->next[i] = UINT64_MAX;
		weft__wheel_init(&shard_pool[i].wheel, 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		tasks[i].state = WEFT__GENERATION | WEFT__PARKED;
	soon.task = WEFT__GENERATION;
	far_off.task = WEFT__GENERATION | 1;
	model_name(&shards->next[1], "next[1]");
	model_name(&shards->next[0], "next[0]");
	model_name(shards, "sleep_until");
	model_name(&shard_pool[1], "lane 1");
	model_name(&soon, "alarm");
	model_name(&tasks[0], "task");
}

static void setup_far(void *arg)
{
	setup(arg);
	weft__timer_shards_arm(&pool[1], &far_off, LATE_NS);
}

/* Due as soon as the alarm that will be armed. */
static void setup_alike(void *arg)
{
	setup(arg);
	weft__timer_shards_arm(&pool[1], &far_off, SOON_NS);
}

static void setup_armed(void *arg)
{
	setup(arg);
	weft__timer_shards_arm(&pool[1], &soon, SOON_NS);
}

/* When a lock is free, `next` gives the time when its shard must turn (TS1). */
static void check_lanes(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t must_ns = weft__wheel_next_ns(&shard_pool[i].wheel);

		model_assert(shards->next[i] <= must_ns,
			     "a lane is turned in time");
	}
}

static void check_one_end(void *arg)
{
	check_lanes(arg);
	model_assert(fired[0] + disarmed == 1,
		     "an alarm goes off, or is disarmed");
	model_assert(weft__timer_shards_next(&runtime) == UINT64_MAX,
		     "nothing is left");
}

MODEL_UNSEEN static bool has_fired(void)
{
	return fired[0] != 0;
}

/*
 * Worker 0's sleep.
 */

/* Sleeps until the alarm has gone off; a time that is far off never comes. */
static void sleep_as_worker_0(void *arg)
{
	uint64_t now_ns = 0;

	(void)arg;
	for (;;) {
		uint64_t until_ns;

		(void)weft__timer_shards_turn(&runtime, &pool[0], now_ns);
		if (has_fired())
			return;
		until_ns = weft__timer_shards_sleep(&runtime);
		if (until_ns > SOON_NS)
			(void)model_wait(&woken);
		else
			now_ns = until_ns;
		weft__timer_shards_wake(&runtime);
	}
}

THREAD(arm_soon, weft__timer_shards_arm(&pool[1], &soon, SOON_NS);)
THREAD(arm_far, weft__timer_shards_arm(&pool[0], &far_off, LATE_NS);)
THREAD(arm_after_far, weft__timer_shards_arm(&pool[2], &soon, SOON_NS);)
THREAD(disarm_far, (void)weft__timer_shards_disarm(&runtime, &far_off);)
THREAD(disarm_far_and_arm, (void)weft__timer_shards_disarm(&runtime, &far_off);
       weft__timer_shards_arm(&pool[1], &soon, SOON_NS);)

MODEL(arm_meets_sleep, setup, check_lanes, OPTIONS(), sleep_as_worker_0,
      arm_soon)
MODEL(arm_before_another_meets_sleep, setup_far, check_lanes, OPTIONS(),
      sleep_as_worker_0, arm_soon)
MODEL(disarm_and_arm_meet_sleep, setup_far, check_lanes, OPTIONS(),
      sleep_as_worker_0, disarm_far_and_arm)
/* Worker 0 sleeps no longer than announced, though nothing is armed
 * meanwhile. */
MODEL(disarm_and_arm_alike_meet_sleep, setup_alike, check_lanes, OPTIONS(),
      sleep_as_worker_0, disarm_far_and_arm)
MODEL(disarm_of_one_meets_arm_and_sleep, setup_far, check_lanes,
      OPTIONS(.preemptions = 2, .weak = 2), sleep_as_worker_0, disarm_far,
      arm_after_far)

/*
 * Turning, and disarming.
 */

THREAD(turn, (void)weft__timer_shards_turn(&runtime, &pool[0], SOON_NS);)
THREAD(turn_as_2, (void)weft__timer_shards_turn(&runtime, &pool[2], SOON_NS);)

/* The memory of the alarm is overwritten immediately. */
static void disarm(void *arg)
{
	(void)arg;
	if (weft__timer_shards_disarm(&runtime, &soon))
		disarmed++;
	memset(&soon, 0xff, sizeof(soon));
	model_free(&soon, sizeof(soon));
}

/* The task that was woken has the alarm on its stack. */
static void wait_and_disarm(void *arg)
{
	(void)model_wait(&ready[0]);
	model_assert(!soon.armed || !weft__timer_shards_disarm(&runtime, &soon),
		     "what has gone off is not armed");
	memset(&soon, 0xff, sizeof(soon));
	model_free(&soon, sizeof(soon));
	(void)arg;
}

/* A task that was woken for something else finds that the alarm has gone
 * off. */
static void look_and_reuse(void *arg)
{
	(void)arg;
	if (!weft__timer_shards_fired(&soon) &&
	    weft__timer_shards_disarm(&runtime, &soon))
		disarmed++;
	memset(&soon, 0xff, sizeof(soon));
	model_free(&soon, sizeof(soon));
}

static void disarm_and_arm_again(void *arg)
{
	(void)arg;
	if (weft__timer_shards_disarm(&runtime, &soon))
		disarmed++;
	weft__timer_shards_arm(&pool[2], &soon, SOON_NS);
	if (weft__timer_shards_disarm(&runtime, &soon))
		disarmed++;
}

static void check_two_ends(void *arg)
{
	check_lanes(arg);
	model_assert(fired[0] <= 1 && fired[0] + disarmed <= 2,
		     "an alarm goes off once, and wakes once");
	model_assert(weft__timer_shards_next(&runtime) == UINT64_MAX,
		     "nothing is left");
}

MODEL(disarm_meets_turn, setup_armed, check_one_end, OPTIONS(), turn, disarm)
MODEL(disarm_meets_two_turns, setup_armed, check_one_end,
      OPTIONS(.preemptions = 2), turn, disarm, turn_as_2)
MODEL(fired_meets_disarm, setup_armed, check_one_end, OPTIONS(), turn,
      wait_and_disarm, turn_as_2)
MODEL(look_meets_turn, setup_armed, check_one_end, OPTIONS(), turn,
      look_and_reuse)
MODEL(arm_again_meets_turn, setup_armed, check_two_ends, OPTIONS(), turn,
      disarm_and_arm_again)

int main(void)
{
	const TTest *const tests[] = {
		arm_meets_sleep,
		arm_before_another_meets_sleep,
		disarm_and_arm_meet_sleep,
		disarm_and_arm_alike_meet_sleep,
		disarm_of_one_meets_arm_and_sleep,
		disarm_meets_turn,
		disarm_meets_two_turns,
		fired_meets_disarm,
		look_meets_turn,
		arm_again_meets_turn,
		NULL,
	};

	return kit_main("lanes", tests);
}
