/* SPDX-License-Identifier: MIT */
/*
 * checksum - prints or checks the SHA-256 of files, as sha256sum does.
 *
 * Shows	weft_pipeline_run() over files (common/files.c): they are read
 *		and worked on by all processors, and printed in order.  The
 *		files come from a weft_walk() or from the lines of a stream.
 * Run		build/examples/checksum -r examples >sums
 *		build/examples/checksum -c sums
 *
 *	checksum [-r] FILE ...	-r: also all files below folders
 *	checksum -c FILE ...	checks the sums that are listed in these files
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checksum.h"

static struct sums sums;
static bool recursive;

static int list(struct files *files)
{
	return files_add_all(files, sums.names, recursive);
}

static int64_t run(void *arg)
{
	return files_run(arg);
}

static int usage(void)
{
	fputs("usage: checksum [-r] FILE ...\n       checksum -c FILE ...\n",
	      stderr);
	return 2;
}

static void warn(unsigned count, const char *one, const char *many)
{
	if (count > 0)
		fprintf(stderr, "checksum: WARNING: %u %s\n", count,
			count == 1 ? one : many);
}

/* In the words of sha256sum. */
static void warn_all(const struct files *files)
{
	warn(sums.misformatted, "line is improperly formatted",
	     "lines are improperly formatted");
	warn(files->failures, "listed file could not be read",
	     "listed files could not be read");
	warn(files->printed - files->failures - files->found,
	     "computed checksum did NOT match",
	     "computed checksums did NOT match");
}

static int finish(const struct files *files, int64_t r)
{
	if (r < 0)
		fprintf(stderr, "checksum: %s\n", strerror((int)-r));
	if (sums.checks) {
		warn_all(files);
		if (sums.listed == 0 || files->found < sums.listed)
			return 1;
	}
	return r < 0 || files->failures > 0 || sums.unreadable > 0;
}

int main(int argc, char **argv)
{
	static struct files files = { .tool = "checksum" };
	int option;

	while ((option = getopt(argc, argv, "rc")) != -1)
		switch (option) {
		case 'r':
			recursive = true;
			break;
		case 'c':
			sums.checks = true;
			break;
		default:
			return usage();
		}
	if (optind == argc || (recursive && sums.checks) ||
	    sums_begin(&sums) < 0)
		return usage();
	sums.names = argv + optind;
	files.list = sums.checks ? sums_list : list;
	files.feed = sums_feed;
	files.end = sums_end;
	files.arg = &sums;
	return finish(&files, weft_run(run, &files, NULL));
}
