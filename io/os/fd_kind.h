/* SPDX-License-Identifier: MIT */
/*
 * Descriptor kind - the kind of file that a descriptor refers to.
 */
#ifndef WEFT_IO_OS_FD_KIND_H
#define WEFT_IO_OS_FD_KIND_H

#include <stdbool.h>

/* Found out at the first use of the descriptor. */
enum weft__fd_kind {
	WEFT__FD_UNKNOWN,
	WEFT__FD_SOCKET,   /* a stream socket */
	WEFT__FD_MESSAGES, /* a socket that keeps messages apart */
	WEFT__FD_FILE,	 /* regular or block device, through the page cache */
	WEFT__FD_DIRECT, /* the same with O_DIRECT */
	WEFT__FD_STREAM, /* pipe, ...: has no offsets */
	WEFT__FD_OTHER,	 /* a device with offsets, a directory, ... */
	/* A terminal: as a stream, but a call that shall not wait may. */
	WEFT__FD_TERMINAL,
	/* A regular file as WEFT__FD_FILE, of a local file system (look.h). */
	WEFT__FD_LOCAL,
	/* Local as well, but of tmpfs or an overlay, see io/stored.h. */
	WEFT__FD_STORED,
	WEFT__FD_FIFO, /* of a local file system; a pipe is a stream */
	/* A file: a thread of the pool is at its position. */
	WEFT__FD_POOLED = 1 << 4,
	/* A stream socket: the last receive left nothing behind. */
	WEFT__FD_DRAINED = 1 << 5,
	/* The file system cannot read, or write, without waiting. */
	WEFT__FD_NO_QUICK_READ = 1 << 6,
	WEFT__FD_NO_QUICK_WRITE = 1 << 7,
};

/* The kind without the flags. */
static inline int weft__fd_kind_base(int kind)
{
	return kind & (WEFT__FD_POOLED - 1);
}

static inline bool weft__fd_is_socket(int kind)
{
	return kind == WEFT__FD_SOCKET || kind == WEFT__FD_MESSAGES;
}

static inline bool weft__fd_is_stream(int kind)
{
	return kind == WEFT__FD_STREAM || kind == WEFT__FD_TERMINAL ||
	       kind == WEFT__FD_FIFO;
}

static inline bool weft__fd_is_local(int kind)
{
	kind = weft__fd_kind_base(kind);
	return kind == WEFT__FD_LOCAL || kind == WEFT__FD_STORED;
}

/* Through the page cache? */
static inline bool weft__fd_is_buffered(int kind)
{
	return weft__fd_kind_base(kind) == WEFT__FD_FILE ||
	       weft__fd_is_local(kind);
}

static inline bool weft__fd_is_file(int kind)
{
	return weft__fd_is_buffered(kind) ||
	       weft__fd_kind_base(kind) == WEFT__FD_DIRECT;
}

#endif
