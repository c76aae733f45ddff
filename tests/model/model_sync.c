/* SPDX-License-Identifier: MIT */
/*
 * Model of locks (runtime/sync: mutexes, semaphores, reader-writer locks,
 * conditions): whoever holds something holds it alone and sees what the one
 * before did; a wait that is interrupted leaves nothing behind and takes
 * nothing along that others wait for; nobody is left asleep.
 */
#include "tests/model/waits.h"

#include "runtime/sync/cond.c"
#include "runtime/sync/mutex.c"
#include "runtime/sync/rwlock.c"
#include "runtime/sync/sem.c"

static struct weft_mutex mutex;
static struct weft_sem sem;
static struct weft_rwlock rwlock;
static struct weft_cond cond;
/* What conditions are about; under the mutex. */
static unsigned items;

static void setup_n(unsigned tasks)
{
	waits_setup(tasks);
	memset(&mutex, 0, sizeof(mutex));
	memset(&sem, 0, sizeof(sem));
	memset(&rwlock, 0, sizeof(rwlock));
	memset(&cond, 0, sizeof(cond));
	items = 0;
	model_name(&mutex, "mutex");
	model_name(&sem, "sem");
	model_name(&rwlock, "rwlock");
	model_name(&cond, "cond");
}

static void setup(void *arg)
{
	(void)arg;
	setup_n(3);
}

static void setup_4(void *arg)
{
	(void)arg;
	setup_n(4);
}

/* Each has done so much without waiting that it yields first. */
static void setup_spent(void *arg)
{
	setup(arg);
	for (unsigned i = 0; i < MODEL_THREADS; i++)
		pool[i].ops_left = 1;
}

static void setup_foreign_1_2(void *arg)
{
	setup(arg);
	waits_foreign(1);
	waits_foreign(2);
}

static void setup_elsewhere(void *arg)
{
	setup(arg);
	waits_elsewhere(1);
}

/*
 * Mutex.  Who is suspended while he holds it hands it over, others let it go.
 */

CALL(int, mutex_lock, weft_mutex_lock(&mutex))

static void section(bool suspends)
{
	if (!done(mutex_lock()))
		return;
	hold(suspends);
	weft_mutex_unlock(&mutex);
}

THREAD(short_section, section(false);)
THREAD(long_section, section(true);)
THREAD(short_sections, section(false); section(false);)
THREAD(short_section_and_cancel_1, section(false); cancel(1);)

static void cancel_1_in_section(void *arg)
{
	(void)arg;
	if (done(mutex_lock())) {
		hold(false);
		cancel(1);
		weft_mutex_unlock(&mutex);
	}
}

static void try_section(void *arg)
{
	(void)arg;
	if (weft_mutex_try_lock(&mutex) == 0) {
		had[model_self()]++;
		hold(false);
		weft_mutex_unlock(&mutex);
	}
}

/* Those who were woken in vain are first in the queue.  Are there any? */
static bool somebody_passed_over(void)
{
	struct weft__mutex *m = mutex_of(&mutex);
	struct weft__waiter *w;
	unsigned n = 0;

	weft__lock_take(&m->lock);
	for (w = m->waiters.head; w && w->want == PASSED_OVER; w = w->next)
		n++;
	for (; w; w = w->next)
		model_assert(w->want == FIRST_TRY,
			     "who was passed over goes before others");
	weft__lock_drop(&m->lock);
	return n > 0;
}

static void watched_sections(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 2; i++) {
		(void)done(mutex_lock());
		hold(false);
		(void)somebody_passed_over();
		weft_mutex_unlock(&mutex);
	}
}

/* Thread 1 is passed over once, at most. */
static void section_and_try(void *arg)
{
	bool waits;

	section(false);
	(void)done(mutex_lock());
	hold(false);
	waits = somebody_passed_over();
	weft_mutex_unlock(&mutex);
	if (weft_mutex_try_lock(&mutex) == 0) {
		model_assert(!waits || had[1] == 1,
			     "a second time it is handed over");
		weft_mutex_unlock(&mutex);
	}
	(void)arg;
}

