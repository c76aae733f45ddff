/* SPDX-License-Identifier: MIT */
/*
 * Closing: first every operation on the descriptor is cancelled and its end
 * awaited, then the descriptor is closed.  The kernel does not do the first
 * part: a request keeps the file open, and the peer would not see its end.
 *
 *	close_begin()  sets `closing`: no operation is linked from now on
 *	drain()        cancels all operations, until none is linked
 *	close_blank()  clears the entry; `going` counts this close (FD2)
 *	number()       the kernel closes the descriptor
 *	close_gone()   the kernel has closed it: `going` drops (FD3)
 *	late_cancel()  cancels operations that were linked in between
 *
 * The entry is under its lock; `kind` and `closes` are also read without it.
 */
#include <weft/io.h>
#include <weft/time.h>

#include <errno.h>
#include <unistd.h>

#include "io/os/look.h"
#include "io/os/syscall.h"
#include "io/request/call.h"
#include "io/request/close.h"
#include "io/request/op.h"
#include "io/request/starving.h"
#include "io/request/waits.h"
#include "runtime/future/future.h"
#include "runtime/sched/wait.h"

enum { DOOMED_MAX = 16 };

/* How long until a request that could not be cancelled is tried again. */
#define AGAIN_NS 1000000u

/* How long until requests that were cancelled have probably ended. */
#define LATE_NS 100000u

struct doomed {
	uint64_t user_data;
	uint16_t shard;
};

/* Is it a request that a ring carries, marked with `marked` (0: any)?  A
 * transfer in the pool cannot be cancelled, and ends by itself. */
static bool is_doomed(struct weft__task *task, unsigned marked)
{
	unsigned flags = weft__op_of(task)->flags;

	return (flags & marked) == marked && !(flags & WEFT__OP_IN_POOL);
}

/* Lists the requests in flight that are marked with `marked` (0: all), after
 * the first `skip`, at most DOOMED_MAX; marks them with `mark`. */
static unsigned doomed_list(struct weft__fd *entry, unsigned marked,
			    unsigned mark, unsigned skip,
			    struct doomed *ret_doomed)
{
	struct weft__task *task;
	unsigned count = 0;

	weft__lock_take(&entry->lock);
	for (task = entry->waiting; task && count < DOOMED_MAX;
	     task = weft__op_of(task)->fd_next) {
		/* relaxed: begun before it was linked, under the lock. */
		uint64_t word = weft__load(&task->op, relaxed);

		if (!is_doomed(task, marked))
			continue;
		if (skip) {
			skip--;
			continue;
		}
		weft__op_of(task)->flags |= (uint16_t)mark;
		ret_doomed[count++] = (struct doomed){
			weft__user_data(WEFT__TAG_OP, weft__op_sequence(word),
					task->index),
			weft__op_of(task)->shard
		};
	}
	weft__lock_drop(&entry->lock);
	return count;
}

/* False: some could not be cancelled. */
static bool doomed_cancel(struct weft__worker *worker,
			  const struct doomed *doomed, unsigned count)
{
	bool all = true;

	for (unsigned i = 0; i < count; i++) {
		struct weft__worker *at =
			worker->runtime->workers[doomed[i].shard];

		if (weft__shard_cancel(weft__shard(at), doomed[i].user_data) !=
		    0)
			all = false;
	}
	return all;
}

/* Cancels what is in flight.  False: some could not be cancelled, or the list
 * changed meanwhile, so that some may have been overlooked. */
static bool close_cancel(struct weft__worker *worker, struct weft__fd *entry)
{
	struct doomed doomed[DOOMED_MAX];
	unsigned count, skip = 0;
	bool all = true;

	while ((count = doomed_list(entry, 0, WEFT__OP_CLOSED, skip, doomed))) {
		all &= doomed_cancel(worker, doomed, count);
		if (count < DOOMED_MAX)
			break;
		skip += count;
		all = false;
	}
	return all;
}

/* If nothing is in flight: clears the entry, and gives the number up, which may
 * belong to another file from now on (FD2).  False: something is in flight. */
