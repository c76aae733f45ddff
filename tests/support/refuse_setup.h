/* SPDX-License-Identifier: MIT */
/*
 * A test in which a kernel refuses io_uring or a part of it.
 */
#ifndef WEFT_TESTS_SUPPORT_REFUSE_SETUP_H
#define WEFT_TESTS_SUPPORT_REFUSE_SETUP_H

#include <check.h>
#include <sys/syscall.h>

#include "tests/support/refuse_calls.h"

/* That system call gives that error from now on, in this process. */
static inline void refuse_call(unsigned number, unsigned error)
{
	ck_assert(refuse_calls(&number, 1, error));
}

static inline void refuse_setup(unsigned error)
{
	refuse_call(SYS_io_uring_setup, error);
}

#endif
