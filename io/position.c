/* SPDX-License-Identifier: MIT */
/*
 * Transfers at a file's position that may have to wait: on a thread of the
 * blocking pool, by preadv2(2) or pwritev2(2).  The kernel holds the lock of
 * the position from the look at it to its move.  So the transfer is atomic
 * beside those of other tasks, threads and processes, also with O_APPEND.
 *
 *	the task                            a thread of the pool
 *	links itself to the descriptor
 *	asks for a thread, suspends  -----> makes the call
 *	unlinks itself             <------- its result
 *
 * A close of the descriptor waits until the task has unlinked itself.  It
 * cannot end the call; a task that is interrupted while it waits for a thread
 * leaves without the call.
 *
 * Writes of one local file wait for each other in the kernel, so each is put
 * behind the one before it and one thread makes them, in the order of arrival.
 * (Those in the list are alive: their tasks take them out before they leave.)
 * Elsewhere one that hangs would hold up others that the file's server may
 * carry out.
 *
 * A thread takes the number, not the file.  So one that a close is giving up
 * (FD3) is waited for: if it has the same file afterwards, that is meant, and
 * else the file was closed.  The kernel gives a number up first, and may then
 * linger: so that the next file with the number does not wait for that, the
 * wait is short.
 *
 * While a transfer is in the pool, others at this position go there too
 * (WEFT__FD_POOLED): a call of theirs would hold up their worker at the lock.
 *
 * Rejected
 *   The ring.  It reads the position without the lock.  And with the position
 *   looked up before and moved after it, tasks overwrite what others wrote.
 */
#include "io/position.h"

#include <weft/time.h>

#include "io/os/look.h"
#include "io/os/sigpipe.h"
#include "io/request/call.h"
#include "runtime/blocking/blocking.h"

/* How long until a number is looked at again that the kernel is closing, and
 * how often. */
#define GOING_NS 50000u
enum { GOING_LOOKS = 20 };

/* Among the writes of a descriptor that wait for each other; under its lock. */
struct weft__write {
	struct weft__job job; /* the pool's */
	struct weft__write *ahead;
	struct weft__write *behind;
};

struct transfer {
	const struct weft__request *request;
	struct weft__write write;
	bool begun;
};

/* A file raises no SIGPIPE, but its number may be that of a pipe by now. */
static int64_t transfer_run(void *arg)
{
	struct transfer *transfer = arg;
	bool blocked = weft__sigpipe_block();
	ssize_t r;

	transfer->begun = true;
	r = weft__request_wait(transfer->request);
	weft__sigpipe_restore(blocked, r == -EPIPE);
	return r;
}

/* ---- The line of writes -------------------------------------------------- */

/* Puts the write behind the last that has not been taken back.  If that has
 * ended, all before it have.  Under the lock. */
static void line_join(struct weft__fd *entry, struct weft__write *write)
{
	struct weft__write *ahead = entry->last_write;

	write->ahead = ahead;
	if (ahead)
		ahead->behind = write;
	entry->last_write = write;
	while (ahead && weft__blocking_follow(&ahead->job, &write->job) ==
				WEFT__FOLLOWS_TAKEN)
		ahead = ahead->ahead;
}

/* Under the lock.  A close that waits has the word. */
static void line_leave(struct weft__fd *entry, struct weft__write *write)
{
	if (write->ahead)
		write->ahead->behind = write->behind;
	if (write->behind)
		write->behind->ahead = write->ahead;
	else if (!entry->closing)
		entry->last_write = write->ahead;
}

/* ---- In the list of the descriptor --------------------------------------- */

enum linked { LINKED, CLOSING, GOING };

/* write: to be put in line; or NULL.  lingers: the number was given up, though
 * the kernel still closes. */
static enum linked link_once(struct weft__fd *entry, int fd,
			     struct weft__write *write, bool lingers)
{
	struct weft__task *task = weft__worker_self()->current;
	enum linked state;

	weft__lock_take(&entry->lock);
	state = entry->closing		 ? CLOSING :
		entry->going && !lingers ? GOING :
					   LINKED;
	if (state == LINKED) { /* mutate: recheck=true */
		weft__op_of(task)->fd = fd;
		weft__op_of(task)->flags = WEFT__OP_IN_POOL;
		weft__fd_link(entry, task);
		/* relaxed: a hint. */
		weft__or(&entry->kind, (uint8_t)WEFT__FD_POOLED, relaxed);
		if (write)
			line_join(entry, write);
	}
	weft__lock_drop(&entry->lock);
	return state;
}

