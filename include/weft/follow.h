/* SPDX-License-Identifier: MIT */
/*
 * Following a file: what is added to it, and its truncation.  By its name, as
 * tail -F does: over renames and new files of that name, and while there is
 * none.  Or by a descriptor, as tail -f does: the same file, whatever happens
 * to its name.
 *
 *	r = weft_follow_open("/var/log/app.log", WEFT_FOLLOW_END, &follow);
 *	while ((n = weft_follow_read(follow, buf, sizeof(buf), &news)) >= 0)
 *		fwrite(buf, 1, (size_t)n, stdout);
 *	weft_follow_close(follow);
 *
 * If the name comes to mean another file (logrotate's create, a symbolic link
 * that is changed, also that of a directory), the old file is read on until the
 * new one has bytes.  So no byte of a writer is lost that goes on with the old
 * file for a while.  A file that is cut (logrotate's copytruncate) is read from
 * its start; not noticed is one that by then is longer than before, and what
 * was written between the last read and the cut.
 *
 * Changes are noticed by inotify(7).  Where that cannot work (a file of a
 * network file system or of FUSE, no more inotify instances or watches), the
 * file and its name are looked at every second.  Only regular files are
 * followed: a name of another kind counts as missing.
 *
 * One task at a time uses a follow.  An interrupted call loses no byte.
 */
#ifndef WEFT_FOLLOW_H
#define WEFT_FOLLOW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weft/config.h>
#include <weft/stream.h>

WEFT_BEGIN_DECLS

struct weft_follow;

enum {
	WEFT_FOLLOW_END = -1, /* an offset: what is added from now on */
};

/* News: events before the bytes that a read returns. */
enum {
	WEFT_FOLLOW_NEW = 1 << 0,     /* they are from the start of another
					 file, or of the first that came */
	WEFT_FOLLOW_CUT = 1 << 1,     /* the file was cut: from its start */
	WEFT_FOLLOW_MISSING = 1 << 2, /* there is no file of this name */
};

/* Follows the file of that name; the first, if there is one now, from an offset
 * on.  Suspends.  Returns 0, -EFAULT (NULL), -EINVAL (an empty path, or another
 * negative offset), -ENAMETOOLONG, -EAGAIN (a thread of the pool was needed and
 * cannot be made), -ENOMEM, -EMFILE, -ENFILE, -ECANCELED, -ETIMEDOUT,
 * -EPERM. */
WEFT_API int weft_follow_open(const char *path, int64_t offset,
			      struct weft_follow **ret_follow)
	WEFT_WARN_UNUSED;

/* Follows the file that is open there for reading, from an offset on.  The
 * descriptor is the follow's now, and its position stays as it is; after an
 * error it is still the caller's.  The follow does not end when the file has no
 * name any more, as it may get one again.  Suspends.  Returns 0, -EBADF (not
 * open for reading), -EINVAL (no regular file, one of proc or sysfs, or another
 * negative offset), or -EAGAIN and the following, as above. */
WEFT_API int weft_follow_open_fd(int fd, int64_t offset,
				 struct weft_follow **ret_follow)
	WEFT_WARN_UNUSED;

/* Waits for bytes, or for news.  Suspends.  Returns the number of bytes, and in
 * *ret_news (may be NULL) the news before them; 0 if there are news alone, or
 * no bytes are asked for, which does not wait.  Or -ECANCELED, -ETIMEDOUT,
 * -EPERM, -EAGAIN, -ENOMEM, -EMFILE, -ENFILE (the call may be repeated), or an
 * error of weft_pread(). */
WEFT_API ssize_t weft_follow_read(struct weft_follow *follow, void *buf,
				  size_t bytes, unsigned *ret_news)
	WEFT_WARN_UNUSED;

/* A stream of the bytes, for weft_stream_line() and the like; news are dropped.
 * Close it before the follow.  Does not suspend. */
WEFT_API void weft_follow_stream(struct weft_follow *follow,
				 struct weft_stream *stream);

/* The descriptor of the file that is read, which stays the follow's; or -1. */
WEFT_API int weft_follow_fd(const struct weft_follow *follow);

/* The next read of that file is from there on: for a place that was found with
 * weft_follow_fd(), as that of its last lines.  Does not suspend.  Returns 0,
 * -EINVAL (negative), or -ENOENT: there is no file. */
WEFT_API int weft_follow_seek(struct weft_follow *follow, int64_t offset);

/* Does the follow look every second? */
WEFT_API int weft_follow_polls(const struct weft_follow *follow);

/* Ends it; NULL: does nothing.  As weft_close(). */
WEFT_API int weft_follow_close(struct weft_follow *follow);

WEFT_END_DECLS

#endif
