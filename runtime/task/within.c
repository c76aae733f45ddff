/* SPDX-License-Identifier: MIT */
/*
 * Within - deadlines that hold for a block, and the reason to end a wait early.
 *
 *	task->within --> [inner] --outer--> [outer] --outer--> [inherited]
 *
 * Each block knows the earliest deadline of itself and the blocks around it.
 * Only the innermost block has its alarm armed, for that time, and not before
 * the first real suspension inside it.  When the alarm fires, the task gets
 * EXPIRED; the task then reads the clock to find the block whose deadline has
 * passed.
 *
 * A shield hides the blocks outside it: only blocks inside it are looked at.
 */
#include <errno.h>

#include "runtime/base/nsec.h"
#include "runtime/sched/future_room.h"
#include "runtime/sched/runtime.h"
#include "runtime/sched/wait.h"
#include "runtime/task/scope.h"
#include "runtime/task/within.h"

struct weft__within {
	struct weft__alarm alarm;
	uint64_t deadline_ns;
	uint64_t earliest_ns; /* of this block and those around it */
	struct weft_within *outer;
	struct weft__task *task;
	uint64_t inherited; /* this block spans the task's whole life */
} __attribute__((may_alias));

_Static_assert(sizeof(struct weft__within) <= sizeof(struct weft_within),
	       "the public struct has room for it");

struct weft__shield_words {
	struct weft_within *within; /* what the shield hides */
	uint64_t hides;		    /* cancellation, and no outer one does */
} __attribute__((may_alias));

_Static_assert(sizeof(struct weft__shield_words) ==
		       sizeof(struct weft__shield),
	       "the public struct has room for it");

static struct weft__within *block(struct weft_within *within)
{
	return (struct weft__within *)(void *)within;
}

/* Sets the task's innermost block; NULL: none. */
static void within_set(struct weft__task *task, struct weft_within *within)
{
	unsigned flags = weft__task_flags(task, ~WEFT__TASK_WITHIN);

	task->within = within;
	weft__task_flags_set(task, within ? flags | WEFT__TASK_WITHIN : flags);
}

static void within_push(struct weft_within *within, struct weft__task *task,
			uint64_t deadline_ns, bool inherited)
{
	struct weft__within *b = block(within);

	*b = (struct weft__within){
		.deadline_ns = deadline_ns,
		.earliest_ns = deadline_ns,
		.outer = task->within,
		.task = task,
		.inherited = inherited,
	};
	if (b->outer && block(b->outer)->earliest_ns < deadline_ns)
		b->earliest_ns = block(b->outer)->earliest_ns;
	within_set(task, within);
}

void weft__within_inherit(struct weft_within *within, struct weft__task *task)
{
	within_push(within, task, task->deadline_ns, true);
}

int weft_within_begin(struct weft_within *within, weft_nsec deadline_ns)
{
	struct weft__task *task = weft__running(weft__worker_self());

	if (!task)
		return -EPERM;
	within_push(within, task, weft__nsec_point(deadline_ns), false);
	return 0;
}

void weft_within_end(struct weft_within *within)
{
	struct weft__within *b = block(within);
	struct weft__worker *worker = weft__worker_self();

	weft__assert(weft__running(worker) == b->task &&
			     b->task->within == within,
		     "deadline blocks end in their task, inner ones first");
	if (b->alarm.armed)
		worker->ops->disarm(worker->runtime, &b->alarm);
	within_set(b->task, b->outer);
}

struct weft_within *weft__within_enter(struct weft_within *within,
				       weft_nsec deadline_ns)
{
	int error = weft_within_begin(within, deadline_ns);

	weft__assert(error == 0, "a deadline block outside of a task");
	return within;
}

weft_nsec weft__deadline_after(weft_nsec length_ns)
{
	return weft__nsec_after(weft_now(), length_ns);
}

void weft__deadline_arm_slow(struct weft__worker *worker,
			     struct weft__task *task)
{
	struct weft__within *b = block(task->within);

	if (b->alarm.armed || b->earliest_ns == WEFT_NEVER)
		return;
	b->alarm.task = weft__running_id(task);
	b->alarm.kind = WEFT__ALARM_EXPIRE;
	b->alarm.armed = true;
	worker->ops->arm(worker, &b->alarm, b->earliest_ns);
}

