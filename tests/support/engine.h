/* SPDX-License-Identifier: MIT */
/*
 * Does a runtime use io_uring here?  For tests of what only io_uring does: they
 * are left out on epoll, by name.
 */
#ifndef WEFT_TESTS_SUPPORT_ENGINE_H
#define WEFT_TESTS_SUPPORT_ENGINE_H

#include <stdbool.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "tests/support/needs.h"

#define NEEDS_URING "io_uring"

/* Not every kernel that has io_uring has all of it that weft needs, so that
 * weft is asked, in a child. */
bool test_has_uring_at_all(void);

/* And is it not left aside by the variable? */
bool test_has_uring(void);

#endif
