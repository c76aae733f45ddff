/* SPDX-License-Identifier: MIT */
/*
 * Scope - the tasks that one block of a task has started, and that it joins.
 *
 * Counting is biased towards the owner, which starts nearly all tasks: it
 * counts what it started in a word of its own, and only ends count in the
 * shared one:
 *
 *	pending = (started by others) - (ended)			until the end
 *	pending = WAITING + (started by all) - (ended)		from then on
 *
 * The end that brings it to WAITING wakes the owner; before WAITING is added no
 * end can.  So starting a task costs no atomic operation, and the end of one
 * costs one.
 *
 * Finding.  A task is linked to its scope when it first waits (or opens a scope
 * of its own), not when it is started: until then no cancellation has anything
 * to wake, and it reads `cancelled` when it links itself, under the same lock.
 * Most short tasks never link.
 *
 * Nested scopes belong to the task that opened them and are cancelled by it, on
 * its way out of the wait that its own cancellation ended (weft__interrupted).
 *
 * The owner's words are touched by the owner alone.  After the
 * read-modify-write of `pending` that ends a task, the scope may be gone.
 *
 * Orderings
 *   [scope.end]  pending sub acq_rel -> the owner's add or load acquire: all
 *       that the tasks wrote is seen after the scope's end.
 */
#ifndef WEFT_RUNTIME_SCOPE_H
#define WEFT_RUNTIME_SCOPE_H

#include <weft/task.h>

#include "runtime/base/lock.h"
#include "runtime/task.h"

#define WEFT__SCOPE_WAITING ((int64_t)1 << 62)

enum weft__scope_kind {
	WEFT__SCOPE_GROUP = 0x5c09e001,
	WEFT__SCOPE_SUPERVISOR,
	WEFT__SCOPE_ENDED,
};

struct weft__scope {
	/* The owner's.  NULL: the runtime's own root scope. */
	struct weft__task *owner;
	uint64_t owner_id;
	struct weft_scope *outer;
	int64_t started;	    /* by the owner */
	struct weft__task *handles; /* tasks whose handle was given out */
	struct weft_runtime *runtime;
	uint32_t kind; /* enum weft__scope_kind; immutable while open */
	weft__atomic(uint32_t) cancelled; /* written under lock */
	uint64_t reserved;

	/* Shared. */
	weft__atomic(int64_t) pending;
	struct weft__lock lock;
	uint32_t reserved2;
	struct weft__task *linked;	/* under lock */
	weft__atomic(int64_t) failures; /* supervisor: how many */
	weft__atomic(int64_t) error;	/* group: the first */
	uint64_t reserved3[3];
} __attribute__((may_alias));

_Static_assert(sizeof(struct weft__scope) == sizeof(struct weft_scope),
	       "the public struct has room for it");
_Static_assert(sizeof(struct weft__scope) == 128, "two lines");

static inline struct weft__scope *weft__scope(struct weft_scope *scope)
{
	return (struct weft__scope *)(void *)scope;
}

void weft__scope_init(struct weft_scope *scope, enum weft__scope_kind kind,
		      struct weft_runtime *runtime, struct weft__task *owner);

/* A linked task returns: the scope forgets it. */
void weft__scope_unlink(struct weft__task *task);

/* A task of the scope has failed: recorded; a group is cancelled. */
void weft__scope_child_failed(struct weft__worker *worker,
			      struct weft_scope *scope, int64_t result);

/* Counts an end; after it the scope may be gone.  True: it was the last one,
 * and the owner waits. */
bool weft__scope_count_end(struct weft__worker *worker,
			   struct weft_scope *scope);

/* Cancels the tasks of every scope that the running task has open. */
void weft__scopes_cancel(struct weft__worker *worker, struct weft__task *task);

#endif
