/* SPDX-License-Identifier: MIT */
/*
 * Reactor - the state that the driver (io/driver.c) keeps for a runtime,
 * besides a shard for each worker.
 *
 * Orderings
 *   [reactor.interrupts]  the first task that needs the signal, swap release ->
 *       load acquire: the signal and its handler.
 */
#ifndef WEFT_IO_REQUEST_REACTOR_H
#define WEFT_IO_REQUEST_REACTOR_H

#include <weft/blocking.h>

#include "io/request/engine.h"
#include "io/request/fd_table.h"
#include "io/request/shard.h"
#include "runtime/sched/runtime.h"

/* See starving.h. */
struct weft__starving {
	struct weft__lock lock;
	weft__atomic(uint32_t) count; /* under lock; others read */
	struct weft__task *first;     /* under lock */
	struct weft__task **last;     /* under lock */
};

/* A later room keeps this for a runtime, until the driver is closed. */
struct weft__kept {
	void (*end)(struct weft__kept *kept);
};

struct weft__reactor {
	struct weft_runtime *runtime; /* immutable */
	struct weft__fd_table fds;
	bool nosignal; /* immutable: writes can do without SIGPIPE */
	struct weft__starving starving;
	weft__atomic(uint64_t) stale;	/* completions without a task: a bug */
	struct weft__engine engine; /* immutable */
	int cpu_idle_fd; /* immutable; see io/os/cpu_idle.h */
	struct weft_lane files; /* see io/position.c */
	struct weft_lane children; /* see process/spawn.c */
	struct weft_lane pooled; /* see io/pooled.h */
	struct weft_lane waits;  /* for what may wait for ever */
	/* It has begun with io/os/interrupt.h. */
	weft__atomic(bool) interrupts;
	weft__atomic(struct weft__kept *) names; /* see net/names.c */
	struct weft__reactor *next; /* of the process; see reactor.c */
};

static inline struct weft__reactor *
weft__reactor(const struct weft_runtime *runtime)
{
	return runtime->driver;
}

/* The reactors of the process, see reactor.c. */
extern weft__atomic(uint32_t) weft__reactors_count;

void weft__reactor_join(struct weft__reactor *reactor);
void weft__reactor_leave(struct weft__reactor *reactor);

/* In a child after fork(). */
void weft__reactors_forget(void);

bool weft__reactor_is_elsewhere_slow(const struct weft__reactor *reactor,
				     int fd);

/* Do tasks of another runtime wait on the descriptor, or does a stream own it
 * there? */
static inline bool
weft__reactor_is_elsewhere(const struct weft__reactor *reactor, int fd)
{
	/* relaxed: a wait of a runtime that is not counted yet begins after the
	 * look, as one in a runtime that is counted may. */
	return weft__unlikely(weft__load(&weft__reactors_count, relaxed) > 1) &&
	       weft__reactor_is_elsewhere_slow(reactor, fd);
}

static inline void weft__reactor_stale(struct weft__reactor *reactor)
{
	/* relaxed: a counter. */
	weft__add(&reactor->stale, 1u, relaxed);
}

static inline void weft__reactor_tell(struct weft__worker *worker, int fd,
				      bool closes)
{
	struct weft_runtime *runtime = worker->runtime;

	/* All rings of a runtime have the same carrier. */
	if (weft__likely(!weft__ring_remembers(&weft__shard(worker)->ring)))
		return;
	for (uint32_t i = 0; i < runtime->workers_count; i++)
		weft__ring_forget(&weft__shard(runtime->workers[i])->ring, fd,
				  closes);
}

/* A number is about to be closed: the rings drop what they know of it. */
static inline void weft__reactor_closes(struct weft__worker *worker, int fd)
{
	weft__reactor_tell(worker, fd, true);
}

/* It was closed, or is that of a new file. */
static inline void weft__reactor_forget(struct weft__worker *worker, int fd)
{
	weft__reactor_tell(worker, fd, false);
}

#endif
