/* SPDX-License-Identifier: MIT */
/*
 * Suite future/grants: futures wait for events and permits in one queue with
 * tasks.  Every test runs over seeds and numbers of workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <errno.h>

#include <weft/weft.h>

#include "tests/support/future_scene.h"

enum { WAITERS = 12 };

/* A future that waits for one object, with a deadline or without. */
struct waiter {
	WEFT_FUTURE_STATE;
	uint32_t n;
	struct weft_event *event;
	struct weft_sem *sem; /* if not NULL */
	uint64_t within_ns;
	weft__atomic(int) * begun;
	weft__atomic(int) * had;
};

static int await_one(struct waiter *w)
{
	return w->sem ? weft_await_sem_acquire(w->sem, w->n) :
			weft_await_event(w->event);
}

static int64_t wait_as_future(void *state)
{
	struct waiter *w = state;
	int r;

	WEFT_FUTURE_BEGIN(w);
	weft__add(w->begun, 1, relaxed);
	if (w->within_ns)
		EXPECT(weft_future_within(w->within_ns) == 0);
	WEFT_AWAIT_AS(w, r, await_one(w));
	if (r == 0)
		r = weft__add(w->had, 1, relaxed);
	WEFT_FUTURE_END(w);
	return r;
}

static int64_t wait_as_task(void *arg)
{
	struct waiter *w = arg;
	int r;

	weft__add(w->begun, 1, relaxed);
	r = w->sem ? weft_sem_acquire(w->sem, w->n) : weft_event_wait(w->event);
	return r ? r : weft__add(w->had, 1, relaxed);
}

/* Starts a waiter and lets it begin before the next one. */
static struct weft_task start_waiter(struct weft_scope *scope,
				     const struct waiter *w, bool as_future)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task = { 0 };
	int before = weft__load(w->begun, relaxed);

	opts.flags = as_future ? WEFT_FUTURE : 0;
	opts.ret_task = &task;
	EXPECT(weft_go_opts(scope, as_future ? wait_as_future : wait_as_task, w,
			    sizeof(*w), &opts) == 0);
	while (weft__load(w->begun, relaxed) == before)
		EXPECT(weft_sleep(WEFT_US(1)) == 0);
	EXPECT(weft_sleep(WEFT_US(5)) == 0);
	return task;
}

/*
 * Events.
 */

static int64_t sets(void *arg)
{
	struct weft_event event = WEFT_EVENT_INIT;
	weft__atomic(int) begun = 0, had = 0;
	struct waiter w = { .event = &event, .begun = &begun, .had = &had };
	struct weft_task tasks[WAITERS];

	(void)arg;
	EXPECT(weft_await_event(&event) == -EPERM);
	WEFT_SUPERVISE(scope) {
		for (int i = 0; i < WAITERS; i++)
			tasks[i] = start_waiter(scope, &w, i % 3);
		EXPECT(weft__load(&had, relaxed) == 0);
		weft_event_set(&event);
		/* The waiters go on although the event is cleared, and one of
		 * them is cancelled, before they run. */
		weft_event_clear(&event);
		(void)weft_cancel(tasks[1]);
		for (int i = 0; i < WAITERS; i++)
			EXPECT(join(tasks[i]) >= 0);
		EXPECT(weft__load(&had, relaxed) == WAITERS);
		/* A task that comes later waits. */
		tasks[0] = start_waiter(scope, &w, true);
		EXPECT(weft_sleep(WEFT_US(50)) == 0);
		EXPECT(weft__load(&had, relaxed) == WAITERS);
		weft_event_set(&event);
		EXPECT(join(tasks[0]) == WAITERS);
		EXPECT(join(start_waiter(scope, &w, true)) == WAITERS + 1);
	}
	return 0;
}

START_TEST(event_lets_all_go_on)
{
	(void)run_main(_i, sets);
}
END_TEST

/*
 * Giving up.
 */

static void give_up(struct weft_scope *scope, struct waiter *w)
{
	struct weft_task task;

	task = start_waiter(scope, w, true);
	for (int i = 0; i < 5; i++) {
		/* None of these wakes ends the wait. */
		EXPECT(weft_future_wake(NULL, task) == 0);
		EXPECT(weft_sleep(WEFT_US(3)) == 0);
	}
	EXPECT(weft_cancel(task) == 0);
	EXPECT(join(task) == -ECANCELED);
	w->within_ns = WEFT_MS(1);
	EXPECT(join(start_waiter(scope, w, true)) == -ETIMEDOUT);
	w->within_ns = 0;
	WEFT_WITHIN(WEFT_MS(1))
		task = start_waiter(scope, w, true);
	EXPECT(join(task) == -ECANCELED);
}

static int64_t gives_up(void *arg)
{
	struct weft_event event = WEFT_EVENT_INIT;
	struct weft_sem sem = WEFT_SEM_INIT(1);
	weft__atomic(int) begun = 0, had = 0;
	struct waiter w = { .event = &event, .begun = &begun, .had = &had };

	(void)arg;
	WEFT_SUPERVISE(scope) {
		give_up(scope, &w);
		w.sem = &sem;
		w.n = 2;
		give_up(scope, &w);
	}
	EXPECT(weft__load(&had, relaxed) == 0);
	EXPECT(weft_sem_count(&sem) == 1);
	/* No waiter is left in a queue. */
	weft_sem_release(&sem, 10);
	weft_event_set(&event);
	EXPECT(weft_sem_count(&sem) == 11);
	return 0;
}

