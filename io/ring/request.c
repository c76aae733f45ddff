/* SPDX-License-Identifier: MIT */
#include "io/ring/request.h"

#include <errno.h>

#include "io/os/mask.h"
#include "io/os/syscall.h"
#include "runtime/base/assert.h"

static ssize_t transfer(const struct weft__request *request, int flags)
{
	const struct iovec *iov;
	struct iovec whole;
	int count = weft__request_vector(request, &whole, &iov);

	flags |= (int)request->how;
	return weft__request_writes(request) ?
		       weft__syscall_writev(request->fd, iov, count,
					    request->offset, flags) :
		       weft__syscall_readv(request->fd, iov, count,
					   request->offset, flags);
}

ssize_t weft__request_wait(const struct weft__request *request)
{
	return transfer(request, 0);
}

ssize_t weft__request_call(const struct weft__request *request)
{
	void *memory = (void *)(uintptr_t)request->memory;
	int fd = request->fd, how = (int)request->how;

	switch (request->opcode) {
	case WEFT__OPCODE_READ:
	case WEFT__OPCODE_WRITE:
	case WEFT__OPCODE_READV:
	case WEFT__OPCODE_WRITEV:
		return weft__is_masked(WEFT__FEATURE_RWF_NOWAIT) ?
			       -EOPNOTSUPP :
			       transfer(request, RWF_NOWAIT);
	case WEFT__OPCODE_RECV:
		return weft__syscall_recv(fd, memory, request->bytes, how);
	case WEFT__OPCODE_SEND:
		return weft__syscall_send(fd, memory, request->bytes, how);
	case WEFT__OPCODE_RECVMSG:
		return weft__syscall_recvmsg(fd, memory, how);
	case WEFT__OPCODE_SENDMSG:
		return weft__syscall_sendmsg(fd, memory, how);
	default:
		weft__assert(false, "a request that may wait is made without a "
				    "ring");
		return -1;
	}
}
