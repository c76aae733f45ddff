/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing.  The kind of the descriptor chooses the way:
 *
 *	a file     a call that does not wait: for what is in the page cache it
 *	           takes less time than the way through the ring (stored.c where
 *	           there is no such call).  Otherwise at an offset the ring,
 *	           which waits for the page; at the position, and where no
 *	           call tells whether it would wait, position.c
 *	a socket   the way of send_recv.c
 *	a FIFO     the ring, once fifo.c has found it ready
 *	all else   the ring
 *
 * The kind is a hint.  Before a way that would be wrong for another kind, or
 * after an error that comes from a wrong kind, transfer() looks at the
 * descriptor, and takes the way of what it sees.
 */
#include <weft/io.h>

#include <poll.h>

#include "io/fifo.h"
#include "io/foreground.h"
#include "io/os/message.h"
#include "io/os/sigpipe.h"
#include "io/position.h"
#include "io/request/call.h"
#include "io/send_recv.h"
#include "io/stored.h"

/* The offset that stands for the file's own position. */
#define POSITION ((off_t)-1)

/* ---- Files ------------------------------------------------------------ */

/* Is there a flag that keeps a write from raising SIGPIPE?  A write to a file
 * has it too: the number may be that of a pipe by now. */
static bool has_nosignal(struct weft__worker *worker)
{
	return weft__reactor(worker->runtime)->nosignal;
}

/* Without that flag: can a write by this thread raise SIGPIPE?  Nothing that
 * takes offsets raises it. */
static bool may_raise(const struct weft__request *request)
{
	return request->offset == POSITION &&
	       !weft__syscall_takes_offsets(request->fd);
}

static ssize_t quick_write(struct weft__worker *worker, struct weft__fd *entry,
			   int kind, const struct weft__request *request)
{
	bool stored = weft__fd_kind_base(kind) == WEFT__FD_STORED;
	struct weft__request call = *request;
	ssize_t r = -EOPNOTSUPP;

	if (kind & WEFT__FD_NO_QUICK_WRITE)
		return -EAGAIN;
	if (weft__likely(has_nosignal(worker)))
		call.how = RWF_NOSIGNAL;
	else if (may_raise(request))
		return -EAGAIN;
	if (!stored)
		r = weft__request_call(&call);
	if (r != -EOPNOTSUPP)
		return r;
	r = weft__stored_write(&call);
	if (r == -EOPNOTSUPP)
		weft__fd_set_kind(entry, kind | WEFT__FD_NO_QUICK_WRITE);
	else if (!stored)
		weft__fd_set_kind(entry, (kind & WEFT__FD_NO_QUICK_READ) |
						 WEFT__FD_STORED);
	return r;
}

static ssize_t quick_read(struct weft__fd *entry, int kind,
			  const struct weft__request *request)
{
	bool stored = weft__fd_kind_base(kind) == WEFT__FD_STORED;
	ssize_t r = -EOPNOTSUPP;

	if (kind & WEFT__FD_NO_QUICK_READ)
		return -EAGAIN;
	if (!stored)
		r = weft__request_call(request);
	if (r != -EOPNOTSUPP)
		return r;
	r = weft__stored_read(request);
	kind &= WEFT__FD_NO_QUICK_WRITE;
	if (r == -EOPNOTSUPP)
		/* The hint was wrong, or there is neither way. */
		weft__fd_set_kind(entry, kind | WEFT__FD_FILE |
						 (stored ? 0 :
						  WEFT__FD_NO_QUICK_READ));
	else if (!stored)
		weft__fd_set_kind(entry, kind | WEFT__FD_STORED);
	return r;
}

/* Tries the transfer without waiting.  True: done, with *ret_result.  Behind a
 * thread of the pool that is at the file's position, or changes the file, the
 * kernel would wait. */
static bool quick(struct weft__worker *worker, struct weft__fd *entry, int kind,
		  const struct weft__request *request, ssize_t *ret_result)
{
	*ret_result = -EAGAIN;
	if (!weft__fd_is_buffered(kind) ||
	    (weft__fd_pooled(entry) && (request->offset == POSITION ||
					weft__request_writes(request))))
		return false;
	*ret_result = weft__request_writes(request) ?
			      quick_write(worker, entry, kind, request) :
			      quick_read(entry, kind, request);
	return !weft__call_wants_ring(*ret_result);
}

/* ---- Sockets ---------------------------------------------------------- */

