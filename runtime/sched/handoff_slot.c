/* SPDX-License-Identifier: MIT */
#include "runtime/sched/handoff_slot.h"

struct weft__task *weft__handoff_slot_settle(struct weft__handoff_slot *slot,
				     struct weft__task *taken)
{
	/* relaxed: decided by the CAS. */
	uintptr_t claim = weft__load(&slot->claim, relaxed);

	/* A helper that has got nothing yet gets nothing.  relaxed: there is
	 * nothing to pass on. */
	if (claim & WEFT__SLOT_MARK)
		(void)weft__cas(&slot->claim, &claim, (uintptr_t)0, relaxed);
	/* A helper that has come since, or has got what is there now, has not
	 * got this task. */
	if (claim != (uintptr_t)taken)
		return taken;
	/* relaxed: the same. */
	weft__store(&slot->claim, (uintptr_t)0, relaxed);
	return NULL;
}

struct weft__task *weft__handoff_slot_steal(struct weft__handoff_slot *slot,
				    const struct weft__worker *helper,
				    bool fenced)
{
	uintptr_t mark = (uintptr_t)helper | WEFT__SLOT_MARK;
	struct weft__task *task = NULL;
	uintptr_t nobody = 0;

	/* relaxed: a look. */
	if (!weft__load(&slot->task, relaxed))
		return NULL;
	/* pairs: [slot.claim] */
	if (!weft__cas(&slot->claim, &nobody, mark, seq_cst))
		return NULL;
	if (fenced || weft__heavy_barrier())
		/* pairs: [slot.put], [slot.claim] */
		task = weft__load(&slot->task, seq_cst);
	/* relaxed: SLOT1; the task's contents came with the load. */
	return weft__cas(&slot->claim, &mark, (uintptr_t)task, relaxed) ? task :
									  NULL;
}