static bool close_blank(struct weft__fd *entry)
{
	bool blank;

	weft__lock_take(&entry->lock);
	blank = !entry->waiting;
	if (blank) {
		entry->closing = false;
		entry->last_write = NULL;
		entry->going++;
		weft__fd_set_kind(entry, WEFT__FD_UNKNOWN);
		/* relaxed: see weft__call_closes(). */
		weft__add(&entry->closes, 1u, relaxed);
	}
	weft__lock_drop(&entry->lock);
	return blank;
}

/* -EBADF: another task is closing it. */
static int close_begin(struct weft__fd *entry, struct weft__task *task)
{
	bool closing;

	weft__lock_take(&entry->lock);
	weft__assert(!entry->owned, "weft_close: the descriptor is a stream's, "
				    "and weft_stream_close() closes it");
	closing = entry->closing;
	if (!closing) {
		entry->closing = true;
		entry->closer = weft__running_id(task);
		/* relaxed: see weft__call_closes(). */
		weft__add(&entry->closes, 1u, relaxed);
	}
	weft__lock_drop(&entry->lock);
	return closing ? -EBADF : 0;
}

enum drained {
	DRAINED,
	WOKEN_AT_END, /* all are cancelled; the last to end wakes the task */
	TO_BE_TRIED_AGAIN,
};

/* Has what is in flight cancelled, once. */
static enum drained drain(struct weft__worker *worker, struct weft__fd *entry)
{
	bool all;

	if (close_blank(entry))
		return DRAINED;
	all = close_cancel(worker, entry);
	if (close_blank(entry)) /* mutate: recheck=false */
		return DRAINED;
	return all ? WOKEN_AT_END : TO_BE_TRIED_AGAIN;
}

static int close_drain(struct weft__worker *worker, struct weft__task *task,
		       struct weft__fd *entry, uint64_t reason)
{
	enum drained state;
	int r = close_begin(entry, task);

	if (r < 0)
		return r;
	while ((state = drain(worker, entry)) != DRAINED) {
		if (state == WOKEN_AT_END)
			worker = weft__suspend(worker, reason);
		else
			worker = weft__op_pause(worker, task, reason,
						AGAIN_NS);
	}
	return 0;
}

/* The kernel has closed the descriptor.  Requests that began meanwhile begin
 * again (FD3).  Some may refer to the file that was closed, and keep it open
 * until they have ended. */
static void close_gone(struct weft__fd *entry)
{
	weft__lock_take(&entry->lock);
	entry->going--;
	weft__lock_drop(&entry->lock);
}

/* False: there is no late request. */
static bool late_cancel(struct weft__worker *worker, struct weft__fd *entry)
{
	struct doomed doomed[DOOMED_MAX];
	unsigned count = doomed_list(entry, WEFT__OP_LATE, WEFT__OP_ANEW, 0,
				     doomed);

	if (!count) /* mutate: recheck=true */
		return false;
	(void)doomed_cancel(worker, doomed, count);
	return true;
}

static void close_finish(struct weft__worker *worker, struct weft__task *task,
			 struct weft__fd *entry, uint64_t reason)
{
	close_gone(entry);
	while (late_cancel(worker, entry))
		worker = weft__op_pause(worker, task, reason, LATE_NS);
}

/* ThreadSanitizer follows descriptors through calls, and must see the close;
 * except one that would wait. */
static bool is_closed_at_once(enum weft__close kind)
{
#ifdef WEFT__TSAN
	return kind != WEFT__CLOSE_LINGER;
#else
	return kind == WEFT__CLOSE_SOCKET;
#endif
}

/* The ring passes the close of a file that would block to a thread of the
 * kernel, but would itself wait for a socket that lingers. */
static struct weft__request close_request(int fd, enum weft__close kind)
{
	return (struct weft__request){
		.opcode = WEFT__OPCODE_CLOSE,
		.flags = kind == WEFT__CLOSE_LINGER ? WEFT__REQUEST_BLOCKS : 0,
		.fd = fd,
	};
}

