/* SPDX-License-Identifier: MIT */
/*
 * Suite timer/lanes: the shards of timer/timer_shard.h.
 *
 * The claims TS1 to TS4 are tested one by one in one thread; then threads race
 * to arm, disarm and expire alarms, and to sleep as worker 0 does.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <weft/weft.h>

#include "runtime/sched/wait.h"
#include "runtime/task/go.h"
#include "tests/fake/fake_check.h"
#include "timer/timer_shard.h"

#define TICK_NS ((uint64_t)1 << WEFT__WHEEL_TICK_BITS)

static uint64_t due_of(uint64_t deadline_ns)
{
	return (deadline_ns + TICK_NS - 1) / TICK_NS * TICK_NS;
}

/* The test drives the shards itself, inside a task of a fake run; the alarms
 * belong to a task that has ended. */
static struct {
	struct weft_runtime *runtime;
	struct weft__worker *here;
	uint64_t nobody;
} by_hand;

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void by_hand_begin(void)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;

	opts.ret_task = &task;
	WEFT_SCOPE(all, NULL) {
		EXPECT(weft_go_opts(all, nothing, NULL, 0, &opts) == 0);
		EXPECT(weft_join(task, NULL) == 0);
	}
	by_hand.here = weft__worker_self();
	by_hand.runtime = by_hand.here->runtime;
	by_hand.nobody = task.id;
}

static void arm(unsigned shard, struct weft__alarm *alarm, uint64_t deadline_ns)
{
	*alarm = (struct weft__alarm){ .task = by_hand.nobody,
				       .kind = WEFT__ALARM_WAKE };
	weft__timer_shards_arm(by_hand.runtime->workers[shard], alarm,
			       deadline_ns);
}

static bool disarm(struct weft__alarm *alarm)
{
	return weft__timer_shards_disarm(by_hand.runtime, alarm);
}

static unsigned turn(uint64_t now_ns)
{
	return weft__timer_shards_turn(by_hand.runtime, by_hand.here, now_ns);
}

static uint64_t next(void)
{
	return weft__timer_shards_next(by_hand.runtime);
}

static void run_by_hand(int i, weft_fn main_fn, uint64_t start_ns)
{
	struct fake_config config = {
		.seed = seed_of(i),
		.workers = 1 + (unsigned)i % 8,
		.start_ns = start_ns,
		.monitor_off = true,
	};

	(void)must_run(&config, main_fn, NULL);
}

static int64_t alarms_one_by_one(void *arg)
{
	struct weft__alarm alarm;
	uint64_t now_ns = weft_now();
	unsigned shards;

	(void)arg;
	by_hand_begin();
	shards = by_hand.runtime->workers_count;
	EXPECT(next() == UINT64_MAX);
	EXPECT(turn(now_ns) == 0);
	for (unsigned i = 0; i < 500; i++) {
		uint64_t length_ns = fake_random(UINT64_C(1) << (i % 50));
		uint64_t due_ns = due_of(now_ns + length_ns);

		arm(i % shards, &alarm, now_ns + length_ns);
		EXPECT(alarm.armed && alarm.shard == i % shards);
		EXPECT(next() == due_ns);
		EXPECT(turn(due_ns - 1) == 0);
		EXPECT(next() == due_ns);
		EXPECT(turn(due_ns) == 1);
		EXPECT(next() == UINT64_MAX);
		EXPECT(!disarm(&alarm) && !alarm.armed);
		EXPECT(!disarm(&alarm));
		now_ns = due_ns;
	}
	return 0;
}

START_TEST(alarm_goes_off_once_at_the_end_of_its_tick)
{
	run_by_hand(_i, alarms_one_by_one, 0);
}
END_TEST

START_TEST(clock_may_start_anywhere)
{
	run_by_hand(_i, alarms_one_by_one, (UINT64_C(1) << (10 + _i)) - 1);
}
END_TEST

