/* SPDX-License-Identifier: MIT */
/*
 * Encoding: the only place where a request becomes an SQE.
 *
 * The fields of struct weft__request are those of an SQE under plain names, so
 * encoding copies them: memory to `addr`, the member that shares its place with
 * `bytes` to `len`, the one with `offset` to `off`, and `how` to the flags of
 * the operation.  The flags of a request have the values of the kernel's; only
 * MULTISHOT and POLL_FIRST lie in another field.
 */
#include <endian.h>
#include <sys/socket.h>

#include "io/ring/uring/uring.h"
#include "runtime/base/assert.h"

_Static_assert(WEFT__REQUEST_FIXED_FILE == IOSQE_FIXED_FILE &&
		       WEFT__REQUEST_BLOCKS == IOSQE_ASYNC &&
		       WEFT__REQUEST_BUFFERS == IOSQE_BUFFER_SELECT &&
		       WEFT__REQUEST_SILENT == IOSQE_CQE_SKIP_SUCCESS,
	       "the flags of a request are the kernel's");
_Static_assert(sizeof(void *) == sizeof(uint64_t),
	       "pointers fill the member that `offset` shares");

static const struct {
	uint8_t opcode;
	/* The flags of a request that are in `ioprio` or `len`. */
	uint8_t multishot_priority;
	uint8_t multishot_length;
	uint8_t poll_priority;
} codes[WEFT__OPCODES] = {
	[WEFT__OPCODE_NONE] = { IORING_OP_NOP, 0, 0, 0 },
	[WEFT__OPCODE_READ] = { IORING_OP_READ, 0, 0, 0 },
	[WEFT__OPCODE_WRITE] = { IORING_OP_WRITE, 0, 0, 0 },
	[WEFT__OPCODE_READV] = { IORING_OP_READV, 0, 0, 0 },
	[WEFT__OPCODE_WRITEV] = { IORING_OP_WRITEV, 0, 0, 0 },
	[WEFT__OPCODE_RECV] = { IORING_OP_RECV, IORING_RECV_MULTISHOT, 0,
			       IORING_RECVSEND_POLL_FIRST },
	[WEFT__OPCODE_SEND] = { IORING_OP_SEND, 0, 0, 0 },
	[WEFT__OPCODE_RECVMSG] = { IORING_OP_RECVMSG, 0, 0, 0 },
	[WEFT__OPCODE_SENDMSG] = { IORING_OP_SENDMSG, 0, 0, 0 },
	[WEFT__OPCODE_ACCEPT] = { IORING_OP_ACCEPT, IORING_ACCEPT_MULTISHOT,
				 0, IORING_ACCEPT_POLL_FIRST },
	[WEFT__OPCODE_CONNECT] = { IORING_OP_CONNECT, 0, 0, 0 },
	[WEFT__OPCODE_POLL] = { IORING_OP_POLL_ADD, 0, IORING_POLL_ADD_MULTI,
			       0 },
	[WEFT__OPCODE_OPENAT] = { IORING_OP_OPENAT, 0, 0, 0 },
	[WEFT__OPCODE_OPENAT2] = { IORING_OP_OPENAT2, 0, 0, 0 },
	[WEFT__OPCODE_STATX] = { IORING_OP_STATX, 0, 0, 0 },
	[WEFT__OPCODE_UNLINKAT] = { IORING_OP_UNLINKAT, 0, 0, 0 },
	[WEFT__OPCODE_RENAMEAT] = { IORING_OP_RENAMEAT, 0, 0, 0 },
	[WEFT__OPCODE_LINKAT] = { IORING_OP_LINKAT, 0, 0, 0 },
	[WEFT__OPCODE_MKDIRAT] = { IORING_OP_MKDIRAT, 0, 0, 0 },
	[WEFT__OPCODE_SYMLINKAT] = { IORING_OP_SYMLINKAT, 0, 0, 0 },
	[WEFT__OPCODE_CLOSE] = { IORING_OP_CLOSE, 0, 0, 0 },
	[WEFT__OPCODE_MESSAGE] = { IORING_OP_MSG_RING, 0, 0, 0 },
};

/* With MSG_WAITALL the kernel goes on with a receive of which a part is done: a
 * look at data would show the same bytes once more (Linux 6.18). */
static bool looks(const struct weft__request *request)
{
	return (request->opcode == WEFT__OPCODE_RECV ||
		request->opcode == WEFT__OPCODE_RECVMSG) &&
	       (request->how & MSG_PEEK);
}

/* On machines of the other byte order the kernel wants the halves of the events
 * swapped. */
static uint32_t how_of(const struct weft__request *request)
{
	if (weft__unlikely(looks(request)))
		return request->how & ~(uint32_t)MSG_WAITALL;
#if __BYTE_ORDER == __BIG_ENDIAN
	if (request->opcode == WEFT__OPCODE_POLL)
		return request->how << 16 | request->how >> 16;
#endif
	return request->how;
}

void weft__uring_encode(const struct weft__request *request,
			uint64_t user_data, struct io_uring_sqe *ret_sqe)
{
	bool multishot = request->flags & WEFT__REQUEST_MULTISHOT;
	uint16_t priority =
		multishot ? codes[request->opcode].multishot_priority : 0;
	uint32_t length =
		multishot ? codes[request->opcode].multishot_length : 0;

	if (request->flags & WEFT__REQUEST_POLL_FIRST)
		priority |= codes[request->opcode].poll_priority;
	*ret_sqe = (struct io_uring_sqe){
		.opcode = codes[request->opcode].opcode,
		.flags = (uint8_t)request->flags,
		.ioprio = priority,
		.fd = request->fd,
		.off = (uint64_t)request->offset,
		.addr = (uint64_t)(uintptr_t)request->memory,
		.len = request->bytes | length,
		.msg_flags = how_of(request),
		.user_data = user_data,
		.buf_group = request->group,
	};
}

void weft__uring_prepare(struct weft__ring *ring,
			const struct weft__request *request, uint64_t user_data)
{
	struct io_uring_sqe *sqe = weft__uring_next(ring);

	weft__uring_encode(request, user_data, sqe);
	if (weft__unlikely(request->opcode == WEFT__OPCODE_ACCEPT &&
			   !weft__uring(ring)->accept_polls))
		sqe->ioprio &= (uint16_t)~IORING_ACCEPT_POLL_FIRST;
}
