/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/polls: when futures are polled, and which calls they may make.
 * Every test runs over seeds and numbers of workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <errno.h>
#include <string.h>

#include <weft/weft.h>

#include "tests/support/future_scene.h"

/* Wakes by the program. */

struct gate {
	weft__atomic(int) open;
	weft__atomic(int) polls;
};

static int64_t wait_open(void *state)
{
	struct gate *gate = *(struct gate **)state;

	weft__add(&gate->polls, 1, relaxed);
	/* pairs: the store before the wake */
	return weft__load(&gate->open, acquire) ? 3 : WEFT_PENDING;
}

static int64_t wakes(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE(scope)
		for (int i = 0; i < 50; i++) {
			struct gate gate = { 0, 0 }, *at = &gate;
			struct weft_task task;

			task = start_future(scope, wait_open, &at, sizeof(at));
			if (i % 3)
				EXPECT(weft_yield() == 0);
			for (int k = 0; k < i % 4; k++)
				EXPECT(weft_future_wake(NULL, task) == 0);
			/* pairs: wait_open */
			weft__store(&gate.open, 1, release);
			EXPECT(weft_future_wake(weft_runtime_self(), task) ==
			       0);
			EXPECT(join(task) == 3);
			EXPECT(weft__load(&gate.polls, relaxed) >= 1);
			EXPECT(weft__load(&gate.polls, relaxed) <= 2 + i % 4);
			EXPECT(weft_future_wake(NULL, task) == -ESRCH);
		}
	EXPECT(weft_future_wake(NULL, weft_self()) == -EINVAL);
	return 0;
}

START_TEST(wake_has_it_polled_once_more)
{
	(void)run_main(_i, wakes);
}
END_TEST

/* Ends when the gate opens or when it is cancelled, which any await reports. */
static int64_t wait_cancelled(void *state)
{
	struct gate *gate = *(struct gate **)state;

	if (weft__add(&gate->polls, 1, relaxed) == 0)
		return WEFT_PENDING;
	return weft_await_sleep(WEFT_SEC(100));
}

static int64_t cancels_what_waits_of_its_own(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++)
		WEFT_SUPERVISE(scope) {
			struct gate gate = { 0, 0 }, *at = &gate;
			struct weft_task task;

			/* Cancelled before the first poll and after it. */
			task = start_future(scope, wait_cancelled, &at,
					    sizeof(at));
			while (i % 2 && !weft__load(&gate.polls, relaxed))
				EXPECT(weft_yield() == 0);
			if (i % 3)
				EXPECT(weft_sleep(WEFT_US(10)) == 0);
			weft_scope_cancel(scope);
			EXPECT(join(task) == -ECANCELED);
		}
	return 0;
}

struct patient {
	WEFT_FUTURE_STATE;
	uint64_t within_ns;
	int polls;
};

/* Waits for its deadline only. */
static int64_t be_patient(void *state)
{
	struct patient *p = state;
	int r;

	EXPECT(++p->polls < 10);
	WEFT_FUTURE_BEGIN(p);
	if (p->within_ns)
		EXPECT(weft_future_within(p->within_ns) == 0);
	/* The awaits before this one leave nothing behind. */
	WEFT_AWAIT_AS(p, r, weft_await_sleep(WEFT_US(200)));
	EXPECT(r == 0);
	WEFT_AWAIT_AS(p, r,
		      weft_future_interrupted() ? weft_future_interrupted() :
						  WEFT_PENDING);
	WEFT_FUTURE_END(p);
	return r;
}

static int64_t waits_for_deadlines(void *arg)
{
	static const struct patient own = { 0, WEFT_MS(3), 0 };
	static const struct patient none = { 0, 0, 0 };
	uint64_t before_ns = weft_now();
	struct weft_task task;

	(void)arg;
	EXPECT(weft_future_interrupted() == -EPERM);
	WEFT_SUPERVISE(scope) {
		EXPECT(join(start_future(scope, be_patient, &own,
					 sizeof(own))) == -ETIMEDOUT);
		WEFT_WITHIN(WEFT_MS(3))
			task = start_future(scope, be_patient, &none,
					    sizeof(none));
		EXPECT(join(task) == -ECANCELED);
		task = start_future(scope, be_patient, &none, sizeof(none));
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(weft_cancel(task) == 0);
		EXPECT(join(task) == -ECANCELED);
	}
	EXPECT(weft_now() - before_ns >= WEFT_MS(7));
	EXPECT(weft_now() - before_ns < WEFT_MS(20));
	return 0;
}

START_TEST(deadlines_wake_what_waits_of_its_own)
{
	(void)run_main(_i, waits_for_deadlines);
}
END_TEST

struct late {
	weft__atomic(int) *polls;
	bool heeds;
};

