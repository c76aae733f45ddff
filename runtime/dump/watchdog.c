/* SPDX-License-Identifier: MIT */
#include "runtime/dump/watchdog.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/dump/dump.h"
#include "runtime/dump/dump_socket.h"
#include "runtime/dump/signal_notify.h"
#include "runtime/dump/text_buffer.h"
#include "runtime/sched/worker.h"
#include "runtime/stack/thread.h"

/* Looks at the workers in the length of a stall, and how often at most. */
enum { LOOKS = 4 };
#define LOOK_MIN_NS 1000000u

/* Who asks by the socket has so long to read the answer; meanwhile nobody else
 * is answered, and the runtime does not end. */
enum { PATIENCE_MS = 5000 };

/* When there is no descriptor for who asks: to look again after that. */
enum { SUPPLY_MS = 50 };

/* A worker as it was last seen. */
struct seen {
	uint64_t polls;
	uint64_t since_ns; /* so */
	bool told;
};

struct weft__watchdog {
	struct weft_runtime *runtime;
	pthread_t thread;
	int bell; /* an eventfd: a signal has come, or the end */
	int door; /* -1: none */
	int number; /* of the signal; 0: none */
	char *path;
	uint64_t stall_ns; /* 0: stalls are not looked for */
	weft__atomic(bool) ends;
	/* The thread's. */
	struct seen *workers;
	struct seen all; /* when none of them runs */
};

/* ---- Watching ------------------------------------------------------------ */

static uint64_t polls_of(struct weft__worker *worker)
{
	/* relaxed: a look. */
	return weft__load(&worker->counts[WEFT__N_POLLS], relaxed);
}

static bool is_parked(struct weft__worker *worker)
{
	/* relaxed: a look. */
	return !weft__load(&worker->seen_ns, relaxed);
}

/* How long it has stood so; 0: it has not, or that was told. */
static uint64_t stands(struct seen *seen, bool stands_still, uint64_t polls,
		       uint64_t now_ns)
{
	if (!stands_still || seen->polls != polls || !seen->since_ns) {
		seen->told = false;
		seen->polls = polls;
		seen->since_ns = now_ns;
		return 0;
	}
	return seen->told ? 0 : now_ns - seen->since_ns;
}

static void look(struct weft__watchdog *l)
{
	struct weft_runtime *runtime = l->runtime;
	uint64_t now_ns = runtime->ops->now(runtime), all = 0, length_ns;
	bool none_runs = true;

	for (uint32_t i = 0; i < runtime->workers_count; i++) {
		struct weft__worker *worker = runtime->workers[i];
		uint64_t polls = polls_of(worker);
		bool parked = is_parked(worker);

		all += polls;
		none_runs &= parked;
		length_ns = stands(&l->workers[i], !parked, polls, now_ns);
		if (length_ns < l->stall_ns)
			continue;
		l->workers[i].told = true;
		(void)weft__dump_stall(runtime, i, length_ns, STDERR_FILENO);
	}
	length_ns = stands(&l->all, none_runs, all, now_ns);
	if (length_ns >= l->stall_ns) {
		l->all.told = true;
		(void)weft__dump_standstill(runtime, STDERR_FILENO);
	}
}

/* Who knocks stays there: without a pause it would be asked for again and again
 * until there is a descriptor. */
static void pause_for_supply(struct weft__watchdog *l)
{
	struct pollfd bell = { .fd = l->bell, .events = POLLIN };

	(void)poll(&bell, 1, SUPPLY_MS);
}

static void answer(struct weft__watchdog *l)
{
	int fd = weft__dump_socket_answer(l->door);

	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS)
		pause_for_supply(l);
	if (fd < 0)
		return;
	(void)weft__dump_all(l->runtime, fd, PATIENCE_MS);
	close(fd);
}

static int look_every_ms(const struct weft__watchdog *l)
{
	uint64_t every_ns = l->stall_ns / LOOKS;

	if (!l->stall_ns)
		return -1;
	if (every_ns < LOOK_MIN_NS)
		every_ns = LOOK_MIN_NS;
	return every_ns / 1000000u > 60000 ? 60000 : (int)(every_ns / 1000000u);
}

