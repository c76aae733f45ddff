/* SPDX-License-Identifier: MIT */
/*
 * Message - a struct msghdr as the kernel reads it.
 *
 * The kernel has lengths of 64 bits.  POSIX wants an int and a socklen_t, which
 * some C libraries (musl) have, with padding beside them.  A caller need not
 * set that, and the library's own sendmsg() clears it.
 */
#ifndef WEFT_IO_OS_MESSAGE_H
#define WEFT_IO_OS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

typedef __typeof__(((struct msghdr *)0)->msg_iovlen) weft__iov_count;

#define WEFT__MESSAGE_IS_PADDED (sizeof(weft__iov_count) != sizeof(size_t))

/* The most descriptors that a message takes, and more. */
enum { WEFT__CONTROL_BYTES = WEFT__MESSAGE_IS_PADDED ? 2048 : 1 };

struct weft__message {
	struct msghdr header;
	_Alignas(struct cmsghdr) char control[WEFT__CONTROL_BYTES];
};

/* Makes a copy without padding; is_sent: of the control messages, too.  0, or
 * -ENOBUFS: they are too long. */
int weft__message_copy(struct weft__message *copy, const struct msghdr *msg,
		       bool is_sent);

/* Takes over what the kernel has written into the copy. */
void weft__message_give_back(const struct weft__message *copy,
			     struct msghdr *msg);

#endif