/* The deadline passes after the future has looked at it. */
static int64_t be_late(void *state)
{
	struct late *l = state;
	bool first = weft__add(l->polls, 1, relaxed) == 0;
	int r;

	if (first)
		EXPECT(weft_future_within(WEFT_US(50)) == 0);
	r = weft_future_interrupted();
	if (first) {
		EXPECT(r == 0);
		fake_compute(WEFT_US(60));
	}
	return r == -ECANCELED || (r < 0 && l->heeds) ? r : WEFT_PENDING;
}

static int64_t passes_deadlines(void *arg)
{
	weft__atomic(int) polls = 0;
	struct late late = { &polls, true };

	(void)arg;
	WEFT_SUPERVISE(scope) {
		EXPECT(join(start_future(scope, be_late, &late,
					 sizeof(late))) == -ETIMEDOUT);
		EXPECT(weft__load(&polls, relaxed) == 2);
	}
	return 0;
}

START_TEST(deadline_that_passes_after_the_look_wakes)
{
	(void)run_main(_i, passes_deadlines);
}
END_TEST

static int64_t goes_on_after_a_deadline(void *arg)
{
	weft__atomic(int) polls = 0;
	struct late late = { &polls, false };
	struct weft_task task;

	(void)arg;
	WEFT_SUPERVISE(scope) {
		task = start_future(scope, be_late, &late, sizeof(late));
		EXPECT(weft_sleep(WEFT_MS(2)) == 0);
		EXPECT(weft__load(&polls, relaxed) == 2);
		EXPECT(weft_future_wake(NULL, task) == 0);
		EXPECT(weft_sleep(WEFT_MS(2)) == 0);
		EXPECT(weft__load(&polls, relaxed) == 3);
		EXPECT(weft_cancel(task) == 0);
		EXPECT(join(task) == -ECANCELED);
	}
	return 0;
}

static int64_t goes_on_until_the_next_deadline(void *arg)
{
	weft__atomic(int) polls = 0;
	struct late late = { &polls, false };
	struct weft_task task;

	(void)arg;
	WEFT_SUPERVISE(scope) {
		WEFT_WITHIN(WEFT_MS(2))
			task = start_future(scope, be_late, &late,
					    sizeof(late));
		EXPECT(join(task) == -ECANCELED);
		EXPECT(weft__load(&polls, relaxed) == 3);
	}
	return 0;
}

START_TEST(deadline_of_where_it_began_is_told_after_its_own)
{
	(void)run_main(_i, goes_on_until_the_next_deadline);
}
END_TEST

START_TEST(deadline_that_has_passed_has_it_polled_once)
{
	(void)run_main(_i, goes_on_after_a_deadline);
}
END_TEST

START_TEST(cancelling_wakes_what_waits_of_its_own)
{
	(void)run_main(_i, cancels_what_waits_of_its_own);
}
END_TEST

/* Wakes a future without a reason while it awaits something. */
static int64_t wakes_for_nothing(void *arg)
{
	struct sleeper s = { .times = 1, .length_ns = WEFT_MS(5) };
	weft__atomic(int) ended = 0;

	(void)arg;
	s.ended = &ended;
	WEFT_SUPERVISE(scope) {
		struct weft_task task =
			start_future(scope, sleep_times, &s, sizeof(s));

		for (int i = 0; i < 20; i++) {
			EXPECT(weft_future_wake(NULL, task) == 0);
			EXPECT(weft_sleep(WEFT_US(70)) == 0);
		}
		EXPECT(join(task) == 0);
	}
	EXPECT(weft__load(&ended, relaxed) == 1);
	return 0;
}

START_TEST(needless_wakes_end_no_await)
{
	(void)run_main(_i, wakes_for_nothing);
}
END_TEST

/* The calls that a future may make. */

