/* SPDX-License-Identifier: MIT */
/*
 * Model of mutexes and conditions (runtime/sync).  The holder is alone and sees
 * what the holder before it did.  An interrupted wait leaves nothing behind and
 * takes no grant along that others wait for.  No task is left asleep.  The last
 * holder may free the object.
 */
#include "tests/model/waits.h"

#include "runtime/sync/cond.c"
#include "runtime/sync/mutex.c"

static struct weft_mutex mutex;
static struct weft_cond cond;
/* The state that conditions are about; under the mutex. */
static unsigned items;

static void setup_n(unsigned tasks)
{
	waits_setup(tasks);
	memset(&mutex, 0, sizeof(mutex));
	memset(&cond, 0, sizeof(cond));
	items = 0;
	model_name(&mutex, "mutex");
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

/* Each worker's budget of operations is nearly spent: its task yields first. */
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
 * Mutex.  A task that is suspended while it holds the mutex hands it over;
 * others release it.
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

/* The waiters that were woken in vain are first in the queue.  Are there
 * any? */
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

/* MTX3: the last holder of the mutex frees it, as soon as it has unlocked it.
 * A task that gave up does not hold it; but it must have left its call. */
static unsigned users;
static weft__atomic(uint32_t) refs;

static void setup_freed(void *arg, unsigned users_count)
{
	setup(arg);
	users = users_count;
	weft__store(&refs, 0u, relaxed);
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
	weft__store(&refs, 1u, relaxed);
}

static void use_and_free(bool suspends)
{
	bool last;

	if (!done(mutex_lock()))
		return;
	hold(suspends);
	last = --users == 0;
	weft_mutex_unlock(&mutex);
	if (last && !weft__load(&refs, acquire))
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
	weft__store(&refs, 0u, release);
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
		cond_signal,
		cond_signal_under_lock,
		cond_two_signals,
		cond_broadcast,
		cond_signal_meets_cancel,
		cond_cancel,
		cond_of_threads,
		NULL,
	};

	return kit_main("mutex", tests);
}
