/* SPDX-License-Identifier: MIT */
/*
 * Features of the kernel that a test is about, and that WEFT_MASK may take
 * away.
 */
#ifndef WEFT_TESTS_SUPPORT_FEATURES_H
#define WEFT_TESTS_SUPPORT_FEATURES_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "io/os/mask.h"
#include "net/udp_control.h"
#include "tests/support/needs.h"

static inline bool test_is_unmasked(enum weft__feature feature)
{
	return weft__mask_read() == 0 && !weft__is_masked(feature);
}

#define NEEDS_MULTISHOT "multishot_recv"

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

/* Does the kernel know an option of UDP? */
static inline bool test_knows_udp(int option)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), value = 0;
	bool knows;

	if (fd < 0)
		return false;
	knows = setsockopt(fd, IPPROTO_UDP, option, &value, sizeof(value)) == 0;
	close(fd);
	return knows;
}

static inline bool test_has_udp_segments(void)
{
	return test_is_unmasked(WEFT__FEATURE_UDP_SEGMENT) &&
	       test_knows_udp(UDP_SEGMENT);
}

#define NEEDS_UDP_SEGMENTS "udp_segment (Linux 4.18)"

static inline bool test_has_udp_gro(void)
{
	return test_is_unmasked(WEFT__FEATURE_UDP_GRO) &&
	       test_knows_udp(UDP_GRO);
}

#endif
