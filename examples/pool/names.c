/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "pool.h"

/* Sends the complete lines of text.  Returns the number of bytes that are left,
 * now at its start, or an error. */
static ssize_t send_lines(char *text, size_t bytes)
{
	struct job job = { 0, 0, { 0 } };
	char *end;

	while ((end = memchr(text, '\n', bytes))) {
		int r;

		*end++ = '\0';
		memcpy(job.path, text, (size_t)(end - text));
		r = weft_chan_send(&jobs, &job);
		if (r < 0)
			return r;
		bytes -= (size_t)(end - text);
		memmove(text, end, bytes);
	}
	return (ssize_t)bytes;
}

int64_t read_names(void *arg)
{
	char text[sizeof(((struct job *)0)->path)];
	ssize_t n = 1, bytes = 0;

	(void)arg;
	while (n > 0) {
		if (bytes == sizeof(text))
			return -ENAMETOOLONG;
		n = weft_read(STDIN_FILENO, text + bytes,
			      sizeof(text) - (size_t)bytes);
		if (n < 0)
			return n;
		bytes += n;
		if (n == 0 && bytes > 0) /* the last line, without a newline */
			text[bytes++] = '\n';
		bytes = send_lines(text, (size_t)bytes);
		if (bytes < 0)
			return bytes;
	}
	weft_chan_close(&jobs);
	return 0;
}
