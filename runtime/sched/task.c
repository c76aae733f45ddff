/* SPDX-License-Identifier: MIT */
/*
 * Task records - where they come from and where they go.
 *
 * Records lie in chunks of 4096, which are mapped on demand, or come from the
 * program's allocator, and stay while the runtime lives.  An index never
 * changes its place: new records are carved in the order of their indices, and
 * `used` publishes them.  A free record lies in a worker's list
 * (task_pool.h), or in the shared lists under the lock: as a batch that one
 * gave back, or singly.
 *
 * Orderings: [task.chunk] in task.h.
 */
#include "runtime/sched/task.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/base/memory.h"
#include "runtime/sched/task_pool.h"

/* Records carved from a chunk at a time. */
enum { CARVE = 64 };

#define CHUNK_BYTES (sizeof(struct weft__task) * WEFT__TASK_CHUNK)

/* After the first GROUP chunks, chunks come GROUP at a time, on huge pages: a
 * program with tens of thousands of tasks has many more, and touches all of
 * them. */
enum { GROUP = 8 };
#define HUGE_BYTES ((size_t)2 << 20)
#define GROUP_BYTES (GROUP * CHUNK_BYTES)
_Static_assert(GROUP_BYTES % HUGE_BYTES == 0, "a group is whole huge pages");

int weft__tasks_init(struct weft_runtime *runtime, unsigned tasks_max)
{
	struct weft__task_slabs *slabs = &runtime->tasks;

	slabs->max = tasks_max;
	slabs->chunks_max =
		(tasks_max + WEFT__TASK_CHUNK - 1) >> WEFT__TASK_CHUNK_BITS;
	slabs->chunks = weft__memory_zeroed(
		slabs->memory, slabs->chunks_max * sizeof(*slabs->chunks));
	return slabs->chunks ? 0 : -ENOMEM;
}

static void chunk_free(struct weft__task_slabs *slabs,
		       struct weft__task *chunk)
{
	if (slabs->memory)
		weft__memory_apart_free(slabs->memory, chunk, CHUNK_BYTES);
	else
		munmap(chunk, CHUNK_BYTES);
}

void weft__tasks_fini(struct weft_runtime *runtime)
{
	struct weft__task_slabs *slabs = &runtime->tasks;

	if (!slabs->chunks)
		return;
	for (uint32_t i = 0; i < slabs->chunks_max; i++) {
		/* relaxed: no other thread is left. */
		struct weft__task *chunk =
			weft__load(&slabs->chunks[i], relaxed);

		if (chunk)
			chunk_free(slabs, chunk);
	}
	weft__memory_free(slabs->memory, slabs->chunks,
			  slabs->chunks_max * sizeof(*slabs->chunks));
}

struct weft__task *weft__task_at(struct weft_runtime *runtime, uint64_t id)
{
	return weft__record_at(runtime, id);
}

static void *memory_map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Memory for a group, aligned for huge pages. */
static char *group_map(void)
{
	char *memory = memory_map(GROUP_BYTES + HUGE_BYTES);
	size_t before;

	if (!memory)
		return NULL;
	before = -(uintptr_t)memory & (HUGE_BYTES - 1);
	if (before)
		munmap(memory, before);
	munmap(memory + before + GROUP_BYTES, HUGE_BYTES - before);
	/* A hint: without huge pages it is slower. */
	madvise(memory + before, GROUP_BYTES, MADV_HUGEPAGE);
	return memory + before;
}

/* One chunk, which need not be blank. */
static struct weft__task *chunk_new(struct weft__task_slabs *slabs)
{
	return slabs->memory ? weft__memory_from(slabs->memory, CHUNK_BYTES,
						 WEFT__MEMORY_APART) :
			       memory_map(CHUNK_BYTES);
}

static void group_new(struct weft__task_slabs *slabs, uint32_t chunk)
{
	uint32_t first = chunk - chunk % GROUP;
	char *memory = group_map();

	if (!memory)
		return;
	for (uint32_t i = 0; i < GROUP; i++) {
		char *at = memory + i * CHUNK_BYTES;

		if (first + i < slabs->chunks_max)
			/* relaxed: published by `used`. */
			weft__store(&slabs->chunks[first + i],
				    (struct weft__task *)(void *)at, relaxed);
		else
			munmap(at, CHUNK_BYTES);
	}
}

/* The chunk of an index, made now if need be; under the lock. */
static struct weft__task *tasks_chunk(struct weft__task_slabs *slabs,
				      uint32_t index)
{
	uint32_t chunk = index >> WEFT__TASK_CHUNK_BITS;
	weft__atomic(struct weft__task *) *place = &slabs->chunks[chunk];

	/* relaxed: written under the lock. */
	if (weft__load(place, relaxed))
		return weft__load(place, relaxed);
	if (chunk >= GROUP && !slabs->memory)
		group_new(slabs, chunk);
	else
		/* relaxed: published by `used`. */
		weft__store(place, chunk_new(slabs), relaxed);
	/* relaxed: written under the lock. */
	return weft__load(place, relaxed);
}

