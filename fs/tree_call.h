/* SPDX-License-Identifier: MIT */
/*
 * Tree calls - the system calls on trees of files.  Each may wait for a disk or
 * a server, so they are made on threads of the blocking pool.  They return
 * -errno; a call that a signal interrupts is made again.
 */
#ifndef WEFT_FS_TREE_CALL_H
#define WEFT_FS_TREE_CALL_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "io/os/statx.h"

/* The kernel's linux_dirent64. */
struct weft__dirent {
	uint64_t inode;
	int64_t offset; /* weft's own word, once the record was read */
	uint16_t bytes; /* of the record */
	uint8_t type;
	char name[];
};

ssize_t weft__dirents_read(int fd, void *buf, size_t bytes);

/* Opens a directory and nothing else; flags: further ones. */
int weft__directory_openat(int dir_fd, const char *path, int flags);

int weft__statx(int dir_fd, const char *path, int flags, unsigned mask,
		struct statx *ret_status);

/* flags: 0, or AT_REMOVEDIR. */
int weft__unlinkat(int dir_fd, const char *path, int flags);

/* The DT_ type in a mode. */
static inline uint8_t weft__dirent_type(unsigned mode)
{
	return (uint8_t)((mode & S_IFMT) >> 12);
}

/* Is it "." or ".."? */
static inline int weft__dirent_is_dots(const struct weft__dirent *dirent)
{
	const char *name = dirent->name;

	return name[0] == '.' &&
	       (!name[1] || (name[1] == '.' && !name[2]));
}

#endif
