/* SPDX-License-Identifier: MIT */
/*
 * UDP - a socket of datagrams.
 *
 * A call first makes its system call, which does not wait.  Only if there is
 * nothing to receive, or no room, the request in the kernel is a poll, after
 * which the call tries again: weft__udp_run().  So no buffer is in use during
 * the wait, and nothing is lost if the wait is given up.
 *
 * Concurrency: any tasks and threads; the words are atomic, or immutable once
 * the socket is open.
 */
#ifndef WEFT_NET_UDP_H
#define WEFT_NET_UDP_H

#include <stdint.h>
#include <weft/udp.h>

#include "io/request/call.h"
#include "runtime/base/atomic.h"

/* How many messages a system call takes.  They are described on the stack of
 * the task, which may have 16 KiB. */
enum { WEFT__UDP_BATCH = 16 };

struct weft__udp {
	weft__atomic(int32_t) fd;    /* -1: closed */
	weft__atomic(int32_t) error; /* of a receive that had messages, for the
					next one; or 0 */
	weft__atomic(uint32_t) told; /* errors of calls whose reports the next
					wait drops */
	weft__atomic(bool) segments; /* the kernel takes segment_bytes, and no
					device has refused it */
	weft__atomic(bool) reports;  /* the program takes them */
	bool is_ipv6;		     /* immutable */
	bool has_errors;	     /* immutable */
};

_Static_assert(sizeof(struct weft__udp) <= sizeof(struct weft_udp),
	       "private_words has room");

static inline struct weft__udp *weft__udp(const struct weft_udp *udp)
{
	return (struct weft__udp *)(uintptr_t)udp;
}

static inline int weft__udp_fd(struct weft__udp *udp)
{
	/* relaxed: a number, which a call that races with a close may see or
	 * not. */
	return weft__load(&udp->fd, relaxed);
}

/* One step of a call, which does not wait: 0: done, 1: something was moved, and
 * there is more to do; or an error, as -EAGAIN. */
typedef int (*weft__udp_step)(struct weft__udp *udp, int fd, void *arg);

/* Steps until one is the last; after -EAGAIN waits for the events, unless flags
 * has MSG_DONTWAIT.  0, or an error. */
int weft__udp_run(struct weft__udp *udp, weft__udp_step step, void *arg,
		  int flags, unsigned events);

/* Drops the oldest reports of datagrams that did not arrive, up to a count. */
void weft__udp_drop_reports(int fd, uint32_t count);

/* Counts the messages of a system call in the running task's budget. */
void weft__udp_charge(unsigned messages, size_t bytes);

/* 0, or -EAFNOSUPPORT: the socket has no such peers. */
static inline int weft__udp_check_family(const struct weft__udp *udp,
					 const struct weft_addr *addr)
{
	int family = addr->bytes ? weft_addr_family(addr) : AF_UNSPEC;

	return family == AF_UNIX || (family == AF_INET6 && !udp->is_ipv6) ?
		       -EAFNOSUPPORT :
		       0;
}

/* The result of a call with wrong arguments or flags is -EINVAL. */
static inline bool weft__udp_takes_flags(int flags)
{
	return !(flags & ~MSG_DONTWAIT);
}

#endif
