/* SPDX-License-Identifier: MIT */
/*
 * A connection to Redis that many tasks use.
 *
 * There is no task behind a connection.  Of the tasks that wait for replies,
 * one sends for all and one receives for all; the rest wait for their events.
 * A call passes through three places:
 *
 *	queue -> sending and ring -> done
 *
 * The call that sends takes all calls from the queue: their bytes go to
 * `sending`, and an entry for their replies to the ring.  Then it writes all of
 * that in one piece.  The call that receives parses replies, and gives each to
 * the oldest entry of the ring.  A call that has its replies, or gives up, no
 * longer sends or receives, and wakes an idle call that does.
 *
 * A call that gives up leaves the queue if it is still there: no byte of it was
 * sent.  Otherwise its entry stays in the ring, without it, so that its replies
 * are dropped when they come.  The next call that sends writes the rest of
 * `sending`.
 *
 * **Invariants**
 *   REDIS1  Entries in the ring are in the order of the bytes in `sending` and
 *	     before: the n-th reply is for the n-th command.
 *   REDIS2  While a call is idle, another one sends if there is something to
 *	     send; and if the idle call's command has been sent, another one
 *	     receives.  (nudge())
 *   REDIS3  The ring has room for all calls in the queue.
 *   REDIS4  A call that receives has been sent, or sends.  So it needs no other
 *	     call that sends, and one that gives up in the middle of a command
 *	     leaves the rest to a call that can go on with it.
 *   REDIS5  While a call sends and replies are due, another one receives, or it
 *	     does so itself between two slices of its write.  So a server that
 *	     reads no further until its replies are taken holds up no task for
 *	     ever.  (receive_meanwhile())
 *
 * The error of one direction ends a call of the other by a shutdown.  A stream
 * without a descriptor has none: calls on it end after a slice of time, and
 * look at the error.
 *
 * **Concurrency**: the lock is a pthread mutex, and is never held in a call
 * that suspends.  `reader` and `sending` belong to the call that has set
 * `receives` or `sends`, and pass from one to the next through the lock.  An
 * event is set under the lock, and its call takes the lock before it returns,
 * so that its frame outlives the setter's call.
 *
 * *Rejected*: a task of the connection's own that receives.  It needs a scope
 * that outlives all users, and each reply would cost two switches.  A task for
 * each call on a stream without a descriptor, which could be cancelled: it
 * costs more than a slice that is over ten times a second.
 */
#include "adapters/redis/connection.h"
#include "adapters/redis/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* A send takes calls until it has this much; a buffer that grew beyond twice of
 * that for a large command is given back. */
enum { SENDING_BYTES = 65536 };

/* How long a call waits for one direction before it looks at the other, and at
 * the error.  The length doubles while nothing moves. */
#define SLICE_MIN_NS WEFT_MS(1)
#define SLICE_MAX_NS WEFT_MS(100)

static void wake(struct call *call)
{
	if (link_is_in(&call->idle))
		link_remove(&call->idle);
	weft_event_set(&call->event);
}

static bool has_output(const struct weft_redis *redis)
{
	return redis->sending_at < redis->sending_end ||
	       !link_is_empty(&redis->queue);
}

static bool is_sent(const struct weft_redis *redis, const struct call *call)
{
	return !link_is_in(&call->queued) && redis->sent >= call->sent_at;
}

static bool is_done(const struct weft_redis *redis, const struct call *call)
{
	return call->count ? call->done == call->count :
			     !redis->error && is_sent(redis, call);
}

/* Something to do for a call that is idle, which REDIS2 demands. */
static void nudge(struct weft_redis *redis)
{
	bool needs_sender = !redis->sends && has_output(redis);
	bool needs_receiver = !redis->receives && !redis->subscribed;
	struct link *link = redis->idle.next;
	struct call *call;

	if (!needs_sender && !needs_receiver)
		return;
	for (; link != &redis->idle; link = link->next) {
		call = LINK_OWNER(link, struct call, idle);
		if (needs_sender || is_sent(redis, call)) {
			wake(call);
			return;
		}
	}
}

int weft__redis_may_wait(void)
{
	/* Where a wait may begin, this finds that there is no descriptor. */
	int r = weft_poll(-1, 0);

	if (r != -EBADF)
		return r;
	/* A deadline that passed just now need not be noticed yet. */
	return weft_deadline_passed() ? weft_yield() : 0;
}

/* Did the caller's own deadline or cancellation end a call on the stream?  Or a
 * want of memory, which may pass: the stream itself goes on. */
static bool gave_up(int64_t r)
{
	return r == -ECANCELED || r == -ENOMEM ||
	       (r == -ETIMEDOUT && weft_deadline_passed());
}

