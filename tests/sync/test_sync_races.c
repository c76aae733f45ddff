/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/races: a thread lets a task go on at the very moment at which the
 * task is cancelled, or at which its runtime ends.
 *
 * A grant is taken once, or stays with the object.
 *
 * With WEFT_TEST_LONG in the environment there are more rounds.
 */
#include "tests/support/sync_threads.h"

/* The thread and the task advance step by step. */
static weft__atomic(uint32_t) step;

static void step_to(uint32_t number)
{
	weft__store(&step, number, release);
}

static void await_step(uint32_t number)
{
	for (unsigned looks = 0; weft__load(&step, acquire) != number; looks++)
		if (looks % 256 == 255)
			sched_yield();
}

/*
 * The delay of one side, in turns of an empty loop; positive delays the thread.
 * The side that came first is delayed longer the next time, and the more so the
 * more often in a row it was first.  So each side is first now and then, unless
 * one of them has no processor.
 */
static struct {
	weft__atomic(int64_t) turns;
	unsigned streak;
	bool was_ahead;
} lead;

static void lead_adjust(bool ahead)
{
	enum { SHIFT_MAX = 8, TURNS_MAX = 1 << 14 };
	/* relaxed: read and written between two steps. */
	int64_t turns = weft__load(&lead.turns, relaxed);

	lead.streak = ahead == lead.was_ahead ? lead.streak + 1 : 0;
	lead.was_ahead = ahead;
	turns += (ahead ? 1 : -1) *
		 ((int64_t)4
		  << (lead.streak < SHIFT_MAX ? lead.streak : SHIFT_MAX));
	if (turns > -TURNS_MAX && turns < TURNS_MAX)
		weft__store(&lead.turns, turns, relaxed);
}

static void linger(int64_t turns)
{
	for (; turns > 0; turns--)
		__asm__ volatile("" ::: "memory");
}

/* ---- A task waits, and a thread grants --------------------------------- */

static struct weft_mutex mutex;
static struct weft_rwlock rwlock;
static struct weft_sem sem;
static struct weft_cond cond;
static struct weft_notify notify;
static struct weft_barrier barrier;
static struct weft_wait_group count;

static void nothing(void)
{
}

static void mutex_close(void)
{
	EXPECT(weft_mutex_lock(&mutex) == 0);
}

static int mutex_wait(void)
{
	int r = weft_mutex_lock(&mutex);

	if (r == 0)
		weft_mutex_unlock(&mutex);
	return r;
}

static void mutex_open(void)
{
	weft_mutex_unlock(&mutex);
}

static bool mutex_is_whole(bool got)
{
	(void)got;
	if (weft_mutex_try_lock(&mutex) < 0)
		return false;
	weft_mutex_unlock(&mutex);
	return true;
}

static void rwlock_close(void)
{
	EXPECT(weft_rwlock_write(&rwlock) == 0);
}

static int rwlock_wait(void)
{
	int r = weft_rwlock_read(&rwlock);

	if (r == 0)
		weft_rwlock_unlock(&rwlock);
	return r;
}

static void rwlock_open(void)
{
	weft_rwlock_unlock(&rwlock);
}

static bool rwlock_is_whole(bool got)
{
	(void)got;
	if (weft_rwlock_try_write(&rwlock) < 0)
		return false;
	weft_rwlock_unlock(&rwlock);
	return true;
}

static int sem_wait_for_2(void)
{
	return weft_sem_acquire(&sem, 2);
}

static void sem_open(void)
{
	weft_sem_release(&sem, 2);
}

/* Also takes the permits that the task has not taken. */
static bool sem_is_whole(bool got)
{
	return weft_sem_count(&sem) == (got ? 0 : 2) &&
	       weft_sem_try_acquire(&sem, 2) == (got ? -EAGAIN : 0);
}

static int cond_wait(void)
{
	int r = weft_mutex_lock(&mutex);

	if (r < 0)
		return r;
	r = weft_cond_wait(&cond, &mutex);
	weft_mutex_unlock(&mutex);
	return r;
}

static void cond_open(void)
{
	weft_cond_signal(&cond);
}

static int notify_wait(void)
{
	return weft_notify_wait(&notify);
}

static void notify_open(void)
{
	weft_notify_one(&notify);
}

static bool notify_is_whole(bool got)
{
	int r = -ETIMEDOUT;

	WEFT_WITHIN (got ? WEFT_US(1) : WEFT_SEC(10))
		r = weft_notify_wait(&notify);
	return r == (got ? -ETIMEDOUT : 0);
}

/* A barrier of two.  If the task was cancelled, the thread waits until main
 * comes. */
static int barrier_wait(void)
{
	return weft_barrier_wait(&barrier);
}

static weft__atomic(uint32_t) lasts;

static void barrier_open(void)
{
	/* relaxed: read when all have ended. */
	weft__add(&lasts, (uint32_t)weft_barrier_wait(&barrier), relaxed);
}

static bool barrier_is_whole(bool got)
{
	if (!got)
		barrier_open();
	return true;
}

static void count_close(void)
{
	weft_wait_group_add(&count, 1);
}

