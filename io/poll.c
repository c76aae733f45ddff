/* SPDX-License-Identifier: MIT */
/*
 * Readiness: weft_poll(), and waiting for descriptors that do not block.
 */
#include <weft/io.h>

#include <errno.h>

#include "io/request/call.h"
#include "io/request/op.h"
#include "runtime/sched/wait.h"

/* A descriptor that is ready this many times but would still block (a socket
 * whose memory ran out) is asked less often from then on. */
enum { TRIES_AT_ONCE = 4 };

#define TRY_AGAIN_NS 1000000u

static int32_t poll_run(int fd, unsigned events)
{
	struct io_uring_sqe sqe = { 0 };

	io_uring_prep_poll_add(&sqe, fd, events);
	return weft__op_run(&sqe, WEFT__OP_ON_FD);
}

int32_t weft__op_await_ready(int fd, unsigned events, unsigned tries)
{
	int32_t r = poll_run(fd, events);
	struct weft__worker *worker = weft__worker_self();

	if (r >= 0 && tries >= TRIES_AT_ONCE)
		weft__op_pause(worker, weft__running(worker),
			       weft__op_reason(IORING_OP_POLL_ADD, events, fd),
			       TRY_AGAIN_NS);
	return r;
}

int32_t weft__op_run_ready(const struct io_uring_sqe *sqe, unsigned flags,
			   unsigned events)
{
	uint8_t closes = weft__call_closes(sqe->fd);

	for (unsigned tries = 0;; tries++) {
		int32_t r = weft__op_run(sqe, flags);

		if (weft__likely(r != -EAGAIN))
			return r;
		r = weft__op_await_ready(sqe->fd, events, tries);
		if (r < 0)
			return r;
		if (weft__call_closes(sqe->fd) != closes)
			return -ECANCELED;
	}
}

int weft_poll(int fd, short events)
{
	if (fd < 0)
		return weft__running(weft__worker_self()) ? -EBADF : -EPERM;
	return poll_run(fd, (unsigned short)events);
}