static int close_at_once(int fd)
{
#ifdef WEFT__TSAN
	return close(fd) < 0 ? -errno : 0;
#else
	return weft__syscall_close(fd);
#endif
}

/* Linux gives the number up before anything can interrupt the close, and the
 * number may belong to another file by now. */
static int closed(int r)
{
	return weft__op_was_interrupted(r) ? 0 : r;
}

/* The number is given up before a signal can interrupt the close. */
static int64_t close_run(void *arg)
{
	int r = weft__syscall_close(*(int *)arg);

	return r == -EINTR ? 0 : r;
}

/* A task that is interrupted lingers for a moment alone: the kernel sends the
 * rest.  False: there is no thread. */
static bool close_lingering(int fd, int *ret_result)
{
	bool ran;

	*ret_result = (int)weft__waits_run(close_run, &fd, &ran);
	for (int tries = 0;
	     !ran && tries < 4 && weft__waits_was_interrupted(*ret_result);
	     tries++)
		WEFT_SHIELD
			WEFT_WITHIN(WEFT_MS(1) << tries)
				*ret_result = (int)weft__waits_run(close_run,
								   &fd, &ran);
	return ran;
}

static int close_number(int fd)
{
	enum weft__close kind = weft__syscall_close_kind(fd);
	struct weft__request request = close_request(fd, kind);
	int r;

	if (is_closed_at_once(kind)) {
		r = close_at_once(fd);
		(void)weft__call_ready(weft__worker_self(),
				       WEFT__CLOSE_AS_BYTES);
		return r;
	}
	if (kind == WEFT__CLOSE_LINGER && close_lingering(fd, &r))
		return r;
	return weft__op_run(&request, NULL, WEFT__OP_SHIELDED);
}

/* Closing a local file does not wait for a server, unless it is the end of a
 * file without a name.  */
static bool is_quickly_closed(int fd)
{
	struct statx status;

	return weft__look_fd(fd, STATX_TYPE | STATX_NLINK, &status) == 0 &&
	       weft__look_is_local_file(&status) && status.stx_nlink > 0;
}

static int close_local_number(int fd)
{
	return is_quickly_closed(fd) ? close_at_once(fd) : close_number(fd);
}

static int close_by(int (*number)(int fd), int fd)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);
	uint64_t reason = weft__op_reason(WEFT__OP_SAYS_DRAIN, 0, fd);
	struct weft__fd *entry;
	int r;

	if (!task)
		return -EPERM;
	if (fd < 0)
		return -EBADF;
	if (weft__reactor_is_elsewhere(weft__reactor(worker->runtime), fd))
		return -EBUSY;
	/* -ENOMEM: then nothing can be in flight on it either. */
	r = weft__fd_get(&weft__reactor(worker->runtime)->fds, fd, &entry);
	if (r == -EBADF)
		return r;
	if (r < 0)
		entry = NULL;
	if (entry) {
		r = close_drain(worker, task, entry, reason);
		if (r < 0)
			return r;
	}
	weft__reactor_closes(weft__worker_self(), fd);
	r = closed(number(fd));
	if (entry)
		close_finish(weft__worker_self(), task, entry, reason);
	weft__starving_wake(weft__worker_self());
	return r;
}

/* Only a hint; close_local_number() looks at the file itself. */
static bool is_probably_local(int fd)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__fd *entry =
		worker ? weft__fd_find(&weft__reactor(worker->runtime)->fds,
				       fd) :
			 NULL;

	/* relaxed: a hint. */
	return entry && weft__fd_is_local(weft__load(&entry->kind, relaxed));
}

int weft_close(int fd)
{
	return close_by(is_probably_local(fd) ? close_local_number :
						close_number,
			fd);
}

int weft__socket_close(int fd)
{
	return close_by(close_at_once, fd);
}

/*
 * For futures.
 */

static int await_drain(struct weft__worker *worker, struct weft__task *task,
		       struct weft__fd *entry)
{
	switch (drain(worker, entry)) {
	case DRAINED:
		return 0;
	case WOKEN_AT_END:
		return WEFT_PENDING;
	default:
		return weft__await_pause(worker, task, AGAIN_NS);
	}
}

