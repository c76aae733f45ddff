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
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <weft/weft.h>

#include "../common/progress.h"
#include "options.h"

struct copy {
	const struct options *options;
	const char *to; /* of the tree that is being copied */
	struct progress progress;
	int errors;
};

static int report(struct copy *copy, const char *path, int error)
{
	progress_clear(&copy->progress);
	fprintf(stderr, "cp: %s: %s\n", path, strerror(-error));
	copy->errors++;
	return 0;
}

static int on_error(const char *path, int error, void *arg)
{
	struct copy *copy = arg;

	if (error == -EEXIST && copy->options->no_clobber)
		return 0;
	return report(copy, path, error);
}

static void on_copied(const char *path, void *arg)
{
	struct copy *copy = arg;

	progress_clear(&copy->progress);
	printf("'%s' -> '%s'\n", path, copy->to);
}

static void on_progress(const struct weft_copy_counts *counts, void *arg)
{
	struct copy *copy = arg;
	double seconds =
		(double)(weft_now() - copy->progress.began_ns) / 1e9 + 1e-9;
	double mib = (double)counts->bytes / (1 << 20);
	char text[80];

	snprintf(text, sizeof(text), "%" PRIu64 " files, %.0f MiB, %.0f MiB/s",
		 counts->files, mib, mib / seconds);
	progress_show(&copy->progress, counts->files, 0, text);
}

static void copy_one(struct copy *copy, const char *from, const char *to)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;
	int r;

	copy->to = to;
	opts.flags = copy->options->flags;
	opts.jobs_max = copy->options->jobs;
	opts.on_progress = on_progress;
	opts.on_error = on_error;
	opts.on_copied = copy->options->verbose ? on_copied : NULL;
	opts.arg = copy;
	if (copy->options->recursive)
		r = weft_copy_tree(from, to, &opts, NULL);
	else
		r = weft_copy_file(from, to, &opts, NULL);
	progress_clear(&copy->progress);
	if (r < 0)
		(void)on_error(from, r, copy);
}

static int64_t copy_all(void *arg)
{
	struct copy *copy = *(struct copy **)arg;
	const struct options *options = copy->options;
	char to[OPTIONS_PATH_BYTES];

	progress_begin(&copy->progress);
	for (int i = 0; i < options->from_count; i++) {
		const char *from = options->from[i];

		if (options_target(options, from, to, sizeof(to)) < 0)
			report(copy, from, -ENAMETOOLONG);
		else
			copy_one(copy, from, to);
	}
	return 0;
}

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
	struct copy *shared = &copy;
	int64_t first = 0;
	int fd = weft_signal_open(&options->signals);

	WEFT_RACE(either, &first)
	{
		if ((fd >= 0 && WEFT_GO(either, interrupted, fd) < 0) ||
		    WEFT_GO(either, copy_all, shared) < 0)
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