START_TEST(what_interrupts_is_told)
{
	(void)run_main(_i, gives_up);
}
END_TEST

/*
 * Permits.
 */

static int64_t acquires(void *arg)
{
	struct weft_sem sem = WEFT_SEM_INIT(2);
	weft__atomic(int) begun = 0, had = 0;
	struct waiter w = { .sem = &sem, .begun = &begun, .had = &had };
	struct weft_task tasks[WAITERS];

	(void)arg;
	EXPECT(weft_await_sem_acquire(&sem, 1) == -EPERM);
	WEFT_SUPERVISE(scope) {
		/* The permits are there, so there is no wait. */
		w.n = 2;
		EXPECT(join(start_waiter(scope, &w, true)) == 0);
		EXPECT(weft_sem_count(&sem) == 0);
		for (int i = 0; i < WAITERS; i++) {
			w.n = 1 + (uint32_t)i % 4;
			tasks[i] = start_waiter(scope, &w, i % 3);
		}
		/* Each waiter in turn gets all that it wants, or nothing. */
		for (int i = 0; i < WAITERS; i++) {
			for (int k = 0; k < i % 4; k++) {
				weft_sem_release(&sem, 1);
				EXPECT(weft_sleep(WEFT_US(20)) == 0);
				EXPECT(weft__load(&had, relaxed) == i + 1);
			}
			weft_sem_release(&sem, 1);
			EXPECT(join(tasks[i]) == i + 1);
		}
		EXPECT(weft_sem_count(&sem) == 0);
	}
	return 0;
}

START_TEST(permits_are_had_in_turn)
{
	(void)run_main(_i, acquires);
}
END_TEST

static int64_t steps_aside(void *arg)
{
	struct weft_sem sem = WEFT_SEM_INIT(1);
	weft__atomic(int) begun = 0, had = 0;
	struct waiter w = { .sem = &sem, .begun = &begun, .had = &had };
	struct weft_task wants_more, behind[2];

	(void)arg;
	WEFT_SUPERVISE(scope) {
		w.n = 2;
		wants_more = start_waiter(scope, &w, true);
		w.n = 1;
		behind[0] = start_waiter(scope, &w, true);
		behind[1] = start_waiter(scope, &w, false);
		EXPECT(weft__load(&had, relaxed) == 0);
		EXPECT(weft_cancel(wants_more) == 0);
		EXPECT(join(wants_more) == -ECANCELED);
		EXPECT(join(behind[0]) == 0);
		EXPECT(weft__load(&had, relaxed) == 1);
		weft_sem_release(&sem, 1);
		EXPECT(join(behind[1]) == 1);
	}
	return 0;
}

START_TEST(one_that_gives_up_lets_those_behind_go_on)
{
	(void)run_main(_i, steps_aside);
}
END_TEST

/* Takes and gives back permits; its deadlines pass often. */
struct worker {
	WEFT_FUTURE_STATE;
	int left;
	struct weft_sem *sem;
	uint32_t n;
	unsigned within_us;
};

static int64_t work(void *state)
{
	struct worker *w = state;
	int r;

	WEFT_FUTURE_BEGIN(w);
	for (; w->left > 0; w->left--) {
		EXPECT(weft_future_within(WEFT_US(w->within_us)) == 0);
		WEFT_AWAIT_AS(w, r, weft_await_sem_acquire(w->sem, w->n));
		if (r == -ETIMEDOUT)
			continue;
		if (r < 0)
			return 0;
		EXPECT(weft_future_within(WEFT_NEVER) == 0);
		WEFT_AWAIT_AS(w, r, weft_await_sleep(WEFT_US(7)));
		weft_sem_release(w->sem, w->n);
	}
	WEFT_FUTURE_END(w);
	return 0;
}

static int64_t loses_nothing(void *arg)
{
	struct weft_sem sem = WEFT_SEM_INIT(3);
	struct weft_task tasks[WAITERS];

	(void)arg;
	WEFT_SUPERVISE(scope) {
		for (unsigned i = 0; i < WAITERS; i++) {
			struct worker w = { .left = 40,
					    .sem = &sem,
					    .n = 1 + i % 3,
					    .within_us = 1 + i * 5 };

			tasks[i] = start_future(scope, work, &w, sizeof(w));
		}
		for (int i = 0; i < WAITERS / 2; i++) {
			EXPECT(weft_sleep(WEFT_US(30)) == 0);
			(void)weft_cancel(tasks[i]);
		}
	}
	EXPECT(weft_sem_count(&sem) == 3);
	return 0;
}

START_TEST(no_permit_is_lost_to_deadlines_and_cancels)
{
	(void)run_main(_i, loses_nothing);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static Suite *grants_suite(void)
{
	Suite *suite = suite_create("future/grants");
	TCase *tc = tcase_create("grants");

	tcase_set_timeout(tc, 30);
	ADD(tc, event_lets_all_go_on);
	ADD(tc, what_interrupts_is_told);
	ADD(tc, permits_are_had_in_turn);
	ADD(tc, one_that_gives_up_lets_those_behind_go_on);
	ADD(tc, no_permit_is_lost_to_deadlines_and_cancels);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { grants_suite };

	return run_suites(make, 1);
}
