/* SPDX-License-Identifier: MIT */
/*
 * Baselines of bench_queues - a global queue alone, and local queues alone.
 *
 * A task is a function without a stack.  A yield puts it behind the others of
 * the queue that it came from.  Tasks that a task starts go to the queue of its
 * thread, or to the global one.  In short, which has its tasks from the start,
 * local queues get an equal part each.
 */
#include "bench/queue_baseline.h"

#include <pthread.h>

#include "bench/bench.h"
#include "runtime/base/atomic.h"

struct job {
	struct job *next;
	bool starts; /* the others; else it computes or yields */
	int yields;  /* left */
};

struct queue {
	pthread_mutex_t mutex; /* of the global queue; unused in a local one */
	pthread_cond_t changed;
	struct job *head, *tail;
} __attribute__((aligned(128)));

/* One run. */
static struct {
	struct queue *queues;
	struct job *jobs;
	bool local;
	weft__atomic(int) left; /* jobs that have not ended */
} run;

void baseline_spin(void)
{
	/* Each turn waits for the one before: about a cycle or two each. */
	for (uint64_t i = 0, x = 1; i < 2000; i++) {
		x = x * 5 + i;
		__asm__ volatile("" : "+r"(x));
	}
}

/* ---- Queues -------------------------------------------------------------- */

static void queue_add(struct queue *queue, struct job *job)
{
	job->next = NULL;
	if (queue->head)
		queue->tail->next = job;
	else
		queue->head = job;
	queue->tail = job;
}

static void push(struct queue *queue, struct job *job)
{
	if (run.local) {
		queue_add(queue, job);
		return;
	}
	(void)pthread_mutex_lock(&queue->mutex);
	queue_add(queue, job);
	(void)pthread_mutex_unlock(&queue->mutex);
	(void)pthread_cond_signal(&queue->changed);
}

static struct job *queue_take(struct queue *queue)
{
	struct job *job = queue->head;

	if (job)
		queue->head = job->next;
	return job;
}

static bool all_ended(void)
{
	/* pairs: [baseline.end] */
	return weft__load(&run.left, acquire) == 0;
}

/* NULL: there will be no more. */
static struct job *pop(struct queue *queue)
{
	struct job *job;

	if (run.local)
		return queue_take(queue);
	(void)pthread_mutex_lock(&queue->mutex);
	while (!(job = queue_take(queue)) && !all_ended())
		(void)pthread_cond_wait(&queue->changed, &queue->mutex);
	(void)pthread_mutex_unlock(&queue->mutex);
	return job;
}

/* ---- Jobs ---------------------------------------------------------------- */

static void job_end(struct queue *queue)
{
	/* pairs: [baseline.end] */
	if (weft__sub(&run.left, 1, acq_rel) > 1 || run.local)
		return;
	(void)pthread_mutex_lock(&queue->mutex);
	(void)pthread_mutex_unlock(&queue->mutex);
	(void)pthread_cond_broadcast(&queue->changed);
}

static void job_run(struct queue *queue, struct job *job)
{
	if (job->starts) {
		for (int i = 1; i <= BASELINE_SPREAD; i++)
			push(queue, &run.jobs[i]);
	} else if (job->yields > 0) {
		job->yields--;
		push(queue, job);
		return;
	} else if (job->yields < 0) {
		baseline_spin();
	}
	job_end(queue);
}

static void *serve(void *arg)
{
	struct queue *queue = arg;
	struct job *job;

	while ((job = pop(queue)))
		job_run(queue, job);
	return NULL;
}

/* ---- A run --------------------------------------------------------------- */

static void queues_fill(int queues, bool spreads)
{
	int jobs = spreads ? 1 + BASELINE_SPREAD : BASELINE_TASKS;

	run.jobs = bench_alloc((size_t)jobs, sizeof(*run.jobs));
	/* relaxed: before the threads. */
	weft__store(&run.left, jobs, relaxed);
	for (int i = 0; i < jobs; i++)
		run.jobs[i].yields = spreads ? -1 : BASELINE_YIELDS;
	run.jobs[0].starts = spreads;
	for (int i = 0; i < (spreads ? 1 : jobs); i++)
		queue_add(&run.queues[i % queues], &run.jobs[i]);
}

void baseline_run(int threads, bool local, bool spreads)
{
	int queues = local ? threads : 1;
	pthread_t *ids = bench_alloc((size_t)threads, sizeof(*ids));

	run.local = local;
	run.queues = aligned_alloc(128, (size_t)queues * sizeof(*run.queues));
	if (!run.queues)
		bench_die("aligned_alloc", -ENOMEM);
	for (int i = 0; i < queues; i++) {
		run.queues[i].head = NULL;
		(void)pthread_mutex_init(&run.queues[i].mutex, NULL);
		(void)pthread_cond_init(&run.queues[i].changed, NULL);
	}
	queues_fill(queues, spreads);
	for (int i = 1; i < threads; i++)
		bench_must("pthread_create",
			   -pthread_create(&ids[i], NULL, serve,
					   &run.queues[local ? i : 0]));
	(void)serve(&run.queues[0]);
	for (int i = 1; i < threads; i++)
		(void)pthread_join(ids[i], NULL);
	free(run.queues);
	free(run.jobs);
	free(ids);
}
