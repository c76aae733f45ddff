/* SPDX-License-Identifier: MIT */
/*
 * Mask - features of the kernel that weft is not to use, named by the variable
 * WEFT_MASK with commas between them: for kernels that are known to be bad, and
 * for tests of what weft does without.
 */
#ifndef WEFT_IO_OS_MASK_H
#define WEFT_IO_OS_MASK_H

#include <stdbool.h>

enum weft__feature {
	WEFT__FEATURE_ACCEPT_POLL_FIRST,
	WEFT__FEATURE_BUF_RING,
	WEFT__FEATURE_CLOSE_RANGE,
	WEFT__FEATURE_COOP_TASKRUN,
	WEFT__FEATURE_DEFER_TASKRUN,
	WEFT__FEATURE_EPOLL_PWAIT2,
	WEFT__FEATURE_FIXED_FILES,
	WEFT__FEATURE_MULTISHOT_RECV,
	WEFT__FEATURE_NO_IOWAIT,
	WEFT__FEATURE_PIDFD,
	WEFT__FEATURE_RWF_NOSIGNAL,
	WEFT__FEATURE_RWF_NOWAIT,
	WEFT__FEATURE_TMPFILE,
	WEFT__FEATURE_UDP_GRO,
	WEFT__FEATURE_UDP_SEGMENT,
	WEFT__FEATURES,
};

/* Reads the variable, before a runtime opens its rings.  0, or -EINVAL: a name
 * is unknown, which is said on stderr. */
int weft__mask_read(void);

/* Is the feature not to be used? */
bool weft__is_masked(enum weft__feature feature);

#endif