/* Without SIGPIPE. */
static ssize_t socket_write(struct weft__worker *worker, struct weft__fd *entry,
			    const struct weft__request *request)
{
	struct weft__request send = *request;
	struct msghdr msg = {
		.msg_iov = (struct iovec *)(uintptr_t)request->memory,
		.msg_iovlen = (weft__iov_count)request->count,
	};

	/* To writev(2) that is nothing, to sendmsg(2) an empty message. */
	if (weft__request_has_iovecs(request) && request->count == 0)
		return weft__call_ready(worker,
					weft__syscall_writev(request->fd, NULL,
							     0, POSITION, 0));
	send.opcode = WEFT__OPCODE_SEND;
	send.how = MSG_NOSIGNAL;
	send.offset = 0;
	if (weft__request_has_iovecs(request)) {
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

/* To what may raise SIGPIPE, with that blocked, and without waiting. */
static ssize_t shielded_write(const struct weft__request *request)
{
	bool blocked = weft__sigpipe_block();
	ssize_t r = weft__request_call(request);

	weft__sigpipe_restore(blocked, r == -EPIPE);
	return r;
}

/*
 * A write at the position where the kernel cannot leave out SIGPIPE.  It is
 * made without waiting, when there is room.  A pipe that cannot be asked so is
 * written to by a thread of the kernel's, which SIGPIPE does not reach; but
 * Linux 6.1 resumes a request that had to wait there in the worker's own
 * thread, so it is not made before there is room.
 */
static ssize_t older_write(struct weft__worker *worker, struct weft__fd *entry,
			   const struct weft__request *request)
{
	uint8_t closes = weft__fd_closes(entry);
	struct weft__request run = *request;

	for (unsigned tries = 0;; tries++) {
		ssize_t r = shielded_write(request);
		int ready;

		if (!weft__call_wants_ring(r))
			return weft__call_ready(worker, r);
		/* A poll for the other direction waits for ever. */
		if ((weft__syscall_flags(request->fd) & O_ACCMODE) == O_RDONLY)
			return -EBADF;
		ready = weft__op_await_ready(request->fd, entry, POLLOUT,
					     tries);
		if (weft__fd_closes(entry) != closes)
			return -ECANCELED;
		if (ready < 0)
			return ready;
		worker = weft__worker_self();
		if (r != -EAGAIN)
			break;
	}
	run.flags = WEFT__REQUEST_BLOCKS;
	return weft__op_run_ready(&run, entry, 0, POLLOUT);
}

static ssize_t ring_run(struct weft__worker *worker, struct weft__fd *entry,
			int kind, const struct weft__request *request)
{
	struct weft__request run = *request;
	unsigned flags = 0;

	if (weft__fd_is_file(kind))
		flags |= WEFT__OP_AT_ONCE;
	if (weft__request_writes(request)) {
		/* One that is full, or that another writes to, makes the
		 * caller wait: Linux says that it does not, since 6.4. */
		bool terminal = kind == WEFT__FD_TERMINAL;

		if (terminal)
			run.flags = WEFT__REQUEST_BLOCKS;
		if (weft__likely(has_nosignal(worker)))
			run.how = RWF_NOSIGNAL;
		else if (request->offset == POSITION && !terminal)
			return older_write(worker, entry, request);
	}
	return weft__op_run_ready(
		&run, entry, flags,
		weft__request_writes(request) ? POLLOUT : POLLIN);
}

/* Is the transfer one for a thread of the pool?  So it is at the position, and
 * where the kernel has no call that does not wait: there the ring would use a
 * thread of the kernel's, which keeps the file open until a moment after it has
 * said that it is done, or, where a file can be polled, as all of FUSE can,
 * would itself wait for the server.  tried: the result of the quick way. */
static bool wants_thread(int kind, const struct weft__request *request,
			 ssize_t tried)
{
	bool writes = weft__request_writes(request);

	if (!weft__fd_is_file(kind))
		return false;
	if (request->offset == POSITION || tried == -EOPNOTSUPP ||
	    (writes && weft__fd_is_buffered(kind)))
		return true;
	return (kind & (writes ? WEFT__FD_NO_QUICK_WRITE :
				 WEFT__FD_NO_QUICK_READ)) ||
	       weft__fd_kind_base(kind) == WEFT__FD_STORED;
}

/* The ring accepts an offset where there is none, and a transfer at a file's
 * position through it is not atomic.  True: the descriptor may be of another
 * kind, for which the ring would be wrong. */
static bool ring_is_doubtful(int kind, const struct weft__request *request,
			     ssize_t tried)
{
	/* Has the quick way asked the kernel already? */
	bool asked = (kind == WEFT__FD_FILE || kind == WEFT__FD_LOCAL) &&
		     tried != -EOPNOTSUPP;

	if (request->offset != POSITION)
		return !asked && !weft__syscall_takes_offsets(request->fd);
	return kind == WEFT__FD_OTHER ||
	       weft__syscall_takes_offsets(request->fd);
}

/* ---- The way of a kind -------------------------------------------------- */

/* Not a result of the kernel's: the kind may be wrong. */
#define LOOK_AGAIN INT32_MIN

/* The kernel's error of a transfer of nothing at an offset: of a descriptor of
 * O_PATH it is not -ESPIPE. */
static ssize_t offset_refused(const struct weft__request *request)
{
	ssize_t r = weft__request_writes(request) ?
			    weft__syscall_writev(request->fd, NULL, 0, 0, 0) :
			    weft__syscall_readv(request->fd, NULL, 0, 0, 0);

	return r < 0 ? r : -ESPIPE;
}

static ssize_t fifo_run(struct weft__fd *entry, bool sure,
			const struct weft__request *request)
{
	uint8_t closes = weft__fd_closes(entry);
	ssize_t r;
	enum weft__fifo state = weft__fifo_await(entry, request, &r);

	if (state == WEFT__FIFO_NOT && !sure)
		return LOOK_AGAIN;
	if (state != WEFT__FIFO_ENDED)
		r = ring_run(weft__worker_self(), entry, WEFT__FD_FIFO,
			     request);
	return weft__call_overtaken(r, weft__fd_closes(entry) != closes);
}

/* sure: the kind was looked at for this call. */
static ssize_t transfer_as(struct weft__worker *worker, struct weft__fd *entry,
			   int kind, bool sure,
			   const struct weft__request *request)
{
	bool at_position = request->offset == POSITION;
	ssize_t r;

	if (!at_position &&
	    (weft__fd_is_socket(kind) || weft__fd_is_stream(kind)))
		return sure ? offset_refused(request) : LOOK_AGAIN;
	if (quick(worker, entry, kind, request, &r))
		return weft__call_ready(worker, r);
	if (weft__request_writes(request) && weft__fd_is_socket(kind))
		return socket_write(worker, entry, request);
	if (kind == WEFT__FD_SOCKET && request->opcode == WEFT__OPCODE_READ &&
	    request->bytes)
		return socket_read(entry, request);
	if (!sure && ((at_position && weft__fd_is_file(kind)) ||
		      ring_is_doubtful(kind, request, r)))
		return LOOK_AGAIN;
	/* The quick way may have found out more. */
	if (weft__fd_is_buffered(kind))
		kind = weft__fd_kind(entry, request->fd);
	if (kind < 0)
		return kind;
	if (wants_thread(kind, request, r))
		return weft__position_run(entry, request,
					  weft__request_writes(request) &&
						  weft__fd_is_local(kind));
	if (kind == WEFT__FD_FIFO)
		return fifo_run(entry, sure, request);
	do
		r = ring_run(weft__worker_self(), entry, kind, request);
	while (weft__unlikely(r == -EIO) && kind == WEFT__FD_TERMINAL &&
	       weft__foreground_await(request->fd));
	return r;
}

/* Can the result be that of a wrong kind? */
static bool is_doubtful(ssize_t r)
{
	return r == LOOK_AGAIN || r == -ENOTSOCK || r == -ESPIPE;
}

static ssize_t transfer(const struct weft__request *request)
{
	struct weft__worker *worker;
	struct weft__fd *entry;
	ssize_t r = weft__call_begin_fd(request->fd, &worker, &entry);
	int kind;

	if (weft__unlikely(r < 0))
		return r;
	kind = weft__fd_kind(entry, request->fd);
	if (weft__unlikely(kind < 0))
		return kind;
	r = transfer_as(worker, entry, kind, false, request);
	if (weft__likely(!is_doubtful(r)))
		return r;
	kind = weft__fd_kind_now(entry, request->fd);
	if (kind < 0)
		return kind;
	return transfer_as(weft__worker_self(), entry, kind, true, request);
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
