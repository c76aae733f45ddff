/* SPDX-License-Identifier: MIT */
/*
 * Clean-up at the end of a block or of a task, and values that belong to one
 * task.
 *
 * A task cannot be killed: it ends by returning, and a cancelled task returns
 * by itself.  So clean-up that the compiler inserts at the end of a block runs
 * on every way out, and WEFT_DEFER is no more than that.
 */
#ifndef WEFT_TASK_LOCAL_H
#define WEFT_TASK_LOCAL_H

#include <weft/config.h>

WEFT_BEGIN_DECLS

typedef void (*weft_defer_fn)(void *arg);

/*
 * Calls fn(arg) when control leaves the enclosing block: at its end, or by
 * return, goto, break or continue.  Of several, the newest is called first.  In
 * a task fn runs inside a WEFT_SHIELD and may suspend; WEFT_DEFER also works
 * outside a task.  It is a declaration: no goto of the same block may jump
 * forward over it.
 *
 *	fd = weft_open(path, O_RDONLY, 0);
 *	WEFT_DEFER(close_fd, &fd);
 */
#define WEFT_DEFER(fn, arg) \
	WEFT_DEFERRED(WEFT__FRESH(deferred, __COUNTER__), fn, arg)

/*
 * The same with a name, so that the call can be made earlier or cancelled:
 *
 *	WEFT_DEFERRED(undo, close_fd, &fd);
 *	...
 *	weft_deferred_cancel(&undo);		success: fd is the caller's
 *	return fd;
 */
#define WEFT_DEFERRED(name, fn, arg)                                    \
	struct weft_deferred name                                       \
		__attribute__((cleanup(weft_deferred_run), unused)) = { \
			(fn), (arg)                                     \
		}

struct weft_deferred {
	weft_defer_fn fn; /* NULL: there is nothing to do */
	void *arg;
};

/* run calls fn(arg) now instead of at the end of the block; it suspends if fn
 * does.  cancel drops the call.  Neither fails; a second time they do
 * nothing. */
WEFT_API void weft_deferred_run(struct weft_deferred *deferred);
WEFT_API void weft_deferred_cancel(struct weft_deferred *deferred);

/*
 * The same for the task as a whole, from any depth of its calls: fn(arg) is
 * called after the task's function has returned, inside a WEFT_SHIELD.  Such
 * calls and the values of weft_task_local_set() are handled together, newest
 * first. The task's stack frames and its argument are gone by then, so arg must
 * not point into them.  fn may suspend, and may defer more.  The scope waits
 * for it.
 *
 * Does not suspend.  Returns 0, or -ENOMEM, -EINVAL (NULL fn) or -EPERM (not in
 * a task, or in a future); on an error fn will not be called.
 */
WEFT_API int weft_defer(weft_defer_fn fn, void *arg) WEFT_WARN_UNUSED;

/*
 * A value that each task has for itself, as a thread has its thread-locals.  A
 * key is a static object, identified by its address:
 *
 *	static struct weft_task_local_key request = WEFT_TASK_LOCAL_KEY(free);
 *
 * Tasks do not inherit values: pass data to a new task in its argument.  To
 * look up a value takes a few steps for each value that the task has.
 */
struct weft_task_local_key {
	weft_defer_fn destroy; /* for a value left at the task's end; or NULL */
	void *reserved;
};

#define WEFT_TASK_LOCAL_KEY(destroy) { (destroy), NULL }

/* Sets the running task's value.  A value that it replaces stays the caller's
 * to free.  At the task's end key->destroy is called for the last value unless
 * that is NULL, under the same conditions as for weft_defer().  Does not
 * suspend.  Returns 0, -ENOMEM, -EINVAL (NULL key), or -EPERM (not in a task,
 * or in a future). */
WEFT_API int weft_task_local_set(const struct weft_task_local_key *key,
			    void *value) WEFT_WARN_UNUSED;

/* The running task's value; NULL if it has set none, in a future, and outside a
 * task.  Does not suspend. */
WEFT_API void *weft_task_local_get(const struct weft_task_local_key *key);

WEFT_END_DECLS

#endif
