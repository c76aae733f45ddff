/* SPDX-License-Identifier: MIT */
/*
 * Calls on names that weft makes in one directory, and the C library in
 * another: their results are the same.
 */
#ifndef WEFT_TESTS_SUPPORT_SAME_KIT_H
#define WEFT_TESTS_SUPPORT_SAME_KIT_H

#include "tests/support/dir_kit.h"
#include "tests/support/errno_now.h"

/* weft's directory, and the other. */
static int ours, theirs;
static char our_path[DIR_PATH_BYTES], their_path[DIR_PATH_BYTES];

static inline long result_of(long r)
{
	return r < 0 ? -errno_now() : r;
}

#define SAME(weft, posix)                                                  \
	do {                                                               \
		long is_ = (long)(weft), should_ = result_of(posix);       \
		ck_assert_msg(is_ == should_, "line %d: %s: %ld, not %ld", \
			      __LINE__, #weft, is_, should_);              \
	} while (0)

static inline const char *in(const char *dir, const char *name)
{
	static char paths[4][2 * DIR_PATH_BYTES];
	static int next;
	char *path = paths[next = (next + 1) % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

#define OURS(name) in(our_path, name)
#define THEIRS(name) in(their_path, name)

static inline void file_make(const char *name)
{
	int dirs[] = { ours, theirs };

	for (int i = 0; i < 2; i++) {
		int fd = openat(dirs[i], name, O_CREAT | O_WRONLY | O_CLOEXEC,
				0640);

		ck_assert_int_eq(write(fd, "hello", 5), 5);
		close(fd);
	}
}

/* Both directories, in a place that this machine may not have: false. */
static inline bool same_begin(const char *place)
{
	if (!dir_new(place, our_path))
		return false;
	ck_assert(dir_new(place, their_path));
	ours = dir_open(our_path);
	theirs = dir_open(their_path);
	return true;
}

static inline void same_end(void)
{
	close(ours);
	close(theirs);
	dir_end(our_path);
	dir_end(their_path);
}

#endif
