/* SPDX-License-Identifier: MIT */
/*
 * Steal - half of another worker's ring, and help for a worker that is late.
 *
 * A thief tries the victim's ring, then its outbound ring, then its spawn
 * queue.  A helper first empties the late worker's hand-off slots and does what
 * its poll would do, and then steals, too.
 */
#include "runtime/sched/steal.h"

#include "runtime/sched/wait.h"
#include "runtime/sched/worker_limit.h"

/* Takes half of a ring, at most `max` tasks: the oldest to run now, the others
 * into the worker's own ring. */
static struct weft__task *steal_ring(struct weft__worker *worker,
				     struct weft__runq *from, uint32_t max)
{
	struct weft__task *first;
	struct weft__claim claim;

	if (!weft__runq_claim(from, 2, max, &claim))
		return NULL;
	first = weft__runq_claimed(from, &claim, 0);
	for (uint32_t i = 1; i < claim.count; i++)
		if (!weft__runq_push(&worker->runq,
				     weft__runq_claimed(from, &claim, i)))
			weft__push_slow(worker,
					weft__runq_claimed(from, &claim, i));
	weft__runq_release(from);
	weft__count(worker, WEFT__N_STEALS_WON, 1);
	weft__count(worker, WEFT__N_STOLEN, claim.count);
	if (claim.count > 1)
		worker->notify = true;
	return first;
}

/* The same for tasks that never ran. */
static struct weft__task *steal_spawned(struct weft__worker *worker,
				      struct weft__worker *victim,
				      uint32_t max)
{
	uint32_t before = weft__runq_count(&worker->runq);
	struct weft__task *first = weft__spawn_queue_steal(worker, victim, max);

	if (!first)
		return NULL;
	weft__count(worker, WEFT__N_STEALS_WON, 1);
	weft__count(worker, WEFT__N_STOLEN,
		    1 + weft__runq_count(&worker->runq) - before);
	return first;
}

struct weft__task *weft__steal(struct weft__worker *worker,
			       struct weft__worker *victim, uint32_t max)
{
	struct weft__task *task;

	weft__count(worker, WEFT__N_STEALS_TRIED, 1);
	task = steal_ring(worker, &victim->runq, max);
	if (!task)
		task = steal_ring(worker, &victim->outbound, max);
	return task ? task : steal_spawned(worker, victim, max);
}

static bool is_late(struct weft__worker *worker, uint64_t now_ns)
{
	/* relaxed: compared with a clock. */
	uint64_t seen_ns = weft__load(&worker->seen_ns, relaxed);

	return seen_ns && now_ns > seen_ns &&
	       now_ns - seen_ns > weft__worker_limit_late_ns(worker->runtime);
}

/* A task that has waited long elsewhere does not go behind all that overflows
 * here. */
static void push_old(struct weft__worker *worker, struct weft__task *task)
{
	if (weft__runq_push(&worker->runq, task))
		weft__pushed(worker);
	else
		weft__push_slow(worker, task);
}

/* A worker has computed for too long: handles its completions, its submissions,
 * its timers, and the tasks in its hand-off slots.  Its ring is stolen from as
 * usual. */
static void help(struct weft__worker *worker, struct weft__worker *late,
		 uint64_t now_ns)
{
	struct weft__task *task =
		weft__handoff_slot_steal(&late->lifo, worker, late->fenced);
	struct weft__task *joiner =
		weft__handoff_slot_steal(&late->joining, worker, late->fenced);

	(void)worker->ops->help(worker, late, now_ns);
	if (joiner && !weft__joiner_park(joiner))
		weft__push(worker, joiner); /* mutate: wake */
	if (task)
		weft__push(worker, task);
	/* A helper may have much to do itself. */
	task = weft__steal(worker, late, weft__harvest_room(worker));
	if (task)
		push_old(worker, task);
	weft__count(worker, WEFT__N_HELPS, 1);
}

void weft__help_if_late(struct weft__worker *worker, struct weft__worker *other,
			uint64_t now_ns)
{
	if (is_late(other, now_ns) && !worker->runtime->help_off)
		help(worker, other, now_ns);
}

void weft__help_next(struct weft__worker *worker, uint64_t now_ns)
{
	struct weft__worker *other;

	worker->tick.looked_ns = now_ns;
	if (worker->next_help == worker->index)
		worker->next_help++;
	other = weft__peer(worker, worker->next_help);
	worker->next_help = (other->index + 1) % worker->runtime->workers_count;
	if (other != worker)
		weft__help_if_late(worker, other, now_ns);
}
