/* SPDX-License-Identifier: MIT */
/*
 * Accepting.  Each call has a request of its own in the kernel, as a receive
 * has: no connection is taken that no call asks for.  The others stay in the
 * listener's backlog, for later calls and for other processes.  The kernel
 * wakes one of the requests that wait for a listener.  A request first polls:
 * a try in vain costs the kernel a socket and a descriptor, which is more than
 * the poll.
 *
 * The result of a request decides what is next (next_of()): the call returns
 * it, makes the request again, or first waits until the listener is ready (it
 * does not block) or the process has a free descriptor (starving.h).  A future
 * keeps its step in its record: ASKS; then POLLS and TRIES, or STARVES and ASKS
 * again.
 */
#include <weft/io.h>

#include <errno.h>
#include <poll.h>

#include "io/request/call.h"
#include "io/request/starving.h"
#include "runtime/future/future.h"

/* Where the kernel puts the peer's address. */
struct peer {
	struct sockaddr_storage address;
	socklen_t bytes;
};

/* polls: see above.  A descriptor that does not listen is asked without it, as
 * it may never be ready; and so is a listener that does not block: for that the
 * kernel does not poll, and the result would be -EAGAIN. */
static struct weft__request accept_request(int fd, struct peer *peer,
					   bool polls)
{
	return (struct weft__request){
		.opcode = WEFT__OPCODE_ACCEPT,
		.flags = polls ? WEFT__REQUEST_POLL_FIRST : 0,
		.fd = fd,
		.memory = peer ? &peer->address : NULL,
		.how = SOCK_CLOEXEC,
		.address_room = peer ? &peer->bytes : NULL,
	};
}

/* The error that a call returns.  ENOSPC: the user has no more watches of
 * epoll, for which no wait helps. */
static int error_of(int result)
{
	return result == -ENOSPC ? -ENOMEM : result;
}

/* The steps that can follow the result of a request. */
enum next { IS_RESULT, ASKS_AGAIN, WAITS_FOR_READY, WAITS_FOR_DESCRIPTORS };

static enum next next_of(int result)
{
	switch (result) {
	case -EAGAIN:
		return WAITS_FOR_READY;
	case -EMFILE:
	case -ENFILE:
	case -ENOBUFS:
	case -ENOMEM:
		return WAITS_FOR_DESCRIPTORS;
	case -EINTR: /* the connection's, or the network's */
	case -ECONNABORTED:
	case -EPROTO:
	case -ENOPROTOOPT:
	case -ENETDOWN:
	case -ENETUNREACH:
	case -EHOSTDOWN:
	case -EHOSTUNREACH:
	case -ENONET:
	case -EPERM: /* a firewall's */
		return ASKS_AGAIN;
	default:
		return IS_RESULT;
	}
}

/* Was the wait given up while a connection may have come?  A request that is
 * cancelled can have been woken for a connection, in place of another task's or
 * another process's.  So the call takes that connection: nothing else would
 * wake them. */
static bool wakes_for_another(int fd, int why, int r)
{
	return why < 0 && r == why && weft__syscall_is_readable(fd);
}

/* Learns of a new connection: what was known of its number is forgotten. */
static int accept_done(struct weft__worker *worker, int fd)
{
	struct weft__fd *entry =
		weft__fd_find(&weft__reactor(worker->runtime)->fds, fd);

	if (entry)
		weft__fd_set_kind(entry, WEFT__FD_SOCKET);
	weft__reactor_forget(worker, fd);
	return fd;
}

static void peer_from(const struct peer *peer, struct weft_addr *ret_peer)
{
	/* weft has no form for this family: an empty address. */
	if (weft_addr_from_sockaddr((const struct sockaddr *)&peer->address,
				    peer->bytes, ret_peer) < 0)
		*ret_peer = (struct weft_addr){ .bytes = 0 };
}

/* ---- For tasks ---------------------------------------------------------- */

