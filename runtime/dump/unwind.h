/* SPDX-License-Identifier: MIT */
/*
 * Unwinder - the frames of a snapshot, and their names.
 *
 * libdw finds the modules of the process, their unwind tables and symbols.  The
 * steps from frame to frame are made here, so that an address is looked up
 * once, even if many tasks wait there.
 *
 * For use by one thread.
 */
#ifndef WEFT_RUNTIME_DUMP_UNWIND_H
#define WEFT_RUNTIME_DUMP_UNWIND_H

#include <stddef.h>
#include <stdint.h>

struct weft_allocator;
struct weft__snapshot;
struct weft__unwinder;

/* The names live as long as the unwinder. */
struct weft__symbol {
	const char *name;   /* of the function or variable, or NULL */
	const char *file;   /* or NULL; as given to the compiler */
	const char *directory; /* that `file` is relative to */
	const char *module; /* or NULL */
	int line;
	uint64_t begins; /* of the function; of the module if it has no name */
	uint64_t bytes;	 /* of the function or variable; 0: unknown */
};

/* For the memory see runtime/base/memory.h; libdw uses its own.  NULL: *ret_why
 * has the reason. */
struct weft__unwinder *weft__unwinder_new(const struct weft_allocator *memory,
					  const char **ret_why);
/* `unwinder` may be NULL. */
void weft__unwinder_free(struct weft__unwinder *unwinder);

/* Stores addresses within the instruction that runs or calls, the innermost
 * first.  Returns their number; those beyond `max` are cut off. */
unsigned weft__unwind(struct weft__unwinder *unwinder,
		      const struct weft__snapshot *snapshot, uint64_t *ret_pcs,
		      unsigned max);

/* The symbol of such an address, of a function's, or of static data. */
const struct weft__symbol *weft__unwinder_symbol(
	struct weft__unwinder *unwinder, uint64_t pc);

#endif
