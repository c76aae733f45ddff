/* SPDX-License-Identifier: MIT */
/*
 * Tasks and the scopes that hold them.
 *
 * A task is a function with a stack of its own.  It runs until it returns,
 * and gives its thread away whenever it waits.  Every task belongs to a scope,
 * and a scope ends only when its tasks have ended; so a task may point into
 * the stack of the one that started it.
 *
 *	WEFT_SCOPE(both, &result) {	a group: a failure cancels the other
 *		if ((r = WEFT_GO(both, fetch, left)) < 0 ||
 *		    (r = WEFT_GO(both, fetch, right)) < 0)
 *			weft_scope_fail(both, r);
 *	}				joined here, on every way out
 *
 * A task that ended keeps neither stack nor record, unless somebody holds a
 * handle to it: a supervisor may start tasks for ever.
 */
#ifndef WEFT_TASK_H
#define WEFT_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* The body of a task.  The result goes to whoever joins; negative is a
 * failure, and by convention a negative errno. */
typedef int64_t (*weft_fn)(void *arg);

/* A task's handle, passed by value.  A handle whose task is gone is recognised
 * and gives -ESRCH.  {0} is no task.  The id is that of one task of the runtime
 * (the same number returns after four billion others), and good for messages:
 * print it by PRIx64. */
struct weft_task {
	uint64_t id;
};

/* The task stays on the worker that first runs it; for code that holds a
 * pthread mutex, thread-locals or a thread-bound library across a wait. */
#define WEFT_PINNED (1u << 0)
/* The task is a future: its function is polled; see <weft/future.h>. */
#define WEFT_FUTURE (1u << 1)

/* Options of a task.  Start from WEFT_TASK_OPTS_INIT. */
struct weft_task_opts {
	size_t size;
	const char *name;   /* for messages; outlives the task; NULL: none */
	size_t stack_bytes; /* 0: the default; else 16 KiB to 64 MiB */
	unsigned flags;	    /* WEFT_PINNED, WEFT_FUTURE */
	unsigned reserved;
	struct weft_task *ret_task; /* if not NULL, gets a handle to join by */
};

#define WEFT_TASK_OPTS_INIT \
	{ sizeof(struct weft_task_opts), NULL, 0, 0, 0, NULL }

/* What is copied for a task at most. */
#define WEFT_ARG_BYTES_MAX ((size_t)4096)

/* A scope.  Its words are private; it lives where you put it, until it ends. */
struct weft_scope {
	uint64_t private_words[16];
} __attribute__((aligned(64)));

/*
 * Starts a task in scope, from whatever task while the scope is open.  Copies
 * arg_bytes bytes at arg; the task is given the address of its copy, valid
 * until it returns.  Does not suspend (but in a scope with a limit, see
 * <weft/scope.h>), nor runs the task itself; another worker may run it at once.
 * Its stack it gets when its turn comes; if there is no memory for one then, it
 * waits until there is.
 *
 * 0, or -EINVAL (NULL scope or function, more than WEFT_ARG_BYTES_MAX bytes),
 * -EAGAIN (the runtime's limit of tasks), -ENOMEM, -ECANCELED (the scope is
 * cancelled: nothing was started), -EPERM (not in a task).
 */
WEFT_API int weft_go(struct weft_scope *scope, weft_fn fn, const void *arg,
		     size_t arg_bytes) WEFT_WARN_UNUSED;

/* The same with options.  Only the task that began the scope may ask for a
 * handle (else -EPERM); it is valid until joined or until the scope ends. */
WEFT_API int weft_go_opts(struct weft_scope *scope, weft_fn fn, const void *arg,
			  size_t arg_bytes, const struct weft_task_opts *opts)
	WEFT_WARN_UNUSED;

/*
 * Waits for a task to end and takes its result; the handle is spent.  Suspends,
 * and obeys deadlines and cancellation; the task goes on if the wait is given
 * up.
 *
 * 0, or -ESRCH (no such task any more), -EDEADLK (itself), -EPERM (not the task
 * that began its scope, or not in a task), -ECANCELED, -ETIMEDOUT.
 */
WEFT_API int weft_join(struct weft_task task, int64_t *ret_result)
	WEFT_WARN_UNUSED;

/*
 * Asks a task to end: from now on its suspending calls return -ECANCELED.  Its
 * own scopes are cancelled with it.  Does not wait, so join it before what it
 * uses goes.  From any task of the runtime.  0, -ESRCH, or -EPERM (not in a
 * task).
 */
WEFT_API int weft_cancel(struct weft_task task);

/* Lets every task that is ready run first.  Suspends.  Returns 0, -ECANCELED or
 * -ETIMEDOUT; it has yielded all the same. */
WEFT_API int weft_yield(void);

/* The running task, or {0} outside of one. */
WEFT_API struct weft_task weft_self(void);

/* The running task's name, or NULL. */
WEFT_API const char *weft_task_name(void);

