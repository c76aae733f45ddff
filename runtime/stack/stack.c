/* SPDX-License-Identifier: MIT */
/*
 * Stacks - how slabs are mapped and carved, and the shared lists of free
 * stacks.
 *
 * A slab is one mapping of up to 64 stacks of one size.  Stacks are carved from
 * it in order, each with its guard, and never given back to it: a free stack
 * lies in a worker's cache, or in the shared list of its size, last in first
 * out.  Trimming gives back the pages of the shared free stacks except the
 * hottest TRIM_KEEP.  The layout is in stack.h.
 *
 * Concurrency: all functions take the lock of the runtime's stacks, except the
 * start and the end of a runtime.
 */
#include "runtime/stack/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/base/assert.h"
#include "runtime/stack/context.h"
#include "runtime/stack/fiber.h"
#include "runtime/stack/overflow.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

enum {
	COLOURS = 16,
	COLOUR_BYTES = 128,
	SLAB_STACKS = 64,
	TRIM_KEEP = 256, /* free stacks that keep their pages */
};
#define SLAB_BYTES_MAX ((size_t)64 << 20)

static size_t page_bytes(void)
{
	return 4096;
}

uint8_t weft__stack_class(size_t bytes)
{
	uint8_t size_class = WEFT__STACK_CLASS_FIRST;

	if (bytes < WEFT__STACK_BYTES_MIN || bytes > WEFT__STACK_BYTES_MAX)
		return 0;
	while (((size_t)1 << size_class) < bytes)
		size_class++;
	return size_class;
}

/*
 * Slabs.
 */

static size_t slab_stride(uint8_t size_class)
{
	/* The odd page keeps equal depths of many stacks out of one set. */
	return WEFT__STACK_GUARD_BYTES + ((size_t)1 << size_class) +
	       page_bytes();
}

static struct weft__stack_slab *slab_new(uint8_t size_class)
{
	struct weft__stack_slab *slab = malloc(sizeof(*slab));
	size_t stride = slab_stride(size_class);
	size_t count = SLAB_BYTES_MAX / stride;
	void *base;

	if (!slab)
		return NULL;
	if (count > SLAB_STACKS)
		count = SLAB_STACKS;
	if (count == 0)
		count = 1;
	base = mmap(NULL, stride * count, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		free(slab);
		return NULL;
	}
	/* A huge page would make each stack resident in full. */
	madvise(base, stride * count, MADV_NOHUGEPAGE);
	*slab = (struct weft__stack_slab){
		.base = base,
		.bytes = stride * count,
		.stride = stride,
		.count = (uint32_t)count,
		.size_class = size_class,
	};
	return slab;
}

static int guard_install(struct weft__stacks *stacks, void *low)
{
	if (!stacks->guard_by_mprotect) {
		if (madvise(low, WEFT__STACK_GUARD_BYTES,
			    MADV_GUARD_INSTALL) == 0)
			return 0;
		stacks->guard_by_mprotect = true;
	}
	return mprotect(low, WEFT__STACK_GUARD_BYTES, PROT_NONE);
}

/* Carves the next stack of the slab that was never used; under the lock. */
static struct weft__stack *slab_carve(struct weft__stacks *stacks,
				      struct weft__stack_slab *slab)
{
	char *low = slab->base + (size_t)slab->used * slab->stride;
	struct weft__stack *stack;

	if (guard_install(stacks, low) < 0)
		return NULL;
	stack = weft__slab_stack(slab, slab->used);
	*stack = (struct weft__stack){
		.low = low + WEFT__STACK_GUARD_BYTES,
		.size_class = slab->size_class,
		.number = slab->used,
	};
	slab->used++;
	stacks->carved++;
	weft__fiber_stack_new(stack);
	return stack;
}

struct weft__stack *weft__slab_stack(const struct weft__stack_slab *slab,
				     uint32_t number)
{
	char *top = slab->base + (size_t)(number + 1) * slab->stride;

	top -= (size_t)(number % COLOURS) * COLOUR_BYTES;
	return (struct weft__stack *)(void *)(top - sizeof(struct weft__stack));
}

