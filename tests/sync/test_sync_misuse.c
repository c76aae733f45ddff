/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/misuse: a program that breaks a rule of the shared objects ends
 * with a message that names the rule.
 */
#include "tests/support/io_kit.h"
#include "tests/support/misuse_kit.h"

static struct weft_mutex mutex;
static struct weft_cond cond;

/* ---- Mutexes ----------------------------------------------------------- */

static int64_t unlock_free(void *arg)
{
	(void)arg;
	weft_mutex_unlock(&mutex);
	return 0;
}

static int64_t unlock_twice(void *arg)
{
	if (weft_mutex_lock(&mutex) == 0)
		weft_mutex_unlock(&mutex);
	return unlock_free(arg);
}

/* main holds the mutex, and at the end of the block waits for the other
 * task. */
static int64_t unlock_by_another(void *arg)
{
	(void)arg;
	ck_assert_int_eq(weft_mutex_lock(&mutex), 0);
	WEFT_SUPERVISE (all)
		ck_assert_int_eq(weft_go(all, unlock_free, NULL, 0), 0);
	return 0;
}

static int64_t relock(void *arg)
{
	(void)arg;
	ck_assert_int_eq(weft_mutex_lock(&mutex), 0);
	return weft_mutex_lock(&mutex);
}

/* The task got the mutex by a hand-over; it did not take it itself. */
static int64_t relock_what_was_handed_over(void *arg)
{
	ck_assert_int_eq(weft_mutex_lock(&mutex), 0);
	WEFT_SUPERVISE (all) {
		ck_assert_int_eq(weft_go(all, relock, NULL, 0), 0);
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
		weft_mutex_unlock(&mutex);
	}
	return arg != NULL;
}

static int64_t wait_without_mutex(void *arg)
{
	(void)arg;
	return weft_cond_wait(&cond, &mutex);
}

/* ---- The others -------------------------------------------------------- */

static int64_t unlock_free_rwlock(void *arg)
{
	static struct weft_rwlock rwlock;

	(void)arg;
	ck_assert_int_eq(weft_rwlock_read(&rwlock), 0);
	weft_rwlock_unlock(&rwlock);
	weft_rwlock_unlock(&rwlock);
	return 0;
}

static int64_t release_too_many(void *arg)
{
	static struct weft_sem sem = WEFT_SEM_INIT(UINT64_MAX - 1);

	(void)arg;
	weft_sem_release(&sem, 1);
	weft_sem_release(&sem, 1);
	return 0;
}

static int64_t do_more_than_counted(void *arg)
{
	static struct weft_wait_group count = WEFT_WAIT_GROUP_INIT(1);

	(void)arg;
	weft_wait_group_done(&count);
	weft_wait_group_done(&count);
	return 0;
}

static int64_t wait_at_barrier_for_no_parties(void *arg)
{
	static struct weft_barrier blank;

	(void)arg;
	return weft_barrier_wait(&blank);
}

static int64_t receive_from_blank(void *arg)
{
	static struct weft_chan blank;
	int item;

	(void)arg;
	return weft_chan_recv(&blank, &item);
}

static int64_t send_to_blank(void *arg)
{
	static struct weft_chan blank;
	int item = 1;

	(void)arg;
	return weft_chan_try_send(&blank, &item);
}

static int64_t broadcast_by_blank(void *arg)
{
	static struct weft_broadcast blank;
	int item = 1;

	(void)arg;
	return weft_broadcast_send(&blank, &item);
}

static int64_t subscribe_to_blank(void *arg)
{
	static struct weft_broadcast blank;
	struct weft_subscriber subscriber;

	(void)arg;
	weft_subscribe(&blank, &subscriber);
	return 0;
}

static int64_t unlock_rwlock_of_another(void *arg)
{
	static struct weft_rwlock rwlock;
	static int once;

	(void)arg;
	if (once++) {
		weft_rwlock_unlock(&rwlock);
		return 0;
	}
	ck_assert_int_eq(weft_rwlock_write(&rwlock), 0);
	WEFT_SUPERVISE(scope)
		ck_assert_int_eq(weft_go(scope, unlock_rwlock_of_another, NULL,
					 0),
				 0);
	return 0;
}

static int64_t set_blank_watch(void *arg)
{
	static struct weft_watch blank;
	int item = 1;

	(void)arg;
	return weft_watch_set(&blank, &item);
}

static struct weft_once once;

static int64_t ask_for_itself(void *arg)
{
	return weft_once_run(&once, ask_for_itself, arg);
}

static int64_t receive_without_subscribing(void *arg)
{
	struct weft_subscriber subscriber;
	int item;

	(void)arg;
	memset(&subscriber, 0, sizeof(subscriber));
	return weft_broadcast_try_recv(&subscriber, &item);
}

static int64_t send_twice(void *arg)
{
	struct weft_oneshot *oneshot;
	int item = 1;

	(void)arg;
	ck_assert_int_eq(weft_oneshot_new(sizeof(item), &oneshot), 0);
	ck_assert_int_eq(weft_oneshot_send(oneshot, &item), 0);
	return weft_oneshot_send(oneshot, &item);
}

static int64_t drop_what_was_sent(void *arg)
{
	struct weft_oneshot *oneshot;
	int item = 1;

	(void)arg;
	ck_assert_int_eq(weft_oneshot_new(sizeof(item), &oneshot), 0);
	ck_assert_int_eq(weft_oneshot_send(oneshot, &item), 0);
	weft_oneshot_drop(oneshot);
	return 0;
}

static const struct misuse in_tasks[] = {
	{ unlock_free, "a mutex was unlocked by one that does not hold it" },
	{ unlock_twice, "a mutex was unlocked by one that does not hold it" },
	{ unlock_by_another,
	  "a mutex was unlocked by one that does not hold it" },
	{ relock, "a task locked a mutex that it holds" },
	{ relock_what_was_handed_over, "a task locked a mutex that it holds" },
	{ wait_without_mutex,
	  "a mutex was unlocked by one that does not hold it" },
	{ unlock_free_rwlock,
	  "a reader-writer lock was unlocked that no task holds" },
	{ release_too_many, "a semaphore has too many permits" },
	{ do_more_than_counted, "more was done than had been counted" },
	{ wait_at_barrier_for_no_parties, "a barrier for no parties" },
	{ receive_from_blank, "a channel was used that is not initialised" },
	{ send_to_blank, "a channel was used that is not initialised" },
	{ broadcast_by_blank, "a broadcast was used that is not initialised" },
	{ subscribe_to_blank, "a broadcast was used that is not initialised" },
	{ unlock_rwlock_of_another,
	  "a reader-writer lock was unlocked by one that does not hold it" },
	{ set_blank_watch, "a watch was used that is not initialised" },
	{ receive_without_subscribing,
	  "a subscriber was used that subscribes to nothing" },
	{ send_twice, "weft_oneshot_send, weft_oneshot_drop: a second time" },
	{ drop_what_was_sent,
	  "weft_oneshot_send, weft_oneshot_drop: a second time" },
	{ ask_for_itself, "a function to be run once asks for itself" },
};

enum { IN_TASKS = sizeof(in_tasks) / sizeof(in_tasks[0]) };

START_TEST(misuse_is_told_in_a_sentence)
{
	struct misuse misuse = in_tasks[_i];

	expect_sentence(run_in_task, &misuse, misuse.sentence);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sync/misuse");
	TCase *tc = tcase_create("sentences");

	tcase_add_loop_test(tc, misuse_is_told_in_a_sentence, 0, IN_TASKS);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
