/* SPDX-License-Identifier: MIT */
/*
 * Dumps as text, and looking for lines in it.
 *
 * dump_text() takes a dump of a runtime, line_with() and after() look in it,
 * and dump_until() repeats it until a text is there.  The rest says whether a
 * build can show the calls of a task, and starts tasks with a name.
 */
#ifndef WEFT_TESTS_SUPPORT_DUMP_SCENE_H
#define WEFT_TESTS_SUPPORT_DUMP_SCENE_H

#include <dlfcn.h>
#include <sys/mman.h>

#include "tests/support/io_kit.h"

/* That of a runtime, NULL: the calling task's; to be freed. */
char *dump_text(struct weft_runtime *runtime);

/* Whether such a build can unwind, here. */
bool dump_has_backtraces(const char *text);

/* And the calls of one that runs.  Under Valgrind a thread waits for its turn
 * on a stack of Valgrind, where the library does not look. */
bool dump_has_calls_of_running(const char *text);

/* And the calls of one that is ready, or joins one that runs. */
bool dump_has_calls_of_ready(const char *text);

/* Starts a task of that name, with a pointer for an argument. */
void named(struct weft_scope *scope, const char *name, weft_fn fn, void *arg);

/* The line that the first `what` is in, copied to buf, without its end; NULL:
 * there is none. */
const char *line_with(const char *text, const char *what, char *buf,
		      size_t bytes);

/* Behind it, which must be there. */
const char *after(const char *text, const char *what);

/* Dumps until the text has it: others are on their way. */
char *dump_until(const char *what);

#endif
