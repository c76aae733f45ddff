/* SPDX-License-Identifier: MIT */
/*
 * Watchdog - its thread, which waits for the signal and for the dump socket,
 * and looks for stalls.  The header has the model and the ordering.
 *
 * The thread polls an eventfd (`notify_fd`), which the signal handler and
 * weft__watchdog_stop() write, and the listening dump socket.
 */
#include "runtime/dump/watchdog.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/futex.h"
#include "runtime/base/memory.h"
#include "runtime/base/own_fd.h"
#include "runtime/dump/dump.h"
#include "runtime/dump/dump_socket.h"
#include "runtime/dump/signal_notify.h"
#include "runtime/dump/text_buffer.h"
#include "runtime/sched/worker.h"
#include "runtime/stack/thread.h"

/* Looks per stall length, and the shortest time between two looks. */
enum { LOOKS = 4 };
#define LOOK_MIN_NS 1000000u

/* A client of the dump socket has this time to read the answer.  Meanwhile no
 * other client is answered, and the runtime does not end, unless its own time
 * is up. */
enum { PATIENCE_MS = 5000 };

/* If no descriptor is free for a client: the pause before the next try. */
enum { SUPPLY_MS = 50 };

/* A worker as it was last seen. */
struct seen {
	uint64_t polls;
	uint64_t since_ns; /* unchanged since then */
	bool reported;	   /* this stall was reported */
};

struct weft__watchdog {
	struct weft_runtime *runtime;
	pthread_t thread;
	int notify_fd;	 /* an eventfd: a signal has come, or the end */
	int dump_socket; /* -1: none */
	int number; /* of the signal; 0: none */
	char *path;
	uint64_t stall_ns; /* 0: no look for stalls */
	weft__atomic(bool) ends;
	weft__atomic(uint32_t) left; /* the thread ends now; a futex */
	struct weft__lock lock;
	int client;		     /* under lock; is answered; -1: none */
	bool answers_none;	     /* under lock: the time is up */
	/* Of the thread alone. */
	struct seen *workers;
	struct seen all; /* while no worker runs */
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

/* How long it has stood still; 0: it has not, or that was reported already. */
static uint64_t stands(struct seen *seen, bool stands_still, uint64_t polls,
		       uint64_t now_ns)
{
	if (!stands_still || seen->polls != polls || !seen->since_ns) {
		seen->reported = false;
		seen->polls = polls;
		seen->since_ns = now_ns;
		return 0;
	}
	return seen->reported ? 0 : now_ns - seen->since_ns;
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
		l->workers[i].reported = true;
		(void)weft__dump_stall(runtime, i, polls, length_ns,
				       STDERR_FILENO);
	}
	length_ns = stands(&l->all, none_runs, all, now_ns);
	if (length_ns >= l->stall_ns) {
		l->all.reported = true;
		(void)weft__dump_standstill(runtime, STDERR_FILENO);
	}
}

/* A client that cannot be accepted stays in the backlog.  Without a pause
 * poll() would report it again and again until a descriptor is free. */
static void pause_for_supply(struct weft__watchdog *l)
{
	struct pollfd notify = { .fd = l->notify_fd, .events = POLLIN };

	(void)poll(&notify, 1, SUPPLY_MS);
}

/* False: the time is up. */
static bool client_set(struct weft__watchdog *l, int fd)
{
	bool may;

	weft__lock_take(&l->lock);
	may = !l->answers_none;
	l->client = fd;
	weft__lock_drop(&l->lock);
	return may;
}

/* A client that does not read delays the end no longer. */
static void client_cut(struct weft__watchdog *l)
{
	weft__lock_take(&l->lock);
	l->answers_none = true;
	if (l->client >= 0)
		shutdown(l->client, SHUT_RDWR);
	weft__lock_drop(&l->lock);
}

static void answer(struct weft__watchdog *l)
{
	int fd = weft__dump_socket_answer(l->dump_socket);

	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS)
		pause_for_supply(l);
	if (fd < 0)
		return;
	if (client_set(l, fd))
		(void)weft__dump_all(l->runtime, fd, PATIENCE_MS);
	(void)client_set(l, -1);
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
	    read(l->notify_fd, &times, sizeof(times)) == sizeof(times) &&
	    !ends(l))
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
		{ .fd = l->notify_fd, .events = POLLIN },
		{ .fd = l->dump_socket, .events = POLLIN },
	};
	sigset_t set;

	(void)pthread_setname_np(pthread_self(), "weft-watchdog");
	if (l->number) {
		/* The creating thread may have blocked it. */
		sigemptyset(&set);
		sigaddset(&set, l->number);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	}
	while (!ends(l)) {
		ready[0].revents = ready[1].revents = 0;
		if (poll(ready, 2, look_every_ms(l)) >= 0)
			serve(l, ready);
	}
	/* relaxed: the join orders. */
	weft__store(&l->left, 1u, relaxed);
	weft__futex_wake(&l->left, 1);
	return NULL;
}