static bool ends(struct weft__watchdog *l)
{
	/* pairs: [watchdog.end] */
	return weft__load(&l->ends, acquire);
}

static void serve(struct weft__watchdog *l, const struct pollfd *ready)
{
	uint64_t times;

	if (ready[0].revents &&
	    read(l->bell, &times, sizeof(times)) == sizeof(times) && !ends(l))
		(void)weft__dump_all(l->runtime, STDERR_FILENO,
				     WEFT__TEXT_BUFFER_PATIENT);
	if (ready[1].revents)
		answer(l);
	if (l->stall_ns)
		look(l);
}

static void *watchdog_main(void *arg)
{
	struct weft__watchdog *l = arg;
	struct pollfd ready[2] = {
		{ .fd = l->bell, .events = POLLIN },
		{ .fd = l->door, .events = POLLIN },
	};
	sigset_t set;

	(void)pthread_setname_np(pthread_self(), "weft-watchdog");
	if (l->number) {
		/* Whoever else may have it blocked. */
		sigemptyset(&set);
		sigaddset(&set, l->number);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	}
	while (!ends(l)) {
		ready[0].revents = ready[1].revents = 0;
		if (poll(ready, 2, look_every_ms(l)) >= 0)
			serve(l, ready);
	}
	return NULL;
}

/* ---- Beginning and ending ------------------------------------------------ */

static void watchdog_free(struct weft__watchdog *l)
{
	if (l->number)
		weft__signal_notify_stop(l->number, l->bell);
	if (l->door >= 0)
		weft__dump_socket_close(l->door, l->path);
	if (l->bell >= 0)
		close(l->bell);
	free(l->workers);
	free(l->path);
	free(l);
}

/* Not what tells of a fault, which a handler that returns would meet again; and
 * SIGURG is how a worker is asked what it runs (snapshot.h). */
static bool may_ring(int number)
{
	switch (number) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
	case SIGURG:
		return false;
	}
	return true;
}

static int watchdog_open(struct weft__watchdog *l, const struct weft_opts *opts)
{
	uint32_t workers = l->runtime->workers_count;
	int error;

	l->workers = calloc(workers, sizeof(*l->workers));
	l->path = strdup(opts->dump_path ? opts->dump_path : "");
	if (!l->workers || !l->path)
		return -ENOMEM;
	l->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->bell < 0)
		return -errno;
	if (opts->dump_path) {
		l->door = weft__dump_socket_open(l->path);
		if (l->door < 0)
			return l->door;
	}
	if (!opts->dump_signal)
		return 0;
	if (!may_ring(opts->dump_signal))
		return -EINVAL;
	error = weft__signal_notify_start(opts->dump_signal, l->bell);
	if (error == 0)
		l->number = opts->dump_signal;
	return error;
}

int weft__watchdog_start(struct weft_runtime *runtime,
			const struct weft_opts *opts)
{
	struct weft__watchdog *l;
	int error;

	if (!opts ||
	    (!opts->dump_signal && !opts->dump_path && !opts->stall_ns))
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->runtime = runtime;
	l->bell = l->door = -1;
	l->stall_ns = opts->stall_ns;
	error = watchdog_open(l, opts);
	if (error == 0)
		error = weft__thread_make(&l->thread, WEFT__DUMP_BYTES,
					  watchdog_main, l);
	if (error < 0)
		watchdog_free(l);
	else
		runtime->watchdog = l;
	return error;
}

void weft__watchdog_stop(struct weft_runtime *runtime)
{
	static const uint64_t one = 1;
	struct weft__watchdog *l = runtime->watchdog;

	if (!l)
		return;
	runtime->watchdog = NULL;
	/* pairs: [watchdog.end] */
	weft__store(&l->ends, true, release);
	(void)!write(l->bell, &one, sizeof(one));
	pthread_join(l->thread, NULL);
	watchdog_free(l);
}
