/* SPDX-License-Identifier: MIT */
#include "runtime/dump/unwind.h"

struct weft__unwinder *weft__unwinder_new(const struct weft_allocator *memory,
					  const char **ret_why)
{
	(void)memory;
	*ret_why = "libweft was built without libdw";
	return NULL;
}

void weft__unwinder_free(struct weft__unwinder *unwinder)
{
	(void)unwinder;
}

unsigned weft__unwind(struct weft__unwinder *unwinder,
		      const struct weft__snapshot *snapshot, uint64_t *ret_pcs,
		      unsigned max)
{
	(void)unwinder, (void)snapshot, (void)ret_pcs, (void)max;
	return 0;
}

const struct weft__symbol *
weft__unwinder_symbol(struct weft__unwinder *unwinder, uint64_t pc)
{
	(void)unwinder, (void)pc;
	return NULL;
}
