/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing.  For files the page cache is tried first: a copy out of
 * it takes less time than the way through the ring.  Sockets go the way of
 * send_recv.c.  All else goes through the ring.
 */
#include <weft/io.h>

#include <poll.h>

#include "io/request/call.h"
#include "io/ring/uring/probe.h"
#include "io/send_recv.h"

/* The offset that stands for the file's own position. */
#define POSITION ((off_t)-1)

struct transfer {
	int fd;
	const struct iovec *iov;
	int iov_count;
	off_t offset;
};

/* ---- Files ------------------------------------------------------------ */

/* Tries the transfer without waiting.  True: done, with *ret_result. */
static bool quick(struct weft__fd *entry, int kind,
		  const struct transfer *transfer, bool writes,
		  ssize_t *ret_result)
{
	int flag = writes ? WEFT__FD_NO_QUICK_WRITE : WEFT__FD_NO_QUICK_READ;
	ssize_t r;

	if ((kind & ~WEFT__FD_NO_QUICK_READ & ~WEFT__FD_NO_QUICK_WRITE) !=
		    WEFT__FD_FILE ||
	    (kind & flag))
		return false;
	r = writes ? weft__syscall_writev(transfer->fd, transfer->iov,
					 transfer->iov_count,
					 transfer->offset) :
		     weft__syscall_readv(transfer->fd, transfer->iov,
					transfer->iov_count, transfer->offset);
	if (r == -EOPNOTSUPP)
		weft__fd_set_kind(entry, kind | flag);
	*ret_result = r;
	return !weft__call_wants_ring(r);
}

/* ---- Through the ring --------------------------------------------------- */

static int32_t ring_read(int kind, const struct transfer *transfer)
{
	struct io_uring_sqe sqe = { 0 };
	unsigned flags = WEFT__OP_ON_FD;

	if (transfer->iov_count == 1)
		io_uring_prep_read(&sqe, transfer->fd, transfer->iov->iov_base,
				   weft__bytes(transfer->iov->iov_len),
				   (uint64_t)transfer->offset);
	else
		io_uring_prep_readv(&sqe, transfer->fd, transfer->iov,
				    (unsigned)transfer->iov_count,
				    (uint64_t)transfer->offset);
	if (weft__fd_is_file(kind))
		flags |= WEFT__OP_AT_ONCE;
	return weft__op_run_ready(&sqe, flags, POLLIN);
}

static int32_t ring_write(struct weft__worker *worker, int kind,
			  const struct transfer *transfer)
{
	struct io_uring_sqe sqe = { 0 };
	unsigned flags = WEFT__OP_ON_FD;

	if (transfer->iov_count == 1)
		io_uring_prep_write(&sqe, transfer->fd,
				    transfer->iov->iov_base,
				    weft__bytes(transfer->iov->iov_len),
				    (uint64_t)transfer->offset);
	else
		io_uring_prep_writev(&sqe, transfer->fd, transfer->iov,
				     (unsigned)transfer->iov_count,
				     (uint64_t)transfer->offset);
	if (weft__fd_is_file(kind))
		flags |= WEFT__OP_AT_ONCE;
	else if (weft__reactor(worker->runtime)->nosignal)
		sqe.rw_flags = RWF_NOSIGNAL;
	return weft__op_run_ready(&sqe, flags, POLLOUT);
}

static int32_t ring_run(struct weft__worker *worker, int kind,
			const struct transfer *transfer, bool writes)
{
	return writes ? ring_write(worker, kind, transfer) :
			ring_read(kind, transfer);
}

/* Transfers at a file's position: weft looks the position up and moves it.  The
 * ring would leave it unchanged when a transfer moves some bytes and then fails
 * (a disk that is full), and the caller would write those bytes again. */
