/* SPDX-License-Identifier: MIT */
/*
 * cp [-rafvnx] FROM... TO - copies files and trees, with a bar on a terminal.
 *
 * Shows	weft_copy_tree() and its functions: errors that are reported
 *		while the copy goes on, names of what was copied, progress.
 *		Control-C ends the copy by cancelling its task: no half file
 *		stays behind.
 * Run		build/examples/cp -a include /tmp/copy
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <weft/weft.h>

#include "copy.h"
#include "options.h"

/* Waits for control-C.  If it comes first, it wins the race below, and the copy
 * is cancelled. */
static int64_t interrupted(void *arg)
{
	int number, fd = *(int *)arg;
	int r = weft_signal_wait(fd, &number);

	return r < 0 ? r : number;
}

static int64_t run(void *arg)
{
	const struct options *options = arg;
	struct copy copy = { .options = options };
	struct copy *all = &copy;
	int64_t first = 0;
	int fd = weft_signal_open(&options->signals);

	WEFT_RACE (either, &first) {
		if ((fd >= 0 && WEFT_GO(either, interrupted, fd) < 0) ||
		    WEFT_GO(either, copy_all, all) < 0)
			weft_scope_cancel(either);
	}
	if (fd >= 0)
		weft_close(fd);
	return first > 0 ? 128 + first : first < 0 || copy.errors ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct options options;
	int64_t r;

	if (options_parse(&options, argc, argv) < 0)
		return 2;
	sigemptyset(&options.signals);
	sigaddset(&options.signals, SIGINT);
	sigaddset(&options.signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &options.signals, NULL);
	r = weft_run(run, &options, NULL);
	if (r < 0)
		fprintf(stderr, "cp: %s\n", strerror((int)-r));
	return r < 0 ? 1 : (int)r;
}
