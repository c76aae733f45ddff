/* SPDX-License-Identifier: MIT */
/*
 * Foreground - a job in the background that reads its terminal is stopped, and
 * reads on when it is in the foreground again.
 *
 * Before Linux 6.9 io_uring has a thread of the kernel's read a terminal.  That
 * thread takes no signals, so the kernel does not stop the job, but refuses the
 * read with -EIO.
 */
#ifndef WEFT_IO_FOREGROUND_H
#define WEFT_IO_FOREGROUND_H

#include <stdbool.h>

/* After -EIO: reads nothing from the terminal, which stops a job in the
 * background until it is in the foreground.  False: it was not in the
 * background, or is not to be stopped, as when it ignores SIGTTIN. */
bool weft__foreground_await(int fd);

#endif
