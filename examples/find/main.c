/* SPDX-License-Identifier: MIT */
/*
 * find [-L] [DIRECTORY...] [-name PATTERN] [-type LETTER] [-size [+-]N[cwbkMG]]
 *      [-newer FILE] [-maxdepth N] [-xdev] [-sorted] [-print0]
 *
 * Prints the files of trees for which all tests hold, one a line.
 *
 * Shows	weft_walk() reads directories in parallel.  Its visits run in
 *		several tasks, so each prints a line by one call, which locks
 *		stdout.  Errors are visits of their own.
 * Run		build/examples/find /usr/include -name '*.h' -newer /etc/passwd
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "find.h"

struct search {
	const struct find_options *options;
	const char *root;
	bool failed;
};

static void print(const struct search *search,
		  const struct weft_walk_entry *entry)
{
	size_t bytes = strlen(search->root);

	flockfile(stdout);
	fwrite_unlocked(search->root, 1, bytes, stdout);
	if (entry->depth && search->root[bytes - 1] != '/')
		putc_unlocked('/', stdout);
	fwrite_unlocked(entry->path, 1, entry->path_bytes, stdout);
	putc_unlocked(search->options->end, stdout);
	funlockfile(stdout);
}

static int visit(const struct weft_walk_entry *entry, void *arg)
{
	struct search *search = arg;

	if (entry->event == WEFT_WALK_ERROR) {
		__atomic_store_n(&search->failed, true, __ATOMIC_RELAXED);
		fprintf(stderr, "find: '%s%s%s': %s\n", search->root,
			entry->depth ? "/" : "", entry->path,
			strerror(-entry->error));
	} else if (find_matches(search->options, entry)) {
		print(search, entry);
	}
	return 0;
}

static int64_t find(void *arg)
{
	const struct find_options *options = arg;
	bool failed = false;

	for (char **root = options->roots; *root && **root != '-'; root++) {
		struct search search = { options, *root, false };
		int r = weft_walk(AT_FDCWD, *root, visit, &search,
				  &options->walk);

		if (r < 0)
			fprintf(stderr, "find: '%s': %s\n", *root,
				strerror(-r));
		failed |= r < 0 || search.failed;
	}
	return failed;
}

int main(int argc, char **argv)
{
	static char buffer[256 << 10];
	struct find_options options;

	(void)argc;
	/* Few writes, for which the other tasks wait. */
	if (!isatty(STDOUT_FILENO))
		setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	find_options_read(&options, argv);
	if (weft_run(find, &options, NULL) != 0)
		return 1;
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fputs("find: cannot write the output\n", stderr);
		return 1;
	}
	return 0;
}
