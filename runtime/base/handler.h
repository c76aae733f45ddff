/* SPDX-License-Identifier: MIT */
/*
 * Handler - a handler of a signal that weft sets for some time, and the action
 * that the program had before.
 *
 *	set	the program's action -> weft's handler, or stays (H2)
 *	pass	a signal is none of weft's: what the program's action would do
 *	reset	weft's handler -> the program's action, or stays (H2)
 *
 * Invariants
 *   H1  The program's action is known before the handler is in force.
 *   H2  The handler of another library that was set over weft's stays in force.
 *       It may pass signals on to weft's handler, at any later time: so weft's
 *       handler is not set over it, which would be a circle, and keeps passing
 *       signals on to the program's action.
 *   H3  The handler has the signal mask, SA_NODEFER and SA_RESTART of the
 *       program's action, so that the kernel applies them.
 *   H4  A handler may still read an action when the next is set.  So the next
 *       is written to another place, and only if it differs.
 *
 * Concurrency: the caller excludes two of set and reset at a time.  A relaxed
 * access of `set` is theirs, or a look by a handler.
 *
 * Orderings
 *   [handler.before]  `before` store release -> load acquire of the handler:
 *       the action.  No model runs signal handlers.
 */
#ifndef WEFT_RUNTIME_BASE_HANDLER_H
#define WEFT_RUNTIME_BASE_HANDLER_H

#include <signal.h>
#include <stdbool.h>

#include "runtime/base/atomic.h"

struct weft__handler {
	void (*fn)(int number, siginfo_t *info, void *context); /* immutable */
	int flags;		 /* immutable: SA_RESTART or 0 */
	/* The program's action; NULL: the handler was never set. */
	weft__atomic(const struct sigaction *) before;
	struct sigaction actions[2]; /* the one that `before` is not is free */
	/* It is in force, or another handler may pass signals on to it. */
	weft__atomic(bool) set;
	weft__atomic(bool) used; /* that has SA_RESETHAND, and was called */
};

/* Sets the handler, with SA_SIGINFO, SA_ONSTACK and its flags.  0 or -errno. */
int weft__handler_set(struct weft__handler *handler, int number);

/* Gives the program's action back.  No action: the handler was never set. */
void weft__handler_reset(struct weft__handler *handler, int number);

/* Called by the handler: is the program's action the default one? */
bool weft__handler_is_default(struct weft__handler *handler);

/* Called by the handler as its last act: does with the signal what the
 * program's action would do. */
void weft__handler_pass(struct weft__handler *handler, int number,
			siginfo_t *info, void *context);

/* Sets the default action, which the signal then takes when the handler
 * returns, with the same siginfo_t. */
void weft__handler_default(int number, siginfo_t *info);

#endif