/* Returns 0 to ask again, or an error. */
static int starve(int fd, struct weft__fd *entry, uint8_t closes)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = worker->current;
	struct weft__reactor *reactor = weft__reactor(worker->runtime);

	weft__starving_add(reactor, task);
	worker = weft__op_pause(worker, task,
				weft__op_reason(WEFT__OPCODE_ACCEPT, 0, fd),
				WEFT__STARVING_NS);
	weft__starving_remove(reactor, task);
	if (weft__fd_closes(entry) != closes)
		return -ECANCELED;
	return weft__interrupted(worker, task);
}

/* Asks until there is a result.  A call that was interrupted returns the
 * result of a request all the same, if it has one. */
static int accept_run(struct weft__request *request, struct weft__fd *entry)
{
	uint8_t closes = weft__fd_closes(entry);

	for (unsigned tries = 0;; tries++) {
		int r = weft__op_run(request, entry, 0);
		struct weft__worker *worker = weft__worker_self();
		int why;

		if (weft__likely(r >= 0))
			return r;
		why = weft__interrupted(worker, worker->current);
		switch (next_of(r)) {
		case IS_RESULT:
			if (!wakes_for_another(request->fd, why, r))
				return error_of(r);
			request->flags = 0;
			continue;
		case ASKS_AGAIN:
			break;
		case WAITS_FOR_READY:
			request->flags = 0;
			why = weft__op_await_ready(request->fd, entry, POLLIN,
						   tries);
			break;
		case WAITS_FOR_DESCRIPTORS:
			why = starve(request->fd, entry, closes);
			break;
		}
		if (why < 0)
			return (int)weft__call_overtaken(
				why, weft__fd_closes(entry) != closes);
		if (weft__fd_closes(entry) != closes)
			return -ECANCELED;
	}
}

int weft_accept(int fd, struct weft_addr *ret_peer)
{
	struct peer peer = { .bytes = sizeof(peer.address) };
	struct weft__request request;
	struct weft__worker *worker;
	struct weft__fd *entry;
	int r = weft__call_begin_fd(fd, &worker, &entry);

	if (r < 0)
		return r;
	request = accept_request(fd, ret_peer ? &peer : NULL,
				 weft__syscall_listens(fd));
	r = accept_run(&request, entry);
	if (r < 0)
		return r;
	if (ret_peer)
		peer_from(&peer, ret_peer);
	return accept_done(weft__worker_self(), r);
}

/* ---- For futures -------------------------------------------------------- */

enum { ASKS, POLLS, TRIES, STARVES };

static int await_step(struct weft__worker *worker, struct weft__task *task,
		      int fd)
{
	struct weft__request request = accept_request(fd, NULL, false);
	struct weft__fd *entry;
	int r = weft__call_entry(worker, fd, &entry);

	if (r < 0)
		return r;
	if (weft__op_of(task)->step == ASKS &&
	    task->awaits == WEFT__AWAITS_NOTHING && weft__syscall_listens(fd))
		request.flags = WEFT__REQUEST_POLL_FIRST;
	if (weft__op_of(task)->step == POLLS)
		request = weft__request_poll(fd, POLLIN);
	return weft__op_await(WEFT__AWAITS_ACCEPT, worker, task, &request,
			      entry, 0);
}

static int await_starve(struct weft__worker *worker, struct weft__task *task,
			int fd)
{
	weft__op_of(task)->step = STARVES;
	weft__op_of(task)->fd = fd;
	weft__op_of(task)->reason = weft__op_reason(WEFT__OPCODE_ACCEPT, 0, fd);
	task->awaits = WEFT__AWAITS_ACCEPT;
	weft__starving_add(weft__reactor(worker->runtime), task);
	return weft__await_pause(worker, task, WEFT__STARVING_NS);
}

/* The wait is over, or the program polled the future earlier, which does no
 * harm.  Returns 0, or the reason not to ask again. */