/* ---- Beginning and ending ------------------------------------------------ */

static void watchdog_free(struct weft__watchdog *l)
{
	const struct weft_allocator *memory = l->runtime->memory;

	if (l->number)
		weft__signal_notify_stop(l->number, l->notify_fd);
	if (l->dump_socket >= 0)
		weft__dump_socket_close(l->dump_socket, l->path);
	if (l->notify_fd >= 0)
		close(l->notify_fd);
	weft__memory_free(memory, l->workers,
			  l->runtime->workers_count * sizeof(*l->workers));
	weft__memory_text_free(memory, l->path);
	weft__memory_free(memory, l, sizeof(*l));
}

/* Excludes the signals that report a fault: the instruction would fault again
 * when the handler returns.  Excludes SIGURG too: snapshot.h uses it to ask a
 * worker what it runs. */
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

/* An errno alone does not show which option it is about. */
static int path_refused(const char *path, int error)
{
	fprintf(stderr, "weft: no dump socket at dump_path '%s': %s\n", path,
		error == -EINVAL ? "the path is empty, or too long" :
				   strerror(-error));
	return error;
}

static int signal_refused(int number, int error)
{
	fprintf(stderr, "weft: no dumps by dump_signal %d: %s\n", number,
		strerror(-error));
	return error;
}

static int watchdog_open(struct weft__watchdog *l, const struct weft_opts *opts)
{
	const struct weft_allocator *memory = l->runtime->memory;
	int error;

	l->workers = weft__memory_zeroed(
		memory, l->runtime->workers_count * sizeof(*l->workers));
	l->path = weft__memory_text(memory,
				    opts->dump_path ? opts->dump_path : "");
	if (!l->workers || !l->path)
		return -ENOMEM;
	l->notify_fd =
		weft__fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (l->notify_fd < 0)
		return l->notify_fd;
	if (opts->dump_path) {
		l->dump_socket = weft__dump_socket_open(l->path);
		if (l->dump_socket < 0)
			return path_refused(l->path, l->dump_socket);
	}
	if (!opts->dump_signal)
		return 0;
	if (!may_ring(opts->dump_signal))
		return signal_refused(opts->dump_signal, -EINVAL);
	error = weft__signal_notify_start(opts->dump_signal, l->notify_fd);
	if (error < 0)
		return signal_refused(opts->dump_signal, error);
	l->number = opts->dump_signal;
	return 0;
}

int weft__watchdog_start(struct weft_runtime *runtime,
			const struct weft_opts *opts)
{
	struct weft__watchdog *l;
	int error;

	if (!opts ||
	    (!opts->dump_signal && !opts->dump_path && !opts->stall_ns))
		return 0;
	l = weft__memory_zeroed(runtime->memory, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->runtime = runtime;
	l->notify_fd = l->dump_socket = l->client = -1;
	/* A negative length is over immediately. */
	l->stall_ns = (int64_t)opts->stall_ns < 0 ? 1 : opts->stall_ns;
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

/* Waits until the thread leaves, or until by_ns. */
static bool has_left(struct weft__watchdog *l, uint64_t by_ns)
{
	uint64_t now_ns = 0;

	/* relaxed: the join orders. */
	while (!weft__load(&l->left, relaxed) && now_ns < by_ns) {
		now_ns = l->runtime->ops->now(l->runtime);
		if (now_ns < by_ns)
			weft__futex_wait_for(&l->left, 0, by_ns - now_ns);
	}
	/* relaxed: the same. */
	return weft__load(&l->left, relaxed);
}

void weft__watchdog_stop(struct weft_runtime *runtime, uint64_t by_ns)
{
	static const uint64_t one = 1;
	struct weft__watchdog *l = runtime->watchdog;

	if (!l)
		return;
	runtime->watchdog = NULL;
	/* pairs: [watchdog.end] */
	weft__store(&l->ends, true, release);
	(void)!write(l->notify_fd, &one, sizeof(one));
	if (by_ns != WEFT_NEVER && !has_left(l, by_ns))
		client_cut(l);
	pthread_join(l->thread, NULL);
	watchdog_free(l);
}
