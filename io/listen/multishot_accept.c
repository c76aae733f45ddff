/* SPDX-License-Identifier: MIT */
/*
 * Multishot accept - the request with which a listener accepts, and the
 * handling of its completions.
 *
 * A completion hands its connection to the oldest waiting task, or the
 * listener keeps it.  An error is sorted by its cause (enum blame): it ends one
 * task's wait, makes the listener wait for descriptors, or makes it accept one
 * connection for each request.  All state is under the lock of the descriptor's
 * entry; see ACC1 to ACC4 in listener.h.
 */
#include <errno.h>

#include "io/listen/listener.h"
#include "io/os/syscall.h"
#include "io/request/op.h"
#include "runtime/sched/wait.h"

/* At this many connections that no task has taken, the request is stopped, and
 * the kernel keeps the rest. */
enum { KEPT_MAX = 64 };

/* ---- The request ------------------------------------------------------ */

void weft__multishot_accept_want(struct weft__worker *here,
			 struct weft__listener *listener,
			 struct weft__multishot_accept *incoming)
{
	if (listener->state != WEFT__LISTENER_IDLE || !listener->waiting ||
	    listener->starved)
		return;
	listener->state = WEFT__LISTENER_ARMED;
	listener->shard = (uint16_t)here->index;
	incoming->fd = listener->fd;
	incoming->number = listener->number;
	incoming->single = listener->single;
	incoming->arm = true;
}

/* Submits it under the shard's lock, so that no helper finds it unsubmitted
 * (SH3). */
static bool multishot_accept_submit(struct weft__shard *shard,
			    const struct weft__multishot_accept *incoming)
{
	struct weft__request request = {
		.opcode = WEFT__OPCODE_ACCEPT,
		.flags = incoming->single ? 0 : WEFT__REQUEST_MULTISHOT,
		.fd = incoming->fd,
		.how = SOCK_CLOEXEC,
	};
	bool submitted;

	weft__shard_lock(shard);
	submitted = weft__shard_submit(shard, &request,
				       weft__multishot_accept_user_data(
					       incoming->number, incoming->fd));
	/* A worker that was refused the lock tries again if this one is
	 * late. */
	weft__trylock_drop(&shard->lock);
	return submitted;
}

/* The kernel takes no more entries now: handled as a lack of descriptors.  The
 * listener stays until the state is IDLE again.  Returns a task to wake. */
static uint64_t multishot_accept_failed(struct weft__reactor *reactor,
				struct weft__fd *entry)
{
	struct weft__listener *listener;
	uint64_t id = 0;

	weft__lock_take(&entry->lock);
	listener = entry->listener;
	listener->state = WEFT__LISTENER_IDLE;
	weft__listener_set_starved(reactor, listener, true);
	if (entry->closing)
		id = entry->closer;
	else if (listener->waiting)
		id = weft__running_id(listener->waiting);
	weft__lock_drop(&entry->lock);
	return id;
}

static void multishot_accept_stop(struct weft__worker *here,
			  const struct weft__multishot_accept *incoming)
{
	struct weft__worker *at = here->runtime->workers[incoming->shard];
	struct weft__fd *entry = incoming->entry;

	if (weft__shard_cancel(weft__shard(at),
			      weft__multishot_accept_user_data(incoming->number,
						       incoming->fd)) == 0)
		return;
	/* It could not be cancelled now; its next completion leads here
	 * again. */
	weft__lock_take(&entry->lock);
	if (entry->listener && entry->listener->number == incoming->number &&
	    entry->listener->state == WEFT__LISTENER_STOPPING)
		entry->listener->state = WEFT__LISTENER_ARMED;
	weft__lock_drop(&entry->lock);
}

static unsigned wake(struct weft__worker *here, uint64_t id)
{
	return id && weft__wake(here, weft__task_at(here->runtime, id), id);
}

unsigned weft__multishot_accept_do(struct weft__worker *here,
			   const struct weft__multishot_accept *incoming)
{
	struct weft__reactor *reactor = weft__reactor(here->runtime);
	unsigned made_ready = 0;

	if (incoming->close_fd >= 0)
		weft__fd_discard(&reactor->fds, incoming->close_fd);
	if (incoming->arm &&
	    !multishot_accept_submit(weft__shard(here), incoming))
		made_ready +=
			wake(here,
			     multishot_accept_failed(reactor, incoming->entry));
	if (incoming->stop)
		multishot_accept_stop(here, incoming);
	made_ready += wake(here, incoming->wakes[0]);
	made_ready += wake(here, incoming->wakes[1]);
	return made_ready;
}

/* ---- Completions, under the entry's lock -------------------------------- */

/* Ends the wait of the oldest task.  If the listener lacks descriptors, the
 * next task has to keep the time. */
