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

#include "io/request/call.h"

/* ---- Without waiting ---------------------------------------------------- */

/* Carries the request out as a system call that does not wait. */
static ssize_t direct(const struct io_uring_sqe *sqe)
{
	void *what = (void *)(uintptr_t)sqe->addr;
	int flags = (int)sqe->msg_flags;

	switch (sqe->opcode) {
	case IORING_OP_RECV:
		return weft__syscall_recv(sqe->fd, what, sqe->len, flags);
	case IORING_OP_SEND:
		return weft__syscall_send(sqe->fd, what, sqe->len, flags);
	case IORING_OP_RECVMSG:
		return weft__syscall_recvmsg(sqe->fd, what, flags);
	default:
		return weft__syscall_sendmsg(sqe->fd, what, flags);
	}
}

static ssize_t run_at_once(const struct io_uring_sqe *sqe)
{
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	return r < 0 ? r : weft__call_ready(worker, direct(sqe));
}

/* ---- Receiving --------------------------------------------------------- */

/*
 * The kernel tries a receive immediately, and if there is nothing it waits
 * until there is.  After a receive that took all there was, POLL_FIRST leaves
 * the try out: it would find nothing, because the peer answers to data that is
 * sent in between.
 */
static ssize_t receive(struct io_uring_sqe *sqe)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__fd *entry = NULL;
	ssize_t r;

	if (weft__running(worker) && !sqe->msg_flags)
		entry = weft__fd_find(&weft__reactor(worker->runtime)->fds,
				      sqe->fd);
	if (entry && weft__fd_drained(entry))
		sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
	r = weft__op_run_ready(sqe, WEFT__OP_ON_FD, POLLIN);
	if (entry) {
		struct weft__task *task = weft__running(weft__worker_self());

		/* Not all families report whether there is more. */
		weft__fd_set_drained(entry,
				     r > 0 && r < (ssize_t)sqe->len &&
					     !(weft__op_of(task)->flags &
					       WEFT__OP_MORE));
	}
	return r;
}

ssize_t weft_recv(int fd, void *buf, size_t bytes, int flags)
{
	struct io_uring_sqe sqe = { 0 };

	io_uring_prep_recv(&sqe, fd, buf, weft__bytes(bytes), flags);
	if (flags & MSG_DONTWAIT)
		return run_at_once(&sqe);
	return receive(&sqe);
}

/* Descriptors that come with a message are close-on-exec, as all are. */
ssize_t weft_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct io_uring_sqe sqe = { 0 };

	io_uring_prep_recvmsg(&sqe, fd, msg,
			      (unsigned)flags | MSG_CMSG_CLOEXEC);
	if (flags & MSG_DONTWAIT)
		return run_at_once(&sqe);
	/* Errors and time stamps are signalled by POLLERR, which is always
	 * reported. */
	return weft__op_run_ready(&sqe, WEFT__OP_ON_FD,
				  flags & MSG_ERRQUEUE ? 0 : POLLIN);
}

/* ---- Sending ----------------------------------------------------------- */

static ssize_t transmit(const struct io_uring_sqe *sqe)
{
	struct weft__worker *worker;
	ssize_t r;

	if (sqe->msg_flags & MSG_DONTWAIT)
		return run_at_once(sqe);
	r = weft__call_begin(&worker);
	if (weft__unlikely(r < 0))
		return r;
	if (!(sqe->msg_flags & MSG_WAITALL) && weft__call_is_lone(worker)) {
		/* It counts as a wait: deadlines and cancellation
		 * apply. */
		weft__wait_begin(worker, worker->current);
		r = direct(sqe);
		if (r != -EAGAIN)
			return weft__call_ready(worker, r);
	}
	return weft__op_run_ready(sqe, WEFT__OP_ON_FD, POLLOUT);
}

ssize_t weft_send(int fd, const void *buf, size_t bytes, int flags)
{
	struct io_uring_sqe sqe = { 0 };

	io_uring_prep_send(&sqe, fd, buf, weft__bytes(bytes),
			   flags | MSG_NOSIGNAL);
	return transmit(&sqe);
}

ssize_t weft_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct io_uring_sqe sqe = { 0 };

	io_uring_prep_sendmsg(&sqe, fd, msg, (unsigned)flags | MSG_NOSIGNAL);
	return transmit(&sqe);
}

ssize_t weft__socket_writev(int fd, const struct iovec *iov, int iov_count)
{
	struct msghdr msg = {
		.msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = (size_t)iov_count,
	};

	if (iov_count == 1)
		return weft_send(fd, iov->iov_base, iov->iov_len, 0);
	return weft_sendmsg(fd, &msg, 0);
}

/* ---- Ending ------------------------------------------------------------ */

/* It does not wait, so a cancelled task may still shut the socket down. */
int weft_shutdown(int fd, int how)
{
	if (!weft__self(weft__worker_self()))
		return -EPERM;
	return weft__syscall_shutdown(fd, how);
}
