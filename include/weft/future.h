/* SPDX-License-Identifier: MIT */
/*
 * Futures: tasks without a stack, for millions of them.
 *
 * A task keeps a page of stack or more while it sleeps; a future keeps 192
 * bytes.  It is a function over a small state of yours.  The runtime calls
 * (polls) the function whenever there is news for it; the function returns
 * WEFT_PENDING until it is done.  Data that must survive from one call to the
 * next is in the state.
 *
 *	struct session {
 *		WEFT_FUTURE_STATE;
 *		int fd;
 *	};
 *
 *	static int64_t echo(void *state)
 *	{
 *		struct session *s = state;
 *		char buf[4096];			only between two awaits
 *		ssize_t n;
 *
 *		WEFT_FUTURE_BEGIN(s);
 *		for (;;) {
 *			WEFT_AWAIT(s, weft_await_ready(s->fd, POLLIN));
 *			n = recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT);
 *			...
 *		}
 *		WEFT_FUTURE_END(s);
 *		return 0;
 *	}
 *
 *	error = WEFT_GO_FUTURE(scope, echo, session);
 *
 * In all else a future is a task: it belongs to a scope, can be joined,
 * cancelled, selected on and woken by channels, and has a name and an inherited
 * deadline.  Tasks and futures run on the same workers and share the same
 * objects.
 *
 * Inside a future, calls that suspend return -EPERM, and blocks such as
 * WEFT_SCOPE and WEFT_WITHIN end the process with a message.  Calls that never
 * wait work as usual: weft_go() (with -EAGAIN where it would wait for a limit),
 * weft_cancel(), weft_chan_try_send(), weft_event_set(), ...
 */
#ifndef WEFT_FUTURE_H
#define WEFT_FUTURE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weft/chan.h>
#include <weft/config.h>
#include <weft/runtime.h>
#include <weft/sync.h>
#include <weft/task.h>
#include <weft/time.h>

WEFT_BEGIN_DECLS

struct weft_addr; /* <weft/addr.h> */

/* Not yet: the result of a future that is not done, and of an await. */
#define WEFT_PENDING (-EINPROGRESS)

/*
 * Starts a future in scope, as weft_go() starts a task; results as of
 * weft_go().  Copies the state, up to WEFT_ARG_BYTES_MAX bytes: up to 24 bytes
 * into the record of the future, a larger state into memory of its own.  poll
 * always receives the same address, that of the copy, which is valid until poll
 * returns a result.
 *
 * weft_go_opts() and weft_submit() also start futures, with a name and a
 * handle: set the flag WEFT_FUTURE (with WEFT_PINNED or stack_bytes: -EINVAL).
 */
WEFT_API int weft_go_future(struct weft_scope *scope, weft_fn poll,
			    const void *state,
			    size_t state_bytes) WEFT_WARN_UNUSED;

/*
 * Awaits.  The first call begins an operation and returns WEFT_PENDING, unless
 * the result is there already.  Then the future returns WEFT_PENDING, too.
 * Each time it is polled, it makes the same call with the same arguments, until
 * that returns something else: the result.  A future must not begin another
 * await (of another kind, descriptor, object, item, number of permits, or other
 * events) or end before that; otherwise the process ends with a message.
 *
 * None of these calls suspends.  Interruption: -ECANCELED for a cancellation or
 * an inherited deadline, -ETIMEDOUT for the deadline of weft_future_within().
 * Other errors: those of the call that the comment names, -EPERM (not in a
 * future), -ENOMEM.
 *
 * A future may be polled without a reason; then its await is still pending.
 */

/* Sleep, as weft_sleep() and weft_sleep_until().  The first call sets the time;
 * the argument of later calls makes no difference. */
WEFT_API int weft_await_sleep(weft_nsec length_ns) WEFT_WARN_UNUSED;
WEFT_API int weft_await_sleep_until(weft_nsec deadline_ns) WEFT_WARN_UNUSED;

/* Lets other tasks run first, as weft_yield(). */
WEFT_API int weft_await_yield(void) WEFT_WARN_UNUSED;

/* Until a descriptor is ready, as weft_poll(): returns the events that hold. */
WEFT_API int weft_await_ready(int fd, short events) WEFT_WARN_UNUSED;

/* Receive and send, as weft_recv() and weft_send(); with MSG_DONTWAIT they give
 * -EAGAIN instead of waiting, though they may let other tasks run first.  While
 * the call is pending nothing refers to the buffer: it may be on the stack, it
 * may be another one at each call, and a future that waits needs none. */
WEFT_API ssize_t weft_await_recv(int fd, void *buf, size_t bytes,
				 int flags) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_await_send(int fd, const void *buf, size_t bytes,
				 int flags) WEFT_WARN_UNUSED;

/* The next connection of a listening socket, as weft_accept(), and in turn with
 * the callers of that.  Only the call that returns a connection writes
 * *ret_peer: an empty address, if the connection has ended by then. */
