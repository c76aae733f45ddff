/* SPDX-License-Identifier: MIT */
/*
 * Children of fork() that do what would change the test's own process, such as
 * to become another user or to have calls refused; and children that are killed
 * at their work.
 */
#ifndef WEFT_TESTS_SUPPORT_CHILD_KIT_H
#define WEFT_TESTS_SUPPORT_CHILD_KIT_H

#include <stdbool.h>
#include <weft/weft.h>

#include "tests/support/need.h"

/* Runs fn(arg) in a child, where it must return 0.  NEED() ends the child with
 * its line. */
void child_run(weft_fn fn, void *arg);

/* The same, as the first task of a process in which the kernel refuses these
 * calls with an error. */
void child_run_refused(const unsigned *calls, unsigned count, unsigned error,
		       weft_fn fn, void *arg);

/* Without openat2(2), which older kernels do not have and sandboxes refuse. */
void child_run_without_openat2(unsigned error, weft_fn fn, void *arg);

/* May the process have calls refused?  For test_can(). */
bool child_may_refuse(void);

#define NEEDS_REFUSED_CALLS "filters of system calls (seccomp)"

/* Runs fn(NULL), which does not end, as the first task of a child, and kills
 * the child after a while. */
void child_kill(weft_fn fn, const struct weft_opts *opts, long after_ns);

#endif