static int64_t try_to_suspend(void *state)
{
	struct weft_mutex mutex = WEFT_MUTEX_INIT;
	struct weft_cond cond = WEFT_COND_INIT;
	struct weft_sem sem = WEFT_SEM_INIT(0);
	struct weft_event event = WEFT_EVENT_INIT;
	struct weft_notify notify = WEFT_NOTIFY_INIT;
	struct weft_wait_group group = WEFT_WAIT_GROUP_INIT(1);
	struct weft_chan chan = WEFT_CHAN_DIRECT(int);
	struct weft_case which[] = { WEFT_RECV(&chan, state) };
	struct weft_within within;
	struct weft_scope scope;
	int value = 0;

	(void)state;
	EXPECT(weft_sleep(1) == -EPERM);
	EXPECT(weft_yield() == -EPERM);
	EXPECT(weft_mutex_lock(&mutex) == -EPERM);
	EXPECT(weft_sem_acquire(&sem, 1) == -EPERM);
	EXPECT(weft_event_wait(&event) == -EPERM);
	EXPECT(weft_notify_wait(&notify) == -EPERM);
	EXPECT(weft_wait_group_wait(&group) == -EPERM);
	EXPECT(weft_chan_send(&chan, &value) == -EPERM);
	EXPECT(weft_chan_recv(&chan, &value) == -EPERM);
	EXPECT(weft_select(which, 1) == -EPERM);
	EXPECT(weft_join(weft_self(), NULL) == -EPERM);
	EXPECT(weft_wait(weft_runtime_self(), weft_self(), NULL) == -EDEADLK);
	EXPECT(weft_group_begin(&scope) == -EPERM);
	EXPECT(weft_within_begin(&within, 0) == -EPERM);
	EXPECT(weft_task_local_set(NULL, NULL) == -EPERM);
	/* These calls do not suspend. */
	EXPECT(weft_mutex_try_lock(&mutex) == 0);
	EXPECT(weft_mutex_try_lock(&mutex) == -EBUSY);
	EXPECT(weft_cond_wait(&cond, &mutex) == -EPERM);
	weft_mutex_unlock(&mutex);
	EXPECT(weft_try_select(which, 1) == -EAGAIN);
	EXPECT(weft_chan_try_send(&chan, &value) == -EAGAIN);
	return 0;
}

static int64_t refuses(void *arg)
{
	struct weft_chan chan = WEFT_CHAN_DIRECT(int);
	int value;

	(void)arg;
	EXPECT(weft_await_sleep(1) == -EPERM);
	EXPECT(weft_await_yield() == -EPERM);
	EXPECT(weft_await_chan_recv(&chan, &value) == -EPERM);
	EXPECT(weft_future_within(1) == -EPERM);
	WEFT_SUPERVISE(scope)
		EXPECT(join(start_future(scope, try_to_suspend, NULL, 0)) == 0);
	return 0;
}

START_TEST(calls_that_suspend_are_refused)
{
	(void)run_main(_i, refuses);
}
END_TEST

/* Drops the result of a future; the function still runs as that future. */
static void drop_late(int64_t result)
{
	struct weft_mutex mutex = WEFT_MUTEX_INIT;
	struct weft_sem sem = WEFT_SEM_INIT(0);

	EXPECT(result == 2);
	EXPECT(weft_self().id != 0);
	EXPECT(weft_wait(weft_runtime_self(), weft_self(), NULL) == -EDEADLK);
	EXPECT(weft_sem_acquire(&sem, 1) == -EPERM);
	EXPECT(weft_mutex_try_lock(&mutex) == 0);
	weft_mutex_unlock(&mutex);
	EXPECT(weft_deadline() != WEFT_NEVER);
	/* The future has ended, and can await nothing any more. */
	EXPECT(weft_await_sleep(1) == -EPERM);
	EXPECT(weft_await_yield() == -EPERM);
	EXPECT(weft_future_within(1) == -EPERM);
}

static int64_t come_second(void *state)
{
	return weft_await_sleep(WEFT_SEC(1)) == WEFT_PENDING ? WEFT_PENDING :
							       *(int *)state;
}

static int64_t drops(void *arg)
{
	int64_t result = -1;

	(void)arg;
	WEFT_WITHIN(WEFT_SEC(3))
		WEFT_RACE(race, &result) {
			struct answer first = { 1, 0, WEFT_US(50) };

			EXPECT(weft_race_drop(race, drop_late) == 0);
			EXPECT(WEFT_GO_FUTURE(race, come_second, 2) == 0);
			EXPECT(WEFT_GO(race, give, first) == 0);
		}
	EXPECT(result == 1);
	return 0;
}

START_TEST(late_results_are_dropped_in_the_future)
{
	(void)run_main(_i, drops);
}
END_TEST

struct starter {
	WEFT_FUTURE_STATE;
	int depth;
	struct weft_scope *scope;
	weft__atomic(int) *count;
};

static int64_t start_more(void *state)
{
	struct starter *s = state;
	struct starter child = *s;
	struct answer answer = { 0, 1, 0 };

	child.weft_at = 0;
	child.depth--;
	weft__add(s->count, 1, relaxed);
	if (!s->depth)
		return 0;
	for (int i = 0; i < 3; i++)
		EXPECT(WEFT_GO_FUTURE(s->scope, start_more, child) == 0);
	return WEFT_GO(s->scope, give, answer);
}

static int64_t starts_a_tree(void *arg)
{
	weft__atomic(int) count = 0;
	int64_t result = -1;

	(void)arg;
	WEFT_SCOPE(scope, &result) {
		struct starter s = { 0, 5, scope, &count };

		EXPECT(WEFT_GO_FUTURE(scope, start_more, s) == 0);
	}
	EXPECT(result == 0);
	EXPECT(weft__load(&count, relaxed) == 1 + 3 + 9 + 27 + 81 + 243);
	return 0;
}

