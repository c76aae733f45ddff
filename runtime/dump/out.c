/* SPDX-License-Identifier: MIT */
#include "runtime/dump/out.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Retries whatever may go better then. */
static int write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, text, bytes);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd ready = { .fd = fd, .events = POLLOUT };

			(void)poll(&ready, 1, -1);
		} else if (n < 0 && errno != EINTR) {
			return -errno;
		} else if (n > 0) {
			text += n;
			bytes -= (size_t)n;
		}
	}
	return 0;
}

static void out_write(struct weft__out *out, size_t bytes)
{
	if (!out->error)
		out->error = write_all(out->fd, out->text, bytes);
	out->used -= bytes;
	memmove(out->text, out->text + bytes, out->used);
}

/* All that is complete; or all, if that is none. */
static void out_write_lines(struct weft__out *out)
{
	char *end = memrchr(out->text, '\n', out->used);

	out_write(out, end ? (size_t)(end - out->text) + 1 : out->used);
}

void weft__out_print(struct weft__out *out, const char *format, ...)
{
	for (int tries = 0; tries < 3; tries++) {
		size_t room = WEFT__OUT_BYTES - out->used;
		va_list arguments;
		int n;

		va_start(arguments, format);
		n = vsnprintf(out->text + out->used, room, format, arguments);
		va_end(arguments);
		if (n < 0)
			return;
		if ((size_t)n < room) {
			out->used += (size_t)n;
			return;
		}
		if (out->used == 0) {
			out->used = WEFT__OUT_BYTES - 1;
			out->text[out->used - 1] = '\n';
			return;
		}
		out_write_lines(out);
	}
}

int weft__out_end(struct weft__out *out)
{
	out_write(out, out->used);
	return out->error;
}
