/* SPDX-License-Identifier: MIT */
/*
 * Follow - a file by its name, or by a descriptor.
 *
 *	path	/var/log/app -> /data/app/today.log
 *	watched	"var" in /, "log" in /var, "app" in /var/log, "data" in /, ...
 *		and the file itself
 *
 * The path is resolved here, a name at a time, and each directory on the way is
 * watched before the name in it is looked at.  So a change of any of them, also
 * of a symbolic link, comes with an event; then the path is resolved again.
 *
 * A follow by a descriptor has an empty path and watches the file alone.
 *
 * Concurrency: one task, which lends it to a thread of the pool to resolve.
 */
#ifndef WEFT_FS_FOLLOW_INTERNAL_H
#define WEFT_FS_FOLLOW_INTERNAL_H

#include <limits.h>
#include <stdbool.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <weft/follow.h>

struct weft_allocator;

enum { WEFT__FOLLOW_NAMES_MAX = 64 };

struct weft__follow_name {
	int wd;
	bool used;
	char name[NAME_MAX + 1];
};

struct weft_follow {
	const struct weft_allocator *memory;
	int fd;	     /* of the file; -1: none */
	int next_fd; /* the name means this one by now; -1: none */
	int64_t offset;
	int64_t size; /* of the file, when resolve or take found it */
	int notices; /* of inotify; -1: none */
	int wd, next_wd;
	unsigned news;
	bool polls;
	bool dirty;	/* the path, if there is one, is to be resolved */
	bool missing;	/* the caller was told */
	bool switching; /* the next file has bytes: one last look at this one */
	int names_count;
	struct weft__follow_name names[WEFT__FOLLOW_NAMES_MAX];
	char path[PATH_MAX];
	/* While the path is resolved: what is done, and what is left. */
	char done[PATH_MAX], left[2 * PATH_MAX];
	char input[4096] __attribute__((aligned(8)));
};

/* Resolves the path, with system calls that may wait: sets next_fd and size if
 * it means another file than fd.  0; 1, nothing was done, since next_fd has got
 * bytes; or -EMFILE, -ENFILE, -ENOMEM. */
int weft__follow_resolve(struct weft_follow *follow);

/* Begins to watch the file of a follow that has no path, with calls as above,
 * and sets size: 0, -EBADF, -EINVAL. */
int weft__follow_take(struct weft_follow *follow);

#endif
