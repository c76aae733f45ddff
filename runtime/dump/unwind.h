/* SPDX-License-Identifier: MIT */
/*
 * Unwinder - the frames of a snapshot, and their names.
 *
 * libdw finds the modules of the process, their unwind tables and symbols; the
 * steps from frame to frame are done here, so that what is known of a place in
 * the code is looked up once, however many tasks wait there.
 *
 * For one thread.
 */
#ifndef WEFT_RUNTIME_DUMP_UNWIND_H
#define WEFT_RUNTIME_DUMP_UNWIND_H

#include <stddef.h>
#include <stdint.h>

struct weft__snapshot;
struct weft__unwinder;

/* Names are there as long as the unwinder. */
struct weft__symbol {
	const char *name;   /* of the function or variable, or NULL */
	const char *file;   /* or NULL; as it was compiled */
	const char *directory; /* in that one */
	const char *module; /* or NULL */
	int line;
	uint64_t begins; /* the function; or the module if it has no name */
	uint64_t bytes;	 /* of the function or variable; 0: not told */
};

/* NULL: *ret_why says why. */
struct weft__unwinder *weft__unwinder_new(const char **ret_why);
/* Of NULL nothing. */
void weft__unwinder_free(struct weft__unwinder *unwinder);

/* Addresses within the instruction that runs or calls, the innermost first.
 * Returns how many; more than `most` are cut off. */
unsigned weft__unwind(struct weft__unwinder *unwinder,
		      const struct weft__snapshot *snapshot, uint64_t *ret_pcs,
		      unsigned max);

/* Of such an address, or of a function's, or of static data. */
const struct weft__symbol *weft__unwinder_symbol(
	struct weft__unwinder *unwinder, uint64_t pc);

#endif
