/* SPDX-License-Identifier: MIT */
/*
 * Model of semaphores and reader-writer locks (runtime/sync).  A holder sees
 * what the holder before it did.  An interrupted wait leaves nothing behind and
 * takes no grant along that others wait for.  No task is left asleep.  The task
 * that takes the last permits given to a semaphore may free it.
 */
#include "tests/model/waits.h"

#include "runtime/sync/rwlock.c"
#include "runtime/sync/sem.c"

static struct weft_sem sem;
static struct weft_rwlock rwlock;

static void setup(void *arg)
{
	(void)arg;
	waits_setup(3);
	memset(&sem, 0, sizeof(sem));
	memset(&rwlock, 0, sizeof(rwlock));
	model_name(&sem, "sem");
	model_name(&rwlock, "rwlock");
}

/*
 * Semaphore.
 */

static void setup_sem_0(void *arg)
{
	setup(arg);
	weft__store(&sem_of(&sem)->word, 0, relaxed);
}

static void setup_sem_1(void *arg)
{
	setup(arg);
	weft__store(&sem_of(&sem)->word, 1, relaxed);
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
THREAD(use_2, if (done(sem_acquire_2())) weft_sem_release(&sem, 2);)
THREAD(try_use_1,
       if (weft_sem_try_acquire(&sem, 1) == 0) weft_sem_release(&sem, 1);)
THREAD(release_2, weft_sem_release(&sem, 2);)
THREAD(release_1_1, weft_sem_release(&sem, 1); weft_sem_release(&sem, 1);)
THREAD(release_2_cancel_0, weft_sem_release(&sem, 2); cancel(0);)
THREAD(release_1_cancel_0, weft_sem_release(&sem, 1); cancel(0);)

/* Gives the second permit, after it tried to take the first one. */
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
	model_assert(weft__load(&sem_of(&sem)->word, relaxed) == permits,
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
/* SEM1: a task that waits for more than there is leaves, and others wait behind
 * it. */
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
MODEL(sem_of_threads, setup_sem_0_foreign, check_2_permits, WAITS(2), use_2,
      use_1, release_2)

/* Each permit stands for one half. */
static int64_t halves[2];

static void give_half(unsigned i)
{
	halves[i]++;
	weft_sem_release(&sem, 1);
}

static void take_told(void *arg)
{
	(void)arg;
	if (done(sem_acquire_1()))
		model_assert(halves[0] == 1,
			     "who has a permit sees what was done before");
}

THREAD(tell_two, halves[0]++; weft_sem_release(&sem, 2);)
THREAD(give_half_0, give_half(0);)
THREAD(give_half_1, give_half(1);)

static void setup_halves(void *arg)
{
	setup_sem_0(arg);
	memset(halves, 0, sizeof(halves));
	model_name(&halves, "halves");
}

static void take_both(void *arg)
{
	(void)arg;
	if (done(sem_acquire_2()))
		model_assert(halves[0] == 1 && halves[1] == 1,
			     "who has a permit sees what was done before");
}

static void take_one_and_one(void *arg)
{
	(void)arg;
	if (done(sem_acquire_1()) && done(sem_acquire_1()))
		model_assert(halves[0] == 1 && halves[1] == 1,
			     "who has all permits sees all that was done");
}

MODEL(sem_release_serves_two, setup_halves, check_no_permit, WAITS(2),
      take_told, take_told, tell_two)
MODEL(sem_of_two_halves, setup_halves, check_no_permit, WAITS(3), take_both,
      give_half_0, give_half_1)
MODEL(sem_of_one_half_each, setup_halves, check_no_permit, WAITS(3),
      take_one_and_one, give_half_0, give_half_1)

/* SEM3: the task that takes the last permits frees the semaphore.  A task that
 * gave up has none; but it must have left its call. */
static weft__atomic(uint32_t) refs;

static void setup_freed(void *arg)
{
	setup_sem_0(arg);
	weft__store(&refs, 0u, relaxed);
}

static void setup_freed_visited(void *arg)
{
	setup_sem_0(arg);
	weft__store(&refs, 1u, relaxed);
}

static void free_if(bool done)
{
	if (done && !weft__load(&refs, acquire))
		model_free(&sem, sizeof(sem));
}

THREAD(take_1_and_free, free_if(done(sem_acquire_1()));)
THREAD(take_2_and_free, free_if(done(sem_acquire_2()));)
THREAD(release_1, weft_sem_release(&sem, 1);)
THREAD(visit, (void)done(sem_acquire_2()); weft__store(&refs, 0u, release);)
THREAD(cancel_1_release_1, cancel(1); weft_sem_release(&sem, 1);)

static void check_tasks(void *arg)
{
	(void)arg;
	tasks_check();
}

MODEL(sem_freed_by_who_takes, setup_freed, check_tasks, WAITS(3),
      take_1_and_free, release_1)
MODEL(sem_freed_by_who_takes_two, setup_freed, check_tasks, WAITS(2),
      take_2_and_free, release_1, release_1)
MODEL(sem_freed_after_one_gave_up, setup_freed_visited, check_tasks, WAITS(2),
      take_1_and_free, visit, cancel_1_release_1)

/*
 * Reader-writer lock.
 */

CALL(int, rwlock_read, weft_rwlock_read(&rwlock))
CALL(int, rwlock_write, weft_rwlock_write(&rwlock))

/* Others may read at the same time. */
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
	rwlock_of(&rwlock)->writer = weft__owner_of(&records[2]);
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
/* RW1: a writer leaves, and readers wait behind. */
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

int main(void)
{
	const TTest *const tests[] = {
		sem_of_one,
		sem_first_leaves,
		sem_release_meets_cancel,
		sem_half_meets_cancel,
		sem_releases,
		sem_in_turn,
		sem_release_serves_two,
		sem_of_threads,
		sem_of_two_halves,
		sem_of_one_half_each,
		sem_freed_by_who_takes,
		sem_freed_by_who_takes_two,
		sem_freed_after_one_gave_up,
		rwlock_readers_and_writer,
		rwlock_writers_and_reader,
		rwlock_tries,
		rwlock_writer_leaves,
		rwlock_in_turn,
		rwlock_readers_together,
		rwlock_grant_meets_cancel,
		rwlock_of_threads,
		NULL,
	};

	return kit_main("sync", tests);
}
