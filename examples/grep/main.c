/* SPDX-License-Identifier: MIT */
/*
 * grep - prints the lines of files that match a pattern, as grep does.
 *
 * Shows	weft_walk() and weft_pipeline_run() over its files
 *		(common/files.c): they are searched by all processors, and
 *		printed in the order of their names.
 * Run		build/examples/grep -rn weft_pipeline include examples
 *
 *	grep [-cFilnr] PATTERN FILE ...
 *
 *	-c  counts lines	-F  the pattern is plain text
 *	-i  in any case		-l  prints names of files alone
 *	-n  numbers lines	-r  also searches all files below folders
 *
 * Patterns are those of Perl, of PCRE2; those of grep -E mean the same.
 * A line, and all that is found in a pipe, must fit into memory.
 * Returns 0 if a line matched, 1 if none did, 2 after an error.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "grep.h"

static struct {
	char **names;
	bool recursive;
} trees;

static int list(struct files *files)
{
	return files_add_all(files, trees.names, trees.recursive);
}

static int64_t run(void *arg)
{
	return files_run(arg);
}

static int usage(void)
{
	fputs("usage: grep [-cFilnr] PATTERN FILE ...\n", stderr);
	return 2;
}

/* False: there is no such option. */
static bool option_set(struct options *options, int option, bool *fixed,
		       bool *any_case)
{
	bool *flag = option == 'c' ? &options->only_counts :
		     option == 'F' ? fixed :
		     option == 'i' ? any_case :
		     option == 'l' ? &options->only_names :
		     option == 'n' ? &options->numbers :
		     option == 'r' ? &trees.recursive :
				     NULL;

	if (flag)
		*flag = true;
	return flag;
}

int main(int argc, char **argv)
{
	static struct options options;
	static struct files files = { .tool = "grep", .arg = &options };
	bool fixed = false, any_case = false;
	int64_t r;
	int option;

	while ((option = getopt(argc, argv, "cFilnr")) != -1)
		if (!option_set(&options, option, &fixed, &any_case))
			return usage();
	if (argc - optind < 2)
		return usage();
	if (pattern_compile(&options.pattern, argv[optind], fixed, any_case) <
	    0)
		return 2;
	trees.names = argv + optind + 1;
	options.names = trees.recursive || trees.names[1];
	if (options.only_names)
		options.only_counts = false;
	files.list = list;
	files.feed = search_feed;
	files.end = search_end;
	r = weft_run(run, &files, NULL);
	pcre2_code_free(options.pattern.code);
	if (r < 0)
		fprintf(stderr, "grep: %s\n", strerror((int)-r));
	return r < 0 || files.failures > 0 ? 2 : files.found == 0;
}