/* TS1: a disarmed alarm does not wake worker 0. */
static int64_t disarm_all(void *arg)
{
	struct weft__alarm alarms[64];
	uint64_t now_ns = weft_now();
	unsigned shards;

	(void)arg;
	by_hand_begin();
	shards = by_hand.runtime->workers_count;
	for (unsigned i = 0; i < 64; i++)
		arm(i % shards, &alarms[i], now_ns + WEFT_MS(1) * (i + 1));
	for (unsigned i = 0; i < 64; i++) {
		/* next() is at the first alarm or, where its slot is split,
		 * before it. */
		EXPECT(next() <= due_of(now_ns + WEFT_MS(1) * (i + 1)));
		EXPECT(disarm(&alarms[i]));
		EXPECT(!disarm(&alarms[i]));
	}
	EXPECT(next() == UINT64_MAX);
	EXPECT(turn(now_ns + WEFT_SEC(1)) == 0);
	/* The end of time never expires; the past expires immediately. */
	arm(0, &alarms[0], UINT64_MAX);
	arm(0, &alarms[1], UINT64_MAX - 1);
	EXPECT(next() == UINT64_MAX);
	EXPECT(disarm(&alarms[0]) && disarm(&alarms[1]));
	now_ns += WEFT_SEC(1);
	arm(0, &alarms[0], 1);
	EXPECT(next() <= now_ns);
	EXPECT(turn(now_ns) == 1);
	EXPECT(!disarm(&alarms[0]));
	return 0;
}

START_TEST(disarmed_alarm_neither_fires_nor_wakes)
{
	run_by_hand(_i, disarm_all, 0);
}
END_TEST

/* TS4: expiry returns as many alarms as there is room for, from all shards; the
 * rest stays due. */
enum { MANY = 3000 };
static struct weft__alarm many[MANY];

static int64_t fire_in_parts(void *arg)
{
	uint64_t now_ns = weft_now(), deadline_ns = now_ns + WEFT_MS(1);
	unsigned shards, turns = 0, total = 0, n;

	(void)arg;
	by_hand_begin();
	shards = by_hand.runtime->workers_count;
	for (unsigned i = 0; i < MANY; i++)
		arm(i % shards, &many[i], deadline_ns);
	now_ns = due_of(deadline_ns);
	while ((n = turn(now_ns)) > 0) {
		EXPECT(n <= WEFT__HARVEST_MAX);
		total += n;
		turns++;
		EXPECT((next() <= now_ns) == (total < MANY));
	}
	EXPECT(total == MANY);
	EXPECT(turns <= MANY / WEFT__HARVEST_MAX + 1);
	for (unsigned i = 0; i < MANY; i++)
		EXPECT(!disarm(&many[i]));
	return 0;
}

START_TEST(rest_of_what_is_due_stays_due)
{
	run_by_hand(_i, fire_in_parts, 0);
}
END_TEST

/* No shard is always last: each has more due alarms in every turn than fit. */
static int64_t crowd_all_lanes(void *arg)
{
	uint64_t now_ns = weft_now();
	unsigned fired[8] = { 0 };
	unsigned shards;

	(void)arg;
	by_hand_begin();
	shards = by_hand.runtime->workers_count;
	for (unsigned i = 0; i < MANY; i++)
		arm(i % shards, &many[i], now_ns);
	now_ns += TICK_NS;
	for (int round = 0; round < 400; round++) {
		(void)turn(now_ns);
		for (unsigned i = 0; i < MANY; i++) {
			if (disarm(&many[i])) {
				/* The alarm is as it was before. */
				arm(i % shards, &many[i], now_ns - TICK_NS);
				continue;
			}
			fired[i % shards]++;
			arm(i % shards, &many[i], now_ns - TICK_NS);
		}
	}
	for (unsigned i = 0; i < shards; i++)
		EXPECT(fired[i] >= 400 * WEFT__HARVEST_MAX / shards / 2);
	for (unsigned i = 0; i < MANY; i++)
		EXPECT(disarm(&many[i]));
	return 0;
}

START_TEST(no_lane_is_always_the_last)
{
	run_by_hand(_i, crowd_all_lanes, 0);
}
END_TEST

/* TS3, on the arming side: worker 0 is woken for an alarm earlier than its
 * sleep, and for nothing else. */
static uint32_t park_word(void)
{
	/* relaxed: one thread. */
	return weft__load(&by_hand.runtime->workers[0]->park_word, relaxed);
}

static void park_word_reset(void)
{
	weft__store(&by_hand.runtime->workers[0]->park_word,
		    (uint32_t)WEFT__PARK_EMPTY, relaxed);
}

