/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "plain.h"

/* A byte at a time, as a shell: a command gets no input of the next. */
int plain_read(char **ret_line)
{
	static char line[4096];
	static size_t bytes;
	char byte = '\n';
	ssize_t n = weft_read(STDIN_FILENO, &byte, 1);

	if (n < 0 || (n == 0 && bytes == 0))
		return n < 0 ? (int)n : -ENODATA;
	if (byte != '\n' && bytes + 1 < sizeof(line)) {
		line[bytes++] = byte;
		return 0;
	}
	line[bytes] = 0;
	bytes = 0;
	*ret_line = strdup(line);
	return *ret_line ? 1 : -ENOMEM;
}
