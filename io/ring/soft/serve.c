/* SPDX-License-Identifier: MIT */
#include "io/ring/soft/serve.h"

#include <errno.h>

#include "io/os/syscall.h"
#include "io/ring/soft/call.h"
#include "io/ring/soft/ops.h"
#include "io/ring/soft/work.h"

enum {
	RECEIVES_MAX = 16, /* of one request in a row, before others' turn */
	VAIN_MAX = 8, /* events in vain, before the epoll set is told */
	CHECKS_MAX = 256, /* in one hold of the lock */
};

/* See SOFT7. */
#define RETRY_NS 1000000u

static bool is_receive(const struct weft__request *request)
{
	return request->flags & WEFT__REQUEST_BUFFERS;
}

/* Errors and urgent data do not come with the rest: nothing follows from a try
 * that found none. */
static bool is_aside(const struct weft__request *request)
{
	return (request->opcode == WEFT__OPCODE_RECV ||
		request->opcode == WEFT__OPCODE_RECVMSG) &&
	       (request->how & (MSG_ERRQUEUE | MSG_OOB));
}

static bool is_wake(const struct weft__request *request)
{
	return request->opcode == WEFT__OPCODE_POLL &&
	       weft__soft_is_multishot(request);
}

static uint8_t ready_flag(const struct weft__request *request)
{
	return weft__soft_events(request) == EPOLLOUT ?
		       WEFT__WATCH_READY_OUT :
		       WEFT__WATCH_READY_IN;
}

/* Drops the lock, and queues what a thread of the pool is to do. */
static void drop_and_start(struct weft__soft *soft)
{
	struct weft__soft_op *op = soft->starting, *next;

	soft->starting = NULL;
	weft__soft_show(soft);
	weft__lock_drop(&soft->lock);
	for (; op; op = next) {
		next = op->next;
		weft__soft_start(soft, op->work);
	}
}

/* Has a thread of the pool do it, once the lock is dropped.  The request is in
 * no list.  False: no memory. */
static bool pool_later(struct weft__soft *soft, struct weft__soft_op *op)
{
	if (!weft__soft_pool(soft, op))
		return false;
	op->next = soft->starting;
	soft->starting = op;
	return true;
}

/* ---- Descriptors that are ready ----------------------------------------- */

/* `r` of the `room` bytes were received: was that all (SOFT3)? */
static void watch_drained(struct weft__soft_watch *watch, ssize_t r,
			  size_t room)
{
	if (r > 0 && (size_t)r < room &&
	    (watch->flags & (WEFT__WATCH_DRAINS | WEFT__WATCH_UNUSUAL)) ==
		    WEFT__WATCH_DRAINS)
		watch->flags &= (uint8_t)~WEFT__WATCH_READY_IN;
}

static void watch_found_nothing(struct weft__soft_watch *watch,
				const struct weft__request *request)
{
	if (!is_aside(request))
		watch->flags &= (uint8_t)~ready_flag(request);
}

/* Is the result of a request that of a receive which took all there was
 * (SOFT3)?  A look (MSG_PEEK) takes nothing. */
static void watch_received(struct weft__soft_watch *watch,
			   const struct weft__request *request, ssize_t r)
{
	if (request->opcode == WEFT__OPCODE_RECV && !request->how)
		watch_drained(watch, r, request->bytes);
}

/* The next buffer; or NULL. */
static struct weft__ring_buffer *
buffer_next(const struct weft__soft_buffers *group)
{
	/* pairs: [buffers.tail] */
	if (!group->count ||
	    weft__load(&group->buffers->tail, acquire) == group->head)
		return NULL;
	return &group->buffers[group->head & (group->count - 1)];
}

/* Receives into a buffer once.  False: there is nothing more to do now, or the
 * request has ended. */
static bool receive_one(struct weft__soft *soft, struct weft__soft_watch *watch,
			struct weft__soft_op *op)
{
	struct weft__soft_buffers *group = &soft->groups[op->request.group];
	struct weft__ring_buffer *buffer = buffer_next(group);
	bool more = weft__soft_is_multishot(&op->request);
	uint32_t flags;
	ssize_t r = -ENOBUFS;

	if (buffer)
		r = weft__syscall_recv(op->request.fd,
				       (void *)(uintptr_t)buffer->address,
				       buffer->bytes, (int)op->request.how);
	if (r == -EAGAIN) {
		watch->flags &= (uint8_t)~WEFT__WATCH_READY_IN;
		return false;
	}
	if (r <= 0) {
		weft__soft_op_unlink(soft, watch, op);
		weft__soft_complete(soft, op, (int32_t)r, 0);
		return false;
	}
	group->head++;
	watch_drained(watch, r, buffer->bytes);
	flags = WEFT__COMPLETION_BUFFER |
		(uint32_t)buffer->id << WEFT__COMPLETION_BUFFER_SHIFT;
	if ((size_t)r == buffer->bytes)
		flags |= WEFT__COMPLETION_NONEMPTY;
	if (more) {
		weft__soft_post(soft, op->user_data, (int32_t)r,
				flags | WEFT__COMPLETION_MORE);
		return watch->flags & WEFT__WATCH_READY_IN;
	}
	weft__soft_op_unlink(soft, watch, op);
	weft__soft_complete(soft, op, (int32_t)r, flags);
	return false;
}

