/* SPDX-License-Identifier: MIT */
/*
 * What do other queues cost in the place of weft's?
 *
 *	bench_queues inject|spread|short [--workers N] [--label L]
 *
 * The label chooses what is measured: chunked (of inject), global or local (of
 * spread and short); weft's own with any other.
 *
 * inject: the injection queue, an intrusive list; or a list of chunks of 64
 * tasks each, under the same lock.  A task is pushed by itself; the tasks are
 * taken in shares of 64.  `inject_push_take`: one thread does both, with half
 * of DEPTH tasks queued.  `inject_two`: one thread pushes, another one takes.
 *
 * spread, short: weft; or a scheduler that has one kind of queue alone.
 * global: all threads share one queue under a mutex.  local: each thread has a
 * queue of its own, and none takes from another.  spread: one task starts
 * 20,000 others, each of which computes for about 2 us; the figure is the time
 * for all, divided by their number.  short: 1000 tasks yield 1000 times each.
 *
 * What would fool it: the baselines' tasks are functions without stacks, which
 * are called again after a yield.  So local in short is what a run costs
 * without a switch, and no goal; global is at the same advantage, and shows
 * what its lock costs.  In spread the computing is most of the time, and with
 * one free processor all take the same.  An allocator that keeps chunks in a
 * thread's cache is fast if the same thread frees them; in inject_two another
 * one does.  Intrusive links are in the tasks, which stay in the cache here.
 */
#include <pthread.h>
#include <sched.h>

#include "bench/bench.h"
#include "bench/queue_baseline.h"
#include "runtime/sched/inject.h"
#include "runtime/sched/task.h"

enum { DEPTH = 256, PUSHES = 4000000, SHARE = 64 };

/* ---- A queue of chunks --------------------------------------------------- */

struct chunk {
	struct chunk *next;
	uint32_t begin, end;
	struct weft__task *tasks[64];
};

/* All under the lock, but for the look at `length`. */
struct chunked {
	struct weft__lock lock WEFT__APART;
	struct chunk *head, *tail;
	weft__atomic(uint32_t) length;
};

static void chunked_set_length(struct chunked *queue, uint32_t length)
{
	/* relaxed: as weft__inject.length. */
	weft__store(&queue->length, length, relaxed);
}

static uint32_t chunked_length(struct chunked *queue)
{
	/* relaxed: as weft__inject.length. */
	return weft__load(&queue->length, relaxed);
}

static struct chunk *chunk_new(void)
{
	struct chunk *chunk = malloc(sizeof(*chunk));

	if (!chunk)
		bench_die("malloc", -ENOMEM);
	chunk->next = NULL;
	chunk->begin = chunk->end = 0;
	return chunk;
}

static void chunked_push(struct chunked *queue, struct weft__task *task)
{
	weft__lock_take(&queue->lock);
	if (!queue->tail || queue->tail->end == 64) {
		struct chunk *chunk = chunk_new();

		if (queue->tail)
			queue->tail->next = chunk;
		else
			queue->head = chunk;
		queue->tail = chunk;
	}
	queue->tail->tasks[queue->tail->end++] = task;
	chunked_set_length(queue, chunked_length(queue) + 1);
	weft__lock_drop(&queue->lock);
}

/* Copies the tasks out; an empty chunk is freed after the lock. */
static uint32_t chunked_take(struct chunked *queue, struct weft__task **tasks)
{
	struct chunk *done = NULL;
	uint32_t count = 0;

	weft__lock_take(&queue->lock);
	while (count < SHARE && queue->head) {
		struct chunk *chunk = queue->head;

		while (count < SHARE && chunk->begin < chunk->end)
			tasks[count++] = chunk->tasks[chunk->begin++];
		if (chunk->begin < chunk->end || chunk->end < 64)
			break;
		queue->head = chunk->next;
		if (!queue->head)
			queue->tail = NULL;
		chunk->next = done;
		done = chunk;
	}
	chunked_set_length(queue, chunked_length(queue) - count);
	weft__lock_drop(&queue->lock);
	while (done) {
		struct chunk *next = done->next;

		free(done);
		done = next;
	}
	return count;
}

/* ---- Injection ----------------------------------------------------------- */

static struct weft__inject inject;
static struct chunked chunked;
static struct weft__task *tasks; /* DEPTH of them, in turn */
static bool in_chunks;

