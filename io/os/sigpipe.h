/* SPDX-License-Identifier: MIT */
/*
 * SIGPIPE - never raised by a write of weft's.
 *
 * Sockets are written to with MSG_NOSIGNAL, all else with RWF_NOSIGNAL where
 * the kernel has that (6.18).  Elsewhere a write to a broken pipe raises
 * SIGPIPE in the thread that submits it, so the workers' threads keep it
 * blocked while they run, and the thread that called weft_run() gets its mask
 * back afterwards.  sendfile(2) has no such flag: it is blocked around each.
 */
#ifndef WEFT_IO_OS_SIGPIPE_H
#define WEFT_IO_OS_SIGPIPE_H

#include <stdbool.h>

/* Blocks it in this thread.  True: it was not blocked. */
bool weft__sigpipe_block(void);

/* Throws away one that came while it was blocked. */
void weft__sigpipe_discard(void);

void weft__sigpipe_unblock(void);

#endif
