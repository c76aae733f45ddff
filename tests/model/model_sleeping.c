/* SPDX-License-Identifier: MIT */
/*
 * Model of futures that sleep (timer/await_sleep.c), with the real timer
 * shards: the alarm lies in the record, which another worker reads when the
 * alarm goes off.  Whatever ends the sleep, no worker looks at the alarm
 * afterwards, and a later life of the record is not disturbed.
 */
#define TASKS_CLOCK
#define TASKS_TIME
#include "tests/model/futures.h"

#include "timer/wheel.c"

#include "timer/timer_shard.c"

/* The memory of the alarm is overwritten from here on. */
static void alarm_over(void *alarm, size_t bytes)
{
	model_free(alarm, bytes);
	memset(alarm, 0, bytes);
	model_renew(alarm, bytes);
}

#define memset(memory, zero, bytes) alarm_over(memory, bytes)
#include "timer/await_sleep.c"
#undef memset

enum { LANES = 2, SOON_NS = 1 << 20, LATE_NS = 1 << 30 };

static struct weft__timer_shard shard_pool[LANES];
static _Alignas(struct weft__timer_shards) unsigned char shards_bytes
	[sizeof(struct weft__timer_shards) + LANES * sizeof(uint64_t)];
static struct weft__timer_shards *const shards = (void *)shards_bytes;

/* relaxed: passed on by the wake, as far as it is. */
static weft__atomic(uint64_t) clock_ns;
/* For the workers that turn: the alarm is armed, or will not be. */
static struct model_event asleep[2];
/* The result of a sleep. */
static int outcome;

static uint64_t driver_now(struct weft_runtime *of)
{
	(void)of;
	/* relaxed: as above. */
	return weft__load(&clock_ns, relaxed);
}

static void driver_arm(struct weft__worker *worker, struct weft__alarm *alarm,
		       uint64_t deadline_ns)
{
	weft__timer_shards_arm(worker, alarm, deadline_ns);
}

static bool driver_disarm(struct weft_runtime *of, struct weft__alarm *alarm)
{
	return weft__timer_shards_disarm(of, alarm);
}

/*
 * The steps of the future.
 */

static int64_t sleep_once(uint64_t until_ns)
{
	int r = weft_await_sleep_until((weft_nsec)until_ns);

	if (futures[0].polls == 1) {
		model_post(&asleep[0]);
		model_post(&asleep[1]);
	}
	if (r != WEFT_PENDING)
		outcome = r;
	return r;
}

static int64_t sleeps(void)
{
	return sleep_once(SOON_NS) == WEFT_PENDING ? WEFT_PENDING : 0;
}

static int64_t sleeps_long(void)
{
	return sleep_once(LATE_NS) == WEFT_PENDING ? WEFT_PENDING : 0;
}

static int64_t sleeps_for_ever(void)
{
	return weft_await_sleep_until(WEFT_NEVER);
}

/* The second time it may be late. */
static int64_t sleeps_twice(void)
{
	static bool has_slept;

	if (futures[0].polls == 1)
		has_slept = false;
	if (!has_slept) {
		if (sleep_once(SOON_NS) == WEFT_PENDING)
			return WEFT_PENDING;
		has_slept = true;
		if (weft_await_sleep_until(SOON_NS) == WEFT_PENDING) {
			model_post(&asleep[0]);
			return WEFT_PENDING;
		}
	}
	outcome = weft_await_sleep_until(SOON_NS);
	return outcome == WEFT_PENDING ? WEFT_PENDING : 0;
}

static void setup(future_step *step)
{
	tasks_setup(3);
	futures_clear();
	future_setup(0, step);
	memset(shard_pool, 0, sizeof(shard_pool));
	memset(shards_bytes, 0, sizeof(shards_bytes));
	memset(asleep, 0, sizeof(asleep));
	clock_ns = 0;
	outcome = 1;
	shards->count = LANES;
	shards->shards = shard_pool;
	for (uint32_t i = 0; i < MODEL_THREADS; i++)
		pool[i].timer_shard = &shard_pool[i % LANES];
	for (uint32_t i = 0; i < LANES; i++) {
		shard_pool[i].all = shards;
		shard_pool[i].index = i;
		shard_pool[i].next_ns = UINT64_MAX;
		shards->next[i] = UINT64_MAX;
		weft__wheel_init(&shard_pool[i].wheel, 0);
	}
	model_name(&clock_ns, "clock");
	model_name(&shards->next[0], "next[0]");
	model_name(&shards->next[1], "next[1]");
	model_name(shards, "sleep_until");
	model_name(&shard_pool[0], "lane 0");
	model_name(&shard_pool[1], "lane 1");
	model_name(asleep, "asleep");
}

static void setup_sleep(void *arg)
{
	(void)arg;
	setup(sleeps);
}

static void setup_twice(void *arg)
{
	(void)arg;
	setup(sleeps_twice);
}

