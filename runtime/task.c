/* SPDX-License-Identifier: MIT */
#include "runtime/task.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/runtime.h"
#include "runtime/worker.h"

/* Records carved from a chunk at a time. */
enum { CARVE = 64 };

#define CHUNK_BYTES (sizeof(struct weft__task) * WEFT__TASK_CHUNK)

int weft__tasks_init(struct weft_runtime *runtime, unsigned tasks_max)
{
	struct weft__task_slabs *slabs = &runtime->tasks;

	slabs->most = tasks_max;
	slabs->chunks_most =
		(tasks_max + WEFT__TASK_CHUNK - 1) >> WEFT__TASK_CHUNK_BITS;
	slabs->chunks = calloc(slabs->chunks_most, sizeof(*slabs->chunks));
	return slabs->chunks ? 0 : -ENOMEM;
}

void weft__tasks_fini(struct weft_runtime *runtime)
{
	struct weft__task_slabs *slabs = &runtime->tasks;

	if (!slabs->chunks)
		return;
	for (uint32_t i = 0; i < slabs->chunks_most; i++) {
		/* relaxed: nobody else is left. */
		struct weft__task *chunk =
			weft__load(&slabs->chunks[i], relaxed);

		if (chunk)
			munmap(chunk, CHUNK_BYTES);
	}
	free(slabs->chunks);
}

struct weft__task *weft__task_at(struct weft_runtime *runtime, uint64_t id)
{
	struct weft__task_slabs *slabs = &runtime->tasks;
	uint32_t index = (uint32_t)id;
	struct weft__task *chunk;

	/* pairs: [task.chunk] */
	if (index >= weft__load(&slabs->used, acquire))
		return NULL;
	/* relaxed: published by `used`. */
	chunk = weft__load(&slabs->chunks[index >> WEFT__TASK_CHUNK_BITS],
			   relaxed);
	return &chunk[index & (WEFT__TASK_CHUNK - 1)];
}

/* The chunk of an index, mapped if it is not yet; under the lock. */
static struct weft__task *tasks_chunk(struct weft__task_slabs *slabs,
				      uint32_t index)
{
	weft__atomic(struct weft__task *) *place =
		&slabs->chunks[index >> WEFT__TASK_CHUNK_BITS];
	/* relaxed: written under the lock. */
	struct weft__task *chunk = weft__load(place, relaxed);

	if (chunk)
		return chunk;
	chunk = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (chunk == MAP_FAILED)
		return NULL;
	/* relaxed: published by `used`. */
	weft__store(place, chunk, relaxed);
	return chunk;
}

/* New records for the worker's list; under the lock.  -errno. */
static int tasks_carve(struct weft__task_slabs *slabs,
		       struct weft__task **list, uint32_t *count)
{
	/* relaxed: written under the lock. */
	uint32_t used = weft__load(&slabs->used, relaxed);
	uint32_t n = slabs->most - used < CARVE ? slabs->most - used : CARVE;
	struct weft__task *chunk;

	if (n == 0)
		return -EAGAIN;
	chunk = tasks_chunk(slabs, used);
	if (!chunk)
		return -ENOMEM;
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

/* Fills an empty list from the shared one, or with new records. */
static int tasks_fetch(struct weft__task_slabs *slabs,
		       struct weft__task **list, uint32_t *count,
		       uint32_t most)
{
	int error = 0;

	weft__lock_take(&slabs->lock);
	while (slabs->free && *count < most) {
		struct weft__task *task = slabs->free;

		slabs->free = task->next;
		slabs->free_count--;
		task->next = *list;
		*list = task;
		(*count)++;
	}
	if (!*list)
		error = tasks_carve(slabs, list, count);
	weft__lock_drop(&slabs->lock);
	return error;
}

struct weft__task *weft__task_new(struct weft_runtime *runtime,
				  struct weft__worker *worker, int *ret_error)
{
	struct weft__task *task = NULL;
	uint32_t count = 0;
	int error;

	if (!worker) {
		/* A foreign thread keeps no list: what it does not use of the
		 * batch goes straight back. */
		error = tasks_fetch(&runtime->tasks, &task, &count, 1);
		if (error < 0) {
			*ret_error = error;
			return NULL;
		}
		weft__lock_take(&runtime->tasks.lock);
		while (task->next) {
			struct weft__task *rest = task->next;

			task->next = rest->next;
			rest->next = runtime->tasks.free;
			runtime->tasks.free = rest;
			runtime->tasks.free_count++;
		}
		weft__lock_drop(&runtime->tasks.lock);
		return task;
	}
	if (weft__unlikely(!worker->free_tasks)) {
		error = tasks_fetch(&runtime->tasks, &worker->free_tasks,
				    &worker->free_tasks_count,
				    WEFT__FREE_TASKS_BATCH);
		if (error < 0) {
			*ret_error = error;
			return NULL;
		}
	}
	task = worker->free_tasks;
	worker->free_tasks = task->next;
	worker->free_tasks_count--;
	return task;
}

/* Moves a batch to the shared list. */
static void tasks_give_back(struct weft_runtime *runtime,
			    struct weft__worker *worker)
{
	struct weft__task *first = worker->free_tasks, *last = first;

	for (int i = 1; i < WEFT__FREE_TASKS_BATCH; i++)
		last = last->next;
	worker->free_tasks = last->next;
	worker->free_tasks_count -= WEFT__FREE_TASKS_BATCH;
	weft__lock_take(&runtime->tasks.lock);
	last->next = runtime->tasks.free;
	runtime->tasks.free = first;
	runtime->tasks.free_count += WEFT__FREE_TASKS_BATCH;
	weft__lock_drop(&runtime->tasks.lock);
}

void weft__task_free(struct weft_runtime *runtime, struct weft__worker *worker,
		     struct weft__task *task)
{
	/* relaxed: the generation is the caller's to change. */
	uint64_t state = weft__load(&task->state, relaxed);
	uint64_t next = (state & ~(WEFT__GENERATION - 1)) + WEFT__GENERATION;

	weft__check(!task->scopes && !task->within && !task->sibling_link,
		    "a task ended with a scope, a deadline block or a link");
	if (weft__unlikely(next == 0))
		next = WEFT__GENERATION; /* 0 would make the id 0 */
	/* A stale handle that meets the new generation does nothing.
	 * pairs: [task.free] */
	weft__store(&task->state, next | WEFT__FREE, release);
	if (!worker) {
		weft__lock_take(&runtime->tasks.lock);
		task->next = runtime->tasks.free;
		runtime->tasks.free = task;
		runtime->tasks.free_count++;
		weft__lock_drop(&runtime->tasks.lock);
		return;
	}
	task->next = worker->free_tasks;
	worker->free_tasks = task;
	if (weft__unlikely(++worker->free_tasks_count > WEFT__FREE_TASKS_MOST))
		tasks_give_back(runtime, worker);
}
