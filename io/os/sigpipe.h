/* SPDX-License-Identifier: MIT */
/*
 * SIGPIPE - weft's writes never raise it.
 *
 * Writes to sockets have MSG_NOSIGNAL, all others RWF_NOSIGNAL where the kernel
 * knows that (6.18).  Elsewhere a write to a broken pipe raises SIGPIPE in the
 * thread that makes it.  So a thread of the kernel makes it, which has all
 * signals blocked (WEFT__REQUEST_BLOCKS).  sendfile(2) has no such flag, and
 * nor has a write that a thread of the blocking pool makes: there the signal is
 * blocked around each call.
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

/* Discards a signal that came while it was blocked. */
void weft__sigpipe_discard(void);

void weft__sigpipe_unblock(void);

#endif
