/* SPDX-License-Identifier: MIT */
/* For child processes, which cannot use ck_assert(), and may have no stderr:
 * the exit status tells the line. */
#ifndef WEFT_TESTS_SUPPORT_NEED_H
#define WEFT_TESTS_SUPPORT_NEED_H

#include <unistd.h>

/* Ends the process with the line's number + 1. */
#define NEED(holds)                                \
	do {                                       \
		if (!(holds))                      \
			_exit(1 + __LINE__ % 255); \
	} while (0)

#endif
