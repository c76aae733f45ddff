/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/locks: which task holds a mutex or permits of a semaphore, and in
 * what order tasks get them.  Every test runs over seeds and numbers of
 * workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <weft/weft.h>

#include "tests/support/sync_scene.h"

/*
 * Mutexes.
 */

enum { TASKS = 8, ROUNDS = 20 };

static struct weft_mutex mutex;
static unsigned inside, entries;

static int64_t enter_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		unsigned before;

		EXPECT(weft_mutex_lock(&mutex) == 0);
		EXPECT(inside++ == 0);
		before = entries;
		dwell();
		entries = before + 1;
		EXPECT(--inside == 0);
		weft_mutex_unlock(&mutex);
		if (fake_random(2))
			dwell();
	}
	return 0;
}

static int64_t exclude(void *arg)
{
	(void)arg;
	mutex = (struct weft_mutex)WEFT_MUTEX_INIT;
	inside = entries = 0;
	WEFT_SUPERVISE (all)
		for (int i = 0; i < TASKS; i++)
			EXPECT(weft_go(all, enter_often, NULL, 0) == 0);
	EXPECT(entries == TASKS * ROUNDS);
	EXPECT(weft_mutex_try_lock(&mutex) == 0);
	weft_mutex_unlock(&mutex);
	return 0;
}

START_TEST(mutex_excludes_across_suspensions)
{
	(void)run_main(_i, exclude);
}
END_TEST

static int served;

/* The holder suspends, so the unlock hands the mutex to the next waiter. */
static int64_t come_in_turn(void *arg)
{
	int number = *(int *)arg;

	EXPECT(weft_sleep(WEFT_MS(number)) == 0);
	EXPECT(weft_mutex_lock(&mutex) == 0);
	EXPECT(++served == number);
	EXPECT(weft_sleep(WEFT_US(10)) == 0);
	weft_mutex_unlock(&mutex);
	if (number < TASKS)
		EXPECT(weft_mutex_try_lock(&mutex) == -EBUSY);
	return 0;
}

static int64_t hand_over(void *arg)
{
	(void)arg;
	mutex = (struct weft_mutex)WEFT_MUTEX_INIT;
	served = 0;
	WEFT_SUPERVISE (all) {
		EXPECT(weft_mutex_lock(&mutex) == 0);
		for (int i = 1; i <= TASKS; i++)
			EXPECT(WEFT_GO(all, come_in_turn, i) == 0);
		EXPECT(weft_sleep(WEFT_MS(TASKS + 1)) == 0);
		weft_mutex_unlock(&mutex);
		EXPECT(weft_mutex_try_lock(&mutex) == -EBUSY);
		EXPECT(weft_mutex_lock(&mutex) == 0);
		EXPECT(served == TASKS);
		weft_mutex_unlock(&mutex);
	}
	return 0;
}

START_TEST(mutex_held_across_suspensions_is_handed_over_in_order)
{
	(void)run_main(_i, hand_over);
}
END_TEST

/* How many tasks came to the mutex, and which had it, in order. */
static int came, had[4];

static int64_t lock_once(void *arg)
{
	int number = *(int *)arg;

	came++;
	EXPECT(weft_mutex_lock(&mutex) == 0);
	had[served++] = number;
	weft_mutex_unlock(&mutex);
	return 0;
}

static void queue_up(struct weft_scope *scope, int number)
{
	EXPECT(WEFT_GO(scope, lock_once, number) == 0);
	compute_until(came == number);
}

static int64_t pass_over(void *arg)
{
	(void)arg;
	mutex = (struct weft_mutex)WEFT_MUTEX_INIT;
	served = came = 0;
	WEFT_SUPERVISE (all) {
		EXPECT(weft_mutex_lock(&mutex) == 0);
		queue_up(all, 1);
		queue_up(all, 2);
		weft_mutex_unlock(&mutex);
		/* The holder did not suspend: the first task to come gets the
		 * mutex. */
		EXPECT(weft_mutex_try_lock(&mutex) == 0);
		/* The first waiter fails to get it, and is before the second
		 * one again. */
		fake_compute(WEFT_MS(10));
		EXPECT(served == 0);
		weft_mutex_unlock(&mutex);
		/* Now the first waiter owns the mutex, though it does not run
		 * yet. */
		EXPECT(weft_mutex_try_lock(&mutex) == -EBUSY);
	}
	EXPECT(served == 2 && had[0] == 1 && had[1] == 2);
	return 0;
}

START_TEST(mutex_passes_a_waiter_over_once_at_most)
{
	(void)run_with_peers(_i, pass_over);
}
END_TEST

