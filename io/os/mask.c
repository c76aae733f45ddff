/* SPDX-License-Identifier: MIT */
#include "io/os/mask.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomic.h"

static const char *const names[WEFT__FEATURES] = {
	[WEFT__FEATURE_ACCEPT_POLL_FIRST] = "accept_poll_first",
	[WEFT__FEATURE_BUF_RING] = "buf_ring",
	[WEFT__FEATURE_CLOSE_RANGE] = "close_range",
	[WEFT__FEATURE_COOP_TASKRUN] = "coop_taskrun",
	[WEFT__FEATURE_DEFER_TASKRUN] = "defer_taskrun",
	[WEFT__FEATURE_EPOLL_PWAIT2] = "epoll_pwait2",
	[WEFT__FEATURE_FIXED_FILES] = "fixed_files",
	[WEFT__FEATURE_MULTISHOT_RECV] = "multishot_recv",
	[WEFT__FEATURE_NO_IOWAIT] = "no_iowait",
	[WEFT__FEATURE_PIDFD] = "pidfd",
	[WEFT__FEATURE_RWF_NOSIGNAL] = "rwf_nosignal",
	[WEFT__FEATURE_RWF_NOWAIT] = "rwf_nowait",
	[WEFT__FEATURE_TMPFILE] = "tmpfile",
	[WEFT__FEATURE_UDP_GRO] = "udp_gro",
	[WEFT__FEATURE_UDP_SEGMENT] = "udp_segment",
};

/* The last runtime that was opened has set it; orders nothing. */
static weft__atomic(uint32_t) masked;

/* WEFT__FEATURES: there is none of that name. */
static unsigned feature_of(const char *name, size_t length)
{
	unsigned i = 0;

	while (i < WEFT__FEATURES && (strlen(names[i]) != length ||
				      memcmp(names[i], name, length) != 0))
		i++;
	return i;
}

static int refuse(const char *name, size_t length)
{
	fprintf(stderr, "weft: WEFT_MASK names '%.*s', but knows only",
		(int)length, name);
	for (unsigned i = 0; i < WEFT__FEATURES; i++)
		fprintf(stderr, " %s", names[i]);
	fprintf(stderr, "\n");
	return -EINVAL;
}

int weft__mask_read(void)
{
	const char *name = secure_getenv("WEFT_MASK");
	uint32_t set = 0;

	while (name && *name) {
		size_t length = strcspn(name, ",");
		unsigned feature = feature_of(name, length);

		if (length && feature == WEFT__FEATURES)
			return refuse(name, length);
		if (length)
			set |= 1u << feature;
		name += length + (name[length] == ',');
	}
	/* relaxed: see above. */
	weft__store(&masked, set, relaxed);
	return 0;
}

bool weft__is_masked(enum weft__feature feature)
{
	/* relaxed: see above. */
	return weft__load(&masked, relaxed) >> feature & 1;
}