/* A deadline that comes before the sleep ends. */
static void setup_within(void *arg)
{
	(void)arg;
	setup(sleeps_long);
	futures[0].room.own_ns = SOON_NS;
	records[0].flags |= WEFT__TASK_WITHIN;
}

static void check(void *arg)
{
	(void)arg;
	futures_check();
	check_freed_once(0);
	model_assert(weft__timer_shards_next(&runtime) == UINT64_MAX,
		     "nothing is left in a lane");
}

static void check_slept(void *arg)
{
	check(arg);
	model_assert(outcome == 0, "it has slept");
}

static void check_cancelled(void *arg)
{
	check(arg);
	model_assert(outcome == -ECANCELED, "it was cancelled");
}

static void check_either(void *arg)
{
	check(arg);
	model_assert(outcome == 0 || outcome == -ECANCELED,
		     "it has slept, or was cancelled");
}

static void check_timeout(void *arg)
{
	check(arg);
	model_assert(outcome == -ETIMEDOUT || outcome == -ECANCELED,
		     "its deadline has passed, or it was cancelled");
}

/*
 * Other workers.
 */

static void turn_lanes(unsigned i)
{
	(void)model_wait(&asleep[i]);
	/* relaxed: as above. */
	weft__store(&clock_ns, (uint64_t)SOON_NS, relaxed);
	(void)weft__timer_shards_turn(&runtime, weft__worker_self(), SOON_NS);
}

static void cancel_future(void)
{
	(void)weft_cancel(handle_of(0));
}

THREAD(polls, future_serve(0);)
THREAD(turns, turn_lanes(0);)
THREAD(turns_as_well, turn_lanes(1);)
THREAD(turns_twice, turn_lanes(0); turn_lanes(0);)
THREAD(cancels, cancel_future();)
THREAD(wakes, (void)weft_future_wake(&runtime, handle_of(0));)

MODEL(sleep_meets_turn, setup_sleep, check_slept, OPTIONS(.weak = 2), polls,
      turns, polls)
MODEL(sleep_meets_two_turns, setup_sleep, check_slept,
      OPTIONS(.preemptions = 2, .weak = 1), polls, turns, turns_as_well)
MODEL(sleep_meets_wake_and_turn, setup_sleep, check_slept,
      OPTIONS(.preemptions = 2, .weak = 1), polls, turns, wakes)
MODEL(sleep_meets_cancel, setup_sleep, check_cancelled, OPTIONS(.weak = 2),
      polls, cancels, polls)
MODEL(sleep_meets_cancel_and_turn, setup_sleep, check_either,
      OPTIONS(.preemptions = 2, .weak = 1), polls, turns, cancels, polls)
MODEL(sleep_within_meets_turn, setup_within, check_timeout,
      OPTIONS(.weak = 2), polls, turns, polls)
MODEL(sleep_within_meets_cancel_and_turn, setup_within, check_timeout,
      OPTIONS(.preemptions = 2, .weak = 1), polls, turns, cancels)
MODEL(sleep_again_meets_turn, setup_twice, check_slept,
      OPTIONS(.preemptions = 2, .weak = 1), polls, turns_twice, polls)

/*
 * The record has a second life immediately, which is another sleep.
 */

static void polls_and_starts_another(void *arg)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *again;

	(void)arg;
	do
		future_turn(0);
	while (!futures[0].ended);
	again = go_new(&runtime, worker, &runtime.root, future_poll, 0);
	model_assert(again == &records[0], "the record is used again");
	future_make(again, 1, sleeps_for_ever);
	weft__future_poll(worker, again);
}

static void check_second(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(records[0].state ==
			     (2 * WEFT__GENERATION | WEFT__FUTURE |
			      WEFT__PARKED) &&
			     futures[1].polls == 1,
		     "the second life was not disturbed");
	model_assert(weft__timer_shards_next(&runtime) == UINT64_MAX,
		     "nothing is left in a lane");
}

MODEL(second_life_meets_turns, setup_sleep, check_second,
      OPTIONS(.preemptions = 2, .weak = 1), polls_and_starts_another, turns,
      turns_as_well)
MODEL(second_life_meets_cancel_and_turn, setup_sleep, check_second,
      OPTIONS(.preemptions = 2, .weak = 1), polls_and_starts_another, turns,
      cancels)

int main(void)
{
	const TTest *const tests[] = {
		sleep_meets_turn,
		sleep_meets_two_turns,
		sleep_meets_wake_and_turn,
		sleep_meets_cancel,
		sleep_meets_cancel_and_turn,
		sleep_within_meets_turn,
		sleep_within_meets_cancel_and_turn,
		sleep_again_meets_turn,
		second_life_meets_turns,
		second_life_meets_cancel_and_turn,
		NULL,
	};

	return kit_main("sleeping", tests);
}
