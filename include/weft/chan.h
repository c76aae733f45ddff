/* SPDX-License-Identifier: MIT */
/*
 * Channels: values passed between tasks, in order, each to one receiver.
 *
 *	struct job room[64];
 *	struct weft_chan jobs = WEFT_CHAN_INIT(room);
 *
 *	weft_chan_send(&jobs, &job);			waits while it is full
 *	while (weft_chan_recv(&jobs, &job) == 0)	until it is closed
 *		...
 *
 * A channel is a struct that you place where you like, next to the array for
 * the values that it holds.  Both must stay in place while the channel is in
 * use.  No call allocates, and there is nothing to free.  Values are copied.
 * Any number of tasks and threads may send and receive; waiters are served in
 * the order of their arrival.
 *
 * Tasks suspend, and their waits obey deadlines and cancellation: a call that
 * is interrupted has sent or received nothing.  Threads that run no task block,
 * until the channel is closed; a weft_select() with WEFT_AT(), or with a second
 * channel that is closed, ends their wait earlier.
 * In a future, calls that suspend return -EPERM: use weft_await_chan_send() and
 * weft_await_chan_recv().  The other calls work in any task, future or thread.
 *
 *			 open, room	open, full   closed
 *	send		 0		waits	     -EPIPE
 *	try_send	 0		-EAGAIN	     -EPIPE
 *	push		 0		1, drops     -EPIPE
 *			 open, values	open, empty  closed, values   closed
 *	recv		 0		waits	     0		      -EPIPE
 *	try_recv	 0		-EAGAIN	     0		      -EPIPE
 *	close		 its values can still be received; waiters get -EPIPE;
 *			 closing it again does nothing
 */
#ifndef WEFT_CHAN_H
#define WEFT_CHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

struct weft_chan {
	uint64_t private_words[12];
};

/* A channel whose values lie in that array.  It holds as many values as the
 * array has elements, of the size of an element, at most 4096 bytes. */
#define WEFT_CHAN_INIT(array)                                          \
	WEFT__CHAN(WEFT__ADDRESS(array), WEFT__ELEMENTS(array),        \
		   WEFT__ITEM_BYTES(sizeof(*(array))))
/* A channel that holds no values: a send waits until its value is received. */
#define WEFT_CHAN_DIRECT(type) \
	WEFT__CHAN(0, 0, WEFT__ITEM_BYTES(sizeof(type)))
#define WEFT__CHAN(room, capacity, item_bytes)                         \
	{                                                              \
		{                                                      \
			(room),                                        \
				WEFT__NUMBER(uint64_t, capacity)       \
						<< 32 |                \
					WEFT__NUMBER(uint32_t,         \
						     item_bytes)       \
		}                                                      \
	}

/* The same for memory that is not an array: capacity * item_bytes bytes at
 * room, aligned for the values.  With capacity 0, room may be NULL.  Returns 0,
 * or -EINVAL: item_bytes is 0 or over 4096 (send a pointer then), capacity is
 * over 2^31, or room is NULL. */
WEFT_API int weft_chan_init(struct weft_chan *chan, void *room,
			    size_t capacity, size_t item_bytes);

/* Send the value at item, or receive a value into ret_item.  Suspend.  The
 * table above gives the results; also -ECANCELED and -ETIMEDOUT. */
WEFT_API int weft_chan_send(struct weft_chan *chan,
			    const void *item) WEFT_WARN_UNUSED;
WEFT_API int weft_chan_recv(struct weft_chan *chan,
			    void *ret_item) WEFT_WARN_UNUSED;

/* The same without waiting; they never suspend. */
WEFT_API int weft_chan_try_send(struct weft_chan *chan,
				const void *item) WEFT_WARN_UNUSED;
WEFT_API int weft_chan_try_recv(struct weft_chan *chan,
				void *ret_item) WEFT_WARN_UNUSED;

/* Sends without waiting, even if the channel is full: then the oldest value is
 * moved to ret_dropped, and the result is 1.  ret_dropped must not be NULL nor
 * item.  Does not suspend.  Returns -EINVAL for a channel that holds no values,
 * if no receiver waits. */
WEFT_API int weft_chan_push(struct weft_chan *chan, const void *item,
			    void *ret_dropped) WEFT_WARN_UNUSED;

/* Closes the channel: nothing more can be sent.  Does not suspend. */
WEFT_API void weft_chan_close(struct weft_chan *chan);

/* The number of values that it holds at this moment. */
WEFT_API size_t weft_chan_count(const struct weft_chan *chan);

/*
 * A oneshot: one value, from one sender to one receiver, such as the reply to a
 * request.  It is allocated, and belongs to both sides, so that either may
 * leave first.  The sender leaves by send or drop, the receiver by a successful
 * receive or by abandon.  The last call of the second side frees it.
 *
 *	weft_oneshot_new(sizeof(reply), &request.reply);
 *	weft_chan_send(&requests, &request);	  the server: send, or drop
 *	r = weft_oneshot_recv(request.reply, &reply);
 *	if (r == -ECANCELED || r == -ETIMEDOUT)
 *		weft_oneshot_abandon(request.reply);
 */
struct weft_oneshot;

/* Allocates a oneshot for a value of item_bytes, 1 to 4096: in a task from the
 * allocator of its runtime, otherwise from malloc().  Returns 0, -EINVAL or
 * -ENOMEM. */
WEFT_API int weft_oneshot_new(size_t item_bytes,
			      struct weft_oneshot **ret_oneshot)
	WEFT_WARN_UNUSED;

/* The sender's last call is one of these two; neither suspends.  drop means
 * that there will be no value.  send returns 0, or -EPIPE: the receiver has
 * left. */
WEFT_API int weft_oneshot_send(struct weft_oneshot *oneshot, const void *item);
WEFT_API void weft_oneshot_drop(struct weft_oneshot *oneshot);

/* Receive the value.  recv suspends; try_recv does not wait, and returns
 * -EAGAIN if the sender has not left yet.  After 0, or -EPIPE (the value was
 * dropped), the oneshot is no longer the receiver's.  After -ECANCELED or
 * -ETIMEDOUT it still is: receive again or abandon it. */
WEFT_API int weft_oneshot_recv(struct weft_oneshot *oneshot,
			       void *ret_item) WEFT_WARN_UNUSED;
WEFT_API int weft_oneshot_try_recv(struct weft_oneshot *oneshot,
				   void *ret_item) WEFT_WARN_UNUSED;
/* The receiver leaves without the value.  Does not suspend. */
WEFT_API void weft_oneshot_abandon(struct weft_oneshot *oneshot);

WEFT_END_DECLS

#endif
