/* SPDX-License-Identifier: MIT */
/*
 * Format - task info as text for people.
 */
#ifndef WEFT_RUNTIME_DUMP_FORMAT_H
#define WEFT_RUNTIME_DUMP_FORMAT_H

#include "runtime/dump/task_info.h"
#include "runtime/dump/unwind.h"

enum { WEFT__FORMAT_BYTES = 1024 };

/* The runtime, symbols and time that the texts refer to. */
struct weft__format_context {
	struct weft_runtime *runtime;
	struct weft__unwinder *unwinder; /* or NULL */
	uint64_t now_ns;
};

/* A text under construction; it is cut off where its room ends. */
struct weft__format {
	size_t used;
	char text[WEFT__FORMAT_BYTES];
};

__attribute__((format(printf, 2, 3))) void
weft__format_add(struct weft__format *format, const char *words, ...);

/* "task 100000004 left (transfer)" */
void weft__format_task(struct weft__format *format,
		      const struct weft__format_context *speaker,
		      const struct weft__task_info *info);
/* The same for an id. */
void weft__format_id(struct weft__format *format,
		    const struct weft__format_context *speaker, uint64_t id);
/* "1.52 s" */
void weft__format_span(struct weft__format *format, uint64_t length_ns);
/* The span between two points in time; 0 if they are in reverse order. */
void weft__format_from_to(struct weft__format *format, uint64_t from_ns,
			 uint64_t to_ns);
/* "waits to lock mutex 0x7ffd12 held by task ..."; for a task that waits. */
void weft__format_wait(struct weft__format *format,
		      const struct weft__format_context *speaker,
		      const struct weft__task_info *info);

/* The last part of a path. */
const char *weft__module_shown(const char *module);

/* The length of the part of a name that the program gave: without the suffix of
 * the compiler ("move.constprop.0", "places.lto_priv.0"). */
int weft__name_shown_bytes(const char *name);

#endif
