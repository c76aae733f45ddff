/* SPDX-License-Identifier: MIT */
/* A connection to Redis: the calls of its tasks, and who sends and receives. */
#ifndef WEFT_ADAPTERS_REDIS_CONNECTION_H
#define WEFT_ADAPTERS_REDIS_CONNECTION_H

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdbool.h>
#include <weft/weft.h>

#include "adapters/redis/link.h"

/* One or more commands that are sent together, and a place for each reply.  In
 * the frame of the caller, which waits. */
struct call {
	const char *bytes;
	size_t bytes_count;
	redisReply **replies;
	size_t count; /* of replies; 0: none is waited for */

	/* Under lock: */
	size_t done;	    /* replies that have come */
	uint64_t place;	    /* of its entry in the ring, when it is taken */
	uint64_t sent_at;   /* the value of `sent` when it is sent; the same */
	struct link queued; /* in the queue, until it is taken */
	struct link idle;   /* in idle, while it waits for its event */
	struct weft_event event;
};

/* Replies that are due. */
struct due {
	struct call *call; /* NULL: its task has given up */
	size_t left;
};

struct weft_redis {
	struct weft_stream own; /* of weft_redis_connect() */
	struct weft_stream *stream;

	/* Of the call that receives. */
	redisReader *reader;

	/* Of the call that sends: what has been taken and not been sent. */
	char *sending;
	size_t sending_at, sending_end, sending_room;

	pthread_mutex_t lock;
	/* Under lock: */
	int error; /* 0, or why it is broken */
	bool receives, sends, subscribed;
	unsigned users;	   /* tasks in a call */
	struct link queue; /* calls that are not taken, in order */
	struct link idle;  /* calls that wait for their event */
	struct due *ring;  /* replies that are due, in the order of commands */
	size_t ring_room;  /* a power of two, or 0 */
	uint64_t ring_first, ring_next, queue_count;
	uint64_t taken, sent; /* bytes, since the connection began */
};

/* Sends the call's commands and waits for its replies: 0, or an error, and then
 * there is none.  `subscribes`: from now on the connection has messages. */
int weft__redis_call(struct weft_redis *redis, struct call *call,
		     bool subscribes);

/* Waits for a message. */
int weft__redis_message(struct weft_redis *redis, redisReply **ret_message);

/* Whether the caller may wait: 0, or -EPERM, -ECANCELED, -ETIMEDOUT. */
int weft__redis_may_wait(void);

#endif
