/* SPDX-License-Identifier: MIT */
#include "io/request/starving.h"

#include "runtime/sched/wait.h"

void weft__starving_add(struct weft__reactor *reactor, struct weft__task *task)
{
	struct weft__starving *starving = &reactor->starving;

	weft__lock_take(&starving->lock);
	if (!starving->first)
		starving->last = &starving->first;
	weft__op_of(task)->fd_next = NULL;
	weft__op_of(task)->fd_link = starving->last;
	*starving->last = task;
	starving->last = &weft__op_of(task)->fd_next;
	/* relaxed: a hint; the task also keeps a time. */
	weft__add(&starving->count, 1u, relaxed);
	weft__lock_drop(&starving->lock);
}

/* Under the lock. */
static void take_out(struct weft__starving *starving, struct weft__task *task)
{
	struct weft__op_record *record = weft__op_of(task);

	if (!record->fd_next)
		starving->last = record->fd_link;
	weft__op_unlink(task);
	record->fd_link = NULL;
	/* relaxed: as above. */
	weft__sub(&starving->count, 1u, relaxed);
}

void weft__starving_remove(struct weft__reactor *reactor,
			   struct weft__task *task)
{
	struct weft__starving *starving = &reactor->starving;

	weft__lock_take(&starving->lock);
	if (weft__op_of(task)->fd_link)
		take_out(starving, task);
	weft__lock_drop(&starving->lock);
}

void weft__starving_wake(struct weft__worker *worker)
{
	struct weft__starving *starving =
		&weft__reactor(worker->runtime)->starving;
	enum { WAKES_MAX = 16 };
	uint64_t wakes[WAKES_MAX];
	unsigned count = 0;

	/* relaxed: as above. */
	if (weft__likely(!weft__load(&starving->count, relaxed)))
		return;
	weft__lock_take(&starving->lock);
	while (starving->first && count < WAKES_MAX) {
		wakes[count++] = weft__running_id(starving->first);
		take_out(starving, starving->first);
	}
	weft__lock_drop(&starving->lock);
	for (unsigned i = 0; i < count; i++)
		weft__wake(worker, weft__task_at(worker->runtime, wakes[i]),
			   wakes[i]);
}
