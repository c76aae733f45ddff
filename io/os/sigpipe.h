/* SPDX-License-Identifier: MIT */
/*
 * SIGPIPE - weft's writes never raise it.
 *
 * Writes to sockets have MSG_NOSIGNAL, all others RWF_NOSIGNAL where the kernel
 * knows that (6.18).  Elsewhere a write to a broken pipe raises SIGPIPE in the
 * thread that makes it.  So the signal is blocked around each call of a thread
 * of weft's, also around sendfile(2), which has no such flag.  A request that
 * has to wait is made by a thread of the kernel, which has all signals blocked
 * (WEFT__REQUEST_BLOCKS).
 *
 * Rejected
 *   Workers that block the signal all the time: so would each process that a
 *   task starts.
 */
#ifndef WEFT_IO_OS_SIGPIPE_H
#define WEFT_IO_OS_SIGPIPE_H

#include <stdbool.h>

/* A write flag that keeps SIGPIPE from being raised; Linux 6.18, newer
 * headers. */
#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL 0x00000100
#endif

/* Does the kernel know that flag?  False if that cannot be found out. */
bool weft__sigpipe_is_avoidable(void);

/* Blocks the signal in this thread.  True: it was not blocked before. */
bool weft__sigpipe_block(void);

/* Ends that, with its result.  raised: a signal may have come meanwhile; it is
 * discarded. */
void weft__sigpipe_restore(bool blocked, bool raised);

#endif
