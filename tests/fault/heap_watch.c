/* SPDX-License-Identifier: MIT */
#include "tests/fault/heap_watch.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomic.h"

/* relaxed, everywhere here: counts, read when the runtimes have ended. */
static weft__atomic(uint64_t) taken, given_back;
static weft__atomic(void *) last_caller;

#define WRAPPED(result, name, ...)          \
	result __real_##name(__VA_ARGS__);  \
	result __wrap_##name(__VA_ARGS__);  \
	result __wrap_##name(__VA_ARGS__)

#define CALLER __builtin_return_address(0)

static void count_back(const void *memory)
{
	if (memory)
		weft__add(&given_back, (uint64_t)1, relaxed);
}

static void count(void *caller)
{
	weft__add(&taken, (uint64_t)1, relaxed);
	weft__store(&last_caller, caller, relaxed);
}

WRAPPED(void *, malloc, size_t bytes)
{
	count(CALLER);
	return __real_malloc(bytes);
}

WRAPPED(void *, calloc, size_t n, size_t bytes)
{
	count(CALLER);
	return __real_calloc(n, bytes);
}

WRAPPED(void *, realloc, void *memory, size_t bytes)
{
	count(CALLER);
	count_back(memory);
	return __real_realloc(memory, bytes);
}

WRAPPED(void *, reallocarray, void *memory, size_t n, size_t bytes)
{
	count(CALLER);
	count_back(memory);
	return __real_reallocarray(memory, n, bytes);
}

WRAPPED(void *, aligned_alloc, size_t align, size_t bytes)
{
	count(CALLER);
	return __real_aligned_alloc(align, bytes);
}

WRAPPED(int, posix_memalign, void **memory, size_t align, size_t bytes)
{
	count(CALLER);
	return __real_posix_memalign(memory, align, bytes);
}

WRAPPED(char *, strdup, const char *text)
{
	count(CALLER);
	return __real_strdup(text);
}

WRAPPED(char *, strndup, const char *text, size_t bytes)
{
	count(CALLER);
	return __real_strndup(text, bytes);
}

WRAPPED(void, free, void *memory)
{
	count_back(memory);
	__real_free(memory);
}

struct heap_calls heap_calls(void)
{
	return (struct heap_calls){
		.taken = weft__load(&taken, relaxed),
		.given_back = weft__load(&given_back, relaxed),
		.caller = weft__load(&last_caller, relaxed),
	};
}

void *heap_take(size_t bytes)
{
	return __real_malloc(bytes);
}

void heap_give_back(void *memory)
{
	__real_free(memory);
}
