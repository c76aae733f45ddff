/* SPDX-License-Identifier: MIT */
/*
 * Process - a child, from its birth until its task closes it.
 *
 *	RUNNING --ended--> REAPED		weft_process_wait()
 *	   |
 *	   +---(a group)--> LEFT --> REAPED	weft_process_close()
 *
 * Invariants
 *   PRC1  No signal is sent to a number that may be that of another process or
 *       group: signals are sent, and the child is reaped, under the lock.  The
 *       number of a group stays in use while its leader is not reaped (LEFT).
 *       Others may reap it (a program that waits for any child), so that is
 *       looked at before a signal is sent to a number.
 *   PRC2  A process is in the deferred calls of its task until it is closed.
 */
#ifndef WEFT_PROCESS_PROCESS_H
#define WEFT_PROCESS_PROCESS_H

#include <weft/process.h>

#include "runtime/base/lock.h"

enum weft__process_state {
	WEFT__PROCESS_RUNNING, /* as far as is known */
	WEFT__PROCESS_LEFT,    /* has ended, and is not reaped */
	WEFT__PROCESS_REAPED,
};

struct weft_process {
	const struct weft_allocator *memory; /* immutable */
	uint64_t owner;	    /* immutable; the id of the task */
	weft_nsec grace_ns; /* immutable */
	weft_nsec began_ns; /* immutable */
	bool leads;	    /* immutable; a group or a session */
	pid_t pid;	    /* set before others know of it */
	int pidfd;	    /* the same; or -1 */
	struct weft__lock lock;
	enum weft__process_state state; /* under lock */
	bool lost;			/* under lock; there is no status */
	struct weft_exit exit;		/* under lock; unless RUNNING */
};

/* A process of the running task, in its deferred calls; NULL: there is no
 * memory. */
struct weft_process *weft__process_new(void);

/* Undoes that, of a process without a child. */
void weft__process_free(struct weft_process *process);

/* 0, or -EBADF: a source of the list is not open. */
int weft__spawn_sources_check(const struct weft_spawn_opts *opts);

/* Has the child ended?  Reaps it. */
bool weft__process_has_ended(struct weft_process *process);

/* The time of the next look, where there is no pidfd. */
weft_nsec weft__process_next_look(const struct weft_process *process);

/* SIGTERM, and SIGCONT; or SIGKILL, which its exit shows. */
void weft__process_ask(struct weft_process *process);
void weft__process_kill(struct weft_process *process);

#endif
