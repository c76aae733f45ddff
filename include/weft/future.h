/* SPDX-License-Identifier: MIT */
/*
 * Futures: tasks that have no stack, for those that come by the million.
 *
 * A task keeps a page of stack or more while it sleeps, a future 192 bytes.  It
 * is a function over a small state of yours, which is called (polled) whenever
 * there is something new for it, and returns WEFT_PENDING until it is done.
 * What is to survive from one call to the next is in the state.
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
 * All else is as with a task: it belongs to a scope, is joined, cancelled,
 * waited for by weft_select(), woken by channels, has a name and a deadline
 * that it inherits.  Tasks and futures run on the same workers, and talk to
 * each other by the same objects.
 *
 * Inside of one, calls that would suspend do not: they return -EPERM, and
 * blocks such as WEFT_SCOPE and WEFT_WITHIN are assertions.  Calls that never
 * wait are as always: weft_go() (but with -EAGAIN where it would wait for a
 * limit), weft_cancel(), weft_chan_try_send(), weft_event_set(), ...
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

/* Not yet: what a future returns that is not done, and an await. */
#define WEFT_PENDING (-EINPROGRESS)

/*
 * Starts a future in scope: as weft_go(), with a function that is polled.  The
 * state is copied, up to WEFT_ARG_BYTES_MAX bytes; up to 24 bytes are kept in
 * the record, of more there is a block of memory.  poll is given the address of
 * the copy, always the same, which is valid until it returns a result.
 *
 * By weft_go_opts() and weft_submit() with the flag WEFT_FUTURE (not with
 * WEFT_PINNED or stack_bytes: -EINVAL) it gets a name and a handle.
 */
WEFT_API int weft_go_future(struct weft_scope *scope, weft_fn poll,
			    const void *state,
			    size_t state_bytes) WEFT_WARN_UNUSED;

/*
 * Awaits.  Each begins something and returns WEFT_PENDING; then the future
 * returns that, too.  When it is polled the next time it makes the same call
 * with the same arguments again, and so on until that returns something else:
 * the result.  To await another thing before (another kind, descriptor, object,
 * item, number of permits, or other events), or to end, is an error that is
 * asserted.  Awaiting is interrupted by a cancellation (-ECANCELED) and by
 * deadlines: -ECANCELED for one that was inherited, -ETIMEDOUT for one by
 * weft_future_within().  -EPERM outside of a future; -ENOMEM.
 *
 * A future may be polled without reason: then its await is still pending.
 */

/* Sleeps, as weft_sleep() and weft_sleep_until(): as the first call says; how
 * long the next say makes no difference. */
WEFT_API int weft_await_sleep(weft_nsec length_ns) WEFT_WARN_UNUSED;
WEFT_API int weft_await_sleep_until(weft_nsec deadline_ns) WEFT_WARN_UNUSED;

/* Lets others run first, as weft_yield(). */
WEFT_API int weft_await_yield(void) WEFT_WARN_UNUSED;

/* Until a descriptor is ready, as weft_poll(): the events that hold. */
WEFT_API int weft_await_ready(int fd, short events) WEFT_WARN_UNUSED;

/* Receives and sends, as weft_recv() and weft_send(); the buffer may be another
 * one at each call.  Nothing is in it while the call is pending: it may be on
 * the stack, and a future that waits needs none. */
WEFT_API ssize_t weft_await_recv(int fd, void *buf, size_t bytes,
				 int flags) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_await_send(int fd, const void *buf, size_t bytes,
				 int flags) WEFT_WARN_UNUSED;

/* The next connection of a listening socket, as weft_accept(), and in turn with
 * those who call that.  *ret_peer is written by the call that returns one. */
WEFT_API int weft_await_accept(int fd,
			       struct weft_addr *ret_peer) WEFT_WARN_UNUSED;

/* Connects, as weft_connect().  The address may be read until the call is no
 * longer pending: it belongs into the state. */
WEFT_API int weft_await_connect(int fd,
				const struct weft_addr *addr) WEFT_WARN_UNUSED;

/* Closes, as weft_close(), also when cancelled. */
WEFT_API int weft_await_close(int fd) WEFT_WARN_UNUSED;

/* Sends and receives, as weft_chan_send() and weft_chan_recv().  The value is
 * the channel's to touch until the call is no longer pending: it belongs into
 * the state. */
WEFT_API int weft_await_chan_send(struct weft_chan *chan,
				  const void *item) WEFT_WARN_UNUSED;
WEFT_API int weft_await_chan_recv(struct weft_chan *chan,
				  void *ret_item) WEFT_WARN_UNUSED;

/* Until an event is set, as weft_event_wait(); and permits of a semaphore, as
 * weft_sem_acquire(), in turn with those who call that. */
WEFT_API int weft_await_event(struct weft_event *event) WEFT_WARN_UNUSED;
WEFT_API int weft_await_sem_acquire(struct weft_sem *sem,
				    uint32_t n) WEFT_WARN_UNUSED;

/* A deadline for all that the future awaits from here on; WEFT_NEVER: none any
 * more.  0, -EPERM (not in a future), -ENOMEM. */
WEFT_API int weft_future_within(weft_nsec length_ns) WEFT_WARN_UNUSED;

/*
 * Waits of its own: a future returns WEFT_PENDING without an await, and looks
 * whenever it is polled: at what it waits for, and whether to give up.
 *
 * wake has it polled.  A wake is not lost, whenever it comes.  From any thread,
 * by which the runtime must be kept alive meanwhile, as by a task of it that
 * waits for that thread; NULL runtime: that of the calling task.  0, -ESRCH,
 * -EINVAL (no future; no runtime).
 */
WEFT_API int weft_future_wake(struct weft_runtime *runtime,
			      struct weft_task future);

/* What an await would be interrupted by: 0, -ECANCELED, or -ETIMEDOUT; both
 * have it polled.  -EPERM: not in a future. */
WEFT_API int weft_future_interrupted(void);

/*
 * A function that goes on where it was left (after T. Duff's device, and A.
 * Dunkels' protothreads).  The first member of its state is WEFT_FUTURE_STATE;
 * the code stands between BEGIN and END, and calls awaits by WEFT_AWAIT: that
 * returns WEFT_PENDING for as long as the await does.  The other form assigns
 * the result.  A variable that is to be kept is in the state, and there is no
 * WEFT_AWAIT inside a switch of your own, nor two on a line.
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

/* weft_go_future() with a value, as WEFT_GO() is for weft_go(). */
#ifdef __cplusplus
WEFT_END_DECLS
template <typename T>
WEFT_WARN_UNUSED static inline int
weft__go_future_value(struct weft_scope *scope, weft_fn poll, T value)
{
	return weft_go_future(scope, poll, &value, sizeof(value));
}
WEFT_BEGIN_DECLS
#define WEFT_GO_FUTURE(scope, poll, value) \
	weft__go_future_value((scope), (poll), (value))
#else
#define WEFT_GO_FUTURE(scope, poll, value)                           \
	weft__started(__extension__({                                \
		__auto_type weft__value = (value);                   \
		weft_go_future((scope), (poll), &weft__value,        \
			       sizeof(weft__value));                 \
	}))
#endif

WEFT_END_DECLS

#endif
