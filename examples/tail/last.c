/* SPDX-License-Identifier: MIT */
/*
 * The last lines of a file: it is read backwards, until there are as many ends
 * of lines as lines are wanted.  The end of the last line is not counted.
 */
#include "last.h"

#include <weft/weft.h>

enum { BLOCK = 8192 };

off_t last_lines(int fd, unsigned long lines)
{
	struct stat status;
	off_t at;
	int r = weft_fstat(fd, &status);

	if (r < 0)
		return r;
	at = status.st_size;
	if (lines == 0)
		return at;
	while (at > 0) {
		size_t bytes = at < BLOCK ? (size_t)at : BLOCK;
		char buf[BLOCK];

		r = weft_pread_all(fd, buf, bytes, at - (off_t)bytes, NULL);
		if (r < 0)
			return r;
		for (size_t i = bytes; i > 0; i--, at--)
			if (buf[i - 1] == '\n' && at != status.st_size &&
			    --lines == 0)
				return at;
	}
	return 0;
}
