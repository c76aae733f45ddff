/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checksum.h"

static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (*text != '\\' || !text[1])
			*to++ = *text;
		else if (*++text == 'n')
			*to++ = '\n';
		else
			*to++ = *text == 'r' ? '\r' : *text;
	*to = '\0';
}

static bool line_is_sum(const char *line)
{
	for (int i = 0; i < SUM_DIGITS; i++)
		if (!isxdigit((unsigned char)line[i]))
			return false;
	line += SUM_DIGITS;
	return line[0] == ' ' && (line[1] == ' ' || line[1] == '*') && line[2];
}

/* "digits  name" or "digits *name": adds the file. */
static int line_add(struct files *files, char *line)
{
	struct sums *sums = files->arg;
	bool escaped = *line == '\\';
	char *name, *digits;

	if (!line_is_sum(line + escaped)) {
		sums->misformatted += *line != '#';
		return 0;
	}
	line += escaped;
	name = line + SUM_DIGITS + 2;
	if (escaped)
		unescape(name);
	sums->listed++;
	digits = strndup(line, SUM_DIGITS);
	return files_add(files, digits ? strdup(name) : NULL, digits, 0);
}

/* The next line, from malloc(); 1, 0 at the end, or an error. */
static int line_next(struct weft_stream *stream, char **ret_line)
{
	const void *data;
	ssize_t n = weft_stream_until(stream, "\n", 1, SIZE_MAX, &data);

	/* The last line may have no end. */
	if (n == -ENODATA)
		n = weft_stream_peek(stream, &data);
	if (n <= 0)
		return (int)n;
	*ret_line = strndup(data, (size_t)n);
	if (!*ret_line)
		return -ENOMEM;
	(*ret_line)[strcspn(*ret_line, "\n")] = '\0';
	weft_stream_skip(stream, (size_t)n);
	return 1;
}

/* Not inlined: a compiler may keep the address of errno across a call that
 * suspends. */
__attribute__((noinline)) static int stdin_copy(void)
{
	int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* Standard input may be named twice. */
static int list_open(const char *name)
{
	return strcmp(name, "-") == 0 ? stdin_copy() :
					weft_open(name, O_RDONLY, 0);
}

/* Sets *ret_error to 0, or to why it cannot be read. */
static int list_read(struct files *files, const char *name, int *ret_error)
{
	int fd = list_open(name);
	struct weft_stream stream = WEFT_STREAM_INIT(fd);
	char *line = NULL;
	int r = 0;

	*ret_error = fd < 0 ? fd : 0;
	if (fd < 0)
		return 0;
	while (r == 0 && (*ret_error = line_next(&stream, &line)) > 0) {
		r = line_add(files, line);
		free(line);
	}
	weft_stream_close(&stream);
	return r;
}

int sums_list(struct files *files)
{
	struct sums *sums = files->arg;
	int error;

	for (; *sums->names; sums->names++) {
		int r = list_read(files, *sums->names, &error);

		if (r < 0 || error == -ECANCELED)
			return r < 0 ? r : error;
		if (error == 0)
			continue;
		sums->unreadable++;
		fprintf(stderr, "checksum: %s: %s\n", *sums->names,
			strerror(-error));
	}
	return 0;
}