static void receive_many(struct weft__soft *soft,
			 struct weft__soft_watch *watch,
			 struct weft__soft_op *op)
{
	int fd = op->request.fd;

	for (int i = 0; i < RECEIVES_MAX; i++) {
		if (soft->held.head || !weft__soft_has_room(soft, false))
			break;
		if (!receive_one(soft, watch, op))
			return;
	}
	weft__soft_again_add(soft, fd, watch);
}

static void serve_poll(struct weft__soft *soft, struct weft__soft_watch *watch,
		       struct weft__soft_op *op, uint32_t events)
{
	events &= op->request.how | EPOLLERR | EPOLLHUP;
	if (!events)
		return;
	if (!weft__soft_is_multishot(&op->request)) {
		weft__soft_op_unlink(soft, watch, op);
		weft__soft_complete(soft, op, (int32_t)events, 0);
	} else if (!soft->held.head && weft__soft_has_room(soft, false)) {
		weft__soft_post(soft, op->user_data, (int32_t)events,
				WEFT__COMPLETION_MORE);
	}
	/* A worker whose completions have no room is awake. */
}

static void serve_try(struct weft__soft *soft, struct weft__soft_watch *watch,
		      struct weft__soft_op *op)
{
	int32_t r = weft__soft_try(op);

	if (r == WEFT__SOFT_WAITS) {
		watch_found_nothing(watch, &op->request);
		return;
	}
	watch_received(watch, &op->request, r);
	weft__soft_op_unlink(soft, watch, op);
	if (r == WEFT__SOFT_BLOCKS && !pool_later(soft, op))
		r = -ENOMEM;
	if (r != WEFT__SOFT_BLOCKS)
		weft__soft_complete(soft, op, r, 0);
}

/* was: the watch's flags, before others were served. */
static bool is_concerned(const struct weft__soft_watch *watch, uint8_t was,
			 const struct weft__soft_op *op, uint32_t events)
{
	if (op->request.opcode == WEFT__OPCODE_POLL)
		return events & (op->request.how | EPOLLERR | EPOLLHUP);
	if (is_aside(&op->request))
		return was & WEFT__WATCH_READY_IN;
	return watch->flags & ready_flag(&op->request);
}

/* Serves the requests that wait for the descriptor.  events: as reported now.
 * Returns whether there was one that they concern. */
static bool serve(struct weft__soft *soft, struct weft__soft_watch *watch,
		  uint32_t events)
{
	struct weft__soft_op *op, *next;
	uint8_t was = watch->flags;
	bool concerned = false;

	for (op = watch->head; op; op = next) {
		next = op->next;
		if (!is_concerned(watch, was, op, events))
			continue;
		concerned = true;
		if (op->request.opcode == WEFT__OPCODE_POLL)
			serve_poll(soft, watch, op, events);
		else if (is_receive(&op->request))
			receive_many(soft, watch, op);
		else
			serve_try(soft, watch, op);
	}
	return concerned;
}

static void watch_note(struct weft__soft_watch *watch, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI))
		watch->flags |= WEFT__WATCH_READY_IN;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		watch->flags |= WEFT__WATCH_READY_OUT;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI))
		watch->flags |= WEFT__WATCH_UNUSUAL;
}

static uint32_t events_wanted(const struct weft__soft_watch *watch)
{
	uint32_t events = 0;

	for (struct weft__soft_op *op = watch->head; op; op = op->next)
		events |= weft__soft_events(&op->request);
	return events;
}

/* Nothing waited for the event.  If that is so again and again, the epoll set
 * is to report only what requests wait for: another worker may have them. */
static void watch_vain(struct weft__soft *soft, int fd,
		       struct weft__soft_watch *watch)
{
	if (++watch->vain <= VAIN_MAX)
		return;
	watch->vain = 0;
	if (!watch->head)
		weft__soft_unwatch(soft, fd, watch);
	else
		(void)weft__soft_watch_set(soft, fd, watch,
					   events_wanted(watch));
}

