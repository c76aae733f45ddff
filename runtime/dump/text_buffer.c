/* SPDX-License-Identifier: MIT */
/* Text buffer - see the header. */
#include "runtime/dump/text_buffer.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/memory.h"

enum { ROOM_FIRST = 16384 };

static const struct weft_allocator *
out_memory(const struct weft__text_buffer *out)
{
	return out->allocator.alloc ? &out->allocator : NULL;
}

static int out_grow(struct weft__text_buffer *out)
{
	size_t room = out->room ? 2 * out->room : ROOM_FIRST;
	char *text = weft__memory_resize(out_memory(out), out->text, out->room,
					 room);

	if (!text)
		return -ENOMEM;
	out->text = text;
	out->room = room;
	return 0;
}

void weft__text_buffer_print(struct weft__text_buffer *out, const char *format,
			     ...)
{
	while (out->error == 0) {
		size_t room = out->room - out->used;
		va_list arguments;
		int n;

		va_start(arguments, format);
		n = vsnprintf(room ? out->text + out->used : NULL, room, format,
			      arguments);
		va_end(arguments);
		if (n < 0)
			return;
		if ((size_t)n < room) {
			out->used += (size_t)n;
			return;
		}
		out->error = out_grow(out);
	}
}

/* The size of the next write. */
static size_t chunk_of(const char *text, size_t bytes)
{
	const char *end;

	if (bytes <= PIPE_BUF)
		return bytes;
	end = memrchr(text, '\n', PIPE_BUF);
	return end ? (size_t)(end - text) + 1 : PIPE_BUF;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* False: the time is up. */
static bool await_room(int fd, int64_t by_ms)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	int64_t left_ms = by_ms < 0 ? -1 : by_ms - now_ms();

	if (by_ms >= 0 && left_ms <= 0)
		return false;
	(void)poll(&ready, 1, (int)left_ms);
	return true;
}

/* Retries after EINTR, and after EAGAIN until by_ms. */
static int write_all(int fd, const char *text, size_t bytes, int64_t by_ms)
{
	while (bytes) {
		ssize_t n = write(fd, text, bytes);

		if (n < 0 && errno == EAGAIN) {
			if (!await_room(fd, by_ms))
				return -ETIMEDOUT;
		} else if (n < 0 && errno != EINTR) {
			return -errno;
		} else if (n > 0) {
			text += n;
			bytes -= (size_t)n;
		}
	}
	return 0;
}

int weft__text_buffer_write(const struct weft__text_buffer *out, int fd,
			    int max_ms)
{
	int64_t by_ms = max_ms < 0 ? -1 : now_ms() + max_ms;
	size_t at = 0;
	int error = out->error;

	while (error == 0 && at < out->used) {
		size_t bytes = chunk_of(out->text + at, out->used - at);

		error = write_all(fd, out->text + at, bytes, by_ms);
		at += bytes;
	}
	return error;
}

void weft__text_buffer_fini(struct weft__text_buffer *out)
{
	weft__memory_free(out_memory(out), out->text, out->room);
}
