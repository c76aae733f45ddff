/* SPDX-License-Identifier: MIT */
/*
 * Scenes of trees of files: walked and removed.
 */
#include <fcntl.h>

#include "io/os/statx.h"
#include "tests/fault/fault_scene.h"

#define TREE_ERRORS FD_ERRORS, EAGAIN

static int pass(const struct weft_walk_entry *entry, void *arg)
{
	(void)arg;
	if (entry->event == WEFT_WALK_ERROR)
		EXPECT(fault_fired());
	return 0;
}

static int pass_removed(const char *path, int error, void *arg)
{
	(void)path;
	(void)arg;
	EXPECT(error == 0 || fault_fired());
	return 0;
}

/* Makes directories in one another, in two branches, and links. */
static void tree_make(const char *path)
{
	static const char *const names[] = { "a", "a/b", "a/b/c", "d", "d/e" };
	char below[96];

	for (int i = 0; i < 5; i++) {
		snprintf(below, sizeof(below), "%s/%s", path, names[i]);
		EXPECT(mkdir(below, 0700) == 0);
		snprintf(below, sizeof(below), "%s/%s/link", path, names[i]);
		EXPECT(symlink("/", below) == 0);
	}
}

static int64_t trees(void *arg)
{
	struct weft_remove_opts remove_opts = WEFT_REMOVE_OPTS_INIT;
	const char *path = arg;

	for (unsigned i = 0; i < 4; i++) {
		struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;

		opts.flags = i & 1 ? WEFT_WALK_SORTED : 0;
		if (i & 2) {
			opts.flags |= WEFT_WALK_DIR_FD | WEFT_WALK_POST;
			opts.status_mask = STATX_SIZE;
		}
		MAY(weft_walk(AT_FDCWD, path, pass, NULL, &opts), TREE_ERRORS);
	}
	remove_opts.flags = WEFT_REMOVE_GO_ON;
	remove_opts.report = pass_removed;
	MAY(weft_remove_tree(AT_FDCWD, path, &remove_opts), TREE_ERRORS);
	/* Another time, and what is left is gone. */
	for (int i = 0; i < 3 && access(path, F_OK) == 0; i++)
		MAY(weft_remove_tree(AT_FDCWD, path, NULL), TREE_ERRORS);
	return 0;
}

/* Where no runtime could be made, or no removal. */
static void tree_clear(const char *path)
{
	static const char *const names[] = { "a/b/c", "a/b", "a", "d/e", "d" };
	char below[96];

	for (int i = 0; i < 5; i++) {
		snprintf(below, sizeof(below), "%s/%s/link", path, names[i]);
		unlink(below);
		snprintf(below, sizeof(below), "%s/%s", path, names[i]);
		rmdir(below);
	}
	rmdir(path);
}

void scene_trees(unsigned workers)
{
	char path[] = "/tmp/weft-fault-XXXXXX";

	EXPECT(mkdtemp(path));
	tree_make(path);
	scene_run(trees, path, workers);
	tree_clear(path);
	EXPECT(access(path, F_OK) < 0);
}
