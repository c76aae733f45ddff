/* SPDX-License-Identifier: MIT */
/*
 * Hand-off slot - a place for one task.  As a rule its worker alone fills and
 * empties it, and so without a read-modify-write; helpers take from it when the
 * worker is late.
 *
 *	task	what is there; stored by the owner alone
 *	claim	0; a helper's mark while it looks; then, if the helper got the
 *		task, that task, until the owner finds out
 *
 *	owner				helper
 *	-----				------
 *	takes: task = other		claim: 0 -> its mark
 *	(light barrier)			(heavy barrier)
 *	looks at claim			looks at task
 *	a mark? claim -> 0		a task? claim: its mark -> that task
 *
 * Invariants
 *   SLOT1  Of an owner and a helper that both take the task, at least one sees
 *       the other.  If both see each other, the one whose CAS changes the mark
 *       has the task.
 *   SLOT2  A task that a helper got stays in `task` until the owner takes it,
 *       finds that it is gone, and clears the claim; until then no helper gets
 *       another.
 *
 * Orderings
 *   [slot.put]  store of the owner, release -> load of the helper: the task.
 *   [slot.claim]  seq_cst on both words, by the helper, and by an owner that
 *       has no heavy barrier: each stores one of them and then loads the other.
 *   Modelled in tests/model/model_handoff_slot.c and model_joining.c.
 */
#ifndef WEFT_RUNTIME_SCHED_HANDOFF_SLOT_H
#define WEFT_RUNTIME_SCHED_HANDOFF_SLOT_H

#include "runtime/base/atomic.h"
#include "runtime/base/barrier.h"

struct weft__task;
struct weft__worker;

/* The bit of a claim whose helper has got nothing yet. */
#define WEFT__SLOT_MARK ((uintptr_t)1)

struct weft__handoff_slot {
	weft__atomic(struct weft__task *) task;
	weft__atomic(uintptr_t) claim;
};

/* A helper has claimed the slot.  Returns what the owner has just taken, or
 * NULL if the helper got it. */
struct weft__task *weft__handoff_slot_settle(struct weft__handoff_slot *slot,
				     struct weft__task *taken);

/* Takes the task out for `helper`, from any other worker; or NULL. */
struct weft__task *weft__handoff_slot_steal(struct weft__handoff_slot *slot,
				    const struct weft__worker *helper,
				    bool fenced);

/* A look from anywhere: the task in the slot, or NULL.  If a helper has got the
 * task, and the owner finds out between the two loads, the task is returned
 * once more. */
static inline struct weft__task *
weft__handoff_slot_look(struct weft__handoff_slot *slot)
{
	/* relaxed: a hint to all but the owner. */
	struct weft__task *task = weft__load(&slot->task, relaxed);

	return weft__load(&slot->claim, relaxed) == (uintptr_t)task ? NULL :
								      task;
}

/* The owner's look: NULL if the slot is empty, otherwise there may be a
 * task. */
static inline struct weft__task *
weft__handoff_slot_has(struct weft__handoff_slot *slot)
{
	/* relaxed: its own store. */
	return weft__load(&slot->task, relaxed);
}

/* Owner only: puts a task into an empty slot. */
static inline void weft__handoff_slot_put(struct weft__handoff_slot *slot,
				  struct weft__task *task)
{
	/* pairs: [slot.put] */
	weft__store(&slot->task, task, release);
}

/* Owner only: puts a task, or NULL, in the place of one.  Returns the task that
 * was there, or NULL if it was gone.  `fenced`: there are no heavy barriers. */
static inline struct weft__task *
weft__handoff_slot_swap(struct weft__handoff_slot *slot,
			struct weft__task *task, bool fenced)
{
	/* relaxed: its own store. */
	struct weft__task *old = weft__load(&slot->task, relaxed);
	uintptr_t claim;

	if (__builtin_expect(fenced, 0)) {
		/* pairs: [slot.put], [slot.claim] */
		weft__swap(&slot->task, task, seq_cst);
		claim = weft__load(&slot->claim, seq_cst);
	} else {
		/* pairs: [slot.put] */
		weft__store(&slot->task, task, release);
		weft__light_barrier();
		/* relaxed: the barriers order it. */
		claim = weft__load(&slot->claim, relaxed);
	}
	return __builtin_expect(claim == 0, 1) ?
		       old :
		       weft__handoff_slot_settle(slot, old);
}

/* Owner only: takes the task out, if there is one. */
static inline struct weft__task *
weft__handoff_slot_take(struct weft__handoff_slot *slot, bool fenced)
{
	if (!weft__handoff_slot_has(slot))
		return NULL;
	return weft__handoff_slot_swap(slot, NULL, fenced);
}

#endif
