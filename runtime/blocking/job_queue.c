/* SPDX-License-Identifier: MIT */
/*
 * Job queue - the lanes that may begin a job, in turn, and the jobs that run.
 * The header has the model and the invariants JOB1 to JOB4.
 */
#include "runtime/blocking/job_queue.h"

static void turn_add(struct weft__job_queue *jobs, struct weft__job_lane *lane)
{
	lane->next = NULL;
	lane->prev = jobs->turn_last;
	*(lane->prev ? &lane->prev->next : &jobs->turn) = lane;
	jobs->turn_last = lane;
	lane->in_turn = true;
}

static void turn_remove(struct weft__job_queue *jobs,
			struct weft__job_lane *lane)
{
	*(lane->prev ? &lane->prev->next : &jobs->turn) = lane->next;
	*(lane->next ? &lane->next->prev : &jobs->turn_last) = lane->prev;
	lane->in_turn = false;
}

/* Puts the lane in turn, or takes it out, as JOB1 demands. */
static void turn_update(struct weft__job_queue *jobs,
			struct weft__job_lane *lane)
{
	bool may_begin = lane->queued &&
			 (!lane->max || lane->running < lane->max);

	if (may_begin && !lane->in_turn)
		turn_add(jobs, lane);
	else if (!may_begin && lane->in_turn)
		turn_remove(jobs, lane);
}

/* Binds the lane to this pool, as JOB2 demands. */
static void lane_bind(struct weft__job_queue *jobs, struct weft__job_lane *lane)
{
	struct weft__job_queue *none = NULL;

	/* relaxed: if it is this pool, the pool's lock guards the lane. */
	if (weft__load(&lane->jobs, relaxed) == jobs)
		return;
	/* pairs: [lane.bind] */
	weft__assert(weft__cas(&lane->jobs, &none, jobs, acquire),
		     "a lane has jobs of two runtimes at the same time");
}

static void lane_unbind(struct weft__job_lane *lane)
{
	if (!lane->queued && !lane->running) /* mutate: recheck=true */
		/* pairs: [lane.bind] */
		weft__store(&lane->jobs, NULL, release);
}

static bool is_first(const struct weft__job_lane *lane,
		     const struct weft__job *job)
{
	const struct weft__waiter *head = lane->waiters.head;

	return head &&
	       ((const struct weft__job *)head->item)->arrival > job->arrival;
}

static void job_enqueue(struct weft__job_queue *jobs, struct weft__job *job)
{
	struct weft__job_lane *lane = job->lane;

	lane_bind(jobs, lane);
	if (is_first(lane, job))
		weft__waiters_add_first(&lane->waiters, &job->waiter);
	else
		weft__waiters_add(&lane->waiters, &job->waiter);
	lane->queued++;
	turn_update(jobs, lane); /* mutate: wake */
}

bool weft__job_queue_add(struct weft__job_queue *jobs, struct weft__job *job)
{
	const struct weft__job_lane *lane = job->lane;

	job->arrival = jobs->arrivals++;
	job_enqueue(jobs, job);
	jobs->queued_count++;
	return !lane->max || lane->running + lane->queued <= lane->max;
}

enum weft__follows weft__job_queue_follow(struct weft__job_queue *jobs,
					  struct weft__job *ahead,
					  struct weft__job *job)
{
	if (ahead->over) /* mutate: recheck=false */
		return ahead->begun ? WEFT__FOLLOWS_ENDED : WEFT__FOLLOWS_TAKEN;
	job->arrival = jobs->arrivals++;
	job->ahead = ahead;
	ahead->behind = job;
	jobs->queued_count++;
	return WEFT__FOLLOWS;
}

/* The job is over: the one behind it is queued. */
static void job_over(struct weft__job_queue *jobs, struct weft__job *job)
{
	struct weft__job *behind = job->behind;

	job->over = true; /* mutate: wake */
	if (!behind)
		return;
	behind->ahead = NULL;
	job_enqueue(jobs, behind); /* mutate: wake */
}

/* Takes back a job that is behind another. */
static void job_unfollow(struct weft__job_queue *jobs, struct weft__job *job)
{
	job->over = true; /* mutate: wake */
	job->ahead->behind = job->behind;
	if (job->behind)
		job->behind->ahead = job->ahead;
	jobs->queued_count--;
}

static void job_unqueue(struct weft__job_queue *jobs, struct weft__job *job)
{
	weft__waiters_remove(&job->lane->waiters, &job->waiter);
	job->lane->queued--;
	jobs->queued_count--;
}

void weft__job_queue_remove(struct weft__job_queue *jobs, struct weft__job *job)
{
	if (job->ahead) {
		job_unfollow(jobs, job);
		return;
	}
	job_unqueue(jobs, job);
	job_over(jobs, job);
	turn_update(jobs, job->lane); /* mutate: wake */
	lane_unbind(job->lane);	      /* mutate: wake */
}

struct weft__job *weft__job_queue_take(struct weft__job_queue *jobs)
{
	struct weft__job_lane *lane = jobs->turn;
	struct weft__job *job;

	if (!lane)
		return NULL;
	job = lane->waiters.head->item;
	job_unqueue(jobs, job);
	lane->running++;
	turn_remove(jobs, lane);
	turn_update(jobs, lane); /* mutate: wake */
	job->begun = true;
	weft__waiters_add(&jobs->running, &job->waiter);
	jobs->running_count++;
	return job;
}

void weft__job_queue_end(struct weft__job_queue *jobs, struct weft__job *job)
{
	weft__waiters_remove(&jobs->running, &job->waiter);
	jobs->running_count--;
	job->lane->running--;
	job_over(jobs, job);
	turn_update(jobs, job->lane); /* mutate: wake */
	lane_unbind(job->lane);	      /* mutate: wake */
}
