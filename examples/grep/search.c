/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grep.h"

/* Of a file. */
struct search {
	pcre2_match_data *room;
	uint64_t line, count; /* lines so far, and those that match */
	bool is_binary;	      /* so matches are not printed */
};

static struct search *search_of(struct file *file,
				const struct options *options)
{
	struct search *search = file->state;

	if (!search) {
		search = calloc(1, sizeof(*search));
		if (!search)
			abort();
		if (options->pattern.code)
			search->room = pattern_room(&options->pattern);
		file->state = search;
	}
	return search;
}

static void lines_count(struct search *search, const char *from, const char *to)
{
	while ((from = memchr(from, '\n', (size_t)(to - from)))) {
		search->line++;
		from++;
	}
}

/* In a binary file, as grep does it, zeroes end lines, too. */
static void zeroes_replace(struct search *search, char *from, const char *to)
{
	char *zero = memchr(from, '\0', (size_t)(to - from));

	search->is_binary |= zero != NULL;
	for (; zero; zero = memchr(zero, '\0', (size_t)(to - zero)))
		*zero = '\n';
}

static void print_line(const struct options *options, struct file *file,
		       const char *line, const char *end)
{
	const struct search *search = file->state;
	char number[32];

	if (options->names) {
		file_print(file, file->path, strlen(file->path));
		file_print(file, ":", 1);
	}
	if (options->numbers) {
		int bytes =
			snprintf(number, sizeof(number),
				 "%llu:", (unsigned long long)search->line + 1);

		file_print(file, number, (size_t)bytes);
	}
	file_print(file, line, (size_t)(end - line));
	file_print(file, "\n", 1);
}

/* Returns whether the rest is of interest. */
static bool line_found(const struct options *options, struct file *file,
		       const char *line, const char *end)
{
	struct search *search = file->state;

	search->count++;
	file->found = true;
	if (options->only_counts)
		return true;
	if (options->only_names)
		return false;
	if (search->is_binary) {
		file->complaint = "binary file matches";
		return false;
	}
	print_line(options, file, line, end);
	return true;
}

size_t search_feed(struct files *files, struct file *file, char *data,
		   size_t bytes, bool last)
{
	const struct options *options = files->arg;
	struct search *search = search_of(file, options);
	const char *end = last ? data + bytes : memrchr(data, '\n', bytes);
	const char *line = data, *counted = data, *line_end;
	int r = 0;

	if (!end)
		return 0;
	end += !last;
	zeroes_replace(search, data, end);
	while (!file->enough && (r = pattern_find(&options->pattern,
						  search->room, &line,
						  &line_end, end)) > 0) {
		if (options->numbers)
			lines_count(search, counted, line);
		counted = line;
		file->enough = !line_found(options, file, line, line_end);
		line = line_end + 1;
	}
	if (r < 0) {
		file->complaint = "the pattern takes too much memory or time";
		file->failed = true;
		file->enough = true;
	}
	if (options->numbers && !file->enough)
		lines_count(search, counted, end);
	return (size_t)(end - data);
}

void search_end(struct files *files, struct file *file)
{
	const struct options *options = files->arg;
	struct search *search = file->state;
	char text[32];
	int bytes = 0;

	if (options->only_counts && file->error == 0)
		bytes = snprintf(text, sizeof(text), "%s%llu\n",
				 options->names ? ":" : "",
				 search ? (unsigned long long)search->count :
					  0);
	if (options->only_names && file->found)
		bytes = snprintf(text, sizeof(text), "\n");
	if (bytes > 0 && (options->names || options->only_names))
		file_print(file, file->path, strlen(file->path));
	if (bytes > 0)
		file_print(file, text, (size_t)bytes);
	if (search)
		pcre2_match_data_free(search->room);
	free(search);
}
