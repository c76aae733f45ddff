/* SPDX-License-Identifier: MIT */
/*
 * Spawn queue - a doubly linked list under a lock: the owner takes the newest
 * tasks, thieves and the owner's turns take the oldest.
 *
 * One task of those taken is returned, to run now; the others go into the ring
 * of the worker that took them.  A worker without peers takes no lock.  The
 * reasons, the invariants SPAWN1 to SPAWN3 and the share of a turn are in
 * spawn_queue.h.
 */
#include "runtime/sched/spawn_queue.h"

#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"

/* FEW oldest tasks a turn if the ring has not been empty for RECENT runs. */
enum { FEW = 8, RECENT = 4096 };

/* Tasks taken in one hold of the lock.  By the owner: so that it meets a thief
 * there less often.  By a thief: none of them is in its cache. */
enum { OWNERS = 16, THIEFS = 64 };

static void spawn_queue_lock(struct weft__worker *worker)
{
	if (!worker->alone) /* mutate: recheck=false */
		weft__lock_take(&worker->spawn_queue.lock);
}

static void spawn_queue_unlock(struct weft__worker *worker)
{
	if (!worker->alone) /* mutate: recheck=false */
		weft__lock_drop(&worker->spawn_queue.lock);
}

static void count_add(struct weft__spawn_queue *queue, uint32_t more)
{
	/* relaxed: written under the lock; see weft__spawn_queue_count(). */
	weft__store(&queue->count, weft__load(&queue->count, relaxed) + more,
		    relaxed);
}

void weft__spawn_queue_push(struct weft__worker *worker,
			    struct weft__task *task)
{
	struct weft__spawn_queue *queue = &worker->spawn_queue;

	spawn_queue_lock(worker);
	task->next = NULL;
	task->older = queue->newest;
	*(queue->newest ? &queue->newest->next : &queue->oldest) = task;
	queue->newest = task;
	count_add(queue, 1); /* mutate: wake */
	spawn_queue_unlock(worker);
}

static struct weft__task *take_newest(struct weft__spawn_queue *queue)
{
	struct weft__task *task = queue->newest;

	if (!task) /* mutate: recheck=false */
		return NULL;
	queue->newest = task->older;
	*(task->older ? &task->older->next : &queue->oldest) = NULL;
	count_add(queue, -1u); /* mutate: wake */
	return task;
}

/* Under the lock, if there is one.  Returns the first of at most `max` tasks;
 * the others are linked behind it. */
static struct weft__task *take_oldest(struct weft__spawn_queue *queue,
				      uint32_t max)
{
	struct weft__task *first = queue->oldest, *last = first;
	uint32_t n = 1;

	if (!first || !max) /* mutate: recheck=false */
		return NULL;
	for (; n < max && last->next; n++)
		last = last->next;
	queue->oldest = last->next;
	*(last->next ? &last->next->older : &queue->newest) = NULL;
	last->next = NULL;
	count_add(queue, -n); /* mutate: wake */
	return first;
}

/* Puts all tasks but the first into the ring. */
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

struct weft__task *weft__spawn_queue_take(struct weft__worker *worker)
{
	struct weft__spawn_queue *queue = &worker->spawn_queue;
	struct weft__task *task;
	uint32_t n = 1;

	if (!weft__spawn_queue_count(queue))
		return NULL;
	queue->taken = counted(worker, WEFT__N_POLLS);
	spawn_queue_lock(worker);
	task = take_newest(queue);
	for (struct weft__task *last = task; last && n < OWNERS; n++)
		last = last->next = take_newest(queue);
	spawn_queue_unlock(worker);
	ring_rest(worker, task);
	return task;
}

/* Did at least one in eight of the runs since the last turn end a task?  Then
 * tasks that begin are soon done.  Otherwise those that began run again and
 * again while others have not begun. */
static bool others_end(struct weft__worker *worker)
{
	struct weft__spawn_queue *queue = &worker->spawn_queue;
	uint64_t polls = counted(worker, WEFT__N_POLLS);
	uint64_t ended = counted(worker, WEFT__N_ENDED);
	bool mostly_end = (ended - queue->ended) * 8 >= polls - queue->polls;

	queue->polls = polls;
	queue->ended = ended;
	return mostly_end;
}

/* How many of the oldest have their turn, `share` at most. */
static uint32_t turn_share(struct weft__worker *worker, uint32_t share)
{
	struct weft__spawn_queue *queue = &worker->spawn_queue;

	if (!others_end(worker))
		return share;
	/* The ring has not been empty for long. */
	if (queue->polls - queue->taken > RECENT)
		return share < FEW ? share : FEW;
	if (worker->tick.clock_ns - queue->turn_ns < WEFT__SPAWN_TURN_NS &&
	    ++queue->turns % WEFT__SPAWN_TURNS)
		return 0;
	return WEFT__SHARE_MIN;
}

struct weft__task *weft__spawn_queue_turn(struct weft__worker *worker,
				    uint32_t share)
{
	share = turn_share(worker, share);
	if (!share)
		return NULL;
	worker->spawn_queue.turn_ns = worker->tick.clock_ns;
	return weft__spawn_queue_steal(worker, worker, share);
}

struct weft__task *weft__spawn_queue_steal(struct weft__worker *worker,
				     struct weft__worker *victim,
				     uint32_t max)
{
	struct weft__spawn_queue *queue = &victim->spawn_queue;
	uint32_t count = weft__spawn_queue_count(queue);
	struct weft__task *first;

	if (!count)
		return NULL;
	if (max > count / 2 + 1)
		max = count / 2 + 1;
	if (victim != worker && max > THIEFS)
		max = THIEFS;
	spawn_queue_lock(victim);
	first = take_oldest(queue, max);
	spawn_queue_unlock(victim);
	ring_rest(worker, first);
	return first;
}

void weft__spawn_queue_empty(struct weft__worker *worker,
			     struct weft__chain *chain)
{
	struct weft__spawn_queue *queue = &worker->spawn_queue;

	spawn_queue_lock(worker);
	if (queue->oldest) { /* mutate: recheck=true */
		*(chain->count ? &chain->tail->next : &chain->head) =
			queue->oldest;
		chain->tail = queue->newest;
		chain->count += weft__spawn_queue_count(queue);
		queue->oldest = queue->newest = NULL;
		/* mutate: wake */
		count_add(queue, -weft__spawn_queue_count(queue));
	}
	spawn_queue_unlock(worker);
}
