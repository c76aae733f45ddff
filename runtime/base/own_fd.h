/* SPDX-License-Identifier: MIT */
/*
 * The descriptors that weft keeps for itself are above 2.  A program may be
 * started without stdin, stdout and stderr, and may put files in their place
 * with dup2(2) at any time; a ring that had such a number would be gone then.
 */
#ifndef WEFT_RUNTIME_BASE_OWN_FD_H
#define WEFT_RUNTIME_BASE_OWN_FD_H

/* Takes the result of a call that opens: a descriptor, or -1 with errno.  Moves
 * it above 2 if necessary; the lower number is free again.  Returns the
 * descriptor, or -errno; then nothing is open. */
int weft__fd_above_stdio(int fd);

/* Of a call that returns a descriptor, or -errno. */
static inline int weft__fd_or_error_above_stdio(int fd)
{
	return fd < 0 ? fd : weft__fd_above_stdio(fd);
}

#endif
