/* SPDX-License-Identifier: MIT */
/*
 * A runtime inside another event loop: GLib's, libuv's, sd-event's, Qt's, or
 * one of your own.
 *
 *	r = weft_attach(NULL, &runtime);
 *	r = weft_submit(runtime, serve, NULL, 0, NULL);
 *	pollfd = (struct pollfd){ weft_loop_fd(runtime), POLLIN, 0 };
 *	while (!done) {
 *		poll(&pollfd, 1, -1);
 *		r = weft_turn(runtime, NULL);
 *	}
 *	r = weft_stop(runtime);
 *
 * The runtime has one worker and no thread of its own: its tasks run on the
 * loop's thread, in weft_turn() alone.  So they may call the functions of that
 * loop, and share data with its callbacks without a lock.
 */
#ifndef WEFT_LOOP_H
#define WEFT_LOOP_H

#include <weft/config.h>
#include <weft/runtime.h>
#include <weft/time.h>

WEFT_BEGIN_DECLS

/*
 * Starts a runtime that belongs to the calling thread, which alone may call
 * weft_turn(), weft_loop_fd() and weft_stop() for it.  No task runs before the
 * first turn.  opts->workers must be 0 or 1.  A thread may have several such
 * runtimes.  All other calls are as for a runtime of weft_start(), except that
 * this thread must not wait for a task: weft_wait() and weft_wait_until()
 * return -EDEADLK where they would block it.
 *
 * weft_stop() cancels the tasks that are left, and runs them until they have
 * ended, without the loop, for up to shutdown_ns.  Then it closes the
 * descriptor, which must no longer be in the loop, unless tasks were abandoned
 * (-ETIMEDOUT).
 *
 * Returns 0, -EINVAL (also for more than one worker), -EDEADLK (called inside a
 * task), or an error of weft_start().
 */
WEFT_API int weft_attach(const struct weft_opts *opts,
			 struct weft_runtime **ret_runtime) WEFT_WARN_UNUSED;

/*
 * Returns a descriptor, the same each time, that is readable while a turn has
 * something to do: a task was submitted or woken by any thread, a request has
 * completed, a time has come, or the last turn has left something.  It may be
 * readable without a reason.  Do not read, close or pass it on; poll it for
 * POLLIN, level-triggered, or call weft_turn() until it returns 0.
 *
 * Other errors: -EINVAL (NULL, or a runtime that was not attached), -EPERM
 * (another thread, or a child after fork()).
 */
WEFT_API int weft_loop_fd(struct weft_runtime *runtime) WEFT_WARN_UNUSED;

/*
 * Runs the tasks that are ready, and those that become ready meanwhile, for
 * about 200 us at most, not counting the last task's run.  Never waits.  May be
 * called at any time, also if the descriptor is not readable.
 *
 * Returns 1 if it has left something to do: the descriptor is readable, and
 * the loop may look at its other sources first.  Returns 0 if not; then
 * *ret_next_ns, unless ret_next_ns is NULL, is the time at which the descriptor
 * becomes readable at the latest, WEFT_NEVER without one.  A loop need not heed
 * it: the descriptor has a timer.  After 1 it is 0.
 *
 * Other errors: -EINVAL, -EPERM as of weft_loop_fd(), -EDEADLK (called inside a
 * task: also by a nested loop that a task runs).
 */
WEFT_API int weft_turn(struct weft_runtime *runtime, weft_nsec *ret_next_ns);

WEFT_END_DECLS

#endif