static void check_mutex(void *arg)
{
	struct weft__mutex *m = mutex_of(&mutex);

	(void)arg;
	tasks_check();
	model_assert(!weft__load(&m->word, relaxed) && queue_empty(&m->waiters),
		     "nobody holds it in the end, or waits");
	model_assert(guarded == had_all(), "one after the other held it");
}

MODEL(mutex_let_go, setup, check_mutex, WAITS(2), short_section, short_section,
      short_section)
MODEL(mutex_taken_again, setup, check_mutex, WAITS(2), short_sections,
      short_section, short_section)
MODEL(mutex_passed_over_is_first, setup, check_mutex, WAITS_NEWEST(2),
      watched_sections, short_section, short_section)
MODEL(mutex_passed_over_once, setup, check_mutex, WAITS(3), section_and_try,
      short_section)
MODEL(mutex_handed_over, setup, check_mutex, WAITS(2), long_section,
      long_section, long_section)
MODEL(mutex_both, setup, check_mutex, WAITS(2), short_sections, long_section,
      try_section)
MODEL(mutex_handed_over_meets_cancel, setup, check_mutex, WAITS(2),
      long_section, short_section, cancel_1)
MODEL(mutex_let_go_meets_cancel, setup, check_mutex, WAITS(2), short_section,
      short_section, cancel_1)
MODEL(mutex_next_one_after_cancel, setup, check_mutex, WAITS(2),
      short_section_and_cancel_1, short_section, short_section)
MODEL(mutex_cancel_while_held, setup, check_mutex, WAITS(2),
      cancel_1_in_section, long_section, short_section)
MODEL(mutex_taken_again_meets_cancel, setup_4, check_mutex, WAITS(1),
      short_sections, short_section, short_section, cancel_1)
MODEL(mutex_after_yield_meets_cancel, setup_spent, check_mutex, WAITS(2),
      short_section, short_section, cancel_1)
MODEL(mutex_of_threads, setup_foreign_1_2, check_mutex, WAITS(2), long_section,
      short_sections, short_section)
MODEL(mutex_of_runtimes, setup_elsewhere, check_mutex, WAITS(2), short_sections,
      long_section)

/*
 * Semaphore.
 */

/* M3: who is the last to hold the mutex frees it, as soon as he has unlocked it.
 * One who gave up does not hold it; he has to be out of his call. */
static unsigned users;
static weft__atomic(uint32_t) visitors;

static void setup_freed(void *arg, unsigned users_count)
{
	setup(arg);
	users = users_count;
	weft__store(&visitors, 0u, relaxed);
}

static void setup_2_users(void *arg)
{
	setup_freed(arg, 2);
}

static void setup_3_users(void *arg)
{
	setup_freed(arg, 3);
}

static void setup_2_users_and_visitor(void *arg)
{
	setup_2_users(arg);
	weft__store(&visitors, 1u, relaxed);
}

static void use_and_free(bool suspends)
{
	bool last;

	if (!done(mutex_lock()))
		return;
	hold(suspends);
	last = --users == 0;
	weft_mutex_unlock(&mutex);
	if (last && !weft__load(&visitors, acquire))
		model_free(&mutex, sizeof(mutex));
}

THREAD(use_shortly, use_and_free(false);)
THREAD(use_long, use_and_free(true);)

static void visit(void *arg)
{
	(void)arg;
	if (done(mutex_lock())) {
		hold(false);
		weft_mutex_unlock(&mutex);
	}
	weft__store(&visitors, 0u, release);
}

static void use_and_cancel_2(void *arg)
{
	(void)arg;
	cancel(2);
	use_and_free(false);
}

static void check_freed(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(guarded == had_all(), "one after the other held it");
}

MODEL(mutex_freed_by_the_next, setup_2_users, check_freed, WAITS(3),
      use_shortly, use_shortly)
MODEL(mutex_freed_by_the_last, setup_3_users, check_freed, WAITS(2),
      use_shortly, use_shortly, use_long)
MODEL(mutex_freed_after_one_gave_up, setup_2_users_and_visitor, check_freed,
      WAITS(2), use_long, use_and_cancel_2, visit)

static void setup_sem_0(void *arg)
{
	setup(arg);
	sem_of(&sem)->permits = 0;
}

