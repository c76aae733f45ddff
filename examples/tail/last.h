/* SPDX-License-Identifier: MIT */
#ifndef TAIL_LAST_H
#define TAIL_LAST_H

#include <sys/types.h>

/* Where the last lines of a file begin, or an error.  Suspends. */
off_t last_lines(int fd, unsigned long lines);

#endif
