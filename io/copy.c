/* SPDX-License-Identifier: MIT */
/*
 * Copying between any two descriptors.
 *
 * A byte is taken from the source when it is written, not before: so nothing is
 * lost where the call ends.  The kinds of both choose the way:
 *
 *	from                to                  by
 *	a pipe, a socket*   a pipe, a socket*   splice(2), if one is a pipe
 *	a socket*           a socket*           splice(2) through a pipe of the
 *	                                        call's own, if the caller lets
 *	                                        it take ahead
 *	a file              a socket            weft_sendfile()
 *	a file              a file              copy_file_range(2), apart
 *	a pipe              another             tee(2) and a write; then the
 *	                                        bytes are taken out of the pipe
 *	a socket            another             a look at the data (MSG_PEEK), a
 *	                                        write; then they are received
 *	a file              another             a read at an offset and a write;
 *	                                        then the position moves
 *	another             any                 when there is room, a read and a
 *	                                        write: what is read is taken
 *
 *	* that is O_NONBLOCK: see sendfile.c
 *
 * While a call waits for input it holds no buffer.
 *
 * Rejected
 *   IORING_OP_SPLICE: it takes a thread of the kernel for each piece, and one
 *   that waits for a socket without O_NONBLOCK holds that thread.
 *   splice(2) to a file: it moves the file's position without the lock that
 *   makes a write atomic, and refuses O_APPEND.
 */
#include <weft/io.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>

#include "io/copy_end.h"
#include "io/os/splice.h"
#include "io/position.h"
#include "io/request/call.h"
#include "runtime/base/memory.h"
#include "runtime/blocking/blocking.h"

/* Of a copy through memory; of one splice; of one job of the pool, and what is
 * worth one. */
enum {
	PIECE_BYTES = 64 << 10,
	SPLICE_BYTES = 1 << 20,
	RANGE_BYTES = 4 << 20,
	RANGE_MIN = 256 << 10,
};

/* A destination with room takes that much without a wait, nearly always. */
enum { READ_BYTES = PIPE_BUF };

struct copying {
	struct weft__copy_end to, from;
	uint64_t left, done, taken;
	bool ahead; /* may take what it does not write */
	ssize_t (*step)(struct copying *copying);
	unsigned tries;	    /* waits in a row */
	int64_t at, to_at;  /* positions of files */
	char *piece;	    /* of PIECE_BYTES, while it is needed */
	int own[2];	    /* a pipe, once it is needed, or -1 */
	size_t held;	    /* bytes in it that are to be written */
};

static bool was_closed(const struct copying *copying)
{
	return weft__copy_end_closed(&copying->to) ||
	       weft__copy_end_closed(&copying->from);
}

static size_t at_most(const struct copying *copying, size_t bytes)
{
	return copying->left < bytes ? (size_t)copying->left : bytes;
}

static void wrote(struct copying *copying, size_t bytes)
{
	copying->done += bytes;
	copying->left -= bytes;
	copying->tries = 0;
}

/* ---- Pieces, pipes, waits ------------------------------------------------ */

static const struct weft_allocator *memory_here(void)
{
	return weft__worker_self()->runtime->memory;
}

static int piece_get(struct copying *copying)
{
	if (!copying->piece)
		copying->piece = weft__memory_new(memory_here(), PIECE_BYTES);
	return copying->piece ? 0 : -ENOMEM;
}

static void piece_drop(struct copying *copying)
{
	weft__memory_free(memory_here(), copying->piece, PIECE_BYTES);
	copying->piece = NULL;
}

static int own_get(struct copying *copying)
{
	return copying->own[0] < 0 ? weft__splice_pipe(copying->own) : 0;
}

static int own_read(const struct copying *copying, size_t bytes)
{
	return weft__splice_read(copying->own[0], copying->piece, bytes);
}

/* Does the kernel not move such bytes so? */
static bool is_refused(ssize_t r)
{
	return r == -EINVAL || r == -EOPNOTSUPP || r == -ENOSYS;
}

static int await(struct copying *copying, const struct weft__copy_end *end,
		 unsigned events)
{
	return weft__op_await_ready(end->fd, end->entry, events,
				    copying->tries++);
}

static int await_input(struct copying *copying)
{
	piece_drop(copying);
	return await(copying, &copying->from, POLLIN);
}

