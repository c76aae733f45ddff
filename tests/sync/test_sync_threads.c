/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/threads: tasks of several runtimes and plain threads share locks,
 * permits, conditions and notifications.
 *
 * The sums under the locks are in plain memory: a wrong sum, or
 * ThreadSanitizer, shows that two were inside at a time.  A grant that gets
 * lost leaves a waiter, and the test times out.
 *
 * With WEFT_TEST_LONG in the environment there are more rounds.
 */
#include "tests/support/sync_threads.h"

/* ---- Many tasks and threads --------------------------------------------- */

enum { RUNTIMES_MAX = 2, TASKS_MAX = 8, THREADS_MAX = 4 };

static const struct crowd {
	unsigned runtimes, workers, tasks, threads;
} crowds[] = {
	{ 1, 2, 8, 0 },
	{ 1, 4, 6, 2 },
	{ 2, 1, 4, 2 },
	{ 0, 0, 0, 4 },
};

enum { CROWDS = sizeof(crowds) / sizeof(crowds[0]) };

static unsigned crowd_count(const struct crowd *crowd)
{
	return crowd->runtimes * crowd->tasks + crowd->threads;
}

static weft_fn visit;
static uint64_t rounds_each;
static weft__atomic(uint32_t) refs;

/* Each member gets a number. */
static int64_t be_member(void *arg)
{
	/* relaxed: the numbers only have to differ; they publish nothing. */
	uint32_t number = weft__add(&refs, 1u, relaxed);

	(void)arg;
	return visit(&number);
}

static void *be_thread(void *arg)
{
	EXPECT(be_member(arg) == 0);
	return NULL;
}

struct runtime_of_crowd {
	struct weft_runtime *runtime;
	struct weft_task tasks[TASKS_MAX];
};

static void begin_runtime(struct runtime_of_crowd *r, const struct crowd *crowd)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = crowd->workers;
	ck_assert_int_eq(weft_start(&opts, &r->runtime), 0);
	for (unsigned i = 0; i < crowd->tasks; i++) {
		struct weft_task_opts task_opts = WEFT_TASK_OPTS_INIT;

		task_opts.ret_task = &r->tasks[i];
		ck_assert_int_eq(weft_submit(r->runtime, be_member, NULL, 0,
					     &task_opts),
				 0);
	}
}

static void end_runtime(struct runtime_of_crowd *r, const struct crowd *crowd)
{
	for (unsigned i = 0; i < crowd->tasks; i++) {
		int64_t result = -1;

		ck_assert_int_eq(weft_wait(r->runtime, r->tasks[i], &result),
				 0);
		ck_assert_int_eq(result, 0);
	}
	ck_assert_int_eq(weft_stop(r->runtime), 0);
}

static void run_crowd(const struct crowd *crowd, weft_fn fn, uint64_t each)
{
	struct runtime_of_crowd runtimes[RUNTIMES_MAX];
	pthread_t threads[THREADS_MAX];

	visit = fn;
	rounds_each = each;
	weft__store(&refs, 0u, relaxed);
	for (unsigned k = 0; k < crowd->runtimes; k++)
		begin_runtime(&runtimes[k], crowd);
	for (unsigned k = 0; k < crowd->threads; k++)
		ck_assert_int_eq(
			pthread_create(&threads[k], NULL, be_thread, NULL), 0);
	for (unsigned k = 0; k < crowd->threads; k++)
		pthread_join(threads[k], NULL);
	for (unsigned k = 0; k < crowd->runtimes; k++)
		end_runtime(&runtimes[k], crowd);
}

/* A task yields; a thread calls sched_yield(). */
static void step_aside(void)
{
	if (weft_self().id)
		EXPECT(weft_yield() == 0);
	else
		sched_yield();
}

/* ---- Locks ------------------------------------------------------------- */

static struct weft_mutex mutex;
static struct weft_rwlock rwlock;
static struct weft_sem sem;
static uint64_t total, twin;
static weft__atomic(uint32_t) inside;

static int64_t add_under_mutex(void *arg)
{
	uint32_t number = *(uint32_t *)arg;

	for (uint64_t i = 0; i < rounds_each; i++) {
		uint64_t before;

		EXPECT(weft_mutex_lock(&mutex) == 0);
		before = total;
		if ((i + number) % 16 == 0)
			step_aside();
		total = before + 1;
		weft_mutex_unlock(&mutex);
	}
	return 0;
}

START_TEST(mutex_is_held_by_one)
{
	uint64_t each = rounds(20000);

	total = 0;
	run_crowd(&crowds[_i], add_under_mutex, each);
	ck_assert_uint_eq(total, crowd_count(&crowds[_i]) * each);
	ck_assert_int_eq(weft_mutex_try_lock(&mutex), 0);
	weft_mutex_unlock(&mutex);
}
END_TEST