static void completed_for(struct weft__listener *listener, int result,
			  struct weft__multishot_accept *incoming)
{
	incoming->wakes[0] = weft__listener_give(listener, result);
	if (listener->starved && listener->waiting)
		incoming->wakes[1] = weft__running_id(listener->waiting);
}

/* A connection: given to the oldest waiting task, or kept. */
static void completed_one(struct weft__reactor *reactor,
			  struct weft__listener *listener, int fd,
			  struct weft__multishot_accept *incoming)
{
	struct weft__fd *entry = weft__fd_find(&reactor->fds, fd);

	if (entry)
		weft__fd_set_kind(entry, WEFT__FD_SOCKET);
	if (listener->waiting)
		completed_for(listener, fd, incoming);
	else if (!weft__listener_keep(reactor, listener, fd))
		incoming->close_fd = fd;
}

/* The cause of an error. */
enum blame { BLAME_CONNECTION, BLAME_PROCESS, BLAME_MULTISHOT, BLAME_LISTENER };

static enum blame blame(int error, bool single)
{
	switch (error) {
	case -EMFILE:
	case -ENFILE:
	case -ENOBUFS:
	case -ENOMEM:
		return BLAME_PROCESS;
	case -ECANCELED: /* by weft; the others by the kernel */
	case -EINTR:
	case -EAGAIN:
	case -ECONNABORTED:
	case -EPROTO:
	case -ENOPROTOOPT:
	case -ENETDOWN:
	case -ENETUNREACH:
	case -EHOSTDOWN:
	case -EHOSTUNREACH:
	case -ENONET:
	case -EPERM: /* a firewall */
		return BLAME_CONNECTION;
	case -EINVAL:
		return single ? BLAME_LISTENER : BLAME_MULTISHOT;
	default:
		return BLAME_LISTENER;
	}
}

/* Was the number closed when the request was made, and is it open now?  Then
 * the task that asked has gone, and the request is made once more. */
static bool is_past(const struct weft__listener *listener, int error)
{
	return error == -EBADF && weft__syscall_is_open(listener->fd);
}

static void completed_none(struct weft__reactor *reactor,
			   struct weft__listener *listener, int error,
			   struct weft__multishot_accept *incoming)
{
	switch (blame(error, listener->single)) {
	case BLAME_CONNECTION:
		break;
	case BLAME_PROCESS:
		weft__listener_set_starved(reactor, listener, true);
		if (listener->waiting)
			incoming->wakes[0] =
				weft__running_id(listener->waiting);
		break;
	case BLAME_MULTISHOT:
		listener->single = true;
		break;
	case BLAME_LISTENER:
		if (listener->waiting && !is_past(listener, error))
			completed_for(listener, error, incoming);
		break;
	}
}

static void completed(struct weft__worker *here,
		      struct weft__listener *listener,
		      const struct weft__completion *completion,
		      struct weft__multishot_accept *incoming)
{
	struct weft__reactor *reactor = weft__reactor(here->runtime);

	if (!(completion->flags & WEFT__COMPLETION_MORE))
		listener->state = WEFT__LISTENER_IDLE;
	if (incoming->entry->closing) {
		incoming->close_fd = completion->result;
		if (listener->state == WEFT__LISTENER_IDLE)
			incoming->wakes[1] = incoming->entry->closer;
		return;
	}
	if (completion->result >= 0)
		completed_one(reactor, listener, completion->result, incoming);
	else
		completed_none(reactor, listener, completion->result, incoming);
	if (listener->state == WEFT__LISTENER_ARMED &&
	    listener->accepted_count >= KEPT_MAX) {
		listener->state = WEFT__LISTENER_STOPPING;
		incoming->fd = listener->fd;
		incoming->number = listener->number;
		incoming->shard = listener->shard;
		incoming->stop = true;
	}
	weft__multishot_accept_want(here, listener, incoming);
}

unsigned weft__multishot_accept_complete(struct weft__worker *here,
				 const struct weft__completion *completion)
{
	struct weft__reactor *reactor = weft__reactor(here->runtime);
	struct weft__fd *entry = weft__fd_find(
		&reactor->fds, (int)(uint32_t)completion->user_data);
	struct weft__multishot_accept incoming =
		WEFT__MULTISHOT_ACCEPT_INIT(entry);

	weft__lock_take(&entry->lock);
	if (entry->listener && entry->listener->number ==
				       weft__sequence_of(
					       completion->user_data)) {
		completed(here, entry->listener, completion, &incoming);
	} else {
		/* Overtaken by the last completion; see ACC3. */
		incoming.close_fd = completion->result;
	}
	weft__lock_drop(&entry->lock);
	return weft__multishot_accept_do(here, &incoming);
}
