/* SPDX-License-Identifier: MIT */
/*
 * Scope - cancelling, races, flags, and the life of a scope.  The header has
 * the model and the ordering.
 */
#include "runtime/task/scope.h"

#include <errno.h>
#include <string.h>

#include "runtime/sched/task_pool.h"
#include "runtime/sched/upcalls.h"
#include "runtime/sched/wait.h"
#include "runtime/task/scope_limit.h"

void weft__scope_init(struct weft_scope *scope, enum weft__scope_kind kind,
		      struct weft_runtime *runtime, struct weft__task *owner)
{
	struct weft__scope *s = weft__scope(scope);

	memset(scope, 0, sizeof(*scope));
	s->kind = kind;
	s->runtime = runtime;
	s->owner = owner;
	s->owner_id = owner ? weft__running_id(owner) : 0;
}

/* ---- Cancelling ---------------------------------------------------------- */

void weft__scope_link(struct weft__task *task)
{
	struct weft__scope *s = weft__scope(task->scope);

	weft__lock_take(&s->lock);
	task->sibling_next = s->linked;
	task->sibling_link = &s->linked;
	if (s->linked)
		s->linked->sibling_link = &task->sibling_next;
	s->linked = task;
	if (weft__scope_is(s, WEFT__SCOPE_CANCELLED))
		/* relaxed: the task reads its own word. */
		weft__or(&task->state, WEFT__CANCELLED, relaxed);
	weft__task_mark(task, WEFT__TASK_LINKED);
	weft__lock_drop(&s->lock);
}

void weft__scope_unlink(struct weft__task *task)
{
	struct weft__scope *s = weft__scope(task->scope);

	weft__lock_take(&s->lock);
	*task->sibling_link = task->sibling_next;
	if (task->sibling_next)
		task->sibling_next->sibling_link = task->sibling_link;
	task->sibling_link = NULL;
	weft__lock_drop(&s->lock);
}

/* Of the first task, or the root scope, of a runtime of weft_run(). */
static bool is_outermost(struct weft__scope *s)
{
	/* relaxed: set before that task opens a scope. */
	uint64_t main_id = weft__load(&s->runtime->main_id, relaxed);

	return main_id &&
	       (!s->owner_id || (s->owner_id == main_id && !s->outer));
}

static void scope_cancel(struct weft__worker *worker, struct weft__scope *s)
{
	struct weft__waiter *starters = NULL;
	struct weft__chain chain = { 0 };
	struct weft__task *task;

	weft__lock_take(&s->lock);
	if (!weft__scope_is(s, WEFT__SCOPE_CANCELLED)) {
		weft__scope_mark(s, WEFT__SCOPE_CANCELLED);
		for (task = s->linked; task; task = task->sibling_next)
			/* A linked task has not ended: its id is good. */
			if (weft__task_interrupt(task, weft__running_id(task),
						 WEFT__CANCELLED))
				weft__chain_add(&chain, task);
		if (weft__scope_is(s, WEFT__SCOPE_LIMITED))
			starters = weft__limit_clear(s);
	}
	weft__lock_drop(&s->lock);
	if (weft__unlikely(is_outermost(s)))
		weft__runtime_ends(s->runtime, !s->owner_id);
	weft__limit_refuse(worker, starters);
	while ((task = weft__chain_take(&chain)))
		weft__enqueue(s->runtime, worker, task);
}

void weft__scopes_cancel(struct weft__worker *worker, struct weft__task *task)
{
	struct weft_scope *scope = task->scopes;

	for (; scope; scope = weft__scope(scope)->outer)
		if (!weft__scope_is(weft__scope(scope), WEFT__SCOPE_CANCELLED))
			scope_cancel(worker, weft__scope(scope));
}

void weft_scope_cancel(struct weft_scope *scope)
{
	struct weft__worker *worker = weft__worker_self();

	scope_cancel(worker, weft__scope_open(scope));
}

void weft_scope_fail(struct weft_scope *scope, int64_t error)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__scope *s = weft__scope_open(scope);

	weft__assert(error < 0, "a scope fails with a negative error");
	weft__scope_child_failed(worker, scope, error);
	scope_cancel(worker, s);
}

