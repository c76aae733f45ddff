/* SPDX-License-Identifier: MIT */
/*
 * Copies of files and of trees of files.
 *
 *	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;
 *
 *	opts.flags = WEFT_COPY_ARCHIVE;		as cp -a
 *	r = weft_copy_tree("from", "to", &opts, NULL);
 *
 * A file that is under its own name is whole, whatever ends the copy: an error,
 * cancellation, or the end of the process.  Contents are written under a name
 * that begins with ".weft-copy-", in the same directory, and that file gets its
 * own name last.  A directory that a tree's copy makes also has such a name
 * until all is in it, so its files need no second one.  An error or
 * cancellation removes the file that was being written; only a process that
 * ends, or a machine that does, leaves a file or directory of such a name; and
 * a directory keeps it, with what is in it, if another process has taken its
 * own name meanwhile (-EEXIST).
 *
 * The work is done by threads of the pool of weft_blocking(), in turns of a few
 * milliseconds; between two turns a call looks for cancellation and deadlines.
 */
#ifndef WEFT_COPY_H
#define WEFT_COPY_H

#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* Attributes that a copy gets.  Without these flags it has the rights of the
 * original (rwx, and the sticky bit of a directory) as the umask allows, and is
 * otherwise new. */
/* Rights, also set-user-ID and the like, and the ACL; where that cannot be set,
 * the group has none: in the mode of the original they are the ACL's mask. */
#define WEFT_COPY_MODE (1u << 0)
#define WEFT_COPY_OWNER (1u << 1)  /* owner and group, as far as permitted */
#define WEFT_COPY_TIMES (1u << 2)  /* of access and change, by nanoseconds */
/* Extended ones, also ACLs (none that a directory gives), and those of links;
 * implies MODE. */
#define WEFT_COPY_XATTRS (1u << 3)

/* Replaces a file that exists; never a directory by a file. */
#define WEFT_COPY_OVERWRITE (1u << 4)
/* If `from` itself is a symbolic link: what it refers to. */
#define WEFT_COPY_FOLLOW (1u << 5)
/* FIFOs, sockets and devices are made, too; else -EOPNOTSUPP. */
#define WEFT_COPY_NODES (1u << 6)
/* All has reached the disk when the call returns 0, and a file before it gets
 * its name. */
#define WEFT_COPY_FSYNC (1u << 7)
/* Trees: names of one file become names of one copy. */
#define WEFT_COPY_LINKS (1u << 8)
/* Trees: a directory of another device than `from` is made, but stays empty. */
#define WEFT_COPY_ONE_DEVICE (1u << 9)

#define WEFT_COPY_ARCHIVE                                     \
	(WEFT_COPY_MODE | WEFT_COPY_OWNER | WEFT_COPY_TIMES | \
	 WEFT_COPY_XATTRS | WEFT_COPY_NODES | WEFT_COPY_LINKS)

/* The copies so far. */
struct weft_copy_counts {
	uint64_t files;	      /* of all kinds, but no directories */
	uint64_t directories; /* that were made, or were there, with all */
	uint64_t bytes;	      /* of contents, without holes */
	uint64_t errors;      /* that on_error let pass */
	uint64_t reserved[4];
};

/* Options.  Start from WEFT_COPY_OPTS_INIT.  The functions may be NULL.  They
 * run in a task of the call, one at a time, and may suspend.  A path that they
 * get begins with `from`, and may be longer than PATH_MAX. */
struct weft_copy_opts {
	size_t size;
	uint32_t flags;	   /* WEFT_COPY_* */
	uint32_t jobs_max; /* threads at a time; 0: one a worker, 2 at least */
	/* Of contents, in a tree of the sizes of all files; more give -EFBIG.
	 * 0: no limit. */
	uint64_t bytes_max;
	/* Now and then, and at the end. */
	void (*on_progress)(const struct weft_copy_counts *counts, void *arg);
	/* Trees: a file or directory was not copied.  A negative result is what
	 * the call returns; with any other it goes on without that file. */
	int (*on_error)(const char *path, int error, void *arg);
	/* Trees: a file was copied, or a directory with all that is in it. */
	void (*on_copied)(const char *path, void *arg);
	void *arg; /* of the functions */
};

#define WEFT_COPY_OPTS_INIT                                                    \
	{                                                                      \
		sizeof(struct weft_copy_opts), 0, 0, 0, NULL, NULL, NULL, NULL \
	}

/*
 * Copies one file, or link, to a path where as a rule there is none.  NULL
 * opts: the defaults.  Suspends.  ret_bytes (may be NULL) receives the bytes of
 * its contents that were copied, without holes.
 *
 * The kernel shares the blocks if the file system can (FICLONE), or copies
 * without a detour through memory (copy_file_range(2)).  Holes stay holes.  Of
 * a file that grows meanwhile come as many bytes as it had at first, of one
 * that shrinks those that are left; of one without a size, as those of /proc,
 * all.  A symbolic link is copied as such, and one at `to` is replaced, not
 * followed.
 *
 * Returns 0, or makes nothing and returns -EINVAL (a NULL pointer, wrong
 * options, `to` is the same file as `from`), -EEXIST, -EISDIR (either is a
 * directory), -EOPNOTSUPP (see WEFT_COPY_NODES; or the file system takes no
 * such attribute), -EFBIG (bytes_max, or as write(2)), -ENOMEM, -EAGAIN (the
 * pool has no thread), -EPERM (also: not in a task), -ECANCELED, -ETIMEDOUT, or
 * an error of open(2), read(2), write(2), mknod(2) or rename(2).
 */
WEFT_API int weft_copy_file(const char *from, const char *to,
			    const struct weft_copy_opts *opts,
			    uint64_t *ret_bytes) WEFT_WARN_UNUSED;

/*
 * Copies a tree, in parallel.  `to` is the name of the copy, not of a directory
 * to put it into.  If it is a directory, what is in `from` is added to it, and
 * so on below; files there give -EEXIST without WEFT_COPY_OVERWRITE.  A link to
 * a directory counts as one only in `to` itself, with a slash behind it.  NULL
 * opts: the defaults.  Suspends.  ret_counts (may be NULL) always receives how
 * far the call came.  If `from` is no directory, it is copied as by
 * weft_copy_file().
 *
 * Symbolic links are copied as such.  Rights and times of directories are set
 * when all is in them.  Memory and descriptors are bounded by the depth of the
 * tree and the longest directory entries, not by the number of files, except
 * for WEFT_COPY_LINKS: about 400 bytes for a file that has names still to come.
 * Paths may be longer than PATH_MAX.  A file that changes meanwhile is copied
 * as it is found; one that has gone gives -ENOENT.
 *
 * Returns 0, or the first error that on_error does not let pass: those of
 * weft_copy_file(), -EINVAL (also: `to` is inside of `from`), -ENOTDIR (a file
 * is where a directory is to be).  Then, and if it is cancelled or out of time,
 * the call ends early.  Complete files remain, and their directories with
 * them, without their rights and times.
 */
WEFT_API int
weft_copy_tree(const char *from, const char *to,
	       const struct weft_copy_opts *opts,
	       struct weft_copy_counts *ret_counts) WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
