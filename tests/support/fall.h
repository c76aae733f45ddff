/* SPDX-License-Identifier: MIT */
/* A stack that overflows. */
#ifndef WEFT_TESTS_SUPPORT_FALL_H
#define WEFT_TESTS_SUPPORT_FALL_H

#include <stdint.h>

/* Each call needs a page, and more stack than the compiler can optimize
 * away. */
static __attribute__((noinline)) int64_t fall(int64_t depth)
{
	volatile char page[4096];

	page[0] = (char)depth;
	page[sizeof(page) - 1] = page[0];
	return depth ? fall(depth - 1) + page[0] : 0;
}

#endif
