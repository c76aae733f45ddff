/* SPDX-License-Identifier: MIT */
/*
 * WEFT_TEST_FEW=n: one in n of the seeds, rounds, or calls that fail; where a
 * tool makes all of them slow, or there is little time.  Other runs have all.
 */
#ifndef WEFT_TESTS_SUPPORT_FEW_H
#define WEFT_TESTS_SUPPORT_FEW_H

#include <stdlib.h>

/* At least 1. */
static inline unsigned test_few(void)
{
	const char *text = getenv("WEFT_TEST_FEW");

	return text && atoi(text) > 0 ? (unsigned)atoi(text) : 1;
}

#endif
