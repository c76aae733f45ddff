/* SPDX-License-Identifier: MIT */
/*
 * Tasks, and the scopes that hold them.
 *
 * A task is a function that runs on a stack of its own.  Many tasks share a few
 * threads, the workers: a task that has to wait is suspended, and its worker
 * runs another task meanwhile.  Every task belongs to a scope, and a scope ends
 * only when all its tasks have ended.  So a task may use pointers into the
 * stack of the task that started it.
 *
 *	WEFT_SCOPE(both, &result) {	a group: a failure cancels the other
 *		if ((r = WEFT_GO(both, fetch, left)) < 0 ||
 *		    (r = WEFT_GO(both, fetch, right)) < 0)
 *			weft_scope_fail(both, r);
 *	}				joined here, on every way out
 *
 * A task that has ended keeps neither its stack nor its record, unless there is
 * a handle to it.  So a supervisor may start tasks without end.
 */
#ifndef WEFT_TASK_H
#define WEFT_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* The function of a task.  Its result goes to the task that joins it.  A
 * negative result is a failure, by convention a negative errno. */
typedef int64_t (*weft_fn)(void *arg);

/* A handle of a task, passed by value.  Calls recognise the handle of a task
 * that is gone and return -ESRCH.  {0} is no task.  The id names one task of
 * the runtime; the same number returns after four billion other tasks.  To
 * print it, use PRIx64. */
struct weft_task {
	uint64_t id;
};

/* The task stays on the worker that runs it first.  For code that keeps a
 * pthread mutex, a thread-local or a thread-bound library across a wait. */
#define WEFT_PINNED (1u << 0)
/* The task is a future: its function is polled.  See <weft/future.h>. */
#define WEFT_FUTURE (1u << 1)

/* Options of a task.  Start from WEFT_TASK_OPTS_INIT. */
struct weft_task_opts {
	size_t size;
	const char *name;   /* for messages; not copied; NULL: none */
	size_t stack_bytes; /* 16 KiB to 64 MiB; 0: the runtime's default */
	unsigned flags;	    /* WEFT_PINNED, WEFT_FUTURE */
	unsigned reserved;
	struct weft_task *ret_task; /* if not NULL, receives a handle */
};

#define WEFT_TASK_OPTS_INIT \
	{ sizeof(struct weft_task_opts), NULL, 0, 0, 0, NULL }

/* The largest argument that is copied for a task. */
#define WEFT_ARG_BYTES_MAX WEFT__NUMBER(size_t, 4096)

/* A scope.  Its fields are private.  It lives where you put it, as a rule on
 * the stack, and must stay there until it has ended. */
struct weft_scope {
	uint64_t private_words[16];
} __attribute__((aligned(64)));

/*
 * Starts a task in an open scope; any task of the scope's runtime may call it.
 * Copies arg_bytes bytes from arg (NULL if there are none).  The task receives
 * the address of its copy, which is valid until it returns.  The call does not
 * suspend, except in a scope with a limit (<weft/scope.h>), and does not run
 * the task; another worker may run it immediately.  The stack is allocated when
 * the task first runs.  If memory is short, the task waits, cancelled or not,
 * until another task has ended or there is memory.  If no other task can end
 * before it has run, it waits for memory alone: limit scopes that may grow.
 *
 * Returns 0, or starts nothing and returns: -EINVAL (NULL scope or function,
 * more than WEFT_ARG_BYTES_MAX bytes, wrong options), -EAGAIN (the runtime has
 * its maximum of tasks), -ENOMEM, -ECANCELED (the scope is cancelled), -EPERM
 * (not in a task).
 */
WEFT_API int weft_go(struct weft_scope *scope, weft_fn fn, const void *arg,
		     size_t arg_bytes) WEFT_WARN_UNUSED;

/* The same with options; NULL opts: the defaults.  Only the task that began the
 * scope may ask for a handle (else -EPERM).  The handle is valid until it is
 * joined or the scope ends; nothing has to be freed. */
WEFT_API int weft_go_opts(struct weft_scope *scope, weft_fn fn, const void *arg,
			  size_t arg_bytes, const struct weft_task_opts *opts)
	WEFT_WARN_UNUSED;

/*
 * Waits until a task has ended and takes its result; ret_result may be NULL.
 * Suspends; deadlines and cancellation end the wait, but not the awaited task.
 * After a return of 0 the handle is invalid.
 *
 * Returns 0, -ESRCH (the task is gone), -EDEADLK (it is the caller), -EPERM
 * (the caller did not begin the scope, or is no task), -ECANCELED or
 * -ETIMEDOUT.
 */
WEFT_API int weft_join(struct weft_task task, int64_t *ret_result)
	WEFT_WARN_UNUSED;

