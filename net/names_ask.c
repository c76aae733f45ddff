/* SPDX-License-Identifier: MIT */
/*
 * Names, asked - the task of a runtime that asks over c-ares.
 *
 * The task begins with the first question and ends when none is under way.  It
 * alone calls c-ares, and does not suspend inside of it: it takes questions,
 * gives c-ares the sockets that are ready and the time, and then waits for all
 * sockets together, which c-ares names, in an epoll set.  So numbers that
 * c-ares closes are never those of a wait of weft.
 *
 * The task runs inside a WEFT_SHIELD: its life is that of the waits for it.
 * When the last of them is given up, be it by a deadline, a cancellation or the
 * runtime's end, it destroys the channel with what c-ares still has, and ends.
 *
 * When the files or the options change, the channel is made again; what was
 * under way is asked again.
 */
#include "net/names.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>
#include <weft/io.h>
#include <weft/task.h>

#include "io/os/syscall.h"
#include "net/names_query.h"
#include "runtime/base/memory.h"
#include "runtime/base/own_fd.h"

enum {
	/* Between two pauses in which other tasks of the worker may run. */
	QUESTIONS_BATCH = 16,
	EVENTS_BATCH = 16,
};

#define LEAF __attribute__((noinline))

static LEAF int result(int r)
{
	return r < 0 ? -errno : r;
}

/* ---- Channel ------------------------------------------------------------- */

/* c-ares begins or ends to wait for a socket. */
static void socket_state(void *arg, ares_socket_t fd, int readable,
			 int writable)
{
	struct weft__names_engine *engine = arg;
	struct epoll_event event = { .data.fd = fd };

	event.events = (readable ? (uint32_t)EPOLLIN : 0u) |
		       (writable ? (uint32_t)EPOLLOUT : 0u);
	if (!event.events)
		(void)epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(engine->epoll_fd, EPOLL_CTL_MOD, fd, &event) < 0)
		/* Without memory for it, the query runs into its timeout. */
		(void)epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static LEAF int epoll_open(int wake_fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = wake_fd };
	int fd = weft__fd_above_stdio(epoll_create1(EPOLL_CLOEXEC));
	int r;

	if (fd < 0)
		return fd;
	r = result(epoll_ctl(fd, EPOLL_CTL_ADD, wake_fd, &event));
	if (r == 0)
		return fd;
	weft__syscall_close(fd);
	/* The user has all the watches that it may have. */
	return r == -ENOSPC ? -ENOMEM : r;
}

