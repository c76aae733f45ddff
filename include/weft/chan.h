/* SPDX-License-Identifier: MIT */
/*
 * Channels: values handed from task to task, in order, each to one receiver.
 *
 *	struct job room[64];
 *	struct weft_chan jobs = WEFT_CHAN_INIT(room);
 *
 *	weft_chan_send(&jobs, &job);			waits while it is full
 *	while (weft_chan_recv(&jobs, &job) == 0)	until it is closed
 *		...
 *
 * A channel is a struct that you put where you like, beside the room for the
 * values it holds; no call allocates, and there is nothing to free.  Values are
 * copied.  Any number of tasks and threads may send and receive; who waits is
 * served in turn.  Tasks suspend, and their waits obey deadlines and
 * cancellation: a call that is interrupted has sent or received nothing.
 *
 *			 open, room	open, full   closed
 *	send		 0		waits	     -EPIPE
 *	try_send	 0		-EAGAIN	     -EPIPE
 *	push		 0		1, drops     -EPIPE
 *			 open, values	open, empty  closed, values   closed
 *	recv		 0		waits	     0		      -EPIPE
 *	try_recv	 0		-EAGAIN	     0		      -EPIPE
 *	close		 what is in it can still be received; who waits gets
 *			 -EPIPE; closing again does nothing
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

/* A channel whose values lie in that array, one an element: as many as it has,
 * of that size, 4096 bytes at most. */
#define WEFT_CHAN_INIT(array)                                          \
	WEFT__CHAN((array), sizeof(array) / sizeof(*(array)),          \
		   WEFT__ITEM_BYTES(sizeof(*(array))))
/* One without room: a send waits until its value is received. */
#define WEFT_CHAN_DIRECT(type) \
	WEFT__CHAN(NULL, 0, WEFT__ITEM_BYTES(sizeof(type)))
#define WEFT__CHAN(room, capacity, item_bytes)                         \
	{                                                              \
		{                                                      \
			(uint64_t)(uintptr_t)(room),                   \
				(uint64_t)(capacity) << 32 |           \
					(uint32_t)(item_bytes)         \
		}                                                      \
	}

/* The same for memory that is no array: capacity * item_bytes bytes at room,
 * aligned for the values.  0, or -EINVAL: item_bytes is 0 or over 4096 (send a
 * pointer then), capacity is over 2^31, or there is no room. */
WEFT_API int weft_chan_init(struct weft_chan *chan, void *room,
			    size_t capacity, size_t item_bytes);

/* Sends the value at item / receives one into item.  Suspends.  See above for
 * the results; also -ECANCELED, -ETIMEDOUT. */
WEFT_API int weft_chan_send(struct weft_chan *chan,
			    const void *item) WEFT_WARN_UNUSED;
WEFT_API int weft_chan_recv(struct weft_chan *chan,
			    void *ret_item) WEFT_WARN_UNUSED;

/* The same without waiting; they never suspend. */
WEFT_API int weft_chan_try_send(struct weft_chan *chan,
				const void *item) WEFT_WARN_UNUSED;
WEFT_API int weft_chan_try_recv(struct weft_chan *chan,
				void *ret_item) WEFT_WARN_UNUSED;

/* Sends without waiting, whatever it takes: if the channel is full the oldest
 * value is moved to ret_dropped, which is not item, and the result is 1.
 * -EINVAL: a channel without room, and nobody receives. */
WEFT_API int weft_chan_push(struct weft_chan *chan, const void *item,
			    void *ret_dropped) WEFT_WARN_UNUSED;

/* Nothing more can be sent.  From anywhere; does not suspend. */
WEFT_API void weft_chan_close(struct weft_chan *chan);

/* How many values it holds; a moment's figure. */
WEFT_API size_t weft_chan_count(const struct weft_chan *chan);

/*
 * A oneshot: one value, from one sender to one receiver, as the reply to a
 * request.  It belongs to both, so that each may leave without the other: the
 * sender by send or drop, the receiver when it has received, or by abandon.
 * The second of them frees it.
 *
 *	weft_oneshot_new(sizeof(reply), &request.reply);
 *	weft_chan_send(&requests, &request);	  the server: send, or drop
 *	r = weft_oneshot_recv(request.reply, &reply);
 *	if (r == -ECANCELED || r == -ETIMEDOUT)
 *		weft_oneshot_abandon(request.reply);
 */
struct weft_oneshot;

/* Allocates one for values of item_bytes, 1 to 4096.  0, -EINVAL, -ENOMEM. */
WEFT_API int weft_oneshot_new(size_t item_bytes,
			      struct weft_oneshot **ret_oneshot)
	WEFT_WARN_UNUSED;

/* The sender's last call, one of the two; neither suspends.  0, or -EPIPE: the
 * receiver has left.  Dropped: there will be no value. */
WEFT_API int weft_oneshot_send(struct weft_oneshot *oneshot, const void *item);
WEFT_API void weft_oneshot_drop(struct weft_oneshot *oneshot);

/* Receives the value: 0, or -EPIPE if it was dropped; in both cases this was
 * the receiver's last call.  Suspends.  Or -ECANCELED, -ETIMEDOUT; try_recv
 * does not wait: -EAGAIN. */
WEFT_API int weft_oneshot_recv(struct weft_oneshot *oneshot,
			       void *ret_item) WEFT_WARN_UNUSED;
WEFT_API int weft_oneshot_try_recv(struct weft_oneshot *oneshot,
				   void *ret_item) WEFT_WARN_UNUSED;
/* The receiver leaves without the value. */
WEFT_API void weft_oneshot_abandon(struct weft_oneshot *oneshot);

WEFT_END_DECLS

#endif
