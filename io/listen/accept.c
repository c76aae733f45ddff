/* SPDX-License-Identifier: MIT */
/*
 * Accept - the public calls that take a connection from a listener: one for
 * tasks, which suspends the caller, and one for futures, which returns
 * WEFT_PENDING.
 *
 * A call takes a connection that the listener has kept, if no task waits
 * already.  Otherwise the task joins the listener's queue, and a multishot
 * request is armed if there is none (listener.h).  The completion, a close or
 * the caller's own withdrawal ends the operation in the task's record (op.h)
 * under the lock of the descriptor's entry; so exactly one of them does.
 *
 *	accept_begin()    takes a connection, or joins the queue
 *	accept_wait()     a task: suspends until the operation has ended
 *	await_go_on()     a future: the same, one look for each poll
 *	accept_withdraw() leaves the queue (deadline, cancellation)
 *	accept_retry()    the queue's oldest task: arms the request of a
 *	                  listener that lacked descriptors again
 *
 * Shared state is the listener's, under the entry's lock (ACC1).  The result is
 * read through [op.end] (op.h).
 */
#include <weft/io.h>

#include <errno.h>

#include "io/listen/listener.h"
#include "io/os/syscall.h"
#include "io/request/call.h"
#include "io/request/op.h"
#include "runtime/future/future.h"
#include "runtime/sched/wait.h"

/* How long a listener that lacks descriptors waits, if none is closed. */
#define STARVED_NS 50000000u

/* How long to wait until a close that is under way has ended. */
#define GOING_NS 100000u

/* The outcome of an attempt to take a connection, if it is no error. */
enum { BEGUN_TAKEN, BEGUN_WAITS };

static int begin(struct weft__worker *worker, struct weft__task *task,
			struct weft__multishot_accept *incoming, int *ret_fd)
{
	struct weft__reactor *reactor = weft__reactor(worker->runtime);
	struct weft__listener *listener = incoming->entry->listener;

	if (listener->accepted_count && !listener->waiting) {
		*ret_fd = weft__listener_take(reactor, listener);
		return BEGUN_TAKEN;
	}
	/* The first task to wait tries, even if descriptors were lacking
	 * before. */
	if (!listener->waiting)
		weft__listener_set_starved(reactor, listener, false);
	weft__op_begin(task);
	weft__listener_add(listener, task);
	weft__multishot_accept_want(worker, listener, incoming);
	return BEGUN_WAITS;
}

/* Takes a connection, or begins to wait.  Returns BEGUN_*, or -EBADF, -ENOMEM,
 * or -EAGAIN: the kernel is about to close the file that had this number
 * (FD3). */
static int accept_begin(struct weft__worker *worker, struct weft__task *task,
			struct weft__fd *entry, int fd, int *ret_fd)
{
	struct weft__multishot_accept incoming =
		WEFT__MULTISHOT_ACCEPT_INIT(entry);
	int r = -ENOENT;

	while (r == -ENOENT) {
		weft__lock_take(&entry->lock);
		if (entry->closing)
			r = -EBADF;
		else if (entry->going && !entry->listener)
			r = -EAGAIN;
		else if (entry->listener)
			r = begin(worker, task, &incoming, ret_fd);
		weft__lock_drop(&entry->lock);
		if (r != -ENOENT)
			break;
		r = weft__listener_make(weft__reactor(worker->runtime), entry,
					fd);
		if (r == 0)
			r = -ENOENT;
	}
	weft__multishot_accept_do(worker, &incoming);
	return r;
}

/* Does the task still wait?  Under the entry's lock, under which waits end. */
static bool waits(struct weft__task *task)
{
	/* relaxed: under the lock. */
	return weft__load(&task->op, relaxed) & WEFT__OP_PENDING;
}

/* Gives up the wait.  False: it has ended already. */
static bool accept_withdraw(struct weft__worker *worker,
			    struct weft__fd *entry, struct weft__task *task)
{
	struct weft__multishot_accept incoming =
		WEFT__MULTISHOT_ACCEPT_INIT(entry);
	bool withdrawn;

