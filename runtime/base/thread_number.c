/* SPDX-License-Identifier: MIT */
#include "runtime/base/thread_number.h"

#include "runtime/base/atomic.h"

static weft__atomic(uint64_t) given;
static __thread uint64_t number;

uint64_t weft__thread_number(void)
{
	if (!number)
		/* relaxed: only tells threads apart. */
		number = weft__add(&given, (uint64_t)1, relaxed) + 1;
	return number;
}

void weft__thread_number_forget(void)
{
	number = 0;
}
