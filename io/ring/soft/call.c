/* SPDX-License-Identifier: MIT */
/*
 * Calls of a soft ring.
 *
 * O_NONBLOCK belongs to the open file, which other processes may share, so weft
 * never changes it.  These calls do not block without it:
 *
 *	recv, send   MSG_DONTWAIT
 *	read, write  RWF_NOWAIT, where the file knows it
 *	poll         poll(2) without a timeout
 *
 * All else is for a thread of the pool: accepting and connecting without
 * O_NONBLOCK, pipes and terminals of old kernels, files that are not cached,
 * opening.  A listener is accepted from when it is ready; if another process
 * takes the connection first, the thread waits for the next one.  Sockets of
 * weft's own have O_NONBLOCK to listen and to connect (net/socket.c).
 */
#include "io/ring/soft/call.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "io/os/look.h"
#include "io/os/may_wait.h"
#include "io/os/message.h"
#include "io/os/sigpipe.h"
#include "io/os/syscall.h"

/* ---- Sockets ------------------------------------------------------------ */

/* The vector behind the bytes that are done; `room` entries at most. */
static size_t vector_rest(const struct msghdr *msg, size_t done,
			  struct iovec *ret_iov, size_t room)
{
	size_t count = 0;

	for (size_t i = 0; i < (size_t)msg->msg_iovlen && count < room; i++) {
		const struct iovec *iov = &msg->msg_iov[i];

		if (done >= iov->iov_len) {
			done -= iov->iov_len;
			continue;
		}
		ret_iov[count++] = (struct iovec){
			(char *)iov->iov_base + done, iov->iov_len - done
		};
		done = 0;
	}
	return count;
}

static size_t bytes_asked(const struct weft__request *request)
{
	const struct msghdr *msg = request->memory;
	size_t bytes = 0;

	if (request->opcode == WEFT__OPCODE_RECV ||
	    request->opcode == WEFT__OPCODE_SEND)
		return request->bytes;
	for (size_t i = 0; i < (size_t)msg->msg_iovlen; i++)
		bytes += msg->msg_iov[i].iov_len;
	return bytes;
}

/* A message of which a part is done (MSG_WAITALL). */
static ssize_t message_rest(const struct weft__soft_op *op, int how)
{
	enum { ROOM = 64 };
	const struct weft__request *request = &op->request;
	const struct msghdr *whole = request->memory;
	struct iovec iov[ROOM];
	struct msghdr rest = {
		.msg_iov = iov,
		.msg_iovlen = (weft__iov_count)vector_rest(
			whole, (size_t)op->done, iov, ROOM),
	};

	return request->opcode == WEFT__OPCODE_SENDMSG ?
		       weft__syscall_sendmsg(request->fd, &rest, how) :
		       weft__syscall_recvmsg(request->fd, &rest, how);
}

static ssize_t transfer_once(const struct weft__soft_op *op)
{
	const struct weft__request *request = &op->request;
	char *memory = (void *)(uintptr_t)request->memory;
	int how = (int)request->how;
	size_t bytes = request->bytes - (uint32_t)op->done;

	switch (request->opcode) {
	case WEFT__OPCODE_RECV:
		return weft__syscall_recv(request->fd, memory + op->done, bytes,
					  how);
	case WEFT__OPCODE_SEND:
		return weft__syscall_send(request->fd, memory + op->done, bytes,
					  how);
	default:
		return op->done ? message_rest(op, how) :
				  weft__request_call(request);
	}
}

/* Has a call of which a part is done to go on?  With MSG_WAITALL until all is
 * done, as io_uring does it. */