	weft__lock_take(&entry->lock);
	withdrawn = waits(task);
	if (withdrawn) { /* mutate: recheck=true */
		struct weft__listener *listener = entry->listener;
		bool oldest = listener->waiting == task;

		weft__listener_remove(listener, task);
		weft__op_end(task, -ECANCELED);
		/* The next task in the queue has to keep the time. */
		if (oldest && listener->starved && listener->waiting)
			incoming.wakes[0] = weft__running_id(listener->waiting);
	}
	weft__lock_drop(&entry->lock);
	weft__multishot_accept_do(worker, &incoming);
	return withdrawn;
}

/* Does the listener lack descriptors, and does this task keep its time? */
static bool accept_starves(struct weft__fd *entry, struct weft__task *task)
{
	bool starves;

	weft__lock_take(&entry->lock);
	starves = waits(task) && entry->listener->starved &&
		  entry->listener->waiting == task;
	weft__lock_drop(&entry->lock);
	return starves;
}

static void accept_retry(struct weft__worker *worker, struct weft__fd *entry,
			 struct weft__task *task)
{
	struct weft__multishot_accept incoming =
		WEFT__MULTISHOT_ACCEPT_INIT(entry);

	weft__lock_take(&entry->lock);
	if (waits(task)) {
		weft__listener_set_starved(weft__reactor(worker->runtime),
					   entry->listener, false);
		weft__multishot_accept_want(worker, entry->listener, &incoming);
	}
	weft__lock_drop(&entry->lock);
	weft__multishot_accept_do(worker, &incoming);
}

static int accept_wait(struct weft__worker *worker, struct weft__task *task,
		       struct weft__fd *entry, uint64_t reason)
{
	for (;;) {
		/* pairs: [op.end] */
		uint64_t word = weft__load(&task->op, acquire);
		int why;

		if (!(word & WEFT__OP_PENDING))
			return (int32_t)(uint32_t)word;
		why = weft__interrupted(worker, task);
		if (why < 0) {
			/* mutate: recheck=true */
			if (accept_withdraw(worker, entry, task))
				return why;
		} else if (accept_starves(entry, task)) {
			worker = weft__op_pause(worker, task, reason,
						STARVED_NS);
			accept_retry(worker, entry, task);
		} else {
			worker = weft__suspend(worker, reason);
		}
	}
}

static int accept_one(int fd)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);
	uint64_t reason = weft__op_reason(WEFT__OP_SAYS_ACCEPT, 0, fd);
	struct weft__fd *entry;
	int r, accepted = -1;

	if (!task)
		return -EPERM;
	r = weft__interrupted(worker, task);
	if (r < 0)
		return r;
	r = weft__fd_get(&weft__reactor(worker->runtime)->fds, fd, &entry);
	if (r < 0)
		return r;
	weft__wait_begin(worker, task);
	while ((r = accept_begin(worker, task, entry, fd, &accepted)) ==
	       -EAGAIN)
		worker = weft__op_pause(worker, task, reason, GOING_NS);
	if (r < 0)
		return r;
	if (r == BEGUN_WAITS)
		return accept_wait(worker, task, entry, reason);
	weft__charge_ready(worker);
	return accepted;
}

/* False: the connection has ended already. */
static bool accept_peer(int fd, struct weft_addr *ret_peer)
{
	struct sockaddr_storage address;
	socklen_t bytes;

	if (weft__syscall_peer(fd, &address, &bytes) < 0)
		return false;
	/* weft has no form for this family: an empty address. */
	if (weft_addr_from_sockaddr((struct sockaddr *)&address, bytes,
				    ret_peer) < 0)
		*ret_peer = (struct weft_addr){ .bytes = 0 };
	return true;
}

/* Takes the next connection that has not ended, with its peer's address. */
static int accept_with(int (*one)(int fd), int fd, struct weft_addr *ret_peer)
{
	for (;;) {
		struct weft__reactor *reactor;
		int accepted = one(fd);

		if (accepted < 0 || !ret_peer ||
		    accept_peer(accepted, ret_peer))
			return accepted;
		reactor = weft__reactor(weft__worker_self()->runtime);
		weft__fd_discard(&reactor->fds, accepted);
	}
}

