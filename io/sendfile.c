/* SPDX-License-Identifier: MIT */
/*
 * Sending a file: read into a buffer, send, read on.  Not sendfile(2), which
 * would hold the worker's thread while the disk works.
 */
#include <weft/io.h>

#include <errno.h>
#include <stdlib.h>

#include "io/call.h"

enum { PIECE_BYTES = 128 << 10 };

/* 0: the end of the file. */
static ssize_t piece_send(int socket_fd, int file_fd, char *piece,
			  off_t offset, size_t bytes, size_t *ret_sent)
{
	size_t piece_bytes = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
	ssize_t n = weft_pread(file_fd, piece, piece_bytes, offset);
	int r;

	*ret_sent = 0;
	if (n <= 0)
		return n;
	/* Without MSG_MORE: where the file turns out to end after the piece,
	 * nothing would be left to push it out with. */
	r = weft_send_all(socket_fd, piece, (size_t)n, 0, ret_sent);
	return r < 0 ? r : n;
}

ssize_t weft_sendfile(int socket_fd, int file_fd, off_t offset, size_t bytes,
		      size_t *ret_done)
{
	size_t sent, done = 0;
	ssize_t r = 1;
	char *piece;

	if (offset < 0)
		return weft__call_refused(-EINVAL);
	r = weft__call_refused(0);
	if (r < 0)
		return r;
	piece = malloc(bytes < PIECE_BYTES ? bytes + 1 : PIECE_BYTES);
	if (!piece)
		return -ENOMEM;
	while (done < bytes) {
		r = piece_send(socket_fd, file_fd, piece, offset + (off_t)done,
			       bytes - done, &sent);
		done += sent;
		if (r <= 0)
			break;
	}
	free(piece);
	if (ret_done)
		*ret_done = done;
	return r < 0 ? r : (ssize_t)done;
}