static int engine_new(struct weft__names *names)
{
	struct weft__names_engine *engine;
	int fd;

	engine = weft__memory_zeroed(names->runtime->memory, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	fd = epoll_open(names->wake_fd);
	if (fd < 0) {
		weft__memory_free(names->runtime->memory, engine,
				  sizeof(*engine));
		return fd;
	}
	engine->epoll_fd = fd;
	engine->sources.ask = weft__source_ask;
	names->engine = engine;
	return 0;
}

void weft__names_engine_free(struct weft__names *names)
{
	struct weft__names_engine *engine = names->engine;

	if (!engine)
		return;
	if (engine->channel)
		ares_destroy(engine->channel);
	weft__hosts_free(names->runtime->memory, engine->hosts);
	weft__syscall_close(engine->epoll_fd);
	weft__memory_free(names->runtime->memory, engine, sizeof(*engine));
	names->engine = NULL;
}

/* A copy, so that no lock is held while c-ares reads its files. */
static int opts_now(struct weft__names *names, struct weft__names_opts *opts,
		    unsigned *ret_version)
{
	const struct weft_allocator *memory = names->runtime->memory;
	const struct weft__names_opts *from = &names->opts;
	int r;

	weft__lock_take(&names->lock);
	*ret_version = names->version;
	*opts = *from;
	opts->resolv_conf = NULL;
	r = weft__names_text(memory, from->servers, &opts->servers);
	if (r == 0)
		r = weft__names_text(memory, from->resolv_conf,
				     &opts->resolv_conf);
	weft__lock_drop(&names->lock);
	if (r < 0)
		weft__names_opts_free(memory, opts);
	return r;
}

/* Questions under way are asked again, if a task waits for them. */
static void channel_end(struct weft__names_engine *engine)
{
	if (!engine->channel)
		return;
	engine->gives_up = true;
	ares_destroy(engine->channel);
	engine->gives_up = false;
	engine->channel = NULL;
	while (engine->under_way) {
		struct weft__question *question = engine->under_way;

		weft__query_remove(engine, question);
		weft__names_answer(question, -ECANCELED, NULL, 0, 0, true);
	}
}

static unsigned locked(struct weft__names *names, const unsigned *word)
{
	unsigned value;

	weft__lock_take(&names->lock);
	value = *word;
	weft__lock_drop(&names->lock);
	return value;
}

/* Makes the channel, or makes it again if something has changed. */
static int channel_renew(struct weft__names *names)
{
	const struct weft_allocator *memory = names->runtime->memory;
	struct weft__names_engine *engine = names->engine;
	struct weft__names_opts opts;
	int r;

	if (engine->channel &&
	    engine->version == locked(names, &names->version))
		return 0;
	channel_end(engine);
	weft__hosts_free(memory, engine->hosts);
	engine->hosts = NULL;
	r = opts_now(names, &opts, &engine->version);
	if (r < 0)
		return r;
	r = weft__hosts_read(memory, weft__names_hosts_path, &engine->hosts);
	if (r == 0)
		r = weft__names_channel_open(&opts, socket_state, engine,
					     &engine->channel, &engine->order);
	weft__names_opts_free(memory, &opts);
	return r;
}

/* ---- The task ------------------------------------------------------------ */

static LEAF void wake_take(int wake_fd)
{
	uint64_t count;

	(void)!read(wake_fd, &count, sizeof(count));
}

static LEAF int events_take(int epoll_fd, struct epoll_event *events)
{
	return epoll_wait(epoll_fd, events, EVENTS_BATCH, 0);
}

/* Gives c-ares the sockets that are ready, and the time. */
static void process(struct weft__names *names)
{
	struct weft__names_engine *engine = names->engine;
	struct epoll_event events[EVENTS_BATCH];
	int count = events_take(engine->epoll_fd, events);

	for (int i = 0; i < count; i++) {
		int fd = events[i].data.fd;
		bool reads = events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP);
		bool writes = events[i].events & EPOLLOUT;

		if (fd == names->wake_fd)
			wake_take(fd);
		else
			ares_process_fd(engine->channel,
					reads ? fd : ARES_SOCKET_BAD,
					writes ? fd : ARES_SOCKET_BAD);
	}
	ares_process_fd(engine->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

/* Asks for all that came since the last time; error: there is no channel. */
static void ask_all(struct weft__names *names, int error)
{
	struct weft__question *asked = weft__names_take(names);
	unsigned batch = 0;

	while (asked) {
		struct weft__question *next = asked->next_asked;

		if (error < 0)
			weft__names_answer(asked, error, NULL, 0, 0, false);
		else
			weft__query_begin(names->engine, asked);
		if (++batch % QUESTIONS_BATCH == 0) {
			/* Or answers to the first would find no room in the
			 * sockets' buffers. */
			if (error == 0)
				process(names);
			(void)weft_yield();
		}
		asked = next;
	}
}

/* May the task wait for its sockets?  Under the lock, so that whatever changes
 * then wakes it. */
static bool sleep_begin(struct weft__names *names)
{
	bool asleep;

	weft__lock_take(&names->lock);
	asleep = !names->asked && names->waiters > 0 &&
		 names->engine->version == names->version;
	names->asleep = asleep;
	weft__lock_drop(&names->lock);
	return asleep;
}

static void sleep_end(struct weft__names *names)
{
	weft__lock_take(&names->lock);
	names->asleep = false;
	weft__lock_drop(&names->lock);
}

/* Waits for a socket, for the time that c-ares wants, or to be woken. */
static void await(struct weft__names *names)
{
	struct timeval room,
		*left = ares_timeout(names->engine->channel, NULL, &room);
	weft_nsec length_ns = WEFT_NEVER;
	int r = 0;

	if (left)
		length_ns = WEFT_SEC(left->tv_sec) + WEFT_US(left->tv_usec);
	WEFT_WITHIN (length_ns)
		r = weft_poll(names->engine->epoll_fd, POLLIN);
	/* Without memory for the wait. */
	if (r < 0 && r != -ETIMEDOUT)
		(void)weft_sleep(WEFT_MS(1));
}

static bool serve_ends(struct weft__names *names)
{
	bool ends;

	weft__lock_take(&names->lock);
	ends = !names->asked;
	if (ends)
		names->serving = false;
	weft__lock_drop(&names->lock);
	return ends;
}

/* One round: asks, hears, and gives up what no task waits for any more. */
static void serve_round(struct weft__names *names)
{
	int r = names->engine ? 0 : engine_new(names);

	if (r == 0)
		r = channel_renew(names);
	ask_all(names, r);
	if (r < 0)
		return;
	process(names);
	if (names->engine->under_way && locked(names, &names->waiters) == 0)
		channel_end(names->engine);
}

static void serve(struct weft__names *names)
{
	for (;;) {
		serve_round(names);
		if (names->engine && names->engine->under_way) {
			if (sleep_begin(names)) {
				await(names);
				sleep_end(names);
			}
		} else if (serve_ends(names)) {
			return;
		}
		(void)weft_yield();
	}
}

int64_t weft__names_serve(void *arg)
{
	struct weft__names *names = *(struct weft__names **)arg;

	WEFT_SHIELD
		serve(names);
	return 0;
}
