/* SPDX-License-Identifier: MIT */
/*
 * Pipeline - tasks that each take one item after the other through all steps.
 *
 *	each task:	lock `next`, wait for room, next(), unlock
 *			work(), beside other tasks
 *			lay the item into the ring
 *			no task delivers: deliver all that is in turn
 *
 * The ring holds the items that are done, each at its place: the number of the
 * item, or, if the order does not matter, the number of items that were done
 * before.  `head` is the place that is delivered next.
 *
 * Invariants
 *   PIPE1  If the item at `head` is done and there is no error, a task
 *       delivers.  It looks at `head` under the lock before it gives that up.
 *   PIPE2  There are as many slots as items may be in flight, so a place is
 *       free again before the ring comes round to it.
 *   PIPE3  An item is dropped by the task that works on it or delivers it, or,
 *       if it is in the ring when all tasks have ended, by the caller.
 *   PIPE4  The task that waits for room holds `next` and no item that others
 *       wait for: it is the youngest.  All older items can go on without it.
 *
 * Rejected
 *   A task for each step, with channels between them.  Each item then wakes two
 *   tasks, and passes from processor to processor.
 *   A task for each item.  Those that are done wait with their stacks, and one
 *   slow item needs as many as may overtake it.
 */
#include "fs/pipeline.h"

#include <errno.h>
#include <stddef.h>

#include <weft/sync.h>
#include <weft/task.h>

#include "runtime/base/memory.h"
#include "runtime/sched/wait.h"

enum {
	ITEM_BYTES_MAX = 64 << 10,
	ITEMS_MAX = 1000000,
	ITEMS_OF_TASK = 4,
	TASKS_OF_WORKER = 4,
	ITEMS_BETWEEN_YIELDS = 32,
	FLAGS = WEFT_PIPELINE_UNORDERED | WEFT_PIPELINE_BLOCKING,
};
#define YIELD_NS WEFT_US(100)
#define PROGRESS_NS WEFT_MS(100)

/* An item in flight. */
struct slot {
	struct slot *next_free; /* under lock */
	size_t bytes;		/* immutable once admitted */
	uint64_t place;		/* in the ring */
	_Alignas(max_align_t) char item[];
};

struct run {
	struct weft_pipeline with; /* immutable */
	struct weft_scope *scope;  /* immutable: of the tasks */
	struct weft_mutex next;	   /* held during next() */
	struct weft_notify room;   /* for the task that waits with `next` */
	struct weft_lane lane;	   /* of the work, if that blocks */
	struct weft__lock lock;
	bool ended;	       /* under lock: next() is not called again */
	bool delivering;       /* under lock: a task does */
	bool waiting;	       /* under lock: for room */
	int error;	       /* under lock: the first */
	struct slot *free;     /* under lock */
	struct slot **ring;    /* under lock */
	uint64_t head, tail;   /* under lock: places, see above */
	size_t bytes_used;     /* under lock: of the items admitted */
	uint64_t items_done;   /* of the task that delivers */
	uint64_t bytes_done;   /* likewise */
	weft_nsec progress_ns; /* likewise: the last report */
};

/* When a task last let others run. */
struct pace {
	weft_nsec at_ns;
	unsigned items;
};

/* ---- Options, memory ----------------------------------------------------- */

int weft__pipeline_complete(const struct weft_runtime *runtime,
			    struct weft_pipeline *p)
{
	bool tasks_given = p->tasks != 0;

	if (!p->next || p->item_bytes == 0 || p->item_bytes > ITEM_BYTES_MAX ||
	    p->items_max > ITEMS_MAX || p->tasks > ITEMS_MAX ||
	    (p->flags & ~(unsigned)FLAGS) || p->reserved)
		return -EINVAL;
	if (!tasks_given)
		p->tasks = TASKS_OF_WORKER * runtime->workers_count;
	if (!p->items_max)
		p->items_max = ITEMS_OF_TASK * p->tasks;
	if (p->items_max > ITEMS_MAX)
		p->items_max = ITEMS_MAX;
	if (p->tasks > p->items_max)
		p->tasks = p->items_max;
	return 0;
}

static size_t slot_bytes(const struct run *run)
{
	size_t align = _Alignof(struct slot);

	return (sizeof(struct slot) + run->with.item_bytes + align - 1) &
	       ~(align - 1);
}

static size_t memory_bytes(const struct run *run)
{
	return run->with.items_max * (slot_bytes(run) + sizeof(struct slot *));
}

/* The slots, and the ring behind them. */
static void run_lay_out(struct run *run, char *memory)
{
	size_t bytes = slot_bytes(run);

	for (unsigned i = run->with.items_max; i-- > 0;) {
		struct slot *slot = (void *)(memory + i * bytes);

		slot->next_free = run->free;
		run->free = slot;
	}
	run->ring = (void *)(memory + run->with.items_max * bytes);
}

/* ---- Room, errors -------------------------------------------------------- */