/* Is there room for one more, so that no task is queued twice? */
static bool has_room(void)
{
	return (in_chunks ? chunked_length(&chunked) :
			    weft__inject_length(&inject)) < DEPTH / 2;
}

static void push(uint64_t i)
{
	struct weft__task *task = &tasks[i % DEPTH];
	struct weft__chain chain = { 0 };

	if (in_chunks) {
		chunked_push(&chunked, task);
		return;
	}
	weft__chain_add(&chain, task);
	weft__inject_push(&inject, &chain);
}

/* Takes a share, and looks at each task.  Returns how many there were. */
static uint32_t take(void)
{
	struct weft__task *taken[SHARE], *task;
	struct weft__chain chain;
	uint32_t count;

	if (in_chunks) {
		count = chunked_take(&chunked, taken);
		for (uint32_t i = 0; i < count; i++)
			taken[i]->pin++;
		return count;
	}
	weft__inject_take(&inject, SHARE, &chain);
	count = chain.count;
	while ((task = weft__chain_take(&chain)))
		task->pin++;
	return count;
}

static void inject_alone(const char *bench)
{
	uint64_t t0 = now_ns(), taken = 0;

	for (uint64_t i = 0; i < PUSHES; i++) {
		push(i);
		if (!has_room())
			taken += take();
	}
	while (taken < PUSHES)
		taken += take();
	per_op(bench, t0, PUSHES);
}

static void *push_all(void *arg)
{
	for (uint64_t i = 0; i < PUSHES; i++) {
		while (!has_room())
			(void)sched_yield();
		push(i);
	}
	return arg;
}

static void inject_two(const char *bench)
{
	uint64_t t0 = now_ns(), taken = 0;
	pthread_t thread;

	bench_must("pthread_create",
		   -pthread_create(&thread, NULL, push_all, NULL));
	while (taken < PUSHES) {
		uint32_t count = take();

		taken += count;
		if (!count)
			(void)sched_yield();
	}
	(void)pthread_join(thread, NULL);
	per_op(bench, t0, PUSHES);
}

static void inject_run(void)
{
	tasks = aligned_alloc(_Alignof(struct weft__task),
			      DEPTH * sizeof(*tasks));
	if (!tasks)
		bench_die("aligned_alloc", -ENOMEM);
	memset(tasks, 0, DEPTH * sizeof(*tasks));
	in_chunks = strcmp(out_label, "chunked") == 0;
	inject_alone("inject_push_take");
	inject_two("inject_two");
	free(tasks);
}

/* ---- Schedulers ---------------------------------------------------------- */

static int64_t spin_2us(void *arg)
{
	(void)arg;
	baseline_spin();
	return 0;
}

static int64_t weft_spread(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < BASELINE_SPREAD; i++)
			bench_go(all, spin_2us, NULL, 0);
	return 0;
}

static int64_t yields(void *arg)
{
	(void)arg;
	for (int i = 0; i < BASELINE_YIELDS; i++)
		bench_must("weft_yield", weft_yield());
	return 0;
}

static int64_t weft_short(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < BASELINE_TASKS; i++)
			bench_go(all, yields, NULL, 0);
	return 0;
}

/* Runs spread or short, of weft or of a baseline. */
static void schedule(const char *bench, bool spreads)
{
	bool local = strcmp(out_label, "local") == 0;
	uint64_t ops = spreads ? BASELINE_SPREAD :
				 (uint64_t)BASELINE_TASKS * BASELINE_YIELDS;
	uint64_t t0 = now_ns();

	if (local || strcmp(out_label, "global") == 0)
		baseline_run(out_workers, local, spreads);
	else
		bench_run(spreads ? weft_spread : weft_short, NULL);
	per_op(bench, t0, ops);
}

int main(int argc, char **argv)
{
	static const struct bench_option none[] = { { NULL, NULL, false } };
	const char *what = bench_parse(argc, argv, none);

	if (strcmp(what, "inject") == 0) {
		inject_run();
	} else if (strcmp(what, "spread") == 0) {
		schedule("queue_spread", true);
	} else if (strcmp(what, "short") == 0) {
		schedule("queue_short", false);
	} else {
		fprintf(stderr, "bench_queues: no bench \"%s\"\n", what);
		return 2;
	}
	return 0;
}
