/* SPDX-License-Identifier: MIT */
#include "tests/support/dump_scene.h"

char *dump_text(struct weft_runtime *runtime)
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

bool dump_has_backtraces(const char *text)
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

bool dump_has_calls_of_running(const char *text)
{
#ifdef WEFT_VALGRIND
	(void)text;
	return false;
#else
	return dump_has_backtraces(text);
#endif
}

bool dump_has_calls_of_ready(const char *text)
{
#if defined(__x86_64__)
	return dump_has_backtraces(text);
#else
	(void)text;
	return false;
#endif
}

void named(struct weft_scope *scope, const char *name, weft_fn fn, void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.name = name;
	ck_assert_int_eq(weft_go_opts(scope, fn, &arg, sizeof(arg), &opts), 0);
}

const char *line_with(const char *text, const char *what, char *buf,
		      size_t bytes)
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

const char *after(const char *text, const char *what)
{
	const char *at = strstr(text, what);

	ck_assert_msg(at != NULL, "no %s in\n%s", what, text);
	return at + strlen(what);
}

char *dump_until(const char *what)
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
