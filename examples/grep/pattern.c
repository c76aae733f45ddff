/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grep.h"

static bool is_plain(const char *text)
{
	return !strpbrk(text, ".[]()*+?{}|^$\\");
}

static int code_compile(struct pattern *pattern, uint32_t flags)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	PCRE2_UCHAR text[256];
	PCRE2_SIZE at;
	int error = PCRE2_ERROR_NOMEMORY;

	if (context) {
		pcre2_set_newline(context, PCRE2_NEWLINE_LF);
		pattern->code =
			pcre2_compile((PCRE2_SPTR)pattern->text, pattern->bytes,
				      flags, &error, &at, context);
		pcre2_compile_context_free(context);
	}
	if (!pattern->code) {
		pcre2_get_error_message(error, text, sizeof(text));
		fprintf(stderr, "grep: %s\n", (char *)text);
		return -EINVAL;
	}
	/* Without a compiler for this machine it is interpreted. */
	(void)pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE);
	return 0;
}

int pattern_compile(struct pattern *pattern, const char *text, bool fixed,
		    bool any_case)
{
	uint32_t flags = PCRE2_MULTILINE;

	if (strchr(text, '\n')) {
		fputs("grep: a pattern is one line\n", stderr);
		return -EINVAL;
	}
	pattern->text = text;
	pattern->bytes = strlen(text);
	if (!any_case && (fixed || is_plain(text)))
		return 0;
	if (any_case)
		flags |= PCRE2_CASELESS;
	if (fixed)
		flags = PCRE2_LITERAL | (flags & PCRE2_CASELESS);
	return code_compile(pattern, flags);
}

pcre2_match_data *pattern_room(const struct pattern *pattern)
{
	pcre2_match_data *room = pcre2_match_data_create(1, NULL);

	(void)pattern;
	if (!room)
		abort();
	return room;
}

/* The compiled code has a small stack; without it PCRE2 uses the heap. */
static int code_match(const struct pattern *pattern, pcre2_match_data *room,
		      const char *from, const char *end)
{
	PCRE2_SPTR text = (PCRE2_SPTR)from;
	size_t bytes = (size_t)(end - from);
	int r = pcre2_match(pattern->code, text, bytes, 0, 0, room, NULL);

	if (r == PCRE2_ERROR_JIT_STACKLIMIT)
		r = pcre2_match(pattern->code, text, bytes, 0, PCRE2_NO_JIT,
				room, NULL);
	return r;
}

/* Where it matches first, and where that ends: 1; 0: nowhere; or -ENOMEM. */
static int match(const struct pattern *pattern, pcre2_match_data *room,
		 const char *from, const char *end, const char **ret_hit,
		 const char **ret_end)
{
	const PCRE2_SIZE *places;
	int r;

	if (!pattern->code) {
		*ret_hit = memmem(from, (size_t)(end - from), pattern->text,
				  pattern->bytes);
		*ret_end = *ret_hit;
		return *ret_hit != NULL;
	}
	r = code_match(pattern, room, from, end);
	if (r < 0)
		return r == PCRE2_ERROR_NOMATCH ? 0 : -ENOMEM;
	places = pcre2_get_ovector_pointer(room);
	*ret_hit = from + places[0];
	*ret_end = from + places[1];
	return 1;
}

/* A match that goes beyond its line is none, but the line may have another. */
int pattern_find(const struct pattern *pattern, pcre2_match_data *room,
		 const char **line, const char **line_end, const char *end)
{
	while (*line < end) {
		const char *hit, *hit_end, *begin, *stop;
		int r = match(pattern, room, *line, end, &hit, &hit_end);

		if (r <= 0 || hit == end)
			return r < 0 ? r : 0;
		begin = memrchr(*line, '\n', (size_t)(hit - *line));
		stop = memchr(hit, '\n', (size_t)(end - hit));
		*line = begin ? begin + 1 : *line;
		*line_end = stop ? stop : end;
		if (hit_end > *line_end)
			r = match(pattern, room, *line, *line_end, &hit,
				  &hit_end);
		if (r != 0)
			return r;
		*line = *line_end + 1;
	}
	return 0;
}
