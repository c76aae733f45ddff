/* SPDX-License-Identifier: MIT */
#include "io/ring/ring.h"

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
