/* SPDX-License-Identifier: MIT */
/*
 * Channel - sends and receives, by tasks and by futures.  The header has the
 * model and the invariants CH1 to CH3.
 */
#include "runtime/sync/chan.h"

#include "runtime/sync/await_grant.h"

#define CAPACITY_MAX ((size_t)1 << 31)

/* ---- The ring; under the lock -------------------------------------------- */

/* Most values are one or two words.  Link-time optimization inlines this into
 * programs, where the compiler knows the objects but not that `bytes` is their
 * size, and warns of the branches for other sizes.  So it forgets the objects
 * here; no instruction. */
static inline void item_copy(void *to, const void *from, uint32_t bytes)
{
	__asm__("" : "+r"(to), "+r"(from));
	if (weft__likely(bytes == 8))
		memcpy(to, from, 8);
	else if (bytes == 4)
		memcpy(to, from, 4);
	else if (bytes == 16)
		memcpy(to, from, 16);
	else
		memcpy(to, from, bytes);
}

static inline char *ring_at(struct weft__chan *c, uint32_t n)
{
	uint32_t place = c->first + n;

	if (place >= c->capacity)
		place -= c->capacity;
	return c->room + (size_t)place * c->item_bytes;
}

static inline void ring_put(struct weft__chan *c, const void *item)
{
	item_copy(ring_at(c, c->count++), item, c->item_bytes);
}

static inline void ring_take(struct weft__chan *c, void *item)
{
	item_copy(item, ring_at(c, 0), c->item_bytes);
	if (++c->first == c->capacity)
		c->first = 0;
	c->count--;
}

/* ---- One step; under the lock -------------------------------------------- */

/* Checked here only: before any value is passed, one side has to wait. */
static int chan_waits(const struct weft__chan *c)
{
	weft__assert(c->item_bytes,
		     "a channel was used that is not initialised");
	return WEFT__CHAN_WAITS;
}

static inline int send_now(struct weft__chan *c, const void *item,
			   struct weft__waiter **ret_worker)
{
	struct weft__waiter *receiver;

	*ret_worker = NULL;
	if (weft__unlikely(c->closed)) /* mutate: recheck=false */
		return -EPIPE;
	/* mutate: recheck=false */
	if (weft__unlikely(c->receivers.head != NULL)) {
		receiver = weft__waiters_take(&c->receivers);
		if (receiver) {
			item_copy(receiver->item, item, c->item_bytes);
			*ret_worker = receiver;
			return 0;
		}
	}
	if (weft__unlikely(c->count == c->capacity))
		return chan_waits(c);
	ring_put(c, item);
	return 0;
}

/* Receives while the ring is empty. */
static int recv_from_sender(struct weft__chan *c, void *item,
			    struct weft__waiter **ret_worker)
{
	struct weft__waiter *sender = weft__waiters_take(&c->senders);

	if (!sender)
		return c->closed ? -EPIPE : chan_waits(c);
	item_copy(item, sender->item, c->item_bytes);
	*ret_worker = sender;
	return 0;
}

static inline int recv_now(struct weft__chan *c, void *item,
			   struct weft__waiter **ret_worker)
{
	struct weft__waiter *sender;

	*ret_worker = NULL;
	if (weft__unlikely(!c->count))
		return recv_from_sender(c, item, ret_worker);
	ring_take(c, item);
	/* mutate: recheck=false */
	if (weft__unlikely(c->senders.head != NULL)) {
		sender = weft__waiters_take(&c->senders);
		if (sender)
			ring_put(c, sender->item);
		*ret_worker = sender;
	}
	return 0;
}

int weft__chan_send_now(struct weft__chan *c, const void *item,
			struct weft__waiter **ret_worker)
{
	return send_now(c, item, ret_worker);
}

int weft__chan_recv_now(struct weft__chan *c, void *item,
			struct weft__waiter **ret_worker)
{
	return recv_now(c, item, ret_worker);
}

/* ---- Calls --------------------------------------------------------------- */

int weft_chan_init(struct weft_chan *chan, void *room, size_t capacity,
		   size_t item_bytes)
{
	struct weft__chan *c = weft__chan(chan);

	if (item_bytes == 0 || item_bytes > WEFT__ITEM_BYTES_MAX ||
	    capacity > CAPACITY_MAX || (capacity && !room))
		return -EINVAL;
	memset(c, 0, sizeof(*c));
	c->room = room;
	c->item_bytes = (uint32_t)item_bytes;
	c->capacity = (uint32_t)capacity;
	return 0;
}

/* Queues the caller, drops the lock, and waits. */
static __attribute__((noinline)) int chan_wait(struct weft__chan *c,
					       struct weft__waiters *queue,
					       struct weft__worker *worker,
					       void *item)
{
	struct weft__wait wait;
	struct weft__waiter w;
	int r;

	weft__waiter_init(&w, &wait, worker, item, 0);
	weft__wait_on(&wait,
		      queue == &c->senders ? WEFT__ON_SEND : WEFT__ON_RECEIVE,
		      c);
	weft__waiters_add(queue, &w);
	weft__lock_drop(&c->lock);
	r = weft__waiter_wait(&w, queue, &c->lock);
	return r == WEFT__CHAN_CLOSED ? -EPIPE : r;
}

/* Drops the lock, and grants the other side's wait, if there was one. */
static inline void chan_leave(struct weft__chan *c,
			      struct weft__worker *worker,
			      struct weft__waiter *met)
{
	weft__lock_drop(&c->lock);
	if (met)
		/* mutate: wake */
		weft__waiter_grant(worker, met, WEFT__CHAN_DONE);
}

