/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "find.h"

static void refuse(const char *what, const char *word)
{
	fprintf(stderr, "find: %s: %s\n", what, word ? word : "");
	exit(2);
}

static const char *value_of(char ***argv)
{
	char *word = **argv;

	if (!*++*argv)
		refuse("has no value", word);
	return **argv;
}

static void read_size(struct find_options *options, const char *text)
{
	static const char units[] = "cwbkMG";
	static const uint64_t bytes[] = { 1, 2, 512, 1024, 1 << 20, 1 << 30 };
	const char *unit;
	char *end;

	options->size_sign = '=';
	if (*text == '+' || *text == '-')
		options->size_sign = *text++;
	options->size = strtoull(text, &end, 10);
	unit = strchr(units, *end ? *end : 'b');
	if (end == text || !unit || (*end && end[1]))
		refuse("-size", text);
	options->size_unit = bytes[unit - units];
	options->walk.status_mask |= STATX_SIZE;
}

static void read_newer(struct find_options *options, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		refuse("-newer", path);
	options->has_newer = true;
	options->newer_s = st.st_mtim.tv_sec;
	options->newer_ns = st.st_mtim.tv_nsec;
	options->walk.status_mask |= STATX_MTIME;
}

static void read_word(struct find_options *options, char ***argv)
{
	const char *word = **argv;

	if (!strcmp(word, "-name"))
		options->name = value_of(argv);
	else if (!strcmp(word, "-type"))
		options->type = *value_of(argv);
	else if (!strcmp(word, "-size"))
		read_size(options, value_of(argv));
	else if (!strcmp(word, "-newer"))
		read_newer(options, value_of(argv));
	else if (!strcmp(word, "-maxdepth"))
		options->walk.depth_max =
			(unsigned)strtoul(value_of(argv), NULL, 10);
	else if (!strcmp(word, "-print0"))
		options->end = '\0';
	else if (!strcmp(word, "-sorted"))
		options->walk.flags |= WEFT_WALK_SORTED;
	else if (!strcmp(word, "-xdev"))
		options->walk.flags |= WEFT_WALK_ONE_DEVICE;
	else if (!strcmp(word, "-L"))
		options->walk.flags |= WEFT_WALK_FOLLOW;
	else
		refuse("unknown", word);
}

void find_options_read(struct find_options *ret_options, char **argv)
{
	static char *here[] = { ".", NULL };

	*ret_options = (struct find_options){
		.end = '\n',
		.walk = WEFT_WALK_OPTS_INIT,
	};
	argv++;
	if (*argv && !strcmp(*argv, "-L")) {
		read_word(ret_options, &argv);
		argv++;
	}
	ret_options->roots = argv;
	while (*argv && **argv != '-')
		argv++;
	if (argv == ret_options->roots)
		ret_options->roots = here;
	for (; *argv; argv++)
		read_word(ret_options, &argv);
}
