/* SPDX-License-Identifier: MIT */
/*
 * Errno now - the errno of the thread that a task is on at this moment.
 *
 * A compiler takes the address of errno for the same in all of a function, and
 * keeps it; but a task that has been suspended may be on another thread.  So a
 * function that may suspend, or that is inlined into one, asks here.
 */
#ifndef WEFT_TESTS_SUPPORT_ERRNO_NOW_H
#define WEFT_TESTS_SUPPORT_ERRNO_NOW_H

#include <errno.h>

__attribute__((noinline, unused)) static int errno_now(void)
{
	return errno;
}

#endif
