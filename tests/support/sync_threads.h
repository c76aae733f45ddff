/* SPDX-License-Identifier: MIT */
/*
 * What the suites of locks and flags on real threads share.
 */
#ifndef WEFT_TESTS_SYNC_THREADS_H
#define WEFT_TESTS_SYNC_THREADS_H

#include <pthread.h>

#include "tests/expect.h"
#include "tests/test_io_common.h"

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
