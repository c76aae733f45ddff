/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/flags: conditions, events and notifications.
 *
 * Covered: which waiters a signal, a set or a notification lets go on, in which
 * order, and that no signal or notification is lost.  Every test runs over
 * seeds and numbers of workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <weft/weft.h>

#include "tests/support/sync_scene.h"

enum { TASKS = 6 };

/* The waiters that went on, in order. */
static int told, order[TASKS];

/*
 * Conditions.
 */

enum { PIECES = 60, MAKERS = 3, USERS = 4, SHELF = 2 };

static struct weft_mutex mutex;
static struct weft_cond cond, room;
static unsigned shelf, made, used;

static void cond_begin(void)
{
	mutex = (struct weft_mutex)WEFT_MUTEX_INIT;
	cond = room = (struct weft_cond)WEFT_COND_INIT;
	shelf = made = used = 0;
	told = 0;
}

static int64_t make_pieces(void *arg)
{
	(void)arg;
	for (int i = 0; i < PIECES; i++) {
		EXPECT(weft_mutex_lock(&mutex) == 0);
		while (shelf == SHELF)
			EXPECT(weft_cond_wait(&room, &mutex) == 0);
		shelf++;
		made++;
		if (fake_random(2))
			dwell();
		weft_cond_signal(&cond);
		weft_mutex_unlock(&mutex);
		if (fake_random(2))
			dwell();
	}
	return 0;
}

static int64_t use_pieces(void *arg)
{
	(void)arg;
	for (int i = 0; i < PIECES * MAKERS / USERS; i++) {
		EXPECT(weft_mutex_lock(&mutex) == 0);
		while (shelf == 0)
			EXPECT(weft_cond_wait(&cond, &mutex) == 0);
		EXPECT(shelf <= SHELF);
		shelf--;
		used++;
		weft_mutex_unlock(&mutex);
		/* A signal after the unlock works as well. */
		weft_cond_signal(&room);
		if (fake_random(2))
			dwell();
	}
	return 0;
}

static int64_t pass_pieces_on(void *arg)
{
	(void)arg;
	cond_begin();
	WEFT_SUPERVISE (all) {
		for (int i = 0; i < MAKERS; i++)
			EXPECT(weft_go(all, make_pieces, NULL, 0) == 0);
		for (int i = 0; i < USERS; i++)
			EXPECT(weft_go(all, use_pieces, NULL, 0) == 0);
	}
	EXPECT(made == PIECES * MAKERS && used == made && shelf == 0);
	return 0;
}

/* If a signal could come between the unlock and the wait it would be missed,
 * and at the end a waiter would be left. */
START_TEST(no_signal_is_lost_between_unlock_and_wait)
{
	(void)run_main(_i, pass_pieces_on);
}
END_TEST

static int64_t wait_for_signal(void *arg)
{
	int number = *(int *)arg;

	EXPECT(weft_sleep(WEFT_MS(1 + number)) == 0);
	EXPECT(weft_mutex_lock(&mutex) == 0);
	EXPECT(weft_cond_wait(&cond, &mutex) == 0);
	order[told++] = number;
	weft_mutex_unlock(&mutex);
	return 0;
}

static void start_waiters(struct weft_scope *scope, weft_fn fn, int count)
{
	for (int i = 0; i < count; i++)
		EXPECT(WEFT_GO(scope, fn, i) == 0);
	EXPECT(weft_sleep(WEFT_MS(count + 1)) == 0);
	EXPECT(told == 0);
}

static int64_t signal_each(void *arg)
{
	(void)arg;
	cond_begin();
	/* There is no waiter: no task gets the signal, now or later. */
	weft_cond_signal(&cond);
	weft_cond_broadcast(&cond);
	WEFT_SUPERVISE (all) {
		start_waiters(all, wait_for_signal, TASKS);
		for (int i = 0; i < TASKS; i++) {
			weft_cond_signal(&cond);
			EXPECT(weft_sleep(WEFT_MS(1)) == 0);
			EXPECT(told == i + 1 && order[i] == i);
		}
	}
	return 0;
}