static void setup_sem_1(void *arg)
{
	setup(arg);
	sem_of(&sem)->permits = 1;
}

static void setup_sem_0_foreign(void *arg)
{
	setup_sem_0(arg);
	waits_foreign(1);
	waits_foreign(2);
}

CALL(int, sem_acquire_1, weft_sem_acquire(&sem, 1))
CALL(int, sem_acquire_2, weft_sem_acquire(&sem, 2))

static void use_1_alone(void *arg)
{
	(void)arg;
	if (done(sem_acquire_1())) {
		hold(false);
		weft_sem_release(&sem, 1);
	}
}

THREAD(use_1, if (done(sem_acquire_1())) weft_sem_release(&sem, 1);)
THREAD(keep_1, (void)done(sem_acquire_1());)
THREAD(use_2, if (done(sem_acquire_2())) weft_sem_release(&sem, 2);)
THREAD(try_use_1,
       if (weft_sem_try_acquire(&sem, 1) == 0) weft_sem_release(&sem, 1);)
THREAD(release_2, weft_sem_release(&sem, 2);)
THREAD(release_1_1, weft_sem_release(&sem, 1); weft_sem_release(&sem, 1);)
THREAD(release_2_cancel_0, weft_sem_release(&sem, 2); cancel(0);)
THREAD(release_1_cancel_0, weft_sem_release(&sem, 1); cancel(0);)

/* Gives the second one, after a look whether it can have the first one. */
static void try_past_waiters(void *arg)
{
	struct sem *s = sem_of(&sem);
	bool waits = somebody_waits(&s->waiters, &s->lock);

	(void)arg;
	if (weft_sem_try_acquire(&sem, 1) == 0) {
		model_assert(!waits, "who comes later waits behind");
		weft_sem_release(&sem, 1);
	}
	weft_sem_release(&sem, 1);
}

static void check_permits(unsigned permits)
{
	tasks_check();
	model_assert(queue_empty(&sem_of(&sem)->waiters), "nobody waits");
	model_assert(weft_sem_count(&sem) == permits,
		     "permits are neither lost nor made");
}

static void check_no_permit(void *arg)
{
	(void)arg;
	check_permits(0);
}

static void check_1_permit(void *arg)
{
	(void)arg;
	check_permits(1);
}

static void check_2_permits(void *arg)
{
	(void)arg;
	check_permits(2);
}

MODEL(sem_of_one, setup_sem_1, check_1_permit, WAITS(2), use_1_alone,
      use_1_alone, use_1_alone)
/* P1: who waits for more than there is leaves, and others wait behind. */
MODEL(sem_first_leaves, setup_sem_1, check_1_permit, WAITS(2), use_2,
      use_1_alone, cancel_0)
MODEL(sem_release_meets_cancel, setup_sem_0, check_2_permits, WAITS(2), use_2,
      use_1, release_2_cancel_0)
MODEL(sem_half_meets_cancel, setup_sem_0, check_1_permit, WAITS(2), use_2,
      use_1, release_1_cancel_0)
MODEL(sem_releases, setup_sem_0, check_2_permits, WAITS(2), use_2, try_use_1,
      release_1_1)
MODEL(sem_in_turn, setup_sem_1, check_2_permits, WAITS(3), use_2,
      try_past_waiters)
MODEL(sem_release_serves_two, setup_sem_0, check_no_permit, WAITS(2), keep_1,
      keep_1, release_2)
MODEL(sem_of_threads, setup_sem_0_foreign, check_2_permits, WAITS(2), use_2,
      use_1, release_2)

/*
 * Reader-writer lock.
 */

CALL(int, rwlock_read, weft_rwlock_read(&rwlock))
CALL(int, rwlock_write, weft_rwlock_write(&rwlock))

/* It may be read while others do. */
static int64_t seen[MODEL_THREADS];

static void read_guarded(void)
{
	model_assert(!inside, "who reads meets no writer");
	seen[model_self()] = guarded;
}

static void reader(void *arg)
{
	(void)arg;
	if (done(rwlock_read())) {
		read_guarded();
		weft_rwlock_unlock(&rwlock);
	}
}

static void writer(void *arg)
{
	(void)arg;
	if (done(rwlock_write())) {
		hold(true);
		weft_rwlock_unlock(&rwlock);
	}
}

