/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weft/copy.h>

static const char usage[] =
	"usage: cp [-rafvnx] [-j JOBS] FROM... TO\n"
	"  -r  trees                      -f, --force       replaces files\n"
	"  -a  trees with all attributes  -n, --no-clobber  keeps files\n"
	"  -v  prints names               -x  stays on one device\n"
	"  -j  that many threads\n";

static const struct option names[] = {
	{ "recursive", no_argument, NULL, 'r' },
	{ "archive", no_argument, NULL, 'a' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "no-clobber", no_argument, NULL, 'n' },
	{ "force", no_argument, NULL, 'f' },
	{ "one-file-system", no_argument, NULL, 'x' },
	{ "jobs", required_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

static bool option_set(struct options *options, int option, const char *value)
{
	switch (option) {
	case 'a':
		options->flags |= WEFT_COPY_ARCHIVE;
		options->recursive = true;
		return true;
	case 'r':
		options->recursive = true;
		return true;
	case 'v':
		options->verbose = true;
		return true;
	case 'n':
		options->no_clobber = true;
		return true;
	case 'f':
		options->flags |= WEFT_COPY_OVERWRITE;
		return true;
	case 'x':
		options->flags |= WEFT_COPY_ONE_DEVICE;
		return true;
	case 'j':
		options->jobs = (unsigned)strtoul(value, NULL, 10);
		return options->jobs > 0;
	default:
		return false;
	}
}

static bool is_directory(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

int options_parse(struct options *options, int argc, char **argv)
{
	int option;

	*options = (struct options){ 0 };
	while ((option = getopt_long(argc, argv, "rafvnxj:", names, NULL)) >= 0)
		if (!option_set(options, option, optarg))
			optind = argc;
	if (options->no_clobber)
		options->flags &= ~WEFT_COPY_OVERWRITE;
	if (!options->recursive)
		options->flags |= WEFT_COPY_FOLLOW;
	options->from = argv + optind;
	options->from_count = argc - optind - 1;
	if (options->from_count < 1) {
		fputs(usage, stderr);
		return -1;
	}
	options->to = argv[argc - 1];
	options->into = is_directory(options->to);
	if (options->from_count > 1 && !options->into) {
		fprintf(stderr, "cp: %s: not a directory\n", options->to);
		return -1;
	}
	return 0;
}

int options_target(const struct options *options, const char *from, char *to,
		   size_t bytes)
{
	size_t end = strlen(from), begin;
	int n;

	while (end > 1 && from[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && from[begin - 1] != '/';)
		begin--;
	/* "to/.." would be another directory. */
	if (end - begin == 2 && from[begin] == '.' && from[begin + 1] == '.')
		begin = end;
	if (options->into)
		n = snprintf(to, bytes, "%s/%.*s", options->to,
			     (int)(end - begin), from + begin);
	else
		n = snprintf(to, bytes, "%s", options->to);
	return n >= 0 && (size_t)n < bytes ? 0 : -1;
}
