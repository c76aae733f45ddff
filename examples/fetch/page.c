/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

/* Prints one message for a failure, and none for a task that is cancelled
 * because another one failed. */
static int64_t fail(const struct page *page, const char *why, int64_t error)
{
	if (error != -ECANCELED)
		fprintf(stderr, "fetch: %s: %s\n", page->path, why);
	return error;
}

/* Reads the header, and terminates it with a NUL.  Returns the number of bytes
 * after the header that came with it. */
static ssize_t read_header(int fd, char *header, size_t bytes_max)
{
	size_t bytes = 0;
	char *end;

	do {
		ssize_t n =
			weft_read(fd, header + bytes, bytes_max - 1 - bytes);

		if (n <= 0) /* 0: end of the stream, or the buffer is full */
			return n < 0 ? n : -EBADMSG;
		bytes += (size_t)n;
		header[bytes] = '\0';
		end = strstr(header, "\r\n\r\n");
	} while (!end);
	*end = '\0';
	return header + bytes - (end + 4);
}

static int64_t get(struct page *page, int fd)
{
	char text[8192], *field;
	uint64_t announced = UINT64_MAX;
	ssize_t n;
	int bytes = snprintf(text, sizeof(text),
			     "GET %s HTTP/1.0\r\n"
			     "Host: %s\r\n\r\n",
			     page->path, page->address);
	int r = bytes < (int)sizeof(text) ? 0 : -ENAMETOOLONG;

	if (r == 0)
		r = weft_write_all(fd, text, (size_t)bytes, NULL);
	n = r < 0 ? r : read_header(fd, text, sizeof(text));
	if (n >= 0 && strncmp(text, "HTTP/1.", 7) != 0)
		n = -EBADMSG;
	if (n >= 0 && strncmp(text + 8, " 200", 4) != 0) {
		text[strcspn(text, "\r\n")] = '\0';
		return fail(page, text, -EREMOTEIO);
	}
	field = n < 0 ? NULL : strcasestr(text, "\r\nContent-Length:");
	if (field)
		announced = strtoull(field + 17, NULL, 10);
	/* The header may have come without any of the content. */
	while (n >= 0) {
		page->bytes += (uint64_t)n;
		n = weft_read(fd, text, sizeof(text));
		if (n == 0)
			break;
	}
	if (n == 0 && page->bytes < announced && announced < UINT64_MAX)
		n = -ENODATA;
	return n < 0 ? fail(page, strerror((int)-n), n) : 0;
}

int64_t page_fetch(void *arg)
{
	struct page *page = *(struct page **)arg;
	int fd = weft_tcp_connect(page->address, NULL);
	int64_t result;

	if (fd < 0)
		return fail(page, strerror(-fd), fd);
	result = get(page, fd);
	weft_close(fd);
	return result;
}