/* Records the first error, and makes all tasks end.  Returns the first. */
static int run_fail(struct run *run, int error)
{
	weft__lock_take(&run->lock);
	if (!run->error)
		run->error = error;
	error = run->error;
	weft__lock_drop(&run->lock);
	weft_scope_cancel(run->scope);
	return error;
}

/* Gives back a slot, and what its item counted for. */
static void slot_put(struct run *run, struct slot *slot, size_t bytes)
{
	bool wakes;

	weft__lock_take(&run->lock);
	slot->next_free = run->free;
	run->free = slot;
	run->bytes_used -= bytes;
	wakes = run->waiting;
	run->waiting = false;
	weft__lock_drop(&run->lock);
	if (wakes)
		weft_notify_one(&run->room);
}

static void item_drop(struct run *run, struct slot *slot)
{
	if (run->with.drop)
		WEFT_SHIELD
			run->with.drop(run->with.arg, slot->item);
}

/* Under the lock; both are for the task that holds `next`. */
static bool slot_take(struct run *run, struct slot **ret_slot)
{
	struct slot *slot = run->free;

	if (!slot)
		return false;
	run->free = slot->next_free;
	*ret_slot = slot;
	return true;
}

static bool bytes_take(struct run *run, struct slot **slot)
{
	size_t max = run->with.bytes_max, bytes = (*slot)->bytes;

	if (max && run->bytes_used &&
	    (run->bytes_used > max || bytes > max - run->bytes_used))
		return false;
	run->bytes_used += bytes;
	if (!(run->with.flags & WEFT_PIPELINE_UNORDERED))
		(*slot)->place = run->tail++;
	return true;
}

/* Returns 1 once it was taken, 0 if there are no more items, or an error. */
static int room_take(struct run *run,
		     bool (*take)(struct run *run, struct slot **slot),
		     struct slot **slot)
{
	for (;;) {
		int r;

		weft__lock_take(&run->lock);
		r = run->error ? run->error : !run->ended;
		if (r <= 0 || take(run, slot)) {
			weft__lock_drop(&run->lock);
			return r;
		}
		run->waiting = true;
		weft__lock_drop(&run->lock);
		r = weft_notify_wait(&run->room);
		if (r < 0)
			return r;
	}
}

/* ---- The steps ----------------------------------------------------------- */

static void run_end(struct run *run)
{
	weft__lock_take(&run->lock);
	run->ended = true;
	weft__lock_drop(&run->lock);
}

/* With `next`.  As item_take(). */
static int item_next(struct run *run, struct slot **ret_slot)
{
	struct slot *slot;
	int r = room_take(run, slot_take, &slot);

	if (r <= 0)
		return r;
	slot->bytes = 0;
	memset(slot->item, 0, run->with.item_bytes);
	r = run->with.next(run->with.arg, slot->item, &slot->bytes);
	if (r <= 0) {
		run_end(run);
		slot_put(run, slot, 0);
		return r;
	}
	r = room_take(run, bytes_take, &slot);
	if (r < 0) {
		item_drop(run, slot);
		slot_put(run, slot, 0);
		return r;
	}
	*ret_slot = slot;
	return 1;
}

/* Returns 1 with an item, 0 if there are no more, or an error. */
static int item_take(struct run *run, struct slot **ret_slot)
{
	int r = weft_mutex_lock(&run->next);

	if (r < 0)
		return r;
	r = item_next(run, ret_slot);
	if (r < 0)
		/* The next task to hold the mutex must see it. */
		(void)run_fail(run, r);
	weft_mutex_unlock(&run->next);
	return r;
}

/* A job of the pool. */
struct job {
	weft_pipeline_fn fn;
	void *arg, *item;
};

static int64_t job_run(void *arg)
{
	const struct job *job = arg;

	return job->fn(job->arg, job->item);
}

int weft__pipeline_blocking(struct weft_lane *lane, weft_pipeline_fn fn,
			    void *arg, void *item)
{
	struct job job = { fn, arg, item };

	return (int)weft_blocking_lane(lane, job_run, &job);
}

static int item_work(struct run *run, struct slot *slot)
{
	const struct weft_pipeline *with = &run->with;

	if (!with->work)
		return 0;
	if (with->flags & WEFT_PIPELINE_BLOCKING)
		return weft__pipeline_blocking(&run->lane, with->work,
					       with->arg, slot->item);
	return with->work(with->arg, slot->item);
}

static void progress_report(struct run *run, bool at_end)
{
	weft_nsec now_ns;

	if (!run->with.progress)
		return;
	now_ns = weft_now();
	if (!at_end && now_ns - run->progress_ns < PROGRESS_NS)
		return;
	run->progress_ns = now_ns;
	run->with.progress(run->with.arg, run->items_done, run->bytes_done);
}