void weft__soft_serve(struct weft__soft *soft, int fd, uint32_t generation,
		      uint32_t events)
{
	struct weft__soft_watch *watch;

	weft__lock_take(&soft->lock);
	watch = weft__soft_watch_find(&soft->watches, fd);
	if (watch && watch->generation == generation && watch->events) {
		watch_note(watch, events);
		if (serve(soft, watch, events))
			watch->vain = 0;
		else
			watch_vain(soft, fd, watch);
	}
	drop_and_start(soft);
}

bool weft__soft_is_full(struct weft__soft *soft)
{
	bool full;

	weft__lock_take(&soft->lock);
	full = soft->held.head || !weft__soft_has_room(soft, false);
	weft__lock_drop(&soft->lock);
	return full;
}

void weft__soft_resume(struct weft__soft *soft)
{
	int fd, last;

	/* relaxed: a look; only the holder of the shard's lock adds to it, but
	 * for completions that are held, which are shown. */
	if (!(weft__load(&soft->flags, relaxed) & WEFT__RING_OVERFLOW))
		return;
	weft__lock_take(&soft->lock);
	weft__soft_release(soft);
	last = soft->watches.again_last;
	while (!soft->held.head && weft__soft_has_room(soft, false) &&
	       (fd = weft__soft_again_take(soft)) >= 0) {
		serve(soft, weft__soft_watch_find(&soft->watches, fd), 0);
		if (fd == last)
			break;
	}
	drop_and_start(soft);
}

uint64_t weft__soft_retry_late(struct weft__soft *soft, uint64_t now_ns)
{
	struct weft__soft_op *op, *next;
	uint64_t due_ns;

	weft__lock_take(&soft->lock);
	if (now_ns >= soft->retry_ns) {
		soft->retry_ns = now_ns + RETRY_NS;
		for (op = soft->late.head; op; op = next) {
			next = op->next;
			serve_try(soft, &soft->late, op);
		}
	}
	due_ns = soft->late.head ? soft->retry_ns : UINT64_MAX;
	drop_and_start(soft);
	return due_ns;
}

/* ---- Entries ------------------------------------------------------------ */

/* Is a try of the request in vain? */
static bool is_vain(struct weft__soft *soft,
		    const struct weft__request *request)
{
	const struct weft__soft_watch *watch;

	if (is_receive(request) || is_wake(request))
		return true;
	if (!(request->flags & WEFT__REQUEST_POLL_FIRST))
		return false;
	watch = weft__soft_watch_find(&soft->watches, request->fd);
	return !watch || !watch->events ||
	       !(watch->flags & WEFT__WATCH_READY_IN);
}

/* The result of a request whose descriptor cannot be watched.  ENOSPC: the user
 * has all the watches that it may have.  A write that returned that would seem
 * to have met a full device; an accept tells it from its own lack of memory. */
static int32_t unwatched(const struct weft__soft_op *op, int r)
{
	return r == -ENOSPC && op->request.opcode != WEFT__OPCODE_ACCEPT ?
		       -ENOMEM :
		       r;
}

/* Under the lock: links the request to its descriptor.  Returns WAITS, or what
 * else is to be done with it; *ret_full: there is no memory. */
static int32_t wait_for(struct weft__soft *soft,
			const struct weft__soft_op *from, bool tried,
			bool *ret_full)
{
	const struct weft__request *request = &from->request;
	struct weft__soft_watch *watch;
	struct weft__soft_op *op;
	int r = weft__soft_is_late(request) ?
			weft__soft_watch_late(soft, request->fd, &watch) :
			weft__soft_watch(soft, request->fd,
					 weft__soft_events(request), &watch);

	if (r == -EPERM)
		return request->opcode <= WEFT__OPCODE_WRITEV ?
			       WEFT__SOFT_BLOCKS :
			       -ENOTSOCK;
	op = r < 0 ? NULL : weft__soft_op_new(soft, from);
	/* A part is done: it is not to be done again. */
	if (!op && from->done)
		return request->opcode == WEFT__OPCODE_CONNECT ? -ENOMEM :
								 from->done;
	if (r < 0)
		return unwatched(from, r);
	if (!op) {
		*ret_full = true;
		return WEFT__SOFT_WAITS;
	}
	if (tried && request->opcode != WEFT__OPCODE_POLL)
		watch_found_nothing(watch, request);
	/* An eventfd was written to before, which is not reported again.
	 * Others' libraries poll their descriptors, which they close by
	 * close(2): the hint (SOFT4) would often be wrong. */
	if (r == 0 && request->opcode == WEFT__OPCODE_POLL)
		r = weft__soft_watch_set(soft, request->fd, watch,
					 watch->events) == 0;
	weft__soft_op_link(soft, watch, op, r == 0);
	/* Data that came before is not reported again; and only a try tells
	 * whether it is a socket. */
	if (is_receive(request) &&
	    (r == 1 || (watch->flags & WEFT__WATCH_READY_IN))) {
		watch->flags |= WEFT__WATCH_READY_IN;
		receive_many(soft, watch, op);
	}
	return WEFT__SOFT_WAITS;
}