static int64_t wake_the_sleeper(void *arg)
{
	struct weft__alarm a, b, c, d;
	uint64_t now_ns = weft_now();
	unsigned last;

	(void)arg;
	by_hand_begin();
	last = by_hand.runtime->workers_count - 1;
	weft__timer_shards_wake(by_hand.runtime);
	park_word_reset();
	arm(last, &a, now_ns + WEFT_MS(100));
	EXPECT(park_word() == WEFT__PARK_EMPTY);
	EXPECT(weft__timer_shards_sleep(by_hand.runtime) == next());
	arm(last, &b, now_ns + WEFT_MS(200));
	EXPECT(park_word() == WEFT__PARK_EMPTY);
	arm(last, &c, now_ns + WEFT_MS(50));
	EXPECT(park_word() == WEFT__PARK_NOTIFIED);
	park_word_reset();
	/* Worker 0 already knows of an earlier alarm. */
	arm(last, &d, now_ns + WEFT_MS(60));
	EXPECT(park_word() == WEFT__PARK_EMPTY);
	EXPECT(disarm(&d));
	weft__timer_shards_wake(by_hand.runtime);
	arm(last, &d, now_ns + WEFT_MS(10));
	EXPECT(park_word() == WEFT__PARK_EMPTY);
	EXPECT(disarm(&a) && disarm(&b) && disarm(&c) && disarm(&d));
	return 0;
}

START_TEST(arming_earlier_than_worker_0_sleeps_wakes_it)
{
	run_by_hand(_i, wake_the_sleeper, 0);
}
END_TEST

/* Races between threads.  No tasks run; the threads play the workers. */

enum { RACE_WORKERS = 3, RACE_ROUNDS = 100000, RACE_ALARMS = 32 };

static struct {
	struct weft_runtime *runtime;
	weft__atomic(uint32_t) armers;
	weft__atomic(uint64_t) armed, disarmed;
	weft__atomic(uint64_t) asked_ns, answered_ns;
} race;

