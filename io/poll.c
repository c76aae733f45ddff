/* SPDX-License-Identifier: MIT */
/*
 * Readiness: weft_poll(), and waiting for descriptors that do not block.
 *
 * The ring polls once: a poll that is woken for nothing may fail, and a
 * descriptor that is ready may block all the same.
 */
#include <weft/io.h>

#include <errno.h>

#include "io/request/call.h"
#include "io/request/op.h"
#include "runtime/sched/wait.h"

/* A descriptor that is ready this many times but would still block (a socket
 * whose memory ran out) is asked less often from then on. */
enum { TRIES_AT_ONCE = 4 };

/* The result of a step that is not the first. */
static int32_t overtaken(int32_t r, struct weft__fd *entry, uint8_t closes)
{
	return (int32_t)weft__call_overtaken(r,
					     weft__fd_closes(entry) != closes);
}

/* The poll has failed too often (io/request/op.c): poll(2) tells what holds
 * now.  0: nothing; a pause has passed. */
static int32_t poll_failed(int fd, struct weft__fd *entry, unsigned events,
			   uint8_t closes)
{
	struct weft__worker *worker = weft__worker_self();
	int r = -ECANCELED;

	if (weft__fd_closes(entry) == closes)
		r = weft__syscall_poll(fd, (int)events);
	if (r != 0 && r != -EINTR)
		return overtaken(r, entry, closes);
	worker = weft__op_pause(worker, worker->current,
				weft__op_reason(WEFT__OPCODE_POLL, events, fd),
				WEFT__POLL_AGAIN_NS);
	r = weft__interrupted(worker, worker->current);
	return r == 0 && weft__fd_closes(entry) != closes ? -ECANCELED : r;
}

static int32_t poll_run(int fd, struct weft__fd *entry, unsigned events)
{
	struct weft__request request = weft__request_poll(fd, events);
	uint8_t closes = weft__fd_closes(entry);
	int32_t r = weft__op_run(&request, entry, 0);

	while (weft__unlikely(r == -EINVAL)) {
		r = poll_failed(fd, entry, events, closes);
		if (r != 0)
			return r;
		r = overtaken(weft__op_run(&request, entry, 0), entry, closes);
	}
	return r;
}

int32_t weft__op_await_ready(int fd, struct weft__fd *entry, unsigned events,
			     unsigned tries)
{
	int32_t r = poll_run(fd, entry, events);
	struct weft__worker *worker = weft__worker_self();
	int why;

	if (r < 0)
		return r;
	if (tries >= TRIES_AT_ONCE)
		worker = weft__op_pause(
			worker, worker->current,
			weft__op_reason(WEFT__OPCODE_POLL, events, fd),
			WEFT__POLL_AGAIN_NS);
	why = weft__interrupted(worker, worker->current);
	return why < 0 ? why : r;
}

int32_t weft__op_run_ready(const struct weft__request *request,
			   struct weft__fd *entry, unsigned flags,
			   unsigned events)
{
	uint8_t closes = weft__fd_closes(entry);

	for (unsigned tries = 0;; tries++) {
		int32_t r = weft__op_run(request, entry, flags);

		if (weft__likely(r != -EAGAIN && tries == 0))
			return r;
		if (r != -EAGAIN)
			return overtaken(r, entry, closes);
		r = weft__op_await_ready(request->fd, entry, events, tries);
		if (r < 0)
			return overtaken(r, entry, closes);
		if (weft__fd_closes(entry) != closes)
			return -ECANCELED;
	}
}

int weft_poll(int fd, short events)
{
	struct weft__worker *worker;
	struct weft__fd *entry;
	int r = weft__call_begin_fd(fd, &worker, &entry);

	return r < 0 ? r : poll_run(fd, entry, (unsigned short)events);
}
