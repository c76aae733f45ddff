/* SPDX-License-Identifier: MIT */
/*
 * Features of the kernel that a test is about, and that WEFT_MASK may take
 * away.
 */
#ifndef WEFT_TESTS_SUPPORT_FEATURES_H
#define WEFT_TESTS_SUPPORT_FEATURES_H

#include "io/os/mask.h"
#include "tests/support/needs.h"

static inline bool test_is_unmasked(enum weft__feature feature)
{
	return weft__mask_read() == 0 && !weft__is_masked(feature);
}

static inline bool test_has_ring_buffers(void)
{
	return test_may_lock(NEEDS_LOCKED_BYTES) &&
	       test_is_unmasked(WEFT__FEATURE_BUF_RING) &&
	       test_is_unmasked(WEFT__FEATURE_MULTISHOT_RECV);
}

#define NEEDS_BUFFERS \
	"buf_ring, multishot_recv and 1 MiB of locked memory (RLIMIT_MEMLOCK)"

/* A ring for one thread. */
static inline bool test_has_lone_rings(void)
{
	return test_is_unmasked(WEFT__FEATURE_COOP_TASKRUN) &&
	       test_is_unmasked(WEFT__FEATURE_DEFER_TASKRUN);
}

#define NEEDS_LONE_RINGS "coop_taskrun and defer_taskrun"

#endif
