/* SPDX-License-Identifier: MIT */
/*
 * The last lines of a file: it is read backwards, until there are as many ends
 * of lines as lines are wanted.  The end of the last line is not counted.
 */
#include "last.h"

#include <errno.h>
#include <weft/weft.h>

enum { BLOCK = 8192, TRIES_MAX = 16 };

/* Of a file that ends at `size`; -ENODATA: it is shorter. */
static off_t lines_before(int fd, unsigned long lines, off_t size)
{
	off_t at = size;

	if (lines == 0)
		return at;
	while (at > 0) {
		size_t bytes = at < BLOCK ? (size_t)at : BLOCK;
		char buf[BLOCK];
		int r = weft_pread_all(fd, buf, bytes, at - (off_t)bytes, NULL);

		if (r < 0)
			return r;
		for (size_t i = bytes; i > 0; i--, at--)
			if (buf[i - 1] == '\n' && at != size && --lines == 0)
				return at;
	}
	return 0;
}

/* Of a file whose size says nothing: those of /proc have none, those of /sys
 * have a page. */
static off_t size_read(int fd)
{
	char buf[BLOCK];
	off_t at = 0;
	ssize_t n;

	while ((n = weft_pread(fd, buf, sizeof(buf), at)) > 0)
		at += n;
	return n < 0 ? n : at;
}

/* A file that is truncated meanwhile has other last lines. */
off_t last_lines(int fd, unsigned long lines)
{
	struct stat status;
	off_t at = -ENODATA;

	for (int i = 0; i < TRIES_MAX && at == -ENODATA; i++) {
		int r = weft_fstat(fd, &status);
		off_t size = r < 0 ? r : status.st_size;

		if (size == 0 || (size > 0 && i > 0))
			size = size_read(fd);
		at = size < 0 ? size : lines_before(fd, lines, size);
	}
	return at;
}