void weft__scope_child_failed(struct weft__worker *worker,
			      struct weft_scope *scope, int64_t result)
{
	struct weft__scope *s = weft__scope(scope);
	int64_t none = s->kind == WEFT__SCOPE_RACE ? -ECHILD : 0;

	/* relaxed: read after the scope's end, [scope.end]. */
	weft__add(&s->failures, 1, relaxed);
	if (s->kind == WEFT__SCOPE_SUPERVISOR)
		return;
	/* A task that ends because the group was cancelled is no cause. */
	if (weft__cas(&s->error, &none, result, relaxed) &&
	    s->kind == WEFT__SCOPE_GROUP)
		scope_cancel(worker, s);
}

/* ---- Races --------------------------------------------------------------- */

static void race_prepare(struct weft__scope *s)
{
	weft__scope_mark(s, WEFT__SCOPE_RACED);
	/* relaxed: not shared yet. */
	weft__store(&s->error, (int64_t)-ECHILD, relaxed);
}

/* Records a result of a race.  True for the one that wins. */
static bool race_won(struct weft__scope *s, int64_t result)
{
	/* relaxed: decided by the CAS; read after the scope's end. */
	int64_t best = weft__load(&s->error, relaxed);

	do {
		if (best >= 0)
			return false;
	} while (!weft__cas(&s->error, &best, result,
			    relaxed)); /* mutate: retry */
	return true;
}

static void race_drop(weft_drop_fn drop, int64_t result)
{
	if (!weft__running(weft__worker_self())) {
		drop(result); /* in a future, whose calls do not wait */
		return;
	}
	WEFT_SHIELD
		drop(result);
}

int weft_race_drop(struct weft_scope *race, weft_drop_fn drop)
{
	struct weft__scope *s = weft__scope_open(race);

	if (s->owner != weft__running(weft__worker_self()))
		return -EPERM;
	if (s->kind != WEFT__SCOPE_RACE)
		return -EINVAL;
	s->drop = drop;
	return 0;
}

/* ---- Scopes with flags --------------------------------------------------- */

int weft__scope_admit(struct weft__scope *s)
{
	if (weft__scope_is(s, WEFT__SCOPE_CANCELLED))
		return -ECANCELED;
	return weft__scope_is(s, WEFT__SCOPE_LIMITED) ? weft__limit_enter(s) :
							0;
}

void weft__scope_dismiss(struct weft__scope *s)
{
	if (weft__scope_is(s, WEFT__SCOPE_LIMITED))
		weft__limit_leave(s);
}

void weft__scope_hear(struct weft__task *task, int64_t result)
{
	struct weft__scope *s = weft__scope(task->scope);

	if (result < 0)
		weft__scope_child_failed(weft__worker_self(), task->scope,
					 result);
	else if (!weft__scope_is(s, WEFT__SCOPE_RACED))
		return;
	else if (race_won(s, result))
		scope_cancel(weft__worker_self(), s);
	else if (s->drop)
		race_drop(s->drop, result);
}

/* ---- Beginning and ending ------------------------------------------------ */

static void check_not_open(struct weft__task *task,
			   const struct weft_scope *scope)
{
	struct weft_scope *open = task->scopes;

	for (; open; open = weft__scope(open)->outer)
		weft__assert(open != scope, "a scope was begun that is open");
}

static int scope_begin(struct weft_scope *scope, enum weft__scope_kind kind)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);

	if (!task)
		return -EPERM;
	check_not_open(task, scope);
	/* So that its own cancellation reaches it, and these children. */
	if (!weft__task_is(task, WEFT__TASK_LINKED))
		weft__scope_link(task);
	weft__scope_init(scope, kind, worker->runtime, task);
	weft__scope(scope)->outer = task->scopes;
	task->scopes = scope;
	/* A scope opened by a cancelled task is cancelled from the start. */
	if (weft__interrupted(worker, task) == -ECANCELED)
		weft__scope_mark(weft__scope(scope), WEFT__SCOPE_CANCELLED);
	if (kind == WEFT__SCOPE_RACE)
		race_prepare(weft__scope(scope));
	return 0;
}

int weft_group_begin(struct weft_scope *scope)
{
	return scope_begin(scope, WEFT__SCOPE_GROUP);
}

