/* SPDX-License-Identifier: MIT */
/*
 * fetch ADDR PATH... - gets pages by HTTP/1.0, all at once, and prints sizes.
 *
 * Shows	a group of tasks whose first failure cancels the others, and one
 *		deadline for all of them; results in the starter's memory.
 * Run		build/examples/httpd . 127.0.0.1:8000 &
 *		build/examples/fetch 127.0.0.1:8000 /README.md /LICENSE
 * Needs	Linux 6.1 or newer
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

#define DEADLINE_NS WEFT_SEC(2)

struct page {
	const char *address;
	const char *path;
	uint64_t bytes;
};

/* One message a failure, none for what is cancelled since another failed. */
static int64_t fail(const struct page *page, const char *why, int64_t error)
{
	if (error != -ECANCELED)
		fprintf(stderr, "fetch: %s: %s\n", page->path, why);
	return error;
}

/* Reads the header, and ends it by NUL.  The bytes that came behind it. */
static ssize_t read_header(int fd, char *header, size_t bytes_max)
{
	size_t bytes = 0;
	char *end;

	do {
		ssize_t n = weft_read(fd, header + bytes,
				      bytes_max - 1 - bytes);

		if (n <= 0) /* 0: the stream has ended, or there is no room */
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
	int bytes = snprintf(text, sizeof(text), "GET %s HTTP/1.0\r\n"
			     "Host: %s\r\n\r\n", page->path, page->address);
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
	while (n > 0) {
		page->bytes += (uint64_t)n;
		n = weft_read(fd, text, sizeof(text));
	}
	if (n == 0 && page->bytes < announced && announced < UINT64_MAX)
		n = -ENODATA;
	return n < 0 ? fail(page, strerror((int)-n), n) : 0;
}

static int64_t fetch(void *arg)
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

static int64_t fetch_all(void *arg)
{
	struct page *pages = arg;
	int64_t result = 0;
	int r = 0;

	WEFT_WITHIN(DEADLINE_NS) {
		WEFT_SCOPE(all, &result) {
			for (struct page *p = pages; p->path && r == 0; p++)
				r = WEFT_GO(all, fetch, p);
			if (r < 0)
				weft_scope_fail(all, r);
		}
		/* Theirs it is not, so they see it as -ECANCELED. */
		if (result == -ECANCELED && weft_deadline_passed())
			result = -ETIMEDOUT;
	}
	return result;
}

int main(int argc, char **argv)
{
	struct page *pages = calloc((size_t)argc, sizeof(*pages));
	int64_t result;

	if (argc < 3 || !pages) {
		fprintf(stderr, "Usage: fetch ADDR PATH...\n");
		free(pages);
		return 2;
	}
	for (int i = 2; i < argc; i++)
		pages[i - 2] = (struct page){ argv[1], argv[i], 0 };
	result = weft_run(fetch_all, pages, NULL);
	if (result == -ETIMEDOUT)
		fprintf(stderr, "fetch: %s: not all came in time\n", argv[1]);
	for (int i = 2; i < argc && result == 0; i++)
		printf("%8llu %s\n", (unsigned long long)pages[i - 2].bytes,
		       argv[i]);
	free(pages);
	return result < 0;
}
