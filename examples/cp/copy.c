/* SPDX-License-Identifier: MIT */
#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#ifndef STATX_TYPE
#include <linux/stat.h> /* musl before 1.2.4 has no struct statx */
#endif

#include <weft/weft.h>

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

static bool is_file(const char *path, bool follows)
{
	int flags = follows ? 0 : AT_SYMLINK_NOFOLLOW;
	struct statx status;

	return weft_statx(AT_FDCWD, path, flags, STATX_TYPE, &status) == 0 &&
	       S_ISREG(status.stx_mode);
}

static bool is_node(const char *path)
{
	struct stat status;

	return weft_stat(path, &status) == 0 && !S_ISREG(status.st_mode) &&
	       !S_ISDIR(status.st_mode);
}

/* A device or FIFO that is named as the target is not to be replaced by a
 * file. */
static bool is_refused(uint32_t flags, const char *from, const char *to)
{
	return (flags & WEFT_COPY_OVERWRITE) && is_node(to) &&
	       is_file(from, flags & WEFT_COPY_FOLLOW);
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

int64_t copy_all(void *arg)
{
	struct copy *copy = *(struct copy **)arg;
	const struct options *options = copy->options;
	char to[OPTIONS_PATH_BYTES];

	progress_begin(&copy->progress);
	for (int i = 0; i < options->from_count; i++) {
		const char *from = options->from[i];

		if (options_target(options, from, to, sizeof(to)) < 0)
			report(copy, from, -ENAMETOOLONG);
		else if (is_refused(options->flags, from, to))
			report(copy, to, -EOPNOTSUPP);
		else
			copy_one(copy, from, to);
	}
	return 0;
}