int weft_supervisor_begin(struct weft_scope *scope)
{
	return scope_begin(scope, WEFT__SCOPE_SUPERVISOR);
}

int weft_race_begin(struct weft_scope *scope)
{
	return scope_begin(scope, WEFT__SCOPE_RACE);
}

bool weft__scope_count_end(struct weft__worker *worker,
			   struct weft_scope *scope)
{
	struct weft__scope *s = weft__scope(scope);
	struct weft_runtime *runtime = worker->runtime;
	bool root = !s->owner_id;
	/* pairs: [scope.end] */
	int64_t left = weft__sub(&s->pending, (int64_t)1, acq_rel) - 1;

	if (weft__unlikely(root) && left == 0)
		weft__runtime_drained(runtime);
	return left == WEFT__SCOPE_WAITING;
}

/* Waits until all tasks of the scope have ended; cannot be interrupted. */
static void scope_wait(struct weft__worker *worker, struct weft__task *task,
		       struct weft__scope *s)
{
	/* pairs: [scope.end] */
	int64_t left = weft__add(&s->pending,
				 WEFT__SCOPE_WAITING + s->started, acquire) +
		       s->started;

	while (left) {
		/* Passes a cancellation on to the children immediately. */
		(void)weft__interrupted(worker, task);
		worker = weft__suspend(worker,
				       weft__reason(WEFT__REASON_SCOPE, s));
		/* pairs: [scope.end] */
		left = weft__load(&s->pending, acquire) - WEFT__SCOPE_WAITING;
	}
}

static void scope_free_handles(struct weft__worker *worker,
			       struct weft__scope *s)
{
	struct weft__task *task = s->handles;

	while (task) {
		struct weft__task *next = task->handle_next;

		weft__task_free(worker->runtime, worker, task);
		task = next;
	}
}

int64_t weft_scope_end(struct weft_scope *scope)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);
	struct weft__scope *s = weft__scope_open(scope);
	bool counts;

	weft__assert(task && s->owner == task,
		     "a scope was ended by a task that did not begin it");
	weft__assert(task->scopes == scope,
		     "a scope was ended before one that was begun inside it");
	weft__deadline_arm(worker, task);
	scope_wait(worker, task, s);
	weft__assert(!weft__scope_is(s, WEFT__SCOPE_LIMITED) ||
			     weft__limit(s)->tasks == 0,
		     "a scope has ended in which a task starts another");
	worker = weft__worker_self();
	scope_free_handles(worker, s);
	if (weft__unlikely(weft__scope_is(s, WEFT__SCOPE_CANCELLED)) &&
	    is_outermost(s))
		weft__runtime_goes_on(s->runtime);
	task->scopes = s->outer;
	counts = s->kind == WEFT__SCOPE_SUPERVISOR;
	s->kind = WEFT__SCOPE_ENDED;
	/* relaxed: all tasks have ended, [scope.end]. */
	return weft__load(counts ? &s->failures : &s->error, relaxed);
}

size_t weft_scope_count(const struct weft_scope *scope)
{
	struct weft__scope *s =
		weft__scope_open((struct weft_scope *)(uintptr_t)scope);

	weft__assert(s->owner == weft__running(weft__worker_self()),
		     "a scope was counted by a task that did not begin it");
	/* relaxed: a momentary value. */
	return (size_t)(weft__load(&s->pending, relaxed) + s->started);
}

/* ---- The block macros ---------------------------------------------------- */

struct weft_scope *weft__scope_enter(struct weft__scope_block *block,
				     struct weft_scope *scope,
				     int64_t *ret_result, int kind)
{
	static const enum weft__scope_kind kinds[] = {
		[WEFT__SUPERVISOR] = WEFT__SCOPE_SUPERVISOR,
		[WEFT__GROUP] = WEFT__SCOPE_GROUP,
		[WEFT__RACE] = WEFT__SCOPE_RACE,
	};
	int error = scope_begin(scope, kinds[kind]);

	weft__assert(error == 0, "a scope block outside of a task");
	block->scope = scope;
	block->ret_result = ret_result;
	return scope;
}

void weft__scope_leave(struct weft__scope_block *block)
{
	int64_t result;

	if (!block->scope)
		return;
	result = weft_scope_end(block->scope);
	if (block->ret_result)
		*block->ret_result = result;
}