/* Of the task that delivers. */
static int item_deliver(struct run *run, struct slot *slot)
{
	size_t bytes = slot->bytes;
	int r = 0;

	if (run->with.deliver)
		r = run->with.deliver(run->with.arg, slot->item);
	if (r < 0)
		(void)run_fail(run, r);
	item_drop(run, slot);
	slot_put(run, slot, bytes);
	if (r < 0)
		return r;
	run->items_done++;
	run->bytes_done += bytes;
	progress_report(run, false);
	return 0;
}

/* Lets other tasks run, once in a while; reports an interruption then. */
static int pace_keep(struct pace *pace)
{
	int r;

	if (++pace->items < ITEMS_BETWEEN_YIELDS &&
	    weft_now() - pace->at_ns < YIELD_NS)
		return 0;
	r = weft_yield();
	*pace = (struct pace){ .at_ns = weft_now() };
	return r;
}

/* Under the lock: the item whose turn has come, or NULL. */
static struct slot *ring_take(struct run *run)
{
	struct slot **place = &run->ring[run->head % run->with.items_max];
	struct slot *slot = *place;

	if (!slot || run->error)
		return NULL;
	*place = NULL;
	run->head++;
	return slot;
}

static int ring_deliver(struct run *run, struct pace *pace)
{
	for (;;) {
		struct slot *slot;
		int r;

		weft__lock_take(&run->lock);
		slot = ring_take(run);
		run->delivering = slot != NULL;
		weft__lock_drop(&run->lock);
		if (!slot)
			return 0;
		r = item_deliver(run, slot);
		if (r == 0)
			r = pace_keep(pace);
		if (r < 0)
			return r;
	}
}

/* Lays an item that is done into the ring.  True: the caller delivers. */
static bool ring_put(struct run *run, struct slot *slot)
{
	bool delivers;

	weft__lock_take(&run->lock);
	if (run->with.flags & WEFT_PIPELINE_UNORDERED)
		slot->place = run->tail++;
	run->ring[slot->place % run->with.items_max] = slot;
	delivers = !run->delivering;
	run->delivering = true;
	weft__lock_drop(&run->lock);
	return delivers;
}

/* ---- The tasks ----------------------------------------------------------- */

/* Returns 1, 0 if there are no more items, or an error. */
static int item_run(struct run *run, struct pace *pace)
{
	struct slot *slot;
	int r = item_take(run, &slot);

	if (r <= 0)
		return r;
	r = item_work(run, slot);
	if (r < 0) {
		size_t bytes = slot->bytes;

		(void)run_fail(run, r);
		item_drop(run, slot);
		slot_put(run, slot, bytes);
		return r;
	}
	if (ring_put(run, slot))
		r = ring_deliver(run, pace);
	return r < 0 ? r : 1;
}

static int64_t task_run(void *arg)
{
	struct run *run = *(struct run **)arg;
	struct pace pace = { .at_ns = weft_now() };
	int r;

	while ((r = item_run(run, &pace)) > 0) {
		r = pace_keep(&pace);
		if (r < 0)
			break;
	}
	return r < 0 ? run_fail(run, r) : 0;
}

static void tasks_start(struct run *run)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.name = "pipeline";
	for (unsigned i = 0; i < run->with.tasks; i++) {
		int r = weft_go_opts(run->scope, task_run, &run, sizeof(run),
				     &opts);

		/* Fewer will do. */
		if (r < 0 && i == 0)
			(void)run_fail(run, r);
		if (r < 0)
			return;
	}
}

/* The items that were done and not delivered. */
static void ring_drop(struct run *run)
{
	for (unsigned i = 0; i < run->with.items_max; i++)
		if (run->ring[i])
			item_drop(run, run->ring[i]);
}

/* The tasks are cancelled by a deadline of the caller; it is out of time. */
static int error_of_caller(int error)
{
	int r = error == -ECANCELED ? weft_yield() : 0;

	return r < 0 ? r : error;
}

/* A task notes its error before it ends, so the scope's is of no interest. */
static int run_all(struct run *run)
{
	WEFT_SCOPE (tasks, NULL) {
		run->scope = tasks;
		tasks_start(run);
	}
	ring_drop(run);
	if (run->error)
		return error_of_caller(run->error);
	progress_report(run, true);
	return 0;
}

int weft_pipeline_run(const struct weft_pipeline *pipeline)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);
	struct run run = { .lane = WEFT_LANE_INIT("pipeline", 0) };
	const struct weft_allocator *from;
	void *memory;
	int r;

	if (!task)
		return -EPERM;
	r = weft__interrupted(worker, task);
	if (r < 0)
		return r;
	if (!pipeline || pipeline->size != sizeof(*pipeline))
		return -EINVAL;
	run.with = *pipeline;
	r = weft__pipeline_complete(worker->runtime, &run.with);
	if (r < 0)
		return r;
	from = worker->runtime->memory;
	memory = weft__memory_zeroed(from, memory_bytes(&run));
	if (!memory)
		return -ENOMEM;
	run_lay_out(&run, memory);
	r = run_all(&run);
	weft__memory_free(from, memory, memory_bytes(&run));
	return r;
}
