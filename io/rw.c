/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing.  For files the page cache is tried first: a copy out of
 * it takes less time than the way through the ring.  Sockets go the way of
 * send_recv.c.  All else goes through the ring.
 */
#include <weft/io.h>

#include <poll.h>

#include "io/os/sigpipe.h"
#include "io/request/call.h"
#include "io/send_recv.h"

/* The offset that stands for the file's own position. */
#define POSITION ((off_t)-1)

static bool writes(const struct weft__request *request)
{
	return request->opcode == WEFT__OPCODE_WRITE ||
	       request->opcode == WEFT__OPCODE_WRITEV;
}

static bool is_vectored(const struct weft__request *request)
{
	return request->opcode == WEFT__OPCODE_READV ||
	       request->opcode == WEFT__OPCODE_WRITEV;
}

/* ---- Files ------------------------------------------------------------ */

/* Tries the transfer without waiting.  True: done, with *ret_result. */
static bool quick(struct weft__fd *entry, int kind,
		  const struct weft__request *request, ssize_t *ret_result)
{
	int flag = writes(request) ? WEFT__FD_NO_QUICK_WRITE :
				     WEFT__FD_NO_QUICK_READ;
	ssize_t r;

	if ((kind & ~WEFT__FD_NO_QUICK_READ & ~WEFT__FD_NO_QUICK_WRITE) !=
		    WEFT__FD_FILE ||
	    (kind & flag))
		return false;
	r = weft__request_call(request);
	if (r == -EOPNOTSUPP)
		weft__fd_set_kind(entry, kind | flag);
	*ret_result = r;
	return !weft__call_wants_ring(r);
}

/* ---- Sockets ---------------------------------------------------------- */

/* Without SIGPIPE. */
static ssize_t socket_write(struct weft__worker *worker, struct weft__fd *entry,
			    const struct weft__request *request)
{
	struct weft__request send = *request;
	struct msghdr msg = {
		.msg_iov = (struct iovec *)(uintptr_t)request->memory,
		.msg_iovlen = request->count,
	};

	send.opcode = WEFT__OPCODE_SEND;
	send.how = MSG_NOSIGNAL;
	send.offset = 0;
	if (is_vectored(request)) {
		send.opcode = WEFT__OPCODE_SENDMSG;
		send.memory = &msg;
		send.count = 1;
	}
	return weft__transmit(worker, entry, &send);
}

static ssize_t socket_read(struct weft__fd *entry,
			   const struct weft__request *request)
{
	struct weft__request recv = *request;

	recv.opcode = WEFT__OPCODE_RECV;
	recv.offset = 0;
	return weft__receive(entry, &recv);
}

/* ---- Through the ring --------------------------------------------------- */

static int32_t ring_run(struct weft__worker *worker, struct weft__fd *entry,
			int kind, struct weft__request *request)
{
	unsigned flags = 0;

	if (weft__fd_is_file(kind))
		flags |= WEFT__OP_AT_ONCE;
	else if (writes(request) && weft__reactor(worker->runtime)->nosignal)
		request->how = RWF_NOSIGNAL;
	return weft__op_run_ready(request, entry, flags,
				  writes(request) ? POLLOUT : POLLIN);
}

/* Transfers at a file's position: weft looks the position up and moves it.  The
 * ring would leave it unchanged when a transfer moves some bytes and then fails
 * (a disk that is full), and the caller would write those bytes again. */
static int32_t ring_run_at(struct weft__worker *worker, struct weft__fd *entry,
			   int kind, const struct weft__request *request)
{
	struct weft__request at = *request;
	int32_t n;

	if (at.offset != POSITION || !weft__fd_is_file(kind) ||
	    (writes(&at) && weft__syscall_appends(at.fd)))
		return ring_run(worker, entry, kind, &at);
	at.offset = weft__syscall_position(at.fd);
	if (at.offset < 0)
		return (int32_t)at.offset;
	n = ring_run(worker, entry, kind, &at);
	if (n > 0)
		weft__syscall_move(at.fd, at.offset + n);
	return n;
}