static struct weft__stack *stacks_carve(struct weft__stacks *stacks,
					uint8_t size_class)
{
	struct weft__stack_slab *slab = stacks->slabs;

	if (weft__unlikely(stacks->max && stacks->carved >= stacks->max))
		return NULL;
	while (slab && (slab->size_class != size_class ||
			slab->used == slab->count))
		slab = slab->size_class == size_class ? NULL : slab->next;
	if (!slab) {
		slab = slab_new(size_class);
		if (!slab)
			return NULL;
		slab->next = stacks->slabs;
		stacks->slabs = slab;
		weft__overflow_report_add(slab);
	}
	return slab_carve(stacks, slab);
}

/*
 * Getting and putting.
 */

static struct weft__stack *stacks_take(struct weft__stacks *stacks,
				       uint8_t size_class)
{
	unsigned i = size_class - WEFT__STACK_CLASS_FIRST;
	struct weft__stack *stack = stacks->free[i];

	if (!stack)
		return stacks_carve(stacks, size_class);
	stacks->free[i] = stack->next;
	stacks->free_count[i]--;
	if (stacks->trimmed[i] > stacks->free_count[i])
		stacks->trimmed[i] = stacks->free_count[i];
	weft__stack_prefetch(stack->ahead);
	return stack;
}

static void stacks_return(struct weft__stacks *stacks,
			  struct weft__stack *stack)
{
	unsigned i = stack->size_class - WEFT__STACK_CLASS_FIRST;

	stack->next = stacks->free[i];
	stack->ahead = weft__recent_put(&stacks->recent, stack);
	stacks->free[i] = stack;
	stacks->free_count[i]++;
}

struct weft__stack *weft__stack_fetch(struct weft__stacks *stacks,
				      uint8_t size_class)
{
	struct weft__stack *stack;

	weft__lock_take(&stacks->lock);
	stack = stacks_take(stacks, size_class);
	weft__lock_drop(&stacks->lock);
	return stack;
}

int weft__stacks_init(struct weft__stacks *stacks, uint8_t size_class)
{
	struct weft__stack *first;

	first = stacks_take(stacks, size_class);
	if (!first)
		return -ENOMEM;
	stacks_return(stacks, first);
	return 0;
}

void weft__stack_cache_shrink(struct weft__stacks *stacks,
			      struct weft__stack_cache *cache)
{
	weft__lock_take(&stacks->lock);
	for (int i = 0; i <= WEFT__STACK_CACHE_BATCH; i++) {
		struct weft__stack *stack = cache->free;

		cache->free = stack->next;
		(void)weft__stack_cache_add(cache, -1u);
		stacks_return(stacks, stack);
	}
	weft__lock_drop(&stacks->lock);
}

void weft__stack_give_back(struct weft__stacks *stacks,
			   struct weft__stack *stack)
{
	weft__lock_take(&stacks->lock);
	stacks_return(stacks, stack);
	weft__lock_drop(&stacks->lock);
}

/* Drops all pages below the one that holds the header. */
static void stack_drop_pages(struct weft__stack *stack)
{
	uintptr_t top = (uintptr_t)stack & ~(uintptr_t)(page_bytes() - 1);

	madvise(stack->low, top - (uintptr_t)stack->low, MADV_DONTNEED);
}

void weft__stacks_trim(struct weft__stacks *stacks)
{
	weft__lock_take(&stacks->lock);
	for (unsigned i = 0; i < WEFT__STACK_CLASSES; i++) {
		struct weft__stack *stack = stacks->free[i];
		uint32_t hot = stacks->free_count[i] - stacks->trimmed[i];

		for (uint32_t k = 0; k < hot; k++, stack = stack->next)
			if (k >= TRIM_KEEP)
				stack_drop_pages(stack);
		if (hot > TRIM_KEEP)
			stacks->trimmed[i] += hot - TRIM_KEEP;
	}
	weft__lock_drop(&stacks->lock);
}

void weft__stacks_fini(struct weft__stacks *stacks)
{
	struct weft__stack_slab *slab = stacks->slabs;

	while (slab) {
		struct weft__stack_slab *next = slab->next;

		weft__overflow_report_remove(slab);
		for (uint32_t i = 0; i < slab->used; i++)
			weft__fiber_stack_free(weft__slab_stack(slab, i));
		munmap(slab->base, slab->bytes);
		free(slab);
		slab = next;
	}
	stacks->slabs = NULL;
}