static void cancel_1_and_write(void *arg)
{
	(void)arg;
	cancel(1);
	if (done(rwlock_write())) {
		hold(false);
		weft_rwlock_unlock(&rwlock);
	}
}

static void try_both(void *arg)
{
	(void)arg;
	if (weft_rwlock_try_read(&rwlock) == 0) {
		read_guarded();
		weft_rwlock_unlock(&rwlock);
	}
	if (weft_rwlock_try_write(&rwlock) == 0) {
		hold(false);
		weft_rwlock_unlock(&rwlock);
	}
}

/* It reads until another reader has come in. */
static struct model_event came_in, others_came_in[2];

static void setup_rwlock(void *arg)
{
	setup(arg);
	memset(&came_in, 0, sizeof(came_in));
	memset(others_came_in, 0, sizeof(others_came_in));
	memset(seen, 0, sizeof(seen));
}

/* Thread 2 holds it to write. */
static void setup_rwlock_held(void *arg)
{
	setup_rwlock(arg);
	rwlock_of(&rwlock)->writer = true;
}

static void setup_rwlock_foreign(void *arg)
{
	setup_rwlock(arg);
	waits_foreign(1);
	waits_foreign(2);
}

static void reader_cancels_1(void *arg)
{
	(void)arg;
	if (done(rwlock_read())) {
		read_guarded();
		cancel(1);
		(void)model_wait(&came_in);
		weft_rwlock_unlock(&rwlock);
	}
}

static void reader_comes_in(void *arg)
{
	(void)arg;
	if (done(rwlock_read())) {
		read_guarded();
		model_post(&came_in);
		weft_rwlock_unlock(&rwlock);
	}
}

static void reader_meets_other(void *arg)
{
	(void)arg;
	if (done(rwlock_read())) {
		read_guarded();
		model_post(&others_came_in[model_self()]);
		(void)model_wait(&others_came_in[!model_self()]);
		weft_rwlock_unlock(&rwlock);
	}
}

THREAD(writer_is_done, hold(false); weft_rwlock_unlock(&rwlock);)

/* Whether the writer, thread 0, waited when another reader came. */
static bool writer_waits;

static void reader_looks(void *arg)
{
	struct rwlock *l = rwlock_of(&rwlock);

	(void)arg;
	if (!done(rwlock_read()))
		return;
	writer_waits = somebody_waits(&l->waiters, &l->lock);
	if (weft_rwlock_try_read(&rwlock) == 0) {
		model_assert(!writer_waits, "who comes later waits behind");
		weft_rwlock_unlock(&rwlock);
	}
	model_post(&came_in);
	weft_rwlock_unlock(&rwlock);
}

static void reader_comes_later(void *arg)
{
	(void)arg;
	(void)model_wait(&came_in);
	if (!done(rwlock_read()))
		return;
	model_assert(!writer_waits || had[0] == 1,
		     "who comes later waits behind");
	weft_rwlock_unlock(&rwlock);
}

static void check_rwlock(void *arg)
{
	struct rwlock *l = rwlock_of(&rwlock);

	(void)arg;
	tasks_check();
	model_assert(!l->writer && !l->readers && queue_empty(&l->waiters),
		     "nobody holds it in the end, or waits");
}

MODEL(rwlock_readers_and_writer, setup_rwlock, check_rwlock, WAITS(2), writer,
      reader, reader)
MODEL(rwlock_writers_and_reader, setup_rwlock, check_rwlock, WAITS(2), writer,
      writer, reader)
MODEL(rwlock_tries, setup_rwlock, check_rwlock, WAITS(2), writer, reader,
      try_both)
/* R1: a writer leaves, and readers wait behind. */
MODEL(rwlock_writer_leaves, setup_rwlock, check_rwlock, WAITS(2),
      reader_cancels_1, writer, reader_comes_in)
MODEL(rwlock_in_turn, setup_rwlock, check_rwlock, WAITS(2), writer,
      reader_looks, reader_comes_later)
MODEL(rwlock_readers_together, setup_rwlock_held, check_rwlock, WAITS(2),
      reader_meets_other, reader_meets_other, writer_is_done)
