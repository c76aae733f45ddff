/* SPDX-License-Identifier: MIT */
/*
 * Counting allocator - allocation functions of a program, which count, and
 * check what weft gives back.
 *
 *	[head| size, alignment, owner ...][memory][tail]
 *
 * The memory is at a multiple of the alignment, and of no more.  It is filled
 * when it is taken, and when it is given back.
 */
#ifndef WEFT_TESTS_FAULT_COUNTING_ALLOCATOR_H
#define WEFT_TESTS_FAULT_COUNTING_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/allocator.h>

#include "runtime/base/atomic.h"
#include "tests/fault/heap_watch.h"

struct counting {
	struct weft_allocator allocator;
	/* relaxed, all three: counts, read when the runtime has ended. */
	weft__atomic(uint64_t) blocks;
	weft__atomic(uint64_t) bytes;
	weft__atomic(uint64_t) taken; /* blocks ever */
	size_t stack_bytes; /* that each call uses */
};

struct counting_head {
	void *base;
	size_t bytes, align;
	struct counting *owner;
	uint64_t mark;
};

#define COUNTING_MARK 0x636f756e74696e67u

static const unsigned char counting_tail[8] = "the end";

static inline void counting_expect(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "allocator: %s\n", what);
	_exit(EXIT_FAILURE);
}

/* Uses that much of the caller's stack. */
static __attribute__((noinline)) void counting_use_stack(size_t bytes)
{
	char room[bytes + 1];

	for (size_t i = 0; i < bytes; i += 256)
		room[i] = 1;
	__asm__ volatile("" ::"r"(room) : "memory");
}

static inline void *counting_alloc(size_t bytes, size_t align, void *arg)
{
	struct counting *counting = arg;
	size_t before = sizeof(struct counting_head) + 2 * align;
	struct counting_head *head;
	char *base, *memory;

	counting_use_stack(counting->stack_bytes);
	counting_expect(bytes > 0, "memory of no size was asked for");
	counting_expect(align && !(align & (align - 1)) && align <= 128,
			"that alignment was not promised");
	base = heap_take(before + bytes + sizeof(counting_tail));
	if (!base)
		return NULL;
	memory = base + before;
	memory -= (uintptr_t)memory & (align - 1);
	if (!((uintptr_t)memory & align))
		memory -= align;
	head = (struct counting_head *)(void *)memory - 1;
	*head = (struct counting_head){ base, bytes, align, counting,
					COUNTING_MARK };
	memset(memory, 0xa5, bytes);
	memcpy(memory + bytes, counting_tail, sizeof(counting_tail));
	weft__add(&counting->blocks, (uint64_t)1, relaxed);
	weft__add(&counting->bytes, (uint64_t)bytes, relaxed);
	weft__add(&counting->taken, (uint64_t)1, relaxed);
	return memory;
}

static inline void counting_dealloc(void *memory, size_t bytes, size_t align,
				    void *arg)
{
	struct counting *counting = arg;
	struct counting_head *head = (struct counting_head *)memory - 1;

	counting_use_stack(counting->stack_bytes);
	counting_expect(head->mark == COUNTING_MARK,
			"what is given back was not taken");
	counting_expect(head->owner == counting,
			"memory of another allocator is given back");
	counting_expect(head->bytes == bytes, "another size is given back");
	counting_expect(head->align == align,
			"another alignment is given back");
	counting_expect(memcmp((char *)memory + bytes, counting_tail,
			       sizeof(counting_tail)) == 0,
			"memory was written behind its end");
	weft__sub(&counting->blocks, (uint64_t)1, relaxed);
	weft__sub(&counting->bytes, (uint64_t)bytes, relaxed);
	head->mark = 0;
	memset(memory, 0x5a, bytes);
	heap_give_back(head->base);
}

static inline void counting_init(struct counting *counting)
{
	memset(counting, 0, sizeof(*counting));
	counting->allocator = (struct weft_allocator){
		.alloc = counting_alloc,
		.dealloc = counting_dealloc,
		.arg = counting,
	};
}

static inline uint64_t counting_bytes(struct counting *counting)
{
	return weft__load(&counting->bytes, relaxed);
}

static inline uint64_t counting_taken(struct counting *counting)
{
	return weft__load(&counting->taken, relaxed);
}

#endif