/* Does the number belong to another kind of file than before?  The program may
 * have closed it without weft_close(), or put another file in its place. */
static bool kind_changed(struct weft__fd *entry, int kind, ssize_t r)
{
	if (!(r == -ENOTSOCK && weft__fd_is_socket(kind)) &&
	    !(r == -ESPIPE && weft__fd_is_file(kind)))
		return false;
	weft__fd_set_kind(entry, WEFT__FD_UNKNOWN);
	return true;
}

static ssize_t transfer_as(struct weft__worker *worker, struct weft__fd *entry,
			   int kind, const struct weft__request *request)
{
	ssize_t r;

	/* The ring would accept an offset where there is none. */
	if (request->offset != POSITION &&
	    (weft__fd_is_socket(kind) || kind == WEFT__FD_STREAM))
		return -ESPIPE;
	if (quick(entry, kind, request, &r))
		return weft__call_ready(worker, r);
	if (writes(request) && weft__fd_is_socket(kind))
		return socket_write(worker, entry, request);
	if (kind == WEFT__FD_SOCKET && request->opcode == WEFT__OPCODE_READ)
		return socket_read(entry, request);
	return ring_run_at(worker, entry, kind, request);
}

static ssize_t transfer(const struct weft__request *request)
{
	struct weft__worker *worker;
	struct weft__fd *entry;
	ssize_t r = weft__call_begin_fd(request->fd, &worker, &entry);
	bool again = false;
	int kind;

	if (weft__unlikely(r < 0))
		return r;
	do {
		kind = weft__fd_kind(entry, request->fd);
		if (weft__unlikely(kind < 0))
			return kind;
		r = transfer_as(weft__worker_self(), entry, kind, request);
		again = !again && weft__unlikely(r < 0) &&
			kind_changed(entry, kind, r);
	} while (weft__unlikely(again));
	return r;
}

/* ---- Calls ------------------------------------------------------------ */

static ssize_t transfer_one(enum weft__opcode opcode, int fd, const void *buf,
			    size_t bytes, off_t offset)
{
	return transfer(&(struct weft__request){
		.opcode = (uint8_t)opcode,
		.fd = fd,
		.memory = buf,
		.bytes = weft__bytes(bytes),
		.offset = offset,
	});
}

static ssize_t transfer_vector(enum weft__opcode opcode, int fd,
			       const struct iovec *iov, int iov_count)
{
	if (iov_count < 0 || iov_count > IOV_MAX)
		return weft__call_refused(-EINVAL);
	return transfer(&(struct weft__request){
		.opcode = (uint8_t)opcode,
		.fd = fd,
		.memory = iov,
		.count = (uint32_t)iov_count,
		.offset = POSITION,
	});
}

ssize_t weft_read(int fd, void *buf, size_t bytes)
{
	return transfer_one(WEFT__OPCODE_READ, fd, buf, bytes, POSITION);
}

ssize_t weft_write(int fd, const void *buf, size_t bytes)
{
	return transfer_one(WEFT__OPCODE_WRITE, fd, buf, bytes, POSITION);
}

ssize_t weft_readv(int fd, const struct iovec *iov, int iov_count)
{
	return transfer_vector(WEFT__OPCODE_READV, fd, iov, iov_count);
}

ssize_t weft_writev(int fd, const struct iovec *iov, int iov_count)
{
	return transfer_vector(WEFT__OPCODE_WRITEV, fd, iov, iov_count);
}

/* To the kernel an offset of -1 would be the position. */
ssize_t weft_pread(int fd, void *buf, size_t bytes, off_t offset)
{
	if (offset < 0)
		return weft__call_refused(-EINVAL);
	return transfer_one(WEFT__OPCODE_READ, fd, buf, bytes, offset);
}

ssize_t weft_pwrite(int fd, const void *buf, size_t bytes, off_t offset)
{
	if (offset < 0)
		return weft__call_refused(-EINVAL);
	return transfer_one(WEFT__OPCODE_WRITE, fd, buf, bytes, offset);
}
