/* SPDX-License-Identifier: MIT */
#include "io/fifo.h"

#include <errno.h>
#include <poll.h>

#include "io/os/look.h"
#include "io/os/sigpipe.h"
#include "io/os/syscall.h"
#include "io/request/call.h"
#include "io/request/op.h"

/* Not a state that is returned. */
enum { WAITS = -1 };

static bool is_fifo(int fd)
{
	struct statx status;

	return weft__look_fd(fd, STATX_TYPE, &status) == 0 &&
	       S_ISFIFO(status.stx_mode);
}

/* Without waiting: of a FIFO -EOPNOTSUPP, but for arguments that are wrong and
 * for no bytes. */
static ssize_t call_now(const struct weft__request *request)
{
	const struct iovec *iov;
	struct iovec whole;
	int count = weft__request_vector(request, &whole, &iov);
	bool blocked;
	ssize_t r;

	if (!weft__request_writes(request))
		return weft__syscall_readv(request->fd, iov, count, -1,
					   RWF_NOWAIT);
	blocked = weft__sigpipe_block();
	r = weft__syscall_writev(request->fd, iov, count, -1, RWF_NOWAIT);
	weft__sigpipe_restore(blocked, r == -EPIPE);
	return r;
}

/* Of a FIFO that is not ready. */
static int unready(const struct weft__request *request, int events,
		   ssize_t *ret_result)
{
	ssize_t r = call_now(request);

	if (r == -EAGAIN)
		return WEFT__FIFO_READY;
	if (r == -EOPNOTSUPP) {
		if (!is_fifo(request->fd))
			return WEFT__FIFO_NOT;
		if (weft__syscall_never_blocks(request->fd))
			return WEFT__FIFO_READY;
		if (events == 0)
			return WAITS;
		r = weft__request_writes(request) ? -EPIPE : 0;
	}
	*ret_result = weft__call_ready(weft__worker_self(), r);
	return WEFT__FIFO_ENDED;
}

/* One more time.  Without a reader, a FIFO with room is ready, too. */
static int look(const struct weft__request *request, int wanted,
		ssize_t *ret_result)
{
	int events = weft__syscall_poll(request->fd, wanted);

	if (events > 0 && (events & wanted) && !(events & POLLERR))
		return WEFT__FIFO_READY;
	return unready(request, events, ret_result);
}

enum weft__fifo weft__fifo_await(struct weft__fd *entry,
				 const struct weft__request *request,
				 ssize_t *ret_result)
{
	int wanted = weft__request_writes(request) ? POLLOUT : POLLIN;
	uint8_t closes = weft__fd_closes(entry);
	int state;

	for (unsigned tries = 0;; tries++) {
		int r;

		state = look(request, wanted, ret_result);
		if (state != WAITS)
			return (enum weft__fifo)state;
		r = weft__op_await_ready(request->fd, entry, (unsigned)wanted,
					 tries);
		if (weft__fd_closes(entry) != closes)
			r = -ECANCELED;
		if (r < 0) {
			*ret_result = r;
			return WEFT__FIFO_ENDED;
		}
	}
}