/*
 * Scopes.  A group is cancelled by its first failing task, and that failure is
 * its result.  A supervisor goes on, and counts failures.
 *
 * The task that began a scope is not in it: a call of its own that waits in the
 * block waits on when a child fails.  It learns of that at the end, or when it
 * starts another (-ECANCELED).  What must end with the others is to be a task.
 *
 * begin opens a scope in the running task; scopes of a task nest.  end waits
 * for the scope's tasks (it suspends, and waits in full even when cancelled),
 * and returns the first failure of a group, the number of failed tasks of a
 * supervisor, or 0.  Both must be called by the same task.  begin returns 0 or
 * -EPERM.
 */
WEFT_API int weft_group_begin(struct weft_scope *scope);
WEFT_API int weft_supervisor_begin(struct weft_scope *scope);
WEFT_API int64_t weft_scope_end(struct weft_scope *scope);

/* Cancels every task of the scope, now and to come.  Does not wait.  Any task
 * may call it while the scope is open. */
WEFT_API void weft_scope_cancel(struct weft_scope *scope);

/* The same, and counts as a failure of the scope's with that error, which is
 * negative: it is the result of a group that has no other.  For what one of its
 * tasks would have had to do, and could not be started. */
WEFT_API void weft_scope_fail(struct weft_scope *scope, int64_t error);

/* Tasks of the scope that have not ended.  For the task that began it. */
WEFT_API size_t weft_scope_count(const struct weft_scope *scope);

/* For the block macros. */
enum { WEFT__SUPERVISOR, WEFT__GROUP, WEFT__RACE };
struct weft__scope_block {
	struct weft_scope *scope;
	int64_t *ret_result;
};
WEFT_API struct weft_scope *weft__scope_enter(struct weft__scope_block *block,
					      struct weft_scope *scope,
					      int64_t *ret_result, int kind)
	WEFT__RETURNS_NONNULL;
WEFT_API void weft__scope_leave(struct weft__scope_block *block);

#define WEFT__SCOPE(name, ret_result, kind) \
	WEFT__SCOPE_NTH(name, ret_result, kind, __COUNTER__)
#define WEFT__SCOPE_NTH(name, ret_result, kind, n)                           \
	for (struct weft_scope WEFT__FRESH(room, n),                         \
	     *name = &WEFT__FRESH(room, n), *WEFT__FRESH(once, n) = name;    \
	     WEFT__FRESH(once, n); WEFT__FRESH(once, n) = NULL)              \
		for (struct weft__scope_block WEFT__FRESH(block, n)          \
			     __attribute__((cleanup(weft__scope_leave))) =   \
				     { NULL, NULL };                         \
		     WEFT__FRESH(once, n) &&                                 \
		     weft__scope_enter(&WEFT__FRESH(block, n), name,         \
				       ret_result, kind);                    \
		     WEFT__FRESH(once, n) = NULL)

/*
 * A block that is a group, and one that is a supervisor; name is a struct
 * weft_scope * there.  Joined when control leaves the block: by falling
 * through, return, goto, or break and continue (which leave only this block).
 * *ret_result gets what weft_scope_end() returns; NULL to ignore it.
 */
#define WEFT_SCOPE(name, ret_result) WEFT__SCOPE(name, ret_result, WEFT__GROUP)
#define WEFT_SUPERVISE(name) WEFT__SCOPE(name, NULL, WEFT__SUPERVISOR)

/* weft_go() with a value: WEFT_GO(scope, serve, fd) copies fd, and serve finds
 * it by *(int *)arg.  Of an array it copies a pointer to the first element. */
#ifdef __cplusplus
WEFT_END_DECLS
template <typename T>
WEFT_WARN_UNUSED static inline int weft__go_value(struct weft_scope *scope,
						  weft_fn fn, T value)
{
	return weft_go(scope, fn, &value, sizeof(value));
}
WEFT_BEGIN_DECLS
#define WEFT_GO(scope, fn, value) weft__go_value((scope), (fn), (value))
#else
/* So that the compiler tells who does not look at the result. */
WEFT_WARN_UNUSED
static inline int weft__started(int result)
{
	return result;
}
#define WEFT_GO(scope, fn, value)                                          \
	weft__started(__extension__({                                      \
		__auto_type weft__value = (value);                         \
		weft_go((scope), (fn), &weft__value, sizeof(weft__value)); \
	}))
#endif

/*
 * What stands inside is not interrupted: suspending calls there ignore
 * cancellation and deadlines from outside the block.  For short clean-up.
 *
 *	WEFT_SHIELD { weft_write_all(fd, bye, sizeof(bye), NULL); }
 */
struct weft__shield {
	uint64_t private_words[2];
};
WEFT_API struct weft__shield *weft__shield_enter(struct weft__shield *shield)
	WEFT__RETURNS_NONNULL;
WEFT_API void weft__shield_leave(struct weft__shield *shield);

#define WEFT_SHIELD WEFT__SHIELD(__COUNTER__)
#define WEFT__SHIELD(n)                                            \
	for (struct weft__shield WEFT__FRESH(shield, n)            \
		     __attribute__((cleanup(weft__shield_leave))), \
	     *WEFT__FRESH(shield_once, n) =                        \
		     weft__shield_enter(&WEFT__FRESH(shield, n));  \
	     WEFT__FRESH(shield_once, n);                          \
	     WEFT__FRESH(shield_once, n) = NULL)

WEFT_END_DECLS

#endif
