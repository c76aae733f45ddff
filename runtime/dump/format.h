/* SPDX-License-Identifier: MIT */
/*
 * Words - what a glance has found, as people read it.
 */
#ifndef WEFT_RUNTIME_DUMP_FORMAT_H
#define WEFT_RUNTIME_DUMP_FORMAT_H

#include "runtime/dump/task_info.h"
#include "runtime/dump/unwind.h"

enum { WEFT__WORDS_BYTES = 1024 };

/* What the words are made with. */
struct weft__speaker {
	struct weft_runtime *runtime;
	struct weft__unwinder *unwinder; /* or NULL */
	uint64_t now_ns;
};

/* Text that is put together, and cut off where its room ends. */
struct weft__words {
	size_t used;
	char text[WEFT__WORDS_BYTES];
};

__attribute__((format(printf, 2, 3))) void
weft__words_add(struct weft__words *words, const char *format, ...);

/* "task 100000004 left (transfer)" */
void weft__words_task(struct weft__words *words,
		      const struct weft__speaker *speaker,
		      const struct weft__glance *glance);
/* The same of an id. */
void weft__words_id(struct weft__words *words,
		    const struct weft__speaker *speaker, uint64_t id);
/* "1.52 s" */
void weft__words_span(struct weft__words *words, uint64_t length_ns);
/* The same of what is between two points in time; 0 if they come the other way
 * round. */
void weft__words_from_to(struct weft__words *words, uint64_t from_ns,
			 uint64_t to_ns);
/* "waits to lock mutex 0x7ffd12 held by task ..."; of one that waits. */
void weft__words_wait(struct weft__words *words,
		      const struct weft__speaker *speaker,
		      const struct weft__glance *glance);

/* The last part of a path. */
const char *weft__module_shown(const char *module);

/* How much of a name is the program's: up to what the compiler made of it
 * ("move.constprop.0", "places.lto_priv.0"). */
int weft__name_shown_bytes(const char *name);

#endif
