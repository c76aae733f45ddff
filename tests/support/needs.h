/* SPDX-License-Identifier: MIT */
/*
 * Things that a test needs and not every machine has.  A test without them is
 * left out, and the program prints its name.
 */
#ifndef WEFT_TESTS_SUPPORT_NEEDS_H
#define WEFT_TESTS_SUPPORT_NEEDS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Valgrind sends a program's signals itself, and has actions of its own. */
#ifdef WEFT_VALGRIND
enum { TEST_HAS_SIGNALS = 0 };
#else
enum { TEST_HAS_SIGNALS = 1 };
#endif

/* Tools reserve address space of their own. */
#if defined(WEFT__ASAN) || defined(WEFT__TSAN) || defined(WEFT_VALGRIND)
enum { TEST_CAN_LIMIT_ADDRESS_SPACE = 0 };
#else
enum { TEST_CAN_LIMIT_ADDRESS_SPACE = 1 };
#endif

bool test_needs(bool met, const char *test, const char *what);

/* In a child, so that it has no effect.  Valgrind has exit codes of its own. */
bool test_can(bool (*try)(void));

/* May the process have that many descriptors?  Raises its own limit, if that is
 * lower. */
bool test_has_descriptors(rlim_t count);

/* May the user lock that much memory?  Buffers that the kernel picks from are
 * locked too; a stream that gets none does without. */
bool test_may_lock(size_t bytes);

#define NEEDS_LOCKED_BYTES ((size_t)1 << 20)

/* A user that no other process has: some limits count all that a user has. */
bool become_another_user(void);

#define NEEDS_ANOTHER_USER "a user of its own, which root can become"

/* A user that is not root. */
bool become_unprivileged(void);

/* A process without threads becomes one that may mount; no other process sees
 * what it does.  It keeps its user. */
bool become_mount_owner(void);

#define NEEDS_MOUNTS "mounts of its own"

#endif
