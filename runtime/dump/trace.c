/* SPDX-License-Identifier: MIT */
/* Trace - unwinds, and cuts the library's frames off at both ends. */
#include "runtime/dump/trace.h"

#include <string.h>

#include "runtime/stack/context.h"

static const char *name_at(struct weft__unwinder *unwinder, uint64_t pc)
{
	const struct weft__symbol *symbol = weft__unwinder_symbol(unwinder, pc);

	return symbol && symbol->name ? symbol->name : "";
}

static bool begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/* ---- Where the program's own calls begin --------------------------------- */

/* Whether the symbol's source is one of the library's, as this one is. */
static bool is_ours(const struct weft__symbol *symbol,
		    const struct weft__symbol *self)
{
	static const char *const folders[] = { "runtime/", "timer/", "io/",
					       "net/" };
	static const char here[] = __FILE__;
	size_t before = strlen(here) - strlen("runtime/dump/trace.c");

	if (!symbol || !symbol->file || !symbol->directory ||
	    strcmp(symbol->directory, self->directory) != 0 ||
	    strncmp(symbol->file, here, before) != 0)
		return false;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (begins(symbol->file + before, folders[i]))
			return true;
	return false;
}

/* Finds the weft call by source files.  If a weft call ended in a tail call,
 * its frame is gone, and the called function stands for it. */
static uint32_t first_by_file(struct weft__unwinder *unwinder,
			      const struct weft__trace *trace,
			      const struct weft__symbol *self)
{
	uint32_t i = 0;

	while (i < trace->count &&
	       is_ours(weft__unwinder_symbol(unwinder, trace->pc[i]), self))
		i++;
	return i ? i - 1 : 0;
}

static bool is_inner(const char *name)
{
	return begins(name, "weft__");
}

/* Whether the weft function calls functions of the program. */
static bool calls_back(const char *name)
{
	return strcmp(name, "weft_once_run") == 0 ||
	       strcmp(name, "weft_deferred_run") == 0;
}

/* Finds the weft call by names: the outermost one.  But a call that the program
 * makes from inside another weft call counts for itself. */
static uint32_t first_by_name(struct weft__unwinder *unwinder,
			      const struct weft__trace *trace)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < trace->count; i++) {
		const char *name = name_at(unwinder, trace->pc[i]);

		if (calls_back(name) &&
		    (i == 0 || !is_inner(name_at(unwinder, trace->pc[i - 1]))))
			break;
		if (begins(name, "weft_") && !is_inner(name))
			first = i;
	}
	return first;
}

static uint32_t first_frame(struct weft__unwinder *unwinder,
			    const struct weft__trace *trace)
{
	const struct weft__symbol *self = weft__unwinder_symbol(
		unwinder, (uint64_t)(uintptr_t)weft__trace_take);

	/* If paths are rewritten, this source may not be recognized. */
	if (self && self->directory && is_ours(self, self))
		return first_by_file(unwinder, trace, self);
	return first_by_name(unwinder, trace);
}

/* ---- Where they end ------------------------------------------------------ */

enum { ENTRY_BYTES = 64 }; /* at most */

/* The trace reaches the bottom frame: all frames were copied. */
static bool is_bottom(const struct weft__trace *trace)
{
	uint64_t entry = (uint64_t)(uintptr_t)weft__context_entry;

	return trace->count >= 2 &&
	       trace->pc[trace->count - 1] - entry < ENTRY_BYTES;
}

/* The index after the last frame of the task. */
static uint32_t end_frame(struct weft__unwinder *unwinder,
			  const struct weft__trace *trace, uint64_t fn)
{
	uint32_t i;

	for (i = trace->count; i > 0; i--) {
		const struct weft__symbol *symbol =
			weft__unwinder_symbol(unwinder, trace->pc[i - 1]);

		if (symbol && symbol->name && symbol->begins == fn)
			return i;
	}
	/* Leaves out the entry and weft__task_main(), which it calls. */
	return trace->count - (is_bottom(trace) ? 2 : 0);
}

void weft__trace_take(struct weft__unwinder *unwinder,
		      const struct weft__snapshot *snapshot, uint64_t fn,
		      struct weft__trace *trace)
{
	uint32_t first;

	trace->count = 0;
	trace->cut = false;
	if (!unwinder)
		return;
	trace->count = weft__unwind(unwinder, snapshot, trace->pc,
				    WEFT__TRACE_MAX);
	trace->cut = !is_bottom(trace);
	trace->count = end_frame(unwinder, trace, fn);
	first = first_frame(unwinder, trace);
	trace->count -= first;
	memmove(trace->pc, trace->pc + first,
		trace->count * sizeof(trace->pc[0]));
}
