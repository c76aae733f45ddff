/* SPDX-License-Identifier: MIT */
/*
 * Slot - a place for one task that its worker alone fills and empties, as a
 * rule, and so without a read-modify-write; helpers take from it when the
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
 *   O1  Who takes a task sees the other, or the other sees that it is taken;
 *       if both see each other, the one whose CAS changes the mark has it.
 *   O2  What a helper got stays in `task` until the owner takes it, finds that
 *       it is gone, and clears the claim; until then no helper gets another.
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

/* In the claim of a helper that has got nothing yet. */
#define WEFT__SLOT_MARK ((uintptr_t)1)

struct weft__handoff_slot {
	weft__atomic(struct weft__task *) task;
	weft__atomic(uintptr_t) claim;
};

/* Somebody claims the slot: did he get what the owner has just taken?  Returns
 * it if not. */
struct weft__task *weft__handoff_slot_settle(struct weft__handoff_slot *slot,
				     struct weft__task *taken);

/* For helpers, of whom this is one. */
struct weft__task *weft__handoff_slot_steal(struct weft__handoff_slot *slot,
				    const struct weft__worker *helper,
				    bool fenced);

/* A look from anywhere: what is there, or NULL.  One that a helper has got, and
 * that the owner learns of between the two loads, is told of once more. */
static inline struct weft__task *
weft__handoff_slot_look(struct weft__handoff_slot *slot)
{
	/* relaxed: a hint to all but the owner. */
	struct weft__task *task = weft__load(&slot->task, relaxed);

	return weft__load(&slot->claim, relaxed) == (uintptr_t)task ? NULL :
								      task;
}

/* The owner's look: it is empty, or there may be something. */
static inline struct weft__task *
weft__handoff_slot_has(struct weft__handoff_slot *slot)
{
	/* relaxed: its own store. */
	return weft__load(&slot->task, relaxed);
}

/* Owner only, into an empty slot. */
static inline void weft__handoff_slot_put(struct weft__handoff_slot *slot,
				  struct weft__task *task)
{
	/* pairs: [slot.put] */
	weft__store(&slot->task, task, release);
}

/* Owner only: puts a task, or NULL, in the place of one.  Returns that, or
 * NULL: it was gone.  `fenced`: there are no heavy barriers. */
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