/* As above, but the first waiter gives up after it was passed over. */
static int64_t lock_within(void *arg)
{
	(void)arg;
	came++;
	WEFT_WITHIN (WEFT_MS(15))
		EXPECT(weft_mutex_lock(&mutex) == -ETIMEDOUT);
	return 0;
}

static int64_t pass_over_and_out(void *arg)
{
	(void)arg;
	mutex = (struct weft_mutex)WEFT_MUTEX_INIT;
	served = came = 0;
	WEFT_SUPERVISE (all) {
		EXPECT(weft_mutex_lock(&mutex) == 0);
		EXPECT(weft_go(all, lock_within, NULL, 0) == 0);
		compute_until(came == 1);
		queue_up(all, 2);
		weft_mutex_unlock(&mutex);
		EXPECT(weft_mutex_lock(&mutex) == 0);
		fake_compute(WEFT_MS(30));
		weft_mutex_unlock(&mutex);
		EXPECT(weft_mutex_lock(&mutex) == 0);
		weft_mutex_unlock(&mutex);
	}
	EXPECT(served == 1 && had[0] == 2);
	return 0;
}

START_TEST(mutex_is_not_lost_on_one_that_was_passed_over)
{
	(void)run_with_peers(_i, pass_over_and_out);
}
END_TEST

static void lock_outside(void *arg)
{
	bool *done = arg;

	EXPECT(weft_mutex_try_lock(&mutex) == -EBUSY);
	*done = true;
}

static int64_t try_mutex(void *arg)
{
	bool done = false;

	(void)arg;
	mutex = (struct weft_mutex)WEFT_MUTEX_INIT;
	EXPECT(weft_mutex_try_lock(&mutex) == 0);
	EXPECT(weft_mutex_try_lock(&mutex) == -EBUSY);
	fake_foreign(0, lock_outside, &done);
	while (!done)
		EXPECT(weft_yield() == 0);
	weft_mutex_unlock(&mutex);
	EXPECT(weft_mutex_lock(&mutex) == 0);
	EXPECT(weft_mutex_try_lock(&mutex) == -EBUSY);
	weft_mutex_unlock(&mutex);
	return 0;
}

START_TEST(mutex_is_tried_without_waiting)
{
	(void)run_main(_i, try_mutex);
}
END_TEST

/*
 * Semaphores.
 */

enum { PERMITS = 5 };

static struct weft_sem sem;
static unsigned taken;

static int64_t take_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t n = (uint32_t)fake_random(PERMITS + 1);

		EXPECT(weft_sem_acquire(&sem, n) == 0);
		taken += n;
		EXPECT(taken <= PERMITS);
		dwell();
		taken -= n;
		weft_sem_release(&sem, n);
		if (fake_random(2))
			dwell();
	}
	return 0;
}

static int64_t limit(void *arg)
{
	(void)arg;
	sem = (struct weft_sem)WEFT_SEM_INIT(PERMITS);
	taken = 0;
	WEFT_SUPERVISE (all)
		for (int i = 0; i < TASKS; i++)
			EXPECT(weft_go(all, take_often, NULL, 0) == 0);
	EXPECT(weft_sem_count(&sem) == PERMITS);
	return 0;
}

START_TEST(no_more_permits_are_taken_than_there_are)
{
	(void)run_main(_i, limit);
}
END_TEST

static const uint32_t wants[] = { 3, 1, 2, 5, 1, 1 };

enum { WANTS = sizeof(wants) / sizeof(wants[0]) };

static int64_t take_in_turn(void *arg)
{
	int number = *(int *)arg;

	EXPECT(weft_sleep(WEFT_MS(1 + number)) == 0);
	EXPECT(weft_sem_acquire(&sem, wants[number]) == 0);
	served++;
	return 0;
}

/* Releases n permits; after that, `serves` tasks must have been served. */
static void release_and_see(uint32_t n, int serves)
{
	weft_sem_release(&sem, n);
	EXPECT(weft_sem_try_acquire(&sem, 1) == -EAGAIN);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	EXPECT(served == serves);
}

static int64_t grant_in_order(void *arg)
{
	(void)arg;
	sem = (struct weft_sem)WEFT_SEM_INIT(0);
	served = 0;
	WEFT_SUPERVISE (all) {
		for (int i = 0; i < WANTS; i++)
			EXPECT(WEFT_GO(all, take_in_turn, i) == 0);
		EXPECT(weft_sleep(WEFT_MS(WANTS + 2)) == 0);
		/* The tasks behind the first one need only 2 permits. */
		release_and_see(2, 0);
		EXPECT(weft_sem_count(&sem) == 2);
		release_and_see(1, 1);
		release_and_see(3, 3);
		EXPECT(weft_sem_count(&sem) == 0);
		release_and_see(6, 5);
		EXPECT(weft_sem_count(&sem) == 0);
		weft_sem_release(&sem, 3);
	}
	EXPECT(served == WANTS);
	EXPECT(weft_sem_count(&sem) == 2);
	return 0;
}

