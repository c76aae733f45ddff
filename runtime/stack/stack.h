/* SPDX-License-Identifier: MIT */
/*
 * Stacks - address space for tasks to run on, guarded, and reused hottest
 * first.
 *
 *	slab:  [guard|... stack 0 ...^colour][guard|... stack 1 ...^colour] ...
 *	                      grows down <---'
 *
 * A stack's header lies at its top, in a page that its task touches anyway.
 * Tops are coloured: they start at different offsets of a page, since a
 * thousand tops at one offset would compete for one set of the cache.
 *
 * Guards are made with MADV_GUARD_INSTALL where the kernel has it (6.13), which
 * does not split the mapping; otherwise with mprotect(2) as long as
 * vm.max_map_count leaves some to others.  An overflow ends the process with a
 * message that names the task.
 */
#ifndef WEFT_RUNTIME_STACK_STACK_H
#define WEFT_RUNTIME_STACK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/ahead.h"
#include "runtime/base/assert.h"
#include "runtime/base/atomic.h"
#include "runtime/base/lock.h"

struct weft_allocator;
struct weft__task_local;
struct weft__task;
struct weft__worker;
struct weft_runtime;

#define WEFT__STACK_BYTES_MIN ((size_t)16 << 10)
#define WEFT__STACK_BYTES_MAX ((size_t)64 << 20)
#define WEFT__STACK_GUARD_BYTES ((size_t)64 << 10)
/* log2 of the smallest size of a stack, and the number of sizes. */
enum { WEFT__STACK_CLASS_FIRST = 14, WEFT__STACK_CLASSES = 13 };

struct weft__stack {
	union {
		struct weft__stack *next;   /* in a cache */
		struct weft__task_local
			*locals; /* of its task; see task_local.c */
	};
	struct weft__stack *ahead; /* see base/ahead.h */
	char *low;		  /* first usable byte */
	struct weft__task *task;  /* the task it is bound to; for messages */
	uint64_t since_ns;	  /* when it was bound, about */
	uint32_t size_class;	  /* log2 of the usable size */
	uint32_t number;	  /* within its slab */
	struct weft__stack_slab *slab;
	void *asan_fake;	  /* the sanitizers' records */
	void *tsan_fiber;
	uint64_t valgrind_id;
};

/* The stacks of a runtime that are in no worker's cache. */
struct weft__stacks {
	struct weft__lock lock;
	struct weft__stack *free[WEFT__STACK_CLASSES];	/* under lock */
	uint32_t free_count[WEFT__STACK_CLASSES];	/* under lock */
	struct weft__recent recent; /* under lock */
	/* The fewest that were free since the last look; under lock. */
	uint32_t free_min[WEFT__STACK_CLASSES];
	struct weft__stack *cold[WEFT__STACK_CLASSES]; /* under lock */
	uint32_t emptied[WEFT__STACK_CLASSES];	       /* under lock */
	/* There are free stacks to look at; under lock, others read. */
	weft__atomic(bool) has_excess;
	uint64_t look_ns; /* when to look next; of the thread that trims */
	struct weft__stack_slab *slabs;			/* under lock */
	uint64_t carved; /* of all sizes; under lock */
	uint64_t max;	 /* limit of `carved`, in tests; 0: none */
	bool no_cheap_guards; /* under lock, as the next two */
	uint32_t guards;      /* by mprotect(2) */
	uint32_t guards_max;  /* of the process; 0: not yet known */
	const struct weft_allocator *memory; /* immutable: for the records of
						slabs; see base/memory.h */
};

/* The stacks of the default size that a worker keeps.  Owner only; others read
 * the count. */
enum { WEFT__STACK_CACHE_MAX = 128, WEFT__STACK_CACHE_BATCH = 64 };

struct weft__stack_cache {
	struct weft__stack *free;
	weft__atomic(uint32_t) count;
};

/* Adds to the count.  Returns the new count. */
static inline uint32_t weft__stack_cache_add(struct weft__stack_cache *cache,
					     uint32_t more)
{
	/* relaxed: one writer, publishes nothing. */
	uint32_t count = weft__load(&cache->count, relaxed) + more;

	/* relaxed: one writer, as above. */
	weft__store(&cache->count, count, relaxed);
	return count;
}

/* Makes a first stack of `size_class`, before there are tasks: a task that
 * finds no stack waits until one is given back.  0 or -ENOMEM. */
int weft__stacks_init(struct weft__stacks *stacks, uint8_t size_class);
void weft__stacks_fini(struct weft__stacks *stacks);

/* log2 of the smallest stack of at least `bytes`; 0: out of range. */
uint8_t weft__stack_class(size_t bytes);

/* For a worker's cache (runtime/sched/stack_cache.h): takes another stack, or
 * NULL when there is no memory; gives one of another size back; gives half of a
 * full cache back. */
struct weft__stack *weft__stack_fetch(struct weft__stacks *stacks,
				      uint8_t size_class);
void weft__stack_give_back(struct weft__stacks *stacks,
			   struct weft__stack *stack);
void weft__stack_cache_shrink(struct weft__stacks *stacks,
			      struct weft__stack_cache *cache);

/* Fetches a stack's header and the place where its task will begin, before the
 * stack is handed out. */
static inline void weft__stack_prefetch(struct weft__stack *stack)
{
	uintptr_t at = (uintptr_t)stack;

	if (!at)
		return;
	__builtin_prefetch((void *)at, 1);
	__builtin_prefetch((void *)(at - WEFT__LINE_BYTES), 1);
	__builtin_prefetch((void *)(at - 2 * WEFT__LINE_BYTES), 1);
	__builtin_prefetch((void *)(at - 3 * WEFT__LINE_BYTES), 1);
}

/* Gives memory of stacks that were free since the last look, except a few,
 * back to the kernel; not of all at once, as that takes time.  By one thread at
 * a time.  Returns whether there is more. */
bool weft__stacks_trim(struct weft__stacks *stacks);

/* Is there anything to trim, now or after some time?  From any thread. */
static inline bool weft__stacks_have_excess(const struct weft__stacks *stacks)
{
	/* relaxed: a hint. */
	return weft__load(&stacks->has_excess, relaxed);
}

/* Many stacks of one size in one mapping.  Written under the lock of the
 * runtime's stacks; the report of overflows reads it in a signal handler. */
struct weft__stack_slab {
	struct weft__stack_slab *next;
	struct weft__stack_slab *report_next; /* of all runtimes; overflow.c */
	char *base;
	size_t bytes;
	size_t stride;
	uint32_t count;
	uint32_t used; /* stacks carved so far */
	uint64_t emptied; /* a bit for each that has given its memory back */
	uint8_t size_class;
};

struct weft__stack *weft__slab_stack(const struct weft__stack_slab *slab,
				     uint32_t number);

#endif
