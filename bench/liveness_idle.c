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
 * more.  A thread that has ended in between, as one of the pool does when it
 * was idle for long, has woken and run once.
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

enum { PAIRS = 64, THREADS_MAX = 256 };

#define QUIET_SECS 1

struct thread {
	int tid;
	uint64_t switches, runs;
};

struct activity {
	struct thread threads[THREADS_MAX];
	size_t count;
	uint64_t counted; /* by weft */
};

static struct {
	struct weft_runtime *runtime;
	double secs;
	int done; /* eventfd */
	uint64_t switches, runs, counted;
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

static void thread_add(struct activity *now, const char *name)
{
	struct thread *thread = &now->threads[now->count];
	char text[4096];
	unsigned long long runs;

	thread_text(name, "comm", text, sizeof(text));
	if (strncmp(text, "iou-", 4) == 0)
		return;
	if (now->count == THREADS_MAX)
		live_fail("idle", "more threads than it has room for");
	thread->tid = atoi(name);
	thread_text(name, "status", text, sizeof(text));
	if (!text[0]) /* it has ended */
		return;
	thread->switches =
		number_after(text, "\nvoluntary_ctxt_switches:") +
		number_after(text, "\nnonvoluntary_ctxt_switches:");
	thread_text(name, "schedstat", text, sizeof(text));
	thread->runs = sscanf(text, "%*u %*u %llu", &runs) == 1 ? runs : 0;
	now->count++;
}

/* The activity of all threads but the calling one. */
static void activity_get(struct activity *now)
{
	struct weft_stats stats;
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/task");

	if (!dir)
		bench_die("/proc/self/task", -errno);
	now->count = 0;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' &&
		    atoi(entry->d_name) != live_thread())
			thread_add(now, entry->d_name);
	closedir(dir);
	bench_must("weft_stats", weft_stats_get(idle.runtime, &stats));
	now->counted = stats.total.ticks + stats.total.parks;
}

/* A number that is given out again is another thread's, which has done less. */
static bool is_same(const struct thread *then, const struct thread *now)
{
	return then->tid == now->tid && then->switches <= now->switches &&
	       then->runs <= now->runs;
}

static void activity_since(const struct activity *before,
			   const struct activity *after)
{
	bool lives[THREADS_MAX] = { false };

	idle.counted = after->counted - before->counted;
	for (size_t i = 0; i < after->count; i++) {
		const struct thread *now = &after->threads[i];

		idle.switches += now->switches;
		idle.runs += now->runs;
		for (size_t k = 0; k < before->count; k++) {
			const struct thread *then = &before->threads[k];

			if (!is_same(then, now))
				continue;
			idle.switches -= then->switches;
			idle.runs -= then->runs;
			lives[k] = true;
		}
	}
	for (size_t k = 0; k < before->count; k++) {
		idle.switches += !lives[k];
		idle.runs += !lives[k];
	}
}

static void *observer(void *arg)
{
	static struct activity before, after;
	uint64_t one = 1;

	sleep(QUIET_SECS);
	activity_get(&before);
	usleep((useconds_t)(idle.secs * 1e6));
	activity_get(&after);
	activity_since(&before, &after);
	if (write(idle.done, &one, sizeof(one)) != sizeof(one))
		bench_die("write", -errno);
	return arg;
}

/* Starts tasks that wait.  The client ends of the connections stay open, and
 * connect without a thread of the pool, which would end in the 10 s. */
static void waiters(struct weft_scope *scope)
{
	static const weft_fn bodies[] = { reads, polls, reads_within };
	int listener = (int)bench_must("weft_tcp_listen",
				       weft_tcp_listen("127.0.0.1:0", NULL));
	struct weft_addr addr;

	bench_must("weft_local_addr", weft_local_addr(listener, &addr));
	for (size_t i = 0; i < PAIRS; i++) {
		int fd, client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK,
					0);

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
	if (opts->secs > 0)
		idle.secs = opts->secs;
	live_run(idle_main, NULL);
	live_figure(what, "wakeups", (double)idle.switches, 0, "count");
	live_figure(what, "syscalls",
		    (double)(idle.runs > idle.counted ? idle.runs :
							idle.counted),
		    0, "count");
}
