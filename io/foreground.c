/* SPDX-License-Identifier: MIT */
#include "io/foreground.h"

#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

/* Is it the terminal of this session, and not the other side of a pair?  The
 * kernel stops no job that reads another. */
static bool is_own_terminal(int fd)
{
	char pair[32];

	return tcgetsid(fd) == getsid(0) &&
	       ptsname_r(fd, pair, sizeof(pair)) != 0;
}

bool weft__foreground_await(int fd)
{
	char byte;

	return is_own_terminal(fd) && tcgetpgrp(fd) != getpgrp() &&
	       read(fd, &byte, 0) == 0;
}
