/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/storm: many tasks use one object for a while.
 *
 * Some give up at random, by deadlines and cancellations, others do not.  These
 * claims must hold: no two tasks hold the same thing, tasks that do not give up
 * are served in the end, and after that all is free again.  A grant that is
 * lost on a task that gave up leaves another one waiting: that is a deadlock,
 * which is reported.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <weft/weft.h>

#include "tests/support/sync_scene.h"

enum { TASKS = 10, ROUNDS = 30, PERMITS = 4 };

static struct weft_mutex mutex;
static struct weft_rwlock rwlock;
static struct weft_sem sem;
static struct weft_cond cond;
static struct weft_notify notify;
static unsigned writers, readers, taken, tokens;

/* Holds what it got for a moment, without being interrupted. */
static void hold(void)
{
	WEFT_SHIELD
		dwell();
}

static int visit_mutex(void)
{
	int r = weft_mutex_lock(&mutex);

	if (r < 0)
		return r;
	EXPECT(writers++ == 0);
	hold();
	EXPECT(--writers == 0);
	weft_mutex_unlock(&mutex);
	return 0;
}

static int visit_to_read(void)
{
	int r = weft_rwlock_read(&rwlock);

	if (r < 0)
		return r;
	readers++;
	EXPECT(writers == 0);
	hold();
	EXPECT(writers == 0);
	readers--;
	weft_rwlock_unlock(&rwlock);
	return 0;
}

static int visit_to_write(void)
{
	int r = weft_rwlock_write(&rwlock);

	if (r < 0)
		return r;
	EXPECT(writers++ == 0 && readers == 0);
	hold();
	EXPECT(--writers == 0 && readers == 0);
	weft_rwlock_unlock(&rwlock);
	return 0;
}

static int visit_rwlock(void)
{
	return fake_random(3) ? visit_to_read() : visit_to_write();
}

static int visit_sem(void)
{
	uint32_t n = 1 + (uint32_t)fake_random(PERMITS);
	int r = weft_sem_acquire(&sem, n);

	if (r < 0)
		return r;
	taken += n;
	EXPECT(taken <= PERMITS);
	hold();
	taken -= n;
	weft_sem_release(&sem, n);
	return 0;
}

/* There are tokens, and each is signalled to one waiter.  A waiter that got the
 * signal must look, cancelled or not: so a wait that failed must not have
 * consumed a signal. */
static int visit_cond(void)
{
	int r = weft_mutex_lock(&mutex);

	if (r < 0)
		return r;
	while (r == 0 && tokens == 0)
		r = weft_cond_wait(&cond, &mutex);
	if (r == 0)
		tokens--;
	weft_mutex_unlock(&mutex);
	if (r < 0)
		return r;
	hold();
	WEFT_SHIELD
		EXPECT(weft_mutex_lock(&mutex) == 0);
	tokens++;
	weft_cond_signal(&cond);
	weft_mutex_unlock(&mutex);
	return 0;
}

/* One notification passes from task to task. */
static int visit_notify(void)
{
	int r = weft_notify_wait(&notify);

	if (r < 0)
		return r;
	EXPECT(writers++ == 0);
	hold();
	EXPECT(--writers == 0);
	weft_notify_one(&notify);
	return 0;
}

static int (*const visits[])(void) = {
	visit_mutex, visit_rwlock, visit_sem, visit_cond, visit_notify,
};

enum { VISITS = sizeof(visits) / sizeof(visits[0]) };

static int (*visit)(void);
static unsigned served, gave_up;

static int64_t visit_often(void *arg)
{
	int r = 0;

	(void)arg;
	for (int i = 0; i < ROUNDS && r != -ECANCELED; i++) {
		if (fake_random(2))
			r = visit();
		else
			WEFT_WITHIN (1 + fake_random(WEFT_US(300)))
				r = visit();
		EXPECT(r == 0 || r == -ECANCELED || r == -ETIMEDOUT);
		*(r == 0 ? &served : &gave_up) += 1;
		if (fake_random(2))
			hold();
	}
	return 0;
}

static void expect_all_free(void)
{
	EXPECT(weft_mutex_try_lock(&mutex) == 0);
	EXPECT(weft_rwlock_try_write(&rwlock) == 0);
	EXPECT(weft_sem_count(&sem) == PERMITS);
	EXPECT(weft_sem_try_acquire(&sem, PERMITS) == 0);
	EXPECT(tokens == 2);
	EXPECT(weft_notify_wait(&notify) == 0);
	WEFT_WITHIN (WEFT_MS(1))
		EXPECT(weft_notify_wait(&notify) == -ETIMEDOUT);
}

static void begin(void)
{
	mutex = (struct weft_mutex)WEFT_MUTEX_INIT;
	rwlock = (struct weft_rwlock)WEFT_RWLOCK_INIT;
	sem = (struct weft_sem)WEFT_SEM_INIT(PERMITS);
	cond = (struct weft_cond)WEFT_COND_INIT;
	notify = (struct weft_notify)WEFT_NOTIFY_INIT;
	weft_notify_one(&notify);
	writers = readers = taken = served = gave_up = 0;
	tokens = 2;
}

static int64_t visit_one_object(void *arg)
{
	struct weft_task tasks[TASKS];

	(void)arg;
	begin();
	WEFT_SUPERVISE (all) {
		for (int i = 0; i < TASKS; i++)
			tasks[i] = start(all, visit_often, NULL, 0);
		/* Cancels half of the tasks. */
		for (int i = 0; i < TASKS / 2; i++) {
			int error;

			EXPECT(weft_sleep(fake_random(WEFT_US(400))) == 0);
			error = weft_cancel(tasks[2 * i]);
			EXPECT(error == 0 || error == -ESRCH);
		}
	}
	EXPECT(served > 0 && gave_up > 0);
	expect_all_free();
	return 0;
}

START_TEST(nothing_is_lost_on_those_that_give_up)
{
	visit = visits[_i % VISITS];
	(void)run_main(_i / VISITS, visit_one_object);
}
END_TEST

static Suite *storm_suite(void)
{
	Suite *suite = suite_create("sync/storm");
	TCase *tc = tcase_create("storm");

	tcase_add_loop_test(tc, nothing_is_lost_on_those_that_give_up, 0,
			    VISITS * seeds(60));
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { storm_suite };

	return run_suites(make, 1);
}
