/* SPDX-License-Identifier: MIT */
#include "tests/fake/fake_rings.h"

void fake_rings_add(struct fake_rings *rings, struct fake_completion added)
{
	weft__assert(rings->count < FAKE_COMPLETIONS_MAX,
		     "too many fake completions");
	rings->completions[rings->count++] = added;
}

uint64_t fake_rings_next(const struct fake_rings *rings, uint32_t ring)
{
	uint64_t min = UINT64_MAX;

	for (unsigned i = 0; i < rings->count; i++)
		if (rings->completions[i].ring == ring &&
		    rings->completions[i].at_ns < min)
			min = rings->completions[i].at_ns;
	return min;
}

unsigned fake_rings_take(struct fake_rings *rings, struct weft__worker *worker,
			 uint32_t ring, uint64_t now_ns)
{
	unsigned made_ready = 0;

	for (unsigned i = 0; i < rings->count;) {
		struct fake_completion one = rings->completions[i];

		if (one.ring != ring || one.at_ns > now_ns) {
			i++;
			continue;
		}
		rings->completions[i] = rings->completions[--rings->count];
		*one.done = true;
		weft__count(worker, WEFT__N_COMPLETIONS, 1);
		made_ready += weft__wake(worker, one.task, one.id);
	}
	return made_ready;
}
