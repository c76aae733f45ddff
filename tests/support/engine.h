/* SPDX-License-Identifier: MIT */
/*
 * Does a runtime use io_uring here?  For tests of what only io_uring does: they
 * are left out on epoll, by name.
 */
#ifndef WEFT_TESTS_SUPPORT_ENGINE_H
#define WEFT_TESTS_SUPPORT_ENGINE_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEEDS_URING "io_uring"

/* The kernel that allows it finds no parameters. */
static inline bool test_has_uring_at_all(void)
{
#ifdef WEFT_WITHOUT_URING
	return false;
#endif
	return syscall(SYS_io_uring_setup, 1, NULL) < 0 && errno == EFAULT;
}

/* And is it not left aside by the variable? */
static inline bool test_has_uring(void)
{
	const char *engine = getenv("WEFT_ENGINE");

	if (engine && strcmp(engine, "epoll") == 0)
		return false;
	return test_has_uring_at_all();
}

#endif
