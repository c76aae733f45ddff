/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "service.h"

/* The time between two starts doubles from the first to the second; a command
 * that ran for longer starts again immediately. */
#define BACK_OFF_MIN_NS WEFT_MS(100)
#define BACK_OFF_MAX_NS WEFT_SEC(10)

static int service_spawn(struct service *service, int *ret_fd,
			 struct weft_process **ret_process)
{
	const char *argv[] = { "sh", "-c", "exec 2>&1; eval \"$0\"",
			       service->command, NULL };
	struct weft_child_fd fds[] = {
		{ 0, WEFT_NULL_FD, NULL },
		{ 1, WEFT_PIPE_WRITTEN, ret_fd },
	};
	struct weft_spawn_opts opts = WEFT_SPAWN_OPTS_INIT;
	int r;

	opts.argv = argv;
	opts.fds = fds;
	opts.fds_count = 2;
	opts.flags = WEFT_SPAWN_GROUP;
	opts.grace_ns = SERVICE_GRACE_NS;
	r = weft_spawn(&opts, ret_process);
	if (r == 0) {
		service->pid = weft_process_pid(*ret_process);
		service->starts++;
	}
	return r;
}

/* The log is read until the end of the output, also when the task is cancelled:
 * the last words are not lost.  The close ends all of the group.  If a process
 * that left it holds the pipe, the log waits as long as for a service. */
static int service_once(struct service *service)
{
	struct service_log log = { .service = service };
	struct weft_process *process;
	int r = service_spawn(service, &log.fd, &process);

	if (r < 0)
		return r;
	WEFT_SUPERVISE (logging) {
		int logs = WEFT_GO(logging, service_log_run, log);

		r = weft_process_wait(process, NULL);
		weft_process_close(process, &service->last);
		service->pid = 0;
		weft_scope_cancel(logging);
		if (logs < 0)
			weft_close(log.fd);
	}
	return r;
}

static weft_nsec back_off_ns(weft_nsec before_ns, weft_nsec ran_ns)
{
	if (ran_ns > BACK_OFF_MAX_NS)
		return BACK_OFF_MIN_NS;
	return before_ns * 2 < BACK_OFF_MAX_NS ? before_ns * 2 :
						 BACK_OFF_MAX_NS;
}

int64_t service_run(void *arg)
{
	struct service *service = *(struct service **)arg;
	weft_nsec pause_ns = BACK_OFF_MIN_NS;
	int r = 0;

	while (r != -ECANCELED) {
		weft_nsec began_ns = weft_now();

		r = service_once(service);
		if (r < 0 && r != -ECANCELED)
			fprintf(stderr, "supervise: %s: %s\n", service->name,
				strerror(-r));
		if (r != -ECANCELED)
			r = weft_sleep(pause_ns);
		pause_ns = back_off_ns(pause_ns, weft_now() - began_ns);
	}
	return 0;
}