/* Adds new records to the worker's list; under the lock.  0 or -errno. */
static int tasks_carve(struct weft__task_slabs *slabs,
		       struct weft__task **list, uint32_t *count)
{
	/* relaxed: written under the lock. */
	uint32_t used = weft__load(&slabs->used, relaxed);
	uint32_t n = slabs->max - used < CARVE ? slabs->max - used : CARVE;
	struct weft__task *chunk;

	if (n == 0)
		return -EAGAIN;
	chunk = tasks_chunk(slabs, used);
	if (!chunk)
		return -ENOMEM;
	if (slabs->memory)
		memset(&chunk[used & (WEFT__TASK_CHUNK - 1)], 0,
		       n * sizeof(*chunk));
	/* Never across chunks: CARVE divides the size of one. */
	for (uint32_t i = n; i-- > 0;) {
		struct weft__task *task =
			&chunk[(used + i) & (WEFT__TASK_CHUNK - 1)];

		task->index = used + i;
		/* relaxed: published by `used`. */
		weft__store(&task->state, WEFT__GENERATION | WEFT__FREE,
			    relaxed);
		task->next = *list;
		*list = task;
	}
	*count += n;
	/* [task.chunk]: the chunk, and that its records are blank. */
	weft__store(&slabs->used, used + n, release);
	return 0;
}

/* Fills an empty list with a batch that a worker gave back, or with single
 * records, or with new ones. */
static int tasks_fetch(struct weft__task_slabs *slabs,
		       struct weft__worker *worker)
{
	struct weft__task *batch;
	int error = 0;

	weft__lock_take(&slabs->lock);
	batch = slabs->batches;
	if (batch) {
		slabs->batches = batch->handle_next;
		worker->caches.tasks = batch;
		worker->caches.tasks_count = WEFT__FREE_TASKS_BATCH;
	} else if (slabs->free) {
		worker->caches.tasks = slabs->free;
		worker->caches.tasks_count = slabs->free_count;
		slabs->free = NULL;
		slabs->free_count = 0;
	} else {
		error = tasks_carve(slabs, &worker->caches.tasks,
				    &worker->caches.tasks_count);
	}
	weft__lock_drop(&slabs->lock);
	return error;
}

static struct weft__task *task_none(int error)
{
	return (struct weft__task *)(intptr_t)error;
}

/* One record, for a caller that keeps no list. */
static struct weft__task *tasks_fetch_one(struct weft__task_slabs *slabs)
{
	struct weft__task *task;
	int error = 0;

	weft__lock_take(&slabs->lock);
	if (!slabs->free && slabs->batches) {
		slabs->free = slabs->batches;
		slabs->free_count = WEFT__FREE_TASKS_BATCH;
		slabs->batches = slabs->batches->handle_next;
	}
	if (!slabs->free)
		error = tasks_carve(slabs, &slabs->free, &slabs->free_count);
	task = slabs->free;
	if (task) {
		slabs->free = task->next;
		slabs->free_count--;
	}
	weft__lock_drop(&slabs->lock);
	return task ? task : task_none(error);
}

struct weft__task *weft__task_fetch(struct weft_runtime *runtime,
				    struct weft__worker *worker)
{
	int error;

	if (!worker || worker->caches.keep_no_tasks)
		return tasks_fetch_one(&runtime->tasks);
	error = tasks_fetch(&runtime->tasks, worker);
	return error < 0 ? task_none(error) : weft__task_new(runtime, worker);
}

/* Moves a batch to the shared list.  The worker that takes it will not have it
 * in its caches. */
void weft__tasks_give_back(struct weft__worker *worker)
{
	struct weft__task_slabs *slabs = &worker->runtime->tasks;
	struct weft__task *first = worker->caches.tasks, *last = first;
	struct weft__task *before[WEFT__AHEAD] = { NULL };

	for (int i = 1; i < WEFT__FREE_TASKS_BATCH; i++) {
		struct weft__task **some = &before[i % WEFT__AHEAD];

		if (*some)
			(*some)->ahead = last;
		*some = last;
		last = last->next;
	}
	worker->caches.tasks = last->next;
	worker->caches.tasks_count -= WEFT__FREE_TASKS_BATCH;
	last->next = NULL;
	weft__lock_take(&slabs->lock);
	first->handle_next = slabs->batches;
	slabs->batches = first;
	weft__lock_drop(&slabs->lock);
}

void weft__task_give_back(struct weft_runtime *runtime,
			  struct weft__task *task)
{
	struct weft__task_slabs *slabs = &runtime->tasks;

	weft__lock_take(&slabs->lock);
	task->next = slabs->free;
	slabs->free = task;
	slabs->free_count++;
	weft__lock_drop(&slabs->lock);
}
