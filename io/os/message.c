/* SPDX-License-Identifier: MIT */
#include "io/os/message.h"

#include <errno.h>
#include <string.h>

/* SCM_MAX_FD descriptors, in one control message. */
_Static_assert(!WEFT__MESSAGE_IS_PADDED ||
		       WEFT__CONTROL_BYTES >= CMSG_SPACE(253 * sizeof(int)),
	       "the control messages of a message fit");

/* CMSG_NXTHDR() of such a library does not compile without warnings. */
static void control_clean(char *control, size_t control_bytes)
{
	size_t at = 0, bytes;

	while (at < control_bytes &&
	       control_bytes - at >= sizeof(struct cmsghdr)) {
		bytes = ((struct cmsghdr *)(void *)(control + at))->cmsg_len;
		memcpy(control + at, &bytes, sizeof(bytes));
		at += CMSG_ALIGN(bytes);
		if (bytes < sizeof(struct cmsghdr))
			break; /* the kernel refuses it */
	}
}

int weft__message_copy(struct weft__message *copy, const struct msghdr *msg,
		       bool is_sent)
{
	struct msghdr *header = &copy->header;

	memset(header, 0, sizeof(*header));
	header->msg_name = msg->msg_name;
	header->msg_namelen = msg->msg_namelen;
	header->msg_iov = msg->msg_iov;
	header->msg_iovlen = msg->msg_iovlen;
	header->msg_control = msg->msg_control;
	header->msg_controllen = msg->msg_controllen;
	header->msg_flags = msg->msg_flags;
	if (!is_sent || !msg->msg_controllen)
		return 0;
	if (msg->msg_controllen > sizeof(copy->control))
		return -ENOBUFS;
	memcpy(copy->control, msg->msg_control, msg->msg_controllen);
	header->msg_control = copy->control;
	control_clean(copy->control, msg->msg_controllen);
	return 0;
}

void weft__message_give_back(const struct weft__message *copy,
			     struct msghdr *msg)
{
	msg->msg_namelen = copy->header.msg_namelen;
	msg->msg_controllen = copy->header.msg_controllen;
	msg->msg_flags = copy->header.msg_flags;
}