static bool wants_more(const struct weft__soft_op *op)
{
	const struct weft__request *request = &op->request;

	return (request->how & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL &&
	       (size_t)op->done < bytes_asked(request) &&
	       weft__syscall_is_stream(request->fd);
}

static int32_t socket_try(struct weft__soft_op *op)
{
	ssize_t r;

	do {
		r = transfer_once(op);
		if (r > 0)
			op->done += (int32_t)r;
	} while (r > 0 && wants_more(op));
	if (r > 0)
		return op->done;
	if (r == -EAGAIN && !(op->request.how & MSG_DONTWAIT))
		return WEFT__SOFT_WAITS;
	return op->done ? op->done : (int32_t)r;
}

/* See above.  As with io_uring, a listener with O_NONBLOCK that is not to be
 * polled first gives -EAGAIN: a Unix socket that was shut down always does. */
static int32_t accept_try(const struct weft__request *request)
{
	bool polls = request->flags & WEFT__REQUEST_POLL_FIRST;
	int r;

	if (!weft__syscall_never_blocks(request->fd) &&
	    weft__syscall_listens(request->fd))
		return weft__syscall_is_readable(request->fd) ?
			       WEFT__SOFT_BLOCKS :
			       WEFT__SOFT_WAITS;
	r = weft__syscall_accept(request->fd,
				 (void *)(uintptr_t)request->memory,
				 request->address_room, (int)request->how);
	return r == -EAGAIN && polls ? WEFT__SOFT_WAITS : r;
}

/* While it is being connected, the same call returns the outcome. */
static int32_t connect_try(struct weft__soft_op *op)
{
	const struct weft__request *request = &op->request;
	int r;

	if (!weft__syscall_never_blocks(request->fd))
		return WEFT__SOFT_BLOCKS;
	r = weft__syscall_connect(request->fd, request->memory,
				  (socklen_t)request->address_bytes);
	/* Another task has asked for the outcome before. */
	if (op->done && (r == -EISCONN || r == -EBADFD))
		return weft__syscall_socket_error(request->fd);
	if (r == -EINPROGRESS || (r == -EALREADY && op->done)) {
		op->done = 1;
		return WEFT__SOFT_WAITS;
	}
	return r;
}

static int32_t poll_try(const struct weft__request *request)
{
	int r = weft__syscall_poll(request->fd, (int)request->how);

	return r ? r : WEFT__SOFT_WAITS;
}

/* ---- Reading and writing ------------------------------------------------ */

static size_t bytes_to_write(const struct weft__request *request)
{
	const struct iovec *iov;
	struct iovec whole;
	int count = weft__request_vector(request, &whole, &iov);
	size_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

/* Without SIGPIPE, which a write that did a part of its bytes raises, too. */
static ssize_t shielded(const struct weft__request *request,
			ssize_t (*call)(const struct weft__request *))
{
	bool blocked, raised;
	ssize_t r;

	if (!weft__request_writes(request))
		return call(request);
	blocked = weft__sigpipe_block();
	r = call(request);
	raised = r == -EPIPE || (r > 0 && (size_t)r < bytes_to_write(request));
	weft__sigpipe_restore(blocked, raised);
	return r;
}

/* Without flags, which not all files know: so SIGPIPE is blocked. */
static ssize_t wait_call(const struct weft__request *request)
{
	const struct iovec *iov;
	struct iovec whole;
	int count = weft__request_vector(request, &whole, &iov);

	return weft__may_wait_transfer(weft__request_writes(request),
				       request->fd, iov, count,
				       request->offset, 0);
}

/* O_NONBLOCK means nothing to a file on a disk or of a server.  The look asks
 * no server. */
static bool is_stored(int fd)
{
	struct statx status;

	return weft__look_fd(fd, STATX_TYPE, &status) == 0 &&
	       (S_ISREG(status.stx_mode) || S_ISBLK(status.stx_mode));
}

static int32_t rw_try(const struct weft__request *request)
{
	bool raises = !(request->how & RWF_NOSIGNAL);
	ssize_t r = raises ? shielded(request, weft__request_call) :
			     weft__request_call(request);
	int flags;

	if (r == -EAGAIN)
		return WEFT__SOFT_WAITS;
	if (r != -EOPNOTSUPP)
		return (int32_t)r;
	flags = weft__syscall_flags(request->fd);
	if (flags < 0)
		return flags;
	/* A poll for the other direction waits for ever. */
	if ((flags & O_ACCMODE) ==
	    (weft__request_writes(request) ? O_RDONLY : O_WRONLY))
		return -EBADF;
	if (!(flags & O_NONBLOCK) || is_stored(request->fd))
		return weft__syscall_poll(request->fd,
					  (int)weft__soft_events(request)) ?
			       WEFT__SOFT_BLOCKS :
			       WEFT__SOFT_WAITS;
	r = shielded(request, wait_call);
	return r == -EAGAIN ? WEFT__SOFT_WAITS : (int32_t)r;
}

/* ---- Closing ------------------------------------------------------------ */

/* A terminal waits until its output is written, and a file of a server is
 * written back.  The look asks no server. */
static bool close_blocks(const struct weft__request *request)
{
	struct statx status;

	if (request->flags & WEFT__REQUEST_BLOCKS)
		return true;
	if (weft__look_fd(request->fd, STATX_TYPE, &status) < 0)
		return false;
	if (S_ISREG(status.stx_mode))
		return !weft__look_is_local_file(&status);
	return S_ISCHR(status.stx_mode) || S_ISBLK(status.stx_mode);
}

/* ---- All ---------------------------------------------------------------- */

uint32_t weft__soft_events(const struct weft__request *request)
{
	switch (request->opcode) {
	case WEFT__OPCODE_READ:
	case WEFT__OPCODE_READV:
	case WEFT__OPCODE_RECV:
	case WEFT__OPCODE_ACCEPT:
		return EPOLLIN;
	case WEFT__OPCODE_RECVMSG:
		/* Errors are always reported. */
		return EPOLLIN;
	case WEFT__OPCODE_WRITE:
	case WEFT__OPCODE_WRITEV:
	case WEFT__OPCODE_SEND:
	case WEFT__OPCODE_SENDMSG:
	case WEFT__OPCODE_CONNECT:
		return EPOLLOUT;
	case WEFT__OPCODE_POLL:
		return request->how;
	default:
		return 0;
	}
}

int32_t weft__soft_try(struct weft__soft_op *op)
{
	const struct weft__request *request = &op->request;

	switch (request->opcode) {
	case WEFT__OPCODE_NONE:
		return 0;
	case WEFT__OPCODE_READ:
	case WEFT__OPCODE_WRITE:
	case WEFT__OPCODE_READV:
	case WEFT__OPCODE_WRITEV:
		return rw_try(request);
	case WEFT__OPCODE_RECV:
	case WEFT__OPCODE_SEND:
	case WEFT__OPCODE_RECVMSG:
	case WEFT__OPCODE_SENDMSG:
		return socket_try(op);
	case WEFT__OPCODE_ACCEPT:
		return accept_try(request);
	case WEFT__OPCODE_CONNECT:
		return connect_try(op);
	case WEFT__OPCODE_POLL:
		return poll_try(request);
	case WEFT__OPCODE_CLOSE:
		return close_blocks(request) ? WEFT__SOFT_BLOCKS :
					       weft__syscall_close(request->fd);
	case WEFT__OPCODE_MESSAGE:
		return weft__syscall_signal(request->fd);
	default:
		return WEFT__SOFT_BLOCKS;
	}
}

#define CALL(number, ...) \
	(int32_t)weft__syscall_any(number, (const long[6]){ __VA_ARGS__ })

static int32_t names_call(const struct weft__request *request)
{
	long fd = request->fd, to_fd = request->to_fd, how = request->how;
	long name = (long)(uintptr_t)request->memory;
	long to = (long)(uintptr_t)request->to;

	switch (request->opcode) {
	case WEFT__OPCODE_UNLINKAT:
		return CALL(SYS_unlinkat, fd, name, how);
	case WEFT__OPCODE_RENAMEAT:
		return CALL(SYS_renameat2, fd, name, to_fd, to, how);
	case WEFT__OPCODE_LINKAT:
		return CALL(SYS_linkat, fd, name, to_fd, to, how);
	case WEFT__OPCODE_MKDIRAT:
		return CALL(SYS_mkdirat, fd, name, request->mode);
	case WEFT__OPCODE_SYMLINKAT:
		return CALL(SYS_symlinkat, name, fd, to);
	default:
		return -EOPNOTSUPP;
	}
}

int32_t weft__soft_call(struct weft__soft_op *op)
{
	const struct weft__request *request = &op->request;
	int fd = request->fd;

	switch (request->opcode) {
	case WEFT__OPCODE_READ:
	case WEFT__OPCODE_WRITE:
	case WEFT__OPCODE_READV:
	case WEFT__OPCODE_WRITEV:
		return (int32_t)shielded(request, wait_call);
	case WEFT__OPCODE_ACCEPT:
		return weft__may_wait_accept(
			fd, (void *)(uintptr_t)request->memory,
			request->address_room, (int)request->how);
	case WEFT__OPCODE_CONNECT:
		return weft__may_wait_connect(
			fd, request->memory, (socklen_t)request->address_bytes);
	case WEFT__OPCODE_OPENAT:
		return weft__may_wait_openat(fd, request->memory,
					     (int)request->how, request->mode);
	case WEFT__OPCODE_OPENAT2:
		return weft__may_wait_openat2(fd, request->memory,
					      request->open_how);
	case WEFT__OPCODE_STATX:
		return weft__may_wait_statx(fd, request->memory,
					    (int)request->how, request->mask,
					    request->status);
	case WEFT__OPCODE_CLOSE:
		return weft__syscall_close(fd);
	default:
		return names_call(request);
	}
}