/* Learns from a result that came at once. */
static void note_result(struct weft__soft *soft,
			const struct weft__request *request, int32_t r)
{
	struct weft__soft_watch *watch =
		weft__soft_watch_find(&soft->watches, request->fd);

	if (watch)
		watch_received(watch, request, r);
}

static void finish(struct weft__soft *soft, const struct weft__soft_op *op,
		   int32_t r)
{
	note_result(soft, &op->request, r);
	if (r < 0 || !(op->request.flags & WEFT__REQUEST_SILENT))
		weft__soft_post(soft, op->user_data, r, 0);
}

/* Has a thread of the pool do a request that is new.  False: no memory. */
static bool pool_now(struct weft__soft *soft, const struct weft__soft_op *from)
{
	struct weft__soft_op *op = weft__soft_op_new(soft, from);

	if (!op)
		return false;
	if (pool_later(soft, op))
		return true;
	weft__soft_op_drop(soft, op);
	return false;
}

/* Then this thread waits for it: a close must not fail for want of memory.
 * Drops the lock, and takes it again. */
static int32_t call_here(struct weft__soft *soft, struct weft__soft_op *op)
{
	int32_t r;

	weft__lock_drop(&soft->lock);
	r = weft__soft_call(op);
	weft__lock_take(&soft->lock);
	return r;
}

int weft__soft_submit_one(struct weft__soft *soft,
			  const struct weft__soft_entry *entry)
{
	struct weft__soft_op op = {
		.request = entry->request,
		.user_data = entry->user_data,
	};
	bool vain, full = false;
	int32_t r = WEFT__SOFT_WAITS;

	weft__lock_take(&soft->lock);
	full = soft->held.head || !weft__soft_has_room(soft, true);
	vain = is_vain(soft, &op.request);
	weft__lock_drop(&soft->lock);
	if (full)
		return -EBUSY;
	if (!vain)
		r = weft__soft_try(&op);
	weft__lock_take(&soft->lock);
	if (r == WEFT__SOFT_WAITS)
		r = wait_for(soft, &op, !vain, &full);
	if (r == WEFT__SOFT_BLOCKS && !pool_now(soft, &op))
		r = call_here(soft, &op);
	if (r != WEFT__SOFT_WAITS && r != WEFT__SOFT_BLOCKS)
		finish(soft, &op, r);
	drop_and_start(soft);
	return full ? -EAGAIN : 0;
}

/* ---- Requests that wait ------------------------------------------------- */

/* With r, or with the part that is done. */
static void end_linked(struct weft__soft *soft, struct weft__soft_watch *watch,
		       struct weft__soft_op *op, int r)
{
	bool some = op->done > 0 && op->request.opcode != WEFT__OPCODE_CONNECT;

	weft__soft_op_unlink(soft, watch, op);
	weft__soft_complete(soft, op, some ? op->done : r, 0);
}

bool weft__soft_check(struct weft__soft *soft)
{
	struct weft__soft_op *op;
	int left = CHECKS_MAX;

	/* At least one whole period old. */
	while ((op = soft->oldest) && soft->period - op->linked_in >= 2 &&
	       left-- > 0) {
		int fd = op->request.fd;
		struct weft__soft_watch *watch =
			weft__soft_watch_find(&soft->watches, fd);
		int r = weft__soft_watch_set(
			soft, fd, watch,
			watch->events | weft__soft_events(&op->request));

		weft__soft_op_is_sure(soft, op);
		if (r == 0)
			continue;
		/* The program has closed it by close(2). */
		end_linked(soft, watch, op, unwatched(op, r));
	}
	return left < 0;
}

void weft__soft_forget(struct weft__soft *soft, int fd, bool closes)
{
	struct weft__soft_watch *watch =
		weft__soft_watch_find(&soft->watches, fd);
	struct weft__soft_op *op;
	int r;

	if (!watch)
		return;
	if (closes || !watch->head) {
		weft__soft_unwatch(soft, fd, watch);
		return;
	}
	/* They are of the file that has the number now, or of none. */
	r = weft__soft_watch_set(soft, fd, watch, events_wanted(watch));
	while (r < 0 && (op = watch->head))
		end_linked(soft, watch, op, unwatched(op, r));
}

int weft__soft_cancel_linked(struct weft__soft *soft, struct weft__soft_op *op)
{
	struct weft__soft_watch *watch =
		weft__soft_is_late(&op->request) ?
			&soft->late :
			weft__soft_watch_find(&soft->watches, op->request.fd);

	end_linked(soft, watch, op, -ECANCELED);
	return 0;
}