static int32_t ring_run_at(struct weft__worker *worker, int kind,
			   const struct transfer *transfer, bool writes)
{
	struct transfer at = *transfer;
	int32_t n;

	if (at.offset != POSITION || !weft__fd_is_file(kind) ||
	    (writes && weft__syscall_appends(at.fd)))
		return ring_run(worker, kind, transfer, writes);
	at.offset = weft__syscall_position(at.fd);
	if (at.offset < 0)
		return (int32_t)at.offset;
	n = ring_run(worker, kind, &at, writes);
	if (n > 0)
		weft__syscall_move(at.fd, at.offset + n);
	return n;
}

/* Returns the kind.  Refuses an offset where there is none; the ring would
 * accept it. */
static int transfer_begin(const struct transfer *transfer,
			  struct weft__worker **ret_worker,
			  struct weft__fd **ret_entry)
{
	int kind = weft__call_begin_fd(transfer->fd, ret_worker, ret_entry);

	if (transfer->offset != POSITION &&
	    (weft__fd_is_socket(kind) || kind == WEFT__FD_STREAM))
		return -ESPIPE;
	return kind;
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

static ssize_t transfer_once(const struct transfer *transfer, bool writes,
			     bool *ret_again)
{
	struct weft__worker *worker;
	struct weft__fd *entry;
	ssize_t r;
	int kind = transfer_begin(transfer, &worker, &entry);

	if (kind < 0)
		return kind;
	if (quick(entry, kind, transfer, writes, &r))
		r = weft__call_ready(worker, r);
	else if (writes && weft__fd_is_socket(kind))
		r = weft__socket_writev(transfer->fd, transfer->iov,
					transfer->iov_count);
	else if (!writes && kind == WEFT__FD_SOCKET && transfer->iov_count == 1)
		r = weft_recv(transfer->fd, transfer->iov->iov_base,
			      transfer->iov->iov_len, 0);
	else
		r = ring_run_at(worker, kind, transfer, writes);
	if (weft__unlikely(r < 0))
		*ret_again = kind_changed(entry, kind, r);
	return r;
}

static ssize_t transfer_run(const struct transfer *transfer, bool writes)
{
	bool again = false;
	ssize_t r = transfer_once(transfer, writes, &again);

	return weft__unlikely(again) ? transfer_once(transfer, writes, &again) :
				       r;
}

/* ---- Calls ------------------------------------------------------------ */

ssize_t weft_read(int fd, void *buf, size_t bytes)
{
	struct iovec iov = { buf, bytes };

	return transfer_run(&(struct transfer){ fd, &iov, 1, POSITION }, false);
}

ssize_t weft_write(int fd, const void *buf, size_t bytes)
{
	struct iovec iov = { (void *)(uintptr_t)buf, bytes };

	return transfer_run(&(struct transfer){ fd, &iov, 1, POSITION }, true);
}

ssize_t weft_readv(int fd, const struct iovec *iov, int iov_count)
{
	if (iov_count < 0 || iov_count > IOV_MAX)
		return weft__call_refused(-EINVAL);
	return transfer_run(
		&(struct transfer){ fd, iov, iov_count, POSITION }, false);
}

ssize_t weft_writev(int fd, const struct iovec *iov, int iov_count)
{
	if (iov_count < 0 || iov_count > IOV_MAX)
		return weft__call_refused(-EINVAL);
	return transfer_run(
		&(struct transfer){ fd, iov, iov_count, POSITION }, true);
}

/* To the kernel an offset of -1 would be the position. */
ssize_t weft_pread(int fd, void *buf, size_t bytes, off_t offset)
{
	struct iovec iov = { buf, bytes };

	if (offset < 0)
		return weft__call_refused(-EINVAL);
	return transfer_run(&(struct transfer){ fd, &iov, 1, offset }, false);
}

ssize_t weft_pwrite(int fd, const void *buf, size_t bytes, off_t offset)
{
	struct iovec iov = { (void *)(uintptr_t)buf, bytes };

	if (offset < 0)
		return weft__call_refused(-EINVAL);
	return transfer_run(&(struct transfer){ fd, &iov, 1, offset }, true);
}
