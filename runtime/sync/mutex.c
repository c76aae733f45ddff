/* SPDX-License-Identifier: MIT */
/*
 * Mutex - locking, waiting and handing over.  The header has the model, the
 * invariants MTX1 to MTX3 and the ordering.
 */
#include "runtime/sync/mutex.h"

#include "runtime/sched/runtime.h"

enum outcome {
	HAS_IT,
	TRY_AGAIN,
};

/* As Go's sync.Mutex: a microsecond or two. */
#ifdef WEFT__MODEL
enum { MUTEX_SPINS = 1, MUTEX_BACK_OFF = 0 };
#else
enum { MUTEX_SPINS = 4, MUTEX_BACK_OFF = 32 };
#endif

/* waiter.want */
enum { FIRST_TRY, PASSED_OVER };

static struct weft__mutex *mutex_of(struct weft_mutex *mutex)
{
	return (struct weft__mutex *)(void *)mutex;
}

/* A value other than before means that the task was suspended in between. */
static uint64_t runs_now(struct weft__worker *worker)
{
	/* relaxed: the worker's own counter. */
	return worker ? weft__load(&worker->counts[WEFT__N_POLLS], relaxed) : 0;
}

static void mutex_note_runs(struct weft__mutex *m, struct weft__worker *worker)
{
	m->owner_runs = runs_now(worker);
}

/* Takes the mutex in one step, if it is free and no waiter is queued.  Reads
 * first, since a failed swap costs as much as a successful one. */
static inline bool mutex_take(struct weft__mutex *m, uint64_t self)
{
	/* relaxed: the swap decides. */
	uint64_t word = weft__load(&m->word, relaxed);

	/* pairs: [mutex.pass] */
	return weft__likely(!word) && weft__cas(&m->word, &word, self, acquire);
}

static bool mutex_is_held(uint64_t word)
{
	return word & ~WEFT__MUTEX_QUEUED;
}

/* The owner may be at the end of a short section on another core.  Then
 * spinning costs less than a suspension and the owner's wake of this task.
 * Does not spin if a waiter is queued.  (Go does not spin either if other tasks
 * could run meanwhile.  That rule made eight tasks with short sections on two
 * workers queue all the time: 27 ns in place of 15.) */
static bool mutex_spin(struct weft__mutex *m, struct weft__worker *worker,
		       uint64_t self)
{
	if (worker && worker->runtime->workers_count == 1)
		return false;
	for (unsigned i = 0; i < MUTEX_SPINS; i++) {
		if (mutex_take(m, self))
			return true;
		/* relaxed: the swap decides. */
		if (weft__load(&m->word, relaxed) & WEFT__MUTEX_QUEUED)
			return false;
		for (int k = 0; k < MUTEX_BACK_OFF; k++)
			weft__spin_hint();
	}
	return false;
}

/* ---- With the lock ------------------------------------------------------- */

static uint64_t mutex_queued(struct weft__mutex *m)
{
	return m->waiters.head ? WEFT__MUTEX_QUEUED : 0;
}

/* Takes the mutex if it is free; otherwise sets QUEUED (MTX2). */
static bool mutex_take_or_mark(struct weft__mutex *m, uint64_t self)
{
	/* relaxed: the swap decides, or MTX2. */
	uint64_t word = weft__load(&m->word, relaxed);
	uint64_t next;

	do {
		if (mutex_is_held(word) && (word & WEFT__MUTEX_QUEUED))
			return false;
		next = mutex_is_held(word) ? word | WEFT__MUTEX_QUEUED :
					     self | mutex_queued(m);
		/* pairs: [mutex.pass] */
	} while (!weft__cas(&m->word, &word, next, acquire));
	return !mutex_is_held(word);
}

/* Waits until the task has the mutex.  Called with the lock, which is dropped,
 * after QUEUED was set.  0, or the error of an interrupted wait if `heeds`. */
static int mutex_wait(struct weft__mutex *m, struct weft__worker *worker,
		      bool heeds)
{
	uint64_t self = weft__owner_self(worker);
	struct weft__wait wait;
	struct weft__waiter w;
	int r;

	weft__waiter_init(&w, &wait, worker, NULL, FIRST_TRY);
	weft__wait_on(&wait, WEFT__ON_MUTEX, m);
	weft__waiters_add(&m->waiters, &w);
	for (;;) {
		weft__lock_drop(&m->lock);
		r = heeds ? weft__waiter_wait(&w, &m->waiters, &m->lock) :
			    weft__wait(&wait, false);
		if (r < 0)
			return r;
		worker = weft__sync_worker();
		if (r == HAS_IT)
			break;
		weft__lock_take(&m->lock);
		m->called = false;
		if (mutex_take_or_mark(m, self)) { /* mutate: recheck=true */
			weft__lock_drop(&m->lock);
			break;
		}
		weft__waiter_init(&w, &wait, worker, NULL, PASSED_OVER);
		weft__wait_on(&wait, WEFT__ON_MUTEX, m);
		weft__waiters_add_first(&m->waiters, &w);
	}
	mutex_note_runs(m, worker);
	return 0;
}

