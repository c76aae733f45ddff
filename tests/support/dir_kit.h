/* SPDX-License-Identifier: MIT */
/*
 * Directories of a test's own, which are removed with all that is in them.
 */
#ifndef WEFT_TESTS_SUPPORT_DIR_KIT_H
#define WEFT_TESTS_SUPPORT_DIR_KIT_H

#include <limits.h>
#include <sys/stat.h>

#include "tests/support/io_kit.h"

/* A file system on a disk and one in memory, where there are both. */
static const char *const dir_places[] = { "/var/tmp", "/dev/shm" };

enum { DIR_PLACES = sizeof(dir_places) / sizeof(dir_places[0]) };

enum { DIR_PATH_BYTES = 64 };

/* A new directory; false: there is no such place here. */
static inline bool dir_new(const char *place, char path[DIR_PATH_BYTES])
{
	snprintf(path, DIR_PATH_BYTES, "%s/weft-dir-XXXXXX", place);
	if (mkdtemp(path))
		return true;
	fprintf(stderr, "%s: skipped, %s\n", place, strerror(errno));
	return false;
}

static inline int dir_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* Removes all that is in it; the descriptor is used up. */
static inline void dir_empty(int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;

	rewinddir(dir);
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, entry->d_name, 0) == 0)
			continue;
		dir_empty(openat(fd, entry->d_name,
				 O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		unlinkat(fd, entry->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
}

static inline void dir_end(const char *path)
{
	dir_empty(dir_open(path));
	ck_assert_int_eq(rmdir(path), 0);
}

/* How many names there are, of those that begin with `prefix`. */
static inline int dir_names(const char *path, const char *prefix)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' || entry->d_name[1] == 'w')
			count += strncmp(entry->d_name, prefix,
					 strlen(prefix)) == 0;
	closedir(dir);
	return count;
}

/* In a block with a deadline: it has passed, as the next call finds. */
#define deadline_pass() \
	ck_assert_int_eq(weft_sleep(WEFT_SEC(100)), -ETIMEDOUT)

#endif