int weft_chan_send(struct weft_chan *chan, const void *item)
{
	struct weft__chan *c = weft__chan(chan);
	struct weft__worker *worker;
	struct weft__waiter *met;
	int r = weft__sync_enter(&worker);

	if (weft__unlikely(r < 0))
		return r;
	weft__lock_take(&c->lock);
	r = send_now(c, item, &met);
	if (weft__unlikely(r == WEFT__CHAN_WAITS))
		return chan_wait(c, &c->senders, worker,
				 (void *)(uintptr_t)item);
	chan_leave(c, worker, met);
	return r;
}

int weft_chan_recv(struct weft_chan *chan, void *ret_item)
{
	struct weft__chan *c = weft__chan(chan);
	struct weft__worker *worker;
	struct weft__waiter *met;
	int r = weft__sync_enter(&worker);

	if (weft__unlikely(r < 0))
		return r;
	weft__lock_take(&c->lock);
	r = recv_now(c, ret_item, &met);
	if (weft__unlikely(r == WEFT__CHAN_WAITS))
		return chan_wait(c, &c->receivers, worker, ret_item);
	chan_leave(c, worker, met);
	return r;
}

/* Ends a call that does not wait. */
static int chan_tried(struct weft__chan *c, struct weft__waiter *met, int r)
{
	chan_leave(c, weft__sync_worker(), met);
	return r == WEFT__CHAN_WAITS ? -EAGAIN : r;
}

int weft_chan_try_send(struct weft_chan *chan, const void *item)
{
	struct weft__chan *c = weft__chan(chan);
	struct weft__waiter *met;
	int r;

	weft__lock_take(&c->lock);
	r = send_now(c, item, &met);
	return chan_tried(c, met, r);
}

int weft_chan_try_recv(struct weft_chan *chan, void *ret_item)
{
	struct weft__chan *c = weft__chan(chan);
	struct weft__waiter *met;
	int r;

	weft__lock_take(&c->lock);
	r = recv_now(c, ret_item, &met);
	return chan_tried(c, met, r);
}

int weft_chan_push(struct weft_chan *chan, const void *item,
		   void *ret_dropped)
{
	struct weft__chan *c = weft__chan(chan);
	struct weft__waiter *met;
	int r;

	weft__assert(ret_dropped && ret_dropped != item,
		     "a push needs a place for the value that it drops");
	weft__lock_take(&c->lock);
	r = send_now(c, item, &met);
	if (r == WEFT__CHAN_WAITS && c->capacity) {
		/* The ring is full: takes the place of the oldest value.  The
		 * ring stays full, so senders that wait go on waiting. */
		ring_take(c, ret_dropped);
		ring_put(c, item);
		weft__lock_drop(&c->lock);
		return 1;
	}
	r = chan_tried(c, met, r);
	return r == -EAGAIN ? -EINVAL : r;
}

void weft_chan_close(struct weft_chan *chan)
{
	struct weft__chan *c = weft__chan(chan);
	struct weft__waiter *senders, *receivers;
	struct weft__worker *worker = weft__sync_worker();

	weft__lock_take(&c->lock);
	c->closed = true;
	senders = weft__waiters_take_all(&c->senders);
	receivers = weft__waiters_take_all(&c->receivers);
	weft__lock_drop(&c->lock);
	/* mutate: wake */
	weft__waiters_grant(worker, senders, WEFT__CHAN_CLOSED);
	/* mutate: wake */
	weft__waiters_grant(worker, receivers, WEFT__CHAN_CLOSED);
}

size_t weft_chan_count(const struct weft_chan *chan)
{
	struct weft__chan *c = weft__chan(chan);
	uint32_t count;

	weft__lock_take(&c->lock);
	count = c->count;
	weft__lock_drop(&c->lock);
	return count;
}

/* ---- Futures ------------------------------------------------------------- */

static int await_begin(struct weft__worker *worker, struct weft__task *task,
		       struct weft__chan *c, struct weft__waiters *waiters,
		       void *item)
{
	bool sends = waiters == &c->senders;
	struct weft__waiter *met;
	int r = weft__await_room(worker, task);

	if (r < 0)
		return r;
	weft__lock_take(&c->lock);
	r = sends ? weft__chan_send_now(c, item, &met) :
		    weft__chan_recv_now(c, item, &met);
	if (r == WEFT__CHAN_WAITS)
		weft__await_in(worker, task, waiters,
			       sends ? WEFT__ON_SEND : WEFT__ON_RECEIVE, c)
			->item = item;
	weft__lock_drop(&c->lock);
	if (r == WEFT__CHAN_WAITS)
		return WEFT_PENDING;
	if (met)
		/* mutate: wake */
		weft__waiter_grant(worker, met, WEFT__CHAN_DONE);
	return weft__await_end(worker, task, r);
}

static int await(struct weft__chan *c, struct weft__waiters *waiters,
		 void *item)
{
	struct weft__worker *worker;
	struct weft__task *task;
	int r = weft__await_enter(WEFT__AWAITS_GRANT, waiters, (uintptr_t)item,
				  &worker, &task);

	if (r < 0)
		return r;
	if (task->awaits == WEFT__AWAITS_NOTHING)
		return await_begin(worker, task, c, waiters, item);
	r = weft__await_granted(worker, task, waiters, &c->lock);
	return r == WEFT__CHAN_CLOSED ? -EPIPE : r;
}

int weft_await_chan_send(struct weft_chan *chan, const void *item)
{
	struct weft__chan *c = weft__chan(chan);

	return await(c, &c->senders, (void *)(uintptr_t)item);
}

int weft_await_chan_recv(struct weft_chan *chan, void *ret_item)
{
	struct weft__chan *c = weft__chan(chan);

	return await(c, &c->receivers, ret_item);
}