int weft_accept(int fd, struct weft_addr *ret_peer)
{
	return accept_with(accept_one, fd, ret_peer);
}

/*
 * For futures, which wait in the same queue.
 */

static int await_begin(struct weft__worker *worker, struct weft__task *task,
		       struct weft__fd *entry, int fd)
{
	int accepted = -1, r;

	weft__op_of(task)->fd = fd;
	weft__op_of(task)->flags = 0;
	weft__op_of(task)->reason =
		weft__op_reason(WEFT__OP_SAYS_ACCEPT, 0, fd);
	weft__await_begin(WEFT__AWAITS_ACCEPT, worker, task);
	r = accept_begin(worker, task, entry, fd, &accepted);
	if (r == BEGUN_WAITS)
		return WEFT_PENDING;
	if (r == BEGUN_TAKEN)
		return weft__op_await_end(worker, task, accepted);
	if (r != -EAGAIN)
		return weft__op_await_end(worker, task, r);
	weft__op_of(task)->flags = WEFT__OP_LATE;
	return weft__await_pause(worker, task, GOING_NS);
}

/* The kernel has closed the file that had the number, or soon will have. */
static int await_late(struct weft__worker *worker, struct weft__task *task,
		      struct weft__fd *entry, int fd)
{
	int r = weft__op_await_end(worker, task,
				   weft__future_interrupted(worker, task));

	return r < 0 ? r : await_begin(worker, task, entry, fd);
}

/* No connection has come, and nothing interrupts the wait. */
static int await_more(struct weft__worker *worker, struct weft__task *task,
		      struct weft__fd *entry)
{
	bool starves = accept_starves(entry, task);
	bool paused = weft__op_of(task)->flags & WEFT__OP_PAUSES;

	if (starves && !paused) {
		weft__op_of(task)->flags = WEFT__OP_PAUSES;
		return weft__await_pause(worker, task, STARVED_NS);
	}
	if (paused) {
		/* The alarm serves the deadline again. */
		weft__op_of(task)->flags = 0;
		weft__future_disarm(worker, task);
		weft__await_begin(WEFT__AWAITS_ACCEPT, worker, task);
	}
	if (starves)
		accept_retry(worker, entry, task);
	return WEFT_PENDING;
}

static int await_go_on(struct weft__worker *worker, struct weft__task *task,
		       struct weft__fd *entry)
{
	for (;;) {
		/* pairs: [op.end] */
		uint64_t word = weft__load(&task->op, acquire);
		int why;

		if (!(word & WEFT__OP_PENDING))
			return weft__op_await_end(worker, task,
						  (int32_t)(uint32_t)word);
		why = weft__future_interrupted(worker, task);
		if (why == 0)
			return await_more(worker, task, entry);
		/* mutate: recheck=true */
		if (accept_withdraw(worker, entry, task))
			return weft__op_await_end(worker, task, why);
	}
}

static int await_one(int fd)
{
	struct weft__worker *worker;
	struct weft__task *task;
	struct weft__fd *entry;
	int r = weft__call_await(WEFT__AWAITS_ACCEPT, fd, &worker, &task);

	if (r < 0)
		return r;
	weft__assert(task->awaits == WEFT__AWAITS_NOTHING ||
			     weft__op_of(task)->fd == fd,
		     WEFT__AWAITS_ANOTHER);
	r = weft__fd_get(&weft__reactor(worker->runtime)->fds, fd, &entry);
	if (r < 0)
		return r;
	if (task->awaits == WEFT__AWAITS_NOTHING)
		return await_begin(worker, task, entry, fd);
	if (weft__op_of(task)->flags & WEFT__OP_LATE)
		return await_late(worker, task, entry, fd);
	return await_go_on(worker, task, entry);
}

int weft_await_accept(int fd, struct weft_addr *ret_peer)
{
	return accept_with(await_one, fd, ret_peer);
}
