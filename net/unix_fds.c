/* SPDX-License-Identifier: MIT */
/*
 * Descriptors and credentials of Unix sockets.
 *
 * There is always room for the most descriptors that a message can have, so the
 * kernel cuts their list off only if it cannot give the process a number.
 */
#include <weft/net.h>

#include <errno.h>
#include <string.h>

#include "io/request/call.h"
#include "net/socket.h"

/* And for what the owner of the socket has asked for, such as a time. */
union control {
	char bytes[CMSG_SPACE(WEFT_UNIX_FDS_MAX * sizeof(int)) + 256];
	struct cmsghdr aligned;
};

/* ---- Sending ------------------------------------------------------------- */

ssize_t weft_unix_send_fds(int fd, const void *buf, size_t bytes,
			   const int *fds, int fds_count)
{
	struct iovec iov = { (void *)(uintptr_t)buf, bytes };
	union control control;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t fds_bytes = (size_t)fds_count * sizeof(int);

	if (fds_count < 0 || fds_count > WEFT_UNIX_FDS_MAX ||
	    (fds_count && (!fds || !bytes)))
		return weft__call_refused(-EINVAL);
	if (fds_count) {
		memset(&control, 0, CMSG_SPACE(fds_bytes));
		control.aligned.cmsg_len = (socklen_t)CMSG_LEN(fds_bytes);
		control.aligned.cmsg_level = SOL_SOCKET;
		control.aligned.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.aligned), fds, fds_bytes);
		msg.msg_control = &control;
		msg.msg_controllen = (socklen_t)CMSG_SPACE(fds_bytes);
	}
	return weft_sendmsg(fd, &msg, 0);
}

/* ---- Receiving ----------------------------------------------------------- */

/* Older headers do not name it: Linux 6.5. */
#ifndef SCM_PIDFD
#define SCM_PIDFD 0x04
#endif

/* The owner of the socket may have asked for a descriptor of the sending
 * process (SO_PASSPIDFD), which no caller gets. */
static void pidfd_close(const struct cmsghdr *control)
{
	int fd;

	if (control->cmsg_len < CMSG_LEN(sizeof(fd)))
		return;
	memcpy(&fd, CMSG_DATA(control), sizeof(fd));
	/* The kernel may have had none. */
	if (fd >= 0)
		(void)weft_close(fd);
}

/* Takes the descriptors out of the control messages; returns how many. */
static int fds_take(const struct msghdr *msg, int fds[WEFT_UNIX_FDS_MAX])
{
	const char *at = msg->msg_control;
	size_t left = msg->msg_controllen, count = 0;

	while (left >= sizeof(struct cmsghdr)) {
		const struct cmsghdr *control = (const void *)at;
		size_t bytes = control->cmsg_len;

		if (bytes < sizeof(*control) || bytes > left)
			break;
		if (control->cmsg_level == SOL_SOCKET &&
		    control->cmsg_type == SCM_RIGHTS) {
			memcpy(fds + count, CMSG_DATA(control),
			       bytes - CMSG_LEN(0));
			count += (bytes - CMSG_LEN(0)) / sizeof(int);
		} else if (control->cmsg_level == SOL_SOCKET &&
			   control->cmsg_type == SCM_PIDFD) {
			pidfd_close(control);
		}
		if (CMSG_ALIGN(bytes) >= left)
			break;
		at += CMSG_ALIGN(bytes);
		left -= CMSG_ALIGN(bytes);
	}
	return (int)count;
}

static int fds_refuse(const int *fds, int count, int error)
{
	for (int i = 0; i < count; i++)
		(void)weft_close(fds[i]);
	return error;
}

ssize_t weft_unix_recv_fds(int fd, void *buf, size_t bytes, int *ret_fds,
			   int fds_max, int *ret_fds_count)
{
	struct iovec iov = { buf, bytes };
	union control control;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int fds[WEFT_UNIX_FDS_MAX], count;
	ssize_t n;

	if (fds_max < 0 || (fds_max && !ret_fds) || !ret_fds_count)
		return weft__call_refused(-EINVAL);
	n = weft_recvmsg(fd, &msg, 0);
	if (n < 0)
		return n;
	count = fds_take(&msg, fds);
	if (msg.msg_flags & MSG_CTRUNC)
		return fds_refuse(fds, count, -EMFILE);
	if (count > fds_max)
		return fds_refuse(fds, count, -EMSGSIZE);
	if (count)
		memcpy(ret_fds, fds, (size_t)count * sizeof(int));
	*ret_fds_count = count;
	return n;
}

/* ---- The peer ------------------------------------------------------------ */

int weft_peer_cred(int fd, struct weft_cred *ret_cred)
{
	struct ucred cred;
	int family;
	int r = ret_cred ? weft__socket_get_option(fd, SOL_SOCKET, SO_DOMAIN,
						   &family, sizeof(family)) :
			   -EINVAL;

	if (r == 0 && family != AF_UNIX)
		r = -EAFNOSUPPORT;
	if (r == 0)
		r = weft__socket_get_option(fd, SOL_SOCKET, SO_PEERCRED, &cred,
					    sizeof(cred));
	if (r < 0)
		return r;
	/* The kernel has none. */
	if (cred.uid == (uid_t)-1)
		return -ENOTCONN;
	ret_cred->pid = cred.pid;
	ret_cred->uid = cred.uid;
	ret_cred->gid = cred.gid;
	return 0;
}