static int64_t read_and_write(void *arg)
{
	uint32_t number = *(uint32_t *)arg;

	for (uint64_t i = 0; i < rounds_each; i++)
		if ((i + number) % 4) {
			EXPECT(weft_rwlock_read(&rwlock) == 0);
			EXPECT(total == twin);
			if ((i + number) % 16 == 1)
				step_aside();
			EXPECT(total == twin);
			weft_rwlock_unlock(&rwlock);
		} else {
			EXPECT(weft_rwlock_write(&rwlock) == 0);
			total++;
			if ((i + number) % 16 == 0)
				step_aside();
			twin++;
			weft_rwlock_unlock(&rwlock);
		}
	return 0;
}

/* The first tasks of two runtimes have the same id, which must not confuse
 * them. */
static struct weft_event held, asked;
static struct weft_once once;
static uint64_t holder_id;
static bool asks_for_mutex;

static int64_t hold(void *arg)
{
	(void)arg;
	holder_id = weft_self().id;
	EXPECT(weft_mutex_lock(&mutex) == 0);
	weft_event_set(&held);
	EXPECT(weft_event_wait(&asked) == 0);
	/* The other one usually waits by now. */
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	weft_mutex_unlock(&mutex);
	return 1;
}

static int64_t hold_once(void *arg)
{
	return weft_once_run(&once, hold, arg);
}

static int64_t ask_meanwhile(void *arg)
{
	EXPECT(weft_event_wait(&held) == 0);
	EXPECT(weft_self().id == holder_id);
	weft_event_set(&asked);
	if (asks_for_mutex) {
		EXPECT(weft_mutex_lock(&mutex) == 0);
		weft_mutex_unlock(&mutex);
	} else {
		EXPECT(weft_once_run(&once, hold, arg) == 1);
	}
	return 0;
}

static int64_t hold_or_ask(void *arg)
{
	return *(uint32_t *)arg == 0 ? hold_once(NULL) - 1 :
				       ask_meanwhile(NULL);
}

START_TEST(tasks_of_two_runtimes_are_told_apart)
{
	static const struct crowd one_each = { 2, 1, 1, 0 };

	asks_for_mutex = _i;
	held = asked = (struct weft_event)WEFT_EVENT_INIT;
	once = (struct weft_once)WEFT_ONCE_INIT;
	run_crowd(&one_each, hold_or_ask, 1);
}
END_TEST

START_TEST(rwlock_is_held_by_readers_or_a_writer)
{
	uint64_t each = rounds(20000) / 4 * 4;

	total = twin = 0;
	run_crowd(&crowds[_i], read_and_write, each);
	ck_assert_uint_eq(total, crowd_count(&crowds[_i]) * each / 4);
	ck_assert_uint_eq(total, twin);
	ck_assert_int_eq(weft_rwlock_try_write(&rwlock), 0);
	weft_rwlock_unlock(&rwlock);
}
END_TEST

enum { PERMITS = 3 };

static int64_t take_permits(void *arg)
{
	uint32_t number = *(uint32_t *)arg;

	for (uint64_t i = 0; i < rounds_each; i++) {
		uint32_t n = 1 + (uint32_t)(i + number) % PERMITS;

		EXPECT(weft_sem_acquire(&sem, n) == 0);
		/* relaxed: only their sum counts. */
		EXPECT(weft__add(&inside, n, relaxed) + n <= PERMITS);
		if ((i + number) % 16 == 0)
			step_aside();
		weft__sub(&inside, n, relaxed);
		weft_sem_release(&sem, n);
	}
	return 0;
}

START_TEST(no_more_permits_are_taken_than_there_are)
{
	sem = (struct weft_sem)WEFT_SEM_INIT(PERMITS);
	weft__store(&inside, 0u, relaxed);
	run_crowd(&crowds[_i], take_permits, rounds(20000));
	ck_assert_uint_eq(weft_sem_count(&sem), PERMITS);
}
END_TEST

/* A task gives up soon; a thread never gives up. */
static int acquire_within(uint32_t n, weft_nsec length_ns)
{
	int r = -EPROTO;

	if (!weft_self().id)
		return weft_sem_acquire(&sem, n);
	WEFT_WITHIN (length_ns)
		r = weft_sem_acquire(&sem, n);
	return r;
}

static int64_t give_up_often(void *arg)
{
	uint32_t number = *(uint32_t *)arg;

	for (uint64_t i = 0; i < rounds_each; i++) {
		uint32_t n = 1 + (uint32_t)(i + number) % PERMITS;
		int r = acquire_within(n, WEFT_US((7 * i + number) % 100));

		EXPECT(r == 0 || r == -ETIMEDOUT);
		if (r < 0)
			continue;
		/* relaxed: only their sum counts. */
		EXPECT(weft__add(&inside, n, relaxed) + n <= PERMITS);
		if (i % 2)
			step_aside();
		weft__sub(&inside, n, relaxed);
		weft_sem_release(&sem, n);
	}
	return 0;
}

START_TEST(no_permit_is_lost_on_one_that_gave_up)
{
	sem = (struct weft_sem)WEFT_SEM_INIT(PERMITS);
	weft__store(&inside, 0u, relaxed);
	run_crowd(&crowds[_i], give_up_often, rounds(5000));
	ck_assert_uint_eq(weft_sem_count(&sem), PERMITS);
}
END_TEST

/* ---- Flags ------------------------------------------------------------- */

