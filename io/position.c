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
 * (`last_write` is alive: its task clears it before it leaves.)  Elsewhere one
 * that hangs would hold up others that the file's server may carry out.
 *
 * While a transfer is in the pool, others at this position go there too
 * (WEFT__FD_POOLED): a call of theirs would hold up their worker at the lock.
 *
 * Rejected
 *   The ring.  It reads the position without the lock.  And with the position
 *   looked up before and moved after it, tasks overwrite what others wrote.
 */
#include "io/position.h"

#include "io/os/sigpipe.h"
#include "io/request/call.h"
#include "runtime/blocking/blocking.h"

struct transfer {
	const struct weft__request *request;
	struct weft__job job;
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

/* Under the lock. */
static void line_up(struct weft__fd *entry, struct weft__job *write)
{
	if (entry->last_write)
		weft__blocking_follow(entry->last_write, write);
	entry->last_write = write;
}

/* write: to be put behind others; or NULL. */
static int link_in(struct weft__fd *entry, int fd, struct weft__job *write)
{
	struct weft__task *task = weft__worker_self()->current;
	bool closing;

	weft__lock_take(&entry->lock);
	closing = entry->closing;
	if (!closing) { /* mutate: recheck=true */
		weft__op_of(task)->fd = fd;
		weft__op_of(task)->flags = WEFT__OP_IN_POOL;
		weft__fd_link(entry, task);
		/* relaxed: a hint. */
		weft__or(&entry->kind, (uint8_t)WEFT__FD_POOLED, relaxed);
		if (write)
			line_up(entry, write);
	}
	weft__lock_drop(&entry->lock);
	return closing ? -EBADF : 0;
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
static void unlink_from(struct weft__fd *entry, const struct weft__job *write)
{
	struct weft__worker *worker = weft__worker_self();
	uint64_t closer;

	weft__lock_take(&entry->lock);
	closer = weft__fd_unlink(entry, worker->current);
	if (write && !entry->closing && entry->last_write == write)
		entry->last_write = NULL;
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

ssize_t weft__position_run(struct weft__fd *entry,
			   const struct weft__request *request, bool in_line)
{
	struct weft__worker *worker = weft__worker_self();
	struct transfer transfer = {
		.request = request,
		.job = { .fn = transfer_run, .arg = &transfer },
	};
	int begun = weft__blocking_begin(&weft__reactor(worker->runtime)->files,
					 &transfer.job);
	struct weft__job *write = in_line && begun == 0 ? &transfer.job : NULL;
	int64_t r;

	if (begun < 0 && begun != -ENOMEM)
		return begun;
	r = link_in(entry, request->fd, write);
	if (r < 0)
		return (ssize_t)r;
	weft__count(worker, WEFT__N_OPS, 1);
	r = begun < 0 ? begun : weft__blocking_finish(&transfer.job);
	/* There is no thread: then this one waits for the disk. */
	if (!transfer.begun && (r == -EAGAIN || r == -ENOMEM))
		r = transfer_run(&transfer);
	unlink_from(entry, write);
	return (ssize_t)r;
}