static int await_starved(struct weft__worker *worker, struct weft__task *task,
			 int fd)
{
	weft__starving_remove(weft__reactor(worker->runtime), task);
	weft__op_of(task)->step = ASKS;
	(void)weft__op_await_end(worker, task, 0);
	return weft__call_goes_on(worker, task, fd);
}

/* The listener was polled, as it does not block.  Returns 0 to ask again. */
static int await_polled(struct weft__worker *worker, struct weft__task *task,
			int fd, int r)
{
	weft__op_of(task)->step = TRIES;
	return r < 0 ? r : weft__call_goes_on(worker, task, fd);
}

/* A request has ended with r, which is no connection.  Returns 0 to go on. */
static int await_failed(struct weft__worker *worker, struct weft__task *task,
			int fd, int r)
{
	int why = weft__future_interrupted(worker, task);
	enum next next = next_of(r);

	if (wakes_for_another(fd, why, r)) {
		weft__op_of(task)->step = TRIES;
		return 0;
	}
	if (next == IS_RESULT)
		return error_of(r);
	if (why < 0)
		return why;
	if (weft__call_is_closed(task, fd))
		return -ECANCELED;
	if (next == WAITS_FOR_READY)
		weft__op_of(task)->step = POLLS;
	return next == WAITS_FOR_DESCRIPTORS ? await_starve(worker, task, fd) :
					       0;
}

/* Returns the connection in *ret_accepted, and 0; or an error. */
static int await_accept(struct weft__worker *worker, struct weft__task *task,
			int fd, int *ret_accepted)
{
	int r = 0;

	if (weft__op_of(task)->step == STARVES)
		r = await_starved(worker, task, fd);
	while (r == 0) {
		bool begins = task->awaits == WEFT__AWAITS_NOTHING;

		r = await_step(worker, task, fd);
		/* A call that is interrupted asks only for what has come. */
		if (r == WEFT_PENDING && begins &&
		    task->awaits != WEFT__AWAITS_NOTHING &&
		    weft__future_interrupted(worker, task) < 0)
			r = await_step(worker, task, fd);
		/* If no entry is free, the future gets its next turn
		 * immediately. */
		if (r == WEFT_PENDING && task->awaits == WEFT__AWAITS_NOTHING)
			return weft__call_later(WEFT__AWAITS_ACCEPT, task, fd,
						weft__op_of(task)->closes);
		if (r == WEFT_PENDING)
			return r;
		if (weft__op_of(task)->step == POLLS) {
			r = await_polled(worker, task, fd, r);
		} else if (r >= 0) {
			*ret_accepted = r;
			return 0;
		} else {
			r = await_failed(worker, task, fd, r);
		}
	}
	return r;
}

/* The request could not have written to the caller's memory: a call that is
 * pending refers to none.  The address of a connection that has ended by now is
 * not to be had. */
static void await_peer(int fd, struct weft_addr *ret_peer)
{
	struct peer peer;

	if (weft__syscall_peer(fd, &peer.address, &peer.bytes) < 0)
		*ret_peer = (struct weft_addr){ .bytes = 0 };
	else
		peer_from(&peer, ret_peer);
}

int weft_await_accept(int fd, struct weft_addr *ret_peer)
{
	struct weft__worker *worker;
	struct weft__task *task;
	int accepted = -1;
	int r = weft__call_await(WEFT__AWAITS_ACCEPT, fd, &worker, &task);

	if (r < 0)
		return r;
	weft__assert(task->awaits == WEFT__AWAITS_NOTHING ||
			     weft__op_of(task)->fd == fd,
		     WEFT__AWAITS_ANOTHER);
	if (task->awaits == WEFT__AWAITS_NOTHING)
		weft__op_of(task)->closes = weft__call_closes(fd);
	r = await_accept(worker, task, fd, &accepted);
	if (r != WEFT_PENDING)
		weft__op_of(task)->call = 0;
	if (r < 0)
		return r;
	if (ret_peer)
		await_peer(accepted, ret_peer);
	return accept_done(worker, accepted);
}
