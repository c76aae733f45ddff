/* SPDX-License-Identifier: MIT */
/*
 * tail [-n LINES] [-f | -F] FILE... - prints the last lines of files, and what
 * is added to them.
 *
 * Shows	weft_follow_read(): with -F files are followed by their names,
 *		over rotation, truncation and while they are missing; with -f
 *		the files that were opened, under any name.  A task for each
 *		file; a mutex keeps their output apart.  Headers and messages
 *		are those of GNU tail.
 * Run		build/examples/tail -n 5 -F /var/log/syslog /var/log/auth.log
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tail.h"

static int64_t tail(void *arg)
{
	struct options *o = arg;

	for (int i = 0; i < o->count && !o->follow; i++)
		(void)print_last(o, o->names[i]);
	WEFT_SUPERVISE(files)
		for (int i = 0; i < o->count && o->follow; i++) {
			void *args[] = { o, o->names[i] };

			if (weft_go(files, follow, args, sizeof(args)) < 0)
				status = 1;
		}
	if (o->follow)
		fprintf(stderr, "tail: no files remaining\n");
	return status;
}

int main(int argc, char **argv)
{
	struct options o = { .lines = 10 };
	int c;

	while ((c = getopt(argc, argv, "n:fF")) != -1)
		if (c == 'n')
			o.lines = strtoul(optarg, NULL, 10);
		else if (c == 'f' || c == 'F')
			o.follow = c;
		else
			return 2;
	o.names = argv + optind;
	o.count = argc - optind;
	o.headers = o.count > 1;
	if (o.count == 0) {
		fprintf(stderr, "usage: tail [-n LINES] [-f | -F] FILE...\n");
		return 2;
	}
	/* As GNU tail: not even headers. */
	if (o.lines == 0 && !o.follow)
		return 0;
	return weft_run(tail, &o, NULL) != 0;
}
