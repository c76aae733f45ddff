/* SPDX-License-Identifier: MIT */
/*
 * Kernel - what the one that runs here can do, where only a try tells.
 */
#ifndef WEFT_IO_RING_URING_PROBE_H
#define WEFT_IO_RING_URING_PROBE_H

#include <stdbool.h>

/* Not raising SIGPIPE on a broken pipe; Linux 6.18, and newer headers. */
#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL 0x00000100
#endif

/* Whether writes can be told not to raise SIGPIPE; false if that cannot be
 * found out. */
bool weft__probe_has_nosignal(void);

/* Whether a receive that goes on is always told that its socket has come to its
 * end; false if that cannot be found out.  It is tried once a process. */
bool weft__probe_tells_ends(void);

/* Tries it. */
bool weft__probe_try_ends(void);

#endif
