/* SPDX-License-Identifier: MIT */
/*
 * Scopes, continued: races and limits.  Groups, supervisors and the rules for
 * all scopes are in <weft/task.h>.  Which to use for
 *
 *	all results	start tasks with handles (weft_go_opts()), and
 *			weft_join() each
 *	the first one	a race
 *	a deadline	WEFT_WITHIN around the scope holds for its tasks and
 *			theirs; inside the scope it holds for the calls of the
 *			owner, and for the tasks that the owner starts there
 *	the background	weft_submit(): the task belongs to the runtime
 */
#ifndef WEFT_SCOPE_H
#define WEFT_SCOPE_H

#include <weft/config.h>
#include <weft/task.h>

WEFT_BEGIN_DECLS

/*
 * A race.  The first task to succeed, with a result of 0 or more, wins: its
 * result is that of the scope, and the others are cancelled.  A task that fails
 * loses, and the others go on.  If all fail, the first failure is the result;
 * if no task was started, the result is -ECHILD.  (Where a failure should win
 * too, return it as a number that is not negative.)
 *
 *	WEFT_RACE(dial, &fd) {		connects by the quicker address
 *		weft_race_drop(dial, close_late);
 *		if (WEFT_GO(dial, connect_to, ipv6) < 0 ||
 *		    WEFT_GO(dial, connect_to, ipv4) < 0)
 *			weft_scope_cancel(dial);
 *	}
 *
 * There is exactly one winner, however many tasks succeed at the same time.
 * Like any scope, a race ends when all its tasks have ended: the losers are
 * cancelled and waited for, not abandoned.
 */
#define WEFT_RACE(name, ret_result) WEFT__SCOPE(name, ret_result, WEFT__RACE)

/* The same without a block: begins a race in the calling task, whose result
 * weft_scope_end() returns.  Does not suspend.  Returns 0 or -EPERM (not in a
 * task). */
WEFT_API int weft_race_begin(struct weft_scope *race);

/*
 * Sets a function for results that come too late.  A task that succeeds after
 * the winner calls drop(result) before it ends, so that drop can free what the
 * result stands for, such as a descriptor.  drop runs inside a WEFT_SHIELD and
 * may suspend; in a future it runs without a shield and must not suspend.  The
 * task that began the race calls this before it starts any task.  Does not
 * suspend.  Returns 0, -EPERM (another task began the race), or -EINVAL (the
 * scope is no race).
 */
typedef void (*weft_drop_fn)(int64_t result);
WEFT_API int weft_race_drop(struct weft_scope *race, weft_drop_fn drop);

/*
 * A limit: at most tasks_max tasks of the scope exist at the same time, such as
 * connections of a server.  The task that began the scope sets it before it
 * starts any task in the scope; later it may change the limit.  Does not
 * suspend.  Returns 0, -EPERM (another task began the scope), -EINVAL
 * (tasks_max is 0), or -EBUSY (the scope has tasks, and no limit yet).
 *
 * In a scope with a limit, weft_go() suspends while there is no room, and
 * starts a task when one has ended; callers get room in the order in which they
 * came.  Deadlines and cancellation end the wait, and so does the cancellation
 * of the scope: weft_go() returns -ECANCELED or -ETIMEDOUT and has started
 * nothing.  A task inside the scope, or in a scope below it, would wait for its
 * own end, and a future cannot wait: they get -EAGAIN.
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

/* Waits for room as weft_go() does, and starts nothing: so new connections stay
 * unaccepted while there is no room for them.  The room is not reserved;
 * another task may use it first.  Suspends.  Without a limit there is always
 * room.  Returns 0, -ECANCELED, -ETIMEDOUT, -EAGAIN (as above), or -EPERM (not
 * in a task). */
WEFT_API int weft_scope_wait_room(struct weft_scope *scope) WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
