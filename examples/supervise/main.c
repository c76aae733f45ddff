/* SPDX-License-Identifier: MIT */
/*
 * supervise [-d FOLDER] FILE - keeps commands running.
 *
 * Each line of the file is a name and a command: "web: httpd /srv".
 *
 * Shows	a task for each command, which owns its process: when the task
 *		is cancelled, the process is ended and reaped.  A command that
 *		ends starts again, after a pause that doubles.  Its output goes
 *		to stdout with its name before each line, or to FOLDER/NAME.log.
 *		SIGTERM ends the commands one after the other, the last one
 *		first; SIGUSR1 prints their state.
 * Run		printf 'a: sleep 3\nb: date; sleep 1\n' > F
 *		build/examples/supervise F
 */
#include <pthread.h>
#include <string.h>

#include "service.h"

enum { SERVICES_MAX = 64 };

static struct {
	struct service service[SERVICES_MAX];
	struct weft_task task[SERVICES_MAX];
	int count, running;
	int signal_fd;
} all;

static int complain(const char *what, int error)
{
	fprintf(stderr, "supervise: %s: %s\n", what, strerror(error));
	return 1;
}

static int services_start(struct weft_scope *scope)
{
	int r = 0;

	for (; all.running < all.count; all.running++) {
		struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
		struct service *service = &all.service[all.running];

		opts.ret_task = &all.task[all.running];
		r = weft_go_opts(scope, service_run, &service, sizeof(service),
				 &opts);
		if (r < 0)
			break;
	}
	return r;
}

static int64_t supervise(void *arg)
{
	int r = 0, number = 0;

	(void)arg;
	WEFT_SUPERVISE (scope) {
		r = services_start(scope);
		while (r == 0 && number != SIGTERM && number != SIGINT) {
			r = weft_signal_wait(all.signal_fd, &number);
			for (int i = 0; number == SIGUSR1 && i < all.count; i++)
				service_print(&all.service[i]);
		}
		while (all.running-- > 0) {
			weft_cancel(all.task[all.running]);
			(void)!weft_join(all.task[all.running], NULL);
			printf("%s: ended\n", all.service[all.running].name);
		}
	}
	weft_close(all.signal_fd);
	return r;
}

int main(int argc, char **argv)
{
	bool logs = argc == 4 && strcmp(argv[1], "-d") == 0;
	sigset_t signals;
	int64_t result;

	if (argc != 2 && !logs) {
		fprintf(stderr, "usage: supervise [-d FOLDER] FILE\n");
		return 2;
	}
	all.count = services_read(argv[argc - 1], logs ? argv[2] : NULL,
				  all.service, SERVICES_MAX);
	if (all.count < 0)
		return complain(argv[argc - 1], -all.count);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	all.signal_fd = weft_signal_open(&signals);
	result = all.signal_fd < 0 ? all.signal_fd :
				     weft_run(supervise, NULL, NULL);
	return result < 0 ? complain("signals", (int)-result) : 0;
}
