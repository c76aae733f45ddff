/* SPDX-License-Identifier: MIT */
/*
 * Memcheck - tells Valgrind what it cannot know of a ring.  Empty in an
 * ordinary build.
 */
#ifndef WEFT_IO_RING_MEMCHECK_H
#define WEFT_IO_RING_MEMCHECK_H

#include <stdint.h>

#include "io/ring/request.h"

#ifdef WEFT_VALGRIND

#include <sys/socket.h>
#include <sys/uio.h>
#include <valgrind/memcheck.h>

/* The kernel has filled the memory of a request. */
static inline void weft__memcheck_filled(const struct weft__request *request,
					 int32_t result)
{
	const struct msghdr *msg = request->memory;
	const struct iovec *iov = request->memory;

	if (result < 0)
		return;
	switch (request->opcode) {
	case WEFT__OPCODE_READ:
	case WEFT__OPCODE_RECV:
		VALGRIND_MAKE_MEM_DEFINED(request->memory, result);
		break;
	case WEFT__OPCODE_READV:
		for (uint32_t i = 0; i < request->count; i++)
			VALGRIND_MAKE_MEM_DEFINED(iov[i].iov_base,
						  iov[i].iov_len);
		break;
	case WEFT__OPCODE_RECVMSG:
		for (size_t i = 0; i < msg->msg_iovlen; i++)
			VALGRIND_MAKE_MEM_DEFINED(msg->msg_iov[i].iov_base,
						  msg->msg_iov[i].iov_len);
		VALGRIND_MAKE_MEM_DEFINED(msg->msg_name, msg->msg_namelen);
		VALGRIND_MAKE_MEM_DEFINED(msg->msg_control,
					  msg->msg_controllen);
		break;
	case WEFT__OPCODE_STATX:
		VALGRIND_MAKE_MEM_DEFINED(request->status,
					  sizeof(*request->status));
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

static inline void weft__memcheck_filled(const struct weft__request *request,
					 int32_t result)
{
	(void)request, (void)result;
}

static inline void weft__memcheck_received(const void *at, size_t bytes)
{
	(void)at, (void)bytes;
}

#endif

#endif