/* With a splice either the source has nothing, or the destination no room. */
static int await_either(struct copying *copying)
{
	int r = weft__syscall_poll(copying->from.fd, POLLIN);

	if (r == 0)
		return await_input(copying);
	return r < 0 ? r : await(copying, &copying->to, POLLOUT);
}

/* Writes a part of the piece: an error, or how many bytes. */
static int write_out(struct copying *copying, size_t bytes, size_t *ret_done)
{
	int r;

	*ret_done = 0;
	if (was_closed(copying))
		return -ECANCELED;
	r = weft_write_all(copying->to.fd, copying->piece, bytes, ret_done);
	wrote(copying, *ret_done);
	return r;
}

/* ---- Steps through memory -------------------------------------------------
 * Each moves a part: above 0, 0 at the end of the source, or an error. */

/* Receives what was looked at, and written. */
static int take_received(struct copying *copying, size_t bytes)
{
	while (bytes > 0 && !weft__copy_end_closed(&copying->from)) {
		ssize_t n = weft__syscall_recv(copying->from.fd, copying->piece,
					       bytes, 0);

		if (n <= 0)
			return -EIO; /* another task has taken them */
		bytes -= (size_t)n;
		copying->taken += (size_t)n;
	}
	return 0;
}

static ssize_t step_peek(struct copying *copying)
{
	size_t some;
	ssize_t n = piece_get(copying);
	int r, taken;

	if (n < 0)
		return n;
	n = weft__syscall_recv(copying->from.fd, copying->piece,
			       at_most(copying, PIECE_BYTES), MSG_PEEK);
	if (n == -EAGAIN)
		return await_input(copying);
	if (n <= 0)
		return n;
	r = write_out(copying, (size_t)n, &some);
	taken = take_received(copying, some);
	return r < 0 ? r : taken < 0 ? taken : n;
}

/* Input that cannot be looked at is read when it can probably be written. */
static ssize_t step_read(struct copying *copying)
{
	size_t some;
	ssize_t n = weft__syscall_poll(copying->to.fd, POLLOUT);
	int r;

	if (n == 0)
		n = await(copying, &copying->to, POLLOUT);
	if (n >= 0)
		n = piece_get(copying);
	if (n < 0)
		return n;
	if (was_closed(copying))
		return -ECANCELED;
	n = weft_read(copying->from.fd, copying->piece,
		      at_most(copying, READ_BYTES));
	if (n <= 0)
		return n;
	copying->taken += (size_t)n;
	r = write_out(copying, (size_t)n, &some);
	return r < 0 ? r : n;
}

/* Takes out of the pipe what was written. */
static int take_piped(struct copying *copying, size_t bytes)
{
	while (bytes > 0 && !weft__copy_end_closed(&copying->from)) {
		ssize_t n = weft__splice_in(copying->from.fd, copying->own[1],
					    bytes);

		if (n <= 0 || own_read(copying, (size_t)n) < 0)
			return -EIO;
		bytes -= (size_t)n;
		copying->taken += (size_t)n;
	}
	return 0;
}

static ssize_t step_tee(struct copying *copying)
{
	size_t some;
	ssize_t n = piece_get(copying);
	int r, taken;

	if (n == 0)
		n = own_get(copying);
	if (n < 0)
		return n;
	n = weft__splice_tee(copying->from.fd, copying->own[1],
			     at_most(copying, PIECE_BYTES));
	if (n == -EAGAIN)
		return await_input(copying);
	if (is_refused(n))
		copying->step = step_read;
	if (n <= 0)
		return is_refused(n) ? 1 : n;
	r = own_read(copying, (size_t)n);
	if (r < 0)
		return r;
	r = write_out(copying, (size_t)n, &some);
	taken = take_piped(copying, some);
	return r < 0 ? r : taken < 0 ? taken : n;
}

static ssize_t step_pread(struct copying *copying)
{
	size_t some;
	ssize_t n = piece_get(copying);
	int r;

	if (n < 0)
		return n;
	n = weft_pread(copying->from.fd, copying->piece,
		       at_most(copying, PIECE_BYTES), (off_t)copying->at);
	if (n <= 0)
		return n;
	r = write_out(copying, (size_t)n, &some);
	copying->at += (int64_t)some;
	copying->taken += some;
	return r < 0 ? r : n;
}

