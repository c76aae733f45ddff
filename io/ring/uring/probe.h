/* SPDX-License-Identifier: MIT */
/*
 * Probe - features of the running kernel that only a try can show.
 */
#ifndef WEFT_IO_RING_URING_PROBE_H
#define WEFT_IO_RING_URING_PROBE_H

#include <stdbool.h>

/* A write flag that keeps SIGPIPE from being raised; Linux 6.18, newer
 * headers. */
#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL 0x00000100
#endif

/* Can writes be made without raising SIGPIPE?  False if that cannot be found
 * out. */
bool weft__probe_has_nosignal(void);

/* Does a multishot receive always report the end of its socket?  False if that
 * cannot be found out.  It is tried once in a process. */
bool weft__probe_tells_ends(void);

/* Tries it each time. */
bool weft__probe_try_ends(void);

#endif
