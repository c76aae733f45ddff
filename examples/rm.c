/* SPDX-License-Identifier: MIT */
/*
 * rm [-rfvx] FILE... - removes files, and with -r whole trees.
 *
 * Shows	weft_remove_tree() removes a tree in parallel, goes on after an
 *		error, and reports each file to a callback.
 * Options	-r trees; -f what does not exist is no error; -v prints what is
 *		removed; -x does not enter mount points
 * Run		build/examples/rm -rv /tmp/tree
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/weft.h>

static struct {
	bool trees, force, verbose;
	unsigned flags;
	char **files;
} options;

static bool failed;

/* There is nothing to be removed. */
static bool is_missing(int64_t error)
{
	return error == -ENOENT || error == -ENOTDIR;
}

static void print_failure(const char *file, const char *below, int error)
{
	failed = true;
	fprintf(stderr, "rm: cannot remove '%s%s%s': %s\n", file,
		*below ? "/" : "", below, strerror(-error));
}

/* One task at a time calls it. */
static int report(const char *path, int error, void *arg)
{
	const char *file = arg;

	if (error == -ENOTDIR && !*path && options.force)
		return 0; /* a part of its path is a file */
	if (error)
		print_failure(file, path, error);
	else
		printf("removed '%s%s%s'\n", file, *path ? "/" : "", path);
	return 0;
}

static void remove_tree(char *file)
{
	struct weft_remove_opts opts = WEFT_REMOVE_OPTS_INIT;
	struct weft_remove_counts counts;
	int r;

	opts.flags = options.flags | WEFT_REMOVE_GO_ON;
	if (!options.verbose)
		opts.flags |= WEFT_REMOVE_QUIET;
	opts.report = report;
	opts.arg = file;
	opts.ret_counts = &counts;
	r = weft_remove_tree(AT_FDCWD, file, &opts);
	/* Counted failures were reported. */
	if (r < 0 && !counts.failed && !(is_missing(r) && options.force))
		print_failure(file, "", r);
}

static int64_t unlink_one(void *arg)
{
	return unlink(arg) < 0 ? -errno : 0;
}

static void remove_file(char *file)
{
	int64_t r = weft_blocking(unlink_one, file);

	if (r < 0 && !(is_missing(r) && options.force))
		print_failure(file, "", (int)r);
	else if (r == 0 && options.verbose)
		printf("removed '%s'\n", file);
}

static int64_t run(void *arg)
{
	(void)arg;
	for (char **file = options.files; *file; file++)
		if (options.trees)
			remove_tree(*file);
		else
			remove_file(*file);
	return failed;
}

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "rfvx")) != -1) {
		options.trees |= option == 'r';
		options.force |= option == 'f';
		options.verbose |= option == 'v';
		if (option == 'x')
			options.flags |= WEFT_REMOVE_ONE_MOUNT;
		if (option == '?')
			return 2;
	}
	options.files = argv + optind;
	if (optind == argc && !options.force) {
		fprintf(stderr, "usage: rm [-rfvx] FILE...\n");
		return 2;
	}
	return weft_run(run, NULL, NULL) == 0 ? 0 : 1;
}
