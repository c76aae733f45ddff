/* SPDX-License-Identifier: MIT */
/*
 * Call - the steps that the public calls on a descriptor share.
 *
 * A call that may be done without waiting begins with weft__call_begin(), or
 * weft__call_begin_fd(), and ends with weft__call_ready(), which charges the
 * task's budget of ready operations.  weft__call_is_lone() says whether a
 * direct system call is less work than a request, and
 * weft__call_wants_ring() whether its error asks for the request.
 *
 * A call of several steps compares weft__call_closes() before and after a step:
 * a different count means that the descriptor was closed in between.
 *
 * A future begins with weft__call_await().  If it has to wait for its next
 * turn, the count of closes is kept meanwhile.
 */
#ifndef WEFT_IO_REQUEST_CALL_H
#define WEFT_IO_REQUEST_CALL_H

#include <errno.h>
#include <limits.h>

#include "io/os/syscall.h"
#include "io/request/op.h"
#include "io/request/reactor.h"
#include "runtime/future/future.h"
#include "runtime/sched/wait.h"

/* The most bytes that the kernel moves in one call (MAX_RW_COUNT). */
#define WEFT__BYTES_MAX ((size_t)0x7ffff000)

static inline unsigned weft__bytes(size_t bytes)
{
	return (unsigned)(bytes < WEFT__BYTES_MAX ? bytes : WEFT__BYTES_MAX);
}

/* The start of a call that may be done without waiting: the running task's
 * worker.  -EPERM, -ECANCELED, -ETIMEDOUT. */
static inline int weft__call_begin(struct weft__worker **ret_worker)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);

	if (weft__unlikely(!task))
		return -EPERM;
	*ret_worker = worker;
	return weft__interrupted(worker, task);
}

/* The same for a descriptor: its entry too, and what kind it is (an enum
 * weft__fd_kind with flags); also -EBADF, -ENOMEM. */
static inline int weft__call_begin_fd(int fd, struct weft__worker **ret_worker,
				      struct weft__fd **ret_entry)
{
	int r = weft__call_begin(ret_worker);

	if (weft__unlikely(r < 0))
		return r;
	r = weft__fd_get(&weft__reactor((*ret_worker)->runtime)->fds, fd,
			 ret_entry);
	if (weft__unlikely(r < 0))
		return r;
	return weft__fd_kind(*ret_entry, fd);
}

/*
 * How often the number began to be closed, and was given up.  A call of several
 * steps that finds another count than at its start was overtaken by
 * weft_close() between two of them: the number may be somebody else's now, and
 * the call is to end (-ECANCELED).
 */
static inline uint8_t weft__call_closes(int fd)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__fd *entry =
		worker ? weft__fd_find(&weft__reactor(worker->runtime)->fds,
				       fd) :
			 NULL;

	/* relaxed: orders nothing.  A close that runs at the same moment as the
	 * step itself is the caller's to exclude, as with POSIX. */
	return entry ? weft__load(&entry->closes, relaxed) : 0;
}

/* A future cannot begin to await, and does so in its next turn, unless the
 * number has begun to be closed more often by then.  Returns WEFT_PENDING. */
static inline int weft__call_later(enum weft__awaits what,
				   struct weft__task *task, int fd,
				   uint8_t closes)
{
	task->awaits = (uint8_t)what;
	weft__op_of(task)->fd = fd;
	weft__op_of(task)->call = 0;
	weft__op_of(task)->closes = closes;
	weft__op_of(task)->begins = true;
	return WEFT_PENDING;
}

/* That turn has come: 0, or why it does not begin. */
static inline int weft__call_now(struct weft__worker *worker,
				 struct weft__task *task, int fd)
{
	bool closed = weft__op_of(task)->closes != weft__call_closes(fd);

	weft__assert(weft__op_of(task)->fd == fd, WEFT__AWAITS_ANOTHER);
	weft__op_of(task)->call = 0;
	(void)weft__op_await_end(worker, task, 0);
	return closed ? -ECANCELED : weft__future_interrupted(worker, task);
}

/* weft__await_enter() of what is awaited on a descriptor: what has to wait for
 * its turn is under way already, and ends when that is closed. */
static inline int weft__call_await(enum weft__awaits what, int fd,
				   struct weft__worker **ret_worker,
				   struct weft__task **ret_task)
{
	int r = weft__await_enter(what, NULL, 0, ret_worker, ret_task);

	if (weft__unlikely(r == WEFT_PENDING))
		return weft__call_later(what, *ret_task, fd,
					weft__call_closes(fd));
	if (r == 0 && weft__unlikely(weft__op_of((*ret_task))->begins))
		return weft__call_now(*ret_worker, *ret_task, fd);
	return r;
}

/* The result of a call of several steps: a close that came between the last
 * look at the count and the step makes the step fail with -EBADF. */
static inline ssize_t weft__call_overtaken(ssize_t r, bool was_closed)
{
	return r == -EBADF && was_closed ? -ECANCELED : r;
}

/* A call with arguments that nothing can be done with. */
static inline int weft__call_refused(int error)
{
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	return r < 0 ? r : error;
}

/* Takes so many of a task's budget of ready operations, but leaves one, for
 * weft__charge_ready(). */
static inline void weft__call_charge_ops(struct weft__worker *worker,
					 size_t ops)
{
	if (worker->ops_left <= 1)
		return;
	if (ops < (size_t)worker->ops_left)
		worker->ops_left -= (int32_t)ops;
	else
		worker->ops_left = 1;
}

/* A long copy takes as many as it is long, so that others, and deadlines, are
 * not kept waiting for 128 of those. */
static inline void weft__call_charge(struct weft__worker *worker, size_t bytes)
{
	enum { BYTES_PER_OP = 16 << 10 };

	weft__call_charge_ops(worker, bytes / BYTES_PER_OP);
}

/* The end of a call that was done without waiting. */
static inline ssize_t weft__call_ready(struct weft__worker *worker, ssize_t r)
{
	if (r > 0)
		weft__call_charge(worker, (size_t)r);
	/* About to yield: as good as a suspension, so that a loop of these
	 * meets its deadline. */
	if (weft__unlikely(worker->ops_left <= 1))
		weft__wait_begin(worker, worker->current);
	weft__charge_ready(worker);
	return r;
}

/*
 * Entries into the kernel are shared by all requests of a tick, but one that
 * nothing else waits for has none to share with: then a call is less work, and
 * the task goes on at once.  Not for longer than a tick lasts: only a worker
 * between two tasks looks at the time, and at what others want of it; as it has
 * done before the first of a run's operations.
 */
static inline bool weft__call_is_lone(struct weft__worker *worker)
{
	if (!weft__alone(worker) || weft__shard_busy(weft__shard(worker)))
		return false;
	return worker->ops_left == WEFT__OPS_BUDGET ||
	       worker->ops->now(worker->runtime) - worker->tick.began_ns <
		       WEFT__TICK_NS;
}

/* Does an error of a direct call mean that the ring is to be used? */
static inline bool weft__call_wants_ring(ssize_t r)
{
	return r == -EAGAIN || r == -EOPNOTSUPP || r == -ENOSYS;
}

#endif