START_TEST(futures_start_tasks_and_futures)
{
	(void)run_main(_i, starts_a_tree);
}
END_TEST

static int64_t start_in_full(void *state)
{
	struct weft_scope *scope = *(struct weft_scope **)state;
	struct answer answer = { 0, 0, 0 };

	/* Two tasks are allowed, and this future is one of them. */
	EXPECT(WEFT_GO(scope, give, answer) == -EAGAIN);
	return 0;
}

static int64_t meets_a_limit(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE(scope) {
		EXPECT(weft_scope_limit(scope, 2) == 0);
		EXPECT(weft_go_future(scope, sleep_long, NULL, 0) == 0);
		EXPECT(WEFT_GO_FUTURE(scope, start_in_full, scope) == 0);
		EXPECT(weft_scope_wait_room(scope) == 0);
		EXPECT(weft_scope_count(scope) == 1);
		weft_scope_cancel(scope);
	}
	return 0;
}

START_TEST(limit_holds_for_futures)
{
	(void)run_main(_i, meets_a_limit);
}
END_TEST

static int64_t bad_arguments(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	char big[WEFT_ARG_BYTES_MAX + 1] = { 0 };

	(void)arg;
	WEFT_SUPERVISE(scope) {
		EXPECT(weft_go_future(NULL, sleep_long, NULL, 0) == -EINVAL);
		EXPECT(weft_go_future(scope, NULL, NULL, 0) == -EINVAL);
		EXPECT(weft_go_future(scope, sleep_long, NULL, 8) == -EINVAL);
		EXPECT(weft_go_future(scope, sleep_long, big, sizeof(big)) ==
		       -EINVAL);
		opts.flags = WEFT_FUTURE | WEFT_PINNED;
		EXPECT(weft_go_opts(scope, sleep_long, NULL, 0, &opts) ==
		       -EINVAL);
		opts.flags = WEFT_FUTURE;
		opts.stack_bytes = 65536;
		EXPECT(weft_go_opts(scope, sleep_long, NULL, 0, &opts) ==
		       -EINVAL);
		EXPECT(weft_scope_count(scope) == 0);
	}
	return 0;
}

START_TEST(bad_arguments_are_refused)
{
	(void)run_main(_i, bad_arguments);
}
END_TEST

/*
 * Fairness.
 */

struct greedy {
	struct weft_chan *chan;
	uint64_t value;
	bool *stop;
};

/* Its calls never wait: there is always room, and always a value. */
static int64_t be_greedy(void *state)
{
	struct greedy *g = state;
	int r;

	do {
		r = weft_await_chan_send(g->chan, &g->value);
		if (r == 0)
			EXPECT(weft_chan_try_recv(g->chan, &g->value) == 0);
	} while (r == 0 && !*g->stop);
	return r;
}

static int64_t shares(void *arg)
{
	uint64_t room[4];
	struct weft_chan chan = WEFT_CHAN_INIT(room);
	bool stop = false;

	(void)arg;
	WEFT_SUPERVISE(scope) {
		struct greedy g = { &chan, 7, &stop };

		EXPECT(WEFT_GO_FUTURE(scope, be_greedy, g) == 0);
		for (int i = 0; i < 20; i++)
			EXPECT(weft_yield() == 0);
		EXPECT(weft_sleep(WEFT_US(300)) == 0);
		stop = true;
	}
	return 0;
}

START_TEST(one_that_never_waits_lets_others_run)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 1 };

	must_run(&config, shares, NULL);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static Suite *future_suite(void)
{
	Suite *suite = suite_create("future/polls");
	TCase *wakes = tcase_create("wakes");
	TCase *rules = tcase_create("rules");

	tcase_set_timeout(wakes, 30);
	ADD(wakes, wake_has_it_polled_once_more);
	ADD(wakes, needless_wakes_end_no_await);
	ADD(wakes, cancelling_wakes_what_waits_of_its_own);
	ADD(wakes, deadlines_wake_what_waits_of_its_own);
	ADD(wakes, deadline_that_passes_after_the_look_wakes);
	ADD(wakes, deadline_that_has_passed_has_it_polled_once);
	ADD(wakes, deadline_of_where_it_began_is_told_after_its_own);
	suite_add_tcase(suite, wakes);
	tcase_set_timeout(rules, 30);
	ADD(rules, calls_that_suspend_are_refused);
	ADD(rules, futures_start_tasks_and_futures);
	ADD(rules, limit_holds_for_futures);
	ADD(rules, bad_arguments_are_refused);
	ADD(rules, late_results_are_dropped_in_the_future);
	ADD(rules, one_that_never_waits_lets_others_run);
	suite_add_tcase(suite, rules);

	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { future_suite };

	return run_suites(make, 1);
}
