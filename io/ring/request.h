/* SPDX-License-Identifier: MIT */
/*
 * Request - one piece of work for the kernel, in plain words.  A ring encodes
 * it for its carrier (weft__ring_prepare()), and weft__request_call() carries
 * some of them out as a system call that does not wait.  So each call describes
 * its work once.
 *
 * Fields that an opcode does not name are zero.  `how` holds the flags of the
 * system call of that name.
 */
#ifndef WEFT_IO_RING_REQUEST_H
#define WEFT_IO_RING_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

struct open_how;

enum weft__opcode {
	WEFT__OPCODE_NONE,
	/* memory: a buffer of `bytes`; offset: -1 for the file's position;
	 * how: RWF_ flags. */
	WEFT__OPCODE_READ,
	WEFT__OPCODE_WRITE,
	/* memory: `count` iovecs; the rest likewise. */
	WEFT__OPCODE_READV,
	WEFT__OPCODE_WRITEV,
	/* memory: a buffer of `bytes`, except with WEFT__REQUEST_BUFFERS; how:
	 * MSG_ flags. */
	WEFT__OPCODE_RECV,
	WEFT__OPCODE_SEND,
	/* memory: a struct msghdr; how: MSG_ flags. */
	WEFT__OPCODE_RECVMSG,
	WEFT__OPCODE_SENDMSG,
	/* how: SOCK_ flags; memory, address_room: for the peer's address. */
	WEFT__OPCODE_ACCEPT,
	WEFT__OPCODE_CONNECT, /* memory: an address of address_bytes */
	WEFT__OPCODE_POLL,    /* how: events (POLLIN, POLLOUT) */
	WEFT__OPCODE_OPENAT,  /* fd, memory (path), how, mode: its arguments */
	WEFT__OPCODE_OPENAT2, /* fd, memory (path), open_how, bytes: likewise */
	WEFT__OPCODE_STATX, /* fd, memory (path), how, mask, status: likewise */
	/* fd, memory: a name; to_fd, to: another; how: flags. */
	WEFT__OPCODE_UNLINKAT,
	WEFT__OPCODE_RENAMEAT,
	WEFT__OPCODE_LINKAT,
	WEFT__OPCODE_MKDIRAT,	/* fd, memory (path), mode: its arguments */
	WEFT__OPCODE_SYMLINKAT, /* memory (target), fd, to (path): likewise */
	WEFT__OPCODE_CLOSE,
	/* fd: a ring's.  That ring gets a completion with `message` for its
	 * user_data. */
	WEFT__OPCODE_MESSAGE,
	WEFT__OPCODES,
};

enum weft__request_flags {
	/* fd is a place in the ring's table of files. */
	WEFT__REQUEST_FIXED_FILE = 1 << 0,
	/* The work may wait where only a thread can, so one is to do it. */
	WEFT__REQUEST_BLOCKS = 1 << 4,
	/* A receive takes its buffer from the ring's buffers of `group`; the
	 * completion names it. */
	WEFT__REQUEST_BUFFERS = 1 << 5,
	/* Success posts no completion. */
	WEFT__REQUEST_SILENT = 1 << 6,
	/* Completes again and again (RECV, ACCEPT, POLL). */
	WEFT__REQUEST_MULTISHOT = 1 << 8,
	/* There is probably nothing to receive, or to accept, yet: a try would
	 * be in vain. */
	WEFT__REQUEST_POLL_FIRST = 1 << 9,
	/* The number is being closed: the file is the one that goes, or the
	 * next one.  The request is cancelled when the close has ended. */
	WEFT__REQUEST_LATE = 1 << 10,
};

struct weft__request {
	uint8_t opcode;
	uint8_t group;
	uint16_t flags;
	int32_t fd;
	const void *memory;
	union {
		uint32_t bytes;
		uint32_t count;
		uint32_t mode;
		uint32_t mask;
		int32_t to_fd;
	};
	uint32_t how;
	union {
		int64_t offset;
		uint64_t address_bytes;
		socklen_t *address_room;
		uint64_t message;
		const struct open_how *open_how;
		struct statx *status;
		const char *to;
	};
};

_Static_assert(sizeof(struct weft__request) == 32, "half a line");

static inline struct weft__request weft__request_poll(int fd, unsigned events)
{
	return (struct weft__request){
		.opcode = WEFT__OPCODE_POLL,
		.fd = fd,
		.how = events,
	};
}

/* Of READ, WRITE, READV, WRITEV. */
static inline bool weft__request_writes(const struct weft__request *request)
{
	return request->opcode == WEFT__OPCODE_WRITE ||
	       request->opcode == WEFT__OPCODE_WRITEV;
}

static inline bool weft__request_has_iovecs(const struct weft__request *request)
{
	return request->opcode == WEFT__OPCODE_READV ||
	       request->opcode == WEFT__OPCODE_WRITEV;
}

/* The vector of READ, WRITE, READV or WRITEV; *ret_whole is that of a single
 * buffer.  Returns its length. */
static inline int weft__request_vector(const struct weft__request *request,
				       struct iovec *ret_whole,
				       const struct iovec **ret_iov)
{
	if (weft__request_has_iovecs(request)) {
		*ret_iov = request->memory;
		return (int)request->count;
	}
	*ret_whole = (struct iovec){ (void *)(uintptr_t)request->memory,
				     request->bytes };
	*ret_iov = ret_whole;
	return 1;
}

/* Carries out READ, WRITE, READV, WRITEV, RECV, SEND, RECVMSG or SENDMSG as a
 * system call that does not wait: -EAGAIN where it would, -EOPNOTSUPP if the
 * file system cannot tell. */
ssize_t weft__request_call(const struct weft__request *request);

/* Carries out READ, WRITE, READV or WRITEV as a system call that may wait. */
ssize_t weft__request_wait(const struct weft__request *request);

#endif