/* The connection is broken: all calls return the error. */
static void fail(struct weft_redis *redis, int error)
{
	struct link *head = &redis->idle;
	int fd = weft_stream_fd(redis->stream);

	pthread_mutex_lock(&redis->lock);
	if (!redis->error)
		redis->error = error;
	while (!link_is_empty(head))
		wake(LINK_OWNER(head->next, struct call, idle));
	pthread_mutex_unlock(&redis->lock);
	/* Ends the call of the other direction. */
	if (fd >= 0)
		weft_shutdown(fd, SHUT_RDWR);
}

/* ---- Receiving ---- */

/* A reply has come: gives it to its call. */
static int deliver(struct weft_redis *redis, redisReply *reply)
{
	struct due *due;
	struct call *call;
	bool expected;

	pthread_mutex_lock(&redis->lock);
	expected = redis->ring_first < redis->ring_next;
	if (expected) {
		due = due_at(redis, redis->ring_first);
		call = due->call;
		if (--due->left == 0)
			redis->ring_first++;
		if (call) {
			call->replies[call->done++] = reply;
			reply = NULL;
			if (call->done == call->count)
				wake(call);
		}
	}
	pthread_mutex_unlock(&redis->lock);
	if (reply)
		freeReplyObject(reply);
	return expected ? 0 : -EPROTO;
}

/* Why a call on the stream ended, or 0: only the slice is over.  `passed`: a
 * deadline had passed, inside of the slice. */
static int slice_end(int r, bool passed)
{
	if (!passed || (r != -ETIMEDOUT && r != -ECANCELED))
		return r;
	/* To the slice, an outer deadline is a cancellation. */
	return weft__redis_may_wait();
}

/* The stream's peek; *ret_over when it ends since the slice is over. */
static ssize_t peek(struct weft_redis *redis, const void **ret_data,
		    weft_nsec slice_ns, bool *ret_over)
{
	bool passed = false;
	ssize_t n = 0;

	*ret_over = false;
	if (slice_ns == WEFT_NEVER)
		return weft_stream_peek(redis->stream, ret_data);
	WEFT_WITHIN (slice_ns) {
		n = weft_stream_peek(redis->stream, ret_data);
		passed = weft_deadline_passed();
	}
	if (n < 0) {
		n = slice_end((int)n, passed);
		*ret_over = n == 0;
	}
	return n;
}

/* By the call that receives: waits for bytes and feeds the reader.  Returns 1,
 * 0 when the slice is over, or an error. */
static int receive(struct weft_redis *redis, weft_nsec slice_ns)
{
	const void *data;
	bool over;
	ssize_t n = peek(redis, &data, slice_ns, &over);
	int r;

	if (n > 0) {
		r = redisReaderFeed(redis->reader, data, (size_t)n);
		weft_stream_skip(redis->stream, (size_t)n);
		if (r == REDIS_OK)
			return 1;
		/* The bytes before these are lost. */
		fail(redis, -ENOMEM);
		return -ENOMEM;
	}
	if (over)
		return 0;
	r = n == 0 ? -ECONNRESET : (int)n;
	if (!gave_up(r))
		fail(redis, r);
	return r;
}

/* Without a descriptor there is no shutdown, so a call looks for the error. */
static weft_nsec receive_slice_ns(const struct weft_redis *redis)
{
	return weft_stream_fd(redis->stream) < 0 ? SLICE_MAX_NS : WEFT_NEVER;
}

/* The next reply that is complete; NULL if there is none. */
static int parse(struct weft_redis *redis, redisReply **ret_reply)
{
	void *reply = NULL;
	int r;

	if (redisReaderGetReply(redis->reader, &reply) == REDIS_OK) {
		*ret_reply = reply;
		return 0;
	}
	r = redis->reader->err == REDIS_ERR_OOM ? -ENOMEM : -EPROTO;
	fail(redis, r);
	return r;
}

/* By the call that receives.  Results as of receive(). */
static int receive_some(struct weft_redis *redis, weft_nsec slice_ns)
{
	redisReply *reply = NULL;
	int r = 0, received = receive(redis, slice_ns);

	if (received <= 0)
		return received;
	while (r == 0) {
		r = parse(redis, &reply);
		if (r < 0 || !reply)
			break;
		r = deliver(redis, reply);
		if (r < 0)
			fail(redis, r);
	}
	return r < 0 ? r : received;
}

/* ---- Sending ---- */

