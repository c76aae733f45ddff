/* SPDX-License-Identifier: MIT */
/*
 * Connecting: the request is made again whenever the connection may have been
 * completed meanwhile; the kernel then returns the outcome.
 *
 * A socket that is connecting already is polled for output before the next
 * request.  A Unix socket whose listener's backlog is full cannot be polled:
 * then the task pauses.  For a future the step is in its record
 * (`step`): ASKS, then POLLS or PAUSES, and ASKS again.
 */
#include <weft/io.h>

#include <errno.h>
#include <poll.h>

#include "io/request/call.h"
#include "runtime/future/future.h"

/* A Unix listener whose backlog is full returns EAGAIN, and cannot be
 * polled. */
#define CONNECT_AGAIN_NS 1000000u

/* Is the socket connecting already?  Because it does not block, or through an
 * earlier request of weft's that was begun again, or given up at a deadline. */
static bool is_connecting(int r)
{
	return r == -EALREADY || r == -EINPROGRESS;
}

/* The kernel may have connected the socket, and then have been interrupted. */
static int connect_result(struct weft__task *task, int r)
{
	if (r == -EISCONN && (weft__op_of(task)->flags & WEFT__OP_REPEATS))
		return 0;
	return r;
}

/* Waits before the same request is made again: that request then returns the
 * outcome, as connect(2) would. */
static int connect_wait(int fd, struct weft__fd *entry, int why,
			unsigned tries)
{
	struct weft__worker *worker = weft__worker_self();

	if (is_connecting(why))
		return weft__op_await_ready(fd, entry, POLLOUT, tries);
	worker = weft__op_pause(worker, worker->current,
				weft__op_reason(WEFT__OPCODE_CONNECT, 0, fd),
				CONNECT_AGAIN_NS);
	return weft__interrupted(worker, worker->current);
}

static struct weft__request connect_request(int fd,
					    const struct weft_addr *addr)
{
	return (struct weft__request){
		.opcode = WEFT__OPCODE_CONNECT,
		.fd = fd,
		.memory = weft_addr_sockaddr(addr),
		.address_bytes = weft_addr_sockaddr_bytes(addr),
	};
}

int weft_connect(int fd, const struct weft_addr *addr)
{
	struct weft__request request;
	struct weft__worker *worker;
	struct weft__fd *entry;
	uint8_t closes;
	int r;

	if (!addr || weft_addr_family(addr) == AF_UNSPEC)
		return weft__call_refused(-EINVAL);
	r = weft__call_begin_fd(fd, &worker, &entry);
	if (r < 0)
		return r;
	closes = weft__fd_closes(entry);
	request = connect_request(fd, addr);
	for (unsigned tries = 0;; tries++) {
		r = weft__op_run(&request, entry, 0);
		if (r != -EAGAIN && !is_connecting(r))
			return connect_result(weft__worker_self()->current, r);
		if (weft__fd_closes(entry) == closes)
			r = connect_wait(fd, entry, r, tries);
		if (weft__fd_closes(entry) != closes)
			return -ECANCELED;
		if (r < 0)
			return r;
	}
}

/*
 * For futures.
 */
enum { ASKS, POLLS, PAUSES };

/* A socket that is ready this many times but still connecting is asked less
 * often from then on. */
enum { TRIES_AT_ONCE = 4 };

static int await_step(struct weft__worker *worker, struct weft__task *task,
		      int fd, const struct weft_addr *addr)
{
	struct weft__request request =
		weft__op_of(task)->step == POLLS ?
			weft__request_poll(fd, POLLOUT) :
			connect_request(fd, addr);
	struct weft__fd *entry;
	int r = weft__call_entry(worker, fd, &entry);

	if (r < 0)
		return r;
	return weft__op_await(WEFT__AWAITS_CONNECT, worker, task, &request,
			      entry, 0);
}

static int await_pause(struct weft__worker *worker, struct weft__task *task,
		       int fd)
{
	weft__op_of(task)->step = PAUSES;
	task->awaits = WEFT__AWAITS_CONNECT;
	weft__op_of(task)->reason =
		weft__op_reason(WEFT__OPCODE_CONNECT, 0, fd);
	return weft__await_pause(worker, task, CONNECT_AGAIN_NS);
}

/* The pause is over, or the program polled the future earlier, which does no
 * harm.  Returns 0, or the reason not to ask again. */
static int await_paused(struct weft__worker *worker, struct weft__task *task,
			int fd)
{
	weft__op_of(task)->step = ASKS;
	(void)weft__op_await_end(worker, task, 0);
	return weft__call_goes_on(worker, task, fd);
}

/* A step has ended with r.  Returns 0 if there is another step. */
static int await_next(struct weft__worker *worker, struct weft__task *task,
		      int fd, int r)
{
	if (weft__call_is_closed(task, fd))
		return -ECANCELED;
	if (weft__op_of(task)->step == POLLS) {
		if (r < 0)
			return r;
		if (++weft__op_of(task)->tries > TRIES_AT_ONCE)
			return await_pause(worker, task, fd);
		weft__op_of(task)->step = ASKS;
	} else if (is_connecting(r)) {
		weft__op_of(task)->step = POLLS;
	} else {
		return await_pause(worker, task, fd);
	}
	return weft__future_interrupted(worker, task);
}

static int await_connect(struct weft__worker *worker, struct weft__task *task,
			 int fd, const struct weft_addr *addr)
{
	int r = 0;

	if (weft__op_of(task)->step == PAUSES)
		r = await_paused(worker, task, fd);
	while (r == 0) {
		r = await_step(worker, task, fd, addr);
		/* If no entry is free, the future gets its next turn
		 * immediately. */
		if (r == WEFT_PENDING && task->awaits == WEFT__AWAITS_NOTHING)
			return weft__call_later(WEFT__AWAITS_CONNECT, task, fd,
						weft__op_of(task)->closes);
		if (r == WEFT_PENDING)
			return r;
		if (weft__op_of(task)->step == ASKS && r != -EAGAIN &&
		    !is_connecting(r))
			return connect_result(task, r);
		r = await_next(worker, task, fd, r);
	}
	return r;
}

int weft_await_connect(int fd, const struct weft_addr *addr)
{
	struct weft__worker *worker;
	struct weft__task *task;
	int r = weft__call_await(WEFT__AWAITS_CONNECT, fd, &worker, &task);

	if (r < 0)
		return r;
	weft__assert(task->awaits == WEFT__AWAITS_NOTHING ||
			     weft__op_of(task)->fd == fd,
		     WEFT__AWAITS_ANOTHER);
	if (!addr || weft_addr_family(addr) == AF_UNSPEC)
		return -EINVAL;
	if (task->awaits == WEFT__AWAITS_NOTHING)
		weft__op_of(task)->closes = weft__call_closes(fd);
	r = await_connect(worker, task, fd, addr);
	if (r != WEFT_PENDING)
		weft__op_of(task)->call = 0;
	return r;
}
