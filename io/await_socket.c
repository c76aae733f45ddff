/* SPDX-License-Identifier: MIT */
/*
 * Sockets, awaited by futures.  The request in the kernel is a poll, and a
 * system call that does not wait moves the bytes.  So no buffer is in use
 * during the wait, and nothing is lost if the wait is given up.
 */
#include <poll.h>

#include "io/request/call.h"
#include "runtime/future/future.h"

/* Identifies a call, so that a future that changes to another is noticed: the
 * upper bits are the call, the lower ones the events that it waits for. */
enum {
	ASKS_READY = 1 << 16,
	ASKS_RECV = 2 << 16 | POLLIN,
	ASKS_SEND = 3 << 16 | POLLOUT,
};

static int await_enter(int fd, uint32_t asks, struct weft__worker **ret_worker,
		       struct weft__task **ret_task)
{
	struct weft__task *task = weft__polled(weft__worker_self());
	int r;

	weft__assert(!task || task->awaits != WEFT__AWAITS_OP ||
			     weft__op_of(task)->asks == asks,
		     WEFT__AWAITS_ANOTHER);
	r = weft__call_await(WEFT__AWAITS_OP, fd, ret_worker, ret_task);
	if (r == WEFT_PENDING)
		weft__op_of(task)->asks = asks;
	return r;
}

/* The poll has failed too often (io/request/op.c): poll(2) tells what holds
 * now.  If nothing does, the call begins again after a pause. */
static int await_failed(struct weft__worker *worker, struct weft__task *task,
			int fd, uint32_t asks)
{
	uint8_t closes = weft__op_of(task)->closes;
	int r = -ECANCELED;

	if (!weft__call_is_closed(task, fd))
		r = weft__syscall_poll(fd, (uint16_t)asks);
	if (r != 0 && r != -EINTR)
		return (int)weft__call_overtaken(
			r, weft__call_is_closed(task, fd));
	(void)weft__call_later(WEFT__AWAITS_OP, task, fd, closes);
	weft__op_of(task)->asks = asks;
	weft__op_of(task)->reason =
		weft__op_reason(WEFT__OPCODE_POLL, (uint16_t)asks, fd);
	return weft__await_pause(worker, task, WEFT__POLL_AGAIN_NS);
}

static int await_ready(struct weft__worker *worker, struct weft__task *task,
		       int fd, uint32_t asks)
{
	struct weft__request request =
		weft__request_poll(fd, (uint16_t)asks);
	bool begins = task->awaits == WEFT__AWAITS_NOTHING;
	struct weft__fd *entry;
	int r = weft__call_entry(worker, fd, &entry);
	uint8_t closes;

	if (r < 0)
		return r;
	closes = weft__fd_closes(entry);
	r = weft__op_await(WEFT__AWAITS_OP, worker, task, &request, entry, 0);
	if (r == WEFT_PENDING) {
		if (begins)
			weft__op_of(task)->closes = closes;
		/* If no entry is free, the future gets its next turn
		 * immediately. */
		if (task->awaits == WEFT__AWAITS_NOTHING)
			(void)weft__call_later(WEFT__AWAITS_OP, task, fd,
					       weft__op_of(task)->closes);
		weft__op_of(task)->asks = asks;
		return r;
	}
	if (weft__unlikely(r == -EINVAL)) {
		r = await_failed(worker, task, fd, asks);
		if (r == WEFT_PENDING)
			return r;
	}
	/* The descriptor was ready, and was closed before the future was
	 * polled. */
	if (r >= 0 && !begins && weft__op_of(task)->closes != closes)
		r = -ECANCELED;
	weft__op_of(task)->call = 0;
	return r;
}

int weft_await_ready(int fd, short events)
{
	struct weft__worker *worker;
	struct weft__task *task;
	uint32_t asks = ASKS_READY | (uint16_t)events;
	int r = await_enter(fd, asks, &worker, &task);

	if (r < 0)
		return r;
	if (fd < 0)
		return -EBADF;
	return await_ready(worker, task, fd, asks);
}

/* The descriptor was ready, but the call found nothing.  The future may have
 * been polled for a cancellation: then it must not wait again. */
static int await_again(struct weft__worker *worker, struct weft__task *task,
		       int fd, uint32_t asks)
{
	int r = 0;

	if (task->awaits == WEFT__AWAITS_NOTHING)
		r = weft__future_interrupted(worker, task);
	return r < 0 ? r : await_ready(worker, task, fd, asks);
}

ssize_t weft_await_recv(int fd, void *buf, size_t bytes, int flags)
{
	struct weft__worker *worker;
	struct weft__task *task;
	ssize_t r = await_enter(fd, ASKS_RECV, &worker, &task);
	struct weft__fd *entry = NULL;
	bool waits;

	if (r < 0)
		return r;
	if (!flags)
		entry = weft__fd_find(&weft__reactor(worker->runtime)->fds,
				      fd);
	/* Is it known that there is nothing to receive? */
	waits = task->awaits == WEFT__AWAITS_OP ||
		(entry && weft__fd_drained(entry));
	for (;;) {
		if (waits) {
			r = await_again(worker, task, fd, ASKS_RECV);
			if (r < 0)
				return r;
		}
		r = weft__syscall_recv(fd, buf, bytes, flags);
		if (r != -EAGAIN || (flags & MSG_DONTWAIT))
			break;
		waits = true;
	}
	if (entry)
		weft__fd_set_drained(entry, r > 0 && (size_t)r < bytes);
	return r;
}

ssize_t weft_await_send(int fd, const void *buf, size_t bytes, int flags)
{
	struct weft__worker *worker;
	struct weft__task *task;
	ssize_t r = await_enter(fd, ASKS_SEND, &worker, &task);

	if (r < 0)
		return r;
	for (;;) {
		if (task->awaits == WEFT__AWAITS_OP || r == -EAGAIN) {
			r = await_again(worker, task, fd, ASKS_SEND);
			if (r < 0)
				return r;
		}
		r = weft__syscall_send(fd, buf, bytes, flags);
		/* The socket connects first: TCP_FASTOPEN_CONNECT. */
		if (r == -EINPROGRESS)
			r = -EAGAIN;
		if (r != -EAGAIN || (flags & MSG_DONTWAIT))
			return r;
	}
}
