/* SPDX-License-Identifier: MIT */
/*
 * More about scopes: races, and limits.  Groups, supervisors and what holds for
 * all of them are in <weft/task.h>.
 *
 *	All results	Start tasks with handles (weft_go_opts()) and
 *			weft_join() each.
 *	The first one	A race.
 *	A deadline	WEFT_WITHIN around the scope, which then holds for its
 *			tasks and theirs; or inside, for what its owner does.
 *	In background	weft_submit(): the task belongs to the runtime.
 */
#ifndef WEFT_SCOPE_H
#define WEFT_SCOPE_H

#include <weft/config.h>
#include <weft/task.h>

WEFT_BEGIN_DECLS

/*
 * A race.  The first task that succeeds, with a result of 0 or more, wins: the
 * rest is cancelled, and its result is that of the scope.  A failure loses, and
 * the race goes on without it; if all fail, the first failure is the result.
 * -ECHILD if no task was started.  (Where a failure is to win too, return it as
 * a number that is not negative.)
 *
 *	WEFT_RACE(dial, &fd) {		one connection, over whichever way
 *		weft_race_drop(dial, close_late);
 *		if (WEFT_GO(dial, connect_to, ipv6) < 0 ||
 *		    WEFT_GO(dial, connect_to, ipv4) < 0)
 *			weft_scope_cancel(dial);
 *	}
 *
 * There is one winner, however many succeed at the same time.  As any scope it
 * ends when all its tasks have: losers are cancelled, not abandoned.
 */
#define WEFT_RACE(name, ret_result) WEFT__SCOPE(name, ret_result, WEFT__RACE)

/* The same by a call; weft_scope_end() returns the result.  0 or -EPERM. */
WEFT_API int weft_race_begin(struct weft_scope *race);

/*
 * A success that comes too late is dropped.  Where it stands for something, as
 * a descriptor does, drop is called with it: by the task that returned it,
 * before it ends, inside a WEFT_SHIELD; it may suspend, but not of a future.
 * To be set before any task is started, by the task that began the race.  0,
 * -EPERM, or -EINVAL (no race).
 */
typedef void (*weft_drop_fn)(int64_t result);
WEFT_API int weft_race_drop(struct weft_scope *race, weft_drop_fn drop);

/*
 * A limit: no more than so many tasks of the scope at once, such as connections
 * of a server.  To be set before any task is started in it, by the task that
 * began it (-EPERM); that one may change it later.  0, or -EINVAL (0 tasks), or
 * -EBUSY (tasks run already).
 *
 * weft_go() in such a scope suspends until one has ended, and obeys deadlines
 * and cancellation: it also returns -ECANCELED when the scope is cancelled
 * meanwhile, and -ETIMEDOUT; then nothing was started.  Those that wait come in
 * turn.  A task that is in the scope itself, or below it, would wait for its
 * own end: it gets -EAGAIN.
 *
 *	WEFT_SUPERVISE(peers) {
 *		error = weft_scope_limit(peers, 1000);
 *		while (weft_scope_wait_room(peers) == 0 &&
 *		       (fd = weft_accept(listener, NULL)) >= 0)
 *			if (WEFT_GO(peers, serve, fd) < 0)
 *				weft_close(fd);
 *	}
 */
WEFT_API int weft_scope_limit(struct weft_scope *scope, unsigned tasks_max);

/* Waits as weft_go() would, and starts nothing: so newcomers stay where they
 * are, unaccepted, while there is no room for them.  It is not kept: another
 * task may start one first.  0, or as weft_go(). */
WEFT_API int weft_scope_wait_room(struct weft_scope *scope) WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
