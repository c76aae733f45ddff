/* SPDX-License-Identifier: MIT */
/*
 * For tests that look at millions of things: ck_assert() logs each success,
 * which is slow.
 */
#ifndef WEFT_TESTS_SUPPORT_EXPECT_H
#define WEFT_TESTS_SUPPORT_EXPECT_H

#define EXPECT(holds)                                                  \
	do {                                                           \
		if (!(holds))                                          \
			ck_abort_msg("line %d: %s", __LINE__, #holds); \
	} while (0)

#endif
