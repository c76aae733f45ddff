/* SPDX-License-Identifier: MIT */
/*
 * Stacks - how slabs are mapped and carved, and the shared lists of free
 * stacks.
 *
 * A slab is one mapping of up to 64 stacks of one size; of a single one where
 * the address space is short, while some MiB of it are left to others.  Stacks
 * are carved from it in order, each with its guard.  A free stack lies in the
 * cache of a worker, or in the shared list of its size, last in first out.
 *
 *	carved --> free <--> in use
 *	            |  ^        ^
 *	   trim     v  |        |
 *	          cold --> emptied (a bit in its slab)
 *
 * Trimming cuts the stacks that were not needed since the last look, except
 * the hottest TRIM_KEEP, off the list; they are cold.  Then it gives their
 * memory back to the kernel, a batch at a time: they are emptied.  Also the
 * page of the header goes; a stack that is taken again gets a new one.  The
 * layout is in stack.h.
 *
 * Concurrency: all functions take the lock of the runtime's stacks, except the
 * start and the end of a runtime.
 */
#include "runtime/stack/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/memory.h"
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
	ROOM_BYTES = 4 << 20, /* of address space, for what is no stack */
	MAPPINGS_DEFAULT = 65530, /* of Linux */
	TRIM_KEEP = 256, /* free stacks that keep their pages */
	CUT_MAX = 4096,	 /* links to walk along for a cut */
	TRIM_MAX = 512,	 /* stacks emptied by one call */
	TRIM_BATCH = 32, /* and in one hold of the lock */
};
_Static_assert(SLAB_STACKS <= 64, "a word has a bit for each");
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

static void *map(size_t bytes)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return base == MAP_FAILED ? NULL : base;
}

static void *map_leaving_room(size_t bytes)
{
	char *base = map(bytes + ROOM_BYTES);

	if (base)
		munmap(base + bytes, ROOM_BYTES);
	return base;
}

