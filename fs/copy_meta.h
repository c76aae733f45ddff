/* SPDX-License-Identifier: MIT */
/*
 * Copy meta - what a copy has beside its contents.  The flags are WEFT_COPY_*
 * of <weft/copy.h>.  The calls run on the thread that calls them, and return 0
 * or an error.
 */
#ifndef WEFT_FS_COPY_META_H
#define WEFT_FS_COPY_META_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* The attributes of a file or directory, between two descriptors.  `buffer` has
 * WEFT__COPY_BUFFER_BYTES. */
int weft__copy_meta(int from, int to, const struct stat *status, uint32_t flags,
		    char *buffer);

/* Those of a link or node, which is not opened.  With WEFT_COPY_FOLLOW and the
 * status of a node, `from` may be a link to it.  Where there is no /proc, the
 * copy has no extended ones; the rights of a node then need Linux 6.6 (else
 * -EOPNOTSUPP). */
struct weft__copy_name {
	int dir; /* or AT_FDCWD */
	const char *name;
};

int weft__copy_meta_at(struct weft__copy_name from, struct weft__copy_name to,
		       const struct stat *status, uint32_t flags, char *buffer);

/* Takes from a new file or directory the ACLs that the directory around it has
 * given it.  It then gives its own files none. */
void weft__copy_acls_drop(int to, bool is_directory);

/* The rights alone, of a directory or node; a link is not followed. */
int weft__copy_rights_set(struct weft__copy_name at, mode_t rights);

#endif
