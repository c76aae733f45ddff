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
static inline char *dump_text(struct weft_runtime *runtime)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	off_t bytes;
	char *text;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_dump(runtime, fd), 0);
	bytes = lseek(fd, 0, SEEK_END);
	ck_assert_int_gt(bytes, 0);
	text = calloc(1, (size_t)bytes + 1);
	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(pread(fd, text, (size_t)bytes, 0), bytes);
	close(fd);
	ck_assert_int_eq(text[bytes - 1], '\n');
	return text;
}

/* Whether such a build can unwind, here. */
static inline bool dump_has_backtraces(const char *text)
{
	if (!strstr(text, "weft: no backtraces: "))
		return true;
	/* Of no task, not even that there were more calls. */
	ck_assert_msg(!strstr(text, "\n    ...\n"), "%s", text);
	if (!strstr(text, "backtraces: libweft was built without libdw\n"))
		ck_assert_msg(strstr(text, "backtraces: libdw.so.1 (elfutils) "
					   "cannot be loaded\n") &&
				      !dlopen("libdw.so.1", RTLD_NOW),
			      "%s", text);
	return false;
}

/* And the calls of one that runs.  Under Valgrind a thread waits for its turn
 * on a stack of Valgrind, where the library does not look. */
static inline bool dump_has_calls_of_running(const char *text)
{
#ifdef WEFT_VALGRIND
	(void)text;
	return false;
#else
	return dump_has_backtraces(text);
#endif
}

/* And the calls of one that is ready, or joins one that runs. */
static inline bool dump_has_calls_of_ready(const char *text)
{
#if defined(__x86_64__)
	return dump_has_backtraces(text);
#else
	(void)text;
	return false;
#endif
}

/* Starts a task of that name, with a pointer for an argument. */
static inline void named(struct weft_scope *scope, const char *name, weft_fn fn,
		  void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.name = name;
	ck_assert_int_eq(weft_go_opts(scope, fn, &arg, sizeof(arg), &opts), 0);
}

/* The line that the first `what` is in, copied to buf, without its end; NULL:
 * there is none. */
static inline const char *line_with(const char *text, const char *what,
				    char *buf, size_t bytes)
{
	const char *at = strstr(text, what);
	const char *begin = at, *end;
	size_t length;

	if (!at)
		return NULL;
	while (begin > text && begin[-1] != '\n')
		begin--;
	end = strchr(at, '\n');
	length = (size_t)(end - begin) < bytes ? (size_t)(end - begin) :
						 bytes - 1;
	memcpy(buf, begin, length);
	buf[length] = '\0';
	return buf;
}

/* Behind it, which must be there. */
static inline const char *after(const char *text, const char *what)
{
	const char *at = strstr(text, what);

	ck_assert_msg(at != NULL, "no %s in\n%s", what, text);
	return at + strlen(what);
}

/* Dumps until the text has it: others are on their way. */
static inline char *dump_until(const char *what)
{
	weft_nsec by = weft_now() + WEFT_SEC(20);

	for (;;) {
		char *text = dump_text(NULL);

		if (strstr(text, what))
			return text;
		ck_assert_msg(weft_now() < by, "never: %s in\n%s", what, text);
		free(text);
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	}
}

#endif
