/* SPDX-License-Identifier: MIT */
/*
 * Trees of files: making, comparing and removing them.  All goes by
 * descriptors, since paths may be longer than PATH_MAX.
 */
#ifndef WEFT_TESTS_SUPPORT_COPIED_KIT_H
#define WEFT_TESTS_SUPPORT_COPIED_KIT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum { COPIED_PATH_BYTES = 256 };

/* Fixtures: a test has a new directory, whose path is short, as its own, and is
 * in it.  quick: it is in memory, if that can be, for trees of many files. */
extern char copied_top[COPIED_PATH_BYTES];
void copied_setup(void);
void copied_setup_quick(void);
void copied_teardown(void);

/* Whatever its rights are; none of it remains. */
void copied_remove(const char *path);

/* path + "/" + name, into `to`. */
const char *copied_join(char to[COPIED_PATH_BYTES], const char *path,
			const char *name);

/* Bytes that are known by their place and the seed. */
void copied_bytes(char *buffer, size_t bytes, unsigned seed);

/* A file of such bytes.  dir may be AT_FDCWD. */
void copied_file(int dir, const char *name, size_t bytes, unsigned seed);

/* A directory: its descriptor. */
int copied_dir(int dir, const char *name, mode_t mode);

/* A tree of all that file systems have: names that hurt, links, nodes, holes,
 * rights, attributes.  Devices too, if they may be made.  False: its links and
 * FIFOs have no attributes. */
bool copied_nasty(const char *path);

#define NEEDS_XATTRS_OF_LINKS \
	"attributes of links and FIFOs (trusted.*), which root may set"

/* A tree of directories of so many small files: "dir-0/a file of number 0". */
void copied_broad(const char *path, int dirs, int files);

/* Whatever it is. */
bool copied_is_there(const char *path);

enum {
	COPIED_MODES = 1,
	COPIED_OWNERS = 2,
	COPIED_TIMES = 4, /* of change */
	COPIED_LINKS = 8, /* which names are of one file */
	COPIED_XATTRS = 16,
	COPIED_ALL = 31,
	/* The second may lack names, and have some that begin with
	 * ".weft-copy-", which count for nothing. */
	COPIED_PART = 32,
};

/* Fails the test where they differ: in names, kinds, contents and what is asked
 * for. */
void copied_expect_same(const char *a, const char *b, unsigned what);

/* Names in all of the tree that begin so. */
unsigned copied_count_names(const char *path, const char *prefix);

#endif