static uint64_t clock_ns(struct weft_runtime *runtime)
{
	struct timespec now;

	(void)runtime;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int race_open(struct weft_runtime *runtime, const struct weft_opts *opts)
{
	(void)opts;
	return weft__timer_shards_open(runtime, clock_ns(runtime));
}

static uint64_t race_seed(struct weft_runtime *runtime)
{
	return clock_ns(runtime);
}

static void race_wake(struct weft__worker *from, struct weft__worker *to)
{
	(void)from, (void)to;
}

static const struct weft__driver_ops race_ops = {
	.open = race_open,
	.close = weft__timer_shards_close,
	.now = clock_ns,
	.random = race_seed,
	.wake = race_wake,
};

static void race_begin(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_task_opts task_opts = WEFT_TASK_OPTS_INIT;

	memset(&race, 0, sizeof(race));
	opts.workers = RACE_WORKERS;
	ck_assert_int_eq(weft__runtime_new(&opts, &race_ops, false,
					   &race.runtime),
			 0);
	/* Record 0, for ids that are no longer valid. */
	ck_assert_int_eq(weft__root_go(race.runtime, NULL, nothing, NULL, 0,
				       &task_opts, false), 0);
}

static void race_end(void)
{
	weft__timer_shards_close(race.runtime);
	weft__runtime_free(race.runtime);
}

/* Arms and disarms; after disarming, the alarm's memory must be its own
 * again. */
static void *race_armer(void *arg)
{
	struct weft__worker *worker = arg;
	struct weft__alarm alarms[RACE_ALARMS];
	uint64_t random = worker->index + 1;
	uint64_t armed = 0, disarmed = 0;

	memset(alarms, 0, sizeof(alarms));
	for (int i = 0; i < RACE_ROUNDS; i++) {
		struct weft__alarm *alarm;

		random = random * 6364136223846793005u + 1442695040888963407u;
		alarm = &alarms[random >> 40 & (RACE_ALARMS - 1)];
		if (alarm->armed) {
			disarmed +=
				weft__timer_shards_disarm(race.runtime, alarm);
			memset(alarm, 0x5a, sizeof(*alarm));
		}
		/* A task's generation is never 0. */
		alarm->task = 0;
		alarm->kind = random >> 50 & 1;
		armed++;
		weft__timer_shards_arm(worker, alarm,
				clock_ns(NULL) + (random >> 46));
	}
	for (int i = 0; i < RACE_ALARMS; i++) {
		disarmed += weft__timer_shards_disarm(race.runtime, &alarms[i]);
		memset(&alarms[i], 0x5a, sizeof(alarms[i]));
	}
	weft__add(&race.armed, armed, relaxed);
	weft__add(&race.disarmed, disarmed, relaxed);
	weft__sub(&race.armers, 1u, acq_rel);
	return NULL;
}

static void *race_turner(void *arg)
{
	struct weft__worker *worker = arg;

	/* acquire: the last writes of the arming threads. */
	while (weft__load(&race.armers, acquire))
		(void)weft__timer_shards_turn(race.runtime, worker,
					      clock_ns(NULL));
	(void)weft__timer_shards_turn(race.runtime, worker, clock_ns(NULL));
	return NULL;
}

/* TS2: each alarm is either disarmed or fired, and is not touched after that.
 * */
START_TEST(race_of_arming_disarming_and_turning)
{
	pthread_t threads[4];
	uint64_t fired;

	race_begin();
	race.armers = 2;
	for (int i = 0; i < 2; i++) {
		pthread_create(&threads[i], NULL, race_armer,
			       race.runtime->workers[1 + i]);
		/* Plays worker 0 and a helper. */
		pthread_create(&threads[2 + i], NULL, race_turner,
			       race.runtime->workers[i]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	fired = race.runtime->workers[0]->counts[WEFT__N_TIMERS_FIRED] +
		race.runtime->workers[1]->counts[WEFT__N_TIMERS_FIRED];
	ck_assert_uint_eq(race.armed, race.disarmed + fired);
	ck_assert_uint_eq(weft__timer_shards_next(race.runtime), UINT64_MAX);
	race_end();
}
END_TEST

/* Sleeps as worker 0 does, but without a timeout: only a token or its alarm
 * ends the sleep. */
static void *race_sleeper(void *arg)
{
	struct weft__worker *worker = arg;

	for (;;) {
		uint64_t until_ns = weft__timer_shards_sleep(race.runtime);

		while (clock_ns(NULL) < until_ns &&
		       weft__swap(&worker->park_word,
				  (uint32_t)WEFT__PARK_EMPTY, acq_rel) !=
			       WEFT__PARK_NOTIFIED)
			/* acquire: the last writes of the arming thread. */
			if (!weft__load(&race.armers, acquire))
				return NULL;
		weft__timer_shards_wake(race.runtime);
		(void)weft__timer_shards_turn(race.runtime, worker,
					      clock_ns(NULL));
	}
}

static void *race_asker(void *arg)
{
	struct weft__worker *worker = arg;
	struct weft__alarm far, near;

	memset(&far, 0, sizeof(far));
	memset(&near, 0, sizeof(near));
	weft__timer_shards_arm(worker, &far, clock_ns(NULL) + WEFT_SEC(3600));
	for (int i = 0; i < 3000; i++) {
		uint64_t begun_ns = clock_ns(NULL);
		bool late = false;

		weft__timer_shards_arm(worker, &near, begun_ns + 1);
		/* The alarm is due within 66 us.  If it takes seconds, it was
		 * slept through. */
		while (!late && weft__timer_shards_next(race.runtime) <=
					begun_ns + TICK_NS + 1)
			late = clock_ns(NULL) - begun_ns > WEFT_SEC(5);
		EXPECT(!late);
		(void)weft__timer_shards_disarm(race.runtime, &near);
	}
	(void)weft__timer_shards_disarm(race.runtime, &far);
	weft__store(&race.armers, 0u, release);
	return NULL;
}

/* TS3: worker 0 never sleeps through an alarm that is armed while it falls
 * asleep. */
START_TEST(race_of_arming_and_falling_asleep)
{
	pthread_t threads[2];

	race_begin();
	race.armers = 1;
	pthread_create(&threads[0], NULL, race_sleeper,
		       race.runtime->workers[0]);
	pthread_create(&threads[1], NULL, race_asker,
		       race.runtime->workers[1]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	race_end();
}
END_TEST

static Suite *shards_suite(void)
{
	Suite *suite = suite_create("timer/shard");
	TCase *tc = tcase_create("by hand");

	tcase_set_timeout(tc, 30);
	tcase_add_loop_test(tc, alarm_goes_off_once_at_the_end_of_its_tick, 0,
			    8);
	tcase_add_loop_test(tc, clock_may_start_anywhere, 0, 53);
	tcase_add_loop_test(tc, disarmed_alarm_neither_fires_nor_wakes, 0, 8);
	tcase_add_loop_test(tc, rest_of_what_is_due_stays_due, 0, 8);
	tcase_add_loop_test(tc, no_lane_is_always_the_last, 0, 8);
	suite_add_tcase(suite, tc);

	tc = tcase_create("hand-over");
	tcase_add_loop_test(tc, arming_earlier_than_worker_0_sleeps_wakes_it,
			    1, 8);
	suite_add_tcase(suite, tc);

	tc = tcase_create("races");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, race_of_arming_disarming_and_turning);
	tcase_add_test(tc, race_of_arming_and_falling_asleep);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { shards_suite };

	return run_suites(make, 1);
}
