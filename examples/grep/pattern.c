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

/* Where it matches first, and where that ends; NULL: nowhere. */
static const char *match(const struct pattern *pattern, pcre2_match_data *room,
			 const char *from, const char *end,
			 const char **ret_end)
{
	const PCRE2_SIZE *places;

	if (!pattern->code) {
		const char *hit = memmem(from, (size_t)(end - from),
					 pattern->text, pattern->bytes);

		*ret_end = hit;
		return hit;
	}
	if (pcre2_match(pattern->code, (PCRE2_SPTR)from, (size_t)(end - from),
			0, 0, room, NULL) < 0)
		return NULL;
	places = pcre2_get_ovector_pointer(room);
	*ret_end = from + places[1];
	return from + places[0];
}

/* A match that goes beyond its line is none, but the line may have another. */
bool pattern_find(const struct pattern *pattern, pcre2_match_data *room,
		  const char **line, const char **line_end, const char *end)
{
	while (*line < end) {
		const char *hit_end, *begin, *stop;
		const char *hit = match(pattern, room, *line, end, &hit_end);

		if (!hit || hit == end)
			return false;
		begin = memrchr(*line, '\n', (size_t)(hit - *line));
		stop = memchr(hit, '\n', (size_t)(end - hit));
		*line = begin ? begin + 1 : *line;
		*line_end = stop ? stop : end;
		if (hit_end <= *line_end ||
		    match(pattern, room, *line, *line_end, &hit_end))
			return true;
		*line = *line_end + 1;
	}
	return false;
}
