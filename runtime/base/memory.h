/* SPDX-License-Identifier: MIT */
/*
 * Memory - the only way to records and buffers: from the functions of the
 * program (<weft/allocator.h>), or from malloc().
 *
 * `from` is that of the runtime for which the memory is, or NULL: malloc().
 * The caller tells how many bytes it gives back.
 *
 * Other memory is mapped: see rule_memory in tests/tools/tidy.py.
 */
#ifndef WEFT_RUNTIME_BASE_MEMORY_H
#define WEFT_RUNTIME_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <weft/allocator.h>

#include "runtime/base/assert.h"

/* For all that C can declare; and for records that keep other threads off their
 * lines of a cache. */
enum {
	WEFT__MEMORY_ALIGN = _Alignof(max_align_t),
	WEFT__MEMORY_APART = 128,
};

static inline void *weft__memory_from(const struct weft_allocator *from,
				      size_t bytes, size_t align)
{
	void *memory = from->alloc(bytes, align, from->arg);

	weft__assert(((uintptr_t)memory & (align - 1)) == 0,
		     "an allocator returned memory of a wrong alignment");
	return memory;
}

/* Whatever is in it.  NULL: there is none. */
static inline void *weft__memory_new(const struct weft_allocator *from,
				     size_t bytes)
{
	if (weft__likely(!from))
		return malloc(bytes);
	return weft__memory_from(from, bytes, WEFT__MEMORY_ALIGN);
}

/* All zero. */
static inline void *weft__memory_zeroed(const struct weft_allocator *from,
					size_t bytes)
{
	void *memory;

	if (weft__likely(!from))
		return calloc(1, bytes);
	memory = weft__memory_from(from, bytes, WEFT__MEMORY_ALIGN);
	return memory ? memset(memory, 0, bytes) : NULL;
}

static inline void weft__memory_free(const struct weft_allocator *from,
				     void *memory, size_t bytes)
{
	if (weft__likely(!from))
		free(memory);
	else if (memory)
		from->dealloc(memory, bytes, WEFT__MEMORY_ALIGN, from->arg);
}

/* As realloc(): on failure the old memory stays. */
static inline void *weft__memory_resize(const struct weft_allocator *from,
					void *old, size_t old_bytes,
					size_t bytes)
{
	void *memory;

	if (weft__likely(!from))
		return realloc(old, bytes);
	memory = weft__memory_new(from, bytes);
	if (memory && old) {
		memcpy(memory, old, old_bytes < bytes ? old_bytes : bytes);
		weft__memory_free(from, old, old_bytes);
	}
	return memory;
}

/* A copy of the text. */
static inline char *weft__memory_text(const struct weft_allocator *from,
				      const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = weft__memory_new(from, bytes);

	return copy ? memcpy(copy, text, bytes) : NULL;
}

static inline void weft__memory_text_free(const struct weft_allocator *from,
					  char *text)
{
	weft__memory_free(from, text, text ? strlen(text) + 1 : 0);
}

/* At a multiple of WEFT__MEMORY_APART, all zero. */
static inline void *weft__memory_apart(const struct weft_allocator *from,
				       size_t bytes)
{
	/* A multiple of the alignment, as aligned_alloc() asks for. */
	size_t whole = (bytes + WEFT__MEMORY_APART - 1) &
		       ~(size_t)(WEFT__MEMORY_APART - 1);
	void *memory =
		from ? weft__memory_from(from, bytes, WEFT__MEMORY_APART) :
		       aligned_alloc(WEFT__MEMORY_APART, whole);

	return memory ? memset(memory, 0, bytes) : NULL;
}

static inline void weft__memory_apart_free(const struct weft_allocator *from,
					   void *memory, size_t bytes)
{
	if (!from)
		free(memory);
	else if (memory)
		from->dealloc(memory, bytes, WEFT__MEMORY_APART, from->arg);
}

/* Frees what another library took from malloc(). */
static inline void weft__memory_foreign_free(void *memory)
{
	free(memory);
}

#endif