MODEL(rwlock_grant_meets_cancel, setup_rwlock, check_rwlock, WAITS(2), reader,
      writer, cancel_1_and_write)
MODEL(rwlock_of_threads, setup_rwlock_foreign, check_rwlock, WAITS(2), writer,
      reader, writer)

/*
 * Condition.
 */

CALL(int, cond_wait, weft_cond_wait(&cond, &mutex))

static bool is_held(void)
{
	return weft__mutex_owner(&mutex) ==
	       weft__owner_self(weft__sync_worker());
}

static void consume(void)
{
	int r = 0;

	if (mutex_lock() < 0)
		return;
	while (r == 0 && items == 0) {
		r = cond_wait();
		call_over();
		model_assert(is_held(), "who has waited holds the mutex");
	}
	if (items > 0) {
		items--;
		had[model_self()]++;
	}
	weft_mutex_unlock(&mutex);
}

static void produce(unsigned n)
{
	if (mutex_lock() < 0)
		return;
	items += n;
	weft_mutex_unlock(&mutex);
}

THREAD(consumer, consume();)
THREAD(producer, produce(1); weft_cond_signal(&cond);)

static void producer_under_lock(void *arg)
{
	(void)arg;
	if (mutex_lock() == 0) {
		items++;
		weft_cond_signal(&cond);
		weft_mutex_unlock(&mutex);
	}
}

THREAD(producer_of_two, produce(2); weft_cond_broadcast(&cond);)
THREAD(producer_cancels_0, produce(1); weft_cond_signal(&cond); cancel(0);
       produce(1); weft_cond_signal(&cond);)
THREAD(cancels_0_and_produces, cancel(0); produce(1); weft_cond_signal(&cond);)

static void check_cond(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(!weft__mutex_owner(&mutex) &&
			     queue_empty(&mutex_of(&mutex)->waiters) &&
			     queue_empty(&cond_of(&cond)->waiters),
		     "nobody holds it in the end, or waits");
}

MODEL(cond_signal, setup, check_cond, WAITS(3), consumer, producer)
MODEL(cond_signal_under_lock, setup, check_cond, WAITS(3), consumer,
      producer_under_lock)
MODEL(cond_two_signals, setup, check_cond, WAITS(2), consumer, producer,
      producer_under_lock)
MODEL(cond_broadcast, setup, check_cond, WAITS(2), consumer, consumer,
      producer_of_two)
MODEL(cond_signal_meets_cancel, setup, check_cond, WAITS_NEWEST(2), consumer,
      consumer, producer_cancels_0)
MODEL(cond_cancel, setup, check_cond, WAITS(3), consumer,
      cancels_0_and_produces)
MODEL(cond_of_threads, setup_foreign_1_2, check_cond, WAITS(2), consumer,
      consumer, producer_of_two)

int main(void)
{
	const TTest *const tests[] = {
		mutex_let_go,
		mutex_taken_again,
		mutex_passed_over_is_first,
		mutex_passed_over_once,
		mutex_handed_over,
		mutex_both,
		mutex_handed_over_meets_cancel,
		mutex_let_go_meets_cancel,
		mutex_next_one_after_cancel,
		mutex_cancel_while_held,
		mutex_taken_again_meets_cancel,
		mutex_after_yield_meets_cancel,
		mutex_freed_by_the_next,
		mutex_freed_by_the_last,
		mutex_freed_after_one_gave_up,
		mutex_of_threads,
		mutex_of_runtimes,
		sem_of_one,
		sem_first_leaves,
		sem_release_meets_cancel,
		sem_half_meets_cancel,
		sem_releases,
		sem_in_turn,
		sem_release_serves_two,
		sem_of_threads,
		rwlock_readers_and_writer,
		rwlock_writers_and_reader,
		rwlock_tries,
		rwlock_writer_leaves,
		rwlock_in_turn,
		rwlock_readers_together,
		rwlock_grant_meets_cancel,
		rwlock_of_threads,
		cond_signal,
		cond_signal_under_lock,
		cond_two_signals,
		cond_broadcast,
		cond_signal_meets_cancel,
		cond_cancel,
		cond_of_threads,
		NULL,
	};

	return kit_main("sync", tests);
}
