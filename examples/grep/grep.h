/* SPDX-License-Identifier: MIT */
#ifndef GREP_H
#define GREP_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdbool.h>

#include "../common/files.h"

struct pattern {
	const char *text;
	size_t bytes;
	pcre2_code *code; /* NULL: the text itself is looked for */
};

/* 0, or -EINVAL after a complaint. */
int pattern_compile(struct pattern *pattern, const char *text, bool fixed,
		    bool any_case);

/* Finds the first line that matches, which it sets: 1; 0; or -ENOMEM: to find
 * it takes more memory or time than PCRE2 allows.  *line points to the
 * beginning of a line.  room: of pattern_room(). */
int pattern_find(const struct pattern *pattern, pcre2_match_data *room,
		 const char **line, const char **line_end, const char *end);
pcre2_match_data *pattern_room(const struct pattern *pattern);

struct options {
	struct pattern pattern;
	bool names, numbers, only_names, only_counts;
};

/* For struct files, whose arg points to options. */
size_t search_feed(struct files *files, struct file *file, char *data,
		   size_t bytes, bool last);
void search_end(struct files *files, struct file *file);

#endif