/* Asks a task to end: from now on its suspending calls return -ECANCELED, and
 * its own scopes are cancelled.  Does not suspend or wait for the end; join the
 * task before you free what it uses.  Any task of the runtime may call it.
 * Returns 0, -ESRCH (the task has ended), or -EPERM (not in a task). */
WEFT_API int weft_cancel(struct weft_task task);

/* Lets all tasks that are ready run first.  Suspends.  Returns 0, or, after
 * yielding all the same, -ECANCELED or -ETIMEDOUT; -EPERM outside a task. */
WEFT_API int weft_yield(void);

/* The calling task; {0} outside a task.  Does not suspend. */
WEFT_API struct weft_task weft_self(void);

/* The name of the calling task, as given in its options; NULL if there is
 * none. */
WEFT_API const char *weft_task_name(void);

/*
 * Kinds of scopes.  In a group, the first task that fails cancels the others,
 * and its failure is the group's result.  A supervisor cancels no task and
 * counts the failures.  (For races see <weft/scope.h>.)
 *
 * The task that begins a scope, its owner, is not in the scope.  If a child
 * fails while the owner waits in a call of its own, that wait goes on.  The
 * owner learns of the failure at the end, or when it starts another task
 * (-ECANCELED).  Put work that must end with the children into a child.
 *
 * weft_group_begin() and weft_supervisor_begin() open a scope in the calling
 * task; scopes of a task nest.  They return 0 or -EPERM (not in a task), and do
 * not suspend.  weft_scope_end() waits until all tasks of the scope have ended.
 * It suspends, and waits in full even if the caller is cancelled or out of
 * time.  It returns the first failure of a group or 0, or the number of failed
 * tasks of a supervisor.  Only the owner may call it, for inner scopes first;
 * otherwise the process ends with a message.
 */
WEFT_API int weft_group_begin(struct weft_scope *scope);
WEFT_API int weft_supervisor_begin(struct weft_scope *scope);
WEFT_API int64_t weft_scope_end(struct weft_scope *scope);

/* Cancels every task of the scope, and makes further weft_go() in it fail with
 * -ECANCELED.  Does not suspend or wait.  Any task may call it while the scope
 * is open. */
WEFT_API void weft_scope_cancel(struct weft_scope *scope);

/* The same, and counts error, which is negative, as a failure in the scope: a
 * group that has no earlier failure returns it.  For work that one of the tasks
 * should have done, but that could not be started. */
WEFT_API void weft_scope_fail(struct weft_scope *scope, int64_t error);

/* The number of tasks of the scope that have not ended.  Only for the owner. */
WEFT_API size_t weft_scope_count(const struct weft_scope *scope);

/* For the block macros below. */
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

/* A block that is a group, and a block that is a supervisor; inside, name is a
 * struct weft_scope *.  The tasks are joined when control leaves the block: at
 * its end, or by return, goto, break or continue (the last two leave only this
 * block).  *ret_result receives what weft_scope_end() returns; NULL ignores
 * it. */
#define WEFT_SCOPE(name, ret_result) WEFT__SCOPE(name, ret_result, WEFT__GROUP)
#define WEFT_SUPERVISE(name) WEFT__SCOPE(name, NULL, WEFT__SUPERVISOR)

/* weft_go() with a value: WEFT_GO(scope, serve, fd) copies fd, and serve()
 * reads it as *(int *)arg.  An array does not compile; of a string literal the
 * pointer is copied.  In C++ the value must be trivially copyable. */
#ifdef __cplusplus
WEFT_END_DECLS
template <typename T>
WEFT_WARN_UNUSED static inline int
weft__go_value(struct weft_scope *weft__scope, weft_fn weft__fn, T weft__value)
{
	return weft_go(weft__scope, weft__fn, &weft__value,
		       sizeof(weft__value));
}
WEFT_BEGIN_DECLS
#define WEFT_GO(scope, fn, value) \
	weft__go_value((scope), (fn), WEFT__CHECKED_VALUE(value))
#else
/* A function, so that the compiler warns when the result is not used. */
WEFT_WARN_UNUSED
static inline int weft__started(int weft__result)
{
	return weft__result;
}
#define WEFT_GO(scope, fn, value)                                          \
	weft__started(__extension__({                                      \
		__auto_type weft__value = (value);                         \
		WEFT__CHECK_VALUE(value, weft__value);                     \
		weft_go((scope), (fn), &weft__value, sizeof(weft__value)); \
	}))
#endif

/*
 * Suspending calls inside the block ignore cancellation and the deadlines of
 * blocks around it.  For short clean-up; give it a WEFT_WITHIN of its own if it
 * may wait for long.
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
