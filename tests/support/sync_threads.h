/* SPDX-License-Identifier: MIT */
/*
 * Helpers that the suites of locks and flags on real threads share.
 */
#ifndef WEFT_TESTS_SUPPORT_SYNC_THREADS_H
#define WEFT_TESTS_SUPPORT_SYNC_THREADS_H

#include <pthread.h>

#include "tests/support/expect.h"
#include "tests/support/io_kit.h"

#if defined(WEFT__ASAN) || defined(WEFT__TSAN) || defined(WEFT_VALGRIND)
enum { SLOWLY = 10 };
#else
enum { SLOWLY = 1 };
#endif

static inline uint32_t rounds(uint32_t count)
{
	return count / SLOWLY * (getenv("WEFT_TEST_LONG") ? 5 : 1);
}

#endif
