/* SPDX-License-Identifier: MIT */
/*
 * Heap watch - counts the calls of malloc() and its kin that the objects of
 * this program make, weft's among them: the linker passes them here (--wrap).
 * Those of shared libraries are not seen.
 */
#ifndef WEFT_TESTS_FAULT_HEAP_WATCH_H
#define WEFT_TESTS_FAULT_HEAP_WATCH_H

#include <stddef.h>
#include <stdint.h>

struct heap_calls {
	uint64_t taken;	      /* calls that allocate */
	uint64_t given_back;  /* calls of free(), but for free(NULL) */
	const void *caller;   /* of the last that allocates */
};

struct heap_calls heap_calls(void);

/* Not counted. */
void *heap_take(size_t bytes);
void heap_give_back(void *memory);

#endif
