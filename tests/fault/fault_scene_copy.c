/* SPDX-License-Identifier: MIT */
/*
 * Scenes of copies of files.
 *
 * The trees are made and removed by calls that no fault is for.  Whatever
 * fails, no name is left but those of the trees.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/fault/fault_scene.h"

enum { DIRS = 2, PATH_BYTES = 128, SIZE = 300000 };

#define COPY_ERRORS FD_ERRORS, MOVE_ERRORS, EAGAIN

static const char *const names[] = { "/a", "/b", "/link", "/name" };

enum { NAMES = sizeof(names) / sizeof(names[0]) };

struct place {
	char base[PATH_BYTES], from[PATH_BYTES], to[PATH_BYTES],
		file[PATH_BYTES];
};

static const char *path_of(char path[PATH_BYTES], const char *tree, int dir,
			   const char *name)
{
	int n = snprintf(path, PATH_BYTES, "%.90s/%d%s", tree, dir, name);

	EXPECT(n > 0 && n < PATH_BYTES);
	return path;
}

static void tree_make(const char *tree)
{
	char path[PATH_BYTES], other[PATH_BYTES];

	EXPECT(mkdir(tree, 0700) == 0);
	for (int i = 0; i < DIRS; i++) {
		EXPECT(mkdir(path_of(path, tree, i, ""), 0700) == 0);
		for (int j = 0; j < 2; j++) {
			path_of(path, tree, i, names[j]);
			EXPECT(mknod(path, S_IFREG | 0600, 0) == 0);
			EXPECT(truncate(path, j * SIZE) == 0);
		}
		EXPECT(symlink("a", path_of(path, tree, i, "/link")) == 0);
		path_of(other, tree, 0, "/a");
		EXPECT(link(other, path_of(path, tree, i, "/name")) == 0);
	}
}

static void tree_remove(const char *tree)
{
	char path[PATH_BYTES];

	for (int i = 0; i < DIRS; i++) {
		for (int j = 0; j < NAMES; j++)
			(void)!unlink(path_of(path, tree, i, names[j]));
		(void)!rmdir(path_of(path, tree, i, ""));
	}
	(void)!rmdir(tree);
}

static int64_t copy_all(void *arg)
{
	const struct place *place = *(struct place **)arg;
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	opts.flags = WEFT_COPY_LINKS | WEFT_COPY_MODE | WEFT_COPY_TIMES;
	opts.jobs_max = 2;
	MAY(weft_copy_tree(place->from, place->to, &opts, NULL), COPY_ERRORS);
	opts.flags = WEFT_COPY_FOLLOW | WEFT_COPY_FSYNC;
	MAY(weft_copy_file("/proc/self/exe", place->file, &opts, NULL),
	    COPY_ERRORS);
	return 0;
}

void scene_copy_tree(unsigned workers)
{
	struct place place;
	struct place *shared = &place;
	bool quick = access("/dev/shm", W_OK | X_OK) == 0;

	snprintf(place.base, PATH_BYTES, "%s/weft-copied-XXXXXX",
		 quick ? "/dev/shm" : "/tmp");
	EXPECT(mkdtemp(place.base));
	snprintf(place.from, PATH_BYTES, "%.40s/from", place.base);
	snprintf(place.to, PATH_BYTES, "%.40s/to", place.base);
	snprintf(place.file, PATH_BYTES, "%.40s/file", place.base);
	tree_make(place.from);
	scene_run(copy_all, &shared, workers);
	tree_remove(place.from);
	tree_remove(place.to);
	(void)!unlink(place.file);
	EXPECT(rmdir(place.base) == 0);
}