/* The step for that source, whatever the destination is. */
static ssize_t step_plainly(struct copying *copying)
{
	static ssize_t (*const steps[])(struct copying *) = {
		[WEFT__COPY_FILE] = step_pread,
		[WEFT__COPY_PIPE] = step_tee,
		[WEFT__COPY_SOCKET] = step_peek,
		[WEFT__COPY_DEVICE] = step_read,
	};

	copying->step = steps[copying->from.what];
	return 1;
}

/* ---- Steps without a copy ------------------------------------------------ */

/* The program may have changed it since. */
static bool may_block(const struct weft__copy_end *end)
{
	return end->what == WEFT__COPY_SOCKET &&
	       !weft__syscall_never_blocks(end->fd);
}

static bool either_may_block(const struct copying *copying)
{
	return may_block(&copying->to) || may_block(&copying->from);
}

static ssize_t step_splice(struct copying *copying)
{
	ssize_t n;

	if (either_may_block(copying))
		return step_plainly(copying);
	n = weft__splice(copying->from.fd, copying->to.fd,
			 at_most(copying, SPLICE_BYTES));
	if (n == -EAGAIN)
		return await_either(copying);
	if (is_refused(n))
		return step_plainly(copying);
	if (n <= 0)
		return n;
	copying->taken += (size_t)n;
	wrote(copying, (size_t)n);
	return n;
}

static ssize_t fill_own(struct copying *copying)
{
	ssize_t n = own_get(copying);

	if (n < 0)
		return n;
	if (either_may_block(copying))
		return step_plainly(copying);
	n = weft__splice_in(copying->from.fd, copying->own[1],
			    at_most(copying, SPLICE_BYTES));
	if (n == -EAGAIN)
		return await_input(copying);
	if (is_refused(n))
		return step_plainly(copying);
	if (n <= 0)
		return n;
	copying->taken += (size_t)n;
	copying->held = (size_t)n;
	return n;
}

static ssize_t step_through(struct copying *copying)
{
	ssize_t n;

	if (copying->held == 0)
		return fill_own(copying);
	/* It was O_NONBLOCK when the bytes were taken. */
	n = weft__splice(copying->own[0], copying->to.fd, copying->held);
	if (n == -EAGAIN)
		return await(copying, &copying->to, POLLOUT);
	if (n <= 0)
		return n < 0 ? n : -EIO;
	copying->held -= (size_t)n;
	wrote(copying, (size_t)n);
	return n;
}

static ssize_t step_sendfile(struct copying *copying)
{
	size_t done, bytes = at_most(copying, INT_MAX);
	ssize_t n = weft_sendfile(copying->to.fd, copying->from.fd,
				  (off_t)copying->at, bytes, &done);

	copying->at += (int64_t)done;
	copying->taken += done;
	wrote(copying, done);
	return n < 0 || done == bytes ? n : 0;
}

/* On a thread of the pool: it waits for the disk. */
static int64_t range_run(void *arg)
{
	struct copying *copying = arg;
	int64_t size = (int64_t)copying->from.status.stx_size;
	size_t bytes = at_most(copying, RANGE_BYTES);

	if ((int64_t)bytes > size - copying->at)
		bytes = (size_t)(size - copying->at);
	if (was_closed(copying))
		return -ECANCELED;
	return weft__splice_range(copying->from.fd, &copying->at,
				  copying->to.fd, &copying->to_at, bytes);
}

/* A close of the destination waits for the job: a number that is used again
 * may not get the bytes. */
static int64_t range_in_pool(struct copying *copying)
{
	struct weft__reactor *reactor =
		weft__reactor(weft__worker_self()->runtime);
	struct weft__copy_end *to = &copying->to;
	int64_t n = weft__position_enter(to->entry, to->fd);

	if (n < 0)
		return n;
	n = weft_blocking_lane(&reactor->files, range_run, copying);
	if (n > 0)
		(void)weft__splice_seek(to->fd, (off_t)copying->to_at);
	weft__position_leave(to->entry);
	return n;
}

/* Another step does what that refuses, or finds out why not. */
static ssize_t step_range(struct copying *copying)
{
	int64_t size = (int64_t)copying->from.status.stx_size, n;

	if (copying->left < RANGE_MIN || size - copying->at < RANGE_MIN)
		return step_plainly(copying);
	n = range_in_pool(copying);
	if (n == -ECANCELED || n == -ETIMEDOUT)
		return (ssize_t)n;
	if (n <= 0)
		return step_plainly(copying);
	copying->taken += (uint64_t)n;
	wrote(copying, (size_t)n);
	return (ssize_t)n;
}

