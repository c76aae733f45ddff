/* SPDX-License-Identifier: MIT */
/*
 * Registering: what the kernel is asked beside the entries of a ring.  None of
 * it needs the shard's lock; the kernel has one of its own.
 */
#include <errno.h>
#include <stddef.h>

#include "io/ring/uring/uring.h"
#include "runtime/base/assert.h"

/* Since Linux 6.14, and in newer headers. */
#ifndef IORING_FEAT_RW_ATTR
#define IORING_FEAT_RW_ATTR (1u << 16)
#endif

_Static_assert(sizeof(struct weft__ring_buffer) ==
			       sizeof(struct io_uring_buf) &&
		       offsetof(struct weft__ring_buffer, bytes) ==
			       offsetof(struct io_uring_buf, len) &&
		       offsetof(struct weft__ring_buffer, id) ==
			       offsetof(struct io_uring_buf, bid) &&
		       offsetof(struct weft__ring_buffer, tail) ==
			       offsetof(struct io_uring_buf_ring, tail),
	       "a ring of buffers is the kernel's");

static int ring_register(struct weft__ring *ring, unsigned opcode,
			 const void *arg, unsigned count)
{
	return io_uring_register((unsigned)ring->fd, opcode, arg, count);
}

/* ---- Cancelling --------------------------------------------------------- */

int weft__uring_cancel(struct weft__ring *ring, uint64_t user_data)
{
	/* A timeout of zero: the kernel does not wait for the request. */
	struct io_uring_sync_cancel_reg cancel = {
		.addr = user_data,
		.fd = -1,
	};
	int r = ring_register(ring, IORING_REGISTER_SYNC_CANCEL, &cancel, 1);

	weft__assert(r != -EBADF && r != -EOPNOTSUPP,
		     "the descriptor of a ring of ours was closed");
	return r == -ETIME ? -EALREADY : r;
}

void weft__uring_cancel_all(struct weft__ring *ring)
{
	struct io_uring_sync_cancel_reg cancel = {
		.fd = -1,
		.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL,
	};

	ring_register(ring, IORING_REGISTER_SYNC_CANCEL, &cancel, 1);
}

/* ---- Buffers ------------------------------------------------------------ */

int weft__uring_add_buffers(struct weft__ring *ring,
			   struct weft__ring_buffer *buffers, uint32_t count,
			   uint8_t group)
{
	struct io_uring_buf_reg reg = {
		.ring_addr = (uint64_t)(uintptr_t)buffers,
		.ring_entries = count,
		.bgid = group,
	};

	return io_uring_register_buf_ring(&weft__uring(ring)->uring, &reg, 0);
}

/* ---- Files -------------------------------------------------------------- */

/* Kernels before 6.14 kept a file that was taken out open until all older
 * requests, on any file, had ended; a request that waits for input may never
 * end. */
int weft__uring_add_files(struct weft__ring *ring, uint32_t places)
{
	struct io_uring_rsrc_register reg = {
		.nr = places,
		.flags = IORING_RSRC_REGISTER_SPARSE,
	};

	if (!(weft__uring(ring)->uring.features & IORING_FEAT_RW_ATTR))
		return -EOPNOTSUPP;
	return ring_register(ring, IORING_REGISTER_FILES2, &reg, sizeof(reg));
}

bool weft__uring_set_file(struct weft__ring *ring, uint32_t place, int fd)
{
	struct io_uring_files_update update = {
		.offset = place,
		.fds = (uint64_t)(uintptr_t)&fd,
	};

	return ring_register(ring, IORING_REGISTER_FILES_UPDATE, &update, 1) ==
	       1;
}

void weft__uring_drop_files(struct weft__ring *ring)
{
	ring_register(ring, IORING_UNREGISTER_FILES, NULL, 0);
}
