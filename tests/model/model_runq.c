/* SPDX-License-Identifier: MIT */
/*
 * Model of runtime/sched/runq.h, with four slots: each task that the owner
 * pushes is taken once, by the thread whose CAS succeeded, and that thread sees
 * what was written before the push.
 */
#define WEFT__RUNQ_SLOTS 4u
#define WEFT__RUNQ_SHORT 4u

#include "runtime/sched/runq.h"
#include "tests/model/kit.h"

enum { ITEMS = 10 };

/* Indices wrap after two pushes. */
static const uint32_t near_wrap = UINT32_MAX - 1;

static struct item {
	uint32_t number;
	uint32_t taken;
} items[ITEMS];

/* Written when the thief has read a slot, read when the owner has written to
 * the slot again.  The engine lets no load return a store that comes later, but
 * it finds that the two are not ordered. */
static uint32_t slots[4 * WEFT__RUNQ_SLOTS];

static uint32_t *slot_use(uint32_t index)
{
	return &slots[index % (4 * WEFT__RUNQ_SLOTS)];
}

static struct weft__runq queue;
static uint32_t prefilled, pushed;

static struct weft__task *task_of(uint32_t i)
{
	return (struct weft__task *)(void *)&items[i];
}

/* Two threads that took the same task would race here. */
static void take(struct weft__task *task)
{
	struct item *item = (struct item *)(void *)task;

	model_assert(item->number == (uint32_t)(item - items) + 1,
		     "what was pushed with the task is seen");
	model_assert(item->taken++ == 0, "a task was taken twice");
}

MODEL_UNSEEN static uint32_t next_item(void)
{
	return pushed++;
}

static bool push(void)
{
	uint32_t i = next_item();

	items[i].number = i + 1;
	if (weft__runq_push(&queue, task_of(i))) {
		/* relaxed: the owner's own. */
		model_data_read(slot_use(weft__load(&queue.tail, relaxed) - 1 -
					 WEFT__RUNQ_SLOTS));
		return true;
	}
	take(task_of(i));
	return false;
}

static bool pop(void)
{
	struct weft__task *task = weft__runq_pop(&queue);

	if (task)
		take(task);
	return task != NULL;
}

enum { MOST = WEFT__RUNQ_SLOTS };

static bool steal(uint32_t parts, uint32_t max)
{
	struct weft__claim claim;

	if (!weft__runq_claim(&queue, parts, max, &claim))
		return false;
	model_assert(claim.count >= 1 && claim.count <= WEFT__RUNQ_SLOTS,
		     "a claim is of tasks that are there");
	for (uint32_t i = 0; i < claim.count; i++) {
		take(weft__runq_claimed(&queue, &claim, i));
		model_data_write(slot_use(claim.first + i));
	}
	weft__runq_release(&queue);
	return true;
}

static void setup(void *arg)
{
	memset(items, 0, sizeof(items));
	memset(&queue, 0, sizeof(queue));
	weft__runq_init(&queue, near_wrap, MOST, false);
	model_name(&queue.head, "head");
	model_name(&queue.tail, "tail");
	pushed = 0;
	prefilled = arg ? *(uint32_t *)arg : 0;
	while (pushed < prefilled)
		push();
}

static void check_end(void *arg)
{
	(void)arg;
	while (pop())
		;
	for (uint32_t i = 0; i < pushed; i++)
		model_assert(items[i].taken == 1, "a task was lost");
	model_assert(weft__runq_count(&queue) == 0, "the ring is empty");
	model_assert(weft__runq_room(&queue) == WEFT__RUNQ_SLOTS,
		     "all slots were given back");
	model_assert(!weft__runq_visible(&queue), "nothing is left to see");
}

static uint32_t two = 2, three = 3, four = 4;

THREAD(thief, steal(2, MOST); steal(2, MOST);)
THREAD(thief_once, steal(2, MOST);)
THREAD(thief_of_one, steal(2, 1);)

THREAD(owner, push(); pop(); push(); pop(); pop();)
MODEL(owner_and_thief, setup, check_end, OPTIONS(.arg = &two), owner, thief)
MODEL(owner_and_two_thieves, setup, check_end,
      OPTIONS(.arg = &two, .preemptions = 2), owner, thief_once, thief_once)

/* A pop moves both heads, and a thief in between sees a tail behind it. */
THREAD(owner_of_few, pop(); push(); pop();)
MODEL(few_tasks_and_two_thieves, setup, check_end,
      OPTIONS(.arg = &two, .preemptions = 2), owner_of_few, thief,
      thief_once)

/* Slots are written again as soon as the thief returned them, not sooner. */
THREAD(owner_who_fills, push(); push(); pop(); push(); push();)
MODEL(full_ring, setup, check_end, OPTIONS(.arg = &three), owner_who_fills,
      thief)
MODEL(full_ring_and_two_thieves, setup, check_end,
      OPTIONS(.arg = &four, .preemptions = 2), owner_who_fills, thief_once,
      thief_once)

/* As the owner refills from its outbound ring, and spills into it. */
THREAD(owner_who_claims, push(); steal(1, MOST); push(); pop();)
MODEL(owner_claims_all, setup, check_end, OPTIONS(.arg = &two),
      owner_who_claims, thief)
MODEL(thief_claims_all, setup, check_end, OPTIONS(.arg = &three), owner,
      thief_of_one)

/* The owner's room and count are never more, or less, than there is. */
THREAD(owner_who_asks, while (weft__runq_room(&queue) > 0)
       model_assert(push(), "there is room for a push");
       if (weft__runq_count(&queue) == WEFT__RUNQ_SLOTS) pop();)
MODEL(room_is_room, setup, check_end, OPTIONS(.arg = &three), owner_who_asks,
      thief)

int main(void)
{
	const TTest *const tests[] = {
		owner_and_thief,   owner_and_two_thieves,
		few_tasks_and_two_thieves,
		full_ring,	   full_ring_and_two_thieves,
		owner_claims_all,  thief_claims_all,
		room_is_room,	   NULL,
	};

	return kit_main("runq", tests);
}
