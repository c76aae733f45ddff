/* SPDX-License-Identifier: MIT */
/*
 * Sockets: receiving, sending, shutting down.
 *
 * A call with MSG_DONTWAIT needs no ring: it is a system call, made directly.
 * A send is tried so too, if no other request waits for the ring.  All others
 * go through the ring.
 */
#include "io/send_recv.h"

#include <poll.h>
#include <weft/io.h>

#include "io/os/message.h"

static ssize_t run_at_once(const struct weft__request *request)
{
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	return r < 0 ? r :
		       weft__call_ready(worker, weft__request_call(request));
}

/* ---- Receiving --------------------------------------------------------- */

/* Not all families report whether there is more. */
static bool received_all(const struct weft__request *request, ssize_t r)
{
	struct weft__task *task = weft__worker_self()->current;

	return r > 0 && r < (ssize_t)request->bytes &&
	       !(weft__op_of(task)->flags & WEFT__OP_MORE);
}

/* A file may have the number of a socket by now: it cannot be polled, and gives
 * -EAGAIN each time.  So POLL_FIRST is tried once.  On a pipe that has the
 * number it waits for input before it fails, which a look at the descriptor
 * before each receive would avoid, for 0.1 us. */
static ssize_t receive_drained(struct weft__fd *entry,
			       struct weft__request *request)
{
	uint8_t closes = weft__fd_closes(entry);
	ssize_t r;

	request->flags |= WEFT__REQUEST_POLL_FIRST;
	r = weft__op_run(request, entry, 0);
	request->flags &= (uint16_t)~WEFT__REQUEST_POLL_FIRST;
	if (r != -EAGAIN)
		return r;
	return weft__fd_closes(entry) == closes ?
		       weft__op_run_ready(request, entry, 0, POLLIN) :
		       -ECANCELED;
}

/* Takes what has come, where the ring would have to make the same call.  It
 * counts as a wait: deadlines and cancellation apply. */
static ssize_t receive_directly(struct weft__worker *worker,
				const struct weft__request *request)
{
	ssize_t r;

	weft__wait_begin(worker, worker->current);
	r = weft__request_call(request);
	return r == -EAGAIN ? r : weft__call_ready(worker, r);
}

/*
 * The kernel tries a receive immediately, and if there is nothing it waits
 * until there is.  After a receive that took all there was, POLL_FIRST leaves
 * the try out: it would find nothing, because the peer answers to data that is
 * sent in between.
 */
ssize_t weft__receive(struct weft__fd *entry, struct weft__request *request)
{
	struct weft__worker *worker = weft__worker_self();
	bool drained = weft__fd_drained(entry);
	ssize_t r = -EAGAIN;

	if (!drained && !weft__shard(worker)->ring.batches &&
	    weft__call_is_direct(worker)) {
		r = receive_directly(worker, request);
		drained = r == -EAGAIN;
	}
	if (r == -EAGAIN)
		r = drained ? receive_drained(entry, request) :
			      weft__op_run_ready(request, entry, 0, POLLIN);
	weft__fd_set_drained(entry, received_all(request, r));
	return r;
}

ssize_t weft_recv(int fd, void *buf, size_t bytes, int flags)
{
	struct weft__request request = {
		.opcode = WEFT__OPCODE_RECV,
		.fd = fd,
		.memory = buf,
		.bytes = weft__bytes(bytes),
		.how = (uint32_t)flags,
	};
	struct weft__worker *worker;
	struct weft__fd *entry;
	int r;

	if (flags & MSG_DONTWAIT)
		return run_at_once(&request);
	r = weft__call_begin_fd(fd, &worker, &entry);
	if (weft__unlikely(r < 0))
		return r;
	if (weft__unlikely(flags))
		return weft__op_run_ready(&request, entry, 0, POLLIN);
	return weft__receive(entry, &request);
}

/* Descriptors that come with a message are close-on-exec, as all are. */
static ssize_t receive_message(int fd, struct msghdr *msg, int flags)
{
	struct weft__request request = {
		.opcode = WEFT__OPCODE_RECVMSG,
		.fd = fd,
		.memory = msg,
		.count = 1,
		.how = (uint32_t)flags | MSG_CMSG_CLOEXEC,
	};
	struct weft__worker *worker;
	struct weft__fd *entry;
	int r;

	if (flags & MSG_DONTWAIT)
		return run_at_once(&request);
	r = weft__call_begin_fd(fd, &worker, &entry);
	if (r < 0)
		return r;
	/* Errors and time stamps are signalled by POLLERR, which is always
	 * reported. */
	return weft__op_run_ready(&request, entry, 0,
				  flags & MSG_ERRQUEUE ? 0 : POLLIN);
}