/* Every second member makes pieces, the others use the same number of them. */
enum { SHELF = 4 };

static struct weft_cond came, went;
static uint64_t made, used;

static int64_t pass_pieces_on(void *arg)
{
	bool makes = *(uint32_t *)arg % 2;

	for (uint64_t i = 0; i < rounds_each; i++) {
		EXPECT(weft_mutex_lock(&mutex) == 0);
		while (made - used == (makes ? SHELF : 0))
			EXPECT(weft_cond_wait(makes ? &went : &came, &mutex) ==
			       0);
		*(makes ? &made : &used) += 1;
		EXPECT(made - used <= SHELF);
		weft_cond_signal(makes ? &came : &went);
		weft_mutex_unlock(&mutex);
	}
	return 0;
}

START_TEST(no_signal_is_lost)
{
	uint64_t each = rounds(10000);

	made = used = 0;
	run_crowd(&crowds[_i], pass_pieces_on, each);
	ck_assert_uint_eq(used, crowd_count(&crowds[_i]) / 2 * each);
	ck_assert_uint_eq(made, used);
}
END_TEST

/* One notification passes from member to member, together with the right to
 * change `total`. */
static struct weft_notify notify;

static int64_t pass_notification_on(void *arg)
{
	uint32_t number = *(uint32_t *)arg;

	for (uint64_t i = 0; i < rounds_each; i++) {
		EXPECT(weft_notify_wait(&notify) == 0);
		total++;
		if ((i + number) % 16 == 0)
			step_aside();
		weft_notify_one(&notify);
	}
	return 0;
}

START_TEST(notification_goes_from_hand_to_hand)
{
	uint64_t each = rounds(5000);

	total = 0;
	notify = (struct weft_notify)WEFT_NOTIFY_INIT;
	weft_notify_one(&notify);
	run_crowd(&crowds[_i], pass_notification_on, each);
	ck_assert_uint_eq(total, crowd_count(&crowds[_i]) * each);
}
END_TEST

/* ---- Rounds ------------------------------------------------------------ */

static struct weft_barrier barrier;
static uint64_t places[RUNTIMES_MAX * TASKS_MAX + THREADS_MAX];

/* Each member checks that its neighbour has reached the same round. */
static int64_t meet(void *arg)
{
	uint32_t number = *(uint32_t *)arg;
	uint32_t count = (uint32_t)total;

	for (uint64_t i = 1; i <= rounds_each; i++) {
		int r;

		places[number] = i;
		r = weft_barrier_wait(&barrier);
		EXPECT(r == 0 || r == 1);
		EXPECT(places[(number + 1) % count] == i);
		if (r == 1)
			/* relaxed: read when all have ended. */
			weft__add(&inside, 1u, relaxed);
		EXPECT(weft_barrier_wait(&barrier) >= 0);
	}
	return 0;
}

START_TEST(barrier_holds_round_by_round)
{
	uint64_t each = rounds(2000);

	total = crowd_count(&crowds[_i]);
	barrier = (struct weft_barrier)WEFT_BARRIER_INIT(total);
	weft__store(&inside, 0u, relaxed);
	run_crowd(&crowds[_i], meet, each);
	ck_assert_uint_eq(weft__load(&inside, relaxed), each);
}
END_TEST

enum { ONCES = 2000 };

static struct weft_once onces[ONCES];
static uint64_t answers[ONCES];

static int64_t answer(void *arg)
{
	uint64_t i = *(uint64_t *)arg;

	if (i % 8 == 0)
		step_aside();
	answers[i] += i + 1;
	return (int64_t)i;
}

static int64_t ask(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < ONCES; i++) {
		EXPECT(weft_once_run(&onces[i], answer, &i) == (int64_t)i);
		EXPECT(answers[i] == i + 1);
	}
	return 0;
}

START_TEST(what_is_done_once_is_seen_by_all)
{
	memset(onces, 0, sizeof(onces));
	memset(answers, 0, sizeof(answers));
	run_crowd(&crowds[_i], ask, 1);
}
END_TEST

static Suite *threads_suite(void)
{
	Suite *suite = suite_create("sync/threads");
	TCase *tc = tcase_create("crowd");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, mutex_is_held_by_one, 0, CROWDS);
	tcase_add_loop_test(tc, tasks_of_two_runtimes_are_told_apart, 0, 2);
	tcase_add_loop_test(tc, rwlock_is_held_by_readers_or_a_writer, 0,
			    CROWDS);
	tcase_add_loop_test(tc, no_more_permits_are_taken_than_there_are, 0,
			    CROWDS);
	tcase_add_loop_test(tc, no_permit_is_lost_on_one_that_gave_up, 0,
			    CROWDS);
	tcase_add_loop_test(tc, no_signal_is_lost, 0, CROWDS);
	tcase_add_loop_test(tc, notification_goes_from_hand_to_hand, 0, CROWDS);
	tcase_add_loop_test(tc, barrier_holds_round_by_round, 0, CROWDS);
	tcase_add_loop_test(tc, what_is_done_once_is_seen_by_all, 0, CROWDS);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return io_tests_run(threads_suite());
}