WEFT_API int weft_await_accept(int fd,
			       struct weft_addr *ret_peer) WEFT_WARN_UNUSED;

/* Connects, as weft_connect().  addr may be read until the call is no longer
 * pending, so it belongs in the state. */
WEFT_API int weft_await_connect(int fd,
				const struct weft_addr *addr) WEFT_WARN_UNUSED;

/* Closes, as weft_close(); also when the future is cancelled. */
WEFT_API int weft_await_close(int fd) WEFT_WARN_UNUSED;

/* Send and receive, as weft_chan_send() and weft_chan_recv().  The channel may
 * use the memory at item until the call is no longer pending, so it belongs in
 * the state. */
WEFT_API int weft_await_chan_send(struct weft_chan *chan,
				  const void *item) WEFT_WARN_UNUSED;
WEFT_API int weft_await_chan_recv(struct weft_chan *chan,
				  void *ret_item) WEFT_WARN_UNUSED;

/* Until an event is set, as weft_event_wait(); and permits of a semaphore, as
 * weft_sem_acquire(), in turn with the callers of that. */
WEFT_API int weft_await_event(struct weft_event *event) WEFT_WARN_UNUSED;
WEFT_API int weft_await_sem_acquire(struct weft_sem *sem,
				    uint32_t n) WEFT_WARN_UNUSED;

/* Sets a deadline for everything that the future awaits from here on; it
 * replaces the last one.  WEFT_NEVER: none.  Not while an await is pending:
 * that ends the process with a message.  Returns 0, -EPERM (not in a future) or
 * -ENOMEM. */
WEFT_API int weft_future_within(weft_nsec length_ns) WEFT_WARN_UNUSED;

/*
 * Waits of your own: a future may return WEFT_PENDING without an await.
 * Whenever it is polled, it checks the thing that it waits for, and
 * weft_future_interrupted().
 *
 * weft_future_wake() has the future polled.  A wake is never lost, whenever it
 * comes.  From any thread or task; does not suspend.  The caller must keep the
 * runtime alive meanwhile, for example by a task of the runtime that waits for
 * the calling thread.  NULL runtime: that of the calling task.  Returns 0,
 * -ESRCH (the future has ended), or -EINVAL (a task that is no future; NULL
 * runtime outside a task).
 */
WEFT_API int weft_future_wake(struct weft_runtime *runtime,
			      struct weft_task future);

/* The interruption of the running future: 0, -ECANCELED or -ETIMEDOUT, as for
 * an await; both have the future polled.  -EPERM: not in a future. */
WEFT_API int weft_future_interrupted(void);

/*
 * A function that continues where it left off (after T. Duff's device, and A.
 * Dunkels' protothreads).  The first member of its state is WEFT_FUTURE_STATE.
 * The code stands between BEGIN and END, and makes each await inside
 * WEFT_AWAIT, which returns WEFT_PENDING from the function while the await is
 * pending.  WEFT_AWAIT_AS also assigns the result.  Variables to be kept go
 * into the state.  Do not use WEFT_AWAIT inside a switch of your own, nor twice
 * on one line.
 */
#define WEFT_FUTURE_STATE unsigned weft_at
#define WEFT_FUTURE_BEGIN(state)   \
	switch ((state)->weft_at) { \
	default:
#define WEFT_FUTURE_END(state) }
#define WEFT_AWAIT(state, call)                       \
	do {                                          \
		(state)->weft_at = __LINE__;          \
		__attribute__((fallthrough));         \
	case __LINE__:                                \
		if ((call) == WEFT_PENDING)           \
			return WEFT_PENDING;          \
	} while (0)
#define WEFT_AWAIT_AS(state, ret, call)               \
	do {                                          \
		(state)->weft_at = __LINE__;          \
		__attribute__((fallthrough));         \
	case __LINE__:                                \
		(ret) = (call);                       \
		if ((ret) == WEFT_PENDING)            \
			return WEFT_PENDING;          \
	} while (0)

/* weft_go_future() with a value, as WEFT_GO() is weft_go() with a value. */
#ifdef __cplusplus
WEFT_END_DECLS
template <typename T>
WEFT_WARN_UNUSED static inline int
weft__go_future_value(struct weft_scope *weft__scope, weft_fn weft__poll,
		      T weft__value)
{
	return weft_go_future(weft__scope, weft__poll, &weft__value,
			      sizeof(weft__value));
}
WEFT_BEGIN_DECLS
#define WEFT_GO_FUTURE(scope, poll, value) \
	weft__go_future_value((scope), (poll), WEFT__CHECKED_VALUE(value))
#else
#define WEFT_GO_FUTURE(scope, poll, value)                           \
	weft__started(__extension__({                                \
		__auto_type weft__value = (value);                   \
		WEFT__CHECK_VALUE(value, weft__value);               \
		weft_go_future((scope), (poll), &weft__value,        \
			       sizeof(weft__value));                 \
	}))
#endif

WEFT_END_DECLS

#endif
