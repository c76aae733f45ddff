/* SPDX-License-Identifier: MIT */
/*
 * Call - the parts that the public calls on a descriptor have in common: their
 * beginning and end, the count that shows that a descriptor was closed between
 * two steps, the budget of operations that are done without waiting, and the
 * choice between a system call and the ring.
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

/* The most that the kernel moves in one call (MAX_RW_COUNT). */
#define WEFT__BYTES_MAX ((size_t)0x7ffff000)

static inline unsigned weft__bytes(size_t bytes)
{
	return (unsigned)(bytes < WEFT__BYTES_MAX ? bytes : WEFT__BYTES_MAX);
}

/* The start of a call that may be done without waiting; returns the running
 * task's worker.  0, or -EPERM, -ECANCELED, -ETIMEDOUT. */
static inline int weft__call_begin(struct weft__worker **ret_worker)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);

	if (weft__unlikely(!task))
		return -EPERM;
	*ret_worker = worker;
	return weft__interrupted(worker, task);
}

/* The entry of a descriptor, for all of a call: 0, -EBADF, -ENOMEM. */
static inline int weft__call_entry(struct weft__worker *worker, int fd,
				   struct weft__fd **ret_entry)
{
	return weft__fd_get(&weft__reactor(worker->runtime)->fds, fd,
			    ret_entry);
}

/* weft__call_begin() on a descriptor; also returns its entry. */
static inline int weft__call_begin_fd(int fd, struct weft__worker **ret_worker,
				      struct weft__fd **ret_entry)
{
	int r = weft__call_begin(ret_worker);

	if (weft__unlikely(r < 0))
		return r;
	return weft__call_entry(*ret_worker, fd, ret_entry);
}

/*
 * Counts the closes of a number: one when a close begins, one when the number
 * is given up.  A call of several steps that finds another count than at its
 * start was overtaken by weft_close() between two steps: the number may belong
 * to another file now, and the call is to end (-ECANCELED).
 */
static inline uint32_t weft__call_closes_long(int fd)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__fd *entry =
		worker ? weft__fd_find(&weft__reactor(worker->runtime)->fds,
				       fd) :
			 NULL;

	return entry ? weft__fd_closes_long(entry) : 0;
}

/* Enough of it for a call that does not wait at another descriptor. */
static inline uint8_t weft__call_closes(int fd)
{
	return (uint8_t)weft__call_closes_long(fd);
}

/* A future cannot begin to await now.  It does so in its next turn, unless
 * another close of the number has begun by then.  Returns WEFT_PENDING. */
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

/* Has a close of the number begun since the future's call did? */
static inline bool weft__call_is_closed(struct weft__task *task, int fd)
{
	return weft__op_of(task)->closes != weft__call_closes(fd);
}

/* Between two steps of a future's call: 0, or the reason to end it. */
static inline int weft__call_goes_on(struct weft__worker *worker,
				     struct weft__task *task, int fd)
{
	return weft__call_is_closed(task, fd) ?
		       -ECANCELED :
		       weft__future_interrupted(worker, task);
}

/* That turn has come: 0, or the reason not to begin. */
static inline int weft__call_now(struct weft__worker *worker,
				 struct weft__task *task, int fd)
{
	bool closed = weft__call_is_closed(task, fd);

	weft__assert(weft__op_of(task)->fd == fd, WEFT__AWAITS_ANOTHER);
	weft__op_of(task)->call = 0;
	(void)weft__op_await_end(worker, task, 0);
	return closed ? -ECANCELED : weft__future_interrupted(worker, task);
}

/* weft__await_enter() for calls on a descriptor: a call that has to wait for
 * its turn counts as begun, and ends when the descriptor is closed. */
static inline int weft__call_await(enum weft__awaits what, int fd,
				   struct weft__worker **ret_worker,
				   struct weft__task **ret_task)
{
	int r = weft__await_enter(what, NULL, 0, ret_worker, ret_task);

	if (weft__unlikely(r == WEFT_PENDING))
		return weft__call_later(what, *ret_task, fd,
					weft__call_closes(fd));
	if (r == 0 && weft__unlikely(weft__op_of(*ret_task)->begins))
		return weft__call_now(*ret_worker, *ret_task, fd);
	return r;
}

/* The result of a call of several steps: if a close came between the last look
 * at the count and the step, the step failed with -EBADF. */
static inline ssize_t weft__call_overtaken(ssize_t r, bool was_closed)
{
	return r == -EBADF && was_closed ? -ECANCELED : r;
}

/* The result of a call whose arguments are refused. */
static inline int weft__call_refused(int error)
{
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	return r < 0 ? r : error;
}

/* A long copy counts as several operations, so that other tasks and deadlines
 * do not wait for 128 long copies. */
static inline void weft__call_charge(struct weft__worker *worker, size_t bytes)
{
	enum { BYTES_PER_OP = 16 << 10 };

	weft__charge_ops(worker, bytes / BYTES_PER_OP);
}

/* Ends a call that was done without waiting. */
static inline ssize_t weft__call_ready(struct weft__worker *worker, ssize_t r)
{
	if (r > 0)
		weft__call_charge(worker, (size_t)r);
	weft__charge_call(worker);
	return r;
}

/*
 * Is a system call less work than a request, so that the task goes on
 * immediately?  Where all requests of a tick share one entry into the kernel, a
 * request that is alone has no other to share with.  This may not last longer
 * than a tick: only a worker between two tasks looks at the time and at
 * requests of other workers.  Before the first of a run's operations it has
 * just done so.
 */
static inline bool weft__call_is_direct(struct weft__worker *worker)
{
	const struct weft__shard *shard = weft__shard(worker);

	if (shard->ring.batches &&
	    (!weft__alone(worker) || weft__shard_has_work(shard)))
		return false;
	return worker->ops_left == WEFT__OPS_BUDGET ||
	       worker->ops->now(worker->runtime) - worker->tick.began_ns <
		       WEFT__TICK_NS;
}

/* Does the error of a direct call mean that the ring has to be used? */
static inline bool weft__call_wants_ring(ssize_t r)
{
	return r == -EAGAIN || r == -EOPNOTSUPP || r == -ENOSYS;
}

#endif
