/* SPDX-License-Identifier: MIT */
/*
 * Does a process that has nothing to do stay asleep?
 *
 * Method.  A server's tasks wait: 64 open connections, a third each in a read,
 * in a poll, and in a read with a deadline in an hour; a listener; a task that
 * sleeps for an hour.  After 1 s of quiet an observer thread, which is not a
 * worker, reads /proc/self/task, and again 10 s later.  wakeups: how often a
 * thread other than the observer left its core, voluntarily or not.  syscalls:
 * how often such a thread was given a core (schedstat), since it must run to
 * make a call; or the turns and parks that the workers counted, if these are
 * more.
 *
 * What would fool it: the kernel's own threads of io_uring (iou-...) are
 * listed as threads of the process; they make no calls and are not counted.
 */
#include "bench/liveness.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum { PAIRS = 64 };

#define QUIET_SECS 1

struct activity {
	uint64_t switches, runs, counted;
};

static struct {
	struct weft_runtime *runtime;
	double secs;
	int done; /* eventfd */
	struct activity activity;
} idle = { .secs = 10 };

static int64_t reads(void *arg)
{
	char buf[64];

	return weft_read(*(int *)arg, buf, sizeof(buf));
}

static int64_t polls(void *arg)
{
	return weft_poll(*(int *)arg, POLLIN);
}

static int64_t accepts(void *arg)
{
	return weft_accept(*(int *)arg, NULL);
}

static int64_t sleeps(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_SEC(3600));
}

static int64_t reads_within(void *arg)
{
	int64_t r = 0;

	WEFT_WITHIN(WEFT_SEC(3600))
		r = reads(arg);
	return r;
}

/* Reads a file of a thread in /proc; "" if the thread has ended. */
static void thread_text(const char *thread, const char *file, char *text,
			size_t bytes)
{
	char path[300];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", thread, file);
	f = fopen(path, "r");
	if (f) {
		n = fread(text, 1, bytes - 1, f);
		fclose(f);
	}
	text[n] = '\0';
}

static uint64_t number_after(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void thread_add(const char *thread, struct activity *sum)
{
	char text[4096];
	unsigned long long runs;

	thread_text(thread, "comm", text, sizeof(text));
	if (strncmp(text, "iou-", 4) == 0)
		return;
	thread_text(thread, "status", text, sizeof(text));
	sum->switches += number_after(text, "\nvoluntary_ctxt_switches:") +
			 number_after(text, "\nnonvoluntary_ctxt_switches:");
	thread_text(thread, "schedstat", text, sizeof(text));
	if (sscanf(text, "%*u %*u %llu", &runs) == 1)
		sum->runs += runs;
}

/* The activity of all threads but the calling one. */
static struct activity activity_now(void)
{
	struct activity sum = { 0, 0, 0 };
	struct weft_stats stats;
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/task");

	if (!dir)
		bench_die("/proc/self/task", -errno);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' &&
		    atoi(entry->d_name) != live_thread())
			thread_add(entry->d_name, &sum);
	closedir(dir);
	bench_must("weft_stats", weft_stats_get(idle.runtime, &stats));
	sum.counted = stats.total.ticks + stats.total.parks;
	return sum;
}

static void *observer(void *arg)
{
	struct activity before, after;
	uint64_t one = 1;

	sleep(QUIET_SECS);
	before = activity_now();
	usleep((useconds_t)(idle.secs * 1e6));
	after = activity_now();
	idle.activity = (struct activity){
		after.switches - before.switches,
		after.runs - before.runs,
		after.counted - before.counted,
	};
	if (write(idle.done, &one, sizeof(one)) != sizeof(one))
		bench_die("write", -errno);
	return arg;
}

/* Starts tasks that wait.  The client ends of the connections stay open. */
static void waiters(struct weft_scope *scope)
{
	static const weft_fn bodies[] = { reads, polls, reads_within };
	int listener = (int)bench_must("weft_tcp_listen",
				       weft_tcp_listen("127.0.0.1:0", NULL));
	struct weft_addr addr;

	bench_must("weft_local_addr", weft_local_addr(listener, &addr));
	for (size_t i = 0; i < PAIRS; i++) {
		int fd, client = socket(AF_INET, SOCK_STREAM, 0);

		bench_must("weft_connect", weft_connect(client, &addr));
		fd = (int)bench_must("weft_accept",
				     weft_accept(listener, NULL));
		bench_must("weft_go", WEFT_GO(scope, bodies[i % 3], fd));
	}
	bench_must("weft_go", WEFT_GO(scope, accepts, listener));
	bench_go(scope, sleeps, NULL, 0);
}

static int64_t idle_main(void *arg)
{
	pthread_t thread;
	uint64_t done;

	(void)arg;
	idle.runtime = weft_runtime_self();
	idle.done = (int)bench_must("eventfd", eventfd(0, EFD_CLOEXEC));
	WEFT_SUPERVISE(scope) {
		waiters(scope);
		if (pthread_create(&thread, NULL, observer, NULL) != 0)
			live_fail("idle", "no thread for the observer");
		bench_must("weft_read",
			   weft_read(idle.done, &done, sizeof(done)));
		weft_scope_cancel(scope);
	}
	pthread_join(thread, NULL);
	live_rescues("idle");
	return 0;
}

void live_idle(const char *what, const struct live_opts *opts)
{
	struct activity *a = &idle.activity;

	if (opts->secs > 0)
		idle.secs = opts->secs;
	live_run(idle_main, NULL);
	live_figure(what, "wakeups", (double)a->switches, 0, "count");
	live_figure(what, "syscalls",
		    (double)(a->runs > a->counted ? a->runs : a->counted), 0,
		    "count");
}