START_TEST(signal_tells_the_one_that_has_waited_longest)
{
	(void)run_main(_i, signal_each);
}
END_TEST

static int64_t signal_several(void *arg)
{
	(void)arg;
	cond_begin();
	WEFT_SUPERVISE (all) {
		start_waiters(all, wait_for_signal, TASKS);
		EXPECT(weft_mutex_lock(&mutex) == 0);
		for (int i = 0; i < 4; i++)
			weft_cond_signal(&cond);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		/* The tasks have the signal, and wait for the mutex. */
		EXPECT(told == 0);
		weft_mutex_unlock(&mutex);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(told == 4);
		weft_cond_broadcast(&cond);
	}
	EXPECT(told == TASKS);
	return 0;
}

START_TEST(several_signals_tell_as_many)
{
	(void)run_main(_i, signal_several);
}
END_TEST

static int64_t broadcast_twice(void *arg)
{
	(void)arg;
	cond_begin();
	WEFT_SUPERVISE (all) {
		start_waiters(all, wait_for_signal, TASKS - 1);
		weft_cond_broadcast(&cond);
		/* A waiter that comes later does not get the broadcast. */
		EXPECT(WEFT_GO(all, wait_for_signal, (int){ TASKS }) == 0);
		EXPECT(weft_sleep(WEFT_MS(2 * TASKS)) == 0);
		EXPECT(told == TASKS - 1);
		weft_cond_broadcast(&cond);
	}
	EXPECT(told == TASKS);
	return 0;
}

START_TEST(broadcast_tells_all_that_wait_and_nobody_to_come)
{
	(void)run_main(_i, broadcast_twice);
}
END_TEST

/* The task holds the mutex after a wait that failed.  Another task has the
 * mutex when the wait is given up, so the return must wait for it. */
static weft_nsec begun_ns;

static int64_t wait_in_vain(void *arg)
{
	bool cancelled = *(bool *)arg;
	int wanted = cancelled ? -ECANCELED : -ETIMEDOUT;

	EXPECT(weft_mutex_lock(&mutex) == 0);
	WEFT_WITHIN (cancelled ? WEFT_SEC(1) : WEFT_MS(2)) {
		EXPECT(weft_cond_wait(&cond, &mutex) == wanted);
		EXPECT(is_about(weft_now(), begun_ns + WEFT_MS(9)));
		EXPECT(weft_mutex_try_lock(&mutex) == -EBUSY);
		weft_mutex_unlock(&mutex);
		/* The mutex is also held after a wait that fails
		 * immediately. */
		EXPECT(weft_mutex_try_lock(&mutex) == 0);
		EXPECT(weft_cond_wait(&cond, &mutex) == wanted);
		weft_mutex_unlock(&mutex);
	}
	told++;
	return 0;
}

static void fail_while_held(bool cancelled)
{
	cond_begin();
	begun_ns = weft_now();
	WEFT_SUPERVISE (all) {
		struct weft_task task =
			start(all, wait_in_vain, &cancelled, sizeof(cancelled));

		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(weft_mutex_lock(&mutex) == 0);
		EXPECT(weft_sleep_until(begun_ns + WEFT_MS(2)) == 0);
		if (cancelled)
			EXPECT(weft_cancel(task) == 0);
		EXPECT(weft_sleep_until(begun_ns + WEFT_MS(9)) == 0);
		EXPECT(told == 0);
		weft_mutex_unlock(&mutex);
	}
	EXPECT(told == 1);
	EXPECT(weft_mutex_try_lock(&mutex) == 0);
	weft_mutex_unlock(&mutex);
}

static int64_t fail_while_held_twice(void *arg)
{
	(void)arg;
	fail_while_held(false);
	fail_while_held(true);
	return 0;
}

START_TEST(mutex_is_held_after_a_wait_that_failed)
{
	(void)run_main(_i, fail_while_held_twice);
}
END_TEST

/*
 * Events.
 */

static struct weft_event event;

static int64_t wait_for_event(void *arg)
{
	int number = *(int *)arg;

	EXPECT(weft_sleep(WEFT_MS(1 + number)) == 0);
	EXPECT(weft_event_wait(&event) == 0);
	order[told++] = number;
	return 0;
}