static __attribute__((noinline)) int
mutex_lock_slow(struct weft__mutex *m, struct weft__worker *worker, bool heeds)
{
	uint64_t self = weft__owner_self(worker);

	weft__assert(!worker || weft__mutex_owner(m) != self,
		     "a task locked a mutex that it holds");
	if (!mutex_spin(m, worker, self)) {
		weft__lock_take(&m->lock);
		if (!mutex_take_or_mark(m, self))
			return mutex_wait(m, worker, heeds);
		weft__lock_drop(&m->lock);
	}
	mutex_note_runs(m, worker);
	return 0;
}

/* ---- Locking ------------------------------------------------------------- */

static __attribute__((noinline)) int mutex_enter_and_lock(struct weft__mutex *m)
{
	struct weft__worker *worker;
	int error = weft__sync_enter(&worker);

	return error < 0 ? error : mutex_lock_slow(m, worker, true);
}

int weft_mutex_lock(struct weft_mutex *mutex)
{
	struct weft__mutex *m = mutex_of(mutex);
	struct weft__worker *worker = weft__sync_enter_quick();

	if (weft__unlikely(!worker))
		return mutex_enter_and_lock(m);
	if (weft__unlikely(!mutex_take(m, weft__owner_of(worker->current))))
		return mutex_lock_slow(m, worker, true);
	mutex_note_runs(m, worker);
	return 0;
}

void weft__mutex_lock(struct weft_mutex *mutex, struct weft__worker *worker)
{
	(void)mutex_lock_slow(mutex_of(mutex), worker, false);
}

uint64_t weft__mutex_owner(const void *mutex)
{
	struct weft__mutex *m = (void *)(uintptr_t)mutex;

	/* relaxed: a momentary value. */
	return weft__load(&m->word, relaxed) & ~WEFT__MUTEX_QUEUED;
}

int weft_mutex_try_lock(struct weft_mutex *mutex)
{
	struct weft__mutex *m = mutex_of(mutex);
	struct weft__worker *worker = weft__sync_worker();
	uint64_t self = weft__owner_self(worker);
	bool taken = mutex_take(m, self);

	/* Free, but a woken waiter is about to try. */
	if (!taken && !weft__mutex_owner(m)) {
		weft__lock_take(&m->lock);
		taken = mutex_take_or_mark(m, self);
		weft__lock_drop(&m->lock);
	}
	if (!taken)
		return -EBUSY;
	mutex_note_runs(m, worker);
	return 0;
}

/* ---- Unlocking ----------------------------------------------------------- */

/* Releases the mutex or hands it over; the caller holds the lock.  Returns the
 * waiter to grant that outcome to.  NULL: a waiter was woken before, and has
 * not tried yet. */
static struct weft__waiter *mutex_pass(struct weft__mutex *m,
				       struct weft__worker *worker,
				       enum outcome *ret_outcome)
{
	struct weft__waiter *first = m->waiters.head;
	bool hand_over = first->want == PASSED_OVER ||
			 m->owner_runs != runs_now(worker);
	uint64_t next = 0;

	if (hand_over)
		next = weft__owner_of(first->wait->task);
	if (hand_over || !m->called)
		first = weft__waiters_take(&m->waiters);
	else
		first = NULL;
	m->called |= !hand_over;
	/* pairs: [mutex.pass] */
	weft__store(&m->word, next | mutex_queued(m), release);
	*ret_outcome = hand_over ? HAS_IT : TRY_AGAIN;
	return first;
}

/* True: released or handed over.  False: no waiter was queued; release it in
 * one step. */
static bool mutex_unlock_queued(struct weft__mutex *m,
				struct weft__worker *worker, uint64_t self)
{
	struct weft__waiter *first = NULL;
	enum outcome outcome = HAS_IT;
	bool queued;

	weft__lock_take(&m->lock);
	queued = m->waiters.head;
	if (queued)
		first = mutex_pass(m, worker, &outcome);
	else
		/* relaxed: this task still holds it. */
		weft__store(&m->word, self, relaxed);
	weft__lock_drop(&m->lock);
	if (first)
		weft__waiter_grant(worker, first, outcome); /* mutate: wake */
	return queued;
}

static inline bool mutex_leave(struct weft__mutex *m, uint64_t self)
{
	/* relaxed: the swap decides. */
	uint64_t word = weft__load(&m->word, relaxed);

	/* pairs: [mutex.pass] */
	return weft__likely(word == self) &&
	       weft__cas(&m->word, &word, 0, release);
}

static __attribute__((noinline)) void
mutex_unlock_slow(struct weft__mutex *m, struct weft__worker *worker,
		  uint64_t self)
{
	weft__assert(weft__mutex_owner(m) == self,
		     "a mutex was unlocked by one that does not hold it");
	while (!mutex_unlock_queued(m, worker, self)) /* mutate: retry */
		if (mutex_leave(m, self))
			break;
}

void weft_mutex_unlock(struct weft_mutex *mutex)
{
	struct weft__mutex *m = mutex_of(mutex);
	struct weft__worker *worker = weft__sync_worker();
	uint64_t self = weft__owner_self(worker);

	if (weft__unlikely(!mutex_leave(m, self)))
		mutex_unlock_slow(m, worker, self);
}
