/* SPDX-License-Identifier: MIT */
/*
 * Memcheck - tells Valgrind what it cannot know of io_uring.  Empty in an
 * ordinary build.
 */
#ifndef WEFT_IO_OS_MEMCHECK_H
#define WEFT_IO_OS_MEMCHECK_H

#include <liburing.h>
#include <stdint.h>

#ifdef WEFT_VALGRIND

#include <sys/stat.h>
#include <sys/uio.h>
#include <valgrind/memcheck.h>

/* The kernel has filled the memory of a request. */
static inline void weft__memcheck_filled(const struct io_uring_sqe *sqe,
					 int32_t result)
{
	void *at = (void *)(uintptr_t)sqe->addr;
	const struct msghdr *msg = at;

	if (result < 0)
		return;
	switch (sqe->opcode) {
	case IORING_OP_READ:
	case IORING_OP_RECV:
		VALGRIND_MAKE_MEM_DEFINED(at, result);
		break;
	case IORING_OP_READV:
		for (uint32_t i = 0; i < sqe->len; i++) {
			const struct iovec *iov = (const struct iovec *)at + i;

			VALGRIND_MAKE_MEM_DEFINED(iov->iov_base, iov->iov_len);
		}
		break;
	case IORING_OP_RECVMSG:
		for (size_t i = 0; i < msg->msg_iovlen; i++)
			VALGRIND_MAKE_MEM_DEFINED(msg->msg_iov[i].iov_base,
						  msg->msg_iov[i].iov_len);
		VALGRIND_MAKE_MEM_DEFINED(msg->msg_name, msg->msg_namelen);
		VALGRIND_MAKE_MEM_DEFINED(msg->msg_control,
					  msg->msg_controllen);
		break;
	case IORING_OP_STATX:
		VALGRIND_MAKE_MEM_DEFINED((void *)(uintptr_t)sqe->off,
					  sizeof(struct statx));
		break;
	default:
		break;
	}
}

/* The kernel has received these bytes. */
static inline void weft__memcheck_received(const void *at, size_t bytes)
{
	VALGRIND_MAKE_MEM_DEFINED(at, bytes);
}

#else

static inline void weft__memcheck_filled(const struct io_uring_sqe *sqe,
					 int32_t result)
{
	(void)sqe, (void)result;
}

static inline void weft__memcheck_received(const void *at, size_t bytes)
{
	(void)at, (void)bytes;
}

#endif

#endif
