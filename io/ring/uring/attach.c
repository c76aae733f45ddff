/* SPDX-License-Identifier: MIT */
/*
 * Ring: over io_uring, for a thread that waits in a foreign loop.
 *
 * The loop has an epoll set with the ring's descriptor and the caller's timer.
 * The ring's is readable while there are completions to take.  So a rest needs
 * no look that is ordered against the kernel: what comes at any time stays to
 * be seen.
 *
 * Where the kernel posts completions in the thread that submitted, it first has
 * to interrupt the wait of that thread: epoll_wait(2) returns -EINTR, and finds
 * the set readable when it is called again; poll(2) goes on by itself.
 *
 * Rejected: DEFER_TASKRUN, which such a thread would otherwise use.
 *   - poll(2) of the ring does not report what is held back (Linux 6.18).
 *   - A registered eventfd does, but of the signals from within writes to
 *     another eventfd only the first gets through (Linux 6.18), and threads
 *     wake a worker by one (wake_fd).
 */
#include "io/ring/uring/uring.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/own_fd.h"

static bool set_add(int set_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(set_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

int weft__uring_attach(struct weft__ring *ring, int timer_fd)
{
	struct weft__uring *own = weft__uring(ring);

	/* It is closed with the ring, also after a failure. */
	own->set_fd = weft__fd_above_stdio(epoll_create1(EPOLL_CLOEXEC));
	if (own->set_fd < 0)
		return own->set_fd;
	return set_add(own->set_fd, ring->fd) &&
			       set_add(own->set_fd, timer_fd) ?
		       own->set_fd :
		       -ENOMEM;
}

void weft__uring_detach(struct weft__uring *own)
{
	if (own->set_fd >= 0)
		close(own->set_fd);
}

uint64_t weft__uring_rest(struct weft__ring *ring)
{
	int r = weft__ring_turn(ring);

	if (r < 0 || weft__ring_completed(ring) || weft__ring_held_back(ring))
		return 0;
	return UINT64_MAX;
}

void weft__uring_rouse(struct weft__ring *ring)
{
	(void)weft__ring_turn(ring);
}