ssize_t weft_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct weft__message copy;
	ssize_t r;

	if (!WEFT__MESSAGE_IS_PADDED || !msg)
		return receive_message(fd, msg, flags);
	(void)weft__message_copy(&copy, msg, false);
	r = receive_message(fd, &copy.header, flags);
	if (r >= 0)
		weft__message_give_back(&copy, msg);
	return r;
}

ssize_t weft_recvfrom(int fd, void *buf, size_t bytes, int flags,
		      struct weft_addr *ret_peer)
{
	struct sockaddr_storage name;
	struct iovec iov = { buf, weft__bytes(bytes) };
	struct msghdr msg = {
		.msg_name = ret_peer ? &name : NULL,
		.msg_namelen = ret_peer ? sizeof(name) : 0,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t r = weft_recvmsg(fd, &msg, flags);

	/* Without a name, or of a family that weft has no form for: an empty
	 * address. */
	if (r >= 0 && ret_peer &&
	    weft_addr_from_sockaddr((const struct sockaddr *)&name,
				    msg.msg_namelen, ret_peer) < 0)
		*ret_peer = (struct weft_addr){ .bytes = 0 };
	return r;
}

/* ---- Sending ----------------------------------------------------------- */

/*
 * The kernel must not repeat a send by itself, hence MSG_DONTWAIT: a Unix
 * socket of datagrams copies the data before it finds its receiver full, and
 * io_uring then repeats the send from behind the data, so that an empty
 * datagram arrives (Linux 6.18).  MSG_WAITALL is for streams.
 */
ssize_t weft__transmit(struct weft__worker *worker, struct weft__fd *entry,
		       struct weft__request *request)
{
	ssize_t r;

	if (!(request->how & MSG_WAITALL) && weft__call_is_direct(worker)) {
		/* It counts as a wait: deadlines and cancellation
		 * apply. */
		weft__wait_begin(worker, worker->current);
		r = weft__request_call(request);
		if (r != -EAGAIN)
			return weft__call_ready(worker, r);
	}
	if (!(request->how & MSG_WAITALL))
		request->how |= MSG_DONTWAIT;
	return weft__op_run_ready(request, entry, 0, POLLOUT);
}

static ssize_t transmit_on(struct weft__request *request)
{
	struct weft__worker *worker;
	struct weft__fd *entry;
	int r;

	if (request->how & MSG_DONTWAIT)
		return run_at_once(request);
	r = weft__call_begin_fd(request->fd, &worker, &entry);
	if (weft__unlikely(r < 0))
		return r;
	return weft__transmit(worker, entry, request);
}

ssize_t weft_send(int fd, const void *buf, size_t bytes, int flags)
{
	return transmit_on(&(struct weft__request){
		.opcode = WEFT__OPCODE_SEND,
		.fd = fd,
		.memory = buf,
		.bytes = weft__bytes(bytes),
		.how = (uint32_t)flags | MSG_NOSIGNAL,
	});
}

ssize_t weft_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct weft__message copy;
	int r;

	if (WEFT__MESSAGE_IS_PADDED && msg) {
		r = weft__message_copy(&copy, msg, true);
		if (r < 0)
			return weft__call_refused(r);
		msg = &copy.header;
	}
	return transmit_on(&(struct weft__request){
		.opcode = WEFT__OPCODE_SENDMSG,
		.fd = fd,
		.memory = msg,
		.count = 1,
		.how = (uint32_t)flags | MSG_NOSIGNAL,
	});
}

ssize_t weft_sendto(int fd, const void *buf, size_t bytes, int flags,
		    const struct weft_addr *addr)
{
	/* The kernel only reads through these pointers. */
	struct iovec iov = { (void *)(uintptr_t)buf, weft__bytes(bytes) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};

	if (!addr)
		return weft_send(fd, buf, bytes, flags);
	if (weft_addr_family(addr) == AF_UNSPEC)
		return weft__call_refused(-EINVAL);
	msg.msg_name = (void *)(uintptr_t)weft_addr_sockaddr(addr);
	msg.msg_namelen = weft_addr_sockaddr_bytes(addr);
	return weft_sendmsg(fd, &msg, flags);
}

/* ---- Ending ------------------------------------------------------------ */

/* It does not wait, so a cancelled task may still shut the socket down. */
int weft_shutdown(int fd, int how)
{
	if (!weft__self(weft__worker_self()))
		return -EPERM;
	return weft__syscall_shutdown(fd, how);
}
