/* SPDX-License-Identifier: MIT */
/*
 * Reports of datagrams that did not arrive, from the socket's error queue.
 *
 * A report has the address to which the datagram was sent as its name, and a
 * control message that says what happened and which host reports it.  The data
 * of the datagram, as far as the kernel gives it back, is not read.  A call
 * waits for POLLERR, which is always reported.
 */
#include <time.h>

/* It needs struct timespec. */
#include <linux/errqueue.h>
#include <string.h>

#include "io/os/syscall.h"
#include "net/udp.h"
#include "net/udp_control.h"

/* The report, behind it the reporter's address. */
struct report {
	struct sock_extended_err error;
	union weft__udp_name reporter;
};

union report_control {
	char bytes[CMSG_SPACE(sizeof(struct report)) +
		   sizeof(union weft__udp_control_in)];
	struct cmsghdr aligned;
};

static void addr_take(const void *name, size_t bytes,
		      struct weft_addr *ret_addr)
{
	/* A family of none: the kernel does not know it. */
	(void)!weft_addr_from_sockaddr(name, (socklen_t)bytes, ret_addr);
}

static void report_take(const struct cmsghdr *control,
			struct weft_udp_error *ret_error)
{
	struct report report = { .error = { .ee_errno = 0 } };
	size_t bytes = control->cmsg_len - CMSG_LEN(0);

	memcpy(&report, CMSG_DATA(control),
	       bytes < sizeof(report) ? bytes : sizeof(report));
	ret_error->error = -(int)report.error.ee_errno;
	if (report.error.ee_errno == EMSGSIZE)
		ret_error->mtu = report.error.ee_info;
	if (report.error.ee_origin == SO_EE_ORIGIN_ICMP ||
	    report.error.ee_origin == SO_EE_ORIGIN_ICMP6) {
		ret_error->icmp_type = report.error.ee_type;
		ret_error->icmp_code = report.error.ee_code;
	}
	addr_take(&report.reporter, sizeof(report.reporter),
		  &ret_error->reporter);
}

static void controls_take(const struct msghdr *header,
			  struct weft_udp_error *ret_error)
{
	const char *at = header->msg_control;
	size_t left = header->msg_controllen;

	while (left >= sizeof(struct cmsghdr)) {
		const struct cmsghdr *control = (const void *)at;
		size_t bytes = CMSG_ALIGN(control->cmsg_len);

		if (control->cmsg_len < sizeof(*control) ||
		    control->cmsg_len > left)
			break;
		if ((control->cmsg_level == IPPROTO_IP &&
		     control->cmsg_type == IP_RECVERR) ||
		    (control->cmsg_level == IPPROTO_IPV6 &&
		     control->cmsg_type == IPV6_RECVERR))
			report_take(control, ret_error);
		if (bytes >= left)
			break;
		at += bytes;
		left -= bytes;
	}
}

static int receive_error(struct weft__udp *udp, int fd, void *arg)
{
	struct weft_udp_error error = { .error = 0 };
	union report_control control;
	union weft__udp_name name;
	/* qemu-user receives nothing where there is no buffer. */
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr header = {
		.msg_name = &name,
		.msg_namelen = sizeof(name),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = weft__syscall_recvmsg(fd, &header, MSG_ERRQUEUE);

	(void)udp;
	if (n < 0)
		return (int)n;
	if (header.msg_namelen)
		addr_take(&name, header.msg_namelen, &error.addr);
	controls_take(&header, &error);
	*(struct weft_udp_error *)arg = error;
	return 0;
}

void weft__udp_drop_reports(int fd, uint32_t count)
{
	char byte;
	struct iovec iov = { &byte, 1 };

	for (; count; count--) {
		struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };

		if (weft__syscall_recvmsg(fd, &header, MSG_ERRQUEUE) < 0)
			break;
	}
}

int weft_udp_recv_error(struct weft_udp *udp, struct weft_udp_error *ret_error,
			int flags)
{
	if (!ret_error || !weft__udp_takes_flags(flags) ||
	    !weft__udp(udp)->has_errors)
		return weft__call_refused(-EINVAL);
	/* relaxed: see drops_reports(). */
	weft__store(&weft__udp(udp)->reports, true, relaxed);
	return weft__udp_run(weft__udp(udp), receive_error, ret_error, flags,
			     0);
}