static struct weft__stack_slab *slab_new(const struct weft_allocator *memory,
					 uint8_t size_class)
{
	struct weft__stack_slab *slab = weft__memory_new(memory, sizeof(*slab));
	size_t stride = slab_stride(size_class);
	size_t count = SLAB_BYTES_MAX / stride;
	void *base;

	if (!slab)
		return NULL;
	if (count > SLAB_STACKS)
		count = SLAB_STACKS;
	if (count == 0)
		count = 1;
	base = map(stride * count);
	if (!base && count > 1) {
		count = 1;
		base = map_leaving_room(stride);
	}
	if (!base) {
		weft__memory_free(memory, slab, sizeof(*slab));
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

/* How many guards by mprotect(2) the process may have.  Each makes two mappings
 * of one.  An eighth of all that the kernel allows is left to others: without
 * one left, no thread starts, and malloc() maps nothing. */
static uint32_t guards_max(void)
{
	uint64_t max = MAPPINGS_DEFAULT;
	char text[24];
	int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n > 0) {
		text[n] = '\0';
		max = strtoull(text, NULL, 10);
	}
	if (fd >= 0)
		close(fd);
	return (uint32_t)((max - max / 8) / 2);
}

/* Of all runtimes.  It may exceed the maximum by one for each. */
static weft__atomic(uint32_t) guards;

static int guard_by_mprotect(struct weft__stacks *stacks, void *low)
{
	if (!stacks->guards_max)
		stacks->guards_max = guards_max();
	/* relaxed: a count. */
	if (weft__load(&guards, relaxed) >= stacks->guards_max ||
	    mprotect(low, WEFT__STACK_GUARD_BYTES, PROT_NONE) < 0)
		return -1;
	/* relaxed: as above. */
	weft__add(&guards, 1u, relaxed);
	stacks->guards++;
	return 0;
}

static int guard_install(struct weft__stacks *stacks, void *low)
{
	if (!stacks->no_cheap_guards) {
		if (madvise(low, WEFT__STACK_GUARD_BYTES,
			    MADV_GUARD_INSTALL) == 0)
			return 0;
		stacks->no_cheap_guards = errno == EINVAL;
	}
	return guard_by_mprotect(stacks, low);
}

static char *slab_low(const struct weft__stack_slab *slab, uint32_t number)
{
	return slab->base + (size_t)number * slab->stride;
}

/* Writes the header of a stack that has none. */
static struct weft__stack *slab_head(struct weft__stack_slab *slab,
				     uint32_t number)
{
	struct weft__stack *stack = weft__slab_stack(slab, number);

	*stack = (struct weft__stack){
		.low = slab_low(slab, number) + WEFT__STACK_GUARD_BYTES,
		.size_class = slab->size_class,
		.number = number,
		.slab = slab,
	};
	weft__fiber_stack_new(stack);
	return stack;
}

/* Carves the next stack of the slab that was never used; under the lock. */
static struct weft__stack *slab_carve(struct weft__stacks *stacks,
				      struct weft__stack_slab *slab)
{
	if (guard_install(stacks, slab_low(slab, slab->used)) < 0)
		return NULL;
	stacks->carved++;
	return slab_head(slab, slab->used++);
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
		slab = slab_new(stacks->memory, size_class);
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

/* One that has given its memory back; there is one.  Under the lock. */
static struct weft__stack *stacks_refill(struct weft__stacks *stacks,
					 uint8_t size_class)
{
	struct weft__stack_slab *slab = stacks->slabs;
	uint32_t number;

	while (slab->size_class != size_class || !slab->emptied)
		slab = slab->next;
	number = (uint32_t)__builtin_ctzll(slab->emptied);
	slab->emptied &= slab->emptied - 1;
	stacks->emptied[size_class - WEFT__STACK_CLASS_FIRST]--;
	return slab_head(slab, number);
}

static struct weft__stack *stacks_take(struct weft__stacks *stacks,
				       uint8_t size_class)
{
	unsigned i = size_class - WEFT__STACK_CLASS_FIRST;
	struct weft__stack *stack = stacks->free[i];

	if (stack) {
		stacks->free[i] = stack->next;
		if (--stacks->free_count[i] < stacks->free_min[i])
			stacks->free_min[i] = stacks->free_count[i];
		weft__stack_prefetch(stack->ahead);
		return stack;
	}
	stack = stacks->cold[i];
	if (stack) {
		stacks->cold[i] = stack->next;
		return stack;
	}
	return stacks->emptied[i] ? stacks_refill(stacks, size_class) :
				    stacks_carve(stacks, size_class);
}

static void stacks_return(struct weft__stacks *stacks,
			  struct weft__stack *stack)
{
	unsigned i = stack->size_class - WEFT__STACK_CLASS_FIRST;

	stack->next = stacks->free[i];
	stack->ahead = weft__recent_put(&stacks->recent, stack);
	stacks->free[i] = stack;
	if (++stacks->free_count[i] == TRIM_KEEP + 1)
		/* relaxed: a hint. */
		weft__store(&stacks->has_excess, true, relaxed);
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

/* ---- Trimming, by one thread at a time ----------------------------------- */

/* Cuts the stacks that were not needed since the last look off the list.  Under
 * the lock.  Returns whether stacks are left that may be cut off later. */
static bool cut(struct weft__stacks *stacks, unsigned i)
{
	uint32_t count = stacks->free_count[i];
	uint32_t hot = TRIM_KEEP + count - stacks->free_min[i];
	struct weft__stack *stack = stacks->free[i];

	stacks->free_min[i] = count;
	if (count <= TRIM_KEEP || hot >= count || hot > CUT_MAX ||
	    stacks->cold[i])
		return count > TRIM_KEEP;
	for (uint32_t k = 1; k < hot; k++)
		stack = stack->next;
	stacks->cold[i] = stack->next;
	stack->next = NULL;
	stacks->free_count[i] = stacks->free_min[i] = hot;
	return hot > TRIM_KEEP;
}

/* Takes some cold stacks.  Under the lock. */
static unsigned cold_take(struct weft__stacks *stacks, unsigned i,
			  struct weft__stack **ret_stacks)
{
	unsigned count = 0;

	while (count < TRIM_BATCH && stacks->cold[i]) {
		ret_stacks[count] = stacks->cold[i];
		stacks->cold[i] = ret_stacks[count++]->next;
	}
	return count;
}

/* Returns where the stack was. */
static struct weft__stack_slab *stack_empty(struct weft__stack *stack,
					    uint32_t *ret_number)
{
	struct weft__stack_slab *slab = stack->slab;
	uint32_t number = stack->number;
	char *low = stack->low;

	weft__fiber_stack_free(stack);
	madvise(low, (size_t)(slab_low(slab, number + 1) - low),
		MADV_DONTNEED);
	*ret_number = number;
	return slab;
}

/* Empties some cold stacks of a size.  Returns how many. */
static unsigned empty_some(struct weft__stacks *stacks, unsigned i)
{
	struct weft__stack *batch[TRIM_BATCH];
	struct weft__stack_slab *slabs[TRIM_BATCH];
	uint32_t numbers[TRIM_BATCH];
	unsigned count;

	weft__lock_take(&stacks->lock);
	count = cold_take(stacks, i, batch);
	weft__lock_drop(&stacks->lock);
	for (unsigned k = 0; k < count; k++)
		slabs[k] = stack_empty(batch[k], &numbers[k]);
	weft__lock_take(&stacks->lock);
	for (unsigned k = 0; k < count; k++)
		slabs[k]->emptied |= (uint64_t)1 << numbers[k];
	stacks->emptied[i] += count;
	weft__lock_drop(&stacks->lock);
	return count;
}

bool weft__stacks_trim(struct weft__stacks *stacks)
{
	unsigned done = 0, some;
	bool excess = false;

	weft__lock_take(&stacks->lock);
	for (unsigned i = 0; i < WEFT__STACK_CLASSES; i++)
		excess |= cut(stacks, i);
	/* relaxed: a hint. */
	weft__store(&stacks->has_excess, excess, relaxed);
	weft__lock_drop(&stacks->lock);
	for (unsigned i = 0; i < WEFT__STACK_CLASSES; i++)
		do {
			some = empty_some(stacks, i);
			done += some;
		} while (some && done < TRIM_MAX);
	if (done < TRIM_MAX)
		return false;
	/* relaxed: as above. */
	weft__store(&stacks->has_excess, true, relaxed);
	return true;
}

void weft__stacks_fini(struct weft__stacks *stacks)
{
	struct weft__stack_slab *slab = stacks->slabs;

	while (slab) {
		struct weft__stack_slab *next = slab->next;

		weft__overflow_report_remove(slab);
		for (uint32_t i = 0; i < slab->used; i++)
			if (!(slab->emptied & (uint64_t)1 << i))
				weft__fiber_stack_free(
					weft__slab_stack(slab, i));
		munmap(slab->base, slab->bytes);
		weft__memory_free(stacks->memory, slab, sizeof(*slab));
		slab = next;
	}
	stacks->slabs = NULL;
	/* relaxed: a count. */
	weft__sub(&guards, stacks->guards, relaxed);
	stacks->guards = 0;
}
