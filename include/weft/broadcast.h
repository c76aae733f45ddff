/* SPDX-License-Identifier: MIT */
/*
 * Values for many receivers: broadcasts, where each subscriber receives every
 * value, and watches, where a reader sees the latest value.
 *
 *	struct news room[256];
 *	struct weft_broadcast news = WEFT_BROADCAST_INIT(room);
 *
 *	weft_broadcast_send(&news, &item);	never waits
 *
 *	struct weft_subscriber mine;
 *	weft_subscribe(&news, &mine);		for values sent from here on
 *	while ((missed = weft_broadcast_recv(&mine, &item)) >= 0)
 *		...
 *
 * The rules are those of channels (<weft/chan.h>): these are structs that you
 * place where you like, no call allocates, values are copied, tasks suspend and
 * threads block.  In a future, calls that suspend return -EPERM; the others may
 * be made in any task, future or thread.
 */
#ifndef WEFT_BROADCAST_H
#define WEFT_BROADCAST_H

#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* Keeps the last values that were sent, as many as its array has elements. */
struct weft_broadcast {
	uint64_t private_words[8];
};

#define WEFT_BROADCAST_INIT(array)                                      \
	{                                                               \
		{                                                       \
			WEFT__ADDRESS(array),                           \
				WEFT__NUMBER(uint64_t,                  \
					     WEFT__ELEMENTS(array))     \
						<< 32 |                 \
					WEFT__NUMBER(                   \
						uint32_t,               \
						WEFT__ITEM_BYTES(       \
							sizeof(*(array))))  \
		}                                                       \
	}

/* The same for memory that is not an array: capacity * item_bytes bytes at
 * room, aligned for the values.  Returns 0, or -EINVAL: item_bytes is 0 or over
 * 4096, capacity is 0 or over 2^31, or room is NULL. */
WEFT_API int weft_broadcast_init(struct weft_broadcast *broadcast, void *room,
				 size_t capacity, size_t item_bytes);

/* A receiver of a broadcast, for one task or thread at a time.  There is
 * nothing to undo when it is no longer used. */
struct weft_subscriber {
	uint64_t private_words[4];
};

/* The subscriber receives the values that are sent from now on.  Does not
 * suspend. */
WEFT_API void weft_subscribe(struct weft_broadcast *broadcast,
			     struct weft_subscriber *subscriber);

/* Sends a value to all subscribers; if there is no room, it replaces the oldest
 * value.  Does not suspend.  Returns 0, or -EPIPE (the broadcast is closed). */
WEFT_API int weft_broadcast_send(struct weft_broadcast *broadcast,
				 const void *item);

/* Receives the subscriber's next value, and waits for it; suspends.  Returns 0,
 * or, if the subscriber was too slow, the number of values that it has missed
 * before this one, which is the oldest that is left.  Or -EPIPE (closed, and
 * all values were received), -ECANCELED, -ETIMEDOUT.  try_recv does not wait,
 * and returns -EAGAIN if there is no value. */
WEFT_API int64_t weft_broadcast_recv(struct weft_subscriber *subscriber,
				     void *ret_item) WEFT_WARN_UNUSED;
WEFT_API int64_t weft_broadcast_try_recv(struct weft_subscriber *subscriber,
					 void *ret_item) WEFT_WARN_UNUSED;

/* Nothing more can be sent; the values that it keeps can still be received.
 * Does not suspend. */
WEFT_API void weft_broadcast_close(struct weft_broadcast *broadcast);

/*
 * A watch: a value that changes, such as a configuration or a state, with a
 * version number.
 *
 *	struct config config = { ... };
 *	struct weft_watch watch = WEFT_WATCH_INIT(config);
 *
 *	uint64_t version = 0;
 *	while (weft_watch_wait(&watch, &version, &mine) == 0)
 *		...					once, then on changes
 */
struct weft_watch {
	uint64_t private_words[8];
};

/* A watch of that variable, which belongs to the watch from here on.  Its first
 * version is 1. */
#define WEFT_WATCH_INIT(variable)                                       \
	{                                                               \
		{                                                       \
			WEFT__ADDRESS(&(variable)), sizeof(variable)    \
		}                                                       \
	}

/* Copies a new value into the watch.  Does not suspend.  Returns 0, or -EPIPE
 * (the watch is closed). */
WEFT_API int weft_watch_set(struct weft_watch *watch, const void *item);

/* Copies the value, and returns its version.  Does not suspend. */
WEFT_API uint64_t weft_watch_get(struct weft_watch *watch, void *ret_item);

/* Waits until the version is not *version, then copies the value and sets
 * *version.  Suspends.  Returns 0, -EPIPE (closed, and *version is the last),
 * -ECANCELED or -ETIMEDOUT. */
WEFT_API int weft_watch_wait(struct weft_watch *watch, uint64_t *version,
			     void *ret_item) WEFT_WARN_UNUSED;

/* The value will not change any more; it can still be read.  Does not
 * suspend. */
WEFT_API void weft_watch_close(struct weft_watch *watch);

WEFT_END_DECLS

#endif
