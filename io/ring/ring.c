/* SPDX-License-Identifier: MIT */
/*
 * Ring: its completions, and the way to its carrier.
 */
#include "io/ring/ring.h"

#include <errno.h>

#include "io/os/mask.h"
#include "io/ring/carrier.h"

unsigned weft__ring_reap(struct weft__ring *ring,
			 struct weft__completion *ret_completions,
			 unsigned max)
{
	/* relaxed: only the lock's holder writes it. */
	uint32_t head = weft__load(ring->reaped, relaxed);
	/* pairs: [ring.completions] */
	uint32_t count = weft__load(ring->posted, acquire) - head;

	if (count > max)
		count = max;
	for (uint32_t i = 0; i < count; i++)
		ret_completions[i] =
			ring->completions[(head + i) & ring->completions_mask];
	if (count)
		/* pairs: [ring.completions] */
		weft__store(ring->reaped, head + count, release);
	return count;
}

/* ---- By the carrier ----------------------------------------------------- */

void weft__ring_close(struct weft__ring *ring)
{
	ring->carrier->close(ring);
}

void weft__ring_prepare(struct weft__ring *ring,
			const struct weft__request *request, uint64_t user_data)
{
	ring->carrier->prepare(ring, request, user_data);
}

int weft__ring_submit(struct weft__ring *ring)
{
	return ring->carrier->submit(ring);
}

int weft__ring_turn(struct weft__ring *ring)
{
	return ring->carrier->turn(ring);
}

int weft__ring_wait(struct weft__ring *ring, uint64_t wait_ns)
{
	return ring->carrier->wait(ring, wait_ns);
}

int weft__ring_attach(struct weft__ring *ring, int timer_fd)
{
	return ring->carrier->attach(ring, timer_fd);
}

uint64_t weft__ring_rest(struct weft__ring *ring)
{
	return ring->carrier->rest(ring);
}

void weft__ring_rouse(struct weft__ring *ring)
{
	ring->carrier->rouse(ring);
}

int weft__ring_cancel(struct weft__ring *ring, uint64_t user_data)
{
	return ring->carrier->cancel(ring, user_data);
}

void weft__ring_cancel_all(struct weft__ring *ring)
{
	ring->carrier->cancel_all(ring);
}

void weft__ring_forget(struct weft__ring *ring, int fd, bool closes)
{
	ring->carrier->forget(ring, fd, closes);
}

const char *weft__ring_name(const struct weft__ring *ring)
{
	return ring->carrier->name;
}

bool weft__ring_wants_nonblock(const struct weft__ring *ring)
{
	return ring->carrier->wants_nonblock;
}

bool weft__ring_remembers(const struct weft__ring *ring)
{
	return ring->carrier->forget;
}

int weft__ring_add_buffers(struct weft__ring *ring,
			   struct weft__ring_buffer *buffers, uint32_t count,
			   uint8_t group)
{
	if (weft__is_masked(WEFT__FEATURE_BUF_RING))
		return -EOPNOTSUPP;
	return ring->carrier->add_buffers(ring, buffers, count, group);
}

int weft__ring_add_files(struct weft__ring *ring, uint32_t places)
{
	if (weft__is_masked(WEFT__FEATURE_FIXED_FILES))
		return -EOPNOTSUPP;
	return ring->carrier->add_files(ring, places);
}

bool weft__ring_set_file(struct weft__ring *ring, uint32_t place, int fd)
{
	return ring->carrier->set_file(ring, place, fd);
}

void weft__ring_drop_files(struct weft__ring *ring)
{
	ring->carrier->drop_files(ring);
}