static int count_wait(void)
{
	return weft_wait_group_wait(&count);
}

static void count_open(void)
{
	weft_wait_group_done(&count);
}

static bool any_is_whole(bool got)
{
	(void)got;
	return true;
}

static const struct pair {
	const char *name;
	void (*close)(void); /* by the thread */
	int (*wait)(void);   /* by the task */
	void (*open)(void);  /* by the thread */
	bool (*is_whole)(bool got);
	bool opens_late; /* open() may wait for main's is_whole() */
} pairs[] = {
	{ "mutex", mutex_close, mutex_wait, mutex_open, mutex_is_whole, false },
	{ "rwlock", rwlock_close, rwlock_wait, rwlock_open, rwlock_is_whole,
	  false },
	{ "sem", nothing, sem_wait_for_2, sem_open, sem_is_whole, false },
	{ "cond", nothing, cond_wait, cond_open, mutex_is_whole, false },
	{ "notify", nothing, notify_wait, notify_open, notify_is_whole, false },
	{ "barrier", nothing, barrier_wait, barrier_open, barrier_is_whole,
	  true },
	{ "count", count_close, count_wait, count_open, any_is_whole, false },
};

enum { PAIRS = sizeof(pairs) / sizeof(pairs[0]) };

/* ---- Cancelled --------------------------------------------------------- */

static const struct pair *pair;
static uint32_t rounds_left;

/* Each round has four steps: closed, task waits, opened, checked. */
static void *close_and_open(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < rounds_left; i++) {
		pair->close();
		step_to(4 * i + 1);
		await_step(4 * i + 2);
		linger(weft__load(&lead.turns, relaxed));
		pair->open();
		step_to(4 * i + 3);
		await_step(4 * i + 4);
	}
	return NULL;
}

static int64_t wait_once(void *arg)
{
	(void)arg;
	return pair->wait();
}

static int64_t cancel_one(void)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	int64_t r = -EPROTO;

	opts.ret_task = &task;
	WEFT_SUPERVISE (all) {
		EXPECT(weft_go_opts(all, wait_once, NULL, 0, &opts) == 0);
		EXPECT(weft_yield() == 0);
		step_to(weft__load(&step, relaxed) + 1);
		linger(-weft__load(&lead.turns, relaxed));
		(void)weft_cancel(task);
		EXPECT(weft_join(task, &r) == 0);
	}
	EXPECT(r >= 0 || r == -ECANCELED);
	return r;
}

static int64_t cancel_each(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < rounds_left; i++) {
		int64_t r;

		await_step(4 * i + 1);
		r = cancel_one();
		lead_adjust(r >= 0);
		if (!pair->opens_late)
			await_step(4 * i + 3);
		EXPECT(pair->is_whole(r >= 0));
		await_step(4 * i + 3);
		step_to(4 * i + 4);
	}
	return 0;
}

START_TEST(cancelled_in_the_moment_nothing_is_lost)
{
	pthread_t thread;

	pair = &pairs[_i];
	rounds_left = rounds(15000);
	weft__store(&lasts, 0u, relaxed);
	barrier = (struct weft_barrier)WEFT_BARRIER_INIT(2);
	weft__store(&step, 0u, relaxed);
	ck_assert_int_eq(pthread_create(&thread, NULL, close_and_open, NULL),
			 0);
	io_run(cancel_each, NULL, 1);
	pthread_join(thread, NULL);
	if (pair->opens_late)
		/* Each round has one last one. */
		ck_assert_uint_eq(weft__load(&lasts, relaxed), rounds_left);
}
END_TEST

/* ---- The runtime ends -------------------------------------------------- */

static struct weft_event event;

static void *set_and_go(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < rounds_left; i++) {
		await_step(2 * i + 1);
		linger(i % 64);
		weft_event_set(&event);
		step_to(2 * i + 2);
	}
	return NULL;
}

/* Returns as soon as it can.  Its runtime ends with it, while the thread may
 * still be inside the wake. */
static int64_t wait_and_end(void *arg)
{
	step_to(*(uint32_t *)arg);
	return weft_event_wait(&event);
}

START_TEST(runtime_ends_when_its_last_waker_has_gone)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	pthread_t thread;

	opts.workers = _i ? 2 : 1;
	rounds_left = rounds(1000);
	weft__store(&step, 0u, relaxed);
	ck_assert_int_eq(pthread_create(&thread, NULL, set_and_go, NULL), 0);
	for (uint32_t i = 0; i < rounds_left; i++) {
		uint32_t first = 2 * i + 1;

		event = (struct weft_event)WEFT_EVENT_INIT;
		EXPECT(weft_run(wait_and_end, &first, &opts) == 0);
		await_step(2 * i + 2);
	}
	pthread_join(thread, NULL);
}
END_TEST

static Suite *races_suite(void)
{
	Suite *suite = suite_create("sync/races");
	TCase *tc = tcase_create("moment");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, cancelled_in_the_moment_nothing_is_lost, 0,
			    PAIRS);
	suite_add_tcase(suite, tc);
	tc = tcase_create("end");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, runtime_ends_when_its_last_waker_has_gone, 0,
			    2);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return io_tests_run(races_suite());
}
