/* SPDX-License-Identifier: MIT */
#include "runtime/sched/inject.h"

/* Under the lock. */
static void inject_append(struct weft__inject *inject,
			  struct weft__chain *chain)
{
	weft__assert(chain->count > 0, "pushed an empty chain");
	chain->tail->next = NULL;
	if (inject->chain.count)
		inject->chain.tail->next = chain->head;
	else
		inject->chain.head = chain->head;
	inject->chain.tail = chain->tail;
	inject->chain.count += chain->count;
	/* relaxed: the pusher's read-modify-write of [idle.push] comes
	 * after. */
	weft__store(&inject->length, inject->chain.count, relaxed);
}

void weft__inject_push(struct weft__inject *inject, struct weft__chain *chain)
{
	weft__lock_take(&inject->lock);
	inject_append(inject, chain);
	weft__lock_drop(&inject->lock);
}

int weft__inject_push_claim(struct weft__inject *inject,
			    struct weft__chain *chain, struct weft__idle *idle)
{
	int index;

	weft__lock_take(&inject->lock);
	inject_append(inject, chain);
	index = weft__idle_claim(idle);
	weft__lock_drop(&inject->lock);
	return index;
}

void weft__inject_take(struct weft__inject *inject, uint32_t max,
		       struct weft__chain *ret_chain)
{
	struct weft__chain *from = &inject->chain;
	uint32_t count;

	*ret_chain = (struct weft__chain){ 0 };
	weft__lock_take(&inject->lock);
	count = from->count < max ? from->count : max;
	if (count) {
		struct weft__task *last = from->head;

		for (uint32_t i = 1; i < count; i++) {
			weft__task_prefetch(last->ahead);
			last = last->next;
		}
		*ret_chain = (struct weft__chain){ from->head, last, count };
		from->head = last->next;
		from->count -= count;
		last->next = NULL;
		/* relaxed: a smaller length wakes no worker. */
		weft__store(&inject->length, from->count, relaxed);
	}
	weft__lock_drop(&inject->lock);
}
