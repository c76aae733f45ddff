/* SPDX-License-Identifier: MIT */
#include "io/ring/request.h"

#include <errno.h>

#include "io/os/look.h"
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

static bool is_at_end(const struct weft__request *request)
{
	off_t offset = request->offset;
	struct statx status;

	if (weft__look_fd(request->fd, STATX_TYPE | STATX_SIZE, &status) < 0 ||
	    !S_ISREG(status.stx_mode))
		return true;
	if (offset < 0)
		offset = weft__syscall_position(request->fd);
	return offset >= (off_t)status.stx_size;
}

/* Linux 5.9 and 5.10 may say that a file ends where a page is not in the cache:
 * readv(2), BUGS. */
static ssize_t transfer_at_once(const struct weft__request *request)
{
	ssize_t r;

	if (weft__is_masked(WEFT__FEATURE_RWF_NOWAIT))
		return -EOPNOTSUPP;
	r = transfer(request, RWF_NOWAIT);
	if (r == 0 && !weft__request_writes(request) && !is_at_end(request))
		return -EAGAIN;
	return r;
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
		return transfer_at_once(request);
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
