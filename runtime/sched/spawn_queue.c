/* SPDX-License-Identifier: MIT */
#include "runtime/sched/spawn_queue.h"

#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"

/* At the turn of the oldest if the ring has not been empty for so many runs. */
enum { FEW = 8, RECENT = 4096 };

/* How many are taken in one hold of the lock: by the owner, so that he meets a
 * thief there less often; by a thief, in whose cache none of them is. */
enum { OWNERS = 16, THIEFS = 64 };

static void fresh_lock(struct weft__worker *worker)
{
	if (!worker->alone) /* mutate: recheck=false */
		weft__lock_take(&worker->fresh.lock);
}

static void fresh_unlock(struct weft__worker *worker)
{
	if (!worker->alone) /* mutate: recheck=false */
		weft__lock_drop(&worker->fresh.lock);
}

static void count_add(struct weft__fresh *fresh, uint32_t more)
{
	/* relaxed: written under the lock; see weft__fresh_count(). */
	weft__store(&fresh->count, weft__load(&fresh->count, relaxed) + more,
		    relaxed);
}

void weft__fresh_push(struct weft__worker *worker, struct weft__task *task)
{
	struct weft__fresh *fresh = &worker->fresh;

	fresh_lock(worker);
	task->next = NULL;
	task->older = fresh->newest;
	*(fresh->newest ? &fresh->newest->next : &fresh->oldest) = task;
	fresh->newest = task;
	count_add(fresh, 1); /* mutate: wake */
	fresh_unlock(worker);
}

static struct weft__task *take_newest(struct weft__fresh *fresh)
{
	struct weft__task *task = fresh->newest;

	if (!task) /* mutate: recheck=false */
		return NULL;
	fresh->newest = task->older;
	*(task->older ? &task->older->next : &fresh->oldest) = NULL;
	count_add(fresh, -1u); /* mutate: wake */
	return task;
}

/* Under the lock, if there is one.  Returns the first of at most so many; the
 * rest is linked behind it. */
static struct weft__task *take_oldest(struct weft__fresh *fresh, uint32_t most)
{
	struct weft__task *first = fresh->oldest, *last = first;
	uint32_t n = 1;

	if (!first || !most) /* mutate: recheck=false */
		return NULL;
	for (; n < most && last->next; n++)
		last = last->next;
	fresh->oldest = last->next;
	*(last->next ? &last->next->older : &fresh->newest) = NULL;
	last->next = NULL;
	count_add(fresh, -n); /* mutate: wake */
	return first;
}

/* Puts all but the first into the ring. */
static void ring_rest(struct weft__worker *worker, struct weft__task *first)
{
	struct weft__task *task = first ? first->next : NULL;

	while (task) {
		struct weft__task *next = task->next;

		weft__push(worker, task); /* mutate: wake */
		task = next;
	}
}

static uint64_t counted(struct weft__worker *worker, enum weft__count which)
{
	/* relaxed: the worker's own counter. */
	return weft__load(&worker->counts[which], relaxed);
}

struct weft__task *weft__fresh_take(struct weft__worker *worker)
{
	struct weft__fresh *fresh = &worker->fresh;
	struct weft__task *task;
	uint32_t n = 1;

	if (!weft__fresh_count(fresh))
		return NULL;
	fresh->taken = counted(worker, WEFT__N_POLLS);
	fresh_lock(worker);
	task = take_newest(fresh);
	for (struct weft__task *last = task; last && n < OWNERS; n++)
		last = last->next = take_newest(fresh);
	fresh_unlock(worker);
	ring_rest(worker, task);
	return task;
}

/* Did those that ran since the last turn come to their ends, or at least one in
 * eight?  Then who begins is soon done; and else who began runs again and again
 * while others have not begun. */
static bool others_end(struct weft__worker *worker)
{
	struct weft__fresh *fresh = &worker->fresh;
	uint64_t polls = counted(worker, WEFT__N_POLLS);
	uint64_t ended = counted(worker, WEFT__N_ENDED);
	bool most = (ended - fresh->ended) * 8 >= polls - fresh->polls;

	fresh->polls = polls;
	fresh->ended = ended;
	return most;
}

/* How many of the oldest have their turn, where `share` could. */
static uint32_t turn_share(struct weft__worker *worker, uint32_t share)
{
	struct weft__fresh *fresh = &worker->fresh;

	if (!others_end(worker))
		return share;
	/* The ring is not empty now and then. */
	if (fresh->polls - fresh->taken > RECENT)
		return share < FEW ? share : FEW;
	if (worker->clock_ns - fresh->turn_ns < WEFT__FRESH_TURN_NS &&
	    ++fresh->turns % WEFT__FRESH_TURNS)
		return 0;
	return WEFT__SHARE_LEAST;
}

struct weft__task *weft__fresh_turn(struct weft__worker *worker,
				    uint32_t share)
{
	share = turn_share(worker, share);
	if (!share)
		return NULL;
	worker->fresh.turn_ns = worker->clock_ns;
	return weft__fresh_steal(worker, worker, share);
}

struct weft__task *weft__fresh_steal(struct weft__worker *worker,
				     struct weft__worker *victim,
				     uint32_t most)
{
	struct weft__fresh *fresh = &victim->fresh;
	uint32_t count = weft__fresh_count(fresh);
	struct weft__task *first;

	if (!count)
		return NULL;
	if (most > count / 2 + 1)
		most = count / 2 + 1;
	if (victim != worker && most > THIEFS)
		most = THIEFS;
	fresh_lock(victim);
	first = take_oldest(fresh, most);
	fresh_unlock(victim);
	ring_rest(worker, first);
	return first;
}

void weft__fresh_empty(struct weft__worker *worker, struct weft__chain *chain)
{
	struct weft__fresh *fresh = &worker->fresh;

	fresh_lock(worker);
	if (fresh->oldest) { /* mutate: recheck=true */
		*(chain->count ? &chain->tail->next : &chain->head) =
			fresh->oldest;
		chain->tail = fresh->newest;
		chain->count += weft__fresh_count(fresh);
		fresh->oldest = fresh->newest = NULL;
		/* mutate: wake */
		count_add(fresh, -weft__fresh_count(fresh));
	}
	fresh_unlock(worker);
}