static int64_t set_and_clear(void *arg)
{
	(void)arg;
	event = (struct weft_event)WEFT_EVENT_INIT;
	told = 0;
	WEFT_SUPERVISE (all) {
		EXPECT(!weft_event_is_set(&event));
		start_waiters(all, wait_for_event, 3);
		/* The waiters go on, although the event is cleared
		 * immediately. */
		weft_event_set(&event);
		EXPECT(weft_event_is_set(&event));
		weft_event_clear(&event);
		EXPECT(!weft_event_is_set(&event));
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(told == 3);
		WEFT_WITHIN (WEFT_MS(1))
			EXPECT(weft_event_wait(&event) == -ETIMEDOUT);
		/* The event stays set; setting it again makes no difference. */
		weft_event_set(&event);
		weft_event_set(&event);
		for (int i = 0; i < 3; i++)
			EXPECT(weft_event_wait(&event) == 0);
		weft_event_clear(&event);
		WEFT_WITHIN (WEFT_MS(1))
			EXPECT(weft_event_wait(&event) == -ETIMEDOUT);
	}
	return 0;
}

START_TEST(event_lets_all_go_on_until_it_is_cleared)
{
	(void)run_main(_i, set_and_clear);
}
END_TEST

/* Two tasks take turns with two events, each of which is cleared by its
 * waiter. */
static struct weft_event turn[2];
static unsigned turns;

static int64_t take_turns(void *arg)
{
	int side = *(int *)arg;

	for (int i = 0; i < 50; i++) {
		EXPECT(weft_event_wait(&turn[side]) == 0);
		EXPECT(turns++ % 2 == (unsigned)side);
		weft_event_clear(&turn[side]);
		if (fake_random(2))
			dwell();
		weft_event_set(&turn[!side]);
	}
	return 0;
}

static int64_t alternate(void *arg)
{
	(void)arg;
	turn[0] = turn[1] = (struct weft_event)WEFT_EVENT_INIT;
	turns = 0;
	WEFT_SUPERVISE (all) {
		EXPECT(WEFT_GO(all, take_turns, 0) == 0);
		EXPECT(WEFT_GO(all, take_turns, 1) == 0);
		weft_event_set(&turn[0]);
	}
	EXPECT(turns == 100);
	return 0;
}

START_TEST(events_pass_a_turn_to_and_fro)
{
	(void)run_main(_i, alternate);
}
END_TEST

static void set_event(void *arg)
{
	weft_event_set(arg);
}

static int64_t be_told_from_outside(void *arg)
{
	(void)arg;
	event = (struct weft_event)WEFT_EVENT_INIT;
	for (int i = 0; i < 10; i++) {
		fake_foreign(fake_random(WEFT_US(100)), set_event, &event);
		EXPECT(weft_event_wait(&event) == 0);
		weft_event_clear(&event);
	}
	return 0;
}

START_TEST(thread_wakes_a_task)
{
	(void)run_main(_i, be_told_from_outside);
}
END_TEST

/*
 * Notifications.
 */

static struct weft_notify notify;

static void notify_begin(void)
{
	notify = (struct weft_notify)WEFT_NOTIFY_INIT;
	told = 0;
}

static void expect_none_pending(void)
{
	WEFT_WITHIN (WEFT_MS(1))
		EXPECT(weft_notify_wait(&notify) == -ETIMEDOUT);
}

static int64_t wait_for_notification(void *arg)
{
	int number = *(int *)arg;

	EXPECT(weft_sleep(WEFT_MS(1 + number)) == 0);
	EXPECT(weft_notify_wait(&notify) == 0);
	order[told++] = number;
	return 0;
}

static int64_t notify_nobody(void *arg)
{
	(void)arg;
	notify_begin();
	expect_none_pending();
	weft_notify_one(&notify);
	EXPECT(weft_notify_wait(&notify) == 0);
	expect_none_pending();
	for (int i = 0; i < 3; i++)
		weft_notify_one(&notify);
	EXPECT(weft_notify_wait(&notify) == 0);
	expect_none_pending();
	weft_notify_all(&notify);
	expect_none_pending();
	/* notify_all() does not take away a pending notification either. */
	weft_notify_one(&notify);
	weft_notify_all(&notify);
	EXPECT(weft_notify_wait(&notify) == 0);
	expect_none_pending();
	return 0;
}