/* Makes room in `sending`, which is empty or has been taken for other calls. */
static int sending_reserve(struct weft_redis *redis, size_t bytes)
{
	size_t room = redis->sending_end + bytes;
	char *larger;

	if (room <= redis->sending_room)
		return 0;
	if (room < SENDING_BYTES && redis->sending_room)
		room = SENDING_BYTES;
	larger = realloc(redis->sending, room);
	if (!larger)
		return -ENOMEM;
	redis->sending = larger;
	redis->sending_room = room;
	return 0;
}

/* Takes calls from the queue.  Under lock, by the call that sends. */
static int take(struct weft_redis *redis)
{
	while (!link_is_empty(&redis->queue) &&
	       redis->sending_end < SENDING_BYTES) {
		struct call *call =
			LINK_OWNER(redis->queue.next, struct call, queued);

		if (sending_reserve(redis, call->bytes_count) < 0)
			return redis->sending_end > 0 ? 0 : -ENOMEM;
		memcpy(redis->sending + redis->sending_end, call->bytes,
		       call->bytes_count);
		redis->sending_end += call->bytes_count;
		redis->taken += call->bytes_count;
		call->sent_at = redis->taken;
		link_remove(&call->queued);
		redis->queue_count--;
		if (!call->count)
			continue;
		call->place = redis->ring_next++;
		*due_at(redis, call->place) = (struct due){ call, call->count };
	}
	return 0;
}

/* Wakes the calls that only wait until they are sent.  Under lock. */
static void wake_sent(struct weft_redis *redis)
{
	struct link *next, *link = redis->idle.next;

	for (; redis->subscribed && link != &redis->idle; link = next) {
		struct call *call = LINK_OWNER(link, struct call, idle);

		next = link->next;
		if (is_done(redis, call))
			wake(call);
	}
}

static void sending_shrink(struct weft_redis *redis)
{
	redis->sending_at = redis->sending_end = 0;
	if (redis->sending_room > 2 * (size_t)SENDING_BYTES) {
		free(redis->sending);
		redis->sending = NULL;
		redis->sending_room = 0;
	}
}

/* By the call that sends: writes for a while.  0, or why the call gives up. */
static int send_slice(struct weft_redis *redis, weft_nsec slice_ns)
{
	bool passed = false;
	size_t done = 0;
	int r = 0;

	WEFT_WITHIN (slice_ns) {
		r = weft_stream_write_all(redis->stream,
					  redis->sending + redis->sending_at,
					  redis->sending_end -
						  redis->sending_at,
					  &done);
		passed = weft_deadline_passed();
	}
	redis->sending_at += done;
	pthread_mutex_lock(&redis->lock);
	redis->sent += done;
	wake_sent(redis);
	pthread_mutex_unlock(&redis->lock);
	return r < 0 ? slice_end(r, passed) : 0;
}

/* By the call that sends, while the server does not read: takes what has come,
 * if no other call does.  Results as of receive(). */
static int receive_meanwhile(struct weft_redis *redis, bool has_messages,
			     weft_nsec slice_ns)
{
	weft_nsec until = weft_now() + slice_ns;
	bool receives, some = false;
	int r;

	pthread_mutex_lock(&redis->lock);
	r = redis->error;
	receives = r == 0 && !redis->receives && !redis->subscribed &&
		   redis->ring_first < redis->ring_next;
	redis->receives |= receives;
	pthread_mutex_unlock(&redis->lock);
	if (r < 0 || !(receives || has_messages))
		return r;
	do {
		/* Messages are parsed later. */
		r = has_messages ? receive(redis, slice_ns) :
				   receive_some(redis, slice_ns);
		some |= r > 0;
	} while (r > 0 && weft_now() < until);
	if (!receives)
		return r < 0 ? r : some;
	pthread_mutex_lock(&redis->lock);
	redis->receives = false;
	nudge(redis);
	pthread_mutex_unlock(&redis->lock);
	return r < 0 ? r : some;
}

/* By the call that sends: writes what is there.  `has_messages`: it receives
 * messages, too.  Returns 0, or why the caller gives up. */
static int send_some(struct weft_redis *redis, bool has_messages)
{
	weft_nsec slice_ns = SLICE_MIN_NS;
	int r = 0;

	pthread_mutex_lock(&redis->lock);
	if (redis->sending_at == redis->sending_end)
		r = take(redis);
	pthread_mutex_unlock(&redis->lock);
	while (r >= 0 && redis->sending_at < redis->sending_end) {
		size_t at = redis->sending_at;

		r = send_slice(redis, slice_ns);
		if (r < 0 || redis->sending_at == redis->sending_end)
			break;
		r = receive_meanwhile(redis, has_messages, slice_ns);
		if (r > 0 || redis->sending_at > at)
			slice_ns = SLICE_MIN_NS;
		else if (slice_ns < SLICE_MAX_NS)
			slice_ns *= 2;
	}
	if (redis->sending_at == redis->sending_end)
		sending_shrink(redis);
	if (r < 0 && !gave_up(r))
		fail(redis, r);
	return r < 0 ? r : 0;
}

