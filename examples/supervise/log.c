/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "service.h"

/* How long the end of the output is waited for once the service is ended; a
 * process that has left its group may hold the pipe for ever. */
#define LAST_WORDS_NS (SERVICE_GRACE_NS + WEFT_SEC(1))

enum { LINE_BYTES = 4096 };

static void line_write(const struct service *service, const char *line,
		       size_t bytes)
{
	FILE *file = service->log ? service->log : stdout;

	flockfile(file);
	if (!service->log)
		fprintf(file, "%s: ", service->name);
	fwrite(line, 1, bytes, file);
	putc('\n', file);
	fflush(file);
	funlockfile(file);
}

/* Writes the whole lines, and a piece that fills the buffer.  Returns the bytes
 * that are left, now at its start. */
static size_t lines_write(const struct service *service, char *text,
			  size_t bytes)
{
	char *line = text, *end = text + bytes, *newline;

	while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
		line_write(service, line, (size_t)(newline - line));
		line = newline + 1;
	}
	if (end - line == LINE_BYTES) {
		line_write(service, line, LINE_BYTES);
		line = end;
	}
	memmove(text, line, (size_t)(end - line));
	return (size_t)(end - line);
}

/* Until the end of the output, a deadline or a cancellation. */
static ssize_t lines_copy(const struct service_log *log, char *text,
			  size_t *bytes)
{
	ssize_t n;

	while ((n = weft_read(log->fd, text + *bytes, LINE_BYTES - *bytes)) > 0)
		*bytes = lines_write(log->service, text, *bytes + (size_t)n);
	return n;
}

int64_t service_log_run(void *arg)
{
	const struct service_log *log = arg;
	char text[LINE_BYTES];
	size_t bytes = 0;
	ssize_t n = lines_copy(log, text, &bytes);

	WEFT_SHIELD {
		if (n < 0)
			WEFT_WITHIN (LAST_WORDS_NS)
				n = lines_copy(log, text, &bytes);
		if (bytes > 0)
			line_write(log->service, text, bytes);
		weft_close(log->fd);
	}
	return 0;
}

void service_print(const struct service *service)
{
	if (service->pid)
		printf("%s: runs, process %d, started %u times\n",
		       service->name, service->pid, service->starts);
	else
		printf("%s: does not run, started %u times, last status %d, "
		       "signal %d\n",
		       service->name, service->starts, service->last.status,
		       service->last.signal);
	fflush(stdout);
}