static bool is_same(const struct statx *a, const struct statx *b)
{
	return a->stx_ino == b->stx_ino &&
	       a->stx_dev_major == b->stx_dev_major &&
	       a->stx_dev_minor == b->stx_dev_minor;
}

static int await_going(struct weft__fd *entry, int fd)
{
	struct statx before, after;
	bool going = true;
	int r = weft__look_fd(fd, STATX_INO, &before);

	if (r < 0)
		return r;
	for (int i = 0; going && i < GOING_LOOKS; i++) {
		r = weft_sleep(GOING_NS);
		if (r < 0)
			return r;
		weft__lock_take(&entry->lock);
		going = entry->going;
		weft__lock_drop(&entry->lock);
	}
	r = weft__look_fd(fd, STATX_INO, &after);
	if (r < 0)
		return r;
	return is_same(&before, &after) ? 0 : -EBADF;
}

static int link_in(struct weft__fd *entry, int fd, struct weft__write *write)
{
	enum linked state = link_once(entry, fd, write, false);
	int r = 0;

	if (state == GOING) {
		r = await_going(entry, fd);
		if (r == 0)
			state = link_once(entry, fd, write, true);
	}
	if (state == LINKED)
		return 0;
	if (r == 0)
		r = -EBADF;
	/* Charged, so that a loop of such calls lets the close go on. */
	return (int)weft__call_ready(weft__worker_self(), r);
}

int weft__position_enter(struct weft__fd *entry, int fd)
{
	return link_in(entry, fd, NULL);
}

/* Under the lock. */
static bool has_others(const struct weft__fd *entry)
{
	struct weft__task *task = entry->waiting;

	while (task && !(weft__op_of(task)->flags & WEFT__OP_IN_POOL))
		task = weft__op_of(task)->fd_next;
	return task != NULL;
}

/* Wakes the task that closes the descriptor, if nothing else is in flight. */
static void unlink_from(struct weft__fd *entry, struct weft__write *write)
{
	struct weft__worker *worker = weft__worker_self();
	uint64_t closer;

	weft__lock_take(&entry->lock);
	closer = weft__fd_unlink(entry, worker->current);
	if (write)
		line_leave(entry, write);
	if (!has_others(entry))
		/* relaxed: a hint. */
		weft__and(&entry->kind, (uint8_t)~WEFT__FD_POOLED, relaxed);
	weft__lock_drop(&entry->lock);
	if (weft__unlikely(closer != 0))
		/* mutate: wake */
		(void)weft__wake(worker, weft__task_at(worker->runtime, closer),
				 closer);
}

void weft__position_leave(struct weft__fd *entry)
{
	unlink_from(entry, NULL);
}

/* ---- Transfers ----------------------------------------------------------- */

/* Without a thread this one waits for the disk. */
static int64_t transfer_finish(struct transfer *transfer, int begun)
{
	int64_t r = begun;

	weft__count(weft__worker_self(), WEFT__N_OPS, 1);
	if (begun == 0)
		r = weft__blocking_finish(&transfer->write.job);
	if (!transfer->begun && (r == -EAGAIN || r == -ENOMEM))
		r = transfer_run(transfer);
	return r;
}

ssize_t weft__position_run(struct weft__fd *entry,
			   const struct weft__request *request, bool in_line)
{
	struct weft__worker *worker = weft__worker_self();
	struct transfer transfer = {
		.request = request,
		.write.job = { .fn = transfer_run, .arg = &transfer },
	};
	struct weft__job *job = &transfer.write.job;
	int begun = weft__blocking_begin(&weft__reactor(worker->runtime)->files,
					 job);
	struct weft__write *write = in_line && begun == 0 ? &transfer.write :
							    NULL;
	ssize_t r;

	if (begun < 0 && begun != -ENOMEM)
		return begun;
	r = link_in(entry, request->fd, write);
	if (r < 0)
		return r;
	r = (ssize_t)transfer_finish(&transfer, begun);
	unlink_from(entry, write);
	return job->waited ? r : weft__call_ready(weft__worker_self(), r);
}