/* ---- Calls ---- */

/* Under lock. */
static int call_begin(struct weft_redis *redis, struct call *call,
		      bool subscribes)
{
	int r;

	if (redis->error)
		return redis->error;
	if (redis->subscribed && !subscribes)
		return -EINVAL;
	if (subscribes && !redis->subscribed &&
	    (redis->ring_first < redis->ring_next || redis->users > 0))
		return -EBUSY;
	r = ring_reserve(redis);
	if (r < 0)
		return r;
	redis->subscribed = subscribes;
	link_append(&redis->queue, &call->queued);
	redis->queue_count++;
	return 0;
}

/* Under lock, which it gives up meanwhile: one step towards the replies. */
static int call_step(struct weft_redis *redis, struct call *call)
{
	bool sends = !redis->sends && has_output(redis);
	bool receives = !sends && !redis->receives && call->count &&
			is_sent(redis, call);
	int r;

	if (sends)
		redis->sends = true;
	else if (receives)
		redis->receives = true;
	else
		link_append(&redis->idle, &call->idle);
	weft_event_clear(&call->event);
	nudge(redis);
	pthread_mutex_unlock(&redis->lock);

	r = sends    ? send_some(redis, false) :
	    receives ? receive_some(redis, receive_slice_ns(redis)) :
		       weft_event_wait(&call->event);

	pthread_mutex_lock(&redis->lock);
	if (sends)
		redis->sends = false;
	else if (receives)
		redis->receives = false;
	else if (link_is_in(&call->idle))
		link_remove(&call->idle);
	return r < 0 ? r : 0;
}

/* Under lock: gives up what has not come. */
static void call_abandon(struct weft_redis *redis, struct call *call)
{
	if (link_is_in(&call->queued)) {
		link_remove(&call->queued);
		redis->queue_count--;
	} else if (call->count) {
		due_at(redis, call->place)->call = NULL;
	}
}

int weft__redis_call(struct weft_redis *redis, struct call *call,
		     bool subscribes)
{
	bool begun;
	int r = weft__redis_may_wait();

	if (r < 0)
		return r;
	pthread_mutex_lock(&redis->lock);
	r = call_begin(redis, call, subscribes);
	begun = r == 0;
	redis->users++;
	while (r == 0 && !is_done(redis, call)) {
		r = call_step(redis, call);
		if (redis->error)
			r = redis->error;
	}
	if (begun && is_done(redis, call))
		r = 0;
	else if (begun)
		call_abandon(redis, call);
	redis->users--;
	nudge(redis);
	pthread_mutex_unlock(&redis->lock);
	while (r < 0 && call->done > 0) {
		freeReplyObject(call->replies[--call->done]);
		call->replies[call->done] = NULL;
	}
	return r;
}

/* Under lock, which it gives up meanwhile: finishes what a call that gave up
 * has left unsent. */
static int message_send(struct weft_redis *redis)
{
	int r = 0;

	while (r == 0 && !redis->sends && has_output(redis)) {
		redis->sends = true;
		pthread_mutex_unlock(&redis->lock);
		r = send_some(redis, true);
		pthread_mutex_lock(&redis->lock);
		redis->sends = false;
	}
	return r;
}

static int error_of(struct weft_redis *redis)
{
	int r;

	pthread_mutex_lock(&redis->lock);
	r = redis->error;
	pthread_mutex_unlock(&redis->lock);
	return r;
}

int weft__redis_message(struct weft_redis *redis, redisReply **ret_message)
{
	redisReply *message = NULL;
	int r = weft__redis_may_wait();

	if (r < 0)
		return r;
	pthread_mutex_lock(&redis->lock);
	if (!redis->subscribed || redis->receives) {
		r = redis->subscribed ? -EBUSY : -EINVAL;
		pthread_mutex_unlock(&redis->lock);
		return r;
	}
	redis->receives = true;
	redis->users++;
	r = redis->error;
	if (r == 0)
		r = message_send(redis);
	pthread_mutex_unlock(&redis->lock);
	while (r == 0 && !message) {
		r = parse(redis, &message);
		if (r == 0 && !message)
			r = receive(redis, receive_slice_ns(redis));
		if (r >= 0 && !message)
			r = error_of(redis);
	}
	pthread_mutex_lock(&redis->lock);
	redis->receives = false;
	redis->users--;
	/* It may have given up in the middle of another task's command. */
	nudge(redis);
	pthread_mutex_unlock(&redis->lock);
	if (r == 0)
		*ret_message = message;
	return r;
}
