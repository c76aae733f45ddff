/* SPDX-License-Identifier: MIT */
/*
 * Scope - the tasks that one block of a task has started, and that it joins.
 *
 * Counting is biased towards the owner, which starts nearly all tasks.  The
 * owner counts the tasks that it started in a word of its own; only ends count
 * in the shared word:
 *
 *	pending = (started by others) - (ended)			until the end
 *	pending = WAITING + (started by all) - (ended)		from then on
 *
 * The end that brings it to WAITING wakes the owner; before WAITING is added no
 * end can.  So starting a task costs no atomic operation, and its end costs
 * one.
 *
 * Finding.  A task is linked to its scope when it first waits (or opens a scope
 * of its own), not when it is started: until then no cancellation has anything
 * to wake, and the task reads CANCELLED when it links itself, under the same
 * lock.  Most short tasks never link.
 *
 * Nested scopes belong to the task that opened them.  That task cancels them
 * when its own cancellation has ended its wait (weft__interrupted).
 *
 * The owner's words are touched by the owner alone.  After the
 * read-modify-write of `pending` that ends a task, the scope may be gone.
 *
 * Few scopes have any of `flags` set.  A task that starts another in such a
 * scope checks more: the scope may be cancelled, or may need to handle each
 * end, as a race or a scope with a limit does (scope_limit.h).  The tasks of
 * such a scope are marked (WEFT__TASK_REPORTED), so that in all others neither
 * a start nor an end has anything more to check.
 *
 * A race has its winner in `error`, which goes from -ECHILD (no task has ended)
 * to the first failure, or from either to the first success.  The last step
 * happens once: the task whose CAS finds no success wins.
 *
 * Orderings
 *   [scope.end]  pending sub acq_rel -> the owner's add or load acquire: all
 *       that the tasks wrote is seen after the scope's end.
 */
#ifndef WEFT_RUNTIME_TASK_SCOPE_H
#define WEFT_RUNTIME_TASK_SCOPE_H

#include <weft/scope.h>

#include "runtime/base/lock.h"
#include "runtime/sched/task.h"

#define WEFT__SCOPE_WAITING ((int64_t)1 << 62)

enum weft__scope_kind {
	WEFT__SCOPE_GROUP = 0x5c09e001,
	WEFT__SCOPE_SUPERVISOR,
	WEFT__SCOPE_RACE,
	WEFT__SCOPE_ENDED,
};

/* flags */
#define WEFT__SCOPE_CANCELLED (1u << 0)
#define WEFT__SCOPE_RACED (1u << 1)   /* kind is RACE */
#define WEFT__SCOPE_LIMITED (1u << 2) /* see scope_limit.h */

struct weft__scope {
	/* Of the owner.  `owner` is NULL in the runtime's own root scope. */
	struct weft__task *owner;
	uint64_t owner_id;
	struct weft_scope *outer;
	int64_t started;	    /* by the owner */
	struct weft__task *handles; /* tasks whose handle was given out */
	struct weft_runtime *runtime;
	uint32_t kind; /* enum weft__scope_kind; immutable while open */
	weft__atomic(uint32_t) flags; /* WEFT__SCOPE_*; written under lock */
	weft_drop_fn drop; /* race: for results that come too late, or NULL */

	/* Shared. */
	weft__atomic(int64_t) pending;
	struct weft__lock lock;
	uint32_t reserved2;
	struct weft__task *linked;	/* under lock */
	weft__atomic(int64_t) failures; /* supervisor: their number */
	weft__atomic(int64_t) error;	/* group: the first; race: see above */
	uint64_t limit_words[3];	/* under lock; see scope_limit.h */
} __attribute__((may_alias));

_Static_assert(sizeof(struct weft__scope) == sizeof(struct weft_scope),
	       "the public struct has room for it");
_Static_assert(sizeof(struct weft__scope) == 128, "two lines");

static inline struct weft__scope *weft__scope(struct weft_scope *scope)
{
	return (struct weft__scope *)(void *)scope;
}

static inline bool weft__scope_is_open(struct weft__scope *s)
{
	return s->kind == WEFT__SCOPE_GROUP ||
	       s->kind == WEFT__SCOPE_SUPERVISOR ||
	       s->kind == WEFT__SCOPE_RACE;
}

static inline struct weft__scope *weft__scope_open(struct weft_scope *scope)
{
	struct weft__scope *s = weft__scope(scope);

	weft__assert(weft__scope_is_open(s),
		     "not an open scope: begun, and not yet ended?");
	return s;
}

static inline bool weft__scope_is(struct weft__scope *s, uint32_t flags)
{
	/* relaxed: a look; a caller that relies on it has the lock or is
	 * woken. */
	return weft__load(&s->flags, relaxed) & flags;
}

void weft__scope_init(struct weft_scope *scope, enum weft__scope_kind kind,
		      struct weft_runtime *runtime, struct weft__task *owner);

/* A linked task returns: takes it out of the scope. */
void weft__scope_unlink(struct weft__task *task);

/* Under the lock, or before the scope is shared. */
static inline void weft__scope_mark(struct weft__scope *s, uint32_t flags)
{
	/* relaxed: one writer at a time; a task that starts another only
	 * looks. */
	weft__store(&s->flags, weft__load(&s->flags, relaxed) | flags,
		    relaxed);
}

/* Admits a task that the running task is about to start in a scope with flags.
 * 0, or -errno: do not start it.  May suspend. */
int weft__scope_admit(struct weft__scope *s);

/* An admitted task has ended, or was not started after all. */
void weft__scope_dismiss(struct weft__scope *s);

/* The running task, which is marked TOLD, has returned.  May suspend. */
void weft__scope_hear(struct weft__task *task, int64_t result);

/* A task of the scope has failed: records that, and cancels a group. */
void weft__scope_child_failed(struct weft__worker *worker,
			      struct weft_scope *scope, int64_t result);

/* Counts an end; afterwards the scope may be gone.  True: it was the last end,
 * and the owner waits. */
bool weft__scope_count_end(struct weft__worker *worker,
			   struct weft_scope *scope);

/* Cancels the tasks of every scope that the running task has open. */
void weft__scopes_cancel(struct weft__worker *worker, struct weft__task *task);

#endif