static int await_number(struct weft__worker *worker, struct weft__task *task,
			int fd)
{
	enum weft__close kind = WEFT__CLOSE_LINGER;
	struct weft__request request;

	/* Later the number may be that of another file. */
	if (task->awaits == WEFT__AWAITS_NUMBER) {
		weft__reactor_closes(worker, fd);
		kind = weft__syscall_close_kind(fd);
		if (is_closed_at_once(kind))
			return closed(close_at_once(fd));
	}
	request = close_request(fd, kind);
	return closed(weft__op_await(WEFT__AWAITS_CLOSE, worker, task, &request,
				     NULL, WEFT__OP_SHIELDED));
}

static int await_close(struct weft__worker *worker, struct weft__task *task,
		       int fd, struct weft__fd *entry)
{
	int r;

	if (task->awaits == WEFT__AWAITS_OTHERS) {
		r = await_drain(worker, task, entry);
		if (r == WEFT_PENDING)
			return r;
		task->awaits = WEFT__AWAITS_NUMBER;
	}
	if (task->awaits != WEFT__AWAITS_LATE) {
		r = await_number(worker, task, fd);
		if (r == WEFT_PENDING)
			return r;
		if (!entry) {
			weft__op_of(task)->reason = 0;
			return weft__await_end(worker, task, r);
		}
		close_gone(entry);
		weft__op_of(task)->fd = r;
		weft__op_of(task)->reason =
			weft__op_reason(WEFT__OP_SAYS_DRAIN, 0, fd);
		task->awaits = WEFT__AWAITS_LATE;
	}
	if (late_cancel(worker, entry)) /* mutate: recheck=false */
		return weft__await_pause(worker, task, LATE_NS);
	weft__op_of(task)->reason = 0;
	weft__starving_wake(worker);
	return weft__await_end(worker, task, weft__op_of(task)->fd);
}

/* 0, or an error. */
static int await_close_begin(struct weft__worker *worker,
			     struct weft__task *task, int fd)
{
	struct weft__reactor *reactor = weft__reactor(worker->runtime);
	struct weft__fd *entry;
	int r;

	if (weft__reactor_is_elsewhere(reactor, fd))
		return -EBUSY;
	r = weft__fd_get(&reactor->fds, fd, &entry);
	if (r == -EBADF)
		return r;
	if (r == 0 && close_begin(entry, task) < 0)
		return -EBADF;
	/* As in weft_close(): without memory there is no entry. */
	weft__op_of(task)->closes = r == 0;
	weft__op_of(task)->asks = (uint32_t)fd;
	task->awaits = r == 0 ? WEFT__AWAITS_OTHERS : WEFT__AWAITS_NUMBER;
	return 0;
}

int weft_await_close(int fd)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__polled(worker);
	struct weft__fd *entry;
	int r;

	if (!task || task->awaits == WEFT__AWAITS_END)
		return -EPERM;
	weft__assert(task->awaits == WEFT__AWAITS_NOTHING ||
			     task->awaits >= WEFT__AWAITS_OTHERS,
		     "a future closes before what it awaits has come");
	weft__assert(task->awaits == WEFT__AWAITS_NOTHING ||
			     weft__op_of(task)->asks == (uint32_t)fd,
		     WEFT__AWAITS_ANOTHER);
	if (task->awaits == WEFT__AWAITS_NOTHING) {
		r = await_close_begin(worker, task, fd);
		if (r < 0)
			return r;
		weft__op_of(task)->reason =
			weft__op_reason(WEFT__OP_SAYS_DRAIN, 0, fd);
	}
	/* An entry that was made after the beginning has no part in this
	 * close. */
	entry = weft__op_of(task)->closes ?
			weft__fd_find(&weft__reactor(worker->runtime)->fds,
				      fd) :
			NULL;
	r = await_close(worker, task, fd, entry);
	if (r != WEFT_PENDING)
		weft__op_of(task)->call = 0;
	return r;
}
