/* SPDX-License-Identifier: MIT */
/*
 * Panic - an assertion does not hold: ends the process, and names the task that
 * was running.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/sched/wait.h"

void weft__panic(const char *file, int line, const char *format, ...)
{
	struct weft__task *task = weft__self(weft__worker_self());
	va_list args;

	fprintf(stderr, "weft: %s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	if (task)
		fprintf(stderr, ", in task '%s' (%llx)",
			weft__task_label(task),
			(unsigned long long)weft__running_id(task));
	fputc('\n', stderr);
	abort();
}