START_TEST(notification_of_nobody_is_for_the_next_and_counts_once)
{
	(void)run_main(_i, notify_nobody);
}
END_TEST

static int64_t notify_some(void *arg)
{
	(void)arg;
	notify_begin();
	WEFT_SUPERVISE (all) {
		start_waiters(all, wait_for_notification, TASKS);
		for (int i = 0; i < 2; i++) {
			weft_notify_one(&notify);
			EXPECT(weft_sleep(WEFT_MS(1)) == 0);
			EXPECT(told == i + 1 && order[i] == i);
		}
		/* While tasks wait, each notification lets one of them go
		 * on. */
		for (int i = 0; i < 3; i++)
			weft_notify_one(&notify);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(told == 5);
		weft_notify_one(&notify);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(told == TASKS);
		expect_none_pending();
	}
	return 0;
}

START_TEST(notification_lets_the_oldest_go_on)
{
	(void)run_main(_i, notify_some);
}
END_TEST

static int64_t notify_everybody(void *arg)
{
	(void)arg;
	notify_begin();
	WEFT_SUPERVISE (all) {
		start_waiters(all, wait_for_notification, TASKS);
		weft_notify_all(&notify);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(told == TASKS);
		expect_none_pending();
	}
	return 0;
}

START_TEST(notification_of_all_is_for_nobody_to_come)
{
	(void)run_main(_i, notify_everybody);
}
END_TEST

/* A piece is stored before the notification, and is looked for after it. */
static unsigned there;

static int64_t leave_pieces(void *arg)
{
	(void)arg;
	for (int i = 0; i < PIECES; i++) {
		there++;
		weft_notify_one(&notify);
		if (fake_random(2))
			dwell();
	}
	return 0;
}

static int64_t collect_pieces(void *arg)
{
	unsigned collected = 0;

	(void)arg;
	notify_begin();
	there = 0;
	WEFT_SUPERVISE (all) {
		for (int i = 0; i < MAKERS; i++)
			EXPECT(weft_go(all, leave_pieces, NULL, 0) == 0);
		while (collected < PIECES * MAKERS) {
			EXPECT(weft_notify_wait(&notify) == 0);
			collected += there;
			there = 0;
			if (fake_random(2))
				dwell();
		}
	}
	return 0;
}

START_TEST(who_looks_after_each_notification_misses_nothing)
{
	(void)run_main(_i, collect_pieces);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static TCase *cond_tests(void)
{
	TCase *tc = tcase_create("cond");

	ADD(tc, no_signal_is_lost_between_unlock_and_wait);
	ADD(tc, signal_tells_the_one_that_has_waited_longest);
	ADD(tc, several_signals_tell_as_many);
	ADD(tc, broadcast_tells_all_that_wait_and_nobody_to_come);
	ADD(tc, mutex_is_held_after_a_wait_that_failed);
	return tc;
}

static TCase *event_tests(void)
{
	TCase *tc = tcase_create("event");

	ADD(tc, event_lets_all_go_on_until_it_is_cleared);
	ADD(tc, events_pass_a_turn_to_and_fro);
	ADD(tc, thread_wakes_a_task);
	return tc;
}

static TCase *notify_tests(void)
{
	TCase *tc = tcase_create("notify");

	ADD(tc, notification_of_nobody_is_for_the_next_and_counts_once);
	ADD(tc, notification_lets_the_oldest_go_on);
	ADD(tc, notification_of_all_is_for_nobody_to_come);
	ADD(tc, who_looks_after_each_notification_misses_nothing);
	return tc;
}

static Suite *flags_suite(void)
{
	Suite *suite = suite_create("sync/flags");

	suite_add_tcase(suite, cond_tests());
	suite_add_tcase(suite, event_tests());
	suite_add_tcase(suite, notify_tests());
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { flags_suite };

	return run_suites(make, 1);
}