void weft__within_look(struct weft__worker *worker, struct weft__task *task)
{
	uint64_t earliest_ns = block(task->within)->earliest_ns;

	if (worker->ops->now(worker->runtime) >= earliest_ns)
		/* relaxed: the task reads its own word. */
		weft__or(&task->state, WEFT__EXPIRED, relaxed);
}

/* Whether a deadline has passed: 0, -ETIMEDOUT for the innermost block's own,
 * -ECANCELED for one around it. */
static int within_passed(struct weft__worker *worker, struct weft__task *task)
{
	uint64_t now_ns;
	struct weft__within *b;

	if (!task->within)
		return 0;
	now_ns = worker->ops->now(worker->runtime);
	b = block(task->within);
	if (now_ns < b->earliest_ns)
		return 0;
	if (b->inherited ||
	    (b->outer && now_ns >= block(b->outer)->earliest_ns))
		return -ECANCELED;
	return -ETIMEDOUT;
}

int weft__interrupted_slow(struct weft__worker *worker,
			   struct weft__task *task)
{
	/* relaxed: the caller acquired it. */
	uint64_t state = weft__load(&task->state, relaxed);
	int error;

	if ((state & (WEFT__CANCELLED | WEFT__SHIELDED)) == WEFT__CANCELLED) {
		weft__scopes_cancel(worker, task);
		return -ECANCELED;
	}
	if (!(state & WEFT__EXPIRED))
		return 0;
	/* Cleared before the clock is read: an alarm that fires in between
	 * sets it again.  pairs: [task.wake] */
	weft__and(&task->state, ~WEFT__EXPIRED, acquire);
	error = within_passed(worker, task);
	/* Tasks started under that deadline have inherited it. */
	if (error < 0)
		/* relaxed: level-triggered, until the block ends. */
		weft__or(&task->state, WEFT__EXPIRED, relaxed);
	return error;
}

bool weft_deadline_passed(void)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__self(worker);

	if (!task)
		return false;
	if (weft__task_is_future(task))
		return worker->ops->now(worker->runtime) >=
		       weft__future_deadline(task);
	return within_passed(worker, task) < 0;
}

weft_nsec weft_deadline(void)
{
	struct weft__task *task = weft__self(weft__worker_self());

	if (task && weft__task_is_future(task))
		return weft__future_deadline(task);
	return task && task->within ? block(task->within)->earliest_ns :
				      WEFT_NEVER;
}

uint64_t weft__within_deadline(struct weft__task *task)
{
	if (weft__task_is_future(task))
		return weft__future_deadline(task);
	return task->within ? block(task->within)->earliest_ns : WEFT_NEVER;
}

weft_nsec weft_now(void)
{
	struct weft__worker *worker = weft__worker_self();

	if (!worker)
		return weft__driver_default()->now(NULL);
	return worker->ops->now(worker->runtime);
}

/* ---- Shields ------------------------------------------------------------- */

struct weft__shield *weft__shield_enter(struct weft__shield *shield)
{
	struct weft__shield_words *words = (void *)shield;
	struct weft__task *task = weft__running(weft__worker_self());

	weft__assert(task != NULL, "a shield outside of a task");
	words->within = task->within;
	words->hides = false;
	within_set(task, NULL);
	/* relaxed: the task's own flag. */
	if (!(weft__or(&task->state, WEFT__SHIELDED, relaxed) &
	      WEFT__SHIELDED))
		words->hides = true;
	return shield;
}

void weft__shield_leave(struct weft__shield *shield)
{
	struct weft__shield_words *words = (void *)shield;
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);

	weft__assert(task && !task->within,
		     "a deadline block inside a shield outlives it");
	within_set(task, words->within);
	/* relaxed: the task's own flags. */
	if (words->hides)
		weft__and(&task->state, ~WEFT__SHIELDED, relaxed);
	/* An alarm that fired meanwhile was ignored. */
	if (within_passed(worker, task) < 0)
		weft__or(&task->state, WEFT__EXPIRED, relaxed);
}
