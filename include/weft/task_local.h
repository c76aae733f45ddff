/* SPDX-License-Identifier: MIT */
/*
 * What belongs to one task: what is to be done at its end, and values of its
 * own.
 *
 * A task cannot be killed: it ends by returning, and what is cancelled returns
 * by itself.  So what the compiler does when a block is left is done on every
 * way out, and WEFT_DEFER is no more than that.
 */
#ifndef WEFT_TASK_LOCAL_H
#define WEFT_TASK_LOCAL_H

#include <weft/config.h>

WEFT_BEGIN_DECLS

typedef void (*weft_defer_fn)(void *arg);

/*
 * Calls fn(arg) when control leaves the block that this stands in: by falling
 * through, return, goto, break or continue, the newest first.  In a task it is
 * called inside a WEFT_SHIELD; outside of one it works too.  It is a
 * declaration: no goto of the same block may jump forward over it.
 *
 *	fd = weft_open(path, O_RDONLY, 0);
 *	WEFT_DEFER(close_fd, &fd);
 */
#define WEFT_DEFER(fn, arg) \
	WEFT_DEFERRED(WEFT__FRESH(deferred, __COUNTER__), fn, arg)

/* The same with a name, by which it can be done before, or not at all:
 *
 *	WEFT_DEFERRED(undo, close_fd, &fd);
 *	...
 *	weft_deferred_cancel(&undo);		all went well: the caller's
 *	return fd;
 */
#define WEFT_DEFERRED(name, fn, arg)                                    \
	struct weft_deferred name                                       \
		__attribute__((cleanup(weft_deferred_run), unused)) = { \
			(fn), (arg)                                     \
		}

struct weft_deferred {
	weft_defer_fn fn; /* NULL: nothing is to be done */
	void *arg;
};

/* Does it now, and no more.  Suspends if fn does. */
WEFT_API void weft_deferred_run(struct weft_deferred *deferred);
WEFT_API void weft_deferred_cancel(struct weft_deferred *deferred);

/*
 * The same for the task as a whole, from however deep in its calls: fn(arg) is
 * called when the task's function has returned, with what was set by
 * weft_task_local_set(), the newest first, inside a WEFT_SHIELD.  What lay on its
 * stack is gone by then, and so is its argument.  fn may suspend, and defer
 * more.  The scope waits for it.
 *
 * 0, -ENOMEM, -EINVAL (no fn), or -EPERM (not in a task): it is not called.
 */
WEFT_API int weft_defer(weft_defer_fn fn, void *arg) WEFT_WARN_UNUSED;

/*
 * A value that each task has of its own, as a thread has its thread-locals.  A
 * key is a static object, known by its address:
 *
 *	static struct weft_task_local_key request_key = WEFT_TASK_LOCAL_KEY(free);
 *
 * Tasks do not inherit values: what a task is to know goes into its argument.
 * Looking one up takes a few steps for each that the task has.
 */
struct weft_task_local_key {
	weft_defer_fn destroy; /* of values left at the task's end; or NULL */
	void *reserved;
};

#define WEFT_TASK_LOCAL_KEY(destroy) { (destroy), NULL }

/* Sets the running task's value.  The one before is the caller's to free.  At
 * the task's end key->destroy is called with the last one, if that is not NULL,
 * as told at weft_defer().  0, -ENOMEM, -EINVAL (no key), or -EPERM. */
WEFT_API int weft_task_local_set(const struct weft_task_local_key *key,
			    void *value) WEFT_WARN_UNUSED;

/* The running task's value; NULL if it has set none, and outside of a task. */
WEFT_API void *weft_task_local_get(const struct weft_task_local_key *key);

WEFT_END_DECLS

#endif
