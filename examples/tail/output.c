/* SPDX-License-Identifier: MIT */
/* The output of the tasks: one at a time, with headers. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tail.h"

static struct weft_mutex output = WEFT_MUTEX_INIT;
/* Under `output`. */
static const char *shown; /* the file that wrote last */
_Atomic(int) status;

int print(const struct options *o, const char *name, const void *data,
		 size_t bytes)
{
	char header[4200];
	int n, r = weft_mutex_lock(&output);

	if (r < 0)
		return r;
	if (o->headers && shown != name) {
		n = snprintf(header, sizeof(header), "%s==> %s <==\n",
			     shown ? "\n" : "", name);
		r = weft_write_all(STDOUT_FILENO, header, (size_t)n, NULL);
	}
	shown = name;
	if (r == 0)
		r = weft_write_all(STDOUT_FILENO, data, bytes, NULL);
	weft_mutex_unlock(&output);
	return r;
}

int complain(const char *name, const char *what, int error)
{
	fprintf(stderr, "tail: %s '%s'%s%s\n", what, name, error ? ": " : "",
		error ? strerror(-error) : "");
	if (error)
		status = 1;
	return error;
}