/* ---- The call ------------------------------------------------------------ */

/* A file that is copied into itself would grow for ever, or be overwritten
 * before it is read. */
static int file_into_itself(struct copying *copying, bool appends)
{
	int64_t size = (int64_t)copying->from.status.stx_size, end;
	int64_t to_at = appends ? size : copying->to_at;

	if (size <= copying->at)
		copying->left = 0;
	else if (copying->left > (uint64_t)(size - copying->at))
		copying->left = (uint64_t)(size - copying->at);
	end = copying->at + (int64_t)copying->left;
	return to_at < end && copying->at < to_at + (int64_t)copying->left ?
		       -EINVAL :
		       0;
}

static int files_open(struct copying *copying)
{
	bool appends = weft__syscall_flags(copying->to.fd) & O_APPEND;

	copying->to_at = (int64_t)weft__syscall_position(copying->to.fd);
	if (copying->to_at < 0)
		return (int)copying->to_at;
	if (!appends && S_ISREG(copying->from.status.stx_mode) &&
	    S_ISREG(copying->to.status.stx_mode))
		copying->step = step_range;
	return weft__copy_end_is(&copying->to, &copying->from) ?
		       file_into_itself(copying, appends) :
		       0;
}

static int choose(struct copying *copying)
{
	enum weft__copy_what to = copying->to.what, from = copying->from.what;
	bool may = !either_may_block(copying);

	(void)step_plainly(copying);
	if (from == WEFT__COPY_FILE) {
		copying->at =
			(int64_t)weft__syscall_position(copying->from.fd);
		if (copying->at < 0)
			return (int)copying->at;
		if (to == WEFT__COPY_SOCKET)
			copying->step = step_sendfile;
		return to == WEFT__COPY_FILE ? files_open(copying) : 0;
	}
	if (from == WEFT__COPY_PIPE && to == WEFT__COPY_PIPE &&
	    weft__copy_end_is(&copying->to, &copying->from))
		return -EINVAL;
	if (!may || from == WEFT__COPY_DEVICE ||
	    (to != WEFT__COPY_PIPE && to != WEFT__COPY_SOCKET))
		return 0;
	if (from == WEFT__COPY_PIPE || to == WEFT__COPY_PIPE)
		copying->step = step_splice;
	else if (copying->ahead)
		copying->step = step_through;
	return 0;
}

static int copying_run(struct copying *copying)
{
	struct weft__worker *worker;
	ssize_t n = 1;

	while (n > 0 && copying->left > 0) {
		n = weft__call_begin(&worker);
		if (n == 0)
			n = was_closed(copying) ? -ECANCELED :
						  copying->step(copying);
		if (n > 0)
			(void)weft__call_ready(weft__worker_self(), n);
	}
	return (int)weft__call_overtaken(n < 0 ? n : 0, was_closed(copying));
}

static void copying_end(struct copying *copying)
{
	piece_drop(copying);
	for (int i = 0; i < 2 && copying->own[0] >= 0; i++)
		weft__syscall_close(copying->own[i]);
	if (copying->from.what == WEFT__COPY_FILE && copying->done &&
	    !weft__copy_end_closed(&copying->from))
		(void)weft__splice_seek(copying->from.fd, (off_t)copying->at);
}

static int copying_open(struct copying *copying)
{
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r == 0)
		r = weft__copy_end_open(worker, &copying->to, O_WRONLY);
	if (r == 0)
		r = weft__copy_end_open(worker, &copying->from, O_RDONLY);
	return r < 0 ? r : choose(copying);
}

int weft_copy(int to_fd, int from_fd, uint64_t bytes_max, uint64_t *ret_done,
	      uint64_t *ret_taken)
{
	struct copying copying = {
		.to.fd = to_fd,
		.from.fd = from_fd,
		.left = bytes_max,
		.ahead = ret_taken != NULL,
		.own = { -1, -1 },
	};
	int r = copying_open(&copying);

	if (r == 0) {
		r = copying_run(&copying);
		copying_end(&copying);
	}
	if (ret_done)
		*ret_done = copying.done;
	if (ret_taken)
		*ret_taken = copying.taken;
	return r;
}
