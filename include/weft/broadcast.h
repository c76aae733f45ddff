/* SPDX-License-Identifier: MIT */
/*
 * Values for everyone: broadcasts, where each subscriber gets all of them, and
 * watches, where who looks gets the latest.
 *
 *	struct news room[256];
 *	struct weft_broadcast news = WEFT_BROADCAST_INIT(room);
 *
 *	weft_broadcast_send(&news, &item);	never waits
 *
 *	struct weft_subscriber mine;
 *	weft_subscribe(&news, &mine);		what is sent from here on
 *	while ((missed = weft_broadcast_recv(&mine, &item)) >= 0)
 *		...
 *
 * As channels (weft/chan.h): structs that you put where you like, no call
 * allocates, values are copied, tasks suspend and threads block.
 */
#ifndef WEFT_BROADCAST_H
#define WEFT_BROADCAST_H

#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* Keeps the last values that were sent, as many as its array has room for. */
struct weft_broadcast {
	uint64_t private_words[8];
};

#define WEFT_BROADCAST_INIT(array)                                      \
	{                                                               \
		{                                                       \
			(uint64_t)(uintptr_t)(array),                   \
				(uint64_t)(sizeof(array) /              \
					   sizeof(*(array))) << 32 |    \
					(uint32_t)WEFT__ITEM_BYTES(     \
						sizeof(*(array)))       \
		}                                                       \
	}

/* The same for memory that is no array: capacity * item_bytes bytes at room,
 * aligned for the values.  0, or -EINVAL: item_bytes is 0 or over 4096,
 * capacity is 0 or over 2^31, or there is no room. */
WEFT_API int weft_broadcast_init(struct weft_broadcast *broadcast, void *room,
				 size_t capacity, size_t item_bytes);

/* One who gets what is sent; used by one task or thread at a time.  Nothing is
 * to be undone at its end. */
struct weft_subscriber {
	uint64_t private_words[4];
};

/* It gets what is sent from now on. */
WEFT_API void weft_subscribe(struct weft_broadcast *broadcast,
			     struct weft_subscriber *subscriber);

/* Sends to all, and forgets the oldest value if there is no room.  Does not
 * suspend.  0, or -EPIPE: it is closed. */
WEFT_API int weft_broadcast_send(struct weft_broadcast *broadcast,
				 const void *item);

/*
 * The next value, waited for; suspends.  0, or how many values before it this
 * subscriber missed since it was too slow; then the value is the oldest that is
 * left.  Or -EPIPE (closed, and it has had all), -ECANCELED, -ETIMEDOUT;
 * try_recv does not wait: -EAGAIN.
 */
WEFT_API int64_t weft_broadcast_recv(struct weft_subscriber *subscriber,
				     void *ret_item) WEFT_WARN_UNUSED;
WEFT_API int64_t weft_broadcast_try_recv(struct weft_subscriber *subscriber,
					 void *ret_item) WEFT_WARN_UNUSED;

/* Nothing more is sent.  What is there can still be received. */
WEFT_API void weft_broadcast_close(struct weft_broadcast *broadcast);

/*
 * A watch: a value that changes, as a configuration or a state, with versions.
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

/* The value lies in that variable, which belongs to the watch from here on; its
 * version is 1. */
#define WEFT_WATCH_INIT(variable)                                       \
	{                                                               \
		{                                                       \
			(uint64_t)(uintptr_t)&(variable),               \
				(uint64_t)sizeof(variable)              \
		}                                                       \
	}

/* Gives it another value.  Does not suspend.  0, or -EPIPE: it is closed. */
WEFT_API int weft_watch_set(struct weft_watch *watch, const void *item);

/* Copies the value; its version.  Does not suspend. */
WEFT_API uint64_t weft_watch_get(struct weft_watch *watch, void *ret_item);

/* Waits until its version is not *version, and copies both.  Suspends.  0, or
 * -EPIPE (closed, and this version is the last), -ECANCELED, -ETIMEDOUT. */
WEFT_API int weft_watch_wait(struct weft_watch *watch, uint64_t *version,
			     void *ret_item) WEFT_WARN_UNUSED;

/* The value does not change any more. */
WEFT_API void weft_watch_close(struct weft_watch *watch);

WEFT_END_DECLS

#endif
