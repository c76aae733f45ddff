/* SPDX-License-Identifier: MIT */
/*
 * The calls of <weft/copy.h> for tests/support/io_calls.h: copies of what is
 * nothing but a name, into a directory of their own.
 */
#ifndef WEFT_TESTS_SUPPORT_COPY_CALLS_H
#define WEFT_TESTS_SUPPORT_COPY_CALLS_H

#include "tests/support/io_place.h"

/* A copy of a file that was given up has made nothing; of a tree, directories
 * may remain. */
static inline ssize_t copy_settle(const char *base, const char *to, mode_t kind,
				  int r)
{
	char path[128];
	bool made = remove(to) == 0;

	snprintf(path, sizeof(path), "%s/from", base);
	EXPECT(made == (r == 0) || (made && kind == S_IFDIR));
	EXPECT(remove(path) == 0);
	EXPECT(rmdir(base) == 0);
	return r;
}
static inline ssize_t
copy_somewhere(int (*copy)(const char *from, const char *to), mode_t kind)
{
	char base[] = "/tmp/weft-copied-XXXXXX", from[128], to[128];

	EXPECT(mkdtemp(base));
	snprintf(from, sizeof(from), "%s/from", base);
	snprintf(to, sizeof(to), "%s/to", base);
	EXPECT((kind == S_IFDIR ? mkdir(from, 0700) :
				  mknod(from, S_IFREG | 0600, 0)) == 0);
	return copy_settle(base, to, kind, copy(from, to));
}
static inline int copy_file_to(const char *from, const char *to)
{
	return weft_copy_file(from, to, NULL, NULL);
}
static inline int copy_tree_to(const char *from, const char *to)
{
	return weft_copy_tree(from, to, NULL, NULL);
}
static inline ssize_t make_copy_of_file(struct place *place)
{
	(void)place;
	return copy_somewhere(copy_file_to, S_IFREG);
}
static inline ssize_t make_copy_of_tree(struct place *place)
{
	(void)place;
	return copy_somewhere(copy_tree_to, S_IFDIR);
}

#endif
