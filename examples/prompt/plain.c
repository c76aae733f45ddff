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
	static size_t bytes; /* sizeof(line): it does not fit */
	char byte = '\n';
	ssize_t n = weft_read(STDIN_FILENO, &byte, 1);
	int r;

	if (n < 0 || (n == 0 && bytes == 0))
		return n < 0 ? (int)n : -ENODATA;
	if (byte != '\n') {
		if (bytes < sizeof(line))
			line[bytes++] = byte;
		return 0;
	}
	if (bytes == sizeof(line)) {
		r = -EMSGSIZE;
	} else {
		*ret_line = strndup(line, bytes);
		r = *ret_line ? 1 : -ENOMEM;
	}
	bytes = 0;
	return r;
}
