/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISE_SERVICE_H
#define SUPERVISE_SERVICE_H

#include <stdio.h>
#include <weft/weft.h>

/* Between SIGTERM and SIGKILL. */
#define SERVICE_GRACE_NS WEFT_SEC(2)

/* A command that is to run at all times.  The task of the service writes all
 * fields; a look from another task may be out of date. */
struct service {
	const char *name;
	const char *command; /* of a shell */
	FILE *log; /* NULL: stdout, with the name before each line */
	pid_t pid; /* 0: does not run now */
	unsigned starts;
	struct weft_exit last;
};

/* Runs the command again and again until the task is cancelled, and ends it
 * then.  arg: a struct service **. */
int64_t service_run(void *arg);

/* Writes the lines of a pipe to the log, until its end; once cancelled, for as
 * long as a service takes to end.  arg: a struct service_log. */
struct service_log {
	const struct service *service;
	int fd;
};
int64_t service_log_run(void *arg);

/* Reads lines of a name and a command; with a folder, opens the logs there.
 * Returns the number of services, or an error. */
int services_read(const char *path, const char *folder,
		  struct service *services, int count_max);

void service_print(const struct service *service);

#endif