START_TEST(permits_are_granted_in_order_whoever_wants_fewer)
{
	(void)run_main(_i, grant_in_order);
}
END_TEST

/* Arrives at 1 ms; at 5 ms it gives up or is cancelled. */
static int64_t take_in_vain(void *arg)
{
	bool cancelled = *(bool *)arg;
	int wanted = cancelled ? -ECANCELED : -ETIMEDOUT;

	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	WEFT_WITHIN (cancelled ? WEFT_SEC(1) : WEFT_MS(4))
		EXPECT(weft_sem_acquire(&sem, 10) == wanted);
	return 0;
}

static weft_nsec begun_ns;

static int64_t take_one_at_5_ms(void *arg)
{
	(void)arg;
	EXPECT(weft_sleep(WEFT_MS(2)) == 0);
	EXPECT(weft_sem_try_acquire(&sem, 1) == -EAGAIN);
	EXPECT(weft_sem_acquire(&sem, 1) == 0);
	EXPECT(is_about(weft_now(), begun_ns + WEFT_MS(5)));
	served++;
	return 0;
}

static void give_up_before_others(bool cancelled)
{
	sem = (struct weft_sem)WEFT_SEM_INIT(4);
	served = 0;
	begun_ns = weft_now();
	WEFT_SUPERVISE (all) {
		struct weft_task greedy =
			start(all, take_in_vain, &cancelled, sizeof(cancelled));

		for (int i = 0; i < 3; i++)
			EXPECT(weft_go(all, take_one_at_5_ms, NULL, 0) == 0);
		EXPECT(weft_sleep_until(begun_ns + WEFT_MS(5)) == 0);
		if (cancelled)
			EXPECT(weft_cancel(greedy) == 0);
	}
	EXPECT(served == 3);
	EXPECT(weft_sem_count(&sem) == 1);
}

static int64_t give_up_before_others_twice(void *arg)
{
	(void)arg;
	give_up_before_others(false);
	give_up_before_others(true);
	return 0;
}

START_TEST(who_wants_many_and_gives_up_lets_others_go_on_at_once)
{
	(void)run_main(_i, give_up_before_others_twice);
}
END_TEST

static int64_t try_sem(void *arg)
{
	(void)arg;
	sem = (struct weft_sem)WEFT_SEM_INIT(3);
	EXPECT(weft_sem_count(&sem) == 3);
	EXPECT(weft_sem_try_acquire(&sem, 4) == -EAGAIN);
	EXPECT(weft_sem_try_acquire(&sem, 2) == 0);
	EXPECT(weft_sem_count(&sem) == 1);
	EXPECT(weft_sem_try_acquire(&sem, 2) == -EAGAIN);
	EXPECT(weft_sem_acquire(&sem, 1) == 0);
	EXPECT(weft_sem_try_acquire(&sem, 0) == 0);
	EXPECT(weft_sem_try_acquire(&sem, 1) == -EAGAIN);
	weft_sem_release(&sem, 7);
	EXPECT(weft_sem_count(&sem) == 7);
	return 0;
}

START_TEST(permits_are_tried_without_waiting)
{
	(void)run_main(_i, try_sem);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static TCase *mutex_tests(void)
{
	TCase *tc = tcase_create("mutex");

	ADD(tc, mutex_excludes_across_suspensions);
	ADD(tc, mutex_held_across_suspensions_is_handed_over_in_order);
	ADD(tc, mutex_passes_a_waiter_over_once_at_most);
	ADD(tc, mutex_is_not_lost_on_one_that_was_passed_over);
	ADD(tc, mutex_is_tried_without_waiting);
	return tc;
}

static TCase *sem_tests(void)
{
	TCase *tc = tcase_create("sem");

	ADD(tc, no_more_permits_are_taken_than_there_are);
	ADD(tc, permits_are_granted_in_order_whoever_wants_fewer);
	ADD(tc, who_wants_many_and_gives_up_lets_others_go_on_at_once);
	ADD(tc, permits_are_tried_without_waiting);
	return tc;
}

static Suite *locks_suite(void)
{
	Suite *suite = suite_create("sync/locks");

	suite_add_tcase(suite, mutex_tests());
	suite_add_tcase(suite, sem_tests());
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { locks_suite };

	return run_suites(make, 1);
}
