/* SPDX-License-Identifier: MIT */
/*
 * Sending a file: with sendfile(2), which hands pages of the page cache to the
 * socket, where that cannot hold up the worker's thread; otherwise with a copy.
 *
 *	the socket is       the next chunk is    and so is moved by
 *	a stream socket,    large, in the page   sendfile(2); for room in the
 *	and O_NONBLOCK      cache                socket the task waits
 *	that, or another    another              a read, which may wait for the
 *	                                         disk, and a send
 *
 * sendfile(2) has no flag that keeps it from waiting for room, nor has
 * splice(2) to a socket.  Only the socket's own mode does that; the program may
 * rely on that mode, so weft does not change it.
 */
#include <weft/io.h>

#include <errno.h>
#include <poll.h>

#include "io/request/call.h"
#include "io/stored.h"
#include "runtime/base/memory.h"

/* A chunk of the file is looked up in the cache, and sent, as a whole. */
enum { CHUNK_BYTES = 256 << 10, PIECE_BYTES = 128 << 10 };

/* Copying less than this takes less time than the look-up. */
enum { CHUNK_MIN = 16 << 10 };

struct sending {
	int socket_fd;
	struct weft__fd *entry; /* the socket's */
	int file_fd;
	off_t offset; /* of the next byte */
	size_t left;
	uint32_t closes; /* closes of both, at the beginning of the call */
	bool copies;	 /* sendfile(2) is of no use here */
	off_t copied_to; /* up to here the file is not cached, and so copied */
	char *piece;	 /* the buffer, once it is needed, and its size */
	size_t piece_bytes;
};

static void sending_moved(struct sending *sending, size_t bytes)
{
	sending->offset += (off_t)bytes;
	sending->left -= bytes;
}

static uint32_t closes_of(const struct sending *sending)
{
	return weft__call_closes_long(sending->socket_fd) +
	       weft__call_closes_long(sending->file_fd);
}

/* A number may belong to another file after a close: no bytes of this call may
 * go there. */
static bool was_closed(const struct sending *sending)
{
	return closes_of(sending) != sending->closes;
}

/* ---- By a copy ---------------------------------------------------------- */

static const struct weft_allocator *memory_here(void)
{
	return weft__worker_self()->runtime->memory;
}

/* Returns 0 at the end of the file. */
static ssize_t copy_some(struct sending *sending)
{
	size_t sent, bytes = sending->left;
	ssize_t n;
	int r;

	if (bytes > PIECE_BYTES)
		bytes = PIECE_BYTES;
	if (!sending->piece) {
		sending->piece = weft__memory_new(memory_here(), bytes);
		sending->piece_bytes = bytes;
	}
	if (!sending->piece)
		return -ENOMEM;
	n = weft_pread(sending->file_fd, sending->piece, bytes,
		       sending->offset);
	if (n <= 0)
		return n;
	if (was_closed(sending))
		return -ECANCELED;
	/* Without MSG_MORE: if the file turns out to end after this piece, no
	 * later send would push it out. */
	r = weft_send_all(sending->socket_fd, sending->piece, (size_t)n, 0,
			  &sent);
	sending_moved(sending, sent);
	return r < 0 ? r : n;
}

/* ---- By sendfile(2) ------------------------------------------------------ */

/* How many bytes of the file can be sent now without waiting for a disk. */
static size_t chunk_cached(struct sending *sending)
{
	size_t bytes;

	if (sending->copies || sending->offset < sending->copied_to ||
	    !weft__syscall_never_blocks(sending->socket_fd))
		return 0;
	/* Not beyond the end of the file: older kernels then hold back the last
	 * bytes. */
	bytes = weft__syscall_bytes_behind(sending->file_fd, sending->offset);
	if (bytes > sending->left)
		bytes = sending->left;
	if (bytes > CHUNK_BYTES)
		bytes = CHUNK_BYTES;
	/* Another file may have the number of a socket: see
	 * weft__fd_kind(). */
	if (bytes < CHUNK_MIN || !weft__syscall_is_stream(sending->socket_fd))
		return 0;
	if (weft__syscall_is_cached(sending->file_fd, sending->offset, bytes) ||
	    weft__stored_has(sending->file_fd, sending->offset, bytes))
		return bytes;
	sending->copied_to = sending->offset + (off_t)bytes;
	return 0;
}

/* Does the kernel refuse to send such a file to such a socket?  Or has the file
 * been cut short meanwhile? */
static bool wants_copy(ssize_t r)
{
	return r == 0 || r == -EINVAL || r == -EOPNOTSUPP || r == -ENOSYS;
}

/* Sends a part, in one way or the other.  Returns 0 at the end of the file. */
static ssize_t send_some(struct sending *sending)
{
	for (unsigned tries = 0;; tries++) {
		struct weft__worker *worker;
		ssize_t r = weft__call_begin(&worker);
		size_t bytes;

		if (r < 0)
			return r;
		if (was_closed(sending))
			return -ECANCELED;
		bytes = chunk_cached(sending);
		if (bytes == 0)
			return copy_some(sending);
		r = weft__syscall_sendfile(sending->socket_fd, sending->file_fd,
					  sending->offset, bytes);
		if (r == -EAGAIN) {
			r = weft__op_await_ready(sending->socket_fd,
						 sending->entry, POLLOUT,
						 tries);
			if (r < 0)
				return r;
			continue;
		}
		sending->copies = wants_copy(r);
		if (sending->copies)
			return copy_some(sending);
		if (r > 0)
			sending_moved(sending, (size_t)r);
		return weft__call_ready(worker, r);
	}
}

static ssize_t sending_run(struct sending *sending)
{
	struct weft__worker *worker;
	ssize_t r = weft__call_begin_fd(sending->socket_fd, &worker,
					&sending->entry);

	if (r == 0)
		r = weft__fd_kind(sending->entry, sending->socket_fd);
	if (r < 0)
		return r;
	if (sending->offset < 0)
		return -EINVAL;
	sending->copies = r != WEFT__FD_SOCKET;
	sending->closes = closes_of(sending);
	for (r = 1; r > 0 && sending->left > 0;)
		r = send_some(sending);
	weft__memory_free(memory_here(), sending->piece, sending->piece_bytes);
	r = weft__call_overtaken(r, was_closed(sending));
	return r < 0 ? r : 0;
}

ssize_t weft_sendfile(int socket_fd, int file_fd, off_t offset, size_t bytes,
		      size_t *ret_done)
{
	struct sending sending = {
		.socket_fd = socket_fd,
		.file_fd = file_fd,
		.offset = offset,
		.left = bytes,
	};
	ssize_t r = sending_run(&sending);
	size_t done = bytes - sending.left;

	if (ret_done)
		*ret_done = done;
	return r < 0 ? r : (ssize_t)done;
}
